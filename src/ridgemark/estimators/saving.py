"""Fitted models to files and back, through `ridgemark.persistence`."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ridgemark.backends.devices import check_device
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.fitted import FittedExact, FittedModel, RunRecord
from ridgemark.kernels.base import count_rows
from ridgemark.losses import LOSSES, SQUARED, ClassLoss, Loss, SquaredLoss
from ridgemark.persistence import SCHEMA, Checker, Contents, Decoder, Encoder, read_model, refusing, write_model
from ridgemark.persistence.checking import refusal
from ridgemark.rows import listed, shown
from ridgemark.rows.base import block_rows_for
from ridgemark.solvers import CompactFit, LandmarkFit

_RECORDS: dict[str, type] = {
    **dict.fromkeys(("NystromRidge", "NystromClassifier", "NystromRegressor"), FittedModel),
    "ExactKernelRidge": FittedExact,
}
# Parameters that nothing else checks before a model is used; of the others a file may hold any value.
_PARAMETERS = {
    "progress": bool,
    "random_state": int | None,
    "categorical_features": Annotated[str | Sequence[str | bool | int] | None, "any"],
    "quantiles": Sequence[float] | None,
}
_SETTINGS = {"_metadata_request", "_sklearn_output_config"}  # scikit-learn's own
_COLUMNS = {"n_features_in_", "feature_names_in_"}  # which follow from the record
_TRIED = 8  # points at which a model must predict finite numbers before it is saved, and when it is loaded


def save_model(
    model: Any, path: Any, overwrite: bool, *, sums: bool | str = "predict", run: RunRecord | None = None
) -> Path:
    """Write a fitted estimator to one file, whole or not at all; beside it what the command line knows of it."""
    target, kind = _path(path), type(model)
    if kind.__name__ not in _RECORDS:
        raise ParameterError(
            f"a model file holds a {' or an '.join(_RECORDS)}, and no subclass; got a {kind.__name__}; pickle it"
        )
    if sums not in ("predict", True, False):
        raise ParameterError(f'sums must be "predict", True or False, got {sums!r}')
    state = model.__getstate__()  # all attributes at one time; refused while a fit is running
    check_is_fitted(model, "dual_coef_")
    parameters = {name: state.pop(name) for name in model.get_params(deep=False)}
    fitted = state.pop("_model")
    if unknown := sorted(state.keys() - _SETTINGS - _COLUMNS):
        raise ParameterError(f"the model cannot be saved with {listed(unknown)}, which a {kind.__name__} does not have")
    own = _own_loss(getattr(fitted, "loss", SQUARED))
    schema = SCHEMA | {kind.__name__: kind} | own
    encoder, contents = Encoder(schema.values()), Contents(kind(**_savable(parameters)), _saved(fitted, sums), run)
    node = encoder.encode(contents, "model")
    try:  # nothing is saved that could not be loaded
        with np.errstate(all="ignore"):
            _restored(Decoder(dict(encoder.arrays), schema, encoder.given), node)
    except (ValueError, ArithmeticError, TypeError, LookupError, AttributeError) as error:
        raise ParameterError(f"the model cannot be saved, as it could not be loaded again: {error}") from error
    header = {"model": node, "given": [_name(function) for function in encoder.given], "losses": list(own)}
    write_model(target, header, encoder.arrays, overwrite)
    return target


def load_model(
    path: Any, estimators: Sequence[type], kernel: Any = None, loss: Any = None
) -> tuple[Any, RunRecord | None]:
    """Return the model saved at a path, one of the `estimators`, and what the command line knew of it.

    `kernel` and `loss` are given where they are the user's own code.
    """
    source = _path(path)
    header, arrays = read_model(source)
    encoder = Encoder(SCHEMA.values())  # finds the functions in the order in which the first one did
    with suppress(ParameterError):  # objects that are not kernels have too few of them
        encoder.encode(kernel, "kernel")
    with refusing(source):
        Checker().check(header["given"], list[str], "given")
        Checker().check(header["losses"], list[str], "losses")
    _check_given(source, header["given"], encoder.given, kernel)
    schema = SCHEMA | {kind.__name__: kind for kind in estimators} | _given_loss(source, header["losses"], loss)
    with refusing(source), np.errstate(all="ignore"):
        return _restored(Decoder(arrays, schema, encoder.given), header["model"])


def _own_loss(loss: Loss) -> dict[str, type]:
    """Return the class of a loss that is not one of the package's, by its name."""
    kind = type(loss)
    return {} if kind in LOSSES.values() else {kind.__name__: kind}


def _given_loss(path: Path, needed: list[str], loss: Any) -> dict[str, type]:
    """Return the class of the user's loss that a file needs, from `load(path, loss=...)`: an object or its class."""
    kind = loss if isinstance(loss, type) else type(loss)
    if loss is None and not needed:
        return {}
    if not needed:
        raise ParameterError(f"{shown(path)} holds its loss; leave loss={loss!r} out")
    if needed != [kind.__name__] or not issubclass(kind, Loss):
        raise ParameterError(
            f"the model in {shown(path)} was made with {listed(needed)}, code that a file does not hold; load it with "
            f"loss={needed[0]}, got {loss!r}"
        )
    return {kind.__name__: kind}


