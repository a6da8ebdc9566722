"""One fixture for every kind of source."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rows.cases import CASES, Case


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduce chunk sizes so that a few rows span several chunks and pieces."""
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", 100)
    monkeypatch.setattr("ridgemark.rows.arrow._PIECE_BYTES", 4 * 8 * 5)


@pytest.fixture(params=list(CASES))
def row_source(request: pytest.FixtureRequest, tmp_path: Path, small_chunks: None) -> Case:
    return CASES[request.param](tmp_path)
