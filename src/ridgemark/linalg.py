"""Symmetric eigenproblems and the one rule for numerical rank."""

from __future__ import annotations

import numpy as np

from ridgemark.backends import Array, Backend
from ridgemark.errors import DataError, NumericalError

# A negative eigenvalue beyond this share of the largest is no rounding, not even of single precision.
_INDEFINITE = 1e-5


def check_range(matrix: Array) -> Array:
    """Return a matrix of kernel values, or say that it holds what is no finite number."""
    if not bool((abs(matrix) < np.inf).all()):
        msg = (
            "a matrix of kernel values holds numbers beyond the floating-point range; "
            "rescale the columns (standardise them) or choose a kernel with a larger bandwidth"
        )
        raise NumericalError(msg)
    return matrix


def semidefinite_eigen(matrix: Array, backend: Backend) -> tuple[Array, Array]:
    """Return eigenvalues, descending and at least zero, and eigenvectors; refuse a matrix that is indefinite."""
    return symmetric_eigen(matrix, backend, definite=True)


def symmetric_eigen(matrix: Array, backend: Backend, definite: bool = False) -> tuple[Array, Array]:
    """Return eigenvalues in descending order, raised to zero where below, and eigenvectors of a symmetric matrix."""
    check_range(matrix)
    try:
        values, vectors = backend.eigh(matrix)
    except np.linalg.LinAlgError as error:
        msg = f"the eigenvalues of a {matrix.shape[0]} x {matrix.shape[0]} kernel matrix did not converge"
        raise NumericalError(msg) from error
    if definite and float(values[0]) < -_INDEFINITE * float(abs(values).max()):
        msg = (
            f"the kernel is not positive semidefinite: its matrix has an eigenvalue of {float(values[0]):.3g} beside a "
            f"largest of {float(values[-1]):.3g}; choose a positive semidefinite kernel"
        )
        raise DataError(msg)
    descending = slice(None, None, -1)
    # Copies: a reversed view has negative strides, which slow every product that follows.
    return backend.clip_(values[descending].copy(), 0.0), vectors[:, descending].copy()


def numerical_rank(eigenvalues: Array, precision: np.dtype[np.floating]) -> int:
    """Count eigenvalues (descending) above rounding: `size * machine eps * largest`, by the data's precision."""
    if eigenvalues.shape[0] == 0 or not eigenvalues[0] > 0:
        return 0
    threshold = eigenvalues.shape[0] * float(np.finfo(precision).eps) * eigenvalues[0]
    return int((eigenvalues > threshold).sum())
