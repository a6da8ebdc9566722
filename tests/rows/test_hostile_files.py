"""A data file made to exhaust time or memory is refused with a clear error within seconds; the limits can be raised."""

from __future__ import annotations

import gzip
import io
import time
import tracemalloc
import zipfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ridgemark.errors import DataError, ParameterError
from ridgemark.rows import open_rows
from ridgemark.rows.files import EXPANSION_FROM
from tests.rows.cases import refusal

SECONDS = 30.0  # a few on an idle machine; minutes without the limits
MEBIBYTE = 2**20


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    begin = time.perf_counter()
    yield
    assert time.perf_counter() - begin < SECONDS


def npy(shape: str, body: bytes = bytes(24)) -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


def npz(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", content)
    return file.getvalue()


SHAPES = {
    "a truth value": "(True, 3)",
    "terabytes": "(1000000000000, 10)",
    "negative": "(-1, 3)",
    "nothing of a size beyond the range": f"(0, {10**30})",
    "rows without number and columns without end": f"({10**18}, 0)",
    "5,000 digits": f"({'9' * 5000}, 3)",
    "a product that wraps to 24": f"({2**61 + 1}, 8, 3)",
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_an_array_of_impossible_shape_is_refused(shape: str) -> None:
    for name, content in (("a.npy", npy(shape)), ("a.npz", npz(npy(shape)))):
        Path(name).write_bytes(content)
        with pytest.raises(DataError, match=r"a\.np[yz]"):
            open_rows(name)


def test_an_archive_that_expands_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = EXPANSION_FROM // 8 + 100
    Path("a.npz").write_bytes(npz(npy(f"({rows}, 1)", bytes(8 * rows))))
    tracemalloc.start()
    assert "RIDGEMARK_MAX_EXPANSION" in refusal("a.npz")
    assert tracemalloc.get_traced_memory()[1] < MEBIBYTE
    tracemalloc.stop()
    monkeypatch.setenv("RIDGEMARK_MAX_EXPANSION", "2000")
    assert open_rows("a.npz").n_rows == rows


def test_an_array_too_large_to_be_read_at_once_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez("a.npz", X=np.ones((1000, 2)))
    monkeypatch.setenv("RIDGEMARK_MAX_LOADED_BYTES", "16000")
    assert "RIDGEMARK_MAX_LOADED_BYTES" in refusal("a.npz")
    monkeypatch.setenv("RIDGEMARK_MAX_LOADED_BYTES", "20000")
    assert open_rows("a.npz").n_rows == 1000


def test_thirty_million_blank_lines_are_refused_or_skipped() -> None:
    Path("a.csv").write_bytes(b" \n" * 30_000_000)
    assert "holds only blank lines" in refusal("a.csv")
    Path("a.csv").write_bytes(b"a,b\n1,2\n" + b"\n" * 3_000_000 + b"3,x\n")
    with pytest.raises(DataError, match=r"row 1 \(line 3000003\), column 'b'"):
        list(open_rows("a.csv").blocks(10))


@pytest.mark.parametrize(
    ("text", "line"),
    [("\n \n\t\r\n  a,b\n1,x\n", 5), ("\ufeffa,b\n1,x\n", 2), ("\ufeff \n\na,b\n1,x\n", 4), ("   a,b\n1,x\n", 2)],
)
@pytest.mark.parametrize("chunk", [1, 2, 3, 1000])
def test_lines_are_counted_past_leading_blank_ones(
    text: str, line: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.csv").write_text(text, encoding="utf-8")
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", chunk)
    with pytest.raises(DataError, match=rf"row 0 \(line {line}\), column 'b'"):
        open_rows("a.csv", weight="b")


def test_too_many_columns_are_refused_unless_the_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def table(width: int) -> str:
        return ",".join(f"c{j}" for j in range(width)) + "\n" + ",".join("1" * width) + "\n"

    Path("a.csv").write_text(table(1_000_000))
    message = refusal("a.csv")
    assert "has 1,000,000 columns" in message
    assert "RIDGEMARK_MAX_COLUMNS" in message
    Path("a.csv").write_text(table(30))
    monkeypatch.setenv("RIDGEMARK_MAX_COLUMNS", "29")
    assert "has 30 columns" in refusal("a.csv")
    monkeypatch.setenv("RIDGEMARK_MAX_COLUMNS", "30")
    assert open_rows("a.csv").n_features == 30


@pytest.mark.parametrize(
    ("line", "limit"),
    [(b"0,0\n", "MAX_EXPANSION"), (b"\n", "MAX_EXPANSION"), (b"0", "MAX_ROW_BYTES")],
    ids=["rows", "blank lines", "one row"],
)
def test_a_compressed_file_that_expands_beyond_the_limit_is_refused(line: bytes, limit: str) -> None:
    member = gzip.compress(line * (2**24 // len(line)))
    Path("a.csv.gz").write_bytes(gzip.compress(b"a,b\n") + 1000 * member)  # 16 GiB
    with pytest.raises(DataError, match=limit):
        open_rows("a.csv.gz")


def test_a_quoted_name_without_end_is_refused() -> None:
    Path("a.csv").write_bytes(b'"' + b"\n" * 300_000)
    assert "a quoted field that is never closed" in refusal("a.csv")


def test_an_integer_of_5000_digits_is_refused() -> None:
    digits = "9" * 5000
    Path("a.csv").write_text(f"a,b\n1,{digits}\n")
    assert "row 0 (line 2), column 'b'" in refusal("a.csv")
    Path("a.csv").write_text(f"a,b\n1,{'0' * 5000}7\n")
    assert open_rows("a.csv").take([0]).features.tolist() == [[1.0, 7.0]]
    assert "about 5000 digits" in refusal({"a": [10**5000, 1]})
    assert "inf" in refusal({"a": [Fraction(10**400), 1]})


@pytest.mark.parametrize("value", ["many", "-1", "0", "1e6", "9" * 5000])
def test_a_limit_that_is_not_a_positive_integer_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.csv").write_text("a\n1\n")
    monkeypatch.setenv("RIDGEMARK_MAX_COLUMNS", value)
    with pytest.raises(ParameterError, match="RIDGEMARK_MAX_COLUMNS must be a positive integer"):
        open_rows("a.csv")
