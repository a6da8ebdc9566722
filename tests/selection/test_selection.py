"""Properties of all landmark selections, and of each of them."""

import tracemalloc

import numpy as np
import pytest
import scipy.linalg

from ridgemark import NystromRidge, exact, open_rows
from ridgemark.errors import DataError, DataTypeError, ParameterError
from ridgemark.kernels import Gaussian, Linear, Polynomial
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.sampling import draw_distinct, draw_poisson
from ridgemark.selection import (
    Auto,
    Bless,
    Diagonal,
    Given,
    KMeans,
    Leverage,
    Problem,
    RankLeverage,
    Recursive,
    RPCholesky,
    Uniform,
    count_landmarks,
    make_selection,
)
from ridgemark.selection.count import most_work, work_limit
from ridgemark.selection.rpcholesky import _most_explaining
from tests.helpers import slowly

DRAWN = [
    Auto(),
    Uniform(),
    Diagonal(),
    Leverage(),
    Leverage(match_ridge=False, certain_rows=False),
    Leverage(n_pilot=40, refine=1),
    Recursive(),
    Bless(),
    RPCholesky(),
    RPCholesky(block=1),
    RPCholesky(oversampling=3),
    RankLeverage(),
]


def _problem(X, weights=None, ridge=1e-4, kernel=None, budget=None):
    passes = RowPasses(ArrayRows(X, weights=weights), memory_budget=budget)
    total = len(X) if weights is None else float(np.sum(weights))
    return Problem(passes, passes.distinct_rows(), Gaussian(1.0) if kernel is None else kernel, ridge * total)


def _rare(n=600, rare=12, seed=0):
    """A dense cloud and a few isolated rows far away."""
    rng = np.random.default_rng(seed)
    return np.concatenate([0.2 * rng.normal(size=(n - rare, 2)), 6 * rng.normal(size=(rare, 2)) + 10])


def _choose(selection, problem, p, seed=0):
    return selection.choose(problem, p, np.random.default_rng(seed))


@pytest.mark.parametrize("selection", DRAWN, ids=repr)
class TestEverySelection:
    def test_returns_the_requested_number_of_different_rows(self, selection):
        X = np.random.default_rng(0).normal(size=(500, 2))
        chosen = _choose(selection, _problem(X, kernel=Gaussian(0.3)), 50)
        assert len(chosen.indices) == len(set(chosen.indices.tolist())) == 50
        assert np.array_equal(chosen.points, X[chosen.indices])

    def test_never_takes_equal_rows_twice(self, selection):
        X = np.random.default_rng(0).normal(size=(60, 2))[np.random.default_rng(1).integers(0, 60, 500)]
        chosen = _choose(selection, _problem(X, kernel=Gaussian(0.3)), 40)
        assert len(np.unique(chosen.points, axis=0)) == len(chosen.points) == 40

    def test_never_takes_a_row_of_weight_zero(self, selection):
        X = _rare()
        weights = np.where(np.arange(600) % 3 == 0, 0.0, 1.0)
        chosen = _choose(selection, _problem(X, weights, kernel=Gaussian(0.3)), 50)
        assert (weights[chosen.indices] > 0).all()

    def test_depends_only_on_the_seed(self, selection):
        first, second = (_choose(selection, _problem(_rare()), 30, seed=4) for _ in range(2))
        assert np.array_equal(first.indices, second.indices)
        other = _choose(selection, _problem(_rare()), 30, seed=5)
        assert not np.array_equal(first.indices, other.indices)

    def test_works_in_the_estimator(self, selection):
        X = np.random.default_rng(0).normal(size=(600, 2))
        model = NystromRidge(bandwidth="median", selection=selection, n_landmarks=30, ridge=1e-4, random_state=0).fit(
            X, X[:, 0]
        )
        assert model.n_landmarks_ == 30
        assert model.score(X, X[:, 0]) > 0.9

    def test_asking_for_more_landmarks_than_rows_returns_all_rows(self, selection):
        X = np.random.default_rng(0).normal(size=(30, 2)) * 5
        chosen = _choose(selection, _problem(X, kernel=Gaussian(0.5)), 100)
        assert len(chosen.indices) == 30


