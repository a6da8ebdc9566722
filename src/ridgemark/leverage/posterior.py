"""Upper scores: the posterior variance of a Gaussian process that was observed at some of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ridgemark.backends import NUMPY, Floats
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.linalg import check_range, symmetric_eigen
from ridgemark.operators import diagonal_block
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import Block, row_weights


def posterior_variance(
    kernel: Kernel, rows: Block, landmarks: Block, sampling_weights: Floats, scaled_ridge: float
) -> Floats:
    """Return `w_i (K_ii - k_i'(W + n lambda D^-1)^-1 k_i)`, D the landmarks' weights times `sampling_weights`."""
    return _variance(rows, *_posterior(kernel, landmarks, sampling_weights, scaled_ridge))


@dataclass(frozen=True, eq=False)
class PosteriorScores(Task):
    """`posterior_variance / scaled_ridge`, at most 1, for the rows that are wanted, given along; zero for others."""

    what: ClassVar[str] = "leverage scores"
    cross_kernel: CrossKernel
    factor: Floats
    scaled_ridge: float

    @property
    def width(self) -> int:
        return 2 * self.cross_kernel.n_landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        scores, wanted = np.zeros(block.n_rows), np.flatnonzero(block.along[0])
        if len(wanted):
            part = Block(0, block.features[wanted], None, row_weights(block)[wanted], block.indices[wanted])
            scores[wanted] = np.minimum(_variance(part, self.cross_kernel, self.factor) / self.scaled_ridge, 1.0)
        return scores


def posterior_scores(
    passes: RowPasses,
    kernel: Kernel,
    landmarks: Block,
    sampling_weights: Floats,
    scaled_ridge: float,
    wanted: NDArray[np.bool_],
) -> Floats:
    """Return `posterior_variance / scaled_ridge`, at most 1, for the wanted rows and zero for others, in one pass."""
    cross_kernel, factor = _posterior(kernel, landmarks, sampling_weights, scaled_ridge)
    passes.count_entries(int(np.count_nonzero(wanted)) * landmarks.n_rows)
    return passes.map(PosteriorScores(cross_kernel, factor, scaled_ridge), along=(wanted,))


def landmark_spectrum(kernel: Kernel, landmarks: Block, sampling_weights: Floats) -> Floats:
    """Return the eigenvalues, descending, of `D^1/2 W D^1/2`: an estimate of those of the kernel of all rows."""
    root = np.sqrt(row_weights(landmarks) * sampling_weights)
    among = kernel.bind(landmarks.features, landmarks.indices).symmetric_block(landmarks.features)
    values, _ = symmetric_eigen(root[:, None] * among * root)
    return np.asarray(values)


def posterior_factor(landmark_kernel: Floats, weights: Floats, scaled_ridge: float) -> Floats:
    """Return N, upper triangular, with `N N' = (W + n lambda D^-1)^-1`, from `D^1/2 W D^1/2 + n lambda I`."""
    root = np.sqrt(weights)
    scaled = check_range(root[:, None] * landmark_kernel * root)
    try:
        triangle = scipy.linalg.cholesky(scaled + scaled_ridge * np.eye(len(scaled)), lower=True, check_finite=False)
        return scipy.linalg.solve_triangular(triangle, np.diag(root), lower=True, check_finite=False).T
    except np.linalg.LinAlgError:  # a ridge below the rounding of W: slower, but it never fails
        eigenvalues, vectors = symmetric_eigen(scaled)
        full = root[:, None] * vectors / np.sqrt(eigenvalues + scaled_ridge)
        return scipy.linalg.rq(full, mode="r", check_finite=False)


def explained_(cross: Floats, factor: Floats) -> Floats:
    """Return `|N'k_i|^2` of every row, overwriting the kernel values."""
    values = NUMPY.times_triangle_(cross, factor)
    return np.einsum("ij,ij->i", values, values)


def _posterior(
    kernel: Kernel, landmarks: Block, sampling_weights: Floats, scaled_ridge: float
) -> tuple[CrossKernel, Floats]:
    cross_kernel = kernel.bind(landmarks.features, landmarks.indices)
    among, weights = cross_kernel.symmetric_block(landmarks.features), row_weights(landmarks) * sampling_weights
    return cross_kernel, posterior_factor(among, weights, scaled_ridge)


def _variance(rows: Block, cross_kernel: CrossKernel, factor: Floats) -> Floats:
    cross = cross_kernel(rows.features).astype(np.float64, copy=False)
    return row_weights(rows) * np.maximum(diagonal_block(cross_kernel, rows) - explained_(cross, factor), 0.0)
