"""Data files as commands open them: columns by name or position, categories only with --encode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ridgemark.cli.options import Key, key
from ridgemark.errors import DataError, ModelFileError, ParameterError
from ridgemark.estimators import ExactKernelRidge, NystromClassifier, NystromRidge
from ridgemark.estimators.saving import load_model as load_with_run
from ridgemark.fitted import RunRecord
from ridgemark.rows import BaseRows, CsvRows, RowSource, open_rows
from ridgemark.rows.choice import Header
from ridgemark.rows.column import without_features
from ridgemark.rows.places import listed, shown

Levels = Mapping[str, Sequence[str]]

_MOST_LEVELS = 100
_CHECKED = 65536  # rows checked at a time
_DATA = (".csv", ".tsv", ".gz", ".npy", ".npz", ".parquet", ".arrow", ".feather")


def open_data(
    path: Path,
    target: Sequence[Key] | None,
    columns: Sequence[Key] | None,
    weight: Key | None,
    levels: Levels | None = None,
    **form: Any,
) -> RowSource:
    """Open a file; each column named in `levels` becomes one column of 0 and 1 per level.

    A file with encoded columns is held in memory. `form` has the delimiter and decimal mark of a CSV file.
    """
    if path.suffix.lower() == ".ridgemark":
        raise ParameterError(f"{shown(path)} holds a model, not data; give a data file here")
    if not levels:
        return open_rows(path, target, columns, weight, **form)
    names, cells = text_columns(path, list(levels), **form)
    chosen = Header(shown(path), len(names), names).choose(target, columns, weight)
    plain = [names[j] for j in chosen.features if names[j] not in levels]
    if not plain:
        raise DataError(f"{shown(path)} has only encoded features; at least one numeric feature is needed too")
    numbers = open_rows(path, target, plain, weight, **form)
    block = numbers.take(np.arange(numbers.n_rows))
    table = dict(zip(plain, np.asarray(block.features).T, strict=True))
    encoded: dict[str, Any] = {}
    for name in (names[j] for j in chosen.features):
        encoded |= _indicators(name, levels[name], cells[name], path) if name in levels else {name: table[name]}
    return open_rows(encoded, target=block.targets, weight=block.weights)


def csv_form(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the delimiter and decimal mark that the options give for CSV files."""
    return {name: options[name] for name in ("delimiter", "decimal")}


def find_levels(path: Path, encode: Sequence[Key] | None, **form: Any) -> dict[str, list[str]]:
    """Return the sorted categories of every column to be encoded."""
    if not encode:
        return {}
    _, cells = text_columns(path, [str(name) for name in encode], **form)
    levels = {name: sorted(set(values)) for name, values in cells.items()}
    for name, found in levels.items():
        if len(found) > _MOST_LEVELS:
            raise DataError(f"column {shown(name)} has {len(found)} categories; at most {_MOST_LEVELS} can be encoded")
    return levels


class Columns(NamedTuple):
    """Numbers of the columns that a model was or will be fitted on, and the feature names where known."""

    n_features: int
    n_targets: int
    feature_names: Sequence[str] | None

    @classmethod
    def of(cls, model: Any) -> Columns:
        """Return the columns of a fitted model."""
        n_targets = 1 if hasattr(model, "classes_") else np.size(model.intercept_)
        return cls(model.n_features_in_, n_targets, getattr(model, "feature_names_in_", None))


def open_like(
    run: RunRecord,
    fitted: Columns,
    path: Path,
    options: Mapping[str, Any],
    with_target: bool,
    with_weight: bool | None = None,
) -> RowSource:
    """Open a file with the columns of a fit, as the options, its record or the names of its features tell.

    With targets, their number and the names of the features must be those of the fit. Weights come with targets,
    unless `with_weight` says otherwise.
    """
    columns = run.columns if options.get("columns") is None else options["columns"]
    if columns is None and fitted.feature_names is not None and _has_names(path):
        columns = [key(str(name)) for name in fitted.feature_names]
    target = weight = None
    if with_target:
        target = options.get("target") or run.target
    if with_target if with_weight is None else with_weight:
        weight = options.get("weight") if options.get("weight") is not None else run.weight
    source = open_data(path, target, columns, weight, run.levels, **csv_form(options))
    if source.n_features != fitted.n_features:
        raise DataError(
            f"{shown(path)} has {source.n_features} possible feature columns, and the model was fitted on "
            f"{fitted.n_features}; choose them with --columns"
        )
    if with_target:
        _check_like(source, fitted, path)
    elif options.get("columns") is not None and isinstance(source, BaseRows):
        source.feature_names = None  # the columns asked for are the features, whatever their names
    return source


