"""Sums over rows from which every ridge's solution follows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ridgemark.kernels import CrossKernel
from ridgemark.rows import Block, row_weights

Floats = NDArray[np.float64]

# Relative difference of sums over the same rows: rounding, and what single precision does to stored rows.
_SAME = 1e-6


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows, from which every ridge's solution follows; moments of disjoint rows add.

    Targets are measured from `target_origin`, a constant near their mean, so that large offsets cost no digits.
    """

    n_rows: int  # of positive weight
    total_weight: float
    gram: Floats  # B' W B
    cross: Floats  # B' W y
    feature_sum: Floats  # B' w
    target_sum: Floats  # y' w
    target_square: Floats  # y' W y
    trace_kernel: float  # tr W K
    trace_residual: float  # tr W (K - L)
    entry_error: float = 0.0  # sum_i w_i k(x_i, x_i) e_i^2, e_i the error of the row's kernel values

    def without_products(self) -> Moments:
        """Return the sums without the Gram matrix, the one that takes memory."""
        return replace(self, gram=np.zeros((0, 0)))

    def __add__(self, other: Moments) -> Moments:
        return Moments(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __iadd__(self, other: Moments) -> Moments:
        """Add into the Gram matrix that is there."""
        np.add(self.gram, other.gram, out=self.gram)
        return replace(self.without_products() + other.without_products(), gram=self.gram)


def block_moments(block: Block, features: Floats, cross_kernel: CrossKernel, origin: Floats) -> Moments:
    """Return the moments of a block, of the Gram matrix the upper triangle; `features` are overwritten."""
    weights = row_weights(block)
    diagonal = cross_kernel.kernel.diagonal(block.features, block.indices).astype(np.float64)
    residual = np.maximum(diagonal - np.einsum("ij,ij->i", features, features), 0.0)
    targets = np.empty((block.n_rows, 0)) if block.targets is None else block.targets - origin
    feature_sum = features.T @ weights
    if block.weights is not None:
        scale = np.sqrt(weights)[:, None]
        features *= scale  # scratch memory: nobody else's
        weighted_targets = targets * scale
    else:
        weighted_targets = targets
    return Moments(
        n_rows=int(np.count_nonzero(weights)),
        total_weight=float(weights.sum()),
        gram=cross_kernel.backend.gram(features),
        cross=features.T @ weighted_targets,
        feature_sum=feature_sum,
        target_sum=targets.T @ weights,
        target_square=(targets**2).T @ weights,
        trace_kernel=float(weights @ diagonal),
        trace_residual=float(weights @ residual),
        entry_error=float(weights @ (diagonal * cross_kernel.entry_error(block.features) ** 2)),
    )


def same_rows(one: Moments, other: Moments) -> bool:
    """Tell rows and targets by their sums: whether they are the same up to rounding.

    Every sum is compared in units of what it can reach at most.
    """
    if one.n_rows != other.n_rows or not np.isclose(one.total_weight, other.total_weight, rtol=1e-9):
        return False
    size, trace = other.total_weight, other.trace_kernel
    reach = np.sqrt(other.target_square)
    pairs = (
        (one.feature_sum, other.feature_sum, np.sqrt(size * trace)),
        (one.cross, other.cross, np.sqrt(trace) * reach),
        (one.target_sum, other.target_sum, np.sqrt(size) * reach),
    )
    return all(bool((np.abs(a - b) <= _SAME * most).all()) for a, b, most in pairs)
