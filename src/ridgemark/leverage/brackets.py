"""Lower and upper bounds on ridge leverage scores, and quantities derived from them."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from ridgemark import bounds
from ridgemark.backends import Floats
from ridgemark.errors import ParameterError

_SHARE = 0.3  # share of the effective dimension that "a few rows carry" in the verdict
_EVEN = 2.0  # scores are even if this share takes at least 1/_EVEN of the rows that it takes with equal scores
_WIDEST = 3.0  # no verdict where the bounds on d_eff differ by more than this factor


class Bracket(NamedTuple):
    """A lower and an upper bound on a number; equal bounds mean that it is exact."""

    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class ScoreBracket:
    """Lower and upper bounds on the scores `l_i = [K (K + n lambda I)^-1]_ii`, with their ridge.

    With weights the scores are those of `W^1/2 K W^1/2`: a row of weight m has the sum of the scores of m equal rows.

    Attributes
    ----------
    lower, upper : array of shape (n,)
        Bounds that hold for every row; equal when the scores are exact.
    scaled_ridge : float
        n lambda, or lambda times the sum of weights.
    effective_dimension : Bracket
        d_eff, the sum of the scores.
    weights : array of shape (n,) or None
        Weights, in the unit in which `scaled_ridge` counts them.
    trace : float
        `tr K`.
    n_draws : int
        Draws of the pilot; 0 when the scores are exact.
    n_passes, n_kernel_evaluations : int
        The cost since the source was opened, without the search for equal rows.
    refined : bool
        Whether the pilot was drawn by earlier scores rather than by the kernel's diagonal.
    """

    lower: Annotated[Floats, "(s)"]
    upper: Annotated[Floats, "(s)"]
    scaled_ridge: Annotated[float, "> 0"]
    effective_dimension: Bracket
    weights: Annotated[Floats | None, "(s)", ">= 0"]
    trace: float
    n_draws: int
    n_passes: int
    n_kernel_evaluations: int
    refined: bool = False

    @property
    def total_weight(self) -> float:
        """The n of the formulas: number of rows, or sum of weights."""
        return float(len(self.lower)) if self.weights is None else float(self.weights.sum())

    @property
    def max_degrees_of_freedom(self) -> Bracket:
        """d_mof, n times the largest score of one row; per unit of weight where there are weights."""
        per_unit = [_per_unit(side, self.weights).max() for side in (self.lower, self.upper)]
        return Bracket(*(self.total_weight * float(score) for score in per_unit))

    @property
    def coherence(self) -> Bracket:
        """`d_mof/d_eff`, between 1 and n: how many times more landmarks uniform sampling may need."""
        d_mof, d_eff = self.max_degrees_of_freedom, self.effective_dimension
        # The lightest row has at most all of d_eff, so the ratio is at most the total weight over its weight.
        lightest = 1.0 if self.weights is None else float(self.weights[self.weights > 0].min())
        most = self.total_weight / lightest
        if not d_eff.lower > 0:
            return Bracket(1.0, most)
        ratios = d_mof.lower / d_eff.upper, d_mof.upper / d_eff.lower
        return Bracket(*(min(max(ratio, 1.0), most) for ratio in ratios))

    def sampling_quality(self, probabilities: Any = None) -> float:
        """Return a beta certified for sampling probabilities: `p_i >= beta l_i/d_eff` for every row.

        By default for the probabilities proportional to `upper`, where beta is `sum(lower)/sum(upper)`; in general
        `min_i p_i sum(lower)/upper_i` (paper, Theorem 3).
        """
        d_eff = float(self.lower.sum())
        if probabilities is None:
            return min(1.0, d_eff / float(self.upper.sum())) if d_eff > 0 else 0.0
        p = np.asarray(probabilities, dtype=np.float64)
        if p.shape != self.upper.shape:
            raise ParameterError(
                f"probabilities need one entry for each of the {len(self.upper)} rows, got shape {p.shape}"
            )
        if not ((p >= 0).all() and abs(p.sum() - 1.0) <= 1e-8):
            raise ParameterError(f"probabilities must be at least 0 and sum to one, got a sum of {p.sum():.6g}")
        counts = self.upper > 0
        return min(1.0, float((p[counts] * d_eff / self.upper[counts]).min(initial=math.inf)))

    def theorem_4(self, failure_probability: float = 0.05) -> str:
        """Return one sentence: what Theorem 4 guarantees for the pilot's number of draws."""
        if self.n_draws == 0:
            return "The scores are exact."
        if self.refined:
            return "Theorem 4 does not apply to a refined pilot; the bracket holds anyway."
        n = self._n_rows
        ridge = self.scaled_ridge / n
        epsilon = bounds.theorem_4_epsilon(n, self.n_draws, self.trace, ridge, failure_probability)
        if epsilon < 0.5:
            return (
                f"Theorem 4: with probability {1 - failure_probability:g} every lower score is within "
                f"{bounds.theorem_4_additive_error(epsilon):.3g} of the exact one ({self.n_draws} draws)."
            )
        needed = 16.0 * self.trace / self.scaled_ridge * math.log(n / failure_probability)
        asks = f" (it asks for over {needed:.3g} draws from {n} rows)" if needed <= n else ""
        return f"Theorem 4 gives no guarantee for {self.n_draws} draws at this ridge{asks}; the bracket holds anyway."

    @property
    def _n_rows(self) -> int:
        """The number of rows of positive weight."""
        return len(self.lower) if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def informative(self) -> bool:
        """Whether the bounds on d_eff differ by at most a factor of three."""
        return self.effective_dimension.upper <= _WIDEST * self.effective_dimension.lower

    def verdict(self) -> str:
        """Return one line: whether landmarks drawn by the scores can beat uniform ones on these rows."""
        lower, upper = self.effective_dimension
        if not self.informative:
            return (
                f"the pilot is too small to tell (effective dimension between {lower:.4g} and {upper:.4g}): "
                "take more landmarks, or refine"
            )
        n = self._n_rows
        middle = np.sort((self.lower + self.upper) / 2)[::-1]
        n_carrying = int(np.searchsorted(np.cumsum(middle), _SHARE * middle.sum())) + 1
        if n_carrying * _EVEN >= _SHARE * n:
            return "scores are even: uniform landmarks would do as well"
        rows = "1 row carries" if n_carrying == 1 else f"{n_carrying} rows carry"
        share = f"{_SHARE:.0%} of the effective dimension"
        return f"{rows} {share} ({n_carrying / n:.2%} of the data): uniform sampling would miss them"


def exact_bracket(scores: Floats, scaled_ridge: float, trace: float, weights: Floats | None = None) -> ScoreBracket:
    """Return exact scores as a bracket with equal bounds."""
    total = float(scores.sum())
    n = len(scores)
    return ScoreBracket(scores, scores, scaled_ridge, Bracket(total, total), weights, trace, 0, 1, n * n)


def _per_unit(scores: Floats, weights: Floats | None) -> Floats:
    if weights is None:
        return scores
    return np.divide(scores, weights, out=np.zeros_like(scores), where=weights > 0)