def _savable(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters without what belongs to this process."""
    if not isinstance(parameters["random_state"], int | np.integer | None):
        parameters["random_state"] = None  # a generator goes on; a file cannot
    if "progress" in parameters:
        parameters["progress"] = bool(parameters["progress"])
    given = parameters.get("categorical_features")
    if np.iterable(given) and not isinstance(given, str | list | tuple):
        parameters["categorical_features"] = [one.item() if isinstance(one, np.generic) else one for one in given]
    if parameters.get("quantiles") is not None:
        parameters["quantiles"] = [float(level) for level in parameters["quantiles"]]
    return parameters


def _saved(fitted: Any, sums: bool | str) -> Any:
    """Return the record of a fit as a file holds it, with the sums that are asked for and without times."""
    if isinstance(fitted, FittedExact):
        return fitted
    fit: Any = fitted.sums if sums else None
    if sums == "predict":
        fitted = replace(
            fitted, left_out=None, choice=replace(fitted.choice, scores=None), rows=replace(fitted.rows, sample=None)
        )
        fit = CompactFit.of(fit) if isinstance(fit, LandmarkFit) else fit
    elif isinstance(fit, CompactFit):
        raise ParameterError(
            'this model was loaded without the sums that sums=True keeps; save it with sums="predict", or fit it again'
        )
    calibration = fitted.calibration
    with suppress(NumericalError):  # of values beyond the range, which have no intervals
        calibration = fitted.calibrated if sums else calibration
    certificate = fitted.certificate
    if certificate is not None:
        cost = {name: value for name, value in certificate.cost.items() if name != "seconds"}
        certificate = replace(certificate, cost=cost)
    solution = replace(fitted.solution, certificate=certificate)
    return replace(fitted, solution=solution, sums=fit, calibration=calibration)


def _restored(decoder: Decoder, node: Any) -> tuple[Any, RunRecord | None]:
    """Return the model of a file, and the record of its run; whatever does not fit together is refused."""
    contents = decoder.read(Contents, node, "model")
    model: Any = contents.estimator
    fitted: FittedModel | FittedExact = contents.fitted
    if type(fitted) is not _RECORDS.get(type(model).__name__):
        raise refusal("model.estimator", f"must be one of {', '.join(_RECORDS)}, with the fit of such a model")
    for name in _PARAMETERS.keys() & vars(model):
        Checker().check(getattr(model, name), _PARAMETERS[name], f"model.estimator.{name}")
    model._recipe()  # checks the parameters, but not the device
    check_device(model.device)
    of_numbers = {"NystromRidge": SquaredLoss, "NystromClassifier": ClassLoss}.get(type(model).__name__)
    if isinstance(fitted, FittedModel) and of_numbers is not None and not isinstance(fitted.loss, of_numbers):
        raise refusal("model.fitted.loss", f"must be that of a {type(model).__name__}")
    if is_classifier(model) != (getattr(fitted, "classes", None) is not None):
        raise refusal("model.fitted.classes", "must be those of a classifier, and of no other model")
    model._model = _bound(fitted) if isinstance(fitted, FittedModel) else fitted
    model._note_columns(fitted.schema.n_features, fitted.schema.feature_names)
    if not decoder.given:  # the user's own code is not run here
        _try_to_predict(model)
    return model, contents.run


def _bound(fitted: FittedModel) -> FittedModel:
    """Return the record of a landmark model, its sums with the kernel bound to the landmarks again."""
    function, fit = fitted.function, fitted.sums
    if not isinstance(fit, LandmarkFit):
        return fitted
    if fit.moments.gram.shape != fit.factor.triangle.shape:
        raise refusal("model.fitted.sums.moments.gram", "must have a row and a column for each landmark kept")
    kept, numbers = fit.factor.kept, function.numbers
    kept_kernel = function.kernel.bind(function.points[kept], None if numbers is None else numbers[kept])
    factor = replace(fit.factor, cross_kernel=function.cross_kernel, kept_kernel=kept_kernel)
    return replace(fitted, sums=replace(fit, factor=factor))


def _try_to_predict(model: Any) -> None:
    """Refuse a model that predicts no finite numbers at its own points.

    Besides a few predictions, the sum of all terms at their largest must be finite, whatever their signs:
    `|k(x, z_j)| <= sqrt(k(x, x) k(z_j, z_j))`.
    """
    function = model._model.function
    points, dual_coef, intercept = function.points, function.dual_coef, function.intercept
    squares = np.ones(1) if points is None else function.kernel.diagonal(points, function.numbers).astype(np.float64)
    size = np.sqrt(np.abs(squares))[:, None]
    largest = float((size.max() * (size * np.abs(dual_coef)).sum(axis=0) + np.abs(intercept)).max())
    if not largest < np.finfo(np.float32 if model._model.schema.targets.single else np.float64).max:
        raise refusal("model.fitted", "gives predictions beyond the floating-point range")
    block_rows_for(model.memory_budget, 8 * len(dual_coef), 1)  # refuses a budget that is too small
    if points is not None:
        tried = points[np.unique(np.linspace(0, count_rows(points) - 1, _TRIED).astype(np.intp))]
        if not np.isfinite(function.cross_kernel(tried.astype(np.float64)) @ dual_coef + intercept).all():
            raise refusal("model.fitted", "gives predictions that are not finite")


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
