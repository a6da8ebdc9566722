"""Groups of files, frames, streams and Dask collections, of rows beyond memory, and where groups are refused."""

import numpy as np
import pytest

import ridgemark
from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge, open_rows
from ridgemark.errors import DataError, ParameterError
from tests.groups.problems import patients

pd = pytest.importorskip("pandas")
FIXED = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 30, "random_state": 0}


def frame(labels="p{}"):
    """Return rows of 40 patients in one table, in random order."""
    X, y, groups = patients(40, 6)
    table = pd.DataFrame(X, columns=["age", "bmi", "t"]).assign(
        patient=[labels.format(k) if labels else k for k in groups], w=1.0 + (groups % 3), y=y
    )
    return table.sample(frac=1.0, random_state=0, ignore_index=True)


@pytest.fixture(scope="module")
def expected():
    table = frame()
    return NystromRidge(**FIXED).fit(
        table[["age", "bmi", "t"]].to_numpy(), table["y"], sample_weight=table["w"], groups=table["patient"]
    )


@pytest.mark.parametrize("form", ["frame", "csv", "parquet", "stream", "numbers", "npz"])
def test_every_source_gives_the_fit_of_arrays(form, expected, tmp_path):
    table = frame(None if form in ("numbers", "npz") else "p{}")
    source, roles = table, {"target": "y", "weight": "w", "group": "patient"}
    if form in ("csv", "parquet"):
        pytest.importorskip("pyarrow")
        source = tmp_path / f"rows.{form}"
        table.to_csv(source, index=False) if form == "csv" else table.to_parquet(source)
    elif form == "stream":
        pyarrow = pytest.importorskip("pyarrow")
        source = pyarrow.RecordBatchReader.from_stream(pyarrow.Table.from_pandas(table))
    elif form == "npz":
        source, roles = tmp_path / "rows.npz", {"weight": "w", "group": "p"}
        parts = {"X": table[["age", "bmi", "t"]].to_numpy(), "y": table["y"], "w": table["w"], "p": table["patient"]}
        np.savez(source, **parts)
    rows = open_rows(source, **roles)
    assert rows.n_features == 3
    for budget in (None, 100_000) if form in ("frame", "numbers") else (100_000,):
        model = NystromRidge(**FIXED, memory_budget=budget).fit(rows)
        assert model.n_groups_ == 40
        assert model.loo_residuals_ == pytest.approx(expected.loo_residuals_, abs=1e-8)
        assert model.ridge_ == expected.ridge_


def test_the_column_of_groups_is_a_feature_where_it_is_asked_for():
    assert open_rows(frame(), target="y", group="patient").feature_names == ("age", "bmi", "t", "w")
    rows = open_rows(frame(), target="y", columns=["t", "patient"], group="patient")
    assert rows.feature_names == ("t", "patient")
    model = NystromRidge(**FIXED).fit(rows)
    assert model.n_groups_ == 40
    assert "patient" in model.encoded_names_[1]


def test_a_missing_label_is_refused_with_its_row(tmp_path):
    pytest.importorskip("pyarrow")
    table = frame()
    table.loc[11, "patient"] = None
    table.to_csv(tmp_path / "rows.csv", index=False)
    for source in (table, tmp_path / "rows.csv"):
        with pytest.raises(DataError, match=r"row 11.*'patient'.*label of its group"):
            NystromRidge(**FIXED).fit(open_rows(source, target="y", group="patient"))


def test_dask_needs_each_group_in_one_partition_and_says_how_to_shuffle(expected):
    dask = pytest.importorskip("dask.dataframe")
    table = frame()
    apart = dask.from_pandas(table, npartitions=3)
    with pytest.raises(DataError, match=r'several partitions.*frame.shuffle\(on="patient"\).persist\(\)'):
        open_rows(apart, target="y", weight="w", group="patient")
    together = apart.shuffle(on="patient").persist()
    model = NystromRidge(**FIXED, selection=expected.landmarks_).fit(
        open_rows(together, target="y", weight="w", group="patient")
    )
    assert model.n_groups_ == 40
    assert model.ridge_ == expected.ridge_
    assert np.sort(model.loo_residuals_) == pytest.approx(np.sort(expected.loo_residuals_), abs=1e-8)


def test_rows_beyond_memory_are_judged_in_whole_groups():
    dask = pytest.importorskip("dask.dataframe")
    table = pd.concat([frame(f"{k}p{{}}") for k in range(5)], ignore_index=True)
    together = dask.from_pandas(table, npartitions=3).shuffle(on="patient").persist()
    rows = open_rows(together, target="y", group="patient")
    whole = NystromRidge(**FIXED).fit(table[["age", "bmi", "t", "w"]], table["y"], groups=table["patient"])
    beyond = NystromRidge(**FIXED, selection=whole.landmarks_, memory_budget=76_000).fit(rows)
    assert not hasattr(beyond, "loo_residuals_")
    errors = [model.ridge_path_.loo_error[model.ridge_path_.chosen[0], 0] for model in (whole, beyond)]
    assert errors[1] == pytest.approx(errors[0], rel=0.05)
    assert beyond.calibration_.n_distinct == 100  # what the budget holds


def test_an_exact_fit_takes_the_ridge_of_groups():
    X, y, groups = patients(30, 10)
    fixed = {"kernel": "gaussian", "bandwidth": 1.0, "random_state": 0}
    alone, together = (ExactKernelRidge(**fixed).fit(X, y, groups=labels) for labels in (None, groups))
    landmarks = NystromRidge(**fixed, n_landmarks=300).fit(X, y, groups=groups)
    assert together.ridge_ > 10 * alone.ridge_
    assert 0.1 < together.ridge_ / landmarks.ridge_ < 10


def test_a_model_with_groups_is_saved_and_calibrated_again(expected, tmp_path):
    table = frame()
    X = table[["age", "bmi", "t"]].to_numpy()
    loaded = ridgemark.load(expected.save(tmp_path / "m", sums=True))
    assert loaded.n_groups_ == 40
    assert (loaded.predict_interval(X, adaptive=False) == expected.predict_interval(X, adaptive=False)).all()
    again = loaded.calibrate(X, table["y"], table["w"], groups=table["patient"])
    assert again.loo_residuals_ == pytest.approx(expected.loo_residuals_, abs=1e-8)
    with pytest.raises(DataError, match="fitted with groups"):
        again.calibrate(X, table["y"], table["w"])


def test_where_groups_have_no_meaning_they_are_refused():
    X, y, groups = patients(10, 5)
    with pytest.raises(ParameterError, match="takes no groups"):
        NystromFeatures().fit(X, y, groups=groups)
    with pytest.raises(ParameterError, match="partial_fit takes no groups"):
        NystromRidge(**FIXED).partial_fit(open_rows(X, target=y, group=groups))
    with pytest.raises(ParameterError, match="was fitted with groups"):
        NystromRidge(**FIXED).fit(X, y, groups=groups).partial_fit(X, y)