@pytest.mark.parametrize(
    "selection", [Auto(), Leverage(), Recursive(), Bless(), RPCholesky(), RankLeverage(rank=12)], ids=repr
)
def test_informed_selections_find_rare_rows_that_uniform_misses(selection):
    X = _rare()
    rare = np.arange(588, 600)

    def found(sel):
        return np.mean([np.isin(rare, _choose(sel, _problem(X, ridge=1e-3), 30, s).indices).sum() for s in range(5)])

    assert found(selection) > 8
    assert found(Uniform()) < 3


@pytest.mark.parametrize("p", [300, 400, 560])
def test_recursive_selection_uses_scores_for_any_number_of_landmarks(p):
    X, rare = _rare(), np.arange(588, 600)
    found = [np.isin(rare, _choose(Recursive(), _problem(X, ridge=1e-3), p, s).indices).sum() for s in range(5)]
    assert min(found) == 12


def test_recursive_selection_returns_all_landmarks_where_scores_round_to_zero():
    X = np.random.default_rng(0).normal(size=(40, 1))
    assert len(_choose(Recursive(), _problem(X, ridge=1e-20, kernel=Gaussian(1e3)), 39).indices) == 39


def _residual_trace(X, kernel, points):
    W = kernel(points)
    values, vectors = np.linalg.eigh(W)
    keep = values > 1e-12 * values[-1]
    B = kernel(X, points) @ (vectors[:, keep] / np.sqrt(values[keep]))
    return 1 - (B**2).sum() / kernel.diagonal(X).sum()


