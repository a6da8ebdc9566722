"""Where an estimator's methods compute, and in which kind of array they answer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import array_api_compat
import numpy as np
from sklearn import get_config

from ridgemark.backends import NUMPY, Backend, backend_of, computing_on, device_backend, one_blas_thread
from ridgemark.errors import DataTypeError
from ridgemark.passes.device import no_memory

_KINDS = {
    "numpy": "rows in host memory (NumPy arrays, data frames, files)",
    "torch": "torch tensors",
    "cupy": "CuPy arrays",
    "array_api_strict": "arrays of array_api_strict",
}
P = ParamSpec("P")
Result = TypeVar("Result")
_kind: ContextVar[str | None] = ContextVar("kind", default=None)


def kind_of_rows() -> str:
    """Return the library of the rows given to the method that runs: "numpy", "torch", "cupy", ..."""
    return _kind.get() or "numpy"


def computing(method: Callable[P, Result]) -> Callable[P, Result]:
    """Return a method that computes on the estimator's device, and answers in arrays of the library of its rows.

    Tensors of rows are computed on their own device unless `device` names another. Arrays of other libraries, which are
    taken where scikit-learn's `array_api_dispatch` is on, are computed on the host unless `device` names a GPU. Targets
    and weights may be of any kind. BLAS runs one thread outside large matrices, and what exceeds the range raises an
    error, without warnings.
    """

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _kind.get() is not None:  # called by another such method
            return method(self, *args, **kwargs)
        rows = args[0] if args else kwargs.get("X")
        given = library_of(rows)
        if method.__name__ != "fit" and rows is not None:
            _check_kind(self, given, method.__name__)
        args = tuple(as_numpy(one) for one in args)
        kwargs = {name: as_numpy(one) for name, one in kwargs.items()}
        with on_device(self.device, given):
            answer = method(self, *args, **kwargs)
        return answer if given is NUMPY else _in_library(answer, given)

    return cast(Callable[P, Result], run)


@contextmanager
def on_device(device: Any, given: Backend) -> Iterator[None]:
    """Compute on the parameter `device`; where that is the CPU, tensors on their own."""
    backend = device_backend(device)
    if backend is NUMPY and _kind_of(given) == "torch":
        backend = given
    token = _kind.set(_kind_of(given))
    try:
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"), computing_on(backend):
            yield
    except backend.out_of_memory as error:
        if backend is NUMPY:
            raise
        raise no_memory(backend, "the matrices of the landmarks") from error
    finally:
        _kind.reset(token)


def library_of(values: Any) -> Backend:
    """Return the backend of an array that is answered in its own library; NumPy's for all other values."""
    if array_api_compat.is_torch_array(values):
        return backend_of(values)
    if not get_config()["array_api_dispatch"] or array_api_compat.is_dask_array(values):
        return NUMPY
    found = backend_of(values)
    return found if _kind_of(found) in _KINDS else NUMPY


def _kind_of(backend: Backend) -> str:
    return backend.namespace.rpartition(".")[2]


def _check_kind(estimator: Any, backend: Backend, method: str) -> None:
    """Refuse rows of another library than those of the fit."""
    if not hasattr(estimator, "_model"):
        return
    known, given = estimator._model.schema.arrays, _kind_of(backend)
    if given != known:
        to_host = "X.cpu().numpy()" if given == "torch" else 'numpy.from_dlpack(X, device="cpu")'
        raise DataTypeError(
            f"rows given to {type(estimator).__name__}.{method}() must use the same namespace as those of the fit: the "
            f"model was fitted on {_KINDS[known]}, got {_KINDS[given]}; convert them: "
            f"{to_host if known == 'numpy' else f'{known}.asarray(X)'}"
        )


def as_numpy(value: Any) -> Any:
    """Return an array of another library as a NumPy array, and every other value as it is."""
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
    """Refuse an array on a device, where scikit-learn's array API dispatch is off."""
    is_other = array_api_compat.is_array_api_obj(value) and not isinstance(value, np.ndarray)
    if not is_other or array_api_compat.is_dask_array(value):
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
