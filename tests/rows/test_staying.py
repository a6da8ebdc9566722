"""Rows of a file stay in memory after a pass over all of them, where a quarter of the memory budget holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgemark import NystromClassifier, NystromRidge
from ridgemark.rows import open_rows
from ridgemark.rows.base import BaseRows
from ridgemark.rows.column import NoFeatures
from ridgemark.rows.scanned import ScannedRows

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(400, 4))
TABLE[:, 3] = np.sin(TABLE[:, 0]) + 0.1 * TABLE[:, 3]
TABLE = TABLE.round(3)
N_BYTES = 8 * TABLE.size


@pytest.fixture(params=["csv", "parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a file of several chunks."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / f"rows.{request.param}"
    if request.param == "csv":
        request.getfixturevalue("monkeypatch").setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", 2000)
        np.savetxt(file, TABLE, delimiter=",", header="a,b,c,y", comments="", fmt="%.3f")
    else:
        pq.write_table(pa.table(dict(zip("abcy", TABLE.T, strict=True))), file, row_group_size=90)
    return file


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that tells for every pass whether it reads the file."""
    counts: list[int] = []
    pieces = ScannedRows._pieces

    def counted(self: Any, start: int, stop: int) -> Any:
        counts.append(self._read_before is None)
        return pieces(self, start, stop)

    monkeypatch.setattr(ScannedRows, "_pieces", counted)
    return counts


def rows(source: BaseRows) -> np.ndarray[Any, Any]:
    return np.concatenate([np.c_[block.features, block.targets] for block in source.blocks(37)])


def test_rows_are_read_once(path: Path, reads: list[int]) -> None:
    source = open_rows(path, target="y").staying(4 * N_BYTES)
    reads.clear()
    assert source.reads_ahead
    for _ in range(3):
        assert np.array_equal(rows(source), TABLE)
    assert sum(reads) == 1
    assert not source.reads_ahead
    numbers = RNG.integers(0, 400, 50)
    path.unlink()
    assert np.array_equal(source.take(numbers).features, TABLE[numbers, :3])
    part = np.concatenate([block.features for block in source.blocks(7, 100, 300)])
    assert np.array_equal(part, TABLE[100:300, :3])


def test_rows_beyond_a_quarter_of_the_budget_are_read_in_every_pass(path: Path, reads: list[int]) -> None:
    source = open_rows(path, target="y").staying(4 * N_BYTES - 1)
    reads.clear()
    for _ in range(3):
        assert np.array_equal(rows(source), TABLE)
    assert sum(reads) == 3


def test_a_pass_that_ends_early_keeps_nothing(path: Path) -> None:
    source = open_rows(path, target="y").staying(None)
    next(iter(source.blocks(10)))
    assert source.reads_ahead
    assert np.array_equal(rows(source), TABLE)


def test_the_source_given_keeps_nothing(path: Path, reads: list[int]) -> None:
    source = open_rows(path, target="y")
    NystromRidge("gaussian", bandwidth=2.0, ridge=1e-3, n_landmarks=30, random_state=0).fit(source)
    reads.clear()
    rows(source)
    assert sum(reads) == 1


def test_features_of_another_encoder_are_read_anew(path: Path) -> None:
    source = open_rows(path, target="y").staying(None)
    rows(source)
    encoded = source.encoded_by(NoFeatures())
    assert encoded.reads_ahead
    assert next(iter(encoded.blocks(10))).features.shape == (10, 0)


def test_a_fit_does_not_depend_on_it(path: Path, reads: list[int]) -> None:
    options: dict[str, Any] = {"bandwidth": 2.0, "n_landmarks": 30, "random_state": 0, "kernel": "gaussian"}
    fits, counts = [], []
    for budget in (None, 3 * N_BYTES):
        reads.clear()
        fits.append(NystromRidge(**options, selection="uniform", memory_budget=budget).fit(open_rows(path, target="y")))
        counts.append(sum(reads))
    assert np.allclose(fits[0].dual_coef_, fits[1].dual_coef_, rtol=1e-8)
    assert counts[0] < counts[1]


def test_labels_are_made_from_rows_in_memory(reads: list[int], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    labelled = tmp_path / "labels.csv"
    np.savetxt(
        labelled,
        np.c_[TABLE[:, :3], TABLE[:, 3] > 0],
        delimiter=",",
        header="a,b,c,y",
        comments="",
        fmt=["%.3f"] * 3 + ["%d"],
    )
    NystromClassifier("gaussian", bandwidth=2.0, ridge=1e-3, n_landmarks=30, random_state=0).fit(
        open_rows(labelled, target="y")
    )
    assert reads.count(True) <= 4 < len(reads)
