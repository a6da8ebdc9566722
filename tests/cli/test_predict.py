"""Predictions are written part by part: the same numbers, in bounded memory, completely or not at all."""

import json
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from ridgemark import NystromRidge, load
from ridgemark.cli import predict as module
from ridgemark.cli.predict import _parts
from tests.helpers import slowly


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(9000, 3))


@pytest.fixture(scope="module")
def model_file(rows, tmp_path_factory):
    targets = np.c_[np.sin(rows[:500, 0]), rows[:500, 1]]
    model = NystromRidge(bandwidth=2.0, ridge=[1e-4], n_landmarks=30, random_state=0).fit(rows[:500], targets)
    return model.save(tmp_path_factory.mktemp("model") / "m.ridgemark")


@pytest.fixture
def data(rows, tmp_path):
    np.save(tmp_path / "rows.npy", rows)
    return tmp_path / "rows.npy"


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 256)
    monkeypatch.setattr(module, "_MOST_BLOCKS", 4)


def read(path):
    if path.suffix == ".csv":
        return np.loadtxt(path, delimiter=",", skiprows=1)
    if path.suffix == ".npy":
        return np.load(path)
    table = pytest.importorskip("pyarrow.parquet").read_table(path)
    return np.column_stack([table.column(name).to_numpy() for name in table.column_names])


@pytest.mark.parametrize("ending", ["csv", "npy", "parquet"])
def test_a_table_in_many_parts_equals_the_predictions_in_python(
    ending, rows, model_file, data, ridgemark, tmp_path, small_parts
):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"p.{ending}"
    assert ridgemark("predict", model_file, data, "--output", out, "--coverage", "0.9")[::2] == (0, [])
    model = load(model_file)
    ends = model.predict_interval(rows, coverage=0.9)
    expected = [column for t in (0, 1) for column in (model.predict(rows)[:, t], ends[:, 0, t], ends[:, 1, t])]
    np.testing.assert_allclose(read(out), np.column_stack(expected), rtol=1e-10, atol=1e-12)
    assert {path.name for path in tmp_path.iterdir()} == {"rows.npy", f"p.{ending}"}


def test_several_coverages_and_the_deviation_are_columns(rows, model_file, data, ridgemark, tmp_path):
    out = tmp_path / "p.csv"
    assert ridgemark("predict", model_file, data, "--output", out, "--coverage", "0.5,0.9", "--std")[0] == 0
    model = load(model_file)
    kinds = ("prediction", "std", "lower_0.5", "upper_0.5", "lower_0.9", "upper_0.9")
    assert out.read_text().splitlines()[0] == ",".join(f"{kind}_{t}" for t in (0, 1) for kind in kinds)
    (mean, std), ends = model.predict(rows, return_std=True), model.predict_interval(rows, [0.5, 0.9])
    of_target = [[mean[:, t], std[:, t], *(ends[:, end, k, t] for k in (0, 1) for end in (0, 1))] for t in (0, 1)]
    np.testing.assert_allclose(read(out), np.column_stack(of_target[0] + of_target[1]), rtol=1e-10, atol=1e-12)
    for wrong in ("1", "0.5,2", "much"):
        code, _, (line,) = ridgemark("predict", model_file, data, "--output", out, "--force", "--coverage", wrong)
        assert code == 2
        assert "number" in line


def test_effects_are_a_table_of_averages_and_one_of_rows(rows, model_file, data, ridgemark, tmp_path):
    code, printed, _ = ridgemark("effects", model_file, data, "--output", tmp_path / "e.npy")
    assert code == 0
    model = load(model_file)
    summary = model.effects_summary(rows)
    assert str(summary) in printed
    expected = np.moveaxis(model.effects(rows), 2, 1).reshape(len(rows), -1)
    np.testing.assert_allclose(np.load(tmp_path / "e.npy"), expected, rtol=1e-9, atol=1e-12)
    record = json.loads(ridgemark("effects", model_file, data, "--json")[1])
    assert record["n_rows"] == 9000
    assert record["effects"] == summary.to_record()


