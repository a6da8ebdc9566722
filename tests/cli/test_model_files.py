"""The record that the command line saves with a model: reproducible bytes, and refusal of hostile contents."""

import copy
import time

import numpy as np
import pytest

from ridgemark import load
from ridgemark.cli.data import load_model
from ridgemark.errors import ModelFileError
from ridgemark.fitted import RunRecord
from tests.persistence.cases import forge, parse, place_of

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.fixture(scope="module")
def model_file(folder, tmp_path_factory):
    from click.testing import CliRunner

    from ridgemark.cli import commands

    path = tmp_path_factory.mktemp("fit") / "m"
    made = CliRunner().invoke(commands, _arguments(folder, path), catch_exceptions=False, standalone_mode=False)
    assert made.exit_code == 0
    return path


def _arguments(folder, output):
    chosen = [
        "--target",
        "y",
        "--columns",
        "a,b,colour",
        "--landmarks",
        30,
        "--selection",
        "leverage",
    ]
    return [str(one) for one in ("fit", folder / "rows.csv", *chosen, "--test", folder / "new.csv", "--output", output)]


def test_two_fits_with_one_seed_write_the_same_bytes(folder, model_file, ridgemark, tmp_path, monkeypatch):
    clock = time.perf_counter
    monkeypatch.setattr("time.perf_counter", lambda: 3.0 * clock())  # a slower machine
    assert ridgemark(*_arguments(folder, tmp_path / "again"))[0] == 0
    assert (tmp_path / "again").read_bytes() == model_file.read_bytes()


def test_a_page_is_drawn_from_the_file_alone(model_file, ridgemark, tmp_path):
    pytest.importorskip("matplotlib")
    assert ridgemark("report", model_file, "--output", tmp_path / "page.html")[0] == 0
    run = load_model(model_file)[1]
    assert None not in (run.data, run.n_rows, run.target_names, run.csv_form, run.held_out, run.sample)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data", 3),
        ("n_rows", "many"),
        ("target_names", ["y", "z"]),
        ("target_names", "y"),
        ("levels", {"dict": [["colour", "red"]]}),
        ("levels", ["colour"]),
        ("held_out", {"dict": []}),
        ("sample", {"dict": [["rows", [0]], ["observed", 3], ["predicted", [[1.0]]]]}),
        ("columns", {"Linear": {}}),
        ("another", {"array": False}),
    ],
)
def test_a_hostile_record_of_the_run_is_refused(name, value, model_file, tmp_path):
    header, arrays = parse(model_file.read_bytes())
    header = copy.deepcopy(header)
    place_of(header, "model.run.data")[0][name] = value
    (tmp_path / "m").write_bytes(forge(header, arrays))
    with pytest.raises(ModelFileError, match="is damaged"):
        load(tmp_path / "m")


def test_a_model_refitted_on_other_rows_reports_no_old_file(model_file, ridgemark, tmp_path):
    pytest.importorskip("matplotlib")
    model = load(model_file)
    rows = np.random.default_rng(0).normal(size=(90, 3))
    model.fit(rows[:, :2], rows[:, 0] + 0.1 * rows[:, 2])
    assert ridgemark("report", model.save(tmp_path / "m"), "--output", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "A fit from landmarks" in page
    assert "rows.csv" not in page
    assert "colour" not in page
    _, run = load_model(tmp_path / "m")
    assert run == RunRecord()
    assert load_model(model_file)[1].data == "rows.csv"
