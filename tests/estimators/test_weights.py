"""What weights mean: a factor on all of them changes nothing, and weight 2 is a row written twice."""

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

from ridgemark import ExactKernelRidge, NystromRidge
from ridgemark.rows.base import unit_of_weights
from ridgemark.rows.distinct import KEPT_HASHES, count_distinct, merge_smallest
from ridgemark.tuning import Tuner
from tests.helpers import real_data, slowly, standardised

FACTORS = [1e-3, 7.0, 1e3]
POWERS = [2.0**-10, 2.0]


def _data(n=400, seed=0, targets=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[n - n // 10 :] = X[: n // 10]
    Y = np.sin(2 * X[:, :targets]) + X[:, 1:2] + 0.3 * rng.normal(size=(n, targets))
    return X, Y[:, 0] if targets == 1 else Y, rng.uniform(0.2, 2.0, n) * (np.arange(n) % 7 > 0)


def _answers(X, y, w, **options):
    """Everything a fit says that may not depend on the unit of the weights."""
    model = NystromRidge(random_state=0, **options).fit(X, y, w)
    if not hasattr(model, "loo_residuals_"):
        model.calibrate(X, y, w)
    new = _data(50, seed=1)[0]
    diagnosis = model.diagnose()
    return [
        np.asarray(model.ridge_),
        model.landmarks_,
        *model.predict(new, return_std=True),
        model.predict_interval(new),
        model.loo_residuals_,
        diagnosis.studentised,
        diagnosis.leverage,
        diagnosis.noise,
        np.asarray(model.certificate_.bound),
        np.asarray(model.effective_dimension_),
    ]


@pytest.mark.parametrize(
    ("ridge", "selection"),
    [("loo", "leverage"), pytest.param("gcv", "leverage", marks=pytest.mark.slow), (1e-3, "rpcholesky")],
    ids=str,
)
def test_a_power_of_two_on_all_weights_changes_no_bit(ridge, selection):
    X, y, w = _data(500)
    options = {"bandwidth": "median", "ridge": ridge, "selection": selection, "n_landmarks": 60}
    for weights in (w, np.ones(500)):
        expected = _answers(X, y, weights, **options)
        for factor in POWERS:
            for one, other in zip(_answers(X, y, factor * weights, **options), expected, strict=True):
                assert np.array_equal(one, other)


def _check_close(found, expected, tolerance):
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        # Diagnoses and widths of intervals come from the pass for leave-one-out, where lengths of features are known to
        # 1e-6 only.
        allowed = {4: 1e-6, 6: 1e-5, 7: 1e-5}.get(k, tolerance)
        assert one == pytest.approx(other, rel=allowed, abs=allowed * abs(other).max())


@pytest.mark.parametrize("ridge", ["loo", pytest.param("gcv", marks=pytest.mark.slow), 1e-6], ids=str)
@pytest.mark.parametrize("intercept", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_factor_on_all_weights_changes_nothing(ridge, intercept):
    X, Y, w = _data(250, targets=2)
    options = {"bandwidth": "median", "ridge": ridge, "fit_intercept": intercept}
    expected = _answers(X, Y, w, **options)
    for factor in FACTORS:
        found = _answers(X, Y, factor * w, **options)
        _check_close(found, expected, 1e-9)


def test_equal_weights_are_no_weights():
    X, y, _ = _data()
    few = Tuner(rows=200, judging_rows=80, landmarks=40, evaluations=4)
    for one, other in zip(
        _answers(X, y, np.full(400, 4.0), bandwidth=few), _answers(X, y, None, bandwidth=few), strict=True
    ):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("tiny", [1e-300, 1e300])
def test_weights_of_any_size_give_finite_answers(tiny):
    X, y, w = _data()
    found, expected = (_answers(X, y, weights, bandwidth="median") for weights in (tiny * w, w))
    _check_close(found, expected, 1e-6)


@pytest.mark.parametrize("intercept", [False, True])
def test_weight_two_is_a_repeated_row(intercept):
    """In landmarks, ridge, fit, residuals and intervals of one width."""
    X, Y, _ = _data(600, targets=2)
    counts = np.random.default_rng(5).integers(0, 4, 600)
    options = {"bandwidth": "median", "fit_intercept": intercept, "n_landmarks": 90, "random_state": 0}
    weighted = NystromRidge(**options).fit(X, Y, counts)
    row = np.repeat(np.arange(600), counts)
    repeated = NystromRidge(**options).fit(X[row], Y[row])
    assert repeated.ridge_ == weighted.ridge_
    assert np.array_equal(repeated.landmarks_, weighted.landmarks_)
    new = _data(50, seed=1)[0]
    assert repeated.predict(new) == pytest.approx(weighted.predict(new), abs=1e-9)
    assert repeated.loo_residuals_ == pytest.approx(weighted.loo_residuals_[row], abs=1e-9)
    ends, others = (model.predict_interval(new, adaptive=False) for model in (repeated, weighted))
    assert ends == pytest.approx(others, abs=1e-9)
    assert repeated.scaled_ridge_ == pytest.approx(weighted.scaled_ridge_)


def test_rows_of_weight_zero_change_no_interval():
    X, y, _ = _data(300)
    options = {"bandwidth": "median", "n_landmarks": 60, "selection": X[:60]}
    alone = NystromRidge(**options).fit(X, y)
    more = NystromRidge(**options).fit(np.r_[X, X[:90] + 1.0], np.r_[y, y[:90]], np.repeat([1.0, 0.0], [300, 90]))
    assert more.predict_interval(X) == pytest.approx(alone.predict_interval(X), abs=1e-7)


def test_the_number_of_landmarks_counts_distinct_rows():
    X, y, _ = _data(800)
    weighted = NystromRidge(bandwidth="median", random_state=0).fit(X, y, np.full(800, 2.0))
    repeated = NystromRidge(bandwidth="median", random_state=0).fit(np.r_[X, X], np.r_[y, y])
    assert (
        repeated.n_landmarks_
        == weighted.n_landmarks_
        == NystromRidge(bandwidth="median", random_state=0).fit(X, y).n_landmarks_
    )
    assert repeated.ridge_ == weighted.ridge_


@pytest.mark.parametrize("intercept", [False, True])
def test_a_repeated_row_is_another_measurement_and_a_weight_is_not(intercept):
    """All rows twice against all weights twice: standard deviations are `sqrt((N - nu)/(2N - nu))` of the others."""
    X, y, _ = _data(300)
    options = {"bandwidth": 1.5, "selection": X[:60], "ridge": 1e-3, "fit_intercept": intercept}
    weighted = NystromRidge(**options).fit(X, y, np.full(300, 2.0))
    repeated = NystromRidge(**options).fit(np.r_[X, X], np.r_[y, y])
    spectrum = weighted._model.sums.solver.spectrum
    shrunk = spectrum / (spectrum + weighted._model.sums.scaled_ridge[0])
    nu = (2 * shrunk - shrunk**2).sum() + intercept
    new = _data(50, seed=1)[0]
    one, other = (model.predict(new, return_std=True)[1] for model in (repeated, weighted))
    assert one / other == pytest.approx(np.sqrt((300 - nu) / (600 - nu)), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_standard_deviation_with_weights_is_the_formula(weighted):
    X, y, w = _data()
    weights = w if weighted else np.full(400, 5.0)
    model = NystromRidge(bandwidth=1.0, ridge=1e-3, selection=X[:40]).fit(X, y, weights)
    new = _data(30, seed=1)[0]
    A, a = (np.c_[model._model.sums.factor.features(rows), np.ones(len(rows))] for rows in (X, new))
    penalty = np.diag(np.r_[np.full(A.shape[1] - 1, model.scaled_ridge_), 0.0])
    inverse = np.linalg.inv(A.T @ (weights[:, None] * A) + penalty)
    hat = A @ inverse @ (weights[:, None] * A).T
    nu = 2 * np.trace(hat) - np.trace(hat @ hat)
    s2 = weights @ (y - model.predict(X)) ** 2 / (np.count_nonzero(weights) - nu)
    seen = (a[:, :-1] ** 2).sum(axis=1)
    spread = (1 - seen) / model.scaled_ridge_ + np.einsum("ij,jk,ik->i", a, inverse, a)
    assert model.predict(new, return_std=True)[1] == pytest.approx(np.sqrt(s2 * spread), rel=1e-6)
    mean_noise = np.sqrt(s2 * np.count_nonzero(weights) / weights.sum())
    assert model.calibrate(X, y, weights).diagnose().noise == pytest.approx([mean_noise])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", [0, *slowly(1, 2, 3, 4)])
def test_leave_one_out_with_weights_chooses_as_scikit_learn(intercept, seed):
    """Its leave-one-out drops a weighted row whole, and so does this one; alpha is lambda times the sum of weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 15))
    y = X @ rng.normal(size=15) + 3.0 + 4.0 * rng.normal(size=40)
    w = rng.integers(1, 6, 40).astype(float) if seed % 2 else rng.uniform(0.1, 3.0, 40)
    alphas = np.logspace(-3, 4, 30)
    peer = RidgeCV(alphas, fit_intercept=intercept).fit(X, y, w)
    model = NystromRidge("linear", ridge=alphas / w.sum(), n_landmarks=40, fit_intercept=intercept).fit(X, y, w)
    assert model.scaled_ridge_ == pytest.approx(peer.alpha_)
    assert model.predict(X) == pytest.approx(peer.predict(X), abs=1e-8)


@pytest.mark.parametrize("units", [(1.0, 1000.0, None), (None, 1e-3, 8.0)])
def test_batches_in_different_weights_add_up(units):
    """The unit is that of the first batch; a batch without weights has weight 1 in each row."""
    X, y, _ = _data(600)
    w = np.concatenate([np.full(200, 1.0 if unit is None else unit) for unit in units])
    options = {"bandwidth": 1.5, "selection": X[:60], "ridge": 1e-4}
    batches = NystromRidge(**options)
    for k, unit in enumerate(units):
        part = slice(200 * k, 200 * (k + 1))
        batches.partial_fit(X[part], y[part], None if unit is None else w[part])
    whole = NystromRidge(**options).fit(X, y, w)
    for one, other in zip(batches.predict(X, return_std=True), whole.predict(X, return_std=True), strict=True):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-9)
    assert batches.scaled_ridge_ == pytest.approx(whole.scaled_ridge_) == pytest.approx(1e-4 * w.sum())
    assert batches.certify(X, y, sample_weight=w).bound == pytest.approx(
        whole.certify(X, y, sample_weight=w).bound, rel=1e-6
    )
    one, other = (model.calibrate(X, y, w).predict_interval(X) for model in (batches, whole))
    assert one == pytest.approx(other, abs=1e-8)


@pytest.mark.parametrize("ridge", ["loo", "gcv"])
@pytest.mark.parametrize("how", ["weights", "one batch", "two batches"])
def test_rows_given_twice_choose_the_same_ridge(how, ridge):
    X, y, _ = _data()
    options = {"ridge": ridge, "bandwidth": 1.5, "selection": X[:200]}
    expected = NystromRidge(**options).fit(X, y).ridge_
    model = NystromRidge(**options)
    if how == "weights":
        model.partial_fit(X, y, np.full(400, 2.0))
    elif how == "one batch":
        model.partial_fit(np.r_[X, X], np.r_[y, y])
    else:
        model.partial_fit(X, y).partial_fit(X, y)
    assert model.ridge_ == expected


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")
@pytest.mark.parametrize("name", ["ocean-temp", *slowly("gas-batch2", "electricity", "cal-housing", "protein")])
def test_cross_validation_chooses_no_far_worse_ridge_than_leave_one_out(name):
    """All of few rows as landmarks, where the plain criterion often takes the smallest ridge."""
    data = real_data(name)
    ratios = []
    for seed in range(8):
        rows = np.random.default_rng(seed).permutation(len(data["X"]))[:1080]
        X, y = standardised(data["X"][rows].astype(float)), data["y"][rows].astype(float)
        errors = []
        for ridge in ("gcv", "loo"):
            model = NystromRidge(bandwidth="median", ridge=ridge, random_state=0).fit(X[:80], y[:80])
            errors.append(np.sqrt(np.mean((y[80:] - model.predict(X[80:])) ** 2)))
        ratios.append(errors[0] / errors[1])
    assert max(ratios) < 2.0
    assert np.mean(ratios) < 1.2


@pytest.mark.parametrize("name", ["made up", *slowly("protein", "cal-housing")])
def test_doubled_weights_keep_ridge_error_and_coverage(name):
    if name == "made up":
        X, y, _ = _data(2500)
    else:
        data = real_data(name)
        rows = np.random.default_rng(0).permutation(len(data["X"]))[:2500]
        X, y = standardised(data["X"][rows].astype(float)), data["y"][rows].astype(float)
    plain = NystromRidge(bandwidth="median", n_landmarks=200, random_state=0).fit(X[:1000], y[:1000])
    doubled = NystromRidge(bandwidth="median", n_landmarks=200, random_state=0).fit(
        X[:1000], y[:1000], np.full(1000, 2.0)
    )
    assert doubled.ridge_ == plain.ridge_
    assert doubled.predict(X[1000:]) == pytest.approx(plain.predict(X[1000:]), rel=1e-9, abs=1e-9 * y.std())
    lower, upper = doubled.predict_interval(X[1000:]).T
    assert np.c_[lower, upper] == pytest.approx(plain.predict_interval(X[1000:]), rel=1e-9, abs=1e-9 * y.std())
    assert np.mean((lower <= y[1000:]) & (y[1000:] <= upper)) == pytest.approx(0.9, abs=0.04)


def test_exact_kernel_ridge_takes_relative_weights_too():
    X, y, w = _data()
    one = ExactKernelRidge(bandwidth="median", random_state=0).fit(X, y, w)
    other = ExactKernelRidge(bandwidth="median", random_state=0).fit(X, y, 64.0 * w)
    assert one.ridge_ == other.ridge_
    assert other.scaled_ridge_ == pytest.approx(64 * one.scaled_ridge_)
    assert np.array_equal(one.predict(X), other.predict(X))


def test_the_unit_is_the_power_of_two_nearest_the_mean():
    rng = np.random.default_rng(0)
    for mean, unit in ((1.0, 1.0), (1.49, 1.0), (1.51, 2.0), (0.76, 1.0), (0.74, 0.5), (1e-300, 2.0**-997)):
        assert unit_of_weights(np.full(9, mean)) == unit
    w = rng.uniform(0, 5, 100)
    assert unit_of_weights(np.r_[w, 0.0, 0.0]) == unit_of_weights(w)
    for power in (-1040, -3, 5, 1000):
        assert unit_of_weights(np.ldexp(w, power)) == np.ldexp(unit_of_weights(w), power)
    assert np.isfinite(unit_of_weights(np.full(5, 1.7e308)))


def test_distinct_rows_are_counted_over_batches():
    rng = np.random.default_rng(0)
    hashes = np.unique(rng.integers(0, 2**64, 40_000, dtype=np.uint64))
    few = merge_smallest(hashes[::40], hashes[::20])
    assert count_distinct(few) == len(hashes[::20])
    merged = hashes[::3][:KEPT_HASHES]
    for part in (hashes[1::2], hashes[::2], hashes[::3]):
        merged = merge_smallest(merged, part[:KEPT_HASHES])
    assert np.array_equal(merged, hashes[:KEPT_HASHES])
    assert count_distinct(merged) == pytest.approx(40_000, rel=0.1)
