"""`open_rows`: opens data of any supported kind as a `RowSource`."""

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from ridgemark.errors import DataError, DataTypeError, NotRestartableError, ParameterError, SourceFileError
from ridgemark.rows.arrays import plain_rows
from ridgemark.rows.arrow import ArrowColumns, ArrowRows, stream_rows
from ridgemark.rows.arrow_column import require_pyarrow
from ridgemark.rows.arrow_readers import DatasetReader, open_arrow
from ridgemark.rows.base import BaseRows, RowSource
from ridgemark.rows.column_rows import select_rows
from ridgemark.rows.columns import SourceColumns, as_array, as_columns
from ridgemark.rows.csv import CsvRows
from ridgemark.rows.dask import current_client, is_dask, read_parquet, select_dask_rows
from ridgemark.rows.files import require_file
from ridgemark.rows.header import TargetAndExposure, is_key
from ridgemark.rows.numpy_files import Archive, NpyColumns
from ridgemark.rows.places import shown
from ridgemark.rows.tables import FrameColumns, as_objects, is_a, object_columns, table_columns

_CSV = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_ARROW = (".parquet", ".arrow", ".feather")
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip", ".7z")
_EXTENSIONS = (*_CSV, ".npy", ".npz", *_ARROW)


def open_rows(
    source: Any,
    target: Any = None,
    columns: Any = None,
    weight: Any = None,
    delimiter: Any = None,
    decimal: str = ".",
    missing_target: Literal["error", "skip"] = "error",
    labels: Literal["auto", "text"] = "auto",
    group: Any = None,
    exposure: Any = None,
) -> RowSource:
    """Open data of any supported kind as rows that can be read repeatedly, block by block.

    Parameters
    ----------
    source : path, array, sparse matrix, data frame, Arrow table or stream, dict of columns, list of dicts, or RowSource
        Files are recognised by extension: `.csv`, `.tsv` (also with `.gz`), `.npy`, `.npz` (features in the array `X`,
        targets in `y`; read into memory), `.parquet` (also a directory of them, or a list of paths), `.arrow`,
        `.feather`. With a client of dask.distributed its workers read a directory of Parquet files. Dask arrays and
        DataFrames stay on the workers. An Arrow stream, such as a query of DuckDB, is read once, into a temporary file.
        A RowSource is returned unchanged.
    target : str, int, list of them, or array, optional
        Name or position of the target column, or several; in a `.npz` file also the name of an array. For data in
        memory and `.npy` also the values themselves, (n,) or (n, t). An integer is first looked up among the column
        names. One target may be text, the labels of classes: its numbers are positions in `labels` of the result.
    columns : list of str or int, optional
        The features, in this order; by default all columns without another role.
    weight : str, int or array, optional
        Name, position or values of the weights.
    delimiter : str, optional
        The character between the cells of a CSV file; by default comma, semicolon, tab or bar, whichever is most
        frequent in the first line.
    decimal : "." or ","
        The decimal mark of a CSV file.
    missing_target : {"error", "skip"}
        Whether a row whose target is missing is refused or left out; `n_skipped` of the result counts such rows.
    labels : {"auto", "text"}
        Whether the target of a CSV file is read by its content, or as text, so that the labels "01" and "1" differ.
    exposure : str, int or array, optional
        Name, position or values of the exposure of every row, such as the years a contract was held, for a
        `NystromRegressor` of counts or amounts. It is given as the target is: both by name, or both as values.
    group : str, int or array, optional
        Name, position or values of the labels of groups, such as patients, shops or days: text, numbers or dates. Rows
        of one group leave together where rows are left out. The column is a feature only if `columns` names it.

    Returns
    -------
    RowSource

    Raises
    ------
    DataError
        When the data cannot be used; the message names the row, the column and the remedy.
    NotRestartableError
        When the source can be read only once.
    MissingExtraError
        When CSV, Parquet or Arrow is to be read without the extra `arrow`.

    Examples
    --------
    >>> import numpy as np
    >>> rows = open_rows(np.arange(12.0).reshape(4, 3), target=2)
    >>> rows.n_rows, rows.n_features
    (4, 2)
    >>> [block.targets.ravel().tolist() for block in rows.blocks(3)]
    [[2.0, 5.0, 8.0], [11.0]]
    """
    if missing_target not in ("error", "skip"):
        raise ParameterError(f'missing_target must be "error" or "skip"; got {missing_target!r:.60}')
    if labels not in ("auto", "text"):
        raise ParameterError(f'labels must be "auto" or "text"; got {labels!r:.60}')
    if exposure is not None:
        both = with_exposure(source, target, exposure)
        rows = open_rows(source, both, columns, weight, delimiter, decimal, missing_target, labels, group)
        assert isinstance(rows, BaseRows)
        rows.has_exposure = True
        return rows
    skip = missing_target == "skip"
    if isinstance(source, str | os.PathLike) and Path(source).name.lower().endswith(_CSV):
        return CsvRows(source, target, columns, weight, delimiter, decimal, skip, labels, group)
    if delimiter is not None or decimal != "." or labels != "auto":
        raise ParameterError("delimiter, decimal and labels are for CSV files only; leave them out for other data")
    if isinstance(source, RowSource):
        if not all(role is None for role in (target, columns, weight, group)):
            raise ParameterError(
                "a RowSource already has its columns chosen; give target, columns, weight and group when opening it"
            )
        return source
    if isinstance(source, str) and not source:  # as a path it would mean the current folder
        raise SourceFileError("the path is empty; give the path of a data file")
    if isinstance(source, str | os.PathLike):
        return _open_path(Path(source), target, columns, weight, skip, group)
    if isinstance(source, list | tuple) and source and all(isinstance(p, str | os.PathLike) for p in source):
        return _open_several([Path(path) for path in source], target, columns, weight, skip, group)
    if columns is group is None and (plain := plain_rows(source, target, weight)) is not None:
        return plain
    if is_dask(source):
        return select_dask_rows(source, target, columns, weight, group)
    if is_a(source, "pyarrow", "Dataset"):
        return _open_dataset(source, target, columns, weight, skip, group)
    if is_stream(source):
        return stream_rows(source, target, columns, weight, skip, group)
    return select_rows(_columns(source), _values(target), columns, _values(weight), skip, _values(group))


