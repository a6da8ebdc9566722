"""What weights mean for the schema of a table: weight zero is a row left out, and weight 2 a row written twice."""

from dataclasses import asdict

import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromClassifier, NystromRidge, leverage_scores, open_rows
from ridgemark.tables import learn_schema
from tests.tables.cases import QUICK, fitted, messy, quietly, schema

pd = pytest.importorskip("pandas")

SOURCES = ["pandas", "polars", "arrow", "parquet", "csv", "dask"]
N_COUNTED = 300


def opened(table, form, folder):
    """Return rows of a table with the target y and, where it has them, the weights w."""
    weight = "w" if "w" in table else None
    if form == "polars":
        table = pytest.importorskip("polars").from_pandas(table)
    elif form == "arrow":
        table = pytest.importorskip("pyarrow").Table.from_pandas(table, preserve_index=False)
    elif form == "dask":
        table = pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=5)
    elif form == "parquet":
        table.to_parquet(folder / f"{weight}.parquet", row_group_size=70)
        table = folder / f"{weight}.parquet"
    elif form == "csv":
        table.to_csv(folder / f"{weight}.csv", index=False)
        table = folder / f"{weight}.csv"
    return open_rows(table, target="y", weight=weight)


def with_rows_left_out(seed=0):
    """Return a table in which every column has other values where the weight is zero, and its other rows."""
    table, y = messy(N_COUNTED)
    table["lasted"] = table["lasted"] / pd.Timedelta(days=1)  # CSV has no time spans
    table["full"] = np.linspace(0.0, 1.0, N_COUNTED)
    other = messy(100, seed=1)[0].assign(lasted=1e6, rooms=90, id=2**40, unit="foot", full=np.nan, grade="z", tail="x")
    other["höhe"], other["city, name"] = 1e6, [f"town {k % 40}" for k in range(100)]
    other["when"] = pd.Timestamp("1950-01-01")
    both = pd.concat([table.assign(grade=table["grade"].astype(str)), other], ignore_index=True)
    both = both.astype({"open": "boolean", "grade": "category"}).assign(y=np.r_[y, np.full(100, 1e3)])
    both["w"] = np.repeat([1.0, 0.0], [N_COUNTED, 100])
    both = both.iloc[np.random.default_rng(seed).permutation(len(both))].reset_index(drop=True)
    return both, both[both["w"] > 0].drop(columns="w").reset_index(drop=True)


def learned(source, **options):
    """Return the fields of the schema of some rows, as they are compared."""
    fields = map(asdict, quietly(learn_schema, source, **options).fields)
    return [{name: getattr(value, "tolist", lambda v=value: v)() for name, value in one.items()} for one in fields]


@pytest.mark.parametrize("make", [np.asarray, lambda X: pd.DataFrame(X, columns=["a", "b"])], ids=["array", "frame"])
def test_rows_of_zero_weight_do_not_fill_gaps(make):
    X = np.random.default_rng(0).normal(size=(160, 2))
    y, w = X.sum(axis=1), np.repeat([1.0, 0.0], [60, 100])
    X[:10, 0], X[60:, 0] = np.nan, 1e6
    model, alone = fitted(make(X), y, w), fitted(make(X[:60]), y[:60])
    assert np.array_equal(model.landmarks_, alone.landmarks_)
    assert model.predict(make(X[:60])) == pytest.approx(alone.predict(make(X[:60])), rel=1e-9)


@pytest.mark.parametrize("form", SOURCES)
def test_rows_of_zero_weight_leave_the_schema_as_it_is(form, tmp_path):
    both, alone = with_rows_left_out()
    assert learned(opened(both, form, tmp_path)) == learned(opened(alone, form, tmp_path))


@pytest.mark.parametrize("form", SOURCES)
def test_a_sample_for_medians_has_no_rows_of_zero_weight(form, tmp_path, monkeypatch):
    monkeypatch.setattr("ridgemark.tables.learning._SAMPLED", 40)
    both, alone = with_rows_left_out()
    assert learned(opened(both, form, tmp_path)) == learned(opened(alone, form, tmp_path))


@pytest.mark.parametrize("form", SOURCES)
def test_blocks_and_partitions_may_have_no_weight(form, tmp_path, monkeypatch):
    monkeypatch.setattr("ridgemark.tables.learning._BLOCK", 30)
    both, alone = with_rows_left_out()
    both = both.sort_values("w", kind="stable", ignore_index=True)
    assert learned(opened(both, form, tmp_path)) == learned(opened(alone, form, tmp_path))


def test_texts_of_rows_of_zero_weight_do_not_say_what_a_column_holds():
    column = pd.Series(["2", "1", "4", "2024-01-01"] * 10, dtype=object)
    found = learned(open_rows({"a": column.to_numpy()}, weight=np.tile([1.0, 1.0, 1.0, 0.0], 10)))
    assert found == learned(open_rows({"a": column[column.str.len() == 1].to_numpy()}))
    assert found[0]["kind"] == "number"


@pytest.mark.parametrize("text", ["x", "3", "true", "2024-01-01"])
def test_a_column_with_text_in_rows_of_zero_weight_alone_is_left_out(text):
    column, other = np.array([text] * 5 + [None] * 25, dtype=object), np.array(["u", "v", "w"] * 10)
    found = learned(open_rows({"a": column, "b": other}, weight=np.repeat([0.0, 1.0], [5, 25])))
    assert found == learned(open_rows({"a": column[5:], "b": other[5:]}))
    assert not found[0]["parts"]


