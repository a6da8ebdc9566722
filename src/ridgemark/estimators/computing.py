"""Where an estimator's methods compute, and in which kind of array they answer."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import array_api_compat
import numpy as np

from ridgemark.backends import NUMPY, Backend, backend_of
from ridgemark.backends.devices import computing_on, device_backend
from ridgemark.backends.threads import one_blas_thread
from ridgemark.errors import DataTypeError
from ridgemark.passes.device import no_memory

_KINDS = {"numpy": "rows in host memory (NumPy arrays, data frames, files)", "torch": "torch tensors"}
_kind: ContextVar[str | None] = ContextVar("kind", default=None)


def kind_of_rows() -> str:
    """Return "torch" in a method that was given tensors, and otherwise "numpy"."""
    return _kind.get() or "numpy"


def computing(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that computes on the estimator's device, and answers in tensors where it is given tensors.

    Tensors of rows are computed on their own device unless `device` names another; targets and weights may be of any
    kind. BLAS runs one thread outside large matrices, and what exceeds the range raises an error, without warnings.
    """

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _kind.get() is not None:  # called by another such method
            return method(self, *args, **kwargs)
        rows = args[0] if args else kwargs.get("X")
        tensors = backend_of(rows) if array_api_compat.is_torch_array(rows) else None
        if method.__name__ != "fit" and rows is not None:
            _check_kind(self, tensors)
        args = tuple(_as_numpy(one) for one in args)
        kwargs = {name: _as_numpy(one) for name, one in kwargs.items()}
        with _on_device(self.device, tensors):
            answer = method(self, *args, **kwargs)
        return answer if tensors is None else _as_tensors(answer, tensors)

    return run


@contextmanager
def _on_device(device: Any, tensors: Backend | None) -> Iterator[None]:
    backend = device_backend(device)
    if backend is NUMPY and tensors is not None:
        backend = tensors
    token = _kind.set("numpy" if tensors is None else "torch")
    try:
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"), computing_on(backend):
            yield
    except backend.out_of_memory as error:
        if backend is NUMPY:
            raise
        raise no_memory(backend, "the matrices of the landmarks") from error
    finally:
        _kind.reset(token)


def _check_kind(estimator: Any, tensors: Backend | None) -> None:
    """Refuse rows of another kind than those of the fit."""
    if not hasattr(estimator, "_model"):
        return
    known, given = estimator._model.schema.arrays, "numpy" if tensors is None else "torch"
    if given != known:
        remedy = "torch.as_tensor(X)" if known == "torch" else "X.cpu().numpy()"
        raise DataTypeError(f"the model was fitted on {_KINDS[known]}, got {_KINDS[given]}; convert them: {remedy}")


def _as_numpy(value: Any) -> Any:
    if not array_api_compat.is_torch_array(value):
        return value
    try:
        return backend_of(value).to_host(value)
    except TypeError:
        raise DataTypeError(
            f"tensors must be dense, of float64, float32 or integers, got {value.dtype} in the layout {value.layout}; "
            "convert them with .to_dense() and .float()"
        ) from None


def _as_tensors(answer: Any, backend: Backend) -> Any:
    if isinstance(answer, tuple):
        return tuple(_as_tensors(one, backend) for one in answer)
    is_numeric = isinstance(answer, np.ndarray) and answer.dtype.kind in "fiub"
    return backend.from_host(answer) if is_numeric else answer
