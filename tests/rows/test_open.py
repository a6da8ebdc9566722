from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgemark.errors import DataTypeError, NotRestartableError, RidgemarkError, SourceFileError
from ridgemark.rows import ArrayRows, open_rows
from tests.rows.cases import refusal, values


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_row_source_is_returned_unchanged() -> None:
    rows = ArrayRows(np.ones((2, 2)))
    assert open_rows(rows) is rows
    assert "already has its columns chosen" in refusal(rows, target=1)


@pytest.mark.parametrize("one_shot", [(x for x in [[1.0]]), iter([[1.0]]), map(list, [[1.0]]), zip([1.0], strict=True)])
def test_a_one_shot_source_is_refused_with_the_remedy(one_shot: Any) -> None:
    with pytest.raises(NotRestartableError, match=r"can be read only once.*give an array \(numpy\.array\(list"):
        open_rows(one_shot)


def test_an_open_file_is_refused_with_the_remedy_to_give_its_path() -> None:
    Path("d.csv").write_text("a\n1\n")
    with Path("d.csv").open() as file, pytest.raises(NotRestartableError, match="give its path instead"):
        open_rows(file)


@pytest.mark.parametrize("source", [None, 3, 2.5, {1, 2}, b"d.csv", object(), range, len])
def test_an_object_without_rows_is_refused_with_its_type(source: Any) -> None:
    with pytest.raises(DataTypeError, match=r"rows must come from an array.*or the path of a file; got .*, of type"):
        open_rows(source)


def test_lists_of_lists_are_arrays() -> None:
    assert values(open_rows([[1, 2], [3, 4]])) == [[1.0, 2.0], [3.0, 4.0]]


def test_a_lazy_object_is_not_loaded() -> None:
    class Lazy:
        def __array__(self) -> np.ndarray:
            raise AssertionError

        def __dask_graph__(self) -> None: ...

        def compute(self) -> None: ...

    assert "call its compute() first" in refusal(Lazy())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("no.csv", "there is no file 'no.csv' (looked in '"),
        ("no", "there is no file 'no'"),
        ("d.csv/x.csv", "there is no file 'd.csv/x.csv'"),
        ("a\x1b[31m\n.csv", r"there is no file 'a\x1b[31m\n.csv'"),
        ("a\0.csv", "is not the name of a file that can be read"),
        ("x" * 5000 + ".csv", "is not the name of a file that can be read"),
        ("", "the path is empty"),
        (".", "'.' is a directory; give a file, or a directory with .parquet files in it, not in its folders"),
        ("d.xlsx", "'d.xlsx' has no known extension; save it in one of these formats, or rename it where it is in one"),
        ("d", "'d' has no known extension"),
        ("d.csv.zst", "'d.csv.zst' has no known extension; decompress it first"),
        (["d.csv", "d.csv"], "several files must be Parquet or Arrow files; got 'd.csv'; join the files"),
        (["no.parquet"], "there is no file 'no.parquet'"),
    ],
)
def test_an_unusable_path_is_refused_with_its_name(path: Any, expected: str) -> None:
    for name in ("d.csv", "d.csv.zst", "d.xlsx", "d"):
        Path(name).write_text("a\n1\n")
    message = refusal(path)
    assert expected in message
    assert len(message) < 300


def test_file_errors_derive_from_the_usual_python_errors() -> None:
    with pytest.raises(SourceFileError) as caught:
        open_rows("no.csv")
    assert isinstance(caught.value, RidgemarkError)
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, ValueError)


def test_the_end_of_a_long_path_is_kept() -> None:
    deep = Path(*["directory"] * 12)
    deep.mkdir(parents=True)
    (deep / "d.csv").write_text("a\nx\n")
    assert "/directory/d.csv' holds text, 'x'" in refusal(deep / "d.csv")


def test_extensions_are_case_insensitive() -> None:
    Path("D.CSV").write_text("a\n1\n")
    assert open_rows("D.CSV").n_rows == 1
    assert open_rows(Path("D.CSV").absolute()).n_rows == 1


def test_arrays_need_no_optional_package_and_csv_names_its_extra() -> None:
    Path("d.csv").write_text("a,b\n1,2\n")
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'polars', 'pyarrow']));"
        "import numpy; from ridgemark.errors import MissingExtraError; from ridgemark.rows import open_rows;"
        "print(open_rows(numpy.ones((2, 2))).n_rows)\n"
        "try: open_rows('d.csv')\n"
        "except MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, message = done.stdout.strip().splitlines()
    assert count == "2"
    assert message.startswith("Reading CSV needs the package pyarrow")
    assert message.endswith('install it with: pip install "ridgemark[arrow]"')
