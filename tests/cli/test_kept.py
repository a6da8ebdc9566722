"""`predict` keeps columns of its input, reads the standard input and writes the standard output."""

import csv
import gzip
import io
import re
import subprocess
import sys

import numpy as np
import pytest

from ridgemark import NystromRidge, load

IDS = ["x-1", "=evil()", "-5", "", 'say "a, b"', "éß", "7", "8", "9", "10"]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(10, 2))


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """A model saved from Python, which knows its features by name."""
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(1).normal(size=(80, 2))
    model = NystromRidge(bandwidth=2.0, ridge=1e-3, n_landmarks=20, random_state=0)
    frame = pandas.DataFrame(X, columns=["b", "a"])
    return model.fit(frame, X[:, 0] - X[:, 1]).save(tmp_path_factory.mktemp("model") / "m.ridgemark")


@pytest.fixture(scope="module")
def expected(model_file, rows):
    return load(model_file).predict(as_frame(rows))


def as_frame(rows):
    return pytest.importorskip("pandas").DataFrame(rows[:, ::-1], columns=["b", "a"])


@pytest.fixture
def data(rows, tmp_path):
    """A file with an id, a column that no model knows, and the features in another order."""
    with (tmp_path / "new.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "a", "name", "b"])
        writer.writerows(
            [one, a, f"row {k}", b] for k, (one, (a, b)) in enumerate(zip(IDS, rows.tolist(), strict=True))
        )
    return tmp_path / "new.csv"


def read(text):
    return list(csv.reader(io.StringIO(text)))


def test_columns_of_the_input_are_kept_as_they_are(model_file, data, expected, ridgemark, tmp_path):
    out = tmp_path / "p.csv"
    code, _, said = ridgemark("predict", model_file, data, "-o", out, "--keep", "name,id")
    assert (code, len(said)) == (0, 1)
    assert said[0].startswith("ridgemark: 1 cell that a spreadsheet would read as a formula got an apostrophe")
    header, *found = read(out.read_text(encoding="utf-8"))
    assert header == ["name", "id", "prediction"]
    assert [row[1] for row in found] == ["'=evil()" if one == "=evil()" else one for one in IDS]
    assert [row[0] for row in found] == [f"row {k}" for k in range(10)]
    assert np.array_equal(np.array([row[2] for row in found], dtype=float), expected)


def test_a_model_from_python_finds_its_columns_by_name(model_file, data, expected, ridgemark, tmp_path):
    assert ridgemark("predict", model_file, data, "--output", tmp_path / "p.npy")[0] == 0
    assert np.array_equal(np.load(tmp_path / "p.npy"), expected)


def test_one_line_counts_the_cells_that_got_an_apostrophe(model_file, ridgemark, tmp_path):
    (tmp_path / "new.csv").write_text("a,b,name\n1,2,=1+1\n1,2,-\n1,2,-x\n1,2,ok\n")
    predict = ("predict", model_file, tmp_path / "new.csv", "--keep", "name", "-o")
    code, _, said = ridgemark(*predict, tmp_path / "p.csv")
    assert (code, len(said)) == (0, 1)
    assert said[0].startswith("ridgemark: 2 cells that a spreadsheet would read as a formula got an apostrophe; write")
    written = [line.split(",")[0] for line in (tmp_path / "p.csv").read_text().splitlines()]
    assert written == ["name", "'=1+1", "-", "'-x", "ok"]
    assert ridgemark(*predict, tmp_path / "p.parquet")[::2] == (0, [])


def test_typed_columns_of_parquet_keep_their_types(model_file, rows, expected, ridgemark, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "id": [None, *range(1, 10)],
            "a": rows[:, 0],
            "b": rows[:, 1],
            "day": pa.array(range(10), pa.date32()),
            "s": IDS,
        }
    )
    parquet.write_table(table, tmp_path / "new.parquet", row_group_size=4)
    for ending in ("parquet", "csv"):
        out = tmp_path / f"p.{ending}"
        assert ridgemark("predict", model_file, tmp_path / "new.parquet", "-o", out, "--keep", "id,day,s")[0] == 0
    made = parquet.read_table(tmp_path / "p.parquet")
    assert made.select(["id", "day", "s"]).equals(table.select(["id", "day", "s"]))
    assert np.array_equal(made.column("prediction").to_numpy(), expected)
    assert [row[:2] for row in read((tmp_path / "p.csv").read_text())[1:3]] == [["", "1970-01-01"], ["1", "1970-01-02"]]


def test_columns_without_names_are_kept_by_position(model_file, rows, ridgemark, tmp_path):
    table = np.c_[np.arange(10.0), rows[:, ::-1]]
    np.save(tmp_path / "new.npy", table)
    (tmp_path / "new.csv").write_text("\n".join(",".join(map(repr, row)) for row in table.tolist()))
    for name in ("new.npy", "new.csv"):
        out = tmp_path / f"{name}.csv"
        code, _, errors = ridgemark(
            "predict", model_file, tmp_path / name, "-o", out, "--keep", "0", "--columns", "1,2"
        )
        assert (code, errors) == (0, [])
        header, *found = read(out.read_text())
        assert header == ["column 0", "prediction"]
        assert [float(row[0]) for row in found] == list(range(10))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep", "idd"), "there is no column 'idd' .*did you mean 'id'"),
        (("--keep", "id,,b"), "empty name"),
        (("--keep", "prediction"), "leave it out of --keep"),
    ],
)
def test_columns_that_cannot_be_kept_are_refused(options, message, model_file, data, ridgemark, tmp_path):
    data.write_text(data.read_text().replace("name", "prediction", 1))
    code, _, errors = ridgemark("predict", model_file, data, "-o", tmp_path / "p.csv", *options)
    assert (code, len(errors)) == (2, 1)
    assert re.search(message, errors[0]), errors
    code, _, errors = ridgemark("predict", model_file, data, "-o", tmp_path / "p.npy", "--keep", "id")
    assert (code, len(errors)) == (2, 1)
    assert "write .csv or .parquet" in errors[0]
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


@pytest.mark.parametrize("compressed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_pipe_goes_in_and_predictions_come_out(compressed, model_file, data, expected):
    command = [sys.executable, "-m", "ridgemark", "predict", str(model_file), "-", "-o", "-", "--keep", "name"]
    given = gzip.compress(data.read_bytes()) if compressed else data.read_bytes()
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    header, *found = read(done.stdout.decode())
    assert header == ["name", "prediction"]
    assert np.array_equal(np.array([row[1] for row in found], dtype=float), expected)


def test_an_empty_standard_input_is_refused_in_one_line(model_file, ridgemark, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    code, out, errors = ridgemark("predict", model_file, "-", "-o", "-")
    assert (code, out, len(errors)) == (2, "", 1)
    assert "standard-input" in errors[0]


def test_a_closed_standard_input_is_refused_in_one_line(model_file, ridgemark, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)  # what Python makes of `<&-`
    code, out, errors = ridgemark("predict", model_file, "-", "-o", "-")
    assert (code, out, len(errors)) == (2, "", 1)
    assert "the standard input is closed" in errors[0]


def test_a_reader_that_leaves_early_is_no_error(model_file, tmp_path):
    np.savetxt(tmp_path / "long.csv", np.zeros((60_000, 2)), delimiter=",", header="a,b", comments="")
    line = f"{sys.executable} -m ridgemark predict {model_file} {tmp_path / 'long.csv'} -o - | head -n 1"
    done = subprocess.run(["sh", "-c", line], capture_output=True, check=True, text=True)
    assert (done.stdout, done.stderr) == ("prediction\n", "")
