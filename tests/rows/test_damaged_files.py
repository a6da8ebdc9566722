"""A data file with a few wrong bytes is fitted, or refused by an error of the package; the process does not crash."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.rows.cases import refusal
from tests.rows.fuzzing import KINDS

pytest.importorskip("pyarrow")
_SECONDS = 600  # no fit hangs


@pytest.mark.parametrize(
    ("kinds", "count"), [(tuple(KINDS), 12), *(pytest.param((kind,), 500, marks=pytest.mark.slow) for kind in KINDS)]
)
def test_a_damaged_file_is_fitted_or_refused(kinds: tuple[str, ...], count: int) -> None:
    command = [sys.executable, "-m", "tests.rows.fuzzing", "0", str(count), *kinds]
    root = Path(__file__).parents[2]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, cwd=root)
    lines = ended.stdout.splitlines()
    wrong = [pair for pair in pairwise(lines) if pair[1].startswith("wrong")]
    assert (ended.returncode, wrong, ended.stderr) == (0, [], ""), lines[-1]
    assert len(lines) == count * len(kinds)


def test_a_parquet_file_whose_row_groups_have_other_rows_than_it_says_is_refused(tmp_path: Path) -> None:
    content = bytearray(KINDS["parquet"]())
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    at = content.index(bytes([0x16, 0x20, 0x26]), footer)  # the number of rows, 16, before the offset of its pages
    content[at + 1] = 0x22
    (tmp_path / "d.parquet").write_bytes(content)
    assert "row group 0 has 16 rows, and the file says 17" in refusal(tmp_path / "d.parquet", columns=["b"])
