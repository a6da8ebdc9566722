"""A messy Parquet file through the commands, without an option but the target."""

import json

import numpy as np
import pytest

from ridgemark import load
from tests.tables.cases import fitted, messy, quietly

pytestmark = pytest.mark.usefixtures("no_figures")

pytest.importorskip("pyarrow")

PLAIN = "--bandwidth", "median", "--keep-sums"
_FEW = "left out, as coverage 0.9 needs at least 9 distinct rows of features, and there are 4"


def test_a_messy_table_is_fitted_certified_and_predicted(ridgemark, tmp_path):
    table, y = messy()
    data, model, output = tmp_path / "t.parquet", tmp_path / "m.ridgemark", tmp_path / "p.npy"
    table.assign(y=y).to_parquet(data, row_group_size=100)
    code, _, said = ridgemark("fit", data, "--target", "y", "--output", model, "--test", data, *PLAIN)
    assert code == 0
    assert any("column 'id' numbers the rows" in line for line in said)
    assert ridgemark("certify", model, data)[0] == 0
    later = table.copy()
    later.loc[::3, "city, name"] = "Bonn"
    later.to_parquet(tmp_path / "later.parquet", row_group_size=70)
    code, _, said = ridgemark("predict", model, tmp_path / "later.parquet", "--output", output, "--interval", "0.9")
    assert code == 0
    assert sum("has 1 level not seen in the fit, in 100 rows (such as 'Bonn')" in line for line in said) == 1
    python = fitted(table, y, kernel="auto", ridge="loo", n_landmarks="auto")
    assert np.load(output)[:, 0] == pytest.approx(quietly(python.predict, later), rel=1e-9, abs=1e-9)


def test_the_page_of_a_table_shows_effects_of_its_columns(ridgemark, tmp_path):
    pytest.importorskip("matplotlib")
    table, y = messy()
    data, page = tmp_path / "t.parquet", tmp_path / "m.html"
    table.assign(y=y).to_parquet(data)
    options = ("--target", "y", "--output", tmp_path / "m", "--bandwidth", "median", "--report", page)
    assert ridgemark("fit", data, *options)[0] == 0
    assert "Average effects" in page.read_text()
    assert ridgemark("report", tmp_path / "m", "--output", tmp_path / "again.html", "--test", data)[0] == 0


def test_options_of_columns_reach_the_schema(ridgemark, tmp_path):
    table, y = messy()
    data = tmp_path / "t.parquet"
    table.assign(y=y, zone=np.arange(len(y)) % 3).to_parquet(data)
    fit = ("fit", data, "--target", "y", "--bandwidth", "median", "--output")
    assert ridgemark(*fit, tmp_path / "m", "--drop", "id", "--categorical", "zone", "--unknown", "error")[0] == 0
    names = load(tmp_path / "m").encoded_names_
    assert {"zone=0", "zone=1", "zone=2"} <= set(names)
    assert "id" not in names
    table.assign(zone=7).to_parquet(tmp_path / "new.parquet")
    code, _, said = ridgemark("predict", tmp_path / "m", tmp_path / "new.parquet", "--output", tmp_path / "p.csv")
    assert code == 2
    assert "zone" in said[-1]
    code, _, said = ridgemark(*fit, tmp_path / "n", "--missing", "error")
    assert code == 2
    assert "missing" in said[-1]


def test_names_with_commas_stand_in_double_quotes(ridgemark, tmp_path):
    table, y = messy()
    data = tmp_path / "t.parquet"
    table.assign(y=y).to_parquet(data)
    fit = ("fit", data, "--target", "y", "--bandwidth", "median", "--output", tmp_path / "m")
    code, _, said = ridgemark(*fit, "--drop", "id,city, name")
    assert code == 2
    assert "drop: there is no column 'city' in " in said[-1]
    assert "t.parquet'; did you mean 'city, name', one name? On the" in said[-1]
    assert """quote it: '"city, name"'""" in said[-1]
    assert ridgemark(*fit, "--drop", "id", "--drop", '"city, name"')[0] == 0
    assert not [name for name in load(tmp_path / "m").encoded_names_ if name == "id" or name.startswith("city")]
    keep = ("predict", tmp_path / "m", data, "-o", tmp_path / "p.csv", "--keep", '"city, name",id')
    assert ridgemark(*keep)[0] == 0
    assert (tmp_path / "p.csv").read_text().startswith('"city, name",id,prediction\n')


