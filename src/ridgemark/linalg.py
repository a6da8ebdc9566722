"""Symmetric eigenproblems, roots of semidefinite matrices and their triangles, and what is rounding in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from ridgemark.backends import Array, Backend
from ridgemark.backends.threads import all_blas_threads
from ridgemark.errors import DataError, NumericalError

# Products with vectors add up blocks of at most this many terms.
SUMMED_AT_ONCE = 256
# A negative eigenvalue beyond this share of the largest is no rounding, not even of single precision.
_INDEFINITE = 1e-5
# An entry below this share of the largest one changes no eigenvalue by more than its rounding error.
_NEGLIGIBLE = 1e-30


def sum_rounding(n_terms: int) -> float:
    """Return the share of `sum_j |u_j v_j|` by which `sum_j u_j v_j` of so many terms errs at most.

    `m u` for one sum of m terms, u the unit roundoff; blocks of 256 terms add one for each block.
    """
    at_once = min(n_terms, SUMMED_AT_ONCE)
    return (at_once + n_terms / SUMMED_AT_ONCE + 4.0) * float(np.finfo(np.float64).eps) / 2.0


def product_in_blocks(left: Array, right: Array) -> Array:
    """Return `A V`, every entry a sum of blocks of at most `SUMMED_AT_ONCE` terms."""
    total = left[:, :SUMMED_AT_ONCE] @ right[:SUMMED_AT_ONCE]
    for start in range(SUMMED_AT_ONCE, left.shape[1], SUMMED_AT_ONCE):
        block = slice(start, start + SUMMED_AT_ONCE)
        total += left[:, block] @ right[block]
    return total


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
    # Far below rounding; products of such entries are denormal, and some builds of LAPACK then give NaN or do not end.
    negligible = abs(matrix) < _NEGLIGIBLE * abs(matrix).max(initial=0.0)
    try:
        values, vectors = backend.eigh(np.where(negligible, 0.0, matrix) if negligible.any() else matrix)
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


def largest_eigenvalue(root: Array, steps: int = 50) -> float:
    """Return the largest eigenvalue of `N N'`, by steps of the power method: after fifty a few percent low at worst."""
    scale = float(abs(root).max(initial=0.0))
    if not 0 < scale < np.inf:
        return scale
    root = root / scale  # so that no square leaves the range
    vector = np.ones(root.shape[0])
    size = 0.0
    for _ in range(steps):
        vector = root @ (root.T @ vector)
        size = float(np.linalg.norm(vector))
        if not 0 < size < np.inf:
            break
        vector /= size
    return size * scale * scale


def symmetric(upper: Array) -> Array:
    """Return the symmetric matrix with this upper triangle, whatever lies below it."""
    whole = np.triu(upper)
    whole += np.triu(upper, 1).T
    return whole


def pivoted_cholesky(
    matrix: Array, precision: np.dtype[np.floating], overwrite: bool = False
) -> tuple[Array, NDArray[np.intp]]:
    """Return R, upper triangular, and positions J with `R'R` the semidefinite matrix at rows and columns J.

    The matrix is scaled to a diagonal of ones. A column of which the others leave no more than `2 machine eps` of its
    own diagonal, rounding, is not in J. Eigenvectors would lose what lies below rounding of the *largest* eigenvalue,
    hundreds of times more; a column kept by chance that the others give to rounding does no harm.
    """
    scaled = matrix if overwrite else matrix.copy()
    lengths = unit_lengths(scaled)
    scaled /= lengths
    scaled /= lengths[:, None]
    diagonal = np.diagonal(scaled).copy()
    with all_blas_threads():
        # The transpose is the same matrix, in the order LAPACK can overwrite; it leaves the lower triangle alone.
        factor, order, rank = pivoted_factor_(scaled.T, 2 * float(np.finfo(precision).eps))
    _check_semidefinite(factor, order[rank:], diagonal, factor[:rank, rank:])
    triangle = factor if rank == len(factor) else np.asfortranarray(factor[:rank, :rank])
    triangle *= lengths[order[:rank]]
    return triangle, order[:rank]


def pivoted_factor_(matrix: Array, tolerance: float) -> tuple[Array, NDArray[np.intp], int]:
    """Overwrite the upper triangle of a symmetric matrix A by R with `R'R = P'A P`; return R, the order P and the rank.

    The factorisation stops at the rank, where no diagonal entry above the tolerance is left.
    """
    factor, pivots, rank, info = lapack.dpstrf(matrix, tol=tolerance, overwrite_a=1)
    _check_info("dpstrf", min(info, 0))  # 1 says that it stopped before the end
    return factor, pivots.astype(np.intp) - 1, int(rank)


def cholesky_(matrix: Array) -> Array | None:
    """Overwrite A by U, upper triangular, with `U'U = A` and anything below; None where A is not positive definite."""
    factor, info = lapack.dpotrf(matrix, lower=0, clean=0, overwrite_a=1)
    _check_info("dpotrf", min(info, 0))
    return None if info else factor


def times_own_transpose_(triangle: Array) -> Array:
    """Overwrite an upper triangle R, in Fortran order, by the upper triangle of `R R'`."""
    if not len(triangle):  # LAPACK takes no array without entries, and would say so on the standard output
        return triangle
    product, info = lapack.dlauum(triangle, overwrite_c=1)
    _check_info("dlauum", info)
    matrix: Array = product
    return matrix


def unit_lengths(matrix: Array) -> Array:
    """Return the roots of the diagonal, one where it is zero: dividing rows and columns makes it a diagonal of ones."""
    lengths = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    return np.where(lengths > 0, lengths, 1.0)


def inverse_triangle_(triangle: Array) -> Array:
    """Overwrite an upper triangle R, with whatever below its diagonal, by `R^-1`, zero below."""
    inverse = np.asfortranarray(triangle)
    if len(inverse):
        with all_blas_threads():
            _, info = lapack.dtrtri(inverse, lower=0, overwrite_c=1)
        _check_info("dtrtri", info)
    for column in range(len(inverse)):
        inverse[column + 1 :, column] = 0.0
    return inverse


def solve_triangle(triangle: Array, right: Array, transposed: bool = False) -> Array:
    """Return `R^-1 V`, or `R'^-1 V`, for an upper triangle R."""
    if not right.size:
        return np.zeros(right.shape)
    solution, info = lapack.dtrtrs(triangle, right, lower=0, trans=int(transposed))
    _check_info("dtrtrs", info)
    solved: Array = solution
    return solved


def congruence(matrix: Array, triangle: Array) -> Array:
    """Return `T'A T` for a symmetric A and an upper triangle T."""
    if not len(triangle):
        return np.zeros((0, 0))
    with all_blas_threads():
        right = blas.dtrmm(1.0, triangle, matrix, side=1, lower=0)
        product: Array = blas.dtrmm(1.0, triangle, right, side=0, lower=0, trans_a=1, overwrite_b=1)
    return (product + product.T) / 2


def _check_info(routine: str, info: int) -> None:
    """Refuse what LAPACK could not do: a triangle with a zero on its diagonal, or (a defect here) a wrong argument."""
    if info > 0:
        msg = (
            f"a triangular factor of a kernel matrix has a zero on its diagonal, at position {info - 1}; "
            "raise the ridge, or rescale the columns (standardise them)"
        )
        raise NumericalError(msg)
    if info < 0:
        msg = f"LAPACK's {routine} refused its argument {-info}; this is a defect of ridgemark: please report it"
        raise NumericalError(msg)


def _check_semidefinite(original: Array, rest: NDArray[np.intp], diagonal: Array, explained: Array) -> None:
    """Refuse a matrix of which columns without a diagonal left still have entries: it has negative eigenvalues."""
    entries = original[np.maximum.outer(rest, rest), np.minimum.outer(rest, rest)]
    np.fill_diagonal(entries, diagonal[rest])
    left = float(abs(entries - explained.T @ explained).max(initial=0.0))
    if left > _INDEFINITE:
        msg = (
            f"the kernel is not positive semidefinite: {left:.3g} of an entry is left, relative to the diagonal, where "
            "nothing of the diagonal is; choose a positive semidefinite kernel"
        )
        raise DataError(msg)
