"""Score brackets contain the exact scores, and their summaries are right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgemark import effective_dimension, exact, leverage_scores, open_rows
from ridgemark.errors import DataError, DataTypeError, ParameterError
from ridgemark.kernels import Bernoulli, ColumnMap, Gaussian, Laplacian, Linear, Matern12, Mixture, Polynomial
from ridgemark.leverage import exact_bracket
from ridgemark.paper.synthetic import synthetic_points
from tests.helpers import slowly


def _rows(kind, n=400):
    rng = np.random.default_rng(3)
    cloud = rng.normal(size=(n, 3))
    if kind == "outliers":
        cloud[:8] *= 10
    if kind == "clusters":
        cloud = 0.2 * cloud + 5 * rng.normal(size=(5, 3))[rng.integers(0, 5, n)]
    if kind == "repeated":
        cloud = cloud[rng.integers(0, n // 4, n)]
    if kind == "middle":
        cloud = synthetic_points(n)[:, None]
    return cloud


KERNELS = {
    "gaussian": Gaussian(1.5),
    "laplacian": Laplacian(2.0),
    "matern12": Matern12(1.0),
    "linear": Linear(),
    "polynomial": Polynomial(2),
    "sum": Gaussian(1.0) + Linear(),
    "mixture": Mixture(
        [Gaussian(1.0), Matern12(2.0)],
        [Laplacian(3.0), Linear()],
        [0.5, 0.2, 0.3, 0.1],
        columns=ColumnMap([-5.0] * 3, [4.0] * 3, [0.0] * 3, [0.0, 1.0, 0.0]),
    ),
}


def _tolerance(K, scaled_ridge):
    return 1e-8 + 4 * np.finfo(float).eps * exact.spectrum(K).eigenvalues[0] / scaled_ridge


def _check(scores, K, scaled_ridge):
    truth = exact.leverage_scores(K, scaled_ridge)
    slack = _tolerance(K, scaled_ridge)
    assert (scores.lower <= truth + slack).all()
    assert (truth <= scores.upper + slack).all()
    d_eff = scores.effective_dimension
    assert d_eff.lower <= truth.sum() + slack * len(K)
    assert truth.sum() <= d_eff.upper + slack * len(K)
    return truth


@pytest.mark.parametrize("kind", ["outliers", "repeated", *slowly("cloud", "clusters")])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ridge", [1e-2, pytest.param(1e-5, marks=pytest.mark.slow), 1e-8])
def test_the_bracket_contains_the_score_of_every_row(kind, kernel, ridge):
    X = _rows(kind)
    scores = leverage_scores(X, kernel=KERNELS[kernel], ridge=ridge, n_landmarks=60, random_state=0)
    K = exact.kernel_matrix(X, KERNELS[kernel])
    truth = _check(scores, K, 400 * ridge)
    coherence, slack = 400 * truth.max() / truth.sum(), 1 + 10 * _tolerance(K, 400 * ridge) / truth.max()
    assert scores.coherence.lower <= coherence * slack
    assert coherence <= scores.coherence.upper * slack


@pytest.mark.parametrize("kind", ["cloud", "outliers", "repeated"])
def test_the_bracket_holds_with_weights(kind):
    X = _rows(kind)
    weights = np.random.default_rng(0).uniform(0, 3, 400) * (np.arange(400) % 7 > 0)
    scores = leverage_scores(X, bandwidth=1.5, ridge=1e-4, n_landmarks=60, sample_weight=weights, random_state=0)
    K = exact.weighted_kernel(exact.kernel_matrix(X, Gaussian(1.5)), weights)
    truth = _check(scores, K, 1e-4 * weights.sum())
    assert scores.upper[weights == 0].max() == 0
    per_unit = truth[weights > 0] / weights[weights > 0]
    coherence = weights.sum() * per_unit.max() / truth.sum()
    assert scores.coherence.lower <= coherence <= scores.coherence.upper


@pytest.mark.parametrize("kind", ["cloud", "outliers", "clusters", "repeated"])
def test_the_residual_adds_at_most_its_own_effective_dimension(kind):
    """`d_eff <= sum(lower) + t/(1 + t/(n - r))` with `t = tr(K - L)/(n lambda)`."""
    X, landmarks = _rows(kind), np.arange(20)
    from ridgemark.leverage import residual_dimension, score_bracket
    from ridgemark.losses import loss_sums
    from ridgemark.operators import nystrom_factor
    from ridgemark.passes import RowPasses
    from ridgemark.rows import ArrayRows

    passes = RowPasses(ArrayRows(X))
    factor = nystrom_factor(Gaussian(1.5), X[landmarks], landmarks)
    moments = loss_sums(passes, factor)
    for scaled_ridge in (40.0, 0.4, 4e-3, 4e-5):
        scores = score_bracket(passes, factor, moments, scaled_ridge, np.ones(20), 20)
        truth = exact.leverage_scores(exact.kernel_matrix(X, Gaussian(1.5)), scaled_ridge).sum()
        ratio = moments.trace_residual / scaled_ridge
        most = scores.lower.sum() + residual_dimension(ratio, 400 - factor.rank)
        assert truth <= scores.effective_dimension.upper * (1 + 1e-9) <= most * (1 + 1e-6)
        assert most < scores.lower.sum() + ratio


def test_a_weight_is_a_repeated_row():
    X = _rows("cloud", 100)
    weights = np.random.default_rng(0).integers(1, 4, 100)
    weighted = leverage_scores(X, bandwidth=1.5, ridge=1e-3, n_landmarks=30, sample_weight=weights, random_state=0)
    repeated = leverage_scores(np.repeat(X, weights, axis=0), bandwidth=1.5, ridge=1e-3, n_landmarks=30, random_state=0)
    assert np.repeat(weighted.lower / weights, weights) == pytest.approx(repeated.lower, abs=1e-8)


def test_lower_scores_are_the_papers_approximation():
    """`l~ = diag(L (L + n lambda)^-1)`, with L from the landmarks drawn."""
    X = _rows("cloud")
    from ridgemark.leverage import score_bracket
    from ridgemark.losses import loss_sums
    from ridgemark.operators import nystrom_factor
    from ridgemark.passes import RowPasses
    from ridgemark.rows import ArrayRows

    passes = RowPasses(ArrayRows(X))
    factor = nystrom_factor(Gaussian(1.5), X[:50], np.arange(50))
    scores = score_bracket(passes, factor, loss_sums(passes, factor), 0.4, np.ones(50), 50)
    L = exact.nystrom_approximation(exact.kernel_matrix(X, Gaussian(1.5)), np.eye(400)[:, :50])
    assert scores.lower == pytest.approx(exact.leverage_scores(L, 0.4), abs=1e-8)
    assert passes.n_passes == 2


def test_landmarks_that_are_not_rows_still_give_a_bracket():
    X = _rows("cloud")
    from ridgemark.leverage import score_bracket
    from ridgemark.losses import loss_sums
    from ridgemark.operators import nystrom_factor
    from ridgemark.passes import RowPasses
    from ridgemark.rows import ArrayRows

    passes = RowPasses(ArrayRows(X))
    factor = nystrom_factor(Gaussian(1.5), X[:80] + 0.01)
    scores = score_bracket(passes, factor, loss_sums(passes, factor), 40.0, None, 80)
    _check(scores, exact.kernel_matrix(X, Gaussian(1.5)), 40.0)
    assert scores.upper.max() < 1


def test_with_all_rows_as_landmarks_the_bounds_are_equal():
    X = _rows("outliers")
    scores = leverage_scores(X, bandwidth=1.5, ridge=1e-4, n_landmarks=400, random_state=0)
    assert scores.upper - scores.lower == pytest.approx(0.0, abs=1e-5)  # rounding


def test_exact_scores_equal_those_of_the_dense_computation():
    X = _rows("outliers")
    scores = leverage_scores(X, bandwidth=1.5, ridge=1e-4, method="exact")
    truth = exact.leverage_scores(exact.kernel_matrix(X, Gaussian(1.5)), 0.04)
    assert np.array_equal(scores.lower, scores.upper)
    assert scores.lower == pytest.approx(truth)
    assert scores.effective_dimension.lower == scores.effective_dimension.upper == pytest.approx(truth.sum())
    assert scores.theorem_4() == "The scores are exact."
    assert scores.sampling_quality() == 1.0


def test_refining_the_pilot_narrows_the_bracket_on_uneven_data():
    X = _rows("outliers", 2000)
    widths = [
        np.mean(
            [
                np.ptp(
                    leverage_scores(
                        X, bandwidth=0.8, ridge=1e-4, n_landmarks=150, refine=k, random_state=s
                    ).effective_dimension
                )
                for s in range(5)
            ]
        )
        for k in (0, 2)
    ]
    assert widths[1] < widths[0]


def test_lower_scores_hardly_decrease_with_more_landmarks():
    X = _rows("clusters", 1000)
    sums = [
        effective_dimension(X, bandwidth=1.0, ridge=1e-4, n_landmarks=p, random_state=0).lower for p in (20, 80, 320)
    ]
    assert sums[0] < sums[1] < sums[2]


def test_scores_from_a_file_equal_those_from_the_array(tmp_path):
    X = _rows("clusters", 1000)
    np.save(tmp_path / "rows.npy", X)
    from_file = leverage_scores(
        open_rows(tmp_path / "rows.npy"), bandwidth=1.0, ridge=1e-4, n_landmarks=50, random_state=0
    )
    from_array = leverage_scores(X, bandwidth=1.0, ridge=1e-4, n_landmarks=50, random_state=0)
    assert np.array_equal(from_file.lower, from_array.lower)
    assert np.array_equal(from_file.upper, from_array.upper)
    assert (from_file.n_passes, from_file.n_kernel_evaluations) == (2, 2 * 1000 * 50 + 50 * 50)


def test_progress_goes_to_the_error_stream_or_to_the_callback(capsys):
    options = {"bandwidth": 1.0, "ridge": 1e-3, "n_landmarks": 40, "random_state": 0}
    quiet = leverage_scores(_rows("cloud"), **options)
    assert capsys.readouterr() == ("", "")
    leverage_scores(_rows("cloud"), **options, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "leverage scores: 400 of 400 " in captured.err
    seen = []
    told = leverage_scores(_rows("cloud"), **options, progress=lambda *words: seen.append(words))
    assert ("leverage scores", 400, 400) in seen
    assert np.array_equal(told.upper, quiet.upper)


def test_certified_sampling_quality_is_at_most_the_true_one():
    X = _rows("outliers")
    scores = leverage_scores(X, bandwidth=1.5, ridge=1e-4, n_landmarks=100, random_state=0)
    truth = exact.leverage_scores(exact.kernel_matrix(X, Gaussian(1.5)), 0.04)
    uniform = np.full(400, 1 / 400)
    for probabilities in (uniform, scores.upper / scores.upper.sum()):
        true_quality = (probabilities * truth.sum() / truth).min()
        assert scores.sampling_quality(probabilities) <= true_quality + 1e-9
    by_upper = scores.sampling_quality(scores.upper / scores.upper.sum())
    assert scores.sampling_quality() == pytest.approx(by_upper)
    with pytest.raises(ParameterError, match="each of the 400 rows"):
        scores.sampling_quality([0.5, 0.5])


def test_theorem_4_gives_a_bound_where_its_draws_suffice_and_none_otherwise():
    X = _rows("cloud", 2000)
    large = leverage_scores(X, bandwidth=1.5, ridge=0.5, n_landmarks=500, random_state=0)
    assert "with probability 0.95 every lower score is within" in large.theorem_4()
    small = leverage_scores(X, bandwidth=1.5, ridge=1e-5, n_landmarks=500, random_state=0)
    assert "gives no guarantee for 500 draws" in small.theorem_4()


def test_the_verdict_distinguishes_even_from_uneven_scores():
    grid = np.arange(1000)[:, None] / 1000
    even = leverage_scores(grid, kernel=Bernoulli(2), ridge=1e-6, n_landmarks=300, random_state=0)
    assert even.verdict() == "scores are even: uniform landmarks would do as well"
    rare = np.concatenate([0.01 * _rows("cloud", 1000), 5 * np.random.default_rng(0).normal(size=(10, 3))])
    uneven = leverage_scores(rare, bandwidth=1.0, ridge=1e-3, n_landmarks=300, refine=1, random_state=0)
    assert "rows carry 30% of the effective dimension" in uneven.verdict()
    blind = leverage_scores(_rows("cloud", 1000), bandwidth=0.3, ridge=1e-8, n_landmarks=10, random_state=0)
    assert "too small to tell" in blind.verdict()


def test_rows_of_weight_zero_do_not_change_what_is_said_of_the_others():
    X, weights = _rows("cloud", 400), np.repeat([1.0, 0.0], [100, 300])
    with_all = leverage_scores(X, bandwidth=1.5, ridge=0.5, n_landmarks=90, sample_weight=weights, random_state=0)
    others = leverage_scores(X[:100], bandwidth=1.5, ridge=0.5, n_landmarks=90, random_state=0)
    assert with_all.verdict() == others.verdict()
    assert with_all.theorem_4() == others.theorem_4()


def test_equal_scores_of_any_size_are_even():
    assert "even" in exact_bracket(np.full(1000, 0.01), 1.0, 1000.0).verdict()


@given(
    n=st.integers(2, 40),
    d=st.integers(1, 3),
    seed=st.integers(0, 10_000),
    log_ridge=st.floats(-8, 1),
    share=st.floats(0.05, 1.0),
    scale=st.floats(0.01, 100),
)
@settings(max_examples=50, deadline=None)
def test_the_bracket_holds_on_random_rows(n, d, seed, log_ridge, share, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, size=(n, d)) * scale
    X = X[rng.integers(0, n, n)] if seed % 3 == 0 else X
    ridge = 10.0**log_ridge
    scores = leverage_scores(X, bandwidth=1.0, ridge=ridge, n_landmarks=max(1, int(share * n)), random_state=seed)
    _check(scores, exact.kernel_matrix(X, Gaussian(1.0)), n * ridge)


GOOD = np.random.default_rng(0).normal(size=(20, 2))


@pytest.mark.parametrize(
    ("X", "options", "error", "words"),
    [
        (np.where(GOOD > 1, np.inf, GOOD), {}, DataError, "row .*column"),
        (GOOD, {"ridge": 0.0}, ParameterError, "ridge must be a positive finite number .* got 0.0"),
        (GOOD, {"ridge": -1.0}, ParameterError, "got -1.0"),
        (GOOD, {"ridge": "small"}, ParameterError, "got 'small'"),
        (GOOD, {"n_landmarks": 0}, ParameterError, "n_landmarks must be a positive integer, got 0"),
        (GOOD, {"n_landmarks": -3}, ParameterError, "got -3"),
        (GOOD, {"refine": -1}, ParameterError, "refine must be a positive integer, got -1"),
        (GOOD, {"method": "guess"}, ParameterError, "got 'guess'"),
        (GOOD, {"sample_weight": np.ones(3)}, DataError, "one row for each of the 20 rows"),
        (np.zeros((5, 2)), {"kernel": "linear"}, DataError, "the kernel is zero for every row with itself"),
        (GOOD, {"kernel": lambda A, B: np.ones((3, 3))}, DataError, r"must return a block of shape"),
        (GOOD, {"kernel": lambda A, B: A[:, :1] - B[:, :1].T + 5}, DataError, "must be symmetric"),
        (iter(GOOD), {}, DataTypeError, "list|array"),
        (GOOD[0], {}, DataError, "reshape"),
        (np.empty((0, 2)), {}, DataError, "at least one row"),
    ],
)
def test_invalid_input_is_refused_with_a_clear_error(X, options, error, words):
    with pytest.raises(error, match=words):
        leverage_scores(X, **({"ridge": 1e-3, "random_state": 0} | options))


@pytest.mark.parametrize("X", [np.ones((1, 2)), np.ones((7, 2))], ids=["one row", "equal rows"])
def test_one_row_and_equal_rows_can_be_scored(X):
    scores = leverage_scores(X, ridge=0.5, random_state=0)
    n = len(X)
    assert scores.lower == pytest.approx(np.full(n, 1 / (n + 0.5 * n)))
    assert scores.upper == pytest.approx(scores.lower, abs=1e-9)


def test_a_constant_kernel_can_be_scored():
    scores = leverage_scores(GOOD, kernel=lambda A, B: np.ones((len(A), len(B))), ridge=0.5, random_state=0)
    assert scores.lower == pytest.approx(np.full(20, 1 / 30))


def test_the_bracket_holds_for_rows_in_single_precision_and_at_ridges_near_rounding():
    X = _rows("cloud", 300).astype(np.float32)
    for ridge in (1e-6, 1e-10, 1e-13):
        scores = leverage_scores(X, bandwidth=2.0, ridge=ridge, n_landmarks=300, random_state=0)
        _check(scores, exact.kernel_matrix(X.astype(float), Gaussian(2.0)), 300 * ridge)


def test_exact_scores_of_a_linear_kernel_keep_small_directions():
    rng = np.random.default_rng(1)
    X = np.c_[1e6 + rng.normal(size=300), rng.normal(size=300)]
    scores = leverage_scores(X, kernel="linear", ridge=1e-6, method="exact")
    assert scores.effective_dimension.lower == pytest.approx(2.0, abs=1e-3)
    weights = rng.uniform(0.5, 2, 300)
    weighted = leverage_scores(X, kernel="linear", ridge=1e-6, method="exact", sample_weight=weights)
    assert weighted.effective_dimension.lower == pytest.approx(2.0, abs=1e-3)


def test_coherence_does_not_depend_on_the_unit_of_weights():
    X = _rows("outliers", 600)
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 600)
    one, other = (
        leverage_scores(X, bandwidth=1.5, ridge=1e-4, n_landmarks=200, sample_weight=w, random_state=0).coherence
        for w in (weights, weights / weights.sum())
    )
    assert one == pytest.approx(other, rel=1e-6)
    assert one.lower > 2


def test_equal_rows_score_as_one_row_of_their_weight():
    X = _rows("cloud", 200)
    twice = leverage_scores(np.repeat(X, 2, axis=0), bandwidth=1.5, ridge=1e-3, n_landmarks=60, random_state=0)
    heavy = leverage_scores(
        X, bandwidth=1.5, ridge=1e-3, n_landmarks=60, sample_weight=np.full(200, 2.0), random_state=0
    )
    assert twice.lower[::2] * 2 == pytest.approx(heavy.lower, abs=1e-8)


def test_theorem_4_does_not_apply_to_a_refined_pilot():
    X = _rows("cloud", 2000)
    refined = leverage_scores(X, bandwidth=1.5, ridge=0.5, n_landmarks=500, refine=1, random_state=0)
    assert "does not apply to a refined pilot" in refined.theorem_4()


def test_invalid_probabilities_are_refused():
    scores = leverage_scores(_rows("cloud"), bandwidth=1.5, ridge=1e-3, random_state=0)
    for wrong in (np.ones(400), np.full(400, np.nan), -np.ones(400) / 400):
        with pytest.raises(ParameterError, match="at least 0 and sum to one"):
            scores.sampling_quality(wrong)


def test_a_kernel_of_any_scale_has_the_same_scores():
    X = _rows("cloud")
    plain = leverage_scores(X, kernel=Gaussian(1.5), ridge=1e-3, n_landmarks=100, random_state=0)
    for factor in (1e-200, 1e-160, 1e150):
        scaled = leverage_scores(X, kernel=Gaussian(1.5) * factor, ridge=1e-3 * factor, n_landmarks=100, random_state=0)
        assert scaled.lower == pytest.approx(plain.lower, abs=1e-7)
        assert scaled.upper == pytest.approx(plain.upper, abs=1e-7)
