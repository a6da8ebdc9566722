"""Curves of columns: averages of predictions with the column replaced."""

import numpy as np
import pandas as pd
import pytest

from ridgemark import NystromClassifier, NystromRidge, load
from ridgemark.errors import ColumnWarning, DataError, ParameterError


def _table(n=400):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "area": rng.gamma(4.0, 30.0, n),
            "age": pd.Series(rng.integers(0, 50, n).astype(float)).mask(rng.random(n) < 0.1),
            "city": rng.choice(["Bern", "Chur", "Genf"], n),
            "new": rng.random(n) < 0.3,
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D"),
            "same": 1.0,
            "street": [f"s{k % 150}" for k in range(n)],
        }
    )
    y = np.log(table["area"]) + 0.5 * (table["city"] == "Bern") + 0.2 * table["new"] + 0.1 * rng.normal(size=n)
    return table, y


@pytest.fixture(scope="module")
def fitted():
    table, y = _table()
    model = NystromRidge("gaussian", bandwidth="median", ridge=1e-4, n_landmarks=80, random_state=0)
    with pytest.warns(ColumnWarning, match="'same'"):
        return model.fit(table, y), table


@pytest.mark.parametrize("column", ["area", "age", "city", "new", "when", "street"])
def test_a_curve_is_the_mean_prediction_with_the_column_replaced(fitted, column):
    model, table = fitted
    curve, background = model.curve(column), model._model.background
    kept = _rows_of(table, model, background)
    value = curve.grid[1]
    expected = model.predict(kept.assign(**{column: pd.Series([value] * len(kept), index=kept.index)}))
    assert curve.rows[:, 1] == pytest.approx(expected, abs=1e-9)
    assert curve.mean == pytest.approx(curve.rows.mean(axis=0))
    assert ((curve.low <= curve.mean) & (curve.mean <= curve.high)).all()
    assert curve.is_category == (column in ("city", "new", "street"))


def _rows_of(table, model, background):
    """Return the first 200 rows of the background as rows of the table."""
    encoder = model._rows(table)
    features = encoder.take(np.arange(len(table))).features
    numbers = [int(np.flatnonzero((features == row).all(axis=1))[0]) for row in background.rows[:200]]
    return table.iloc[numbers].reset_index(drop=True)


def test_curves_of_arrays_take_positions_and_names():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = NystromRidge(bandwidth=1.0, ridge=1e-4, n_landmarks=40, random_state=0).fit(X, X[:, 1] ** 2)
    curve = model.curve(1)
    assert curve.column == "x1"
    assert (model.curve("x1").mean == curve.mean).all()
    middle = abs(curve.grid) < 1.5
    assert curve.mean[middle] == pytest.approx(curve.grid[middle] ** 2, abs=0.2)


def test_few_values_are_the_grid():
    X = np.random.default_rng(0).integers(0, 3, size=(200, 2)).astype(float)
    model = NystromRidge(bandwidth=1.0, ridge=1e-4, n_landmarks=5, random_state=0).fit(X, X[:, 1])
    assert model.curve(0).grid.tolist() == [0.0, 1.0, 2.0]


def test_curves_of_several_outputs_and_of_loaded_models_are_the_same(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = NystromClassifier(bandwidth=2.0, ridge=1e-3, n_landmarks=30, random_state=0)
    curve = model.fit(X, np.digitize(X[:, 0], [-0.5, 0.5])).curve(0)
    assert curve.mean.shape == (40, 3)
    assert (load(model.save(tmp_path / "m")).curve(0).rows == curve.rows).all()


@pytest.mark.parametrize("column", ["nothing", 7, 1.5, None])
def test_unknown_columns_are_refused(fitted, column):
    with pytest.raises(ParameterError, match=r"column must be one of area, age, .* or a position from 0 to 6"):
        fitted[0].curve(column)


def test_columns_without_a_curve_say_so(fitted):
    with pytest.raises(ParameterError, match="column 'same' has no curve: it has one value"):
        fitted[0].curve("same")
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = NystromRidge("precomputed", ridge=1e-3, n_landmarks=9, random_state=0).fit(X @ X.T, X[:, 0])
    with pytest.raises(DataError, match="curve needs columns"):
        model.curve(0)
