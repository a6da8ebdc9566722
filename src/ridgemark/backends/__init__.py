"""The array operations that are spelled differently in different array libraries.

Operators, in-place operators, slices and boolean masks mean the same for every array type, and the code uses them
directly. Every other operation is a method of `Backend`.
"""

from ridgemark.backends.base import Array, Backend, Flags, Floats, Indices, Rows
from ridgemark.backends.devices import (
    StaysOnHost,
    backend_of,
    computing_on,
    current_backend,
    device_backend,
    moved,
    on_host,
)
from ridgemark.backends.numpy import NUMPY
from ridgemark.backends.threads import all_blas_threads, blas_threads_for, one_blas_thread, worker_threads
