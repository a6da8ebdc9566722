"""The Nystrom approximation `L = C W^+ C'` as features: landmarks and the whitener of their kernel."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np

from ridgemark import linalg
from ridgemark.backends import Array, Floats, Indices, StaysOnHost, backend_of, current_backend, moved, on_host
from ridgemark.errors import DataError
from ridgemark.kernels import CrossKernel, Kernel

_PANEL = 256  # columns whose absolute values are taken at once


@dataclass(frozen=True)
class NystromFactor:
    """Landmarks z_1 .. z_p and a root N of `W^+ = N N'`, so that `b(x) = N' k(x)` has `b(x).b(x') = l(x, x')`.

    Paper, section 3.5, steps 3 and 4: `B B' = C W^+ C'` with `C` the kernel of all rows with the landmarks and `W`
    that of the landmarks with each other. Landmarks that others explain up to rounding are dropped. For those kept, in
    the order of `kept`, N is the inverse of the Cholesky factor of W.
    """

    cross_kernel: CrossKernel = field(compare=False)
    landmark_kernel: Annotated[Array, Floats, "(p, p)"]  # W
    kept: Annotated[Indices, "(r)", "< p", "different"]  # positions of landmarks
    triangle: Annotated[Array, Floats, "(r, r)"]  # upper triangular
    kept_kernel: CrossKernel = field(compare=False)  # bound to the landmarks kept, in their order

    @property
    def rank(self) -> int:
        """Number of features."""
        return len(self.kept)

    @cached_property
    def whitener(self) -> Array:
        """N, (p, rank): the triangle at the rows of the landmarks kept, and zeros."""
        root = backend_of(self.triangle).zeros((self.cross_kernel.n_landmarks, self.rank))
        root[self.kept] = self.triangle
        return root

    def leading(self, most: int) -> Self:
        """Return the factor of the first features, which are those of the first landmarks kept."""
        bound, kept = self.kept_kernel, self.kept[:most]
        if most >= self.rank or bound.kernel.pairwise:
            return self
        bound = bound.kernel.bind(bound.landmarks[:most])
        among, triangle = self.landmark_kernel[kept[:, None], kept], self.triangle[:most, :most]
        return type(self)(bound, among, np.arange(most), triangle, bound)

    def on_host(self) -> Self:
        """Return the factor with its matrices in host memory."""
        matrices = on_host((self.landmark_kernel, self.triangle), backend_of(self.triangle))
        return replace(self, landmark_kernel=matrices[0], triangle=matrices[1])

    def combine(self, coefficients: Array) -> Array:
        """Return `N c`, the coefficients of the landmarks' kernel values for those of the features."""
        combined = np.zeros((self.cross_kernel.n_landmarks, *coefficients.shape[1:]))
        combined[self.kept] = linalg.product(self.triangle, coefficients)
        return combined

    @cached_property
    def feature_sizes(self) -> Array:
        """`sum_m |T_mj| |k(., z_m)|` for every feature `b_j = sum_m T_mj k(., z_m)`; its rounding is relative to it."""
        lengths, sizes = np.sqrt(np.diagonal(self.landmark_kernel))[self.kept], np.zeros(self.rank)
        for first in range(0, self.rank, _PANEL):  # small temporary arrays
            last = first + _PANEL
            sizes[first:last] = lengths[:last] @ abs(self.triangle[:last, first:last])
        return sizes

    def function_size(self, dual_coef: Array) -> Array:
        """Return `sum_j |c_j| |k(., z_j)|`, a bound on the norm of a function of the landmarks, per target."""
        return np.sqrt(np.diagonal(self.landmark_kernel)) @ abs(dual_coef)

    @property
    def symmetric_whitener(self) -> Array:
        """The symmetric root `W^-1/2`, (p, p); its features are the same up to a rotation."""
        values, vectors = linalg.symmetric_eigen(self.landmark_kernel)
        rank = linalg.numerical_rank(values)
        return (vectors[:, :rank] / np.sqrt(values[:rank])) @ vectors[:, :rank].T

    def features(self, rows: Any) -> Array:
        """Return the features `B` of the rows, shape (rows, rank), in the rows' precision."""
        backend = self.cross_kernel.backend
        block = self.cross_kernel(backend.from_host(rows))
        return backend.matmul(block, backend.from_host(self.whitener, like=block))


def nystrom_factor(
    kernel: Kernel,
    landmarks: Any,
    indices: Indices | None = None,
    stays: bool = False,
    pivots: tuple[Indices, Array] | None = None,
) -> NystromFactor:
    """Whiten the landmark kernel; nothing is added to its diagonal.

    With `stays`, matrices that were computed on a device stay there. `pivots` are the order of landmarks in a Cholesky
    factor of their kernel, and this upper triangle, where both are known.
    """
    cross_kernel = kernel.bind(landmarks, indices)
    block = block_of_landmarks(cross_kernel, landmarks)
    landmark_kernel = _symmetric(linalg.check_range(backend_of(block).double(block)))
    if pivots is None:
        triangle, kept = linalg.pivoted_cholesky(landmark_kernel, backend_of(block).precision(block))
    else:
        kept, triangle = pivots[0], np.array(pivots[1], order="F")
    triangle = linalg.inverse_triangle_(triangle)
    kept_kernel = kernel.bind(landmarks[kept], None if indices is None else indices[kept])
    factor = NystromFactor(cross_kernel, landmark_kernel, kept, triangle, kept_kernel)
    return factor if stays else factor.on_host()


def in_order(
    factor: NystromFactor, kept: Indices, kept_kernel: CrossKernel, dual_coef: Array
) -> tuple[NystromFactor, Array]:
    """Return the factor with other landmarks kept, and the coefficients of its features for `dual_coef`.

    From the first landmark on that the earlier ones explain up to rounding, features are zero.
    """
    landmark_kernel = factor.landmark_kernel[np.ix_(kept, kept)]
    triangle, alpha = np.zeros_like(landmark_kernel, order="F"), dual_coef[kept]
    leading = linalg.leading_cholesky(landmark_kernel)
    n = len(leading)
    triangle[:n, :n] = whitener = linalg.inverse_triangle_(leading)
    coefficients = np.zeros_like(alpha)
    coefficients[:n] = linalg.solve_triangle(whitener, alpha[:n])
    coefficients[:n] += whitener.T @ (landmark_kernel[:n, n:] @ alpha[n:])
    return replace(factor, kept=kept, triangle=triangle, kept_kernel=kept_kernel), coefficients


def block_of_landmarks(cross_kernel: CrossKernel, landmarks: Any) -> Array:
    """Return the kernel of the landmarks with each other, on the device that computes now where they are many."""
    with suppress(StaysOnHost):
        rows = moved(landmarks, current_backend())
        if linalg.worth_sending(cross_kernel.n_landmarks):
            return moved(cross_kernel, current_backend())(rows)
    return cross_kernel(landmarks)


def _symmetric(block: Array) -> Array:
    """Return the symmetric part; refuse a block, as of a callable, that is not symmetric up to rounding."""
    asymmetry, size = float(abs(block - block.T).max()), float(abs(block).max())
    if asymmetry > 1e-3 * size:
        raise DataError(
            f"the kernel of the landmarks with each other must be symmetric; k(x, z) and k(z, x) differ by up to "
            f"{asymmetry:.3g} where the largest value is {size:.3g}"
        )
    return (block + block.T) / 2