def test_a_fit_with_a_checkpoint_is_the_same_and_removes_it(ridgemark, tmp_path):
    table, y = messy()
    data = tmp_path / "t.parquet"
    table.assign(y=y).to_parquet(data)
    fit = ("fit", data, "--target", "y", "--bandwidth", "median", "--output")
    assert ridgemark(*fit, tmp_path / "one")[0] == 0
    assert ridgemark(*fit, tmp_path / "other", "--checkpoint", tmp_path / "c")[0] == 0
    assert not (tmp_path / "c").exists()
    one, other = load(tmp_path / "one"), load(tmp_path / "other")
    assert np.array_equal(one.landmark_indices_, other.landmark_indices_)
    assert one.predict(table) == pytest.approx(other.predict(table), rel=1e-7)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_without_a_target_are_left_out_with_one_line(ending, ridgemark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, y = messy()
    whole = table.drop(columns=["id", "tail", "lasted", "unit"]).assign(
        y=np.where(np.arange(len(y)) % 10 == 0, np.nan, y)
    )
    paths = [f"{name}.{ending}" for name in ("rows", "test", "clean")]
    for path, part in zip(paths, (whole, whole[:50], whole.dropna(subset="y")), strict=True):
        part.to_csv(path, index=False) if ending == "csv" else part.to_parquet(path, index=False)
    rows, test, clean = paths
    fit = ("--target", "y", *PLAIN, "--landmarks", 40, "--output")
    code, _, said = ridgemark("fit", rows, *fit, tmp_path / "m", "--test", test)
    assert code == 0
    line = f"ridgemark: 30 of the 300 rows of '{rows}' lack 'y' and are left out"
    assert line in said
    assert sum("5 of the 50 rows" in line for line in said) == 1
    assert ridgemark("fit", clean, *fit, tmp_path / "n")[0] == 0
    assert np.array_equal(load(tmp_path / "m").dual_coef_, load(tmp_path / "n").dual_coef_)
    assert ridgemark("certify", tmp_path / "m", rows)[2] == [line]
    assert ridgemark("predict", tmp_path / "m", rows, "--output", tmp_path / "p.npy")[2] == []
    assert len(np.load(tmp_path / "p.npy")) == 300


def test_scores_take_a_table_with_text(ridgemark, tmp_path):
    table, y = messy()
    whole = table.assign(y=np.where(np.arange(len(y)) % 10 == 0, np.nan, y))
    whole.to_parquet(tmp_path / "t.parquet")
    options = ("--target", "y", "--drop", "id", "--output", tmp_path / "s.npy")
    code, out, said = ridgemark("scores", tmp_path / "t.parquet", *options)
    assert code == 0
    assert "left out" in said[0]
    assert "row 0 " not in out
    assert np.array_equal(np.load(tmp_path / "s.npy")[:, 0], np.delete(np.arange(300), np.arange(0, 300, 10)))
    fit = ("--target", "y", "--drop", "id", "--bandwidth", "median", "--landmarks", 40, "--output", tmp_path / "m")
    assert ridgemark("fit", tmp_path / "t.parquet", *fit)[0] == 0
    assert ridgemark("scores", tmp_path / "t.parquet", "--model", tmp_path / "m", "--top", 3)[0] == 0


def test_the_form_of_a_csv_file_is_kept_with_the_model(ridgemark, tmp_path):
    table = messy()[0][["höhe", "city, name"]].dropna().assign(y=lambda rows: rows["höhe"] / 3)
    for name in ("rows", "new"):
        table.to_csv(tmp_path / f"{name}.csv", index=False, sep="|", decimal=",")
    table.to_parquet(tmp_path / "new.parquet")
    form = ("--delimiter", "|", "--decimal", ",")
    fit = ("--target", "y", *PLAIN, "--landmarks", 40, "--output", tmp_path / "m", *form)
    assert ridgemark("fit", tmp_path / "rows.csv", *fit)[0] == 0
    outputs = []
    for name in ("new.csv", "new.parquet"):
        keep = ("--keep", "höhe", "--output", tmp_path / f"{name}.out.csv")
        assert ridgemark("predict", tmp_path / "m", tmp_path / name, *keep)[0] == 0
        outputs.append(np.loadtxt(tmp_path / f"{name}.out.csv", delimiter=",", skiprows=1, usecols=-1))
    assert outputs[0] == pytest.approx(outputs[1], rel=1e-12, abs=1e-12)
    assert ridgemark("certify", tmp_path / "m", tmp_path / "rows.csv")[0] == 0


def test_too_few_distinct_rows_leave_the_intervals_out(ridgemark, tmp_path):
    pytest.importorskip("matplotlib")
    y = 0.1 * np.random.default_rng(0).normal(size=100)
    cells = [f"{k % 4 + 3},{k % 2 + noise!r}" for k, noise in enumerate(y.tolist())]
    (tmp_path / "ab.csv").write_text("\n".join(["dose,y", *cells]))
    model, test = tmp_path / "m", ("--test", tmp_path / "ab.csv")
    fit = ("fit", tmp_path / "ab.csv", "-t", "y", "-o", model, "--report", tmp_path / "m.html", *test)
    code, out, _ = ridgemark(*fit)
    assert code == 0
    assert [line.split(maxsplit=1)[1] for line in out.splitlines() if line.startswith("intervals")] == [_FEW]
    assert "100 rows have 4 different features; equal rows are left out together" in " ".join(out.split())
    assert f"Intervals are {_FEW}." in (tmp_path / "m.html").read_text()
    assert _FEW in ridgemark("info", model)[1]
    assert ridgemark("report", model, "-o", tmp_path / "again.html", *test)[0] == 0


def _write(path, header, columns):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in zip(*columns, strict=True))]))
    return path


