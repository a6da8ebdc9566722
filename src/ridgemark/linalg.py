"""Symmetric eigenproblems, factors of semidefinite matrices, triangular matrices, and their rounding errors."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from ridgemark.backends import NUMPY, Array, Floats, Indices, backend_of, blas_threads_for, current_backend
from ridgemark.errors import DataError, NumericalError

EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)
# Products with vectors are summed in blocks of at most this many terms; those with coefficients of landmarks, which are
# often huge and of both signs, in smaller ones.
SUMMED_AT_ONCE, LANDMARKS_AT_ONCE = 256, 64
# A matrix with fewer rows is computed on the host: moving it to a device would take longer.
_WORTH_SENDING = 1024
# Smallest squared pivot, for a unit diagonal, at which a factor without pivoting is as accurate as one with it.
_SAFE_PIVOT = 1e-7
# A negative eigenvalue beyond this fraction of the largest is not a rounding error, even in single precision.
_INDEFINITE = 1e-5
# An entry below this share of the largest one changes no eigenvalue by more than its rounding error.
_NEGLIGIBLE = 1e-30


def sum_rounding(n_terms: int, at_once: int = SUMMED_AT_ONCE) -> float:
    """Return a bound on the rounding error of `sum_j u_j v_j`, relative to `sum_j |u_j v_j|`.

    `m u` for one sum of m terms, u the unit roundoff; `(b + number of blocks) u` with blocks of b terms.
    """
    return (min(n_terms, at_once) + n_terms / at_once + 4.0) * EPS / 2.0


def product_in_blocks(left: Array, right: Array, at_once: int = SUMMED_AT_ONCE) -> Array:
    """Return `A V`, every entry a sum of blocks of at most `at_once` terms."""
    return backend_of(left).product_in_blocks(left, right, at_once)


def rounded(values: Floats) -> Floats:
    """Return positive numbers rounded to 30 bits: a factor on all weights then changes none of them."""
    mantissas, exponents = np.frexp(values)
    return np.ldexp(np.round(np.ldexp(mantissas, 30)), exponents - 30)


def sent(matrix: Array) -> Array:
    """Return a large matrix as an array of the device that computes now; other matrices as they are."""
    return current_backend().from_host(matrix) if worth_sending(len(matrix)) else matrix


def product(left: Floats, right: Floats) -> Floats:
    """Return `A B`; of two large matrices, by the device that computes now."""
    if not worth_sending(min(left.shape + right.shape)):
        return left @ right
    backend = current_backend()
    return backend.to_host(backend.from_host(left) @ backend.from_host(right))


def worth_sending(n_rows: int) -> bool:
    """Return whether a matrix of so many rows is computed on a device."""
    return current_backend() is not NUMPY and n_rows >= _WORTH_SENDING


def check_range(matrix: Array) -> Array:
    """Return a matrix of kernel values; refuse values that are not finite."""
    if not bool((abs(matrix) < np.inf).all()):
        raise NumericalError(
            "a matrix of kernel values holds numbers beyond the floating-point range; "
            "rescale the columns (standardise them) or choose a kernel with a larger bandwidth"
        )
    return matrix


def symmetric_eigen(matrix: Array, definite: bool = False) -> tuple[Array, Array]:
    """Return eigenvalues, descending and clipped at zero, and eigenvectors of a symmetric matrix.

    With `definite`, an indefinite matrix is refused.
    """
    check_range(matrix)
    # Far below rounding; products of such entries are denormal, and some builds of LAPACK then give NaN or do not end.
    negligible = abs(matrix) < _NEGLIGIBLE * abs(matrix).max(initial=0.0)
    try:
        values, vectors = _eigh(np.where(negligible, 0.0, matrix) if negligible.any() else matrix)
    except np.linalg.LinAlgError as error:
        raise NumericalError(
            f"the eigenvalues of a {matrix.shape[0]} x {matrix.shape[0]} kernel matrix did not converge"
        ) from error
    if definite and float(values[0]) < -_INDEFINITE * float(abs(values).max()):
        raise DataError(
            f"the kernel is not positive semidefinite: its matrix has an eigenvalue of {float(values[0]):.3g}, and its "
            f"largest is {float(values[-1]):.3g}; choose a positive semidefinite kernel"
        )
    # Copies: the negative strides of a reversed view slow all later products.
    return np.maximum(values[::-1], 0.0), vectors[:, ::-1].copy()


def _eigh(matrix: Array) -> tuple[Array, Array]:
    """Return ascending eigenvalues and eigenvectors; by LAPACK where the device's library fails, as at some sizes."""
    if worth_sending(len(matrix)):
        backend = current_backend()
        with suppress(np.linalg.LinAlgError):
            values, vectors = backend.eigh(backend.from_host(matrix))
            return backend.to_host(values), backend.to_host(vectors)
    return NUMPY.eigh(matrix)


