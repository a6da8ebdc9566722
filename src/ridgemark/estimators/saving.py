"""Fitted models to files and back, through `ridgemark.persistence`."""

import inspect
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ridgemark import kernels, selection
from ridgemark.backends.devices import check_device
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.estimators.saved_form import MODELS, PARAMETERS, SavedFit, rule
from ridgemark.fitted import FittedExact, FittedModel, RunRecord
from ridgemark.kernels import Kernel
from ridgemark.kernels.base import count_rows
from ridgemark.operators import Cross, NystromFactor
from ridgemark.passes import RowPasses
from ridgemark.persistence import Decoder, Encoder, read_model, refusal, refusing, write_model
from ridgemark.rows import ArrayRows, listed, shown
from ridgemark.selection import Selection
from ridgemark.solvers import CompactFit, LandmarkFit
from ridgemark.tuning import Tuner

# The only classes a file can ask for.
CLASSES = {
    name: one
    for module, base in ((kernels, Kernel), (selection, Selection))
    for name, one in vars(module).items()
    if isinstance(one, type) and issubclass(one, base) and not inspect.isabstract(one)
} | {"ColumnMap": kernels.ColumnMap, "Tuner": Tuner}
_SETTINGS = {"_metadata_request", "_sklearn_output_config"}  # scikit-learn's own
_COLUMNS = {"n_features_in_", "feature_names_in_"}  # which follow from the record
_TRIED = 8  # points at which a model must predict finite numbers before it is saved, and when it is loaded


def save_model(
    model: Any, path: Any, overwrite: bool, *, sums: bool | str = "predict", run: RunRecord | None = None
) -> Path:
    """Write a fitted estimator to one file, whole or not at all; beside it what the command line knows of it."""
    target = _path(path)
    if type(model).__name__ not in MODELS:
        raise ParameterError(
            f"a model file holds a {' or an '.join(MODELS)}, and no subclass; got a {type(model).__name__}; pickle it"
        )
    if sums not in ("predict", True, False):
        raise ParameterError(f'sums must be "predict", True or False, got {sums!r}')
    state = model.__getstate__()  # all attributes at one time; refused while a fit is running
    check_is_fitted(model, "dual_coef_")
    parameters = {name: state.pop(name) for name in model.get_params(deep=False)}
    fitted = state.pop("_model")
    if unknown := sorted(state.keys() - _SETTINGS - _COLUMNS):
        raise ParameterError(
            f"the model cannot be saved with {listed(unknown)}, which a {type(model).__name__} does not have"
        )
    encoder = Encoder(CLASSES.values())
    header = {
        "estimator": type(model).__name__,
        "parameters": {name: encoder.encode(value, name) for name, value in _savable(parameters).items()},
        "fitted": encoder.encode(_saved(fitted, sums), "fitted"),
        "run": encoder.encode(run, "run"),
        "given": [_name(function) for function in encoder.given],
    }
    try:  # nothing is saved that could not be loaded
        with np.errstate(all="ignore"):
            _restore(type(model), header, Decoder(dict(encoder.arrays), CLASSES, encoder.given, rule))
    except (ValueError, ArithmeticError, TypeError, LookupError, AttributeError) as error:
        raise ParameterError(f"the model cannot be saved, as it could not be loaded again: {error}") from error
    write_model(target, header, encoder.arrays, overwrite)
    return target


def load_model(path: Any, estimators: Sequence[type], kernel: Any = None) -> tuple[Any, RunRecord | None]:
    """Return the model saved at a path, one of the `estimators`, and what the command line knew of it.

    `kernel` is given where it is the user's own code.
    """
    source = _path(path)
    header, arrays = read_model(source)
    again = Encoder(CLASSES.values())  # finds the functions in the order in which the first one did
    with suppress(ParameterError):  # objects that are not kernels have too few of them
        again.encode(kernel, "kernel")
    known = {one.__name__: one for one in estimators}
    with refusing(source):
        contents = Decoder(arrays, CLASSES, again.given, rule)
        needed = contents.decode(list[str], header["given"], "given")
        estimator = known[contents.decode(str, header["estimator"], "estimator")]
    _check_given(source, needed, again.given, kernel)
    with refusing(source), np.errstate(all="ignore"):
        model = _restore(estimator, header, contents)
        if contents.arrays:
            raise refusal(min(contents.arrays), "is an array that no model has")
        return model


