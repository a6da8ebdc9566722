"""Figure 1: the scores of the synthetic design, and risk against the number of columns for seven sampling methods.

The paper draws by its approximate scores, eq. (9), which are farthest below the exact ones where the pilot has no rows.
The library draws by the upper bounds of the scores, from the same pilot. Both are shown.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgemark import exact
from ridgemark.backends import Floats
from ridgemark.exact import Spectrum
from ridgemark.kernels import Bernoulli
from ridgemark.paper.sketching import columns_risk, diagonal
from ridgemark.paper.synthetic import (
    N_ROWS,
    NOISE_VARIANCE,
    RIDGE,
    RISK_TOLERANCE,
    SyntheticScores,
    synthetic_scores,
    synthetic_signal,
)
from ridgemark.passes import RowPasses
from ridgemark.rows import open_rows
from ridgemark.sampling import draw_sequence
from ridgemark.selection import Problem, RPCholesky

Chooser = Callable[[int, np.random.Generator], NDArray[np.intp]]

COLUMNS = (10, 15, 20, 25, 30, 40, 48, 60, 80, 120, 160)
PILOT = 150  # distinct rows for the approximate scores
_BAND = (0.1, 0.9)  # quantiles over repeats


@dataclass(frozen=True)
class Curve:
    """Risk against the number of columns for one sampling method: mean and a band over repeats."""

    method: str
    columns: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Figure1:
    """Both panels; `exact_risk` is the risk with all of K."""

    scores: SyntheticScores
    exact_risk: float
    curves: tuple[Curve, ...]
    repeats: int
    pilot: int
    rank: int

    def curve(self, method: str) -> Curve:
        """Return the curve of a method."""
        return next(c for c in self.curves if c.method == method)

    @property
    def approximation_gap(self) -> float:
        """The largest relative difference of the approximate-leverage curve from the exact-leverage curve."""
        ours, exactly = (np.array(self.curve(m).mean) for m in ("approximate leverage", "exact leverage"))
        return float(np.abs(ours / exactly - 1.0).max())


def figure_1(seed: int, repeats: int, columns: tuple[int, ...] = COLUMNS) -> Figure1:
    """Measure both panels. Columns are drawn with replacement, except for RPCholesky, whose columns are distinct.

    Methods share the random numbers of each repeat, so that curves differ by their probabilities and not by chance.
    """
    scores = synthetic_scores(seed=seed)
    spectrum = exact.kernel_spectrum(scores.points[:, None], Bernoulli(order=2))
    signal = synthetic_signal(scores.points)
    rank = round(scores.effective_dimension)
    risks: dict[str, list[list[float]]] = {}
    for repeat in range(repeats):
        for method, choose in _choosers(scores, spectrum, rank, np.random.default_rng([seed, repeat])).items():
            drawn = [choose(p, np.random.default_rng([seed, repeat, p])) for p in columns]
            curve = [columns_risk(spectrum, j, signal, NOISE_VARIANCE, N_ROWS * RIDGE).total for j in drawn]
            risks.setdefault(method, []).append(curve)
    return Figure1(
        scores,
        exact.risk(spectrum, signal, NOISE_VARIANCE, N_ROWS * RIDGE).total,
        tuple(_curve(method, columns, np.array(values)) for method, values in risks.items()),
        repeats,
        PILOT,
        rank,
    )


def _choosers(scores: SyntheticScores, spectrum: Spectrum, rank: int, rng: np.random.Generator) -> dict[str, Chooser]:
    """Return the sampling methods: functions from the number of columns to distinct row numbers."""
    passes = RowPasses(open_rows(scores.points[:, None]))
    problem = Problem(passes, passes.distinct_rows(), Bernoulli(order=2), N_ROWS * RIDGE, RISK_TOLERANCE)
    bracket = problem.scores(PILOT, 0, rng)
    by_weights = {
        "uniform": np.ones(N_ROWS),
        "diagonal": diagonal(spectrum),
        "exact leverage": scores.scores,
        "approximate leverage": bracket.upper,
        "approximate, eq. (9)": bracket.lower,
        "rank-k leverage": exact.rank_leverage_scores(spectrum, rank),
    }
    return {name: _drawer(weights) for name, weights in by_weights.items()} | {"RPCholesky": _rpcholesky(problem)}


def _drawer(weights: Floats) -> Chooser:
    return lambda p, rng: np.unique(draw_sequence(weights, p, rng))


def _rpcholesky(problem: Problem) -> Chooser:
    def choose(p: int, rng: np.random.Generator) -> NDArray[np.intp]:
        indices = RPCholesky().choose(problem, p, rng).indices
        assert indices is not None
        return indices

    return choose


def _curve(method: str, columns: tuple[int, ...], risks: Floats) -> Curve:
    low, high = np.quantile(risks, _BAND, axis=0)
    return Curve(method, columns, tuple(risks.mean(axis=0).tolist()), tuple(low.tolist()), tuple(high.tolist()))