def with_exposure(source: Any, target: Any, exposure: Any) -> Any:
    """Return the target and the exposure as two targets: as names, or as values beside each other."""
    if isinstance(source, RowSource):
        raise ParameterError("a RowSource already has its columns chosen; give exposure when opening it")
    if is_key(target) and is_key(exposure):
        return TargetAndExposure([target, exposure])
    if target is None or is_key(target) or is_key(exposure) or is_dask(target) or is_dask(exposure):
        raise ParameterError(
            "the exposure must be given as the target is: both as names of columns, or both as arrays; got "
            f"a target of type {type(target).__name__} and an exposure of type {type(exposure).__name__}"
        )
    values = [np.asarray(as_array(part, name), dtype=float) for part, name in ((target, "y"), (exposure, "exposure"))]
    if values[0].ndim != 1 or values[0].shape != values[1].shape:
        raise DataError(
            f"target and exposure must have one number for each row, got {values[0].shape} and {values[1].shape}"
        )
    return np.column_stack(values)


def is_stream(source: Any) -> bool:
    """Return whether targets of a value are named by column: of an Arrow stream that is not a frame, or a dataset."""
    stream = hasattr(source, "__arrow_c_stream__") and _table(source) is None
    return stream or is_a(source, "pyarrow", "Dataset")


def opened(X: Any, y: Any, weights: Any, groups: Any = None) -> tuple[Any, Any, Any, Any]:
    """Return the rows of a stream or dataset with the columns that the others name; all else as it is."""
    if is_stream(X):
        return open_rows(X, y, weight=weights, group=groups), None, None, None
    return X, y, weights, groups


def _open_dataset(dataset: Any, target: Any, columns: Any, weight: Any, skip: bool, group: Any) -> ArrowRows:
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # a filtered dataset has no fragments to read one by one
        return stream_rows(dataset.scanner().to_reader(), target, columns, weight, skip, group)
    reader = DatasetReader(dataset, fragments)
    rows = ArrowRows([reader], target, columns, weight, skip, group)
    rows.paths = reader.paths
    return rows


