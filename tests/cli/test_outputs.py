"""An output never replaces an input, another output or, without --force, an existing file."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ridgemark import NystromRidge, load, open_rows
from ridgemark.cli.data import load_model
from ridgemark.estimators.saving import save_model
from ridgemark.fitted import RunRecord

pytestmark = pytest.mark.usefixtures("no_figures")

KEPT = "model", "rows.csv", "new.csv", "page.html"


@pytest.fixture(scope="module")
def templates(folder, tmp_path_factory):
    """A model, rows, other rows and a page, as bytes by name."""
    source = open_rows(folder / "rows.csv", target="y", columns=["a", "b"])
    model = NystromRidge(bandwidth="median", n_landmarks=20, ridge=1e-3, random_state=0).fit(source)
    run = RunRecord(columns=["a", "b"], target=["y"], target_names=["y"])
    path = save_model(model, tmp_path_factory.mktemp("model") / "model", True, run=run)
    names = {"rows.csv": folder / "rows.csv", "new.csv": folder / "new.csv", "model": path}
    return {name: one.read_bytes() for name, one in names.items()} | {"page.html": b"mine"}


@pytest.fixture
def here(templates, tmp_path, monkeypatch):
    """A new copy of the files in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, content in templates.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


FIT = (
    "fit",
    "rows.csv",
    "--target",
    "y",
    "--columns",
    "a,b",
    "--landmarks",
    10,
    "--ridge",
    "1e-3",
    "--certify",
    "trace",
)


def same_name(path, name):
    return name


def dotted(path, name):
    return f"../{path.name}/./{name}"


def symbolic_link(path, name):
    (path / "alias.csv").symlink_to(path / name)
    return "alias.csv"


def hard_link(path, name):
    (path / "alias.csv").hardlink_to(path / name)
    return "alias.csv"


def through_a_linked_folder(path, name):
    (path / "folder").symlink_to(path)
    return f"folder/{name}"


ALIASES = [same_name, dotted, symbolic_link, hard_link, through_a_linked_folder]


@pytest.mark.parametrize("alias", ALIASES)
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("rows.csv", (*FIT, "--output")),
        ("new.csv", (*FIT, "--test", "new.csv", "--output")),
        ("rows.csv", (*FIT, "--output", "made", "--report")),
        ("new.csv", ("predict", "model", "new.csv", "--output")),
        ("rows.csv", ("scores", "rows.csv", "--columns", "a,b", "--ridge", "1e-3", "--output")),
        ("model", ("report", "model", "--output")),
        ("new.csv", ("report", "model", "--test", "new.csv", "--output")),
    ],
)
def test_an_output_that_is_an_input_is_refused_also_with_force(alias, name, command, here, templates, ridgemark):
    output = alias(here, name)
    before = set(here.iterdir())
    code, out, errors = ridgemark(*command, output, "--force")
    assert (code, out, len(errors)) == (2, "", 1)
    assert f"is the input '{name}', which would be lost; give another name" in errors[0]
    assert {name: (here / name).read_bytes() for name in KEPT} == templates
    assert set(here.iterdir()) == before


@pytest.mark.parametrize("alias", ["made", "./made", "folder/made", "dangling"])
def test_two_outputs_that_are_one_file_are_refused(alias, here, ridgemark):
    (here / "folder").symlink_to(here)
    (here / "dangling").symlink_to(here / "made")
    code, _, errors = ridgemark(*FIT, "--output", "made", "--report", alias, "--force")
    assert (code, len(errors)) == (2, 1)
    assert "are the same file; give them different names" in errors[0]
    assert not (here / "made").exists()


@pytest.mark.parametrize("command", [(*FIT, "--output"), ("predict", "model", "new.csv", "--output")])
def test_an_input_in_a_folder_of_parquet_files_is_kept(command, here, ridgemark):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (here / "parts").mkdir()
    pq.write_table(pa.table({"a": [1.0, 2.0], "b": [1.0, 3.0], "y": [0.0, 1.0]}), here / "parts" / "1.parquet")
    command = ["parts" if word in ("rows.csv", "new.csv") else word for word in command]
    code, _, errors = ridgemark(*command, "parts/1.parquet", "--force")
    assert (code, len(errors)) == (2, 1)
    assert "is the input 'parts'" in errors[0]


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("made", (*FIT, "--output")),
        ("made.html", (*FIT, "--output", "made", "--report")),
        ("made.csv", ("predict", "model", "new.csv", "--output")),
        ("made.csv", ("scores", "rows.csv", "--columns", "a,b", "--ridge", "1e-3", "--output")),
        ("made.html", ("report", "model", "--output")),
    ],
)
def test_an_existing_file_is_replaced_only_with_force(name, command, here, ridgemark):
    pytest.importorskip("matplotlib")
    (here / name).write_text("mine")
    before = set(here.iterdir())
    code, out, errors = ridgemark(*command, name)
    assert (code, out, errors) == (
        2,
        "",
        [f"ridgemark: '{name}' exists already; give another name, or --force to replace it"],
    )
    assert (here / name).read_text() == "mine"
    assert set(here.iterdir()) == before
    (here / name).chmod(0o640)
    assert ridgemark(*command, name, "--force")[0] == 0
    assert (here / name).read_bytes() != b"mine"
    assert (here / name).stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("there", [False, True])
