"""`ridgemark reproduce`: files, page, errors."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from ridgemark import __version__
from ridgemark.cli import main
from ridgemark.paper.data import ORIGINS
from tests.browser import look
from tests.helpers import made_once

TABLES = {
    "claims", "table_1", "table_1_ratios", "cross_validation", "figure_1_scores", "figure_1_risk", "comparison",
    "theorem_3", "open_question", "theorem_4", "sketch_ridge",
}  # fmt: skip


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """A quick run with only one small data set in the data folder: its folder, output and errors."""
    pytest.importorskip("matplotlib")
    folder = made_once(tmp_path_factory, "reproduce", reproduce)
    return folder / "out", (folder / "printed.txt").read_text(), (folder / "errors.txt").read_text()


def reproduce(folder):
    data = folder / "data"
    data.mkdir()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    np.savez_compressed(data / "gas-batch2.npz", X=X, y=np.sin(X[:, 0]) + 0.1 * rng.normal(size=60))
    arguments = ["--quick", "--output", folder / "out", "--data", data]
    out, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(errors):
        patch.delenv("RIDGEMARK_DATA", raising=False)
        patch.setattr(sys, "argv", ["ridgemark", "reproduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
    assert not stop.value.code, errors.getvalue()
    (folder / "printed.txt").write_text(out.getvalue())
    (folder / "errors.txt").write_text(errors.getvalue())


def test_the_pages_path_is_printed_last_and_nothing_on_stderr(reproduced):
    output, out, errors = reproduced
    assert out.splitlines()[-1] == str(output / "index.html")
    assert errors == ""


def test_page_records_and_tables_are_written_and_nothing_else(reproduced):
    output = reproduced[0]
    assert {path.name for path in output.iterdir()} == {"index.html", "records.json"} | {f"{t}.csv" for t in TABLES}
    assert [path.name for path in output.parent.iterdir() if path.name.startswith(".")] == []


def test_records_hold_seed_versions_and_parameters(reproduced):
    output = reproduced[0]
    records = json.loads((output / "records.json").read_text())
    assert records["settings"] == {"seed": 0, "repeats": 2, "quick": True}
    assert records["versions"]["ridgemark"] == __version__
    assert records["versions"]["numpy"] == np.__version__
    assert records["sets"] == ["gas-batch2"]
    assert len(records["table_1"]) == 11
    assert records["table_1"][0]["effective_dimension"] == pytest.approx(24.58, abs=0.01)


def test_tables_have_a_header_and_rows_of_its_length(reproduced):
    output = reproduced[0]
    for name in TABLES:
        with (output / f"{name}.csv").open(newline="") as file:
            header, *rows = csv.reader(file)
        assert rows, name
        assert all(len(row) == len(header) for row in rows), name


def test_the_page_begins_with_what_the_paper_says_and_names_missing_files(reproduced):
    page = (reproduced[0] / "index.html").read_text()
    for heading in ("the paper says", "we measured", "same?"):
        assert heading in page[: page.index("<h2>")]
    assert "gas-batch3.npz is not in the data folder" in page
    assert page.count('role="img"') >= 8
    assert all(re.findall(r'role="img" aria-label="([^"]*)"', page))


def test_the_page_loads_nothing(reproduced):
    page = (reproduced[0] / "index.html").read_text()
    assert "default-src 'none'" in page
    assert "<script" not in page
    links = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert all(link.startswith("#") for link in links)
    anchors = set(re.findall(r'\bid="([^"]*)"', page))
    assert {link[1:] for link in links} <= anchors
    assert len(re.findall(r'\bid="([^"]*)"', page)) == len(anchors)


@pytest.mark.parametrize("width", [360, 1200])
def test_the_page_fits_the_browser_window_without_errors(reproduced, width, tmp_path):
    scroll_width, n_words, smallest, messages = look(reproduced[0] / "index.html", width, tmp_path)
    assert messages == []
    assert scroll_width <= width
    assert n_words > 50
    assert smallest >= 8  # pixels: text in figures is readable on a phone


@pytest.mark.slow
def test_without_the_extra_records_are_written_beside_what_is_there(tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    (output / "records.json").write_text("old")
    (output / "mine.txt").write_text("mine")
    (output / "index.html").write_text("old")
    code = "import sys; sys.modules['matplotlib'] = None; from ridgemark.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "reproduce", "--quick", "--json", "--output", str(output), "--force"],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "RIDGEMARK_DATA"},
    )
    assert result.returncode == 0, result.stderr
    assert (output / "mine.txt").read_text() == "mine"
    assert (output / "index.html").read_text() == "old"
    assert "ridgemark[report]" in result.stderr
    printed = json.loads(result.stdout)
    assert printed["page"] is None
    assert json.loads((output / "records.json").read_text())["sets"] == []
    assert {claim["same"] for claim in printed["claims"]} <= {"yes", "no", "in part", "open", "not run"}


@pytest.fixture
def refused(monkeypatch, capsys):
    """Run the command in this process; it must exit with code 2 and one error line."""

    def run_here(pattern, *arguments):
        monkeypatch.setattr(sys, "argv", ["ridgemark", "reproduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        errors = capsys.readouterr().err.splitlines()
        assert stop.value.code == 2
        assert re.search(pattern, errors[-1]), errors
        return errors

    monkeypatch.delenv("RIDGEMARK_DATA", raising=False)
    return run_here


def test_a_missing_output_option_is_refused(refused):
    refused("Missing option '--output'", "--quick")


def test_an_output_that_is_a_file_is_refused(tmp_path, refused):
    (tmp_path / "file").write_text("")
    refused("is a file; give a folder", "--quick", "--output", tmp_path / "file")
    assert (tmp_path / "file").read_text() == ""


def test_a_folder_with_other_files_is_refused_without_force(tmp_path, refused):
    (tmp_path / "index.html").write_text("mine")
    refused("holds other files; give a new folder, or --force", "--quick", "--output", tmp_path)
    (tmp_path / "records.json").write_text("[1]")
    refused("holds other files", "--quick", "--output", tmp_path)
    assert (tmp_path / "index.html").read_text() == "mine"


def test_the_folder_of_the_data_is_refused_also_with_force(tmp_path, refused):
    np.savez(tmp_path / "gas-batch2.npz", X=np.ones((4, 2)), y=np.ones(4))
    refused("is the input", "--quick", "--output", tmp_path, "--data", tmp_path, "--force")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "records.json").symlink_to(tmp_path / "gas-batch2.npz")
    refused("is the input", "--quick", "--output", tmp_path / "out", "--data", tmp_path, "--force")


def test_an_earlier_run_is_replaced_and_links_are_followed(reproduced, tmp_path, monkeypatch):
    from click.testing import CliRunner

    from ridgemark.cli import reproduce as module

    output = shutil.copytree(reproduced[0], tmp_path / "real")
    (output / "index.html").replace(tmp_path / "page.html")
    (output / "index.html").symlink_to(tmp_path / "page.html")
    (tmp_path / "link").symlink_to(output)
    monkeypatch.setattr(module, "reproduce", lambda *_: None)
    monkeypatch.setattr(module, "_print", lambda *_: None)
    monkeypatch.setattr(module, "_write", lambda run, folder: (folder / "index.html").write_text("new"))
    result = CliRunner().invoke(module.command, ["--output", str(tmp_path / "link")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "page.html").read_text() == "new"
    assert (output / "index.html").is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert (output / "claims.csv").exists()


def test_an_output_that_cannot_be_made_is_refused(tmp_path, refused):
    (tmp_path / "file").write_text("")
    refused("ridgemark: .*file", "--quick", "--output", tmp_path / "file" / "below")


def test_an_unwritable_output_is_refused(tmp_path, refused):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):
        pytest.skip("this user may write everywhere")
    refused("cannot be written", "--quick", "--output", folder)
    refused("Permission denied", "--quick", "--output", folder / "below")


def test_a_data_folder_that_is_not_there_is_refused(tmp_path, refused, monkeypatch):
    refused("does not exist", "--quick", "--output", tmp_path / "out", "--data", tmp_path / "none")
    monkeypatch.setenv("RIDGEMARK_DATA", str(tmp_path / "none"))
    refused("does not exist", "--quick", "--output", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.ones((4, 2))}, "one target is needed"),
        ({"X": np.ones((4, 2)), "y": np.ones(3)}, "gas-batch2|rows"),
        ({"X": np.array([[1.0, np.nan]]), "y": np.ones(1)}, "nan|finite|missing"),
        ({"y": np.ones(3)}, "X"),
        ({"X": np.arange(4.0)[:, None], "y": np.ones(4)}, "all rows have the same y"),
        ({"X": np.ones((4, 2)), "y": np.arange(4.0)}, "all rows have the same X"),
    ],
)
def test_a_data_file_that_cannot_be_used_is_named_in_one_line(tmp_path, arrays, message, refused):
    np.savez(tmp_path / "gas-batch2.npz", **arrays)
    assert len(refused(message, "--quick", "--output", tmp_path / "out", "--data", tmp_path)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["gas-batch2.npz"]


@pytest.mark.parametrize(
    "option", [("--repeats", "0"), ("--repeats", "x"), ("--seed", "-1"), ("--seed", 2**32), ("--nonsense",)]
)
def test_a_bad_option_is_refused(tmp_path, option, refused):
    refused("Invalid value|No such option", "--output", tmp_path / "out", *option)


def test_an_interrupted_run_leaves_nothing(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from ridgemark.cli import reproduce as module

    def interrupt(*_):
        assert len(list(tmp_path.iterdir())) == 1  # the temporary folder
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "reproduce", interrupt)
    result = CliRunner().invoke(module.command, ["--output", str(tmp_path / "out")])
    assert result.exit_code != 0
    assert list(tmp_path.iterdir()) == []


def test_every_data_file_is_described_in_the_documentation():
    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    assert all(f"`{name}.npz`" in text for name in ORIGINS)
