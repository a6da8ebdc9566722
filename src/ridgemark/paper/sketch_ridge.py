"""Fits with L_gamma in place of L: by a footnote of the paper, lambda then needs no condition."""

from dataclasses import dataclass

import numpy as np

from ridgemark import exact
from ridgemark.kernels import Bernoulli
from ridgemark.paper.sketching import approximation
from ridgemark.paper.synthetic import N_ROWS, NOISE_VARIANCE, RIDGE, synthetic_scores, synthetic_signal
from ridgemark.sampling import draw_with_replacement

TOLERANCES = (0.0, 0.01, 0.1, 1.0)
COLUMNS = (15, 20, 25, 30, 40, 60, 80, 120)


@dataclass(frozen=True)
class SketchRidgeCurve:
    """Mean risk ratio against p with gamma = lambda epsilon; epsilon = 0 is L."""

    tolerance: float
    columns: tuple[int, ...]
    mean: tuple[float, ...]


def sketch_ridge(seed: int, repeats: int, columns: tuple[int, ...] = COLUMNS) -> tuple[SketchRidgeCurve, ...]:
    """Measure on the synthetic design, with the same draws for every gamma."""
    scores = synthetic_scores(seed=seed)
    spectrum = exact.kernel_spectrum(scores.points[:, None], Bernoulli(order=2))
    signal, scaled_ridge = synthetic_signal(scores.points), N_ROWS * RIDGE
    full = exact.risk(spectrum, signal, NOISE_VARIANCE, scaled_ridge).total
    ratios = np.empty((len(TOLERANCES), len(columns), repeats))
    for at, repeat in np.ndindex(len(columns), repeats):
        draw = draw_with_replacement(scores.scores, columns[at], np.random.default_rng([seed, repeat, columns[at]]))
        for k, tolerance in enumerate(TOLERANCES):
            sketched = approximation(spectrum, draw, tolerance * scaled_ridge)
            ratios[k, at, repeat] = exact.risk(sketched, signal, NOISE_VARIANCE, scaled_ridge).total / full
    means = ratios.mean(axis=2)
    return tuple(
        SketchRidgeCurve(tolerance, columns, tuple(row.tolist()))
        for tolerance, row in zip(TOLERANCES, means, strict=True)
    )
