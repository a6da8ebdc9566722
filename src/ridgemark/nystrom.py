"""The Nystrom approximation `L = C W^+ C'` as features: landmarks and the whitener of their kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import NUMPY, Array, Backend
from ridgemark.errors import DataError
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import check_range, numerical_rank, semidefinite_eigen


@dataclass(frozen=True)
class NystromFactor:
    """Landmarks z_1 .. z_p and `W^(-1/2)`, so that `b(x) = W^(-1/2) k(x)` has `b(x).b(x') = l(x, x')`.

    Paper, section 3.5, steps 3 and 4: `B B' = C W^+ C'` with `C` the kernel of all rows with the landmarks and `W`
    that of the landmarks with each other. Directions of `W` below the rank rule are dropped.
    """

    cross_kernel: CrossKernel
    landmark_kernel: Array  # (p, p), float64: W
    whitener: Array  # (p, rank), float64
    n_dropped: int

    @property
    def rank(self) -> int:
        """Number of features."""
        return int(self.whitener.shape[1])

    @property
    def symmetric_whitener(self) -> Array:
        """The root `W^-1/2` that is symmetric, (p, p); it gives features equal but for a rotation."""
        lengths = np.linalg.norm(self.whitener, axis=0)
        return (self.whitener / lengths) @ self.whitener.T

    def features(self, rows: Any) -> Array:
        """Return the features `B` of the rows, shape (rows, rank), in the rows' precision."""
        block = self.cross_kernel(rows)
        return self.cross_kernel.backend.matmul(block, self.whitener.astype(block.dtype, copy=False))


def nystrom_factor(
    kernel: Kernel, landmarks: Any, indices: NDArray[np.intp] | None = None, backend: Backend = NUMPY
) -> NystromFactor:
    """Whiten the landmark kernel by its eigenvectors; nothing is added to its diagonal."""
    cross_kernel = kernel.against(landmarks, indices, backend)
    block = cross_kernel(landmarks)
    precision = np.dtype(block.dtype)
    landmark_kernel = _symmetric(check_range(block.astype(np.float64)))
    eigenvalues, vectors = semidefinite_eigen(landmark_kernel, backend)
    rank = numerical_rank(eigenvalues, precision)
    whitener = vectors[:, :rank] / np.sqrt(eigenvalues[:rank])
    return NystromFactor(cross_kernel, landmark_kernel, whitener, cross_kernel.n_landmarks - rank)


def _symmetric(block: Array) -> Array:
    """Return the symmetric part; refuse a block that is symmetric by no stretch of rounding, as a callable's may be."""
    asymmetry, size = float(abs(block - block.T).max()), float(abs(block).max())
    if asymmetry > 1e-3 * size:
        msg = (
            f"the kernel of the landmarks with each other must be symmetric; k(x, z) and k(z, x) differ by up to "
            f"{asymmetry:.3g} where the largest value is {size:.3g}"
        )
        raise DataError(msg)
    return (block + block.T) / 2
