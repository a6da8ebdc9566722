"""Effects at rows with their standard errors, and average effects."""

from collections.abc import Sequence

import numpy as np

from ridgemark.backends import Floats
from ridgemark.effects.columns import Effect
from ridgemark.effects.summary import EffectsSummary
from ridgemark.effects.tasks import EffectDeviations, EffectTotals, EffectValues, PredictedEffects, Totals
from ridgemark.errors import NumericalError
from ridgemark.intervals import Calibration, noise_terms
from ridgemark.intervals.quantiles import quantiles
from ridgemark.kernels import CrossKernel
from ridgemark.losses import Loss
from ridgemark.passes import RowPasses
from ridgemark.solvers import LandmarkFit

_MOST_ROWS = 2**16  # whose effects are kept for quartiles


def effect_values(passes: RowPasses, cross_kernel: CrossKernel, dual_coef: Floats, effects: Sequence[Effect]) -> Floats:
    """Return the effects at every row, shape (n, effects, targets), in one pass."""
    return passes.map(EffectValues(cross_kernel, effects, dual_coef))


def predicted_effects(
    passes: RowPasses,
    cross_kernel: CrossKernel,
    dual_coef: Floats,
    effects: Sequence[Effect],
    loss: Loss,
    intercept: Floats,
) -> Floats:
    """Return the effects on what a loss predicts at every row, shape (n, effects, targets), in one pass."""
    if not loss.positive:
        return effect_values(passes, cross_kernel, dual_coef, effects)
    return passes.map(PredictedEffects(cross_kernel, effects, dual_coef, loss, intercept))


def effect_deviations(
    passes: RowPasses, fit: LandmarkFit, calibration: Calibration | None, effects: Sequence[Effect]
) -> Floats:
    """Return the standard errors of the effects at every row, without bias, shape (n, effects, targets).

    The effect at x is `g(x)'c`, g the change of the features, and its variance due to the noise of the targets
    `g'F^-1 M F^-1 g`, `F = B'WB + n lambda` and M the covariance of B'Wy by `noise_terms`. One pass for each target.
    """
    features, sizes = noise_terms(fit, calibration)
    errors = []
    for t, size in enumerate(sizes.T):
        terms = features * size[:, None]
        if len(terms) > fit.factor.rank:
            terms = np.triu(np.linalg.qr(terms, mode="raw")[0].T)[: fit.factor.rank]  # of the same covariance
        root = fit.factor.combine(fit.inverse.of_target(t).solve(terms.T))
        errors.append(passes.map(EffectDeviations(fit.factor.cross_kernel, effects, fit.dual_coef, root)))
    return np.stack(errors, axis=2)


def summarise_effects(
    passes: RowPasses, fit: LandmarkFit, calibration: Calibration | None, effects: Sequence[Effect]
) -> EffectsSummary:
    """Return average effects with standard errors, and quartiles of the effects at the rows, in one pass.

    With g the mean change of the features over the rows, `F = B'WB + s`, `s = n lambda` and coefficients c, the average
    effect is `g'(I + s F^-1)c`: the ridge shrinks c by about `s F^-1 c`, which is added. Its variance is
    `g'(I + s F^-1) F^-1 M F^-1 (I + s F^-1) g`, M the covariance of B'Wy by `noise_terms`, and over n rows that are a
    sample `var_i(effect_i)/n` more.
    """
    totals, quartiles = _totals(passes, fit.factor.cross_kernel, fit.dual_coef, effects)
    change = fit.factor.whitener.T @ (totals.changes / totals.weight)
    corrected = []
    for t, ridge in enumerate(fit.scaled_ridge):
        inverse = fit.inverse.of_target(t)
        once = inverse.solve(change)
        corrected.append(once + ridge * inverse.solve(once))
    average = np.stack([direction.T @ fit.centred.cross[:, t] for t, direction in enumerate(corrected)], axis=1)
    features, sizes = noise_terms(fit, calibration)
    influences = [features @ direction for direction in corrected]
    noise = np.stack([size**2 @ influence**2 for influence, size in zip(influences, sizes.T, strict=True)], axis=1)
    spread = np.maximum(totals.second / totals.weight - (totals.first / totals.weight) ** 2, 0.0)
    error = np.sqrt(noise + spread * totals.square / totals.weight**2)
    if not np.isfinite(error).all():
        raise NumericalError("squares of effects exceed the floating-point range; rescale the columns or the targets")
    ratio = np.divide(average, error, out=np.zeros_like(average), where=error > 0)
    return EffectsSummary(tuple(effects), average, error, ratio, quartiles, passes.source.n_rows)


def average_effects(
    passes: RowPasses,
    kernel: CrossKernel,
    dual_coef: Floats,
    effects: Sequence[Effect],
    targets: tuple[str, ...],
    predicted: tuple[Loss, Floats] | None = None,
) -> EffectsSummary:
    """Return averages and quartiles of the effects at the rows, in one pass; of what a loss predicts, where given."""
    if predicted is not None and predicted[0].positive:
        values = predicted_effects(passes, kernel, dual_coef, effects, *predicted)
        return summary_of(values, passes.row_counts(), effects, targets)
    totals, quartiles = _totals(passes, kernel, dual_coef, effects)
    average = totals.first / totals.weight
    return EffectsSummary(tuple(effects), average, None, None, quartiles, passes.source.n_rows, targets)


def summary_of(
    values: Floats, weights: Floats, effects: Sequence[Effect], targets: tuple[str, ...] = ()
) -> EffectsSummary:
    """Return averages and quartiles of effects at rows (n, effects, targets) with weights."""
    average, spread = np.average(values, axis=0, weights=weights), _quartiles(values, weights)
    return EffectsSummary(tuple(effects), average, None, None, spread, len(values), targets)


def _quartiles(values: Floats, weights: Floats) -> Floats:
    """Return the quartiles of values at rows (n, effects, targets), shape (3, effects, targets), by weight."""
    of_columns = quantiles(values.reshape(len(values), -1).T, weights, (0.25, 0.5, 0.75))
    return of_columns.T.reshape(3, *values.shape[1:])


def _totals(
    passes: RowPasses, kernel: CrossKernel, dual_coef: Floats, effects: Sequence[Effect]
) -> tuple[Totals, Floats]:
    """Return the sums over the rows, and the quartiles of the effects at some of them."""
    totals = passes.reduce(EffectTotals(kernel, effects, dual_coef, -(-passes.source.n_rows // _MOST_ROWS)))
    return totals, _quartiles(np.concatenate(totals.values), np.concatenate(totals.weights))
