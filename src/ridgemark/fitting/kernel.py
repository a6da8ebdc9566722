"""First stage of a fit: the kernel with its bandwidth or metric, and the origins of columns and targets."""

from dataclasses import dataclass

import numpy as np

from ridgemark.backends import Floats
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.rows import FitRows
from ridgemark.kernels import Kernel
from ridgemark.passes import RowPasses
from ridgemark.tuning import TuningResult, choose_kernel

_ROWS_FOR_ORIGIN = 1000  # distinct rows, in random order, whose mean target and median features are the origins


@dataclass(frozen=True, eq=False)
class FitKernel:
    """The kernel of a fit, and what was learned with it."""

    kernel: Kernel
    target_origin: Floats  # subtracted from the targets
    tuning: TuningResult | None  # how the kernel was tuned
    ridge: float | None  # the lambda that tuning suggests


def settle_kernel(rows: FitRows, recipe: Recipe, rng: np.random.Generator) -> FitKernel:
    """Choose the kernel with its bandwidth or metric, and an origin for the targets and the columns.

    With an intercept an origin changes no fit, and sums lose no digits to large offsets. A checkpoint keeps what tuning
    found.
    """
    passes, distinct = rows.choosing, rows.distinct

    def choose(passes: RowPasses) -> tuple[Kernel, TuningResult | None]:
        given = recipe.ridge, recipe.fit_intercept, recipe.n_landmarks, recipe.chosen_effort.tuner
        return choose_kernel(recipe.kernel, recipe.bandwidth, passes, rng, *given)

    kernel, tuning = passes.recall("kernel", rng, choose) if isinstance(recipe.kernel, str) else choose(passes)
    origin = np.zeros(passes.source.n_targets)
    if recipe.fit_intercept:
        sample = passes.take(distinct.indices[:_ROWS_FOR_ORIGIN])
        origin = sample.targets.mean(axis=0)
        if isinstance(sample.features, np.ndarray) and not kernel.pairwise and sample.n_rows > 1:
            kernel = kernel.centred(np.quantile(sample.features, 0.5, axis=0, method="lower"))
    return FitKernel(kernel, origin, tuning, None if tuning is None else tuning.ridge_for(len(distinct)))