def test_a_dropped_column_is_neither_read_nor_needed_to_predict(ridgemark, tmp_path):
    x, n = np.random.default_rng(0).normal(size=60).tolist(), range(60)
    columns = [n, [2**60 + k for k in n], x, [k % 3 for k in n], np.sin(x).tolist()]
    rows = _write(tmp_path / "rows.csv", ",id,x,zone,y", columns)
    new = _write(tmp_path / "new.csv", "zone,x", [columns[3], x])
    fit = ("fit", rows, "-t", "y", *PLAIN, "--landmarks", 20, "--test", rows, "--output")
    assert ridgemark(*fit, tmp_path / "m", "--drop", "0,id", "--categorical", 3)[0] == 0
    model = load(tmp_path / "m")
    assert list(model.feature_names_in_) == ["x", "zone"]
    assert model.encoded_names_[-1] == "zone=2"
    for command in (("predict", new, "-o", tmp_path / "p.csv"), ("effects", new), ("certify", rows)):
        assert ridgemark(command[0], tmp_path / "m", *command[1:])[0] == 0
    code, _, said = ridgemark(*fit, tmp_path / "n", "--drop", "0,id,y")
    assert (code, "column 'y' is both in target and in drop" in said[-1]) == (2, True)
    code, _, said = ridgemark(*fit, tmp_path / "n", "--drop", "0,id", "--numeric", "id")
    assert (code, "--numeric names 'id', which is not a feature" in said[-1]) == (2, True)


def test_columns_without_names_are_dropped_by_position(ridgemark, tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "new.npy", rows[:, :3])
    fit = ("fit", tmp_path / "rows.npy", "-t", 3, "--drop", 1, "--bandwidth", "median", "--output", tmp_path / "m")
    assert ridgemark(*fit)[0] == 0
    assert ridgemark("predict", tmp_path / "m", tmp_path / "new.npy", "-o", tmp_path / "p.npy")[0] == 0
    assert np.array_equal(np.load(tmp_path / "p.npy"), load(tmp_path / "m").predict(rows[:, [0, 2]]))