def test_one_target_is_one_column_in_every_format(rows, data, ridgemark, tmp_path, small_parts):
    model = NystromRidge(bandwidth=2.0, ridge=1e-4, n_landmarks=30, random_state=0).fit(rows[:500], rows[:500, 0])
    path = model.save(tmp_path / "m")
    for name in ("p.npy", "p.csv"):
        assert ridgemark("predict", path, data, "--output", tmp_path / name)[0] == 0
        assert read(tmp_path / name).shape == (9000,)
    np.testing.assert_allclose(read(tmp_path / "p.npy"), model.predict(rows), rtol=1e-10, atol=1e-12)
    assert np.array_equal(read(tmp_path / "p.npy"), read(tmp_path / "p.csv"))


@pytest.mark.parametrize("ending", ["npy", *slowly("csv")])
def test_memory_does_not_grow_with_the_rows(ending, model_file, ridgemark, tmp_path, small_parts):
    peaks = []
    for n in (10_000, 10_000, 130_000):  # the first run also counts what is imported
        np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (n, 3)).flush()
        tracemalloc.start()
        try:
            out = tmp_path / f"{n}.{ending}"
            assert ridgemark("predict", model_file, tmp_path / "rows.npy", "--output", out, "--force")[0] == 0
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert len(read(tmp_path / f"130000.{ending}")) == 130_000
    assert peaks[2] < peaks[1] + 700_000  # 120,000 further rows of two targets are 1.9 MB


