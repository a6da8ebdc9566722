"""Where arrays live: the backend of an array, the one that computes now, and arrays moved to it and back."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

import array_api_compat
from scipy import sparse

from ridgemark.backends.base import Backend
from ridgemark.backends.numpy import NUMPY
from ridgemark.errors import MissingExtraError, ParameterError

_computing: ContextVar[Backend] = ContextVar("computing", default=NUMPY)


class StaysOnHost(Exception):
    """What was to be moved to a device can be used on the host only."""


def backend_of(values: Any) -> Backend:
    """Return the backend of an array; NumPy's for NumPy arrays, sparse matrices, and values that are not arrays."""
    if not array_api_compat.is_array_api_obj(values) or array_api_compat.is_numpy_array(values):
        return NUMPY
    if array_api_compat.is_torch_array(values):
        from ridgemark.backends.torch import TorchBackend

        return TorchBackend(values.device)
    return Backend(array_api_compat.array_namespace(values).__name__, array_api_compat.device(values))


def current_backend() -> Backend:
    """Return the backend on which passes made now compute; NumPy's unless `computing_on` names another."""
    return _computing.get()


@contextmanager
def computing_on(backend: Backend) -> Iterator[None]:
    """Let passes that are made here, and large matrices, be computed on this backend."""
    token = _computing.set(backend)
    try:
        yield
    finally:
        _computing.reset(token)


def check_device(device: Any) -> None:
    """Raise an error unless this is the name of a device; the machine need not have it."""
    if not (isinstance(device, str) and (device in ("cpu", "auto") or device.partition(":")[0] == "cuda")):
        raise ParameterError(f'device must be "cpu", "cuda", "cuda:1" and so on, or "auto", got {device!r}')


def device_backend(device: Any) -> Backend:
    """Return the backend of the parameter `device`: "cpu", "cuda", "cuda:1", ..., or "auto"."""
    if device == "cpu":
        return NUMPY
    check_device(device)
    try:
        from ridgemark.backends.torch import cuda_backend
    except ImportError as error:
        if device == "auto":
            return NUMPY
        raise MissingExtraError("torch", "torch", f"device={device!r}") from error
    backend = cuda_backend("cuda" if device == "auto" else device)
    if backend is None and device != "auto":
        raise ParameterError(f'device={device!r} needs a GPU that torch finds; use device="cpu" or "auto" here')
    return backend or NUMPY


def moved(value: Any, backend: Backend) -> Any:
    """Return a value with its arrays as arrays of the backend; raise StaysOnHost where that is not possible.

    Arrays are looked for in dataclasses, tuples, lists and partial functions.
    """
    if backend is NUMPY:
        return value

    def move(part: Any) -> Any:
        if isinstance(part, Backend):
            return backend
        if sparse.issparse(part) or getattr(part, "stays_on_host", False):
            raise StaysOnHost
        return backend.from_host(part)

    return _with_parts(value, move)


def on_host(value: Any, backend: Backend) -> Any:
    """Return a result of the backend, an array or a dataclass of such, with NumPy arrays."""
    if backend is NUMPY:
        return value

    def move(part: Any) -> Any:
        return backend.to_host(part) if backend.holds(part) else part

    return _with_parts(value, move)


def _with_parts(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return the value with `change` applied to all that is not a container of other values."""
    if isinstance(value, partial):
        return partial(value.func, *(_with_parts(part, change) for part in value.args), **value.keywords)
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(_with_parts(part, change) for part in value)
    if is_dataclass(value) and not isinstance(value, type | Backend):
        named = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(value, **{name: _with_parts(part, change) for name, part in named.items()})
    return change(value)
