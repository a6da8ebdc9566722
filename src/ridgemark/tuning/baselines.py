"""Errors on the judging rows of what a tuned model is compared with: straight lines, and the mean."""

import math
from dataclasses import replace

import numpy as np

from ridgemark.backends import NUMPY, Floats
from ridgemark.tuning.criterion import Sample, SmallDesign
from ridgemark.tuning.descent import judge_errors
from ridgemark.tuning.draw import TuningRows
from ridgemark.tuning.record import Baselines

_RIDGES = np.logspace(-8.0, 2.0, 21)  # lambdas of linear ridge regression, for columns in their units


def compare_with_baselines(rows: TuningRows, judged: Floats) -> Baselines | None:
    """Return the errors of the tuned small model and of the baselines, all fitted to the same rows.

    `judged` has the model's squared errors on the judging rows. Linear ridge regression takes the features in units of
    their spread, and its lambda by leave-one-out. None without judging rows, or where an error is not finite.
    """
    tuning, judging = (replace(sample, backend=NUMPY) for sample in (rows.larger, rows.judging))
    if not len(judging.weights):
        return None
    mean, mean_left_out = _by_mean(tuning, judging)
    linear, linear_left_out = (None, None) if rows.is_wide else _by_lines(tuning, judging)
    errors = Baselines(len(tuning.weights), _root(judged), mean, mean_left_out, linear, linear_left_out)
    return errors if math.isfinite(errors.model) and math.isfinite(mean) else None


def _root(squares: Floats) -> float:
    return float(np.sqrt(squares.mean()))


def _by_mean(tuning: Sample, judging: Sample) -> tuple[float, float]:
    """Return the errors of the weighted mean, or of zero without an intercept: judged, and leave-one-out."""
    w = tuning.weights[:, None] * float(tuning.fit_intercept)
    mean = (w * tuning.targets).sum(axis=0)
    left_out = (tuning.targets - mean) / (1.0 - w)
    judged = judge_errors(judging.targets - mean, judging)
    return _root(judged), float(np.sqrt((tuning.weights @ left_out**2).mean()))


def _by_lines(tuning: Sample, judging: Sample) -> tuple[float, float]:
    """Return the errors of linear ridge regression: judged, and leave-one-out."""
    intercept = float(tuning.fit_intercept)
    centre, target_mean = (intercept * tuning.weights @ values for values in (tuning.features, tuning.targets))
    design = SmallDesign(
        tuning, np.empty((0, 0)), centre, tuning.features - centre, target_mean, tuning.targets - target_mean
    )
    error, _, coefficients = design.best_ridge(_RIDGES)
    residuals = judging.targets - target_mean - (judging.features - centre) @ coefficients
    return _root(judge_errors(residuals, judging)), math.sqrt(error)
