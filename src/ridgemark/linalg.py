"""Symmetric eigenproblems, roots of semidefinite matrices, and what is rounding in them."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

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


def largest_eigenvalue(root: Array) -> float:
    """Return the largest eigenvalue of `N N'`, by fifty steps of the power method: a few percent low at worst."""
    vector = np.ones(root.shape[0])
    size = 0.0
    for _ in range(50):
        vector = root @ (root.T @ vector)
        size = float(np.linalg.norm(vector))
        if not 0 < size < np.inf:
            break
        vector /= size
    return size


def inverse_root(matrix: Array, precision: np.dtype[np.floating]) -> Array:
    """Return N, (size, rank), with `N N'` the inverse of a semidefinite matrix on the columns that are independent.

    By Cholesky with pivoting of the matrix scaled to a diagonal of ones. A column of which the others leave no more
    than rounding, `2 machine eps` of its own diagonal, is dropped: its row of N is zero. Eigenvectors would lose what
    lies below rounding of the *largest* eigenvalue, hundreds of times more; what rounding leaves of a column kept by
    chance is a feature of size 1e-8.
    """
    size = matrix.shape[0]
    lengths = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    lengths = np.where(lengths > 0, lengths, 1.0)
    scaled = matrix / lengths / lengths[:, None]
    tolerance = 2 * float(np.finfo(precision).eps)
    triangle, pivots, rank, _ = dpstrf(scaled, tol=tolerance)
    order = pivots - 1
    kept, rest = order[:rank], order[rank:]
    _check_semidefinite(scaled[np.ix_(rest, rest)], triangle[:rank, rank:])
    root = np.zeros((size, rank))
    root[kept] = solve_triangular(np.triu(triangle[:rank, :rank]), np.eye(rank), check_finite=False)
    return root / lengths[:, None]


def _check_semidefinite(rest: Array, explained: Array) -> None:
    """Refuse a matrix of which columns without a diagonal left still have entries: it has negative eigenvalues."""
    left = float(abs(rest - explained.T @ explained).max(initial=0.0))
    if left > _INDEFINITE:
        msg = (
            f"the kernel is not positive semidefinite: {left:.3g} of an entry is left, relative to the diagonal, where "
            "nothing of the diagonal is; choose a positive semidefinite kernel"
        )
        raise DataError(msg)
