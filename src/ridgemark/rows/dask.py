"""Rows of Dask arrays and DataFrames, in partitions that stay on the workers. Only here is Dask imported."""

import copy
import operator
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ridgemark.errors import DataError, RidgemarkError, require
from ridgemark.rows.base import BaseRows, Block, RowSource, check_total_weight, stack_rows
from ridgemark.rows.column import ColumnEncoder, without_features
from ridgemark.rows.column_rows import ColumnRows, group_hashes
from ridgemark.rows.columns import SourceColumns, as_columns
from ridgemark.rows.mapped import MappedRows, TargetMap, mapped_in_turn
from ridgemark.rows.tables import check_targets, is_a, table_columns

_submitting = threading.Lock()
_ROWS = 2**16  # rows of a partition checked at once


def is_dask(values: Any) -> bool:
    """Return whether a value is a Dask array, DataFrame or series, without importing Dask."""
    return hasattr(values, "__dask_graph__") and any(is_a(values, "dask", name) for name in ("Array", "FrameBase"))


class DaskRows(BaseRows):
    """Rows of a Dask array or DataFrame; each partition is read where it is.

    Opening takes one pass: it counts the rows of each partition, which Dask may not know, and checks the values.
    Empty partitions are left out.

    Parameters
    ----------
    features : dask Array (n, d) or DataFrame
        The features.
    targets : dask Array, Series or DataFrame, or array, optional
        Partitioned like the features, or an array in memory.
    weights, groups : dask Array or Series, or array, optional
        Likewise; all rows of a group must be in one partition.
    """

    def __init__(self, features: Any, targets: Any, weights: Any, groups: Any = None) -> None:
        meta = _meta(features)
        if meta.vector:
            raise DataError(f"{meta.header.source} must be two-dimensional, one row for each observation")
        parts = partitions_of(features)
        aligned = [_aligned(values, features, parts) for values in (targets, weights, groups)]
        collections = features, targets, weights, groups
        made = [_recipes(one, given) for one, given in zip((parts, *aligned), collections, strict=True)]
        self._parts = list(zip(*made, strict=True))
        self.collection, self.reading = features, Reading()
        found = computed([delayed(_opened)(k, *part) for k, part in enumerate(self._parts)])
        sizes = np.array([n_rows for n_rows, *_ in found], dtype=np.intp)
        self._numbers = np.flatnonzero(sizes).tolist()
        self._parts = [self._parts[k] for k in self._numbers]
        self.bounds = np.concatenate([[0], np.cumsum(sizes[self._numbers])])
        self.n_rows = int(self.bounds[-1])
        if not self.n_rows:
            raise DataError(f"{meta.header.source} has no rows; at least one is needed")
        self.finite = all(finite for n_rows, finite, *_ in found if n_rows)
        self.n_features, self.feature_names, self.dtype = len(meta.which), meta.names, meta.dtype
        *_, self.n_targets, self.target_names, _ = found[self._numbers[0]]
        self.has_weights, self.has_groups = weights is not None, groups is not None
        if self.has_groups:
            self.n_groups = _count_groups([labels for *_, labels in found])
        self._counted = np.cumsum([0, *(found[k][3] for k in self._numbers)])  # rows of positive weight before each
        self.n_counted = int(self._counted[-1])
        if self.has_weights:
            check_total_weight(sum(total for n_rows, _, total, *_ in found if n_rows))

    @property
    def partitions(self) -> list[tuple[Any, ...]]:
        """Of each partition its number and its features, targets, weights and groups: what `Reading` takes."""
        return [(k, *part) for k, part in zip(self._numbers, self._parts, strict=True)]

    def places(self, client: Any) -> dict[int, str]:
        """Return the worker that holds each partition, where the collection is persisted."""
        held = {future.key[1]: future for future in _futures(self.collection) if isinstance(future.key, tuple)}
        workers = client.who_has(list(held.values())) if held else {}
        found = {k: workers.get(held[number].key) for k, number in enumerate(self._numbers) if number in held}
        return {k: addresses[0] for k, addresses in found.items() if addresses}

    def encoded_by(self, encoder: ColumnEncoder) -> Self:
        encoded = super().encoded_by(encoder)
        encoded.reading = replace(self.reading, encoder=encoder)
        return encoded

    def shown_to(self, encoder: Any, block_rows: int) -> Any:
        """Return an encoder without features that has seen all columns, each partition where it is."""
        shared, parts = delayed_value(encoder), zip(self._counted[:-1].tolist(), self.partitions, strict=True)
        return reduce(operator.add, computed([delayed(_shown)(shared, first, *part) for first, part in parts]))

    def _blocks(self, block_rows: int, start: int, stop: int) -> Iterator[Block]:
        return self._regroup(self._pieces(start, stop), block_rows, start, stop)

    def _pieces(self, start: int, stop: int) -> Iterator[Block]:
        for k in range(self._holding(start), self._holding(stop - 1) + 1):
            taken = self._gather({k: np.arange(self.bounds[k + 1] - self.bounds[k])})
            yield replace(taken, start=int(self.bounds[k]), taken=None)

    def _take(self, indices: npt.NDArray[np.intp]) -> Block:
        order = np.argsort(indices, kind="stable")
        rising = indices[order]
        holding = self._holding(rising)
        taken = self._gather({int(k): rising[holding == k] - self.bounds[k] for k in np.unique(holding)})
        return replace(taken.at(np.argsort(order, kind="stable")), taken=indices)

    def _holding(self, rows: Any) -> Any:
        """Return the partition of each row."""
        return np.searchsorted(self.bounds, rows, side="right") - 1

    def _gather(self, wanted: dict[int, npt.NDArray[np.intp]]) -> Block:
        """Return some rows of some partitions, in this order."""
        reading, parts = delayed_value(self.reading), self.partitions
        blocks = computed([delayed(_taken)(reading, rows, *parts[k]) for k, rows in wanted.items()])
        features = stack_rows([block.features for block in blocks])
        targets = np.vstack([block.targets for block in blocks]) if self.n_targets else None
        weights = np.concatenate([block.weights for block in blocks]) if self.has_weights else None
        groups = np.concatenate([block.groups for block in blocks]) if self.has_groups else None
        return Block(0, features.astype(self.dtype, copy=False), targets, weights, groups=groups)