def numerical_rank(eigenvalues: Array) -> int:
    """Count the eigenvalues (descending) above `size * machine eps * largest`."""
    if eigenvalues.shape[0] == 0 or not eigenvalues[0] > 0:
        return 0
    threshold = eigenvalues.shape[0] * EPS * eigenvalues[0]
    return int((eigenvalues > threshold).sum())


def largest_entry(matrix: Array) -> float:
    """Return the largest absolute value; zero of an empty matrix."""
    return float(abs(matrix).max()) if 0 not in matrix.shape else 0.0


def largest_eigenvalue(root: Array, steps: int = 50) -> float:
    """Return the largest eigenvalue of `N N'`, by the power method: after fifty steps at most a few percent too low."""
    scale, backend = largest_entry(root), backend_of(root)
    if not 0 < scale < np.inf:
        return scale
    root = root / scale  # so that squares do not overflow
    vector = backend.zeros((root.shape[0],)) + 1.0
    size = 0.0
    for _ in range(steps):
        vector = root @ (root.T @ vector)
        size = float(backend.xp.linalg.norm(vector))
        if not 0 < size < np.inf:
            break
        vector /= size
    return size * scale * scale


def pivoted_cholesky(matrix: Array, precision: np.dtype[np.floating]) -> tuple[Array, Indices]:
    """Return R, upper triangular, and positions J with `R'R` the semidefinite matrix at rows and columns J.

    The matrix is scaled to a unit diagonal. A column is not in J if the columns in J leave at most `2 machine eps` of
    its diagonal entry. An eigendecomposition would cut at the rounding error of the *largest* eigenvalue, hundreds of
    times higher; a redundant column kept by chance does no harm.
    """
    if not isinstance(matrix, np.ndarray):
        return _cholesky_on_device(matrix, precision)
    scaled = matrix.copy()
    lengths = np.sqrt(np.maximum(np.diagonal(scaled), 0.0))
    lengths[lengths == 0] = 1.0
    scaled /= lengths
    scaled /= lengths[:, None]
    diagonal = np.diagonal(scaled).copy()
    with blas_threads_for(len(matrix)):
        # The transpose is the same matrix in Fortran order, which LAPACK overwrites but for its lower triangle. It
        # stops at the rank: no remaining diagonal entry exceeds the tolerance.
        factor, pivots, rank, info = lapack.dpstrf(scaled.T, tol=2 * float(np.finfo(precision).eps), overwrite_a=1)
    _check_info("dpstrf", min(info, 0))  # 1 means that it stopped at the rank
    order = pivots.astype(np.intp) - 1
    _check_semidefinite(factor, order[rank:], diagonal, factor[:rank, rank:])
    triangle = factor if rank == len(factor) else np.asfortranarray(factor[:rank, :rank])
    triangle *= lengths[order[:rank]]
    return triangle, order[:rank]


