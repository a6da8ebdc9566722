"""Effects of the columns: against finite differences, refits of the formulas, and the population's averages."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from ridgemark import NystromRidge, load, open_rows
from ridgemark.effects import Effect, effect_values
from ridgemark.errors import DataError, ParameterError
from ridgemark.intervals.deviations import unit_variance
from ridgemark.kernels import (
    Bernoulli,
    ColumnMap,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Mixture,
    Polynomial,
    PowerExponential,
)
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows

METRIC = np.random.default_rng(7).normal(size=(3, 2))
KERNELS = [
    Gaussian([0.8, 1.5, 2.0]),
    Gaussian(metric=METRIC),
    Matern12(1.5),
    Matern32(metric=METRIC),
    Matern52(1.2),
    PowerExponential(1.5, exponent=1.4),
    Linear(origin=0.3),
    Polynomial(3, bandwidth=[1.0, 2.0, 3.0]),
    Cosine(),
    2.0 * Gaussian(1.0) + 0.5 * Linear(),
    Gaussian(2.0) * Polynomial(2) + Matern52(1.0),
    Laplacian([1.0, 2.0, 3.0]),
    Mixture(
        [Gaussian(1.0), Matern12(2.0)],
        [Laplacian(3.0), Linear(widths=2.0)],
        [0.5, 0.2, 0.3, 0.1],
        metric=METRIC,
        columns=ColumnMap([-2.0] * 3, [1.5] * 3, [0.0] * 3, [0.0, 1.0, 0.0]),
    ),
    Laplacian(2.0) * Gaussian(1.5) + Linear(),
]


def _data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 1.5 * np.tanh(X[:, 1]) + 0.5 * rng.normal(size=n)


def _fitted(kernel=None, X=None, y=None, **options):
    X, y = _data() if X is None else (X, y)
    options = {"ridge": 1e-3, "random_state": 0} | ({} if "selection" in options else {"n_landmarks": 30}) | options
    return NystromRidge(kernel or Gaussian(1.5), **options).fit(X, y)


@pytest.mark.parametrize("column", ["number", "boolean", "text"])
def test_differences_are_between_values_that_are_not_missing(column):
    X, y = _data()
    levels = {"number": [0.0, 1.0], "boolean": [False, True], "text": ["a", "b"]}[column]
    values = pd.Series(np.array(levels, object)[(X[:, 2] > 0).astype(int)]).where(np.arange(200) % 3 > 0)
    table = pd.DataFrame({"x": X[:, 0], "g": values.astype(float) if column == "number" else values})
    model = NystromRidge(bandwidth="median", ridge=1e-3, n_landmarks=30, random_state=0).fit(table, y)
    low, high = (model.predict(table.assign(g=level)) for level in levels)
    assert model.effects(table)[:, 1] == pytest.approx(high - low, abs=1e-10)


def test_levels_of_many_differ_in_all_their_features():
    X, y = _data(600)
    texts = ["a", "b"] * 150 + [f"t{k % 120}" for k in range(300)]  # a and b are frequent, the others are not
    table = pd.DataFrame({"x": X[:, 0], "g": texts})
    model = NystromRidge(bandwidth="median", ridge=1e-3, n_landmarks=50, random_state=0).fit(table, y)
    low, high = (model.predict(table.assign(g=level)) for level in ("a", "b"))
    assert "g code 4" in model.encoded_names_
    assert model.effects(table)[:, 1] == pytest.approx(high - low, abs=1e-10)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_effects_are_finite_differences(kernel):
    model = _fitted(kernel)
    rows = np.random.default_rng(2).normal(size=(20, 3))  # none of them a landmark
    found, step = model.effects(rows), 1e-5
    for j in range(3):
        up, down = (model.predict(rows + sign * step * np.eye(3)[j]) for sign in (1, -1))
        assert found[:, j] == pytest.approx((up - down) / (2 * step), abs=1e-6 * abs(found).max())


@pytest.mark.parametrize("order", [1, 2, 8])
def test_effects_of_periodic_functions_are_finite_differences(order):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(200, 1))
    y = np.sin(2 * np.pi * X[:, 0]) + 0.1 * rng.normal(size=200)
    model = NystromRidge(Bernoulli(order), ridge=1e-6, n_landmarks=20, random_state=0).fit(X, y)
    rows, step = rng.uniform(-2, 2, size=(50, 1)), 1e-6
    found = model.effects(rows)
    slopes = (model.predict(rows + step) - model.predict(rows - step)) / (2 * step)
    assert found[:, 0] == pytest.approx(slopes, abs=1e-6 * abs(found).max())


@pytest.mark.parametrize("kernel", [Laplacian([1.0, 2.0, 3.0]), Matern12(2.0), Bernoulli(1)], ids=repr)
def test_effects_at_landmarks_are_means_of_both_sides(kernel):
    X, y = _data(40)
    X = X[:, :1] if kernel == Bernoulli(1) else X
    model = _fitted(kernel, X, y, selection=X[:9])
    found, step = model.effects(X[:9]), 1e-6
    for j in range(X.shape[1]):
        up, down = (model.predict(X[:9] + sign * step * np.eye(X.shape[1])[j]) for sign in (1, -1))
        assert found[:, j] == pytest.approx((up - down) / (2 * step), abs=1e-5 * abs(found).max())


@pytest.mark.parametrize("kernel", [Laplacian(2.0), Linear(), Gaussian(2.0) + Polynomial(2)], ids=repr)
def test_derivative_shares_are_those_of_the_effects(kernel):
    X, y = _data()
    model = _fitted(kernel, X, y)
    shares = (model.effects(X) ** 2).mean(axis=0) * X.var(axis=0)
    assert model.derivative_shares_ == pytest.approx(shares / shares.sum(), rel=1e-8)


def test_effects_far_from_the_origin_keep_their_digits():
    X, y = _data()
    near, far = (_fitted(X=X + shift, y=y, selection=X[:30] + shift) for shift in (0.0, 1e6))
    assert far.effects(X + 1e6) == pytest.approx(near.effects(X), abs=1e-6)


def test_effects_are_per_unit_of_the_columns():
    X, y = _data()
    scale = np.array([1e-3, 1.0, 50.0])
    plain, scaled = (_fitted(Gaussian(2.0 * c), X * c, y, selection=X[:30] * c) for c in (np.ones(3), scale))
    assert scaled.effects(X * scale) * scale == pytest.approx(plain.effects(X), rel=1e-6)


def test_columns_of_two_values_have_differences():
    X, y = _data()
    X[:, 2] = np.where(X[:, 2] > 0, 5.0, 2.0)
    model = _fitted(X=X, y=y)
    low, high = X.copy(), X.copy()
    low[:, 2], high[:, 2] = 2.0, 5.0
    assert model.effects(X)[:, 2] == pytest.approx(model.predict(high) - model.predict(low), abs=1e-10)
    assert model.effects_summary(X).effects[2].unit == "2 -> 5"


def test_later_batches_may_show_that_a_column_has_more_values():
    X, y = _data()
    X[:, 1], X[:, 2] = X[:, 1] > 0, X[:, 2] > 0
    model = _fitted(X=X, y=y).partial_fit(X, y)
    assert [bool(one.before) for one in model.effects_summary(X).effects] == [False, True, True]
    X[0, 2] = 0.5
    model.partial_fit(X, y)
    assert [bool(one.before) for one in model.effects_summary(X).effects] == [False, True, False]


def test_several_columns_can_be_one_effect():
    model, (X, _) = _fitted(), _data()
    cross_kernel, dual_coef = model._model.function.cross_kernel, model._model.function.dual_coef
    category = Effect("colour", (0, 2), (1.0, 0.0), (0.0, 1.0))
    found = effect_values(RowPasses(ArrayRows(X)), cross_kernel, dual_coef, [category, Effect("x1", (1,))])
    before, after = X.copy(), X.copy()
    before[:, [0, 2]], after[:, [0, 2]] = (1.0, 0.0), (0.0, 1.0)
    assert found[:, 0, 0] == pytest.approx(model.predict(after) - model.predict(before), abs=1e-10)
    assert found[:, 1, 0] == pytest.approx(model.effects(X)[:, 1], rel=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
def test_averages_and_errors_are_the_formulas(intercept):
    """Without calibration rows, as after `partial_fit`: those of noise of one size."""
    X, y = _data()
    model = (
        clone(_fitted(X=X, y=y, fit_intercept=intercept)).partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    )
    fit, s, step = model._model.sums, model.scaled_ridge_, 1e-5
    B = fit.factor.features(X)
    B = B - B.mean(axis=0) * intercept
    F = np.linalg.inv(B.T @ B + s * np.eye(B.shape[1]))
    c, debias = F @ B.T @ (y - y.mean() * intercept), np.eye(len(F)) + s * F
    s2 = unit_variance(fit, 200)[0]
    found, (values, errors) = model.effects_summary(X), model.effects(X, return_std=True)
    for j in range(3):
        change = np.eye(3)[j] * step
        slopes = (fit.factor.features(X + change) - fit.factor.features(X - change)) / (2 * step)
        g = slopes.mean(axis=0)
        assert found.average[j, 0] == pytest.approx(g @ debias @ c, abs=1e-6)
        noise = s2 * g @ debias @ F @ B.T @ B @ F @ debias @ g
        expected = np.sqrt(noise + (slopes @ c).var() / 200)
        assert found.standard_error[j, 0] == pytest.approx(expected, rel=1e-4)
        pointwise = np.sqrt(s2 * np.einsum("ij,jk,ik->i", slopes, F @ B.T @ B @ F, slopes))
        assert errors[:, j] == pytest.approx(pointwise, rel=1e-3)
    assert found.quartiles[1, :, 0] == pytest.approx(np.median(values, axis=0), abs=0.02)
    assert found.t_value == pytest.approx(found.average / found.standard_error)


@pytest.mark.parametrize("intercept", [False, True])
def test_standard_errors_are_those_of_leaving_out_each_row(intercept):
    X, y = _data(60)
    X[40:50] = X[30:40]  # each row is left out alone, also where another one is equal
    Y, weights = np.c_[y, y**2], np.random.default_rng(1).uniform(0.5, 2.0, 60)
    options = {"selection": X[:12].copy(), "fit_intercept": intercept}

    def fitted(rows):
        ridge = 1e-3 * weights.sum() / weights[rows].sum()  # the same n lambda
        model = NystromRidge(Gaussian(1.5), ridge=ridge, random_state=0, **options)
        return model.fit(X[rows], Y[rows], sample_weight=weights[rows])

    model = fitted(np.arange(60)).calibrate(X, Y, weights)
    without = [fitted(np.delete(np.arange(60), i)) for i in range(60)]
    values, errors = model.effects(X[:5], return_std=True)
    changes = np.array([one.effects(X[:5]) - values for one in without])
    assert errors == pytest.approx(np.sqrt((changes**2).sum(axis=0)), rel=1e-6)

    # The plain average of effects has the noise that the corrected one has without the correction.
    found = model.effects_summary(X)
    spread = model.effects(X).var(axis=0) / 60
    plain = np.array([one.effects(X).mean(axis=0) for one in without]) - model.effects(X).mean(axis=0)
    assert (found.standard_error >= 0.9 * np.sqrt(spread + (plain**2).sum(axis=0))).all()
    assert (found.standard_error <= 2.0 * np.sqrt(spread + (plain**2).sum(axis=0))).all()


def test_standard_errors_follow_noise_that_grows_with_a_column():
    X, _ = _data(150)
    noise, places = 0.5 * np.exp(X[:, 0]), np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    options = {"selection": X[:30].copy(), "ridge": 1e-2}
    of_rows = [_fitted(X=X, y=e, **options).effects(places)[:, 0] for e in np.diag(noise)]  # effects are linear in y
    quiet, loud = np.sqrt((np.array(of_rows) ** 2).sum(axis=0))
    found = []
    for seed in range(20):
        y = X[:, 0] + noise * np.random.default_rng(seed).normal(size=150)
        found.append(_fitted(X=X, y=y, **options).calibrate(X, y).effects(places, return_std=True)[1][:, 0])
    estimates = np.sqrt((np.array(found) ** 2).mean(axis=0))
    assert loud > 2 * quiet
    assert estimates == pytest.approx([quiet, loud], rel=0.4)


def test_calibration_rows_stand_for_all_rows(monkeypatch):
    X, y = _data(2000)
    every = _fitted(X=X, y=y).calibrate(X, y)
    monkeypatch.setattr("ridgemark.estimators.calibration._LARGEST_SAMPLE", 1000)
    some = _fitted(X=X, y=y).calibrate(X, y)
    for one in (lambda m: m.effects(X[:20], return_std=True)[1], lambda m: m.effects_summary(X).standard_error):
        assert one(some) == pytest.approx(one(every), rel=0.25)


def test_weights_of_the_rows_count():
    X, y = _data()
    model = _fitted(X=X, y=y)
    weights = np.random.default_rng(1).integers(1, 4, 200)
    counted = model.effects_summary(open_rows(X, weight=weights))
    repeated = model.effects_summary(np.repeat(X, weights, axis=0))
    assert counted.average == pytest.approx(repeated.average, rel=1e-10)
    assert counted.quartiles == pytest.approx(repeated.quartiles, rel=1e-10)


def test_quartiles_of_many_rows_are_those_of_some(monkeypatch):
    X, _ = _data(3000, 5)
    model = _fitted()
    every = model.effects_summary(X)
    monkeypatch.setattr("ridgemark.effects.averages._MOST_ROWS", 700)
    some, shown = model.effects_summary(X), model.effects(X)[::5]
    assert np.array_equal(some.standard_error, every.standard_error)
    place = int(np.ceil(0.25 * len(shown))) - 1
    assert some.quartiles[0, :, 0] == pytest.approx(np.sort(shown, axis=0)[place], rel=1e-9)


def test_rows_of_the_fit_are_the_default(tmp_path):
    X, y = _data()
    model = _fitted(ridge="loo")
    assert np.array_equal(model.effects(), model.effects(X))
    loaded = load(model.save(tmp_path / "m"))
    assert str(loaded.effects_summary()) == str(model.effects_summary(X))
    assert np.array_equal(loaded.effects(), model.effects())
    with pytest.raises(DataError, match=r"give the rows, as in effects\(X\)"):
        _fitted(X=X, y=y).partial_fit(X, y).effects()


def test_several_targets_are_the_last_axis():
    X, y = _data()
    model, alone = _fitted(X=X, y=np.c_[y, 2 * y]), _fitted(X=X, y=y)
    values, errors = model.effects(X[:9], return_std=True)
    assert values.shape == errors.shape == (9, 3, 2)
    assert values[:, :, 1] == pytest.approx(2 * alone.effects(X[:9]), abs=1e-8)
    assert "on target 1" in str(model.effects_summary(X))


def test_the_table_has_the_names_of_the_columns():
    X, y = _data()
    model = _fitted(X=pd.DataFrame(X, columns=["age", "income", "noise"]), y=y)
    lines = str(model.effects_summary(pd.DataFrame(X, columns=["age", "income", "noise"]))).splitlines()
    assert lines[0] == "Average effects over 200 rows, and quartiles over the rows"
    assert [line.split()[0] for line in lines[2:]] == ["column", "age", "income", "noise"]


def test_sparse_rows_have_the_effects_of_dense_ones():
    X, y = _data()
    X[np.abs(X) < 0.7] = 0.0
    dense = _fitted(X=X, y=y)
    rows = sparse.csr_array(X)
    assert _fitted(X=rows, y=y).effects(rows) == pytest.approx(dense.effects(X), abs=1e-8)


def test_without_sums_there_are_effects_but_no_errors(tmp_path):
    X, y = _data()
    model = _fitted(X=X, y=y)
    loaded = load(model.save(tmp_path / "m", sums=False))
    assert np.array_equal(loaded.effects(X), model.effects(X))
    with pytest.raises(DataError, match="a standard error of effects needs the sums"):
        loaded.effects(X, return_std=True)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda X, Z: X @ Z.T, r"the derivatives of \w+ by the columns are not known"),
        ("precomputed", "has no derivatives by columns: its rows hold kernel values"),
    ],
)
def test_kernels_without_derivatives_say_so(kernel, words):
    X, y = _data(40)
    X = X @ X.T if kernel == "precomputed" else X
    model = NystromRidge(kernel, ridge=1e-2, n_landmarks=9, random_state=0).fit(X, y)
    assert not hasattr(model, "derivative_shares_")
    assert hasattr(model, "feature_importances_") == (kernel != "precomputed")
    with pytest.raises(ParameterError, match=words):
        model.effects(X)