@pytest.mark.parametrize("repeats", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_randomly_pivoted_cholesky_in_blocks_has_the_same_distribution(repeats):
    X = _rare(300, 10)
    residual = {
        block: [
            _residual_trace(X, Gaussian(1.0), _choose(RPCholesky(block), _problem(X), 15, seed).points)
            for seed in range(repeats)
        ]
        for block in (1, 8, 40)
    }
    spread = np.std(residual[1]) / np.sqrt(repeats)
    for block in (8, 40):
        assert np.mean(residual[block]) == pytest.approx(np.mean(residual[1]), abs=6 * spread)


PIVOTED = pytest.mark.parametrize("selection", [RPCholesky(), RPCholesky(oversampling=5)], ids=repr)


@PIVOTED
def test_randomly_pivoted_cholesky_works_without_the_n_by_p_factor(selection):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    roomy = _choose(selection, _problem(X, kernel=Gaussian(0.3)), 80)
    tight = _choose(selection, _problem(X, kernel=Gaussian(0.3), budget=400_000), 80)
    assert np.array_equal(roomy.indices, tight.indices)


@PIVOTED
def test_randomly_pivoted_cholesky_stops_where_the_landmarks_span_all_rows(selection):
    X = np.random.default_rng(0).normal(size=(200, 3))
    chosen = _choose(selection, _problem(X, kernel=Linear()), 50)
    assert len(chosen.indices) == 3


@pytest.mark.parametrize("selection", [RPCholesky(), RPCholesky(block=1), RPCholesky(oversampling=5), Auto()], ids=repr)
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Polynomial(2)], ids=repr)
def test_the_features_that_pivots_leave_are_those_of_their_factor(selection, kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    X[450:] = X[:50]
    chosen = _choose(selection, _problem(X, rng.integers(0, 3, 500).astype(float), kernel=kernel), 12)
    pivots = chosen.pivots
    factor = nystrom_factor(kernel, chosen.points, chosen.indices, pivots=(pivots.order, pivots.triangle))
    assert sorted(factor.kept) == list(range(12))
    features = factor.features(X)
    np.testing.assert_allclose(pivots.features, features, rtol=1e-7, atol=1e-7 * features.max())
    usual = nystrom_factor(kernel, chosen.points, chosen.indices).features(X)
    assert np.abs(pivots.features @ pivots.features.T - usual @ usual.T).max() < 1e-7 * usual.max() ** 2


def test_a_factor_of_pivots_is_left_out_where_it_is_not_kept_or_mostly_rounding():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    assert _choose(RPCholesky(), _problem(X, kernel=Gaussian(0.3)), 80).pivots is not None
    assert _choose(RPCholesky(), _problem(X, kernel=Gaussian(0.3), budget=400_000), 80).pivots is None
    tiny = np.where(np.arange(3000)[:, None] > 9, [1.0, 0.0], [0.0, 1e-9]) * X
    assert _choose(RPCholesky(), _problem(tiny, kernel=Linear()), 2).pivots is None
    more = _choose(Auto(), _problem(X, kernel=Linear()), 9)  # two rows explain all, and others are added
    assert (len(more.indices), more.pivots) == (9, None)


@pytest.mark.parametrize("design", ["rare", "high dimension"])
def test_oversampling_leaves_a_smaller_residual(design):
    X = _rare() if design == "rare" else np.random.default_rng(0).standard_t(4, size=(600, 8))
    kernel, p = (Gaussian(1.0), 30) if design == "rare" else (Gaussian(4.0), 60)
    plain, more = (
        np.mean(
            [_residual_trace(X, kernel, _choose(one, _problem(X, kernel=kernel), p, seed).points) for seed in range(6)]
        )
        for one in (RPCholesky(), RPCholesky(oversampling=5))
    )
    assert more < 0.93 * plain


class TestMostExplaining:
    """The choice among proposals, against its definition with the residual kernel reduced in full at every step."""

    def _overlap(self, q=60):
        X = np.random.default_rng(3).normal(size=(q, 2)) * np.linspace(0.5, 3, q)[:, None]
        return np.linspace(0.1, 7, q)[:, None] * Gaussian(0.8)(X, X) * np.linspace(0.1, 7, q)

    def test_it_takes_the_largest_decrease_of_the_estimated_trace(self):
        overlap, counts = self._overlap(), 1 + np.arange(60) % 3
        residual, lengths, expected = overlap.copy(), np.diagonal(overlap), []
        for _ in range(12):
            share = np.diagonal(residual) / lengths
            gains = (residual**2 @ (counts / lengths)) / np.maximum(np.diagonal(residual), 1e-9)
            expected.append(int(np.argmax(np.where(share > 0.1, gains, 0))))
            column = residual[:, expected[-1]]
            residual = residual - np.outer(column, column) / column[expected[-1]]
        kept, triangle = _most_explaining(overlap, counts, 12)
        assert kept == expected
        assert triangle == pytest.approx(np.linalg.cholesky(overlap[np.ix_(kept, kept)]))

    def test_it_ends_where_little_of_every_proposal_is_left(self):
        overlap = self._overlap()
        kept, triangle = _most_explaining(overlap, np.ones(60, dtype=int), 60)
        others = scipy.linalg.solve_triangular(triangle, overlap[kept], lower=True)
        share = 1 - (others**2).sum(axis=0) / np.diagonal(overlap)
        assert len(kept) < 60
        assert share.max() <= 0.1

    def test_proposals_without_a_residual_are_left_out(self):
        assert _most_explaining(np.diag([0.0, 2.0, -1e-20]), np.ones(3, dtype=int), 3)[0] == [1]
        assert _most_explaining(np.zeros((2, 2)), np.ones(2, dtype=int), 2)[0] == []


def test_draws_with_replacement_keep_their_weights():
    chosen = _choose(Leverage(replace=True), _problem(_rare()), 60)
    assert chosen.draw.n_draws == 60 == chosen.draw.counts.sum()
    assert len(chosen.indices) < 60
    assert chosen.draw.weights.shape == chosen.indices.shape


@pytest.mark.parametrize("paper", [False, True])
def test_leverage_draws_by_upper_scores(paper):
    problem = _problem(_rare())
    chosen = _choose(Leverage(match_ridge=not paper, certain_rows=not paper), problem, 30)
    expected = problem.distinct.totals(chosen.scores.upper)
    assert chosen.draw.probabilities == pytest.approx(expected / expected.sum())


@pytest.mark.parametrize("selection", DRAWN, ids=repr)
def test_equal_rows_are_drawn_as_one_row_of_their_weight(selection):
    X = np.random.default_rng(0).normal(size=(300, 2))
    weights = 1.0 + np.arange(300) % 3
    repeated = np.repeat(np.arange(300), weights.astype(int))
    weighted = _choose(selection, _problem(X, weights), 40)
    rows = _choose(selection, _problem(X[repeated]), 40)
    assert set(repeated[rows.indices]) == set(weighted.indices)


class TestLeverage:
    def test_the_papers_draw_is_one_row_after_the_other_at_the_papers_ridge(self):
        problem, rng = _problem(_rare()), np.random.default_rng(3)
        chosen = Leverage(match_ridge=False, certain_rows=False).choose(problem, 30, rng)
        again = np.random.default_rng(3)
        scores = _problem(_rare()).scores(500, 0, again)
        expected = draw_distinct(problem.distinct.totals(scores.upper), 30, again)
        assert np.array_equal(chosen.indices, problem.distinct.indices[expected.indices])
        assert chosen.scores.scaled_ridge == problem.sketch_ridge

    @pytest.mark.parametrize("ridge", [1e-9, 1e-5])
    @pytest.mark.parametrize("p", [20, 60, 150])
    def test_matched_ridge_gives_half_the_landmarks_as_dimension(self, p, ridge):
        problem = _problem(_rare(), ridge=ridge, kernel=Gaussian(0.5))
        chosen = _choose(Leverage(n_pilot=600), problem, p)  # all rows in the pilot: its spectrum is that of K
        K = exact.kernel_matrix(_rare(), Gaussian(0.5))
        gamma = chosen.scores.scaled_ridge
        dimension = exact.effective_dimension(K, gamma)
        assert gamma >= problem.sketch_ridge
        assert dimension == pytest.approx(p / 2, rel=0.01) or (gamma == problem.sketch_ridge and dimension < p / 2)

    def test_matched_ridge_never_exceeds_the_wanted_dimension_with_a_small_pilot(self):
        X = np.random.default_rng(0).normal(size=(800, 3))
        K = exact.kernel_matrix(X, Gaussian(1.0))
        for p in (50, 100, 300):
            chosen = _choose(Leverage(n_pilot=60), _problem(X, ridge=1e-9), p)
            assert exact.effective_dimension(K, chosen.scores.scaled_ridge) <= p / 2 * 1.001

    def test_a_ridge_above_the_matched_one_is_kept(self):
        problem = _problem(_rare(), ridge=1.0)
        assert _choose(Leverage(), problem, 50).scores.scaled_ridge == problem.sketch_ridge

    @pytest.mark.parametrize("seeds", [3, *slowly(20)])
    def test_certain_rows_are_always_taken(self, seeds):
        X, rare = _rare(), np.arange(588, 600)
        for p in (30, 60):
            for seed in range(seeds):
                assert np.isin(rare, _choose(Leverage(), _problem(X, ridge=1e-3), p, seed).indices).all()

    def test_the_pilot_grows_with_the_number_of_landmarks(self):
        X = np.random.default_rng(0).normal(size=(1600, 2))
        assert _choose(Leverage(), _problem(X), 100).scores.n_draws == 500
        assert _choose(Leverage(), _problem(X), 1500).scores.n_draws == 750
        assert _choose(Leverage(n_pilot=40), _problem(X), 1500).scores.n_draws == 40

    @pytest.mark.parametrize("repeats", [1, *slowly(40)])
    def test_the_stated_guarantee_holds(self, repeats):
        """With c at least (28/3) log(2n/rho) the largest eigenvalue of K - L is at most 2 n gamma."""
        rng, n, rho, scaled_ridge = np.random.default_rng(1), 960, 0.05, 0.2
        X = np.concatenate([0.1 * rng.normal(size=(900, 1)), np.arange(20.0, 620.0, 10.0)[:, None]])  # 60 alone
        K = exact.kernel_matrix(X, Gaussian(1.0))
        spectrum, missed = exact.spectrum(K), 0
        scores = exact.leverage_scores(spectrum, scaled_ridge)
        for seed in range(repeats):
            draw = draw_poisson(scores, 660, np.random.default_rng(seed))
            free = draw.inclusion < 1.0
            assert free.sum() > 100
            assert (draw.inclusion[free] / scores[free] >= 28 / 3 * np.log(2 * n / rho)).all()
            error = K - exact.nystrom_approximation(spectrum, np.eye(n)[:, draw.indices])
            missed += np.linalg.eigvalsh(error)[-1] > 2 * scaled_ridge
        assert missed <= rho * repeats


class TestAuto:
    def test_it_is_randomly_pivoted_cholesky_with_oversampling_where_the_factor_fits(self):
        named = _choose(RPCholesky(oversampling=5), _problem(_rare()), 30)
        auto = _choose(Auto(), _problem(_rare()), 30)
        assert np.array_equal(auto.indices, named.indices)
        assert auto.scores is None

    def test_it_fills_up_where_few_landmarks_explain_all_rows(self):
        X = np.random.default_rng(0).normal(size=(200, 3))
        chosen = _choose(Auto(), _problem(X, kernel=Linear()), 50)
        assert len(set(chosen.indices.tolist())) == 50

    def test_it_is_leverage_where_the_factor_does_not_fit(self):
        budget = 8 * 600 * (2 + 30)  # one column short
        auto, named = (_choose(selection, _problem(_rare(), budget=budget), 30) for selection in (Auto(), Leverage()))
        assert np.array_equal(auto.indices, named.indices)
        assert auto.scores is not None
        assert _choose(Auto(), _problem(_rare(), budget=budget + 8 * 600), 30).scores is None

    @pytest.mark.parametrize(
        ("n", "budget"),
        [(4000, 1_500_000), *(pytest.param(20_000, one, marks=pytest.mark.slow) for one in (3_000_000, 2**25))],
    )
    def test_it_keeps_within_memory(self, n, budget):
        X = np.random.default_rng(0).normal(size=(n, 2))
        problem = _problem(X, kernel=Gaussian(0.3), budget=budget)
        tracemalloc.start()
        try:
            _choose(Auto(), problem, 100)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        per_row = 8 * 30 * len(X)  # scores, probabilities, weights: some numbers for every row
        pilot = 8 * 10 * 500**2
        assert peak < 2 * budget + per_row + pilot

    def test_rows_of_a_file_are_read_in_one_pass(self, tmp_path):
        X = _rare()
        np.save(tmp_path / "rows.npy", X)
        passes = RowPasses(open_rows(tmp_path / "rows.npy"))
        problem = Problem(passes, passes.distinct_rows(), Gaussian(1.0), 600 * 1e-4)
        before = passes.n_passes
        chosen = _choose(Auto(), problem, 60)
        assert passes.n_passes == before + 1
        assert passes.n_kernel_evaluations >= 600 * 60
        assert np.array_equal(chosen.indices, _choose(Auto(), _problem(X), 60).indices)

    @pytest.mark.filterwarnings("ignore::ridgemark.errors.ColumnWarning")  # the target is constant
    def test_precomputed_kernels_of_many_rows_take_leverage(self):
        K = np.eye(300)
        model = NystromRidge("precomputed", n_landmarks=20, ridge=1e-3, random_state=0)
        assert not hasattr(model.fit(K, np.ones(300)), "leverage_scores_")
        small = model.set_params(memory_budget=8 * 300 * 300).fit(K, np.ones(300))
        assert small.leverage_scores_ is not None


def _even(rng):
    return rng.normal(size=(500, 4))


def _regimes(rng):
    return 3 * rng.normal(size=(6, 3))[np.minimum(rng.geometric(0.5, 500), 6) - 1] + 0.5 * rng.normal(size=(500, 3))


def _heavy_tails(rng):
    return rng.standard_t(2, size=(500, 2))


@pytest.mark.parametrize("design", [_regimes, *slowly(_even, _heavy_tails)])
@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seeds", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_auto_and_leverage_are_close_to_the_best_selection(design, times, seeds):
    X = design(np.random.default_rng(0))
    kernel, ridge, n = Gaussian(1.5), 1e-4, 500
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * np.random.default_rng(1).normal(size=n)
    K = exact.kernel_matrix(X, kernel)
    truth = exact.kernel_ridge(K, y, n * ridge).fitted
    spectrum = exact.spectrum(K)
    p = round(times * exact.effective_dimension(spectrum, n * ridge))

    def distance(selection):
        found = []
        for seed in range(seeds):
            chosen = _choose(selection, _problem(X, ridge=ridge, kernel=kernel), p, seed)
            L = exact.nystrom_approximation(spectrum, np.eye(n)[:, chosen.indices])
            found.append(np.sqrt(np.mean((exact.kernel_ridge(L, y, n * ridge).fitted - truth) ** 2)))
        return np.median(found)

    best = min(distance(selection) for selection in (Uniform(), Recursive(), Bless(), RankLeverage()))
    assert distance(Auto()) <= 1.5 * best
    assert distance(Leverage()) <= 2.0 * best


def test_diagonal_draws_rows_with_large_kernel_diagonal():
    X = np.concatenate([0.01 * np.ones((500, 1)) * np.linspace(1, 2, 500)[:, None], np.linspace(5, 6, 20)[:, None]])
    chosen = _choose(Diagonal(), _problem(X, kernel=Linear()), 15)
    assert (chosen.indices >= 500).all()


def test_a_draw_does_not_depend_on_the_order_of_rows():
    X = _rare()
    shuffled = np.random.default_rng(1).permutation(600)
    for selection in (Uniform(), Diagonal(), Leverage()):
        one = _choose(selection, _problem(X), 40)
        other = _choose(selection, _problem(X[shuffled]), 40)
        assert set(shuffled[other.indices]) == set(one.indices), selection


def test_a_selection_from_a_file_equals_that_from_the_array(tmp_path):
    X = _rare()
    np.save(tmp_path / "rows.npy", X)
    for selection in DRAWN:
        passes = RowPasses(open_rows(tmp_path / "rows.npy"))
        from_file = Problem(passes, passes.distinct_rows(), Gaussian(1.0), 600 * 1e-4)
        assert np.array_equal(_choose(selection, from_file, 25).indices, _choose(selection, _problem(X), 25).indices)


def test_k_means_centres_are_not_rows():
    X = _rare()
    chosen = _choose(KMeans(), _problem(X), 20)
    assert chosen.indices is None
    assert chosen.points.shape == (20, 2)
    model = NystromRidge(bandwidth="median", selection="kmeans", ridge=1e-3, n_landmarks=20, random_state=0).fit(
        X, X[:, 0]
    )
    assert model.landmark_indices_ is None


class TestGiven:
    def test_points_are_used_as_given_and_repeats_once(self):
        X = _rare()
        points = np.concatenate([X[:10], X[:10], [[3.0, 3.0]]])
        model = NystromRidge(bandwidth="median", selection=points, ridge=1e-3).fit(X, X[:, 0])
        assert model.n_landmarks_ == 11
        assert model.landmark_indices_ is None

    def test_indices_are_row_numbers_and_repeats_are_used_once(self):
        X = _rare()
        model = NystromRidge(bandwidth="median", selection=Given(indices=[5, 5, 7, 9]), ridge=1e-3).fit(X, X[:, 0])
        assert model.landmark_indices_.tolist() == [5, 7, 9]

    @pytest.mark.parametrize(
        ("selection", "words"),
        [
            (Given(), "either points or indices"),
            (Given(points=np.ones((2, 2)), indices=[1]), "not both"),
            (Given(points=np.ones((2, 5))), r"2 features, got shape \(2, 5\)"),
            (Given(indices=[10_000]), "no row 10000"),
        ],
    )
    def test_invalid_landmarks_are_refused(self, selection, words):
        with pytest.raises(ParameterError, match=words):
            NystromRidge(bandwidth="median", selection=selection).fit(_rare(), np.ones(600))


class TestCount:
    def test_a_number_is_taken_as_given(self):
        count = count_landmarks(77, _problem(_rare()), np.random.default_rng(0))
        assert (count.n_landmarks, count.rule) == (77, "given")

    def test_few_rows_are_all_landmarks(self):
        count = count_landmarks("auto", _problem(_rare(400)), np.random.default_rng(0))
        assert (count.n_landmarks, count.rule) == (400, "all 400 distinct rows")

    def test_the_effective_dimension_decides_between_the_floor_and_the_caps(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(3000, 2))
        smooth = count_landmarks("auto", _problem(X, ridge=1e-1, kernel=Gaussian(3.0)), rng)
        assert (smooth.n_landmarks, smooth.rule) == (100, "at least 100")
        middle = count_landmarks("auto", _problem(X, ridge=1e-4, kernel=Gaussian(0.7)), rng)
        assert middle.rule == "2 per effective dimension"
        assert 2 * middle.effective_dimension.lower <= middle.n_landmarks <= 2 * middle.effective_dimension.upper + 1
        half = count_landmarks("auto", _problem(X, ridge=1e-4, kernel=Gaussian(0.7)), rng, per_dimension=1.0)
        assert half.rule == "1 per effective dimension"
        rough = count_landmarks("auto", _problem(X, ridge=1e-8, kernel=Gaussian(0.1)), rng)
        assert rough.n_landmarks > 1500
        assert rough.theorem_3 > 3000
        many = rng.normal(size=(8000, 2))
        part = count_landmarks("auto", _problem(many, ridge=1e-8, kernel=Gaussian(0.02)), rng, work=1 / 16)
        assert part.n_landmarks == work_limit(8000, 2.75e11 / 16)
        assert part.rule == "n p^2 + 4 p^3 <= 1.72e10"

    @pytest.mark.parametrize("n", [2000, 8000, 60_000, 300_000])
    def test_the_work_of_a_fit_is_a_cap(self, n):
        p = work_limit(n)
        assert n * p**2 + 4 * p**3 <= 2.75e11
        assert p == n or n * (p + 1) ** 2 + 4 * (p + 1) ** 3 > 2.75e11

    @pytest.mark.parametrize(("saved", "factor"), [(None, 1.0), (0.05, 1.0), (0.08, 1.6), (0.3, 2.0), (0.0, 0.5)])
    def test_the_work_is_in_proportion_to_what_twice_the_landmarks_save(self, saved, factor):
        assert most_work(saved) == pytest.approx(factor * 2.75e11)

    def test_as_many_landmarks_as_the_pilot_has_are_always_allowed(self):
        assert work_limit(10**8) == 500

    def test_the_memory_budget_is_a_cap(self):
        X = np.random.default_rng(0).normal(size=(2500, 2))
        problem = _problem(X, ridge=1e-8, kernel=Gaussian(0.1), budget=2_000_000)
        count = count_landmarks("auto", problem, np.random.default_rng(0))
        assert count.rule == "memory budget"
        assert 8 * count.n_landmarks**2 < 2_000_000

    def test_the_model_records_which_rule_decided(self):
        X = np.random.default_rng(0).normal(size=(2000, 2))
        model = NystromRidge(bandwidth="median", ridge=1e-7, random_state=0).fit(X, X[:, 0])
        assert model.landmark_count_.rule == "2 per effective dimension"
        assert model.n_landmarks_ == model.landmark_count_.n_landmarks


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ("best", "one of auto, uniform, diagonal, leverage, recursive, bless, rpcholesky, kmeans, rank_leverage"),
        (Leverage(n_pilot=0), "n_pilot must be a positive integer, got 0"),
        (Leverage(refine=-2), "refine must be a positive integer, got -2"),
        (RPCholesky(block=0), "block must be a positive integer, got 0"),
        (RPCholesky(oversampling=0), "oversampling must be a positive integer, got 0"),
        (RankLeverage(rank=2.5), "rank must be a positive integer, got 2.5"),
        (KMeans(n_sample=None), "n_sample must be a positive integer, got None"),
        (Leverage(match_ridge="yes"), "match_ridge must be True or False, got 'yes'"),
        (Leverage(certain_rows=1), "certain_rows must be True or False, got 1"),
        (Bless(factor=1.0), "factor must be a number of at least 1.1, got 1.0"),
        (Bless(factor=1 + 1e-15), "factor must be a number of at least 1.1, got 1.000"),
        (Bless(oversampling=0.0), "oversampling must be a positive number, got 0.0"),
    ],
    ids=repr,
)
def test_an_invalid_option_is_refused_by_name(selection, words):
    with pytest.raises(ParameterError, match=words):
        _choose(make_selection(selection), _problem(_rare()), 20)