def _recipes(parts: list[Any], collection: Any) -> list[Any]:
    """Return a function that makes each partition, or the partitions if they share tasks or lie in workers' memory.

    The task that reads a partition calls its function: Dask may otherwise make it on one worker and need it on another.
    """
    if not is_dask(collection) or ("distributed" in sys.modules and _futures(collection)):
        return parts
    graph = parts[0].__dask_graph__()
    if any(part.__dask_graph__() is not graph for part in parts):
        return parts
    from dask.optimization import cull

    whole = dict(graph)
    own = [cull(whole, [part.key])[0] for part in parts]
    if sum(map(len, own)) > len(set().union(*own)):
        return parts
    return [partial(require_dask().get, one, part.key) for one, part in zip(own, parts, strict=True)]


def _futures(collection: Any) -> Any:
    from distributed import futures_of

    return futures_of(collection)


def _made(value: Any) -> Any:
    return value() if isinstance(value, partial) else value


class _PartitionRows(ColumnRows):
    """The rows of one partition, in memory."""

    whole = False


@dataclass(frozen=True, eq=False)
class Reading:
    """How the rows of a partition are read, where it is: encoded, and with other targets."""

    encoder: ColumnEncoder | None = None
    mappings: tuple[TargetMap, ...] = ()

    def __call__(self, number: int, features: Any, targets: Any, weights: Any, groups: Any) -> BaseRows:
        """Return the rows of one partition."""
        features, targets, weights, groups = map(_made, (features, targets, weights, groups))
        where, kind = f"partition {number} of the", "DataFrame" if hasattr(features, "columns") else "feature array"
        given = _columns(targets, f"{where} targets"), _columns(weights, f"{where} weights")
        labels = group_hashes(table_columns(groups) or groups, features.shape[0], None)
        rows: BaseRows = _PartitionRows(_columns(features, f"{where} {kind}"), *given, groups=labels)
        if self.encoder is not None:
            rows = rows.encoded_by(self.encoder)
        return mapped_in_turn(rows, self.mappings)


