"""Two BLAS routines that several threads may run at a time.

scipy's wrappers of them hold the interpreter's lock, and numpy knows one of them only by a product that it then copies.
The routines themselves are what scipy hands to Cython; called through ctypes they hold no lock. Where scipy was built
with other integers, numpy does the work.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas

Floats = NDArray[np.float64]

# Columns of a triangle that are worked on together: few enough to leave out its zeros, enough for a fast product.
_PANEL = 128


def symmetric_products(rows: Floats) -> Floats:
    """Return the upper triangle of `A'A`, in half the work of a product; zeros below."""
    size = rows.shape[1]
    if _SYRK is None or not _whole(rows) or not rows.size:
        return np.triu(rows.T @ rows)
    result = np.zeros((size, size))
    # What lies in rows here lies in columns to BLAS: A' is what it sees, and the lower triangle what we call upper.
    _SYRK(b"L", b"N", size, len(rows), 1.0, rows, size, 0.0, result, size)
    return result


def times_triangle_(rows: Floats, triangle: Floats) -> Floats:
    """Overwrite A by `A T` for an upper triangle T, in half the work of a product with a full matrix."""
    size = len(triangle)
    if _TRMM is None or not _whole(rows) or not rows.size:
        for first in reversed(range(0, size, _PANEL)):  # a panel needs the columns up to its own end and no others
            last = min(first + _PANEL, size)
            rows[:, first:last] = rows[:, :last] @ triangle[:last, first:last]
        return rows
    flipped = triangle.flags.f_contiguous
    stored = triangle if flipped else np.ascontiguousarray(triangle)
    where, transposed = (b"U", b"T") if flipped else (b"L", b"N")
    _TRMM(b"L", where, transposed, b"N", size, len(rows), 1.0, stored, size, rows, size)
    return rows


def _whole(rows: Floats) -> bool:
    return bool(rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.writeable)


def _routine(name: str, n_arguments: int) -> Callable[..., None] | None:
    """Return the routine of this name, which takes pointers; None where its integers are not C's int."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = cython_blas.__pyx_capi__[name]
    signature = api.PyCapsule_GetName(capsule)
    if signature.count(b",") != n_arguments - 1 or b", int *" not in signature:
        return None
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(api.PyCapsule_GetPointer(capsule, signature))

    def call(*arguments: Any) -> None:
        held = [_as_c(argument) for argument in arguments]
        function(*(ctypes.addressof(one) if isinstance(one, ctypes._SimpleCData) else one for one in held))

    return call


def _as_c(argument: Any) -> Any:
    """Return what a pointer can be taken of; of an array, its own."""
    if isinstance(argument, bytes):
        return ctypes.c_char(argument)
    if isinstance(argument, int):
        return ctypes.c_int(argument)
    return ctypes.c_double(argument) if isinstance(argument, float) else argument.ctypes.data


_SYRK = _routine("dsyrk", 10)
_TRMM = _routine("dtrmm", 11)
