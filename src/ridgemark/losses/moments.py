"""Sums over rows from which every ridge's solution follows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from ridgemark.backends import Backend, Floats

# Largest relative difference of sums over the same rows: rounding, also of rows stored in single precision.
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
        """Return the sums without the Gram matrix, the only large one."""
        return replace(self, gram=np.zeros((0, 0)))

    def __add__(self, other: Moments) -> Moments:
        return Moments(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})

    def __iadd__(self, other: Moments) -> Moments:
        """Add in place, into this Gram matrix."""
        np.add(self.gram, other.gram, out=self.gram)
        return replace(self.without_products() + other.without_products(), gram=self.gram)


def block_moments(
    features: Floats,
    targets: Floats,
    weights: Floats | None,
    diagonal: Floats,
    entry_errors: Floats,
    backend: Backend,
) -> Moments:
    """Return the moments of a block; `features` are overwritten.

    `weights` is None where every row has weight one; `diagonal` holds `k(x_i, x_i)`, `entry_errors` the relative errors
    of the rows' kernel values.
    """
    counts = np.ones(len(features)) if weights is None else weights
    residual = np.maximum(diagonal - np.einsum("ij,ij->i", features, features), 0.0)
    feature_sum = features.T @ counts
    weighted_targets = targets
    if weights is not None:
        scale = np.sqrt(weights)[:, None]
        features *= scale  # in place: scratch memory of this block
        weighted_targets = targets * scale
    return Moments(
        n_rows=int(np.count_nonzero(counts)),
        total_weight=float(counts.sum()),
        gram=backend.gram(features),
        cross=features.T @ weighted_targets,
        feature_sum=feature_sum,
        target_sum=targets.T @ counts,
        target_square=(targets**2).T @ counts,
        trace_kernel=float(counts @ diagonal),
        trace_residual=float(counts @ residual),
        entry_error=float(counts @ (diagonal * entry_errors**2)),
    )


def same_rows(one: Moments, other: Moments) -> bool:
    """Return whether two sums are over the same rows and targets, up to rounding.

    Differences are compared with the largest value that each sum can have.
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