def _savable(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters without what belongs to this process."""
    if not isinstance(parameters["random_state"], int | np.integer | None):
        parameters["random_state"] = None  # a generator goes on; a file cannot
    if "progress" in parameters:
        parameters["progress"] = bool(parameters["progress"])
    given = parameters.get("categorical_features")
    if np.iterable(given) and not isinstance(given, str | list | tuple):
        parameters["categorical_features"] = [one.item() if isinstance(one, np.generic) else one for one in given]
    return parameters


def _saved(fitted: Any, sums: bool | str) -> Any:
    """Return the record of a fit as a file holds it: without kernels that are bound again, and without times."""
    if isinstance(fitted, FittedExact):
        return fitted
    fit: Any = fitted.sums if sums else None
    if sums == "predict":
        fitted = replace(
            fitted, left_out=None, choice=replace(fitted.choice, scores=None), rows=replace(fitted.rows, sample=None)
        )
        fit = None if fitted.classes else CompactFit.of(fit) if isinstance(fit, LandmarkFit) else fit
    elif isinstance(fit, CompactFit):
        raise ParameterError(
            'this model was loaded without the sums that sums=True keeps; save it with sums="predict", or fit it again'
        )
    elif fit is not None:
        factor = fit.factor
        rest = (getattr(fit, name) for name in SavedFit._fields[3:])
        fit = SavedFit(factor.landmark_kernel, factor.kept, factor.triangle, *rest)
    known = fitted.calibration
    with suppress(NumericalError):  # of values beyond the range, which have no intervals
        known = fitted.calibrated if sums else known
    certificate = fitted.certificate
    if certificate is not None:
        cost = {name: value for name, value in certificate.cost.items() if name != "seconds"}
        certificate = replace(certificate, inputs=dict(certificate.inputs), cost=cost)
    return replace(
        fitted, solution=replace(fitted.solution, certificate=certificate), sums=fit, calibration=known, drawn=None
    )


def _restore(estimator: Any, header: Mapping[str, Any], contents: Decoder) -> tuple[Any, RunRecord | None]:
    """Return the model of a header, and the record of its run; whatever does not fit together is refused."""
    hints = {name: PARAMETERS.get(name, Any) for name in estimator._get_param_names()}
    model = estimator(**contents.record(hints, header["parameters"], "", estimator))
    model._recipe()  # checks the parameters, but not the device
    check_device(model.device)
    found = contents.decode(MODELS[estimator.__name__], header["fitted"], "fitted")
    schema = found.schema
    if schema.targets.flat and schema.targets.count > 1:
        raise refusal(place="fitted.schema.targets", what="has several targets in one column")
    if is_classifier(model) != (getattr(found, "classes", None) is not None):
        raise refusal(place="fitted.classes", what="must be those of a classifier, and of no other model")
    model._model = _bound(found) if isinstance(found, FittedModel) else found
    model._note_columns(schema.n_features, schema.feature_names)
    run = contents.decode(RunRecord | None, header["run"], "run")
    if not contents.given:  # the user's own code is not run here
        _try_to_predict(model)
    return model, run


def _bound(found: FittedModel) -> FittedModel:
    """Return the record of a landmark model, its sums with the kernel bound to the landmarks again."""
    choice, sums = found.choice, None
    kernel, landmarks, indices = choice.kernel, choice.landmarks, choice.indices
    scores, left_out = choice.scores, found.left_out
    per_row = ([] if scores is None else [scores.lower]) + ([] if left_out is None else [left_out.values.residuals])
    if indices is not None and any(indices.max() >= len(values) for values in per_row):
        raise refusal(place="fitted.choice.indices", what="names a row without a score or residual")
    if choice.sums.gram.shape != (0, 0):
        raise refusal(place="fitted.choice.sums.gram", what="must be empty")
    if isinstance(found.sums, SavedFit):
        landmark_kernel, kept, triangle, *rest = found.sums
        if len(np.unique(kept)) < len(kept):
            raise refusal(place="fitted.sums.kept", what="names a landmark twice")
        if found.sums.moments.gram.shape != triangle.shape:
            raise refusal(place="fitted.sums.moments.gram", what="must have a row and a column for each landmark kept")
        kept_kernel = kernel.bind(landmarks[kept], None if indices is None else indices[kept])
        factor = NystromFactor(choice.cross_kernel, landmark_kernel, kept, triangle, kept_kernel)
        sums = LandmarkFit(factor, *rest)
    if isinstance(found.sums, CompactFit):
        rank = len(found.sums.kept)
        if len(np.unique(found.sums.kept)) < rank or 2 * len(found.sums.root) != rank * (rank - 1):
            raise refusal(place="fitted.sums", what="must have each landmark once, and a triangle for them")
        sums = found.sums
    return replace(found, sums=sums)


def _try_to_predict(model: Any) -> None:
    """Refuse a model that predicts no finite numbers at its own points.

    Besides a few predictions, the sum of all terms at their largest must be finite, whatever their signs:
    `|k(x, z_j)| <= sqrt(k(x, x) k(z_j, z_j))`.
    """
    points, indices = getattr(model, "landmarks_", None), model.landmark_indices_
    if points is None:
        points, indices = model.X_fit_, None
    if points.ndim == 1:  # numbers of rows of a precomputed kernel
        points, size = np.zeros((1, model.n_features_in_)), np.ones((1, 1))
    else:
        size = np.sqrt(np.abs(model.kernel_.diagonal(points, indices).astype(np.float64)))[:, None]
    dual_coef = model.dual_coef_.reshape(len(model.dual_coef_), -1)
    largest = float((size.max() * (size * np.abs(dual_coef)).sum(axis=0) + np.abs(model.intercept_)).max())
    if not largest < np.finfo(np.float32 if model._model.schema.targets.single else np.float64).max:
        raise refusal(place="fitted", what="gives predictions beyond the floating-point range")
    tried = points[np.unique(np.linspace(0, count_rows(points) - 1, _TRIED).astype(np.intp))]
    source = ArrayRows(tried.astype(np.float64))
    cross_kernel, coefficients, intercept = model._function()
    model._predictions(Cross(RowPasses(source, model.memory_budget), cross_kernel) @ coefficients + intercept, source)


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise ParameterError(f"path must be the name of a model file, as text or a Path, got {path!r}")
    return Path(path)


def _check_given(path: Path, needed: list[str], given: list[Any], kernel: Any) -> None:
    if len(given) == len(needed) and (needed or kernel is None):
        return
    if not needed:
        raise ParameterError(f"{shown(path)} holds its kernel; leave kernel={kernel!r} out")
    got = "none" if kernel is None else listed(map(_name, given)) or repr(kernel)
    raise ParameterError(
        f"the model in {shown(path)} was made with {listed(needed)}, code that a file does not hold; "
        f"load it with kernel=... as the model was made, got {got}"
    )


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