def test_a_column_that_the_fit_left_out_is_not_needed_to_predict(ridgemark, tmp_path):
    x, text = np.random.default_rng(0).normal(size=60).tolist(), ["ab"[k % 2] for k in range(60)]
    rows = _write(tmp_path / "rows.csv", "x,k,text,y", [x, [7] * 60, text, np.sin(x).tolist()])
    new = _write(tmp_path / "new.csv", "text,x", [text, x])
    fit = ("fit", rows, "-t", "y", "--bandwidth", "median", "--output", tmp_path / "m")
    assert "left out of the features: 'k' (one value)" in ridgemark(*fit)[2][-1]
    for data in (rows, new):
        assert ridgemark("predict", tmp_path / "m", data, "-o", f"{data}.npy")[0] == 0
        assert ridgemark("effects", tmp_path / "m", data)[0] == 0
    assert np.array_equal(np.load(f"{rows}.npy"), np.load(f"{new}.npy"))
    assert "columns 2: 'x', 'text'" in " ".join(ridgemark("info", tmp_path / "m")[1].split())
    record = json.loads(ridgemark("info", tmp_path / "m", "--json")[1])
    assert (record["feature_names"], record["n_features"]) == (["x", "text"], 2)


def test_the_page_names_the_columns_that_are_features(ridgemark, tmp_path):
    pytest.importorskip("matplotlib")
    x, text = np.random.default_rng(0).normal(size=60).tolist(), ["ab"[k % 2] for k in range(60)]
    rows = _write(tmp_path / "rows.csv", "x,k,text,y", [x, [7] * 60, text, np.sin(x).tolist()])
    fit = ("fit", rows, "-t", "y", "--bandwidth", "median", "-o", tmp_path / "m", "--report", tmp_path / "m.html")
    _, out, _ = ridgemark(*fit)
    assert "60 rows of 2 columns" in " ".join(out.split())
    page = (tmp_path / "m.html").read_text()
    assert "y, predicted from 2 columns of 60 rows" in page
    assert 'data-heading="read as">left out: one value</td>' in page


@pytest.fixture
def towns(tmp_path):
    """rows.csv with a town and a day, and files whose town or day the rows do not have."""
    x, n = np.random.default_rng(0).normal(size=60).tolist(), range(60)
    days, town = [f"2020-01-{1 + k % 28:02}" for k in n], ["Ulm" if k % 2 else "Bonn" for k in n]
    other = {"rows": {}, "towns": {"town": ["Rome"] * 60}, "days": {"day": [f"{1 + k % 28}.1.2020" for k in n]}}
    other["text"] = {"x": ["?", *x[1:]]}
    for name, changed in other.items():
        columns = {"x": x, "town": town, "day": days, "kind": town, "y": np.sin(x).tolist()} | changed
        _write(tmp_path / f"{name}.csv", ",".join(columns), columns.values())
    return tmp_path


@pytest.mark.parametrize("target", ["y", "kind"])
def test_levels_of_test_rows_that_the_fit_has_not_seen_are_told_once(target, ridgemark, towns):
    pytest.importorskip("matplotlib")
    columns = ("--target", target, "--columns", "x,town", "--bandwidth", "median", "--landmarks", 20)
    test = ("--test", towns / "towns.csv", "--output")
    fit, report = ("fit", towns / "rows.csv", *columns), ("report", towns / "m")
    for command, output in ((fit, "m"), (report, "m.html")):
        code, _, said = ridgemark(*command, *test, towns / output)
        assert code == 0
        assert (
            sum("column 'town' has 1 level not seen in the fit, in 60 rows (such as 'Rome')" in line for line in said)
            == 1
        )


@pytest.mark.parametrize(
    ("name", "unknown", "message"),
    [("towns", "error", "Rome"), ("days", "ignore", "1.1.2020"), ("text", "ignore", "?")],
)
def test_test_rows_that_cannot_be_encoded_are_refused_before_the_fit(name, unknown, message, ridgemark, towns):
    options = ("-t", "y", "--unknown", unknown, "--output", towns / "m", "--test", towns / f"{name}.csv")
    code, _, said = ridgemark("fit", towns / "rows.csv", *options)
    assert (code, f"'{message}'" in said[-1]) == (2, True)
    assert not (towns / "m").exists()


def test_what_is_learned_to_check_test_rows_is_learned_for_the_fit(ridgemark, towns, monkeypatch):
    learned = []
    monkeypatch.setattr("ridgemark.tables.learning.learn_schema", lambda *_, **__: learned.append(1))
    columns = ("-t", "y", "--columns", "x", "--bandwidth", "median")
    rows = towns / "rows.csv"
    assert ridgemark("fit", rows, *columns, "--output", towns / "m", "--test", rows)[0] == 0
    assert len(learned) == 1