def open_test(run: RunRecord, fitted: Columns, path: Path, options: Mapping[str, Any]) -> RowSource:
    """Open rows to measure the error on, and check every cell: what is wrong is told before a long fit, not after."""
    source = open_like(run, fitted, path, options, with_target=True)
    for _ in without_features(source).blocks(_CHECKED):
        pass
    return source


def _check_like(source: RowSource, fitted: Columns, path: Path) -> None:
    """Refuse rows whose number of targets or feature names are not those of the model."""
    names, n_targets = source.feature_names, source.n_targets
    if n_targets == 0:
        raise ParameterError(f"{shown(path)}: the target column is not known; name it with --target")
    if n_targets != fitted.n_targets:
        raise ParameterError(
            f"{shown(path)}: the model has {fitted.n_targets} targets, got {n_targets}; name them with --target"
        )
    if names is not None and fitted.feature_names is not None and list(names) != list(fitted.feature_names):
        raise DataError(
            f"{shown(path)} has the features {listed(names)}, and the model was fitted on "
            f"{listed(fitted.feature_names)}; choose them with --columns"
        )


def _has_names(path: Path) -> bool:
    """Tell whether the columns of a file have names; those of .npy and .npz files may have only positions."""
    return path.suffix.lower() not in (".npy", ".npz") or open_rows(path).feature_names is not None


def load_model(path: Path, *methods: str) -> tuple[Any, RunRecord]:
    """Load a model that can do all of these, and the record of the command that fitted it, empty where none did."""
    try:
        model, run = load_with_run(path, [NystromRidge, NystromClassifier, ExactKernelRidge])
    except ParameterError as error:  # the kernel is code of the user's own
        error.add_note("that is possible only in Python: ridgemark.load(path, kernel=...)")
        raise
    except ModelFileError:
        if path.suffix.lower() not in _DATA:
            raise
        raise ParameterError(
            f"{shown(path)} holds data, not a model; give the model written by `ridgemark fit` first"
        ) from None
    missing = [name for name in methods if not hasattr(model, name)]
    if missing:
        way = "ridgemark fit --classify" if missing[0] == "predict_proba" else "ridgemark fit"
        raise ParameterError(
            f"{shown(path)} holds a model of {type(model).__name__}, which has no {missing[0]}, so this command cannot "
            f"use it; give a model of `{way}`"
        )
    return model, run or RunRecord()


def text_columns(path: Path, wanted: Sequence[Any], **form: Any) -> tuple[tuple[str, ...], dict[str, list[str]]]:
    """Return the names of all columns of a CSV file, and some of its columns as text, by name."""
    if not path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv")):
        raise ParameterError(
            f"only columns of CSV files can be encoded, got {shown(path)}; encode them before saving the file"
        )
    source = CsvRows(path, columns=wanted, **form)
    positions = Header(shown(path), len(source.names), source.names).choose(columns=wanted).features
    counted = source.names == tuple(map(str, range(len(source.names))))  # the file names no columns
    names = [f"column {j}" if counted else source.names[j] for j in positions]
    cells: dict[str, list[str]] = {name: [] for name in names}
    for piece in source.pieces():
        for name, part in zip(names, piece.columns(positions, as_text=positions), strict=True):
            assert part.levels is not None
            cells[name].extend(part.levels[part.values])
    return source.names, cells


def _indicators(name: str, levels: Sequence[str], cells: Sequence[str], path: Path) -> dict[str, Any]:
    values = np.asarray(cells, dtype=object)
    unknown = set(cells) - set(levels)
    if unknown:
        raise DataError(
            f"column {shown(name)} of {shown(path)} holds {listed(sorted(unknown))}, not a category of the fit; its "
            f"categories are {listed(levels)}"
        )
    return {f"{name}={level}": (values == level).astype(np.float64) for level in levels}
