"""BLAS and LAPACK routines that several threads can run at the same time.

SciPy's wrappers of these routines hold the interpreter lock, and NumPy does not offer them: it has no product with a
triangle or inverse of one, and no product that is added to a matrix. SciPy exports pointers to them for Cython; ctypes
calls them here without the lock. If SciPy was built with 64-bit BLAS integers, NumPy products are used instead.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from ridgemark.backends.base import Floats

# Columns of a triangle in one product: few enough to skip most of its zeros, enough for a fast product.
_PANEL = 128
_SMALL = 32  # half of the rows of a triangle that LAPACK inverts as fast as products do


def times_triangle_(rows: Floats, triangle: Floats, transposed: bool = False) -> Floats:
    """Overwrite A by `A T`, or by `A T'`, T upper triangular, with half the operations of a full product."""
    size, multiply = len(triangle), _TRMM.get(rows.dtype)
    fitting = rows.flags.writeable and _in_rows(rows) and (_in_rows(triangle) or _in_rows(triangle.T))
    if multiply is None or not fitting or triangle.dtype != rows.dtype:
        # In this order a panel is computed from columns that are not overwritten yet.
        for panel in _panels(size) if transposed else reversed(_panels(size)):
            if transposed:
                rows[:, panel] = rows[:, panel.start :] @ triangle[panel, panel.start :].T
            else:
                rows[:, panel] = rows[:, : panel.stop] @ triangle[: panel.stop, panel]
        return rows
    # BLAS stores matrices by columns: to it our A is A', and our upper triangle is the lower one.
    one = rows.dtype.type(1.0)
    if _in_rows(triangle):
        turned = b"T" if transposed else b"N"
        multiply(b"L", b"L", turned, b"N", size, len(rows), one, triangle, _step(triangle), rows, _step(rows))
    else:
        turned = b"N" if transposed else b"T"
        multiply(b"L", b"U", turned, b"N", size, len(rows), one, triangle, _step(triangle.T), rows, _step(rows))
    return rows


def inverse_triangle(triangle: Floats) -> Floats:
    """Return the inverse X of an upper triangle T; raise LinAlgError if a number of its diagonal is zero.

    With 1 for the first half of the columns and 2 for the others, `X_12 = -X_11 T_12 X_22`.
    """
    inverse = np.zeros(triangle.shape, dtype=triangle.dtype)
    _invert(triangle, inverse)
    return inverse


def _invert(triangle: Floats, inverse: Floats) -> None:
    half, invert = len(triangle) // 2, _TRTRI.get(triangle.dtype)
    if half > _SMALL:
        first, second = slice(half), slice(half, None)
        for part in (first, second):
            _invert(triangle[part, part], inverse[part, part])
        inverse[first, second] = inverse[first, first] @ (triangle[first, second] @ -inverse[second, second])
        return
    inverse[...] = np.triu(triangle) if invert is not None else np.linalg.inv(np.triu(triangle))
    failed = ctypes.c_int(0)
    if invert is not None and inverse.size:
        invert(b"L", b"N", len(inverse), inverse, _step(inverse), failed)
    if failed.value:
        raise np.linalg.LinAlgError


def subtract_product_(values: Floats, left: Floats, right: Floats) -> Floats:
    """Overwrite values by `values - A B`, without an array for the product."""
    multiply, dtypes = _GEMM.get(values.dtype), {matrix.dtype for matrix in (values, left, right)}
    fitting = values.flags.writeable and len(dtypes) == 1 and all(_in_rows(matrix) for matrix in (values, left, right))
    if multiply is None or not fitting:
        values -= left @ right
        return values
    size = *values.shape[::-1], len(right)  # BLAS stores matrices by columns: to it this is C' - B'A'
    one = values.dtype.type(1.0)
    multiply(b"N", b"N", *size, -one, right, _step(right), left, _step(left), one, values, _step(values))
    return values


def _panels(size: int) -> list[slice]:
    return [slice(first, min(first + _PANEL, size)) for first in range(0, size, _PANEL)]


def _in_rows(matrix: Floats) -> bool:
    """Return whether the matrix is not empty and its rows are contiguous, as BLAS requires of its columns."""
    return bool(matrix.size and matrix.strides[1] == matrix.itemsize and _step(matrix) > 0)


def _step(matrix: Floats) -> int:
    """Return the stride of rows in numbers; zero if it is not a whole number, or less than a row."""
    step, odd = divmod(matrix.strides[0], matrix.itemsize)
    return 0 if odd or step < matrix.shape[1] else step


def _routines(module: Any, name: str, n_arguments: int) -> dict[np.dtype[Any], Callable[..., None]]:
    """Return the routines of this name for both precisions, which take pointers; none if integers are not C's int."""
    api, routines = ctypes.pythonapi, {}
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    for letter, dtype in (("s", np.float32), ("d", np.float64)):
        capsule = module.__pyx_capi__[letter + name]
        signature = api.PyCapsule_GetName(capsule)
        if signature.count(b",") != n_arguments - 1 or b", int *" not in signature:
            return {}
        pointer = api.PyCapsule_GetPointer(capsule, signature)
        routines[np.dtype(dtype)] = _called(ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(pointer))
    return routines


def _called(function: Callable[..., None]) -> Callable[..., None]:
    """Return the routine as a function of arrays and scalars."""

    def call(*arguments: Any) -> None:
        held = [_as_c(argument) for argument in arguments]
        function(*(ctypes.addressof(value) if isinstance(value, ctypes._SimpleCData) else value for value in held))

    return call


def _as_c(argument: Any) -> Any:
    """Return a scalar as a ctypes object, and an array as its address."""
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    kinds = {bytes: ctypes.c_char, int: ctypes.c_int, np.float32: ctypes.c_float, np.float64: ctypes.c_double}
    return argument if isinstance(argument, ctypes.c_int) else kinds[type(argument)](argument)


_TRMM, _GEMM = _routines(cython_blas, "trmm", 11), _routines(cython_blas, "gemm", 13)
_TRTRI = _routines(cython_lapack, "trtri", 6)
