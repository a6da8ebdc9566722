"""The transform of the target of a fit: as given, or chosen by leave-one-out in units of the target."""

from dataclasses import replace

import numpy as np

from ridgemark.errors import DataError
from ridgemark.fitting import Recipe
from ridgemark.fitting.fit import fit
from ridgemark.operators import Cross
from ridgemark.passes import RowPasses
from ridgemark.path import leave_one_out
from ridgemark.rows import ArrayRows, DaskRows, dense, row_weights
from ridgemark.sampling import make_generator
from ridgemark.transforms import TargetTransform, compared_kinds, make_transform
from ridgemark.tuning import Tuner

_ROWS, _LANDMARKS = 4000, 400  # of the fits that are compared
_TUNER = Tuner(levels=("per_feature",), rows=1500, landmarks=200, evaluations=20)  # of their kernel


def choose_transform(estimator, recipe, source):
    """Return the transform of the targets of a source, before it is recalibrated on all rows."""
    if source.n_targets != 1:
        raise DataError(
            f"target_transform takes one target, got {source.n_targets}; fit them one after the other, or give mapped "
            "targets"
        )
    if isinstance(source, DaskRows):
        raise DataError("target_transform does not take Dask rows; map the target before, for example by numpy.log")
    passes = estimator._passes(source)
    counts = passes.row_counts() > 0
    y = passes.targets()[counts, 0]
    if estimator.target_transform != "auto":
        return make_transform(estimator.target_transform, y)
    kinds = compared_kinds(y)
    if np.ptp(y) == 0 or len(y) < 20:
        return make_transform("none", y)
    chosen, compared = _compare(recipe, passes, [make_transform(kind, y) for kind in kinds])
    return replace(chosen, compared=compared)


def _compare(recipe: Recipe, passes: RowPasses, transforms: list[TargetTransform]):
    """Return the transform of least leave-one-out error in units of the target, and the errors of all.

    One fit has all transformed targets, each with its own ridge; its kernel is tuned quickly to all of them.
    """
    rng = make_generator(0)
    rows = np.flatnonzero(passes.row_counts() > 0)
    if len(rows) > _ROWS:
        rows = np.sort(rng.choice(rows, _ROWS, replace=False))
    block = passes.take(rows)
    y, weights = block.targets[:, 0], row_weights(block)
    targets = np.stack([transform.forward(y) for transform in transforms], axis=1)
    sample = RowPasses(ArrayRows(dense(block.features), targets, block.weights), passes.memory_budget)
    sample.normalise_weights()
    tuned = isinstance(recipe.bandwidth, str | Tuner) and recipe.bandwidth != "median"
    quick = replace(
        recipe,
        bandwidth=_TUNER if tuned else recipe.bandwidth,
        ridge="loo",
        ridge_per_target=True,
        n_landmarks=min(_LANDMARKS, max(1, sample.n_distinct // 2)) if sample.n_distinct > _LANDMARKS else "auto",
        certify_with=None,
        solver="direct",
    )
    fitted = fit(sample, quick, rng)
    residuals = leave_one_out(sample, fitted.solved.fit).residuals
    errors = [
        transform.recalibrated(y, target - residual, weights).left_out_error
        for transform, target, residual in zip(transforms, targets.T, residuals.T, strict=True)
    ]
    best = int(np.argmin(errors))
    return transforms[best], tuple((transform.kind, error) for transform, error in zip(transforms, errors, strict=True))


def with_transform(model, transform, passes):
    """Return the model with the transform recalibrated on the residuals of rows left out, in units of the target.

    A fit by gradients, which leaves no rows out, is recalibrated on its fitted values.
    """
    mapped, weights = passes.targets()[:, 0], passes.row_counts()
    fitted = mapped - _residuals(model, passes)[:, 0]
    y = transform.inverse(mapped)
    transform = transform.recalibrated(y, fitted, weights)
    if model.left_out is not None and transform.kind != "none":
        own_units = (y - transform.predicted(fitted))[:, None]
        model = replace(model, left_out=replace(model.left_out, own_units=own_units))
    return replace(model, transform=transform)


def _residuals(model, passes):
    if model.left_out is not None:
        return model.left_out.values.residuals
    if model.expanded is not None:
        return leave_one_out(passes, model.expanded).residuals
    function = model.function
    return passes.targets() - (Cross(passes, function.cross_kernel) @ function.dual_coef + function.intercept)