def _cholesky_on_device(matrix: Array, precision: np.dtype[np.floating]) -> tuple[Array, Indices]:
    """Return what `pivoted_cholesky` returns; without pivoting, where no column is close to the span of the others."""
    backend, size = backend_of(matrix), len(matrix)
    diagonal = backend.diagonal(matrix)
    lengths = backend.xp.sqrt(backend.xp.where(diagonal > 0, diagonal, 1.0))
    triangle = backend.cholesky(matrix / lengths / lengths[:, None])
    if triangle is not None and float(backend.diagonal(triangle).min()) ** 2 > _SAFE_PIVOT:
        return triangle * lengths, np.arange(size)
    triangle, kept = pivoted_cholesky(backend.to_host(matrix), precision)
    return backend.from_host(np.triu(triangle)), kept


def copy_with_ridge(matrix: Array, ridge: float) -> Array:
    """Return a copy of a symmetric matrix, in Fortran order on the host, with the ridge added to its diagonal."""
    # The transpose of a symmetric matrix in C order has the same entries in Fortran order: its copy is faster.
    copy = np.array(matrix.T, order="F") if isinstance(matrix, np.ndarray) else matrix.clone()
    backend_of(copy).diagonal(copy)[...] += ridge
    return copy


def cholesky_(matrix: Array) -> Array | None:
    """Overwrite A by U, upper triangular, with `U'U = A`, undefined below the diagonal; None if A is not definite."""
    if not isinstance(matrix, np.ndarray):
        return backend_of(matrix).cholesky(matrix)
    factor, info = lapack.dpotrf(matrix, lower=0, clean=0, overwrite_a=1)
    _check_info("dpotrf", min(info, 0))
    return None if info else factor


def leading_cholesky(matrix: Floats) -> Floats:
    """Return U, upper triangular, with `U'U` the largest leading part of a matrix that rounding leaves definite."""
    lengths = np.sqrt(np.diagonal(matrix))
    scaled, size = matrix / lengths / lengths[:, None], len(matrix)
    while True:
        with blas_threads_for(size):
            factor, info = lapack.dpotrf(scaled[:size, :size].T, lower=0, clean=1)
        _check_info("dpotrf", min(info, 0))
        if not info:
            return factor * lengths[:size]
        size = info - 1


def raised_cholesky(matrix: Array, ridge: float) -> Array:
    """Return U with `U'U = A + s I` for a symmetric matrix A, which is not overwritten.

    s is the ridge, raised to the rounding error of A, and further until rounding leaves `A + s I` definite.
    """
    diagonal = check_range(backend_of(matrix).diagonal(matrix))
    ridge = max(ridge, len(matrix) * EPS * largest_entry(diagonal), _TINY)
    while True:
        with blas_threads_for(len(matrix)):
            factor = cholesky_(copy_with_ridge(matrix, ridge))
        if factor is not None:
            return factor
        ridge *= 10.0
        # The loop ends: A + s I is definite if s is p times the largest entry of A, and an infinite s is refused.
        check_range(copy_with_ridge(matrix, ridge))


def inverse_triangle_(triangle: Array) -> Array:
    """Overwrite an upper triangle R by `R^-1`, with zeros below; entries of R below its diagonal are ignored."""
    if not isinstance(triangle, np.ndarray):
        return backend_of(triangle).inverse_triangle(triangle)
    inverse = np.asfortranarray(triangle)
    if len(inverse):
        with blas_threads_for(len(inverse)):
            _, info = lapack.dtrtri(inverse, lower=0, overwrite_c=1)
        _check_info("dtrtri", info)
    for column in range(len(inverse)):
        inverse[column + 1 :, column] = 0.0
    return inverse


@dataclass(frozen=True)
class InvertedTriangle:
    """An upper triangle on a device, as its inverse: products with a few vectors are many times faster than solving."""

    inverse: Array


def for_solving(triangle: Array) -> Array | InvertedTriangle:
    """Return a triangle in the form in which `solve_triangle` is fastest for a few vectors."""
    return triangle if isinstance(triangle, np.ndarray) else InvertedTriangle(inverse_triangle_(triangle))


