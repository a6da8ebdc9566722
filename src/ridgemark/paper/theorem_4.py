"""Theorem 4: how far the approximate scores lie below the exact ones, against the number of draws, with the bound."""

from dataclasses import dataclass

import numpy as np

from ridgemark import bounds, exact
from ridgemark.exact import Spectrum
from ridgemark.kernels import Bernoulli, Matern12
from ridgemark.paper.sketching import approximate_scores
from ridgemark.paper.synthetic import RIDGE, synthetic_points

DRAWS = (5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 20480)
FAILURE_PROBABILITY = 0.05


@dataclass(frozen=True)
class ScoreError:
    """The largest `l_i - l~_i` over rows at one number of draws: mean and largest over repeats, and the bound."""

    n_draws: int
    mean: float
    largest: float
    above_exact: float  # the largest l~_i - l_i, which the theorem says is never positive
    bound: float | None  # 2 epsilon; None where the theorem does not apply (epsilon of 1/2 or more)


@dataclass(frozen=True)
class Theorem4:
    """Errors on one design."""

    design: str
    n_rows: int
    ridge: float
    effective_dimension: float
    largest_score: float  # a larger bound is not informative: no approximate score is below 0
    draws_for_any_promise: int  # the theorem's count at its largest epsilon
    errors: tuple[ScoreError, ...]

    @property
    def holds(self) -> bool:
        """Whether the bound held in every repeat at every number of draws, and no score exceeded the exact one."""
        kept = all(e.bound is None or e.largest <= e.bound for e in self.errors)
        return kept and all(e.above_exact <= 1e-8 for e in self.errors)


def theorem_4(seed: int, repeats: int, draws: tuple[int, ...] = DRAWS) -> tuple[Theorem4, ...]:
    """Measure on rows where few carry the trace, so that the bound is informative, and on the synthetic design.

    For rows of equal `K_ii` the bound stays above every score until `p > 16 n log(n/rho)`.
    """
    lengths = 1.0 / np.arange(1.0, 501.0)
    places = np.random.default_rng(seed).random((500, 2))
    uneven = exact.spectrum(lengths[:, None] * exact.kernel_matrix(places, Matern12(0.5)) * lengths)
    rare = exact.kernel_spectrum(synthetic_points(seed=seed)[:, None], Bernoulli(order=2))
    return (
        _measure("rows of unequal length", uneven, 4e-4, draws, repeats, seed),
        _measure("synthetic design", rare, RIDGE, draws, repeats, seed),
    )


def _measure(name: str, spectrum: Spectrum, ridge: float, draws: tuple[int, ...], repeats: int, seed: int) -> Theorem4:
    n, trace = spectrum.n_rows, float(spectrum.eigenvalues.sum())
    scores = exact.leverage_scores(spectrum, n * ridge)
    errors = []
    for p in draws:
        rngs = [np.random.default_rng([seed, p, repeat]) for repeat in range(repeats)]
        gaps = [scores - approximate_scores(spectrum, n * ridge, p, rng)[0] for rng in rngs]
        worst = [float(gap.max()) for gap in gaps]
        epsilon = bounds.theorem_4_epsilon(n, p, trace, ridge, FAILURE_PROBABILITY)
        bound = bounds.theorem_4_additive_error(epsilon) if epsilon < 0.5 else None
        above = max(float(-gap.min()) for gap in gaps)
        errors.append(ScoreError(p, float(np.mean(worst)), max(worst), above, bound))
    needed = bounds.theorem_4_count(n, trace, ridge, 0.4999, FAILURE_PROBABILITY)
    return Theorem4(name, n, ridge, float(scores.sum()), float(scores.max()), needed, tuple(errors))
