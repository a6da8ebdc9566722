"""Contributions of columns: against all subsets by predictions alone, and what they add up to."""

import itertools
import math
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ridgemark import NystromClassifier, NystromRidge, load, open_rows
from ridgemark.errors import DataError, ParameterError
from ridgemark.explaining import contributions
from ridgemark.explaining.shapley import Shapley
from ridgemark.kernels import ColumnMap, Gaussian, Laplacian, Linear, Matern32, Matern52, Mixture, Polynomial
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows

COLUMNS = 4
PRODUCTS = [
    Gaussian([1.0, 2.0, 3.0, 4.0]),
    Laplacian(3.0),
    Gaussian(1.5) * Laplacian(4.0) + 0.5 * Linear(),
    Mixture(
        [Gaussian(1.0), Gaussian(3.0)],
        [Laplacian(5.0), Linear(widths=2.0)],
        [0.5, 0.3, 0.2, 0.1],
        bandwidth=2.0,
        columns=ColumnMap([-2.0] * 4, [1.0] * 4, [0.0] * 4, [0.0, 1.0, 0.0, 0.0]),
    ),
]
OTHERS = [
    Matern32(2.0),
    Gaussian(metric=np.random.default_rng(7).normal(size=(4, 4)) / 2.0),
    Gaussian(2.0) * Polynomial(2),
    Mixture([Matern52(1.0), Gaussian(3.0)], [], [0.7, 0.3], metric=np.eye(4)[:, :3] / 2.0),
]


def _data(n=200, d=COLUMNS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0] * X[:, 1]) + X[:, 2] + 0.1 * rng.normal(size=n)


def _fitted(kernel, X=None, y=None, **options):
    X, y = _data() if X is None else (X, y)
    return NystromRidge(kernel, ridge=1e-4, n_landmarks=60, random_state=0, **options).fit(X, y)


def _brute(model, X, background):
    """Return Shapley values over all subsets of columns, by predictions alone, (rows, columns, outputs)."""
    d, answers = background.shape[1], []
    ask = getattr(model, "decision_function", model.predict)
    for row in np.asarray(X):
        value = {}
        for subset in itertools.product([False, True], repeat=d):
            mixed = np.array(background)
            mixed[:, list(subset)] = row[list(subset)]
            value[subset] = np.asarray(ask(mixed)).reshape(len(mixed), -1).mean(axis=0)
        phi = np.zeros((d, *value[subset].shape))
        for subset, j in itertools.product(value, range(d)):
            if not subset[j]:
                size, more = sum(subset), (*subset[:j], True, *subset[j + 1 :])
                factor = math.factorial(size) * math.factorial(d - size - 1) / math.factorial(d)
                phi[j] += factor * (value[more] - value[subset])
        answers.append(phi)
    return np.array(answers)


def _adds_up(found, predictions):
    total = found.values.sum(axis=1) + found.base
    return abs(total - predictions).max() <= 1e-9 * abs(found.values).max()


@pytest.mark.parametrize("kernel", PRODUCTS, ids=repr)
def test_contributions_of_product_kernels_are_shapley_values(kernel):
    model, new = _fitted(kernel), _data(6, seed=1)[0]
    background = _data(20, seed=2)[0]
    found, expected = model.contributions(new, background), _brute(model, new, background)[:, :, 0]
    assert found.kind == "shapley"
    assert (abs(found.values - expected).max(axis=1) <= found.error + 1e-12).all()
    assert found.error.max() <= 1e-4 * abs(found.values).max()
    assert _adds_up(found, model.predict(new))


@pytest.mark.parametrize("kernel", OTHERS, ids=repr)
def test_contributions_of_other_kernels_are_path_integrals(kernel):
    model, new, background = _fitted(kernel), _data(5, seed=1)[0], _data(10, seed=2)[0]
    found, n = model.contributions(new, background), 800
    steps = (np.arange(n) + 0.5) / n
    expected = np.zeros_like(found.values)
    for other in background:
        along = other + steps[:, None, None] * (new - other)
        slopes = model.effects(along.reshape(-1, COLUMNS)).reshape(n, len(new), COLUMNS).mean(axis=0)
        expected += slopes * (new - other) / len(background)
    assert found.kind == "path"
    assert (abs(found.values - expected).max(axis=1) <= found.error + 1e-4).all()
    assert found.error.max() <= 0.02 * abs(found.values).max()
    assert _adds_up(found, model.predict(new))


