"""How an estimator's methods compute and answer: where, in which kind of array, lazily on Dask; and public names."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

import array_api_compat
import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from ridgemark.backends import NUMPY, Backend, backend_of, computing_on, device_backend, one_blas_thread
from ridgemark.errors import DataTypeError, NumericalError
from ridgemark.fitted import FittedModel
from ridgemark.passes.device import no_memory
from ridgemark.rows import computed, is_dask, open_rows
from ridgemark.rows.dask_lazy import lazy_rows

_KINDS = {
    "numpy": "rows in host memory (NumPy arrays, data frames, files)",
    "torch": "torch tensors",
    "cupy": "CuPy arrays",
    "array_api_strict": "arrays of array_api_strict",
}
_PLAIN = {"predict", "predict_proba", "predict_log_proba", "decision_function"}  # need coefficients only
P = ParamSpec("P")
Result = TypeVar("Result")
# The library of the rows given to the method that runs: "numpy", "torch", "cupy", ...; None where none does.
kind_of_rows: ContextVar[str | None] = ContextVar("kind_of_rows", default=None)


def computing(method: Callable[P, Result], lazy: bool = False) -> Callable[P, Result]:
    """Return a method that computes on the estimator's device, and answers in arrays of the library of its rows.

    Tensors of rows are computed on their own device unless `device` names another. Arrays of other libraries, which are
    taken where scikit-learn's `array_api_dispatch` is on, are computed on the host unless `device` names a GPU. Targets
    and weights may be of any kind. BLAS runs one thread outside large matrices, and what exceeds the range raises an
    error, without warnings. With `lazy` the answer for a Dask collection is computed when it is needed.
    """

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        rows = args[0] if args else kwargs.get("X")
        if lazy and not isinstance(rows, np.ndarray) and is_dask(rows):
            return _lazily(self, method.__name__, rows, args[1:], kwargs)
        if kind_of_rows.get() is not None:  # called by another such method
            return method(self, *args, **kwargs)
        given = library_of(rows)
        if method.__name__ != "fit" and rows is not None and hasattr(self, "_model"):
            _check_kind(self, given, method.__name__)
        args = tuple(as_numpy(one) for one in args)
        kwargs = {name: as_numpy(one) for name, one in kwargs.items()}
        with on_device(self.device, given):
            answer = method(self, *args, **kwargs)
        return answer if given is NUMPY else _in_library(answer, given)

    return cast(Callable[P, Result], run)


def lazy_on_dask(method: Callable[P, Result]) -> Callable[P, Result]:
    """Return the method, which for a Dask collection gives Dask arrays: each partition is computed when it is needed.

    The model at the time of the call is used, whatever becomes of the estimator.
    """
    return computing(method, lazy=True)


@contextmanager
def on_device(device: Any, given: Backend) -> Iterator[None]:
    """Compute on the parameter `device`; where that is the CPU, tensors on their own."""
    backend = device_backend(device)
    if backend is NUMPY and given.library == "torch":
        backend = given
    token = kind_of_rows.set(given.library)
    try:
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"), computing_on(backend):
            yield
    except backend.out_of_memory as error:
        if backend is NUMPY:
            raise
        raise no_memory(backend, "the matrices of the landmarks") from error
    finally:
        kind_of_rows.reset(token)


def library_of(values: Any) -> Backend:
    """Return the backend of an array that is answered in its own library; NumPy's for all other values."""
    if isinstance(values, np.ndarray):
        return NUMPY
    if array_api_compat.is_torch_array(values):
        return backend_of(values)
    if not get_config()["array_api_dispatch"] or array_api_compat.is_dask_array(values):
        return NUMPY
    found = backend_of(values)
    return found if found.library in _KINDS else NUMPY


def _check_kind(estimator: Any, backend: Backend, method: str) -> None:
    """Refuse rows of another library than those of the fit."""
    known, given = estimator._model.schema.arrays, backend.library
    if given != known:
        to_host = "X.cpu().numpy()" if given == "torch" else 'numpy.from_dlpack(X, device="cpu")'
        raise DataTypeError(
            f"rows given to {type(estimator).__name__}.{method}() must use the same namespace as those of the fit: the "
            f"model was fitted on {_KINDS[known]}, got {_KINDS[given]}; convert them: "
            f"{to_host if known == 'numpy' else f'{known}.asarray(X)'}"
        )


