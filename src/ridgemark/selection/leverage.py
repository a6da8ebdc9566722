"""Landmarks drawn by ridge leverage scores: the paper's method, and two changes to it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ridgemark.parameters import check_flags, positive_count
from ridgemark.sampling import draw_distinct, draw_poisson, draw_with_replacement
from ridgemark.selection.base import Landmarks, Problem, Selection
from ridgemark.selection.pilot import PILOT

_DIMENSION_PER_LANDMARK = 0.5  # effective dimension, per landmark, at the matched ridge


@dataclass(eq=False, repr=False)
class Leverage(Selection):
    """Score every row from a pilot drawn by the kernel's diagonal, then draw by the upper scores.

    Upper scores are large for rows far from the pilot, so these rows are likely to be drawn. The paper takes scores at
    lambda epsilon, epsilon being `risk_tolerance`, and draws proportionally to them; `8 (sum(upper) + 1/6) log(n/rho)`
    such draws satisfy Theorem 3. Two changes bring the same number of landmarks closer to exact, and are the default:

    - the ridge is matched to the number of landmarks p: the scores are those at `max(lambda epsilon, gamma)`, gamma
      the ridge at which the effective dimension is p/2. At a smaller ridge more rows score high than p landmarks can
      represent.
    - rows of high score are included with certainty: row i is drawn with probability `pi_i = min(1, c upper_i)`,
      independently of the others, where c makes these probabilities sum to p. Draws one after the other miss a row of
      score one with probability 0.13.

    With both changes and scores at gamma, `c >= (28/3) log(2 n/rho)` bounds the in-sample risk by
    `(1 + 2 gamma/lambda)^2` times that of exact kernel ridge regression, with probability 1 - rho. At usual numbers
    of landmarks c is 2 to 10, so nothing is guaranteed before the fit; a certificate measures what was reached.

    Parameters
    ----------
    n_pilot : int, optional
        Landmarks of the pilot; by default 500, or half the number of landmarks where that is more.
    refine : int, default=0
        Number of times to redraw the pilot with the scores found.
    replace : bool, default=False
        Draw with replacement as in the paper, so that no row is included with certainty. Repeats are merged and their
        weights kept in the record, so there may be fewer landmarks than draws.
    match_ridge : bool, default=True
        Match the ridge to the number of landmarks; False takes the scores at lambda epsilon, as the paper does.
    certain_rows : bool, default=True
        Draw independently, rows of high score with certainty; False draws one row after the other, proportionally to
        the scores. With `replace` it has no effect. `Leverage(replace=True, match_ridge=False)` is the paper's draw.
    """

    needs_ridge: ClassVar[bool] = True

    n_pilot: int | None = None
    refine: int = 0
    replace: bool = False
    match_ridge: bool = True
    certain_rows: bool = True

    def _choose(self, problem: Problem, n_landmarks: int, rng: np.random.Generator) -> Landmarks:
        check_flags(self, "replace", "match_ridge", "certain_rows")
        default = max(PILOT, n_landmarks // 2)
        pilot = default if self.n_pilot is None else positive_count(self.n_pilot, "n_pilot")
        refine = 0 if self.refine == 0 else positive_count(self.refine, "refine")
        ridge = problem.sketch_ridge
        if self.match_ridge:
            ridge = max(ridge, problem.pilot(pilot, rng).ridge_at_dimension(_DIMENSION_PER_LANDMARK * n_landmarks))
        scores = problem.scores(pilot, refine, rng, ridge)
        independent = draw_poisson if self.certain_rows else draw_distinct
        draw_rows = draw_with_replacement if self.replace else independent
        draw = draw_rows(problem.distinct.totals(scores.upper), n_landmarks, rng)
        return problem.take(draw.indices, draw=draw, scores=scores)