def test_the_default_fit_adds_up_and_names_its_columns():
    X, y = _data(400)
    model = NystromRidge(n_landmarks=60, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), y)
    rows = pd.DataFrame(X[:10], columns=list("abcd"))
    found = model.contributions(rows)
    assert _adds_up(found, model.predict(rows))
    assert found.column_names == ("a", "b", "c", "d")
    assert {name for name, _ in found.largest(0, 3)} <= set("abcd")
    assert (found.data == X[:10]).all()


@pytest.mark.parametrize("kernel", [Gaussian([2.0, 2.0, 2.0]) + Linear(), Matern52(2.0)], ids=repr)
def test_columns_without_influence_have_none_and_equal_columns_share(kernel):
    X = _data(200)[0]
    X = np.c_[X[:, 0], X[:, 0], np.ones(200)]
    model = _fitted(kernel, X, np.sin(X[:, 0]), selection="uniform")
    found = model.contributions(np.array([[1.0, 1.0, 1.0], [-2.0, -2.0, 1.0]]))
    assert (found.values[:, 2] == 0.0).all()
    assert found.values[:, 0] == pytest.approx(found.values[:, 1], abs=2.0 * found.error.max() + 1e-9)


def test_levels_dates_and_gaps_count_for_their_column():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "area": rng.gamma(4.0, 30.0, 300),
            "age": pd.Series(rng.integers(0, 50, 300).astype(float)).mask(rng.random(300) < 0.1),
            "city": rng.choice(["Bern", "Chur", "Genf"], 300),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, 300), "D"),
        }
    )
    y = np.log(table["area"]) + 0.5 * (table["city"] == "Bern")
    model = NystromRidge("gaussian", bandwidth="median", ridge=1e-4, n_landmarks=80, random_state=0).fit(table, y)
    background = table[200:220].reset_index(drop=True)
    found = model.contributions(table[:4], background)
    assert found.values.shape == (4, 4)
    value = {}
    for subset in itertools.product([False, True], repeat=4):
        mixed = pd.concat([background] * 4, ignore_index=True)
        for name in table.columns[list(subset)]:
            mixed[name] = table[name][:4].repeat(20).to_numpy()
        value[subset] = model.predict(mixed).reshape(4, 20).mean(axis=1)
    expected = np.zeros((4, 4))
    for subset, j in itertools.product(value, range(4)):
        if not subset[j]:
            more = (*subset[:j], True, *subset[j + 1 :])
            factor = math.factorial(sum(subset)) * math.factorial(3 - sum(subset)) / 24
            expected[:, j] += factor * (value[more] - value[subset])
    assert (abs(found.values - expected).max(axis=1) <= found.error + 1e-12).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_to_classes_are_about_log_odds(n_classes, tmp_path):
    X, y = _data(300, 3)
    labels = np.digitize(y, [0.0] if n_classes == 2 else [-0.5, 0.5])
    model = NystromClassifier(Gaussian(2.0), ridge=1e-3, n_landmarks=40, random_state=0).fit(X, labels)
    found, background = model.contributions(X[:3], X[50:60]), X[50:60]
    expected = _brute(model, X[:3], background)
    expected = expected[:, :, 0] if n_classes == 2 else expected
    assert found.values == pytest.approx(expected, abs=found.error.max() + 1e-12)
    assert _adds_up(found, model.decision_function(X[:3])) if n_classes == 2 else np.ndim(found.base) == 1
    loaded = load(model.save(tmp_path / "m"))
    assert (loaded.contributions(X[:3]).values == model.contributions(X[:3]).values).all()


def test_the_base_is_near_the_mean_prediction():
    within = 0
    for seed in range(20):
        X, y = _data(600, seed=seed)
        model = _fitted(Gaussian(2.0), X, y)
        predicted = model.predict(X)
        within += abs(model.contributions(X[:1]).base - predicted.mean()) <= 2.0 * predicted.std() / 10.0
    assert within >= 17


