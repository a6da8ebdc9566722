"""The array operations that are spelled differently in different array libraries.

Operators, in-place operators, slices and boolean masks mean the same for every array type, and the code uses them
directly. Every other operation is a method of `Backend`.
"""

from typing import Any

import array_api_compat

from ridgemark.backends.base import Array, Backend, Flags, Floats, Indices, Rows
from ridgemark.backends.devices import StaysOnHost, computing_on, current_backend, device_backend, moved, on_host
from ridgemark.backends.numpy import NUMPY
from ridgemark.backends.threads import all_blas_threads, blas_threads_for, one_blas_thread, worker_threads


def backend_of(values: Any) -> Backend:
    """Return the backend of an array; NumPy's for NumPy arrays, sparse matrices, and values that are not arrays."""
    if not array_api_compat.is_array_api_obj(values) or array_api_compat.is_numpy_array(values):
        return NUMPY
    if array_api_compat.is_torch_array(values):
        from ridgemark.backends.torch import TorchBackend

        return TorchBackend(values.device)
    return Backend(array_api_compat.array_namespace(values).__name__, array_api_compat.device(values))