def as_numpy(value: Any) -> Any:
    """Return an array of another library as a NumPy array, and every other value as it is."""
    if isinstance(value, np.ndarray) or not array_api_compat.is_array_api_obj(value):
        return value
    backend = library_of(value)
    if backend is NUMPY:
        _check_convertible(value)
        return value
    try:
        return backend.to_host(value)
    except (TypeError, BufferError):
        raise DataTypeError(
            f"tensors must be dense, of float64, float32 or integers, got {value.dtype} in the layout "
            f"{getattr(value, 'layout', 'of its library')}; convert them with .to_dense() and .float()"
        ) from None


def _check_convertible(value: Any) -> None:
    """Refuse an array of another library on a device, where scikit-learn's array API dispatch is off."""
    if array_api_compat.is_dask_array(value):
        return
    try:
        np.asarray(value)
    except (TypeError, RuntimeError):
        raise DataTypeError(
            f"arrays of {type(value).__module__.partition('.')[0]} on a device are taken where scikit-learn's array "
            "API dispatch is on; call sklearn.set_config(array_api_dispatch=True), or convert them: "
            'numpy.from_dlpack(X, device="cpu")'
        ) from None


def _in_library(answer: Any, backend: Backend) -> Any:
    if isinstance(answer, tuple):
        return tuple(_in_library(one, backend) for one in answer)
    is_numeric = isinstance(answer, np.ndarray) and answer.dtype.kind in "fiub"
    return backend.from_host(answer) if is_numeric else answer


def at_once(rows: Any, *values: Any) -> tuple[Any, ...]:
    """Return rows whose predictions are computed when they are asked for, and values without Dask."""
    return open_rows(rows) if is_dask(rows) else rows, *(computed([one])[0] if is_dask(one) else one for one in values)


def _lazily(estimator: Any, name: str, rows: Any, arguments: Any, options: dict[str, Any]) -> Any:
    """Return what a method answers for each partition of a Dask collection."""
    check_is_fitted(estimator)
    options = {key: value for key, value in options.items() if key != "X"}
    light = _light(estimator, name, arguments or options)
    return lazy_rows(partial(_call, light, name, arguments, options), rows)


def _light(estimator: Any, name: str, asked: Any) -> Any:
    """Return a copy of the estimator without what the method does not need: it is sent to every worker."""
    light = copy.copy(estimator)
    model = light._model
    if isinstance(model, FittedModel):
        model = replace(model, left_out=None, choice=replace(model.choice, scores=None))
        model = replace(model, sums=None if name in _PLAIN and not asked else estimator._model.expanded)
        known = estimator._model.calibrated if name == "predict_interval" else None
        light._model = replace(model, calibration=known, drawn=None)
    return light


def _call(model: Any, name: str, arguments: Any, options: dict[str, Any], rows: Any) -> Any:
    return getattr(model, name)(rows, *arguments, **options)


class FittedName(property):
    """A public name of what a fit knows: read from the estimator's record, and absent where that has none.

    Parameters
    ----------
    read : callable
        Takes the record.
    optional : bool, default=False
        Whether None means that the name is absent.
    reason : str, default=""
        Why a fit may leave none.
    """

    def __init__(self, read, optional=False, reason=""):
        super().__init__(self._get)
        self._read, self._optional, self._reason, self._name = read, optional, reason, "?"

    def __set_name__(self, owner, name):
        self._name = name

    def _get(self, estimator):
        record = getattr(estimator, "_model", None)
        value = None if record is None else self._read(record)
        if record is None or (self._optional and value is None):
            raise AttributeError(
                f"{type(estimator).__name__} has no attribute {self._name}: it is not fitted, or its fit left none"
                f"{self._reason}",
                name=self._name,
                obj=estimator,
            )
        return value


def in_form(model, values):
    """Return what has one entry per target, on its last axis, in the shape of the targets of the fit; None for None."""
    if values is None or not model.schema.targets.flat:
        return values
    return float(values[0]) if values.ndim == 1 else values[..., 0]


def check_coefficients(dual_coef, intercept, remedy="rescale the targets or choose a larger ridge"):
    """Refuse a function whose coefficients exceed the floating-point range."""
    if not (np.isfinite(dual_coef).all() and np.isfinite(intercept).all()):
        raise NumericalError(f"the coefficients exceed the floating-point range; {remedy}")


def in_range(values, what, remedy):
    """Return an array with one entry, or several, for each row; refuse it where one is not a finite number."""
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise NumericalError(f"{what} for row {row} exceeds the floating-point range; {remedy}")
    return values