def mapped_rows(source: RowSource, mapping: TargetMap) -> BaseRows:
    """Return rows with other targets; rows on workers are mapped where they are."""
    mapped = MappedRows(source, mapping)
    if not isinstance(source, DaskRows):
        return mapped
    made = copy.copy(source)
    made.reading = replace(source.reading, mappings=(*source.reading.mappings, mapping))
    made.n_targets, made.target_names = mapped.n_targets, None
    made.has_weights, made.encoded = mapped.has_weights, True
    return made


def select_dask_rows(source: Any, target: Any, columns: Any, weight: Any, group: Any = None) -> DaskRows:
    """Return rows of a Dask collection; target, weight and group are names or positions of its columns, or values."""
    header, asked = _meta(source).header, {"target": target, "weight": weight, "group": group}
    values = {role: value for role, value in asked.items() if is_dask(value) or isinstance(value, np.ndarray)}
    keys = {role: None if role in values else value for role, value in asked.items()}
    roles = header.choose(keys["target"], columns, keys["weight"], keys["group"])

    def some(positions: tuple[int, ...]) -> Any:
        if len(positions) == header.n_columns:
            return source
        return source[:, list(positions)] if is_array(source) else source.iloc[:, list(positions)]

    named = {"target": roles.targets, "weight": roles.weight, "group": roles.group}
    others = (some(positions) if positions else values.get(role) for role, positions in named.items())
    return DaskRows(some(roles.features), *others)


def read_parquet(folder: Any) -> Any:
    """Return the Dask DataFrame of a folder of Parquet files."""
    require_dask()
    import dask.dataframe

    return dask.dataframe.read_parquet(str(folder))


def delayed(function: Any) -> Any:
    """Return a function whose calls Dask runs later."""
    return require_dask().delayed(function, pure=False)


def delayed_value(value: Any) -> Any:
    """Return a value that a graph holds once, however many tasks use it; a lost copy is sent again."""
    return None if value is None else require_dask().delayed(value, pure=False, traverse=False)


