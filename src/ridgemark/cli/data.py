"""Data files as commands open them: columns by name or position, rows with a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from ridgemark.backends import Floats
from ridgemark.cli.options import Key, key
from ridgemark.errors import DataError, ModelFileError, ParameterError
from ridgemark.estimators import ExactKernelRidge, NystromClassifier, NystromRegressor, NystromRidge
from ridgemark.estimators.saving import load_model as load_with_run
from ridgemark.estimators.table_reader import encoded_source, warn_of_unseen
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_words import predicts
from ridgemark.rows import BaseRows, RowSource, dense, listed, open_rows, shown
from ridgemark.rows.header import AllBut
from ridgemark.tables import SchemaEncoder, encoded_by_content, schema_of_numbers

Encoding = Callable[[RowSource], RowSource]

_SINGLE = ("weight", "exposure")  # roles of one column
_CHECKED = 2048  # rows encoded and checked at a time
_DATA = (".csv", ".tsv", ".gz", ".npy", ".npz", ".parquet", ".arrow", ".feather")


def open_data(
    path: Path,
    target: Sequence[Key] | None,
    columns: Sequence[Key] | AllBut | None,
    weight: Key | None,
    exposure: Key | None = None,
    group: Key | None = None,
    **form: Any,
) -> RowSource:
    """Open a file; rows without a target are left out, with a word. `form` is that of a CSV file."""
    if path.suffix.lower() == ".ridgemark":
        raise ParameterError(f"{shown(path)} holds a model, not data; give a data file here")
    named: Any = target
    if exposure is not None:
        if target is None or len(target) != 1:
            raise ParameterError(f"--exposure is for one target, named with --target; got {len(target or ())}")
        named = target[0]
    source = open_rows(path, named, columns, weight, **form, missing_target="skip", exposure=exposure, group=group)
    if skipped := getattr(source, "n_skipped", 0):
        what = "the target" if source.target_names is None else listed(source.target_names)
        click.echo(
            f"ridgemark: {skipped:,} of the {skipped + source.n_rows:,} rows of {shown(path)} lack {what} and are left "
            "out",
            err=True,
        )
    return source


def open_to_fit(path: Path, options: Mapping[str, Any]) -> RowSource:
    """Open a file whose rows are to be fitted, with what the options say of its columns."""
    target, columns, weight, drop = (options[name] for name in ("target", "columns", "weight", "drop"))
    columns = columns if drop is None else AllBut(drop, columns)
    roles = options.get("exposure"), options.get("group")
    source = open_data(path, target, columns, weight, *roles, **csv_form(path, options))
    asked = {name: _features(source, options[name], name) for name in ("categorical", "numeric") if options[name]}
    defaults = {"missing": "fill", "unknown": "ignore"}
    asked |= {name: options[name] for name, default in defaults.items() if options[name] != default}
    if asked:
        assert isinstance(source, BaseRows)
        source.schema_options = asked
    return source


def _features(source: Any, keys: Sequence[Key], role: str) -> Sequence[Key]:
    """Return columns of a file, counted in the file, by their names, or else by their positions among the features."""
    positions, features = source.header.positions(keys, role), source.roles.features
    if others := [j for j in positions if j not in features]:
        name = source.header.names_of(others) or [f"column {others[0]}"]
        raise ParameterError(f"--{role} names {shown(name[0])}, which is not a feature; leave it out of --{role}")
    return source.header.names_of(positions) or [features.index(j) for j in positions]


def csv_form(path: Path, options: Mapping[str, Any], run: RunRecord | None = None) -> dict[str, Any]:
    """Return delimiter, decimal mark and kind of labels of a CSV file, as the options or the record of a fit say."""
    of_fit = {} if run is None or not is_csv(path) else run.csv_form or {}
    asked = {name: options[name] for name in ("delimiter", "decimal", "labels") if options.get(name) is not None}
    return {**of_fit, **asked}


class Columns(NamedTuple):
    """Columns that a model was or will be fitted on: numbers, feature names where known, whether labels are text."""

    n_features: int
    n_targets: int
    feature_names: Sequence[str] | None
    text_labels: bool

    @classmethod
    def of(cls, model: Any) -> Columns:
        """Return the columns of a fitted model."""
        predicted = predicts(model)
        labels = model.classes_ if predicted == "classes" else ()
        n_targets = np.size(model.intercept_) if predicted == "numbers" else 1
        text = any(isinstance(label, str) for label in labels)
        return cls(model.n_features_in_, n_targets, getattr(model, "feature_names_in_", None), text)


def open_like(
    run: RunRecord, fitted: Columns, path: Path, options: Mapping[str, Any], with_target: bool, with_weight: bool = True
) -> RowSource:
    """Open a file with the columns of a fit, as the options, its record or the names of its features tell.

    With targets, their number and the names of the features must be those of the fit.
    """
    columns = _known_columns(run, fitted, path) if options.get("columns") is None else options["columns"]
    target, weight = (options.get("target") or run.target) if with_target else None, None
    named = {role: getattr(run, role) if options.get(role) is None else options[role] for role in _SINGLE}
    weight, exposure = named["weight"] if with_weight else None, named["exposure"] if with_target else None
    form = csv_form(path, options, run) | ({"labels": "text"} if fitted.text_labels and is_csv(path) else {})
    group = run.group if columns is None and with_target else None  # among columns without names
    source = open_data(path, target, columns, weight, exposure, group, **form)
    if columns is None and not with_target and source.n_features > fitted.n_features:
        roles = [*(run.target or ()), *named.values(), run.group]
        n_columns = source.n_features + (weight is not None)
        source = open_data(path, None, _without(roles, n_columns), weight, **form)
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


def open_to_predict(model: Any, run: RunRecord, path: Path, options: Mapping[str, Any]) -> RowSource:
    """Open the rows of a file as features of a model; columns that its fit left out need not be there."""
    fitted, table = Columns.of(model), model._model.schema.table
    columns = _known_columns(run, fitted, path)
    if options["columns"] is not None or columns is None or table is None or all(field.parts for field in table.fields):
        return encoded_source(model, open_like(run, fitted, path, options, with_target=False, with_weight=False))
    used = [k for k, field in enumerate(table.fields) if field.parts]
    source = open_data(path, None, [columns[k] for k in used], None, **csv_form(path, options, run))
    assert isinstance(source, BaseRows)
    return source.encoded_by(SchemaEncoder(replace(table, fields=tuple(table.fields[k] for k in used))))


def exposures(run: RunRecord, fitted: Columns, path: Path, options: Mapping[str, Any]) -> Floats | None:
    """Return the exposure of every row of a file for a model of rates; None for others.

    None also where the file has no such column: one line then says that rates are predicted.
    """
    if run.exposure is None:
        return None
    form = csv_form(path, options, run)
    whole: Any = open_rows(path, **form)
    try:
        whole.header.positions([run.exposure], "exposure")
        there = isinstance(run.exposure, str) or whole.n_features > fitted.n_features
    except DataError:
        there = False
    if not there:
        column = shown(run.exposure) if isinstance(run.exposure, str) else run.exposure
        click.echo(
            f"ridgemark: {shown(path)} has no column {column}: predictions are rates, for an exposure of 1", err=True
        )
        return None
    source = open_rows(path, columns=[run.exposure], **form)
    return np.concatenate([dense(block.features)[:, 0] for block in source.blocks(_CHECKED)])


def _known_columns(run: RunRecord, fitted: Columns, path: Path) -> Sequence[Key] | None:
    """Return the feature columns of a file as the record of a fit or the names of its features tell; None where not."""
    if run.columns is None and fitted.feature_names is not None and _has_names(path):
        return [key(str(name)) for name in fitted.feature_names]
    return run.columns


def _without(roles: Sequence[Key | None], n_columns: int) -> Sequence[Key]:
    """Return the positions of columns that have none of these roles, given by position."""
    taken = {role % n_columns for role in roles if isinstance(role, int)}
    return [position for position in range(n_columns) if position not in taken]


def open_test(
    run: RunRecord, fitted: Columns, path: Path, options: Mapping[str, Any], as_features: Encoding
) -> RowSource:
    """Open rows to measure the error on, and check every cell: what is wrong is told before a long fit, not after.

    `as_features` encodes rows as the fit does; a warning says which of their values the fit has not seen.
    """
    source = open_like(run, fitted, path, options, with_target=True)
    encoded = as_features(source)
    for _ in encoded.blocks(_CHECKED):
        pass
    warn_of_unseen(encoded)
    return source


def encoding_of(source: Any) -> Encoding:
    """Return what encodes other rows as a fit to these rows will do; their schema is learned now, for the fit too."""
    table = None
    if not source.finite or source.schema_options:
        source.encoded_before = encoded_by_content(source)
        table = getattr(source.encoded_before.encoder, "schema", None)
    table = table or schema_of_numbers(source.feature_names, np.zeros(source.n_features))
    return lambda rows: rows.encoded_by(SchemaEncoder(table))  # type: ignore[attr-defined]


def _check_like(source: RowSource, fitted: Columns, path: Path) -> None:
    """Refuse rows whose number of targets or feature names are not those of the model."""
    names, n_targets = source.feature_names, source.n_targets - getattr(source, "has_exposure", False)
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


def is_csv(path: Path) -> bool:
    """Tell whether a file is CSV by its name."""
    return path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def _has_names(path: Path) -> bool:
    """Tell whether the columns of a file have names; those of .npy and .npz files may have only positions."""
    return path.suffix.lower() not in (".npy", ".npz") or open_rows(path).feature_names is not None


def load_model(path: Path, *methods: str, device: str | None = None) -> tuple[Any, RunRecord]:
    """Load a model that can do all of these, and the record of the command that fitted it, empty where none did.

    `device` is where it computes; by default that of the fit.
    """
    try:
        model, run = load_with_run(path, [NystromRidge, NystromClassifier, NystromRegressor, ExactKernelRidge])
    except ParameterError as error:  # the kernel or the loss is code of the user's own
        code = "loss" if "loss=" in str(error) else "kernel"
        error.add_note(f"that is possible only in Python: ridgemark.load(path, {code}=...)")
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
    return model if device is None else model.set_params(device=device), run or RunRecord()