def test_a_link_is_kept_and_its_target_is_written(there, here, ridgemark):
    (here / "below").mkdir()
    target = here / "below" / "real.csv"
    if there:
        target.write_text("old")
    (here / "link.csv").symlink_to(target)
    assert ridgemark("predict", "model", "new.csv", "--output", "link.csv", *["--force"][:there])[0] == 0
    assert (here / "link.csv").is_symlink()
    assert target.read_text().startswith("prediction\n")
    assert [path.name for path in (here / "below").iterdir()] == ["real.csv"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
@pytest.mark.parametrize("name", ["pipe", "pipe.csv", "pipe.npy"])
def test_a_pipe_is_written_to_and_not_replaced(name, here, ridgemark):
    os.mkfifo(here / name)
    read = []
    reader = threading.Thread(target=lambda: read.append((here / name).read_bytes()), daemon=True)
    reader.start()
    assert ridgemark("predict", "model", "new.csv", "--output", name)[::2] == (0, [])
    reader.join(30)
    assert (here / name).is_fifo()
    assert read[0].startswith(b"\x93NUMPY" if name.endswith("npy") else b"prediction\r\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_model_is_written_to_a_pipe(here, ridgemark):
    os.mkfifo(here / "pipe")
    reader = threading.Thread(target=lambda: (here / "copy").write_bytes((here / "pipe").read_bytes()), daemon=True)
    reader.start()
    assert ridgemark(*FIT, "--output", "pipe")[0] == 0
    reader.join(30)
    assert load(here / "copy").n_landmarks_ == 10


_PREDICT = [sys.executable, "-m", "ridgemark", "predict", "model", "new.csv", "--output", "/dev/stdout"]


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout")
@pytest.mark.parametrize("to_file", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_standard_output_holds_only_the_table(to_file, here):
    if to_file:  # created by a shell, and not empty
        with (here / "out.csv").open("wb") as out:
            out.write(b"# mine\n")
            out.flush()
            done = subprocess.run(_PREDICT, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
        mine, text = (here / "out.csv").read_text().split("\n", 1)
        assert mine == "# mine"
    else:
        done = subprocess.run(_PREDICT, capture_output=True, text=True, check=False)
        text = done.stdout
    assert (done.returncode, done.stderr) == (0, "")
    header, *rows = text.splitlines()
    assert (header, len([float(row) for row in rows])) == ("prediction", 150)


def test_json_and_a_table_cannot_share_the_standard_output(here, ridgemark, monkeypatch):
    with (here / "out.csv").open("wb") as out:
        monkeypatch.setattr("ridgemark.cli.output._STDOUT", out.fileno())
        code, printed, errors = ridgemark("predict", "model", "new.csv", "--output", "out.csv", "--json")
    assert (code, printed, len(errors)) == (2, "", 1)
    assert "--output and --json would both write to the standard output" in errors[0]


def test_a_file_that_appears_during_the_work_is_kept(here, ridgemark, monkeypatch):
    from ridgemark.cli import predict

    def parts(*arguments):
        (here / "p.csv").write_text("mine")
        return original(*arguments)

    original = predict._parts
    monkeypatch.setattr(predict, "_parts", parts)
    code, _, errors = ridgemark("predict", "model", "new.csv", "--output", "p.csv")
    assert (code, len(errors)) == (2, 1)
    assert "'p.csv' appeared while this command ran" in errors[0]
    assert (here / "p.csv").read_text() == "mine"
    assert not list(here.glob(".ridgemark-*"))


def bad(text):
    return lambda path: path.write_text(text)


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        (("--test", "none.csv"), None, "there is no file 'none.csv'"),
        (("--test", "test.csv"), bad("a,b\n1,2\n"), "no column 'y'"),
        (("--test", "test.csv"), bad("a,y\n1,2\n"), "no column 'b'"),
        (("--test", "test.csv"), bad("a,b,y\n1,2,3\n" + "1,2,3\n" * 200_000 + "1,2,x\n"), "row 200001 "),
        (("--test", "test.npy"), lambda path: np.save(path, np.ones((3, 2))), "no column"),
        (("--test", "model"), None, "no known extension"),
        (("--report", "none/p.html"), None, "there is no folder"),
    ],
)
def test_errors_are_reported_before_the_fit(options, change, message, here, ridgemark, monkeypatch):
    if change is not None:
        change(here / options[1])
    monkeypatch.setattr(NystromRidge, "fit", None)  # never called
    before = set(here.iterdir())
    code, out, errors = ridgemark(*FIT, "--output", "made", *options)
    assert (code, out, len(errors)) == (2, "", 1)
    assert message in errors[0]
    assert set(here.iterdir()) == before


@pytest.mark.parametrize(
    ("names", "message"),
    [({"y": np.ones((3, 2))}, "the model has 1 targets, got 2"), ({}, "name it with --target")],
)
def test_test_rows_with_other_targets_are_refused_before_the_fit(names, message, here, ridgemark, monkeypatch):
    np.savez(here / "rows.npz", X=np.eye(9, 2), y=np.arange(9.0))
    np.savez(here / "test.npz", X=np.ones((3, 2)), **names)
    monkeypatch.setattr(NystromRidge, "fit", None)
    code, _, errors = ridgemark("fit", "rows.npz", "--test", "test.npz", "--output", "made")
    assert (code, len(errors)) == (2, 1)
    assert message in errors[0]


def test_test_rows_with_other_features_are_refused_before_the_fit(here, ridgemark, monkeypatch):
    (here / "test.csv").write_text("b,a,y\n1,2,3\n")
    monkeypatch.setattr(NystromRidge, "fit", None)
    command = ("fit", "rows.csv", "--target", "y", "--columns", "0,1", "--test", "test.csv", "--output", "made")
    code, _, errors = ridgemark(*command)
    assert (code, len(errors)) == (2, 1)
    assert "'test.csv' has the features 'b', 'a', and the model was fitted on 'a', 'b'" in errors[0]


def fail(error):
    def failing(*_, **__):
        raise error

    return failing


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("ridgemark.cli.fit.held_out", OSError(5, "Input/output error")),
        ("ridgemark.cli.fit.measure", KeyboardInterrupt()),
        ("ridgemark.cli.fit.write_page", OSError(28, "No space left on device")),
        pytest.param("ridgemark.cli.fit.held_out", MemoryError(), marks=pytest.mark.slow),
        pytest.param(
            "ridgemark.estimators.NystromRidge.certify", OSError(5, "Input/output error"), marks=pytest.mark.slow
        ),
    ],
)
def test_the_model_is_kept_whatever_fails_after_the_fit(step, error, here, ridgemark, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(step, fail(error))
    code, out, errors = ridgemark(*FIT, "--output", "made", "--test", "new.csv", "--report", "made.html")
    assert (code, out) == (130 if isinstance(error, KeyboardInterrupt) else 2, "")
    assert errors[-1].endswith("; the model is kept in 'made'")
    assert len(list(filter(None, errors))) == 1
    assert load("made").progress is False
    monkeypatch.undo()
    monkeypatch.chdir(here)
    code, _, errors = ridgemark("report", "made", "--test", "new.csv", "--output", "made.html")
    assert (code, errors) == (0, [])


def test_a_model_that_cannot_be_saved_where_asked_is_kept_elsewhere(here, ridgemark, monkeypatch, tmp_path_factory):
    spare = tmp_path_factory.mktemp("spare")
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    (here / "below").mkdir()
    fit = NystromRidge.fit

    def fit_and_remove(*arguments, **options):
        (here / "below").rmdir()
        return fit(*arguments, **options)

    monkeypatch.setattr(NystromRidge, "fit", fit_and_remove)
    code, _, errors = ridgemark(*FIT, "--output", "below/made")
    (kept,) = spare.glob("*/model.ridgemark")
    assert (code, len(errors)) == (2, 1)
    assert errors[0].startswith("ridgemark: 'below/made' could not be written: ")
    assert errors[0].endswith(f"; the model is kept in '{kept}'")
    assert load(kept).n_landmarks_ == 10


def test_a_fit_saved_twice_holds_what_was_measured(here, ridgemark):
    code, out, _ = ridgemark(*FIT, "--output", "made", "--test", "new.csv", "--json")
    assert code == 0
    model, run = load_model(Path("made"))
    assert run.held_out["rms"] == json.loads(out)["held_out"]["rms"]
    assert model.certificate_.kind == "trace"
    assert hasattr(model, "calibration_")
