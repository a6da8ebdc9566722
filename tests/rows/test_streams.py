"""Arrow streams are read once, into a temporary file; datasets are read in place."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgemark import NystromClassifier, NystromRidge, open_rows
from ridgemark.errors import CheckpointError, DataTypeError, ParameterError, SourceFileError
from ridgemark.passes import Journal
from tests.rows.cases import refusal

pa = pytest.importorskip("pyarrow", reason="streams are read by pyarrow")
ds, pq = pytest.importorskip("pyarrow.dataset"), pytest.importorskip("pyarrow.parquet")

N_ROWS, NAMES = 3000, ["a", "b", "c"]
_RNG = np.random.default_rng(0)
X = np.round(_RNG.normal(size=(N_ROWS, 3)), 2)
Y = np.round(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], 3)
W = _RNG.uniform(0.5, 2.0, N_ROWS)
TABLE = pa.table({**{name: X[:, j] for j, name in enumerate(NAMES)}, "y": Y, "w": W})
FEATURES = TABLE.select(NAMES)
BUDGET = 2**16  # bytes, less than the rows take in memory
assert BUDGET < X.nbytes


class Stream:
    """An object with rows as an Arrow stream only; it counts how often it is asked for them."""

    def __init__(self, table: Any, batch_rows: int = 170, error: Exception | None = None) -> None:
        self.table, self.batch_rows, self.error, self.count = table, batch_rows, error, 0

    def _batches(self) -> Iterator[Any]:
        yield from self.table.to_batches(max_chunksize=self.batch_rows)
        if self.error is not None:
            raise self.error

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.count += 1
        reader = pa.RecordBatchReader.from_batches(self.table.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def files_in(folder: Path) -> list[str]:
    gc.collect()
    return [path.name for path in folder.iterdir()]


def model() -> NystromRidge:
    return NystromRidge(
        bandwidth=1.5, ridge=1e-4, n_landmarks=30, selection="uniform", memory_budget=BUDGET, random_state=0
    )


def query(text: str) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="queries need duckdb")
    return duckdb.connect().sql(text)


def test_a_query_gives_the_model_of_its_rows_as_an_array(tmp_path: Path, temporary: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    found = query(f"select * from read_parquet('{tmp_path / 't.parquet'}')")
    fitted = model().fit(found, "y", sample_weight="w")
    expected = model().fit(X, Y, W)
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.predict(found.select("a, b, c")) == pytest.approx(expected.predict(X), abs=1e-9)
    assert fitted.score(found.select("a, b, c, y"), "y") == pytest.approx(expected.score(X, Y))
    assert not files_in(temporary)


def test_a_folder_of_parquet_files_gives_the_model_of_its_rows_as_an_array(tmp_path: Path, temporary: Path) -> None:
    for part in range(3):
        rows = TABLE.drop_columns(["w"]).slice(part * 1000, 1000)
        pq.write_table(rows, tmp_path / f"{part}.parquet", row_group_size=300)
    expected = model().fit(X, Y).predict(X)
    in_place = open_rows(ds.dataset(tmp_path, format="parquet", exclude_invalid_files=True), target="y")
    assert not files_in(temporary)
    assert model().fit(in_place).predict(FEATURES) == pytest.approx(expected, abs=1e-9)
    assert model().fit(open_rows(tmp_path, target="y")).predict(FEATURES) == pytest.approx(expected, abs=1e-9)


def test_a_stream_is_asked_for_its_rows_once_and_columns_not_in_use_stay_out(temporary: Path) -> None:
    stream = Stream(TABLE)
    rows = open_rows(stream, target="y", columns=["c", "a"])
    for _ in range(3):
        assert np.array_equal(np.concatenate([block.features for block in rows.blocks(333)]), X[:, [2, 0]])
    assert rows.take([2999, 5]).targets.ravel().tolist() == [Y[2999], Y[5]]
    assert stream.count == 1
    (name,) = files_in(temporary)
    assert 3 * 8 * N_ROWS < (temporary / name).stat().st_size < 4 * 8 * N_ROWS


def test_the_file_goes_with_the_last_copy_of_the_source(temporary: Path) -> None:
    rows = open_rows(Stream(TABLE), target="y")
    blocks = rows.staying(2**20).blocks(100)  # type: ignore[attr-defined]
    next(blocks)
    del rows
    assert len(files_in(temporary)) == 1
    del blocks
    assert not files_in(temporary)


def test_the_file_goes_after_an_error_of_the_stream_and_of_the_rows(temporary: Path) -> None:
    with pytest.raises(OSError, match="the source is gone"):
        open_rows(Stream(TABLE, error=OSError("the source is gone")))
    bad = TABLE.set_column(0, "a", pa.array([*X[:-1, 0], np.nan]))
    assert "row 2999, column 'a' of the Arrow stream is NaN" in refusal(Stream(bad))
    assert "there is no column 'z' in the Arrow stream" in refusal(Stream(TABLE), target="z")
    assert "the Arrow stream has columns but no rows" in refusal(Stream(TABLE.slice(0, 0)))
    assert not files_in(temporary)


def test_a_stream_beyond_the_limit_of_its_file_is_refused_with_the_limit(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIDGEMARK_MAX_SPOOLED_BYTES", "50000")
    with pytest.raises(SourceFileError, match=r"more than 50,000 bytes.*give fewer.*RIDGEMARK_MAX_SPOOLED_BYTES"):
        open_rows(Stream(TABLE))
    assert not files_in(temporary)
    assert open_rows(Stream(TABLE), columns=["a"]).n_rows == N_ROWS


def test_a_checkpoint_goes_on_with_the_same_rows_and_refuses_another_order(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, expected = tmp_path / "fit.checkpoint", model().fit(X, Y)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    def fit(table: Any) -> NystromRidge:
        return model().fit(Stream(table.drop_columns(["w"])), "y", checkpoint=checkpoint)

    with monkeypatch.context() as context:
        context.setattr(Journal, "remove", killed)
        with pytest.raises(KeyboardInterrupt):
            fit(TABLE)
    with pytest.raises(CheckpointError, match="is of another fit: the data was 3,000 rows"):
        fit(TABLE.take(np.arange(N_ROWS)[::-1]))
    assert fit(TABLE).predict(FEATURES) == pytest.approx(expected.predict(X), abs=1e-9)
    assert not checkpoint.exists()
    assert not files_in(temporary)


def test_categories_may_differ_from_batch_to_batch_and_labels_are_named_by_column() -> None:
    parts = [pa.array(texts).dictionary_encode() for texts in (["u", "v"] * 50, ["w", "u"] * 50)]
    batches = [
        pa.record_batch([np.arange(100.0) / 100 + k, part, pa.array(["n", "p"] * 50)], names=["x", "t", "label"])
        for k, part in enumerate(parts)
    ]
    table = pa.Table.from_batches(batches)
    reader = pa.RecordBatchReader.from_batches(table.schema, batches)
    fitted = NystromClassifier(bandwidth=1.0, ridge=1e-3, n_landmarks=20, random_state=0).fit(reader, "label")
    assert fitted.encoded_names_ == ["x", "t=u", "t=v", "t=w"]
    assert fitted.classes_.tolist() == ["n", "p"]
    assert fitted.score(Stream(table), "label") == fitted.score(table.drop_columns(["label"]), ["n", "p"] * 100)


def test_a_dataset_is_read_in_place_with_the_columns_of_its_folders(tmp_path: Path, temporary: Path) -> None:
    table = TABLE.append_column("g", pa.array(["u", "v"] * (N_ROWS // 2)))
    flavor = ds.partitioning(pa.schema([("g", pa.string())]), flavor="hive")
    ds.write_dataset(table, tmp_path / "d", format="parquet", partitioning=flavor, max_rows_per_group=400)
    dataset = ds.dataset(tmp_path / "d", partitioning="hive")
    whole = dataset.to_table()
    expected = np.column_stack([whole[name] for name in NAMES])
    rows = open_rows(dataset, target="y", columns=NAMES)
    assert np.array_equal(np.concatenate([block.features for block in rows.blocks(170)]), expected)
    assert np.array_equal(rows.take([2999, 0]).features, expected[[2999, 0]])
    assert model().fit(dataset, "y").encoded_names_ == [*NAMES, "w", "g=u", "g=v"]
    assert not files_in(temporary)
    (tmp_path / "d" / "g=u" / "part-1.parquet").write_bytes(b"PAR1")
    message = refusal(ds.dataset(tmp_path / "d", schema=table.schema))
    assert "the Arrow dataset cannot be read as a dataset of pyarrow" in message
    assert "part-1.parquet" in message
    some = open_rows(dataset.filter(ds.field("a") > 0), target="y", columns=NAMES)
    assert some.n_rows == int((X[:, 0] > 0).sum())
    assert len(files_in(temporary)) == 1


def test_frames_and_tables_are_read_in_place(temporary: Path) -> None:
    polars = pytest.importorskip("polars")
    for frame in (TABLE, TABLE.to_batches()[0], polars.from_arrow(TABLE), TABLE.to_pandas()):
        assert open_rows(frame, target="y").n_rows == N_ROWS
    batch = FEATURES.to_batches()[0]
    assert model().fit(batch, Y).predict(batch).shape == (N_ROWS,)
    assert not files_in(temporary)


def test_targets_of_a_stream_are_columns_and_a_stream_of_one_array_is_no_table() -> None:
    with pytest.raises(ParameterError, match="target must be column names or positions"):
        model().fit(Stream(TABLE), Y)
    column = pa.chunked_array([[1.0, 2.0]])
    if hasattr(column, "__arrow_c_stream__"):  # older versions give no stream of it
        with pytest.raises(DataTypeError, match=r"a stream of rows must have named columns.*non-struct"):
            open_rows(column)