def current_client() -> Any:
    """Return the current client of dask.distributed; None where there is none, as where it was not imported."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def computed(values: Sequence[Any]) -> Any:
    """Return the values of delayed calls, by the workers of the current client or else by threads."""
    dask, client = require_dask(), current_client()
    try:
        if client is None:
            return dask.compute(*values)
        # What a pass needs, such as p x p numbers, is in the graph: any worker that is lost or new gets it from there.
        with _submitting, dask.config.set({"distributed.admin.large-graph-warning-threshold": "1PB"}):
            futures = client.compute(list(values))
        return client.gather(futures)
    except RidgemarkError:
        raise
    except Exception as error:
        raise _failure(error) from error


def _failure(error: Exception) -> DataError:
    name, said = type(error).__name__, f"{error}".partition("\n")[0][:200]
    if "Cancelled" in name:
        return DataError(
            f"Dask has lost rows and knows no way to compute them again ({name}: {said}); make the collection from "
            "files or functions, not from futures of scatter, so that a lost worker can be replaced"
        )
    if name == "KilledWorker":
        return DataError(
            f"workers of the Dask cluster died again and again on one partition ({said}); make partitions smaller, or "
            "give the workers more memory"
        )
    return DataError(f"a partition of the Dask collection could not be computed: {name}: {said}")


def require_dask() -> Any:
    """Return dask, or raise the error that names its extra."""
    return require("dask", "Rows of Dask", "dask", "dask.array")


def _opened(number: int, *part: Any) -> tuple[int, bool, float, int, int, tuple[str, ...] | None, Any]:
    """Return of one partition: rows, whether features are finite, weights' sum, rows that count, targets, names.

    Last come the hashes of the labels of groups.
    """
    part = tuple(map(_made, part))
    if not part[0].shape[0]:
        return 0, True, 0.0, 0, 0, None, np.empty(0, np.uint64)
    if part[1] is not None:
        present = "y.notnull()" if hasattr(part[1], "notnull") else "(~dask.array.isnan(y))"
        check_targets(part[1], f"partition {number} of the target", present)
    rows = Reading()(number, *part)
    assert isinstance(rows, ColumnRows)
    total, n_counted = 0.0, 0 if rows.has_weights else rows.n_rows
    for block in without_features(rows).blocks(_ROWS) if rows.has_weights else ():
        total, n_counted = total + float(block.weights.sum()), n_counted + int(np.count_nonzero(block.weights))
    labels = rows.labels_of_groups
    return rows.n_rows, rows.finite, total, n_counted, rows.n_targets, rows.target_names, labels


def _count_groups(groups: Sequence[npt.NDArray[np.uint64]]) -> int:
    """Return the number of groups, given the labels of each partition; refuse groups with rows in several."""
    labels, counts = np.unique(np.concatenate(groups), return_counts=True)
    if apart := int(np.count_nonzero(counts > 1)):
        raise DataError(
            f"{apart:,} of {len(labels):,} groups have rows in several partitions of the Dask collection; all rows of "
            'a group must be in one: shuffle them first, as in frame = frame.shuffle(on="patient").persist(); without '
            "persist a shuffle may give another order of rows in every pass"
        )
    return len(labels)


def _taken(reading: Reading, rows: npt.NDArray[np.intp], *part: Any) -> Block:
    return reading(*part).take(rows)


def _shown(encoder: Any, first: int, *part: Any) -> Any:
    encoder = copy.deepcopy(encoder)
    encoder.n_seen = first
    for _ in Reading(encoder)(*part).blocks(_ROWS):
        pass
    return encoder


def _columns(values: Any, source: str) -> Any:
    """Return values of a partition as columns with a name for messages; None for None."""
    table = None if values is None else table_columns(values)
    if table is None:
        return None if values is None else as_columns(values, source)
    table.header = replace(table.header, source=source)
    return table


def _meta(collection: Any) -> SourceColumns:
    """Return columns without rows, which have the names and types of a collection."""
    if is_array(collection):
        return as_columns(np.empty((0, *collection.shape[1:]), collection.dtype), "the Dask array")
    return _columns(collection._meta, "the Dask DataFrame")


def is_array(collection: Any) -> bool:
    """Return whether a Dask collection is an array."""
    return hasattr(collection, "chunks")


def partitions_of(collection: Any) -> list[Any]:
    """Return the partitions as delayed values, each with all columns."""
    if is_array(collection) and collection.ndim > 1:
        collection = collection.rechunk(dict.fromkeys(range(1, collection.ndim), -1))
    return list(np.ravel(collection.to_delayed()))


def _aligned(values: Any, features: Any, parts: list[Any]) -> list[Any]:
    """Return targets or weights as partitions that belong to those of the features."""
    if values is None:
        return [None] * len(parts)
    known: tuple[Any, ...] = features.chunks[0] if is_array(features) else (np.nan,)
    if not is_dask(values):
        sizes = np.array(computed([delayed(len)(part) for part in parts]) if np.isnan(known).any() else known)
        values = np.asarray(values)
        if len(values) != sizes.sum():
            raise _wrong_length(sizes.sum(), len(values))
        return [delayed_value(one) for one in np.split(values, np.cumsum(sizes)[:-1])]
    if is_array(values) and not np.isnan((*values.chunks[0], *known)).any() and values.chunks[0] != known:
        if sum(values.chunks[0]) != sum(known):
            raise _wrong_length(sum(known), sum(values.chunks[0]))
        values = values.rechunk({0: known})
    found = partitions_of(values)
    if len(found) != len(parts):
        raise DataError(
            f"targets and weights must have the partitions of the features, {len(parts)}, got {len(found)}; take them "
            "from the same collection, or repartition"
        )
    return found


def _wrong_length(n_rows: int, got: int) -> DataError:
    return DataError(f"targets and weights must have one row for each of the {n_rows} rows of the features, got {got}")
