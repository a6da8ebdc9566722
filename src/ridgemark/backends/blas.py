"""BLAS routines that several threads can run at the same time.

SciPy's wrappers of these routines hold the interpreter lock, and NumPy does not offer them: it has no product with a
triangle, and none that is added to a matrix. SciPy exports pointers to them for Cython; ctypes calls them here without
the lock. If SciPy was built with 64-bit BLAS integers, NumPy products are used instead.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cython_blas

from ridgemark.backends.base import Floats

# Columns of a triangle in one product: few enough to skip most of its zeros, enough for a fast product.
_PANEL = 128


def times_triangle_(rows: Floats, triangle: Floats, transposed: bool = False) -> Floats:
    """Overwrite A by `A T`, or by `A T'`, T upper triangular, with half the operations of a full product."""
    size = len(triangle)
    fitting = _in_rows(rows) and rows.flags.writeable and (_in_rows(triangle) or _in_rows(triangle.T))
    if _TRMM is None or not fitting:
        # In this order a panel is computed from columns that are not overwritten yet.
        for panel in _panels(size) if transposed else reversed(_panels(size)):
            if transposed:
                rows[:, panel] = rows[:, panel.start :] @ triangle[panel, panel.start :].T
            else:
                rows[:, panel] = rows[:, : panel.stop] @ triangle[: panel.stop, panel]
        return rows
    # BLAS stores matrices by columns: to it our A is A', and our upper triangle is the lower one.
    if _in_rows(triangle):
        turned = b"T" if transposed else b"N"
        _TRMM(b"L", b"L", turned, b"N", size, len(rows), 1.0, triangle, _step(triangle), rows, _step(rows))
    else:
        turned = b"N" if transposed else b"T"
        _TRMM(b"L", b"U", turned, b"N", size, len(rows), 1.0, triangle, _step(triangle.T), rows, _step(rows))
    return rows


def inverse_triangle(triangle: Floats) -> Floats:
    """Return the inverse X of an upper triangle T, one panel of columns after another.

    With 1 for the panels before and 2 for the panel itself, `X_22 = T_22^-1` and `X_12 = -X_11 T_12 X_22`.
    """
    inverse = np.zeros(triangle.shape, dtype=triangle.dtype)
    for panel in _panels(len(triangle)):
        before, own = slice(panel.start), np.linalg.inv(triangle[panel, panel])
        inverse[panel, panel] = own
        inverse[before, panel] = inverse[before, before] @ (triangle[before, panel] @ -own)
    return inverse


def subtract_product_(values: Floats, left: Floats, right: Floats) -> Floats:
    """Overwrite values by `values - A B`, without an array for the product."""
    if _GEMM is None or not (_in_rows(values) and values.flags.writeable and _in_rows(left) and _in_rows(right)):
        values -= left @ right
        return values
    size = *values.shape[::-1], len(right)  # BLAS stores matrices by columns: to it this is C' - B'A'
    _GEMM(b"N", b"N", *size, -1.0, right, _step(right), left, _step(left), 1.0, values, _step(values))
    return values


def _panels(size: int) -> list[slice]:
    return [slice(first, min(first + _PANEL, size)) for first in range(0, size, _PANEL)]


def _in_rows(matrix: Floats) -> bool:
    """Return whether the matrix is not empty and its rows are contiguous, as BLAS requires of its columns."""
    return bool(matrix.dtype == np.float64 and matrix.size and matrix.strides[1] == 8 and _step(matrix) > 0)


def _step(matrix: Floats) -> int:
    """Return the stride of rows in numbers; zero if it is not a whole number, or less than a row."""
    step, odd = divmod(matrix.strides[0], 8)
    return 0 if odd or step < matrix.shape[1] else step


def _routine(name: str, n_arguments: int) -> Callable[..., None] | None:
    """Return the routine of this name, which takes pointers; None if its integers are not C's int."""
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
    """Return a scalar as a ctypes object, and an array as its address."""
    kinds = {bytes: ctypes.c_char, int: ctypes.c_int, float: ctypes.c_double}
    return argument.ctypes.data if isinstance(argument, np.ndarray) else kinds[type(argument)](argument)


_TRMM, _GEMM = _routine("dtrmm", 11), _routine("dgemm", 13)