def solve_triangle(triangle: Any, right: Array, transposed: bool = False) -> Array:
    """Return `R^-1 V`, or `R'^-1 V`, for an upper triangle R."""
    if 0 in right.shape:
        return backend_of(right).zeros(right.shape)
    if isinstance(triangle, np.ndarray):
        if isinstance(right, np.ndarray):
            solution, info = lapack.dtrtrs(triangle, right, lower=0, trans=int(transposed))
            _check_info("dtrtrs", info)
            return solution
        triangle = backend_of(right).from_host(np.triu(triangle))
    inverse = triangle.inverse if isinstance(triangle, InvertedTriangle) else None
    backend = backend_of(triangle if inverse is None else inverse)
    there = backend.from_host(right)
    if inverse is None:
        solution = backend.solve_triangle(triangle, there, transposed)
    else:
        solution = (inverse.T if transposed else inverse) @ there
    return backend.to_host(solution) if isinstance(right, np.ndarray) else solution


def solve_cholesky(factor: Any, right: Array) -> Array:
    """Return `A^-1 V` for `A = U'U`, U upper triangular."""
    return solve_triangle(factor, solve_triangle(factor, right, transposed=True))


def squared_norm_of_triangle(triangle: Floats, factor: float) -> float:
    """Return `|factor R|^2`, the sum of the squared entries, for an upper triangle R in Fortran order.

    The factor is multiplied first: the squares of R alone may leave the floating-point range.
    """
    total = 0.0
    for first in range(0, len(triangle), SUMMED_AT_ONCE):
        columns = slice(first, first + SUMMED_AT_ONCE)
        panel = factor * triangle.T[columns, : columns.stop]
        total += float(np.vdot(panel, panel))
    return total


def squared_norm_of_product(triangle: Floats) -> float:
    """Return `|R R'|^2`, the sum of the squared entries, for an upper triangle R."""
    with blas_threads_for(len(triangle)):
        product, info = lapack.dlauum(triangle, lower=0)
    _check_info("dlauum", info)
    product = np.triu(product)
    return 2.0 * float(np.vdot(product, product)) - float((np.diagonal(product) ** 2).sum())


def congruence(matrix: Array, triangle: Array) -> Array:
    """Return `T'A T` for a symmetric A and an upper triangle T."""
    product: Array
    if isinstance(matrix, np.ndarray) and len(triangle):
        with blas_threads_for(len(matrix)):
            right = blas.dtrmm(1.0, triangle, matrix, side=1, lower=0)
            product = blas.dtrmm(1.0, triangle, right, side=0, lower=0, trans_a=1, overwrite_b=1)
    else:
        product = triangle.T @ (matrix @ triangle)
    return (product + product.T) / 2


def _check_info(routine: str, info: int) -> None:
    """Raise the error of a LAPACK info: a zero on the diagonal of a triangle, or (a bug here) a wrong argument."""
    if info > 0:
        raise NumericalError(
            f"a triangular factor of a kernel matrix has a zero on its diagonal, at position {info - 1}; "
            "raise the ridge, or rescale the columns (standardise them)"
        )
    if info < 0:
        raise NumericalError(
            f"LAPACK's {routine} refused its argument {-info}; this is a bug in ridgemark, please report it"
        )


def _check_semidefinite(original: Array, rest: Indices, diagonal: Array, explained: Array) -> None:
    """Refuse an indefinite matrix: a column whose remaining diagonal is zero has remaining off-diagonal entries."""
    entries = original[np.maximum.outer(rest, rest), np.minimum.outer(rest, rest)]
    np.fill_diagonal(entries, diagonal[rest])
    remaining = float(abs(entries - explained.T @ explained).max(initial=0.0))
    if remaining > _INDEFINITE:
        raise DataError(
            f"the kernel is not positive semidefinite: where nothing of the diagonal remains, an entry of "
            f"{remaining:.3g} relative to the diagonal remains; choose a positive semidefinite kernel"
        )
