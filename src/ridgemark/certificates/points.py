"""Bounds on the distance of predictions at new points from exact kernel ridge regression."""

from typing import ClassVar

import numpy as np

from ridgemark.backends import Array, Backend, Floats, Indices
from ridgemark.certificates.record import Certificate, fingerprint
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels import CrossKernel
from ridgemark.leverage import posterior_factor
from ridgemark.linalg import EPS, LANDMARKS_AT_ONCE, SUMMED_AT_ONCE, sum_rounding
from ridgemark.operators import CrossTask, cross_block, diagonal_block
from ridgemark.passes import RowPasses, Workspace
from ridgemark.rows import Block, row_weights
from ridgemark.solvers import LandmarkFit


def distance_at(
    points: RowPasses, training: RowPasses, fit: LandmarkFit, audit: Certificate, indices: Indices | None
) -> Floats:
    """Bound `|f_K(x) - f(x)|` at every point, shape (n, targets), f_K being exact kernel ridge regression.

    By the duality gap G the difference `D = f_K - f`, its constant b included, satisfies
    `sum_i w_i D(x_i)^2 + n lambda |D - b|^2 <= G`. For any subset J of the training rows, `D(x)^2` is at most
    `G/(n lambda)` times the variance of a Gaussian process observed at J with noise `n lambda/w`,

        k(x, x) - k_J(x)' M^-1 k_J(x) + (1 - 1'M^-1 k_J(x))^2 / (1'M^-1 1),   M = W_J + n lambda D_J^-1,

    the last term, due to the unknown constant, only where there is an intercept.

    Parameters
    ----------
    points : RowPasses
        The new points.
    training : RowPasses
        The rows the model was fitted on.
    fit : LandmarkFit
        The fit.
    audit : Certificate
        The audit of the fit; the bounds have its certainty.
    indices : array of different row numbers, or None
        The training rows J: those of the landmarks. None, for landmarks that are not training rows, takes the same
        number of rows spread over the training data.
    """
    if not isinstance(audit, Certificate) or audit.kind != "audit":
        got = repr(audit.kind) if isinstance(audit, Certificate) else type(audit).__name__
        raise ParameterError(f'distances at new points need a certificate of kind "audit", got {got}')
    if not np.allclose(audit.inputs["fit"], fingerprint(fit), rtol=1e-9, atol=0.0):
        raise ParameterError("the audit is that of another fit; certify this fit on its rows")
    if points.source.n_features != training.source.n_features:
        raise DataError(
            f"the model was fitted on {training.source.n_features} features, got {points.source.n_features}"
        )
    kernel = fit.factor.cross_kernel.kernel
    if kernel.pairwise:
        raise ParameterError("distances at new points need k(x, x), which rows of a precomputed kernel do not hold")
    are_landmarks = indices is not None
    if indices is None:
        present = np.flatnonzero(training.row_counts())
        most = min(fit.factor.cross_kernel.n_landmarks, len(present))
        indices = present[np.linspace(0, len(present) - 1, most).astype(np.intp)]
    observed = training.take(indices)
    cross_kernel = kernel.bind(observed.features, observed.indices)
    among, weights = cross_kernel.symmetric_block(observed.features), row_weights(observed)
    of_fit = fit.factor.landmark_kernel
    if are_landmarks and not np.allclose(among, of_fit, rtol=1e-6, atol=1e-6 * float(np.abs(of_fit).max(initial=0.0))):
        raise DataError("these are not the rows the model was fitted on, or they are in another order")
    ridges, which = np.unique(fit.scaled_ridge, return_inverse=True)
    # Adding the rounding error of W to the noise only makes the bound larger.
    summed = sum_rounding(len(weights))
    noise = (summed + cross_kernel.landmark_error) * len(weights) * float(weights @ np.diagonal(among))
    # Factor by which relative errors of the kernel values with J enter the variance.
    amplified = 2.0 * np.sqrt(np.diagonal(among).sum() * weights.max() / ridges)
    factors = [posterior_factor(among, weights, ridge + noise) for ridge in ridges]
    gaps = np.asarray(audit.inputs["duality_gap"]) / fit.scaled_ridge
    own = fit.factor.function_size(fit.dual_coef)
    points.count_entries(cross_kernel.n_landmarks**2)
    parts = fit.factor.cross_kernel, fit.fit_intercept, fit.intercept, factors, which, gaps, own, amplified
    return points.map(PointwiseDistance(cross_kernel, *parts))


class PointwiseDistance(CrossTask):
    """The bounds of `distance_at`, shape (rows, targets)."""

    what: ClassVar[str] = "distance to exact"
    arrays: ClassVar[int] = 2
    of_fit: CrossKernel  # bound to the landmarks of the fit
    fit_intercept: bool
    intercept: Floats  # (targets,)
    factors: list[Floats]  # N with `N N' = M^-1`, for every different ridge
    which: Indices  # (targets,): the ridge of each target
    gaps: Floats  # (targets,): `G/(n lambda)`
    own_size: Floats  # (targets,): size of the fitted function, to which its rounding error is relative
    amplified: Floats  # (ridges,): factor by which errors of kernel values enter the variance

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        kernel, backend, xp = self.cross_kernel, workspace.backend, workspace.backend.xp
        cross, diagonal = cross_block(kernel, block, workspace), diagonal_block(kernel, block)
        variances = [_variance(cross, diagonal, factor, self.fit_intercept, backend) for factor in self.factors]
        share, predicted = (
            sum_rounding(cross_kernel.n_landmarks, at_once) + cross_kernel.entry_error(block.features)
            for cross_kernel, at_once in ((kernel, SUMMED_AT_ONCE), (self.of_fit, LANDMARKS_AT_ONCE))
        )
        variance = xp.stack(variances, axis=1) + (share * diagonal)[:, None] * (2.0 + self.amplified)
        rounding = (predicted * xp.sqrt(diagonal))[:, None] * self.own_size + 4 * EPS * abs(self.intercept)
        # Roots first: the product of a small gap and a small variance may fall below the floating-point range.
        return xp.sqrt(self.gaps) * xp.sqrt(variance[:, self.which]) + rounding


def _variance(cross: Array, diagonal: Array, factor: Array, fit_intercept: bool, backend: Backend) -> Array:
    """Return `k - |u|^2`, and with an intercept `(1 - u.o)^2/|o|^2` more, for u = N'k_J, o = N'1 and N N' = M^-1."""
    explained = cross @ factor
    variance = backend.at_least(diagonal - backend.squared_norms(explained), 0.0)
    if fit_intercept:
        ones = factor.sum(axis=0)
        variance += (1.0 - explained @ ones) ** 2 / float(ones @ ones)
    return variance