def _open_path(path: Path, target: Any, columns: Any, weight: Any, skip: bool, group: Any) -> RowSource:
    if os.path.isdir(path):  # noqa: PTH112 - False for an invalid path
        if current_client() is not None and any(path.glob("*.parquet")):
            return select_dask_rows(read_parquet(path), target, columns, weight, group)
        return _open_several(sorted(path.glob("*.parquet")) or [path], target, columns, weight, skip, group)
    found = require_file(path)
    opened = _open_file(found, target, columns, weight, skip, group)
    opened.paths = (found,)
    return opened


def _open_file(found: Path, target: Any, columns: Any, weight: Any, skip: bool, group: Any) -> BaseRows:
    name = found.name.lower()
    if name.endswith(".npy"):
        return select_rows(NpyColumns(found), _values(target), columns, _values(weight), skip, _values(group))
    if name.endswith(".npz"):
        archive = Archive(found)
        features = archive.columns()
        target = "y" if target is None and "y" in archive.keys else target
        target = archive.resolve(target, features, "target")
        weight = archive.resolve(weight, features, "weight")
        group = archive.resolve(group, features, "group")
        return select_rows(features, _values(target), columns, _values(weight), skip, _values(group))
    if name.endswith(_ARROW):
        return ArrowRows([open_arrow(found)], target, columns, weight, skip, group)
    remedy = f"save it in one of these formats, or rename it where it is in one: {', '.join(_EXTENSIONS)}"
    if name.endswith(_COMPRESSED):
        remedy = "decompress it first; of compressed text only .csv.gz and .tsv.gz are read"
    raise SourceFileError(f"{shown(found)} has no known extension; {remedy}")


def _open_several(paths: list[Path], target: Any, columns: Any, weight: Any, skip: bool, group: Any) -> RowSource:
    for path in map(require_file, paths):
        if not path.name.lower().endswith(_ARROW):
            raise SourceFileError(
                f"several files must be Parquet or Arrow files; got {shown(path)}; join the files into one first"
            )
    opened = ArrowRows(list(map(open_arrow, paths)), target, columns, weight, skip, group)
    opened.paths = tuple(paths)
    return opened


def _columns(source: Any) -> SourceColumns:
    """Return the columns of an object in memory; refuse other types."""
    source = as_objects(source)
    if (known := _table(source) or object_columns(source, "the feature array")) is not None:
        return known
    if hasattr(source, "__next__"):
        instead = "its path" if hasattr(source, "read") else "an array (numpy.array(list(rows))) or a path"
        raise NotRestartableError(
            f"a {type(source).__name__} can be read only once, and several passes over the rows are needed; "
            f"give {instead} instead"
        )
    # A Dask collection has __array__ too, but calling it would load everything.
    is_array = hasattr(source, "__array__") and not hasattr(source, "__dask_graph__")
    if sparse.issparse(source) or isinstance(source, list | tuple) or is_array:
        return as_columns(source, "the feature array")
    remedy = lazy_remedy(source)
    raise DataTypeError(
        f"rows must come from an array, a sparse matrix, a data frame, an Arrow table, a dict of columns, a list of "
        f"dicts or the path of a file; got {source!r:.60}, of type {type(source).__name__}{'; ' * bool(remedy)}{remedy}"
    )


def lazy_remedy(source: Any) -> str:
    """Return what to call so that a lazy object has its values; nothing for other objects."""
    lazy = [name for name in ("collect", "compute") if hasattr(source, name)]
    return f"call its {lazy[0]}() first" if lazy else ""


def frame_columns(source: Any) -> FrameColumns | None:
    """Return the columns of a data frame, an Arrow table or an array of objects; None for anything else."""
    frames = ("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"), ("pyarrow", "RecordBatch")
    is_frame = any(is_a(source, *frame) for frame in frames)
    columns = _table(source) if is_frame else object_columns(source, "X")
    return columns if isinstance(columns, FrameColumns) else None


def whole_table(source: Any) -> Any:
    """Return a record batch of Arrow as a table; anything else unchanged."""
    return require_pyarrow().Table.from_batches([source]) if is_a(source, "pyarrow", "RecordBatch") else source


def _table(source: Any) -> SourceColumns | None:
    source = whole_table(source)
    if is_a(source, "pyarrow", "Table"):
        return ArrowColumns(source, "the Arrow table", source.column_names, source.num_rows)
    return table_columns(source)


def _values(given: Any) -> Any:
    """Return targets or weights given as a frame, series or table as columns; anything else unchanged."""
    found = None if isinstance(given, dict) else _table(given)
    return given if found is None else found
