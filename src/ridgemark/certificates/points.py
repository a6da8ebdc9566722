"""How far from exact predictions at new points are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ridgemark.certificates.dual import ROUNDING, function_size
from ridgemark.certificates.record import Certificate, fingerprint
from ridgemark.errors import DataError, ParameterError
from ridgemark.leverage import posterior_factor
from ridgemark.operators import cross_block
from ridgemark.operators.blocks import diagonal_block
from ridgemark.operators.cross import CrossTask
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block, row_weights
from ridgemark.solvers import LandmarkFit

Floats = NDArray[np.float64]


def distance_at(
    points: RowPasses, training: RowPasses, fit: LandmarkFit, audit: Certificate, indices: NDArray[np.intp] | None
) -> Floats:
    """Bound `|f_K(x) - f(x)|` at every point, shape (n, targets), f_K being exact kernel ridge regression.

    By the duality gap G the difference `D = f_K - f`, its constant b included, has
    `sum_i w_i D(x_i)^2 + n lambda |D - b|^2 <= G`. Of the training rows keep some, J: then `D(x)^2` is at most
    `G/(n lambda)` times the variance of a Gaussian process observed at J with noise `n lambda/w`,

        k(x, x) - k_J(x)' M^-1 k_J(x) + (1 - 1'M^-1 k_J(x))^2 / (1'M^-1 1),   M = W_J + n lambda D_J^-1,

    the last term, the price of an unknown constant, only where there is an intercept.

    Parameters
    ----------
    points : RowPasses
        Where.
    training : RowPasses
        The rows the model was fitted on.
    fit : LandmarkFit
        The fit.
    audit : Certificate
        Its audit, and as certain as that.
    indices : array of different row numbers, or None
        The training rows J: those of the landmarks. None, for landmarks that are no training rows, takes as many rows
        spread over the training data.
    """
    if not isinstance(audit, Certificate) or audit.kind != "audit":
        got = repr(audit.kind) if isinstance(audit, Certificate) else type(audit).__name__
        msg = f'distances at new points need a certificate of kind "audit", got {got}'
        raise ParameterError(msg)
    if not np.allclose(audit.inputs["fit"], fingerprint(fit), rtol=1e-9, atol=0.0):
        msg = "the audit is that of another fit; certify this one on its rows"
        raise ParameterError(msg)
    if points.source.n_features != training.source.n_features:
        msg = f"the model was fitted on {training.source.n_features} features, got {points.source.n_features}"
        raise DataError(msg)
    kernel = fit.factor.cross_kernel.kernel
    if kernel.pairwise:
        msg = "distances at new points need k(x, x), which rows of a precomputed kernel do not hold"
        raise ParameterError(msg)
    given = indices is not None
    if indices is None:
        present = np.flatnonzero(training.row_counts())
        most = min(fit.factor.cross_kernel.n_landmarks, len(present))
        indices = present[np.linspace(0, len(present) - 1, most).astype(np.intp)]
    seen = training.take(indices)
    cross_kernel = kernel.against(seen.features, seen.indices)
    among, weights = cross_kernel.symmetric_block(seen.features), row_weights(seen)
    _check_landmarks(among, fit, given)
    ridges, which = np.unique(fit.scaled_ridge, return_inverse=True)
    # More noise than there is, by the rounding of W, only makes the bound larger.
    noise = ROUNDING * len(weights) * float(weights @ np.diagonal(among))
    factors = [posterior_factor(among, weights, ridge + noise) for ridge in ridges]
    gaps = np.asarray(audit.inputs["duality_gap"]) / fit.scaled_ridge
    own = function_size(fit, fit.dual_coef)
    points.count_entries(cross_kernel.n_landmarks**2)
    return points.map(PointwiseDistance(cross_kernel, factors, which, gaps, own, fit.fit_intercept))


@dataclass(frozen=True, eq=False)
class PointwiseDistance(CrossTask):
    """The bounds of `distance_at`, shape (rows, targets)."""

    what: ClassVar[str] = "distance to exact"
    factors: list[Floats]  # N with `N N' = M^-1`, for every different ridge
    which: NDArray[np.intp]  # (targets,): the ridge of each target
    gaps: Floats  # (targets,): `G/(n lambda)`
    own_size: Floats  # (targets,): size of the fitted function, by which its rounding is measured
    fit_intercept: bool

    @property
    def width(self) -> int:
        return 2 * self.cross_kernel.n_landmarks

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        cross = cross_block(self.cross_kernel, block, workspace)
        diagonal = diagonal_block(self.cross_kernel, block)
        variance = np.stack([_variance(cross, diagonal, factor, self.fit_intercept) for factor in self.factors], axis=1)
        return np.sqrt(self.gaps * variance[:, self.which]) + ROUNDING * np.sqrt(diagonal)[:, None] * self.own_size


def _check_landmarks(among: Floats, fit: LandmarkFit, given: bool) -> None:
    """Refuse training rows of which the landmarks' numbers are other rows than the fit's landmarks."""
    known = fit.factor.landmark_kernel
    if given and not np.allclose(among, known, rtol=1e-6, atol=1e-6 * float(np.abs(known).max(initial=0.0))):
        msg = "these are not the rows the model was fitted on, or not in their order then"
        raise DataError(msg)


def _variance(cross: Floats, diagonal: Floats, factor: Floats, fit_intercept: bool) -> Floats:
    """Return `k - |u|^2`, and with an intercept `(1 - u.o)^2/|o|^2` more, for u = N'k_J, o = N'1 and N N' = M^-1."""
    explained = cross @ factor
    variance = np.maximum(diagonal - np.einsum("ij,ij->i", explained, explained), 0.0) + ROUNDING * diagonal
    if fit_intercept:
        ones = factor.sum(axis=0)
        variance += (1.0 - explained @ ones) ** 2 / float(ones @ ones)
    return variance
