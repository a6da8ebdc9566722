"""Standard deviations, jackknife+ intervals and their calibration, against refits and the formulas."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from ridgemark import NystromRidge, load, open_rows
from ridgemark.errors import DataError, NumericalError, ParameterError
from ridgemark.intervals import CalibrationRows, noise_variance
from ridgemark.intervals.calibration import calibration_of
from ridgemark.kernels import Gaussian
from ridgemark.passes import RowPasses
from ridgemark.path import leave_one_out
from ridgemark.rows import ArrayRows
from tests.helpers import slowly


def _data(n=400, seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_standard_deviation_is_the_formula(intercept):
    X, y = _data()
    model = NystromRidge(bandwidth=1.0, ridge=1e-3, selection=X[:40], fit_intercept=intercept).fit(X, y)
    new = np.random.default_rng(1).normal(size=(30, 2)) * 3
    B, b = model._model.sums.factor.features(X), model._model.sums.factor.features(new)
    A, a = (np.c_[B, np.ones(400)], np.c_[b, np.ones(30)]) if intercept else (B, b)
    penalty = np.diag(np.r_[np.full(B.shape[1], model.scaled_ridge_), [0.0] * intercept])
    inverse = np.linalg.inv(A.T @ A + penalty)
    hat = A @ inverse @ A.T
    s2 = np.sum((y - model.predict(X)) ** 2) / (400 - 2 * np.trace(hat) + np.trace(hat @ hat))
    spread = (1 - (b**2).sum(axis=1)) / model.scaled_ridge_ + np.einsum("ij,jk,ik->i", a, inverse, a)
    mean, std = model.predict(new, return_std=True)
    assert np.array_equal(mean, model.predict(new))
    assert std == pytest.approx(np.sqrt(s2 * spread), rel=1e-6)


@pytest.mark.parametrize("ridge", [1e-2, 1e-6, 1e-12])
def test_standard_deviations_are_positive_everywhere(ridge):
    X, y = _data()
    model = NystromRidge(bandwidth="median", ridge=ridge, random_state=0).fit(X, y)
    for rows in (X, model.landmarks_, np.full((1, 2), 1e3), np.zeros((1, 2))):
        std = model.predict(rows, return_std=True)[1]
        assert (std > 0).all()
        assert np.isfinite(std).all()
    far, near = model.predict([[1e3, 1e3], [0.0, 0.0]], return_std=True)[1]
    assert far > near


def test_the_noise_variance_is_found():
    X, y = _data(3000)
    model = NystromRidge(bandwidth="median", random_state=0).fit(X, y)
    assert np.sqrt(noise_variance(model._model.sums)[0]) == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize("intercept", [False, True])
def test_deviations_from_leave_one_out_are_those_of_a_pass_over_the_calibration_rows(intercept):
    X, y = _data(300)
    X[:50] = X[50:100]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 300)
    model = NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=60, fit_intercept=intercept, random_state=0)
    known = model.fit(X, np.c_[y, y**2], weights)._model
    drawn = known.drawn
    passes = RowPasses(ArrayRows(drawn.rows, drawn.targets, drawn.weights), None).with_groups(drawn.groups)
    left_out, every = leave_one_out(passes, known.expanded), np.arange(len(drawn.indices))
    quick, slow = (
        calibration_of(drawn, passes, known.expanded, results, every)
        for results in (left_out, replace(left_out, leverage=None))
    )
    assert quick.scores == pytest.approx(slow.scores, rel=1e-8)
    assert quick.reaches == pytest.approx(slow.reaches, rel=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weight", [3.0, *slowly(1.0, 0.5)])
def test_intervals_are_those_of_refits_without_each_distinct_row(intercept, weight):
    X, y = _data(60)
    w = np.full(60, weight)
    options = {"bandwidth": 1.0, "selection": X[:15], "fit_intercept": intercept}
    model = NystromRidge(ridge=1e-3, **options).fit(X, y, w).calibrate(X, y, w)
    new = _data(9, seed=3)[0]
    lower, upper = [], []
    for i in range(60):
        less = w.copy()
        less[i] = 0.0
        refit = NystromRidge(ridge=1e-3 * w.sum() / less.sum(), **options).fit(X, y, less)
        size = abs(y[i] - refit.predict(X[i : i + 1])[0])
        lower.append(refit.predict(new) - size)
        upper.append(refit.predict(new) + size)
    k = int(np.ceil(0.8 * 61))
    expected = np.c_[np.sort(lower, axis=0)[60 - k], np.sort(upper, axis=0)[k - 1]]
    assert model.predict_interval(new, coverage=0.8, adaptive=False) == pytest.approx(expected, abs=1e-7)


def test_intervals_leave_out_equal_rows_together():
    """Twelve groups of equal rows with targets of their own, against refits without each group."""
    rng = np.random.default_rng(4)
    X, group = rng.normal(size=(12, 2)), rng.integers(0, 12, 80)
    y, w = rng.normal(size=12)[group] + 0.1 * rng.normal(size=80), rng.uniform(0.5, 2, 80)
    options = {"bandwidth": 1.0, "selection": X}
    model = NystromRidge(ridge=1e-2, **options).fit(X[group], y, w).calibrate(X[group], y, w)
    new = rng.normal(size=(9, 2))
    ends = np.empty((2, 80, 9))
    for g in np.unique(group):
        others, rows = group != g, np.flatnonzero(group == g)
        ridge = 1e-2 * w.sum() / w[others].sum()
        refit = NystromRidge(ridge=ridge, **options).fit(X[group[others]], y[others], w[others])
        size = abs(y[rows] - refit.predict(X[g : g + 1]))[:, None]
        ends[:, rows] = size - refit.predict(new), size + refit.predict(new)
    n = len(np.unique(group))
    order = np.argsort(ends, axis=1)
    reached = np.cumsum(w[order], axis=1) * n / w.sum() >= np.ceil(0.8 * (n + 1))
    lower, upper = np.take_along_axis(np.take_along_axis(ends, order, 1), reached.argmax(1)[:, None], 1)[:, 0]
    assert model.predict_interval(new, coverage=0.8, adaptive=False) == pytest.approx(np.c_[-lower, upper], abs=1e-9)


def test_several_targets_each_have_an_interval():
    X, y = _data(500)
    Y = np.c_[y, 10 * y + 3]
    model = NystromRidge(bandwidth="median", n_landmarks=60, random_state=0, ridge_per_target=True).fit(X, Y)
    ends = model.predict_interval(X[:7])
    assert ends.shape == (7, 2, 2)
    assert ends[:, :, 1] == pytest.approx(10 * ends[:, :, 0] + 3, rel=1e-6)
    mean, std = model.predict(X[:7], return_std=True)
    assert mean.shape == std.shape == (7, 2)
    assert std[:, 1] == pytest.approx(10 * std[:, 0], rel=1e-6)


def test_more_coverage_gives_wider_intervals_that_hold_more():
    X, y = _data(3000)
    model = NystromRidge(bandwidth="median", n_landmarks=150, random_state=0).fit(X[:1500], y[:1500])
    widths = []
    for coverage in (0.5, 0.8, 0.95):
        lower, upper = model.predict_interval(X[1500:], coverage).T
        held = np.mean((lower <= y[1500:]) & (y[1500:] <= upper))
        assert held == pytest.approx(coverage, abs=0.05)
        widths.append(np.mean(upper - lower))
    assert widths == sorted(widths)


class TestTheGuarantee:
    """It needs calibration rows that had no part in choosing anything."""

    def test_a_fit_by_leave_one_out_has_none(self):
        model = NystromRidge(bandwidth="median", n_landmarks=50, random_state=0).fit(*_data())
        assert not model.calibration_.guaranteed
        assert "chosen from these rows" in model.calibration_.reason

    def test_rows_added_after_the_choice_have_it(self):
        X, y = _data(1000)
        model = NystromRidge(bandwidth="median", n_landmarks=50, random_state=0).fit(X[:300], y[:300])
        model.set_params(ridge=model.ridge_).partial_fit(X[300:], y[300:]).calibrate(X[300:], y[300:])
        assert model.calibration_.guaranteed
        assert len(model.calibration_.residuals) == 700
        with pytest.raises(DataError, match="no leave-one-out residuals to diagnose"):
            model.diagnose()
        model.calibrate(X, y)
        assert not model.calibration_.guaranteed

    def test_a_ridge_searched_again_takes_it_away(self):
        X, y = _data(1000)
        model = NystromRidge(bandwidth="median", n_landmarks=50, random_state=0).fit(X[:300], y[:300])
        model.partial_fit(X[300:], y[300:]).calibrate(X[300:], y[300:])
        assert not model.calibration_.guaranteed
        assert model.calibration_.reason == "the ridge was chosen from these rows"

    def test_uniform_landmarks_with_all_else_given_have_it_for_the_other_rows(self):
        X, y = _data()
        model = NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=50, selection="uniform", random_state=0)
        model.fit(X, y).calibrate(X, y)
        assert model.calibration_.guaranteed
        assert not np.isin(model.calibration_.indices, model.landmark_indices_).any()
        assert (
            not NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=50)
            .fit(X, y)
            .calibrate(X, y)
            .calibration_.guaranteed
        )

    @pytest.mark.parametrize("w", [np.linspace(0.5, 2, 400), np.full(400, 3.0)], ids=["unequal", "equal"])
    def test_unequal_weights_have_none(self, w):
        X, y = _data()
        model = NystromRidge(bandwidth=1.0, ridge=1e-3, n_landmarks=50, selection="uniform").fit(X, y, w)
        assert model.calibrate(X, y, w).calibration_.guaranteed == (w[0] == w[1])

    def test_with_equal_rows_it_holds_for_other_rows(self):
        X, y = _data(1000)
        X[900:] = X[800:900]
        model = NystromRidge(bandwidth="median", n_landmarks=50, random_state=0).fit(X[:300], y[:300])
        model.set_params(ridge=model.ridge_).partial_fit(X[300:], y[300:]).calibrate(X[300:], y[300:])
        assert model.calibration_.guaranteed
        assert "only for new rows that equal none of them" in model.calibration_.reason


def test_calibration_refuses_rows_that_are_not_of_the_fit(tmp_path):
    X, y = _data()
    model = NystromRidge(bandwidth="median", ridge=1e-3, n_landmarks=50, random_state=0).fit(X, y)
    with pytest.raises(DataError, match=r"call calibrate\(X, y\)"):
        NystromRidge(ridge=1e-3).partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:]).predict_interval(X)
    for other in ((X[:300], y[:300]), (X, y[::-1]), (X + 1, y), _data(seed=5)):
        with pytest.raises(DataError, match="not the rows the model was fitted on"):
            model.calibrate(*other)
    with pytest.raises(DataError, match="not the rows the model was fitted on"):
        model.calibrate(X, y, np.full(400, 2.0))
    loaded = load(model.save(tmp_path / "m", sums=True)).calibrate(open_rows(X, target=y))
    assert np.array_equal(loaded.predict_interval(X), model.calibrate(X, y).predict_interval(X))


@pytest.mark.parametrize(
    "options", [{}, {"selection": "uniform", "bandwidth": 1.0}, {"kernel": "precomputed"}], ids=str
)
@pytest.mark.parametrize("weights", [None, np.arange(400) % 3], ids=["plain", "weighted"])
def test_a_fit_with_a_given_ridge_has_the_intervals_that_calibrate_gives(options, weights, tmp_path):
    X, y = _data()
    rows = Gaussian(1.0)(X) if "kernel" in options else X
    options = {"bandwidth": "median", "ridge": 1e-3, "n_landmarks": 50, "random_state": 0, **options}
    fits = (NystromRidge(**options).fit(rows, y, weights) for _ in range(5))
    model, other, summed, kept, whole = fits
    whole.calibrate(rows, y, weights)
    ends = whole.predict_interval(rows)
    assert model.predict_interval(rows) == pytest.approx(ends, rel=1e-9)
    assert other.predict_interval(rows, adaptive=False) == pytest.approx(whole.predict_interval(rows, adaptive=False))
    assert model.calibration_.guaranteed == whole.calibration_.guaranteed
    assert np.array_equal(model.calibration_.indices, whole.calibration_.indices)
    assert np.array_equal(
        load(summed.save(tmp_path / "m", sums=True)).predict_interval(rows), model.predict_interval(rows)
    )
    assert np.array_equal(pickle.loads(pickle.dumps(kept)).predict_interval(rows), model.predict_interval(rows))


def test_the_fit_with_a_given_ridge_computes_no_residuals(monkeypatch):
    X, y = _data()
    options = {"bandwidth": "median", "ridge": 1e-3, "n_landmarks": 50, "random_state": 0}
    computed = []
    monkeypatch.setattr(CalibrationRows, "calibrated", lambda drawn, fit: computed.append(drawn))
    model = NystromRidge(**options).fit(X, y)
    assert not computed
    assert "solver" not in vars(model._model.sums)  # which takes an eigendecomposition
    model.predict(X)
    assert not computed


@pytest.mark.parametrize("repeats", [1, 10])
def test_a_sample_of_the_rows_gives_the_intervals_of_all_rows(repeats):
    """Also where rows repeat: the sample knows the weights and mean targets of all rows equal to its own."""
    X, _ = _data(2000 // repeats)
    X = np.repeat(X, repeats, axis=0)
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=2000)
    options = {"bandwidth": "median", "ridge": 1e-3, "n_landmarks": 50, "selection": "rpcholesky", "random_state": 0}
    budget = 32 * 52 * 600  # for 600 calibration rows
    few = NystromRidge(**options, memory_budget=budget).fit(X, y)
    all_rows = NystromRidge(**options).fit(X, y).calibrate(X, y)
    one, other = few.calibration_, all_rows.calibration_
    assert len(one.weights) == 600 < len(other.weights)
    rows = one.indices
    assert one.residuals == pytest.approx(other.residuals[rows], abs=1e-8)
    assert one.shifts == pytest.approx(other.shifts[rows], abs=1e-8)
    assert one.noise.variance == pytest.approx(other.noise.variance, rel=0.5)
    widths = [np.ptp(model.predict_interval(X), axis=1).mean() for model in (few, all_rows)]
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


def test_the_sample_is_bounded_and_so_is_coverage():
    X, y = _data(6000)
    model = NystromRidge(bandwidth="median", n_landmarks=30, random_state=0).fit(X, y)
    assert len(model.calibration_.residuals) == 4096
    small = NystromRidge(bandwidth="median", n_landmarks=30, random_state=0, memory_budget=1_000_000).fit(X, y)
    assert len(small.calibration_.residuals) == 1_000_000 // (32 * 32)
    few = NystromRidge(bandwidth="median", ridge=1e-3).fit(X[:9], y[:9]).calibrate(X[:9], y[:9])
    with pytest.raises(ParameterError, match=r"coverage 0\.95 needs at least 19 distinct calibration rows, got 9"):
        few.predict_interval(X[:2], 0.95)
    for wrong in (0, 1, 1.5, "much", None, True, []):
        with pytest.raises(ParameterError, match="coverage must be a number between 0 and 1"):
            few.predict_interval(X[:2], wrong)


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgemarkWarning")
@pytest.mark.parametrize("size", [1e-300, 1e-306, 1e-308, 1e300])
@pytest.mark.parametrize("what", ["kernel", "weights"])
def test_at_the_ends_of_the_range_answers_are_finite_or_refused(what, size):
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.sin(X[:, 0])
    kernel, weights = (size * Gaussian(0.1), None) if what == "kernel" else (Gaussian(0.1), np.full(30, size))
    answers = []
    for ridge in ("loo", 1e-3, 1e-3 * size):
        try:
            model = NystromRidge(kernel, ridge=ridge, random_state=0).fit(X, y, sample_weight=weights)
            answers += [model.calibrate(X, y, weights).predict_interval(X), *model.predict(X, return_std=True)]
        except NumericalError as refusal:
            assert "range" in str(refusal)
    assert all(np.isfinite(answer).all() for answer in answers)


def test_intervals_of_a_kernel_of_tiny_values_are_those_of_its_multiple():
    X, y = _data(60)
    ridges = np.logspace(-1, -4, 7)
    plain, tiny = (
        NystromRidge(size * Gaussian(1.0), ridge=size * ridges, random_state=0).fit(X, y).predict_interval(X)
        for size in (1.0, 1e-290)
    )
    assert tiny == pytest.approx(plain, rel=1e-6)