def test_backgrounds_count_by_their_weights():
    model, (X, _) = _fitted(Gaussian(2.0)), _data(seed=3)
    weighted = model.contributions(X[:4], open_rows(X[10:13], weight=np.array([1.0, 2.0, 0.0])))
    repeated = model.contributions(X[:4], X[[10, 11, 11]])
    assert weighted.base == pytest.approx(repeated.base)
    assert weighted.values == pytest.approx(repeated.values, abs=1e-9)


def test_sparse_rows_have_the_contributions_of_dense_ones():
    X, y = _data()
    model = _fitted(Gaussian(2.0), sparse.csr_array(X), y)
    dense = _fitted(Gaussian(2.0), X, y)
    found = model.contributions(sparse.csr_array(X[:5]), sparse.csr_array(X[50:60]))
    assert found.values == pytest.approx(dense.contributions(X[:5], X[50:60]).values, abs=1e-8)
    assert found.data is None


def test_more_nodes_are_nearer_to_exact():
    X, y = _data(200, 12)
    model = _fitted(Gaussian(2.0), X, y)
    kernel = contributions.column_sum(model.kernel_, 12)
    function = model._model.function
    method = Shapley(kernel, function.points, function.dual_coef, np.arange(12), X[:10], np.full(10, 0.1))
    exact = method.values(X[20:22], method.finest)
    errors = [abs(method.values(X[20:22], (np.float64, n)) - exact).max() for n in (1, 2, 4)]
    assert errors[0] > 10 * errors[1] > 100 * errors[2]
    assert method.finest[1] == 6
    assert exact.sum(axis=1)[:, 0] == pytest.approx(model.predict(X[20:22]) - model.predict(X[:10]).mean(), abs=1e-12)


def test_parts_of_a_kernel_contribute_each_in_its_way():
    X, _ = _data()
    parts = [Matern52(2.0), 0.3 * Laplacian(4.0), 0.1 * Linear()]
    coefficients = np.random.default_rng(0).normal(size=(30, 1))

    def found(kernel):
        passes, function = RowPasses(ArrayRows(X[:5])), kernel.bind(X[:30])
        gaps = (function(X[:5]) - function(X[50:60]).mean(axis=0)) @ coefficients
        return contributions.contributions_of(
            *(passes, kernel, X[:30], coefficients, X[50:60], np.ones(10), np.arange(COLUMNS), COLUMNS, gaps)
        )

    together, each = found(parts[0] + parts[1] + parts[2]), [found(part) for part in parts]
    assert [kind for *_, kind in each] == ["path", "shapley", "shapley"]
    assert together[2] == "path"
    assert together[0] == pytest.approx(sum(values for values, *_ in each), abs=2.0 * together[1].max())


def test_kernels_without_derivatives_are_refused():
    X, y = _data(60)
    with pytest.raises(ParameterError, match="the derivatives of Custom by the columns are not known"):
        _fitted(lambda A, B: A @ B.T, X, y).contributions(X)
    with pytest.raises(DataError, match="contributions needs columns"):
        NystromRidge("precomputed", ridge=1e-2, n_landmarks=9).fit(X @ X.T, y).contributions(X @ X.T)
    with pytest.raises(DataError, match="at most 10,000 rows, got 10,001"):
        _fitted(Gaussian(2.0), X, y).contributions(X, np.zeros((10_001, COLUMNS)))


def test_explanations_of_shap_hold_the_same_numbers(monkeypatch):
    model, (X, _) = _fitted(Gaussian(2.0)), _data(seed=1)

    class Shap:
        @staticmethod
        def Explanation(**fields):
            return fields

    monkeypatch.setitem(sys.modules, "shap", Shap)
    found = model.contributions(X[:3])
    given = found.to_shap()
    assert given["values"] is found.values
    assert given["base_values"].tolist() == [found.base] * 3
    assert given["feature_names"] == ["x0", "x1", "x2", "x3"]
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="shap"):
        found.to_shap()