def test_gaps_of_rows_of_zero_weight_alone_are_filled_without_a_column():
    X = np.random.default_rng(0).normal(size=(90, 3)).astype(np.float32)
    y, w = X[:, 0].astype(float), np.repeat([1.0, 0.0], [60, 30])
    X[70:, 1], X[:, 2] = np.nan, 5.0
    model, alone = fitted(X, y, w), fitted(X[:60], y[:60])
    assert model.encoded_names_ == ["x0", "x1", "x2"]
    assert model.landmarks_.dtype == alone.landmarks_.dtype
    assert np.array_equal(model.landmarks_, alone.landmarks_)
    assert model.predict(X[:60]) == pytest.approx(alone.predict(X[:60]), rel=1e-6)


@pytest.mark.parametrize("form", SOURCES)
def test_weight_2_is_a_row_written_twice(form, tmp_path):
    table = with_rows_left_out()[1]
    table["tail"] = table["tail"].where(table.index % 3 > 0, "N1")
    weights = np.random.default_rng(2).integers(1, 5, N_COUNTED)
    found = learned(opened(table.assign(w=weights.astype(float)), form, tmp_path))
    expected = learned(opened(table.loc[np.repeat(table.index, weights)].reset_index(drop=True), form, tmp_path))
    assert [field.pop("least") for field in found] != [field.pop("least") for field in expected]  # 10 rows are rows
    assert found == expected
    once = learned(opened(table, form, tmp_path))
    for name in ("fill", "shares"):  # the weights matter here
        assert [field[name] for field in found] != [field[name] for field in once]


@pytest.mark.parametrize("seed", range(20))
def test_a_median_counts_values_by_their_weights(seed):
    rng = np.random.default_rng(seed)
    a, weights = rng.integers(0, 9, 2 + seed).astype(float), rng.integers(1, 4, 2 + seed)
    rows = open_rows({"a": np.r_[a, np.nan, -1.0]}, weight=np.r_[weights, 1, 0])
    assert learned(rows)[0]["fill"] == np.median(np.repeat(a, weights))


def test_a_fit_to_rows_of_weight_2_is_that_to_rows_written_twice():
    table = with_rows_left_out()[1]
    weights = np.random.default_rng(2).integers(1, 4, N_COUNTED)
    X, y = table.drop(columns=["y", "tail"]), table["y"]
    twice = np.repeat(table.index, weights)
    model, expected = fitted(X, y, weights), fitted(X.loc[twice], y.loc[twice])
    assert np.array_equal(model.landmarks_, expected.landmarks_)
    assert model.predict(X) == pytest.approx(expected.predict(X), abs=1e-9)


@pytest.mark.parametrize("weight", [1.0, 2.0**-10, 0.1, 1e9])
def test_equal_weights_change_nothing(weight, monkeypatch):
    monkeypatch.setattr("ridgemark.tables.learning._BLOCK", 30)  # tenths are added in several orders
    n, rng = 1400, np.random.default_rng(0)
    columns = {
        "number": np.r_[np.nan, np.nan, np.arange(2.0, n)],
        "equal": rng.permutation(np.repeat([f"e{k}" for k in range(200)], 7)),  # too few for columns of 0 and 1
        "ten": rng.permutation(np.repeat([f"t{k}" for k in range(140)], 10)),  # just enough
    }
    found, expected = quietly(learn_schema, open_rows(columns, weight=np.full(n, weight))), schema(columns)
    assert found.encoded_names == expected.encoded_names
    assert [len(field.names) for field in found.fields] == [2, 4, 105]
    assert found.fields[0].fill == expected.fields[0].fill
    assert found.fields[2].shares == pytest.approx(expected.fields[2].shares, rel=1e-12)


@pytest.mark.parametrize("estimator", [NystromRidge, NystromClassifier, ExactKernelRidge])
def test_every_estimator_leaves_out_rows_of_zero_weight(estimator):
    both, alone = with_rows_left_out()
    X, rows, method = both.drop(columns=["y", "w"]), alone.drop(columns="y"), "predict"
    y, targets = both["y"], alone["y"]
    if estimator is NystromClassifier:
        y, targets, method = y > 1, targets > 1, "predict_proba"
    model, expected = estimator(**QUICK), estimator(**QUICK)
    quietly(model.fit, X, y, both["w"])
    quietly(expected.fit, rows, targets)
    assert model.encoded_names_ == expected.encoded_names_
    assert np.abs(getattr(model, method)(rows) - getattr(expected, method)(rows)).max() <= 1e-6


def test_scores_leave_out_rows_of_zero_weight():
    both, alone = with_rows_left_out()
    options = {"ridge": 1e-2, "method": "exact"}
    found = quietly(leverage_scores, both.drop(columns=["y", "w"]), sample_weight=both["w"].to_numpy(), **options)
    expected = quietly(leverage_scores, alone.drop(columns="y"), **options)
    assert found.upper[both["w"] > 0] == pytest.approx(expected.upper, rel=1e-9)