def test_a_kernel_that_is_zero_everywhere_is_refused():
    with pytest.raises(DataError, match="no row can be a landmark"):
        _choose(Diagonal(), _problem(np.zeros((10, 2)), kernel=Linear()), 3)


def test_k_means_refuses_sparse_rows():
    from scipy import sparse

    X = sparse.random(100, 5, density=0.3, format="csr", random_state=0)
    with pytest.raises(DataTypeError, match="does not accept sparse rows"):
        NystromRidge(bandwidth="median", selection="kmeans", n_landmarks=5).fit(X, np.ones(100))


def test_leverage_landmarks_are_closer_to_exact_than_uniform_ones_on_uneven_rows():
    X = _rare(800, 40)
    y = np.sin(X[:, 0])
    K = exact.kernel_matrix(X, Gaussian(1.0))
    truth = exact.kernel_ridge(K, y, 800 * 1e-4, fit_intercept=True).fitted

    def distance(selection):
        fits = [
            NystromRidge(bandwidth=1.0, ridge=1e-4, n_landmarks=60, selection=selection, random_state=s)
            .fit(X, y)
            .predict(X)
            for s in range(5)
        ]
        return np.median([np.sqrt(np.mean((fit - truth) ** 2)) for fit in fits])

    assert distance("leverage") < 0.4 * distance("uniform")


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1.0), Gaussian(1.0) + Linear()], ids=repr)
@PIVOTED
def test_randomly_pivoted_cholesky_ends_on_single_precision_rows_without_repeats(kernel, selection):
    X = (np.random.default_rng(0).normal(size=(300, 2)) * 20).astype(np.float32)
    chosen = _choose(selection, _problem(X, kernel=kernel), 100)
    assert len(np.unique(chosen.points, axis=0)) == len(chosen.points)


@PIVOTED
def test_randomly_pivoted_cholesky_does_not_depend_on_the_order_of_rows(selection):
    X = _rare()
    shuffled = np.random.default_rng(1).permutation(600)
    one, other = _choose(selection, _problem(X), 40), _choose(selection, _problem(X[shuffled]), 40)
    assert set(shuffled[other.indices]) == set(one.indices)
