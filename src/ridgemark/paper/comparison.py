"""The introduction's comparison: kernel evaluations against risk for three ways to avoid the whole kernel matrix."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ridgemark import bounds, exact
from ridgemark.backends import Floats
from ridgemark.exact import Spectrum
from ridgemark.kernels import Bernoulli
from ridgemark.paper.divide_and_conquer import averaging_risk, kernel_evaluations, random_parts
from ridgemark.paper.sketching import approximate_scores, columns_risk
from ridgemark.paper.synthetic import NOISE_VARIANCE, RIDGE, RISK_TOLERANCE, synthetic_points, synthetic_signal
from ridgemark.sampling import draw_sequence

Measured = tuple[float, float]  # kernel evaluations, risk

N_ROWS = 1000
COLUMNS = (5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300)
PARTS = (2, 4, 8, 16, 32, 64, 128, 256)
LEVERAGE, UNIFORM, DIVIDE = "leverage Nystrom", "uniform Nystrom", "divide and conquer"
TOLERABLE = 1.05  # risk ratio up to which a fit counts as good as exact


@dataclass(frozen=True)
class Point:
    """One method at one size (columns drawn, or parts): means over repeats, and the range of the risk."""

    method: str
    size: int
    kernel_evaluations: float
    risk: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class Comparison:
    """Points of all methods, the exact risk, and the orders the introduction gives."""

    n_rows: int
    exact_risk: float
    effective_dimension: float  # at lambda, as in the introduction
    max_degrees_of_freedom: float
    points: tuple[Point, ...]
    orders: dict[str, float]

    def evaluations_needed(self, method: str) -> float | None:
        """Return the kernel evaluations above which the mean risk is at most 1.05 times exact; None if never."""
        needed = None
        mine = [point for point in self.points if point.method == method]
        for point in sorted(mine, key=lambda point: -point.kernel_evaluations):
            if point.risk > TOLERABLE * self.exact_risk:
                break
            needed = point.kernel_evaluations
        return needed


def comparison(
    seed: int,
    repeats: int,
    n_rows: int = N_ROWS,
    columns: tuple[int, ...] = COLUMNS,
    parts: tuple[int, ...] = PARTS,
) -> Comparison:
    """Measure risk and kernel evaluations on the synthetic design; the pilot, as large as the draw, is counted."""
    points = synthetic_points(n_rows, seed)
    signal = synthetic_signal(points)
    K = exact.kernel_matrix(points[:, None], Bernoulli(order=2))
    spectrum = exact.spectrum(K)
    scaled_ridge = n_rows * RIDGE

    def divide(m: int, rng: np.random.Generator) -> Measured:
        split = random_parts(n_rows, m, rng)
        return kernel_evaluations(split), averaging_risk(K, split, signal, NOISE_VARIANCE, RIDGE).total

    methods = {
        LEVERAGE: (columns, _leverage(spectrum, signal, scaled_ridge)),
        UNIFORM: (columns, _uniform(spectrum, signal, scaled_ridge)),
        DIVIDE: (tuple(m for m in parts if m <= n_rows), divide),
    }
    d_eff = exact.effective_dimension(spectrum, scaled_ridge)
    d_mof = exact.max_degrees_of_freedom(spectrum, scaled_ridge)
    return Comparison(
        n_rows,
        exact.risk(spectrum, signal, NOISE_VARIANCE, scaled_ridge).total,
        d_eff,
        d_mof,
        tuple(
            _point(method, size, [measure(size, np.random.default_rng([seed, r, size])) for r in range(repeats)])
            for method, (sizes, measure) in methods.items()
            for size in sizes
        ),
        {
            LEVERAGE: bounds.leverage_kernel_evaluations(n_rows, d_eff),
            UNIFORM: bounds.uniform_kernel_evaluations(n_rows, d_mof),
            DIVIDE: bounds.divide_and_conquer_kernel_evaluations(n_rows, d_eff),
        },
    )


def _leverage(
    spectrum: Spectrum, signal: Floats, scaled_ridge: float
) -> Callable[[int, np.random.Generator], Measured]:
    def measure(p: int, rng: np.random.Generator) -> Measured:
        scores, pilot = approximate_scores(spectrum, RISK_TOLERANCE * scaled_ridge, p, rng)
        drawn = np.unique(draw_sequence(scores, p, rng))
        risk = columns_risk(spectrum, drawn, signal, NOISE_VARIANCE, scaled_ridge).total
        return spectrum.n_rows * (pilot + len(drawn)), risk

    return measure


def _uniform(spectrum: Spectrum, signal: Floats, scaled_ridge: float) -> Callable[[int, np.random.Generator], Measured]:
    def measure(p: int, rng: np.random.Generator) -> Measured:
        drawn = np.unique(rng.integers(0, spectrum.n_rows, p))
        risk = columns_risk(spectrum, drawn, signal, NOISE_VARIANCE, scaled_ridge).total
        return spectrum.n_rows * len(drawn), risk

    return measure


def _point(method: str, size: int, measured: list[Measured]) -> Point:
    evaluations, risks = np.array(measured, dtype=np.float64).T
    return Point(method, size, float(evaluations.mean()), float(risks.mean()), float(risks.min()), float(risks.max()))