@pytest.mark.parametrize("ending", ["csv", "npy", "parquet"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_prediction_leaves_what_was_there(
    failure, ending, model_file, data, ridgemark, tmp_path, small_parts, monkeypatch
):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / f"p.{ending}"
    out.write_text("earlier")

    def interrupted(*arguments):
        parts = _parts(*arguments)
        yield next(parts)
        yield next(parts)
        assert len(list(tmp_path.glob(".ridgemark-*"))) == 1  # partly written, next to the output
        raise failure

    monkeypatch.setattr(module, "_parts", interrupted)
    code, printed, errors = ridgemark("predict", model_file, data, "--output", out, "--force")
    assert (code, printed, len(errors)) == (130 if failure is KeyboardInterrupt else 2, "", 1)
    assert out.read_text() == "earlier"
    assert {path.name for path in tmp_path.iterdir()} == {"rows.npy", out.name}


def test_a_bad_row_in_a_late_part_is_named_and_nothing_is_written(
    rows, model_file, data, ridgemark, tmp_path, small_parts
):
    bad = rows.copy()
    bad[8000, 1] = np.inf
    np.save(data, bad)
    code, _, errors = ridgemark("predict", model_file, data, "--output", tmp_path / "p.csv")
    assert (code, len(errors)) == (2, 1)
    assert "row 8000" in errors[0]
    assert list(tmp_path.iterdir()) == [data]


def test_parquet_without_the_extra_is_refused_before_the_work(model_file, ridgemark, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, errors = ridgemark("predict", model_file, tmp_path / "none.npy", "--output", tmp_path / "p.parquet")
    assert (code, len(errors)) == (2, 1)
    assert "ridgemark[arrow]" in errors[0]
    assert "Writing Parquet" in errors[0]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_are_found_by_the_names_a_model_of_python_knows(ending, rows, ridgemark, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows[:300], columns=["a", "2", "c"])
    model = NystromRidge(bandwidth=2.0, ridge=1e-4, n_landmarks=30, random_state=0).fit(frame, rows[:300, 0])
    path = model.save(tmp_path / "m")
    table = frame.assign(more=1.0)[["c", "more", "a", "2"]]  # in another order, with a column of no use
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(tmp_path / "new.parquet")
    else:
        table.to_csv(tmp_path / "new.csv", index=False)
    assert ridgemark("predict", path, tmp_path / f"new.{ending}", "--output", tmp_path / "p.csv")[0] == 0
    np.testing.assert_allclose(read(tmp_path / "p.csv"), model.predict(frame), rtol=1e-12)
    table.drop(columns="c").to_csv(tmp_path / "less.csv", index=False)
    code, _, errors = ridgemark("predict", path, tmp_path / "less.csv", "--output", tmp_path / "q.csv")
    assert code == 2
    assert "there is no column 'c'" in errors[0]


def test_columns_without_names_are_taken_by_position(rows, ridgemark, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows[:300], columns=["a", "b", "c"])
    model = NystromRidge(bandwidth=2.0, ridge=1e-4, n_landmarks=30, random_state=0).fit(frame, rows[:300, 0])
    np.save(tmp_path / "new.npy", rows[:300])
    path = model.save(tmp_path / "m")
    assert ridgemark("predict", path, tmp_path / "new.npy", "--output", tmp_path / "p.csv")[0] == 0
    np.testing.assert_allclose(read(tmp_path / "p.csv"), model.predict(frame), rtol=1e-12)


def test_a_file_without_names_is_predicted_with_and_without_its_target(rows, tmp_path, ridgemark):
    weight, y = np.ones(300), np.sin(rows[:300, 0])
    np.save(tmp_path / "rows.npy", np.c_[weight, rows[:300], y])
    np.save(tmp_path / "new.npy", rows[:300])
    code, _, errors = ridgemark(
        *("fit", tmp_path / "rows.npy", "--target", "-1", "--weight", "0", "--output", tmp_path / "model"),
        *("--bandwidth", "2", "--landmarks", "30", "--ridge", "1e-4"),
    )
    assert code == 0, errors
    for name in ("rows", "new"):
        ridgemark("predict", tmp_path / "model", tmp_path / f"{name}.npy", "--output", tmp_path / f"{name}-out.npy")
    assert np.array_equal(np.load(tmp_path / "rows-out.npy"), np.load(tmp_path / "new-out.npy"))
    scored = ridgemark("scores", tmp_path / "rows.npy", "--model", tmp_path / "model", "--output", tmp_path / "s.csv")
    assert scored[0] == 0, scored


def test_contributions_are_printed_and_add_up(rows, model_file, data, ridgemark):
    code, printed, _ = ridgemark("explain", model_file, data, "--row", "3,17")
    assert code == 0
    assert [line for line in printed.splitlines() if line.startswith("Row")] == ["Row 3", "Row 17"]
    record = json.loads(ridgemark("explain", model_file, data, "--row", "17", "--json")[1])
    model = load(model_file)
    (row,) = record["rows"]
    assert row["prediction"] == pytest.approx(model.predict(rows[17:18])[0].tolist())
    total = np.sum([entry["contribution"] for entry in row["contributions"]], axis=0)
    assert total + row["base"] == pytest.approx(row["prediction"])
    for wrong, words in (("9999", "must be from 0 to 8999"), ("-1", "must be from 0"), ("x", "must be a row number")):
        code, _, (line,) = ridgemark("explain", model_file, data, "--row", wrong)
        assert code == 2
        assert words in line


def test_novelty_is_written_beside_predictions(rows, model_file, data, ridgemark, tmp_path):
    out = tmp_path / "p.csv"
    assert ridgemark("predict", model_file, data, "--output", out, "--novelty")[0] == 0
    table, novelty = pd.read_csv(out), load(model_file).novelty(rows)
    assert table["share_as_far"].to_numpy() == pytest.approx(novelty.share)
    assert (table["novel"] == novelty.flag).all()
    beyond = table["columns_beyond"].notna().to_numpy()
    assert (beyond == novelty.beyond.any(axis=1)).all()
    code, _, (line,) = ridgemark("predict", model_file, data, "--output", tmp_path / "p.npy", "--novelty")
    assert code == 2
    assert "can hold only numbers; with --novelty" in line
