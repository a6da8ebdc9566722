"""Theorem 3: columns guaranteed, used and needed; and the open question whether d_eff is also a lower bound."""

import math
from dataclasses import dataclass

import numpy as np

from ridgemark import bounds, exact
from ridgemark.backends import Floats
from ridgemark.exact import Spectrum
from ridgemark.kernels import Bernoulli, Gaussian
from ridgemark.paper.data import standardised
from ridgemark.paper.designs import Designs
from ridgemark.paper.printed import PrintedRow
from ridgemark.paper.protocols import prior
from ridgemark.paper.sketching import columns_risk
from ridgemark.paper.synthetic import N_ROWS, RISK_TOLERANCE
from ridgemark.sampling import draw_sequence
from ridgemark.tuning import median_distance

FAILURE_PROBABILITY = 0.05
TOLERABLE = 1.05
RIDGES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)  # of the open question, in units of the kernel's mean diagonal
N_ASKED = 600  # rows of each set in the open question
_PRECISION = 0.05  # relative precision of the number of draws found
_MOST_DRAWS = 16  # draws per row; with more, nearly every row is drawn


@dataclass(frozen=True)
class Counts:
    """Numbers of draws for one row of Table 1."""

    row: str
    n_rows: int
    promised: int  # by the theorem with exact scores, epsilon = 0.01, rho = 0.05
    promised_uniform: int
    used: int  # the paper's p
    needed: float  # draws by the scores with risk ratio at most 1.05: median over repeats
    needed_columns: float  # distinct columns among them
    condition_on_lambda: float  # the smallest lambda that the printed theorem allows
    ridge: float


@dataclass(frozen=True)
class Needed:
    """The smallest number of columns with risk ratio at most 1.05 on one set at one lambda, medians over repeats."""

    source: str
    n_rows: int
    ridge: float
    effective_dimension: float  # at lambda
    sharp_effective_dimension: float  # at lambda epsilon with (1 + 2 epsilon)^2 = 1.05, as in Theorem 3
    leverage: float
    uniform: float


def theorem_3_counts(designs: Designs, row: PrintedRow, repeats: int) -> Counts | None:
    """Return promised, used and needed draws for a row of Table 1; None if its data are missing."""
    design = designs.open(row)
    if design is None:
        return None
    spectrum, n = design.spectrum, design.n_rows
    at = RISK_TOLERANCE * n * row.ridge
    scores = exact.leverage_scores(spectrum, at)
    draws, columns = needed(spectrum, scores, n * row.ridge, repeats, designs.seed)
    d_mof = exact.max_degrees_of_freedom(spectrum, at)
    smallest = float(scores.min())
    return Counts(
        row.name,
        n,
        bounds.theorem_3_count(n, float(scores.sum()), FAILURE_PROBABILITY),
        bounds.theorem_3_uniform_count(n, d_mof, FAILURE_PROBABILITY),
        row.n_draws,
        draws,
        columns,
        bounds.theorem_3_minimum_lambda(n, float(spectrum.eigenvalues[0]), smallest) if smallest > 0 else math.inf,
        row.ridge,
    )


def open_question(
    designs: Designs, repeats: int, ridges: tuple[float, ...] = RIDGES, most_rows: int = N_ASKED
) -> tuple[Needed, ...]:
    """Find the smallest number of columns over sets and lambdas."""
    epsilon = (np.sqrt(TOLERABLE) - 1.0) / 2.0
    counts = []
    for source, spectrum in _spectra(designs, most_rows).items():
        n = spectrum.n_rows
        for ridge in ridges:
            scaled_ridge = ridge * float(spectrum.eigenvalues.sum())
            scores = exact.leverage_scores(spectrum, epsilon * scaled_ridge)
            leverage, uniform = (
                needed(spectrum, weights, scaled_ridge, repeats, designs.seed)[1] for weights in (scores, np.ones(n))
            )
            d_eff = exact.effective_dimension(spectrum, scaled_ridge)
            counts.append(Needed(source, n, scaled_ridge / n, d_eff, float(scores.sum()), leverage, uniform))
    return tuple(counts)


def _spectra(designs: Designs, most_rows: int) -> dict[str, Spectrum]:
    """Return spectra of the synthetic design, of clusters of very different size, and of the available sets."""
    rng = np.random.default_rng(designs.seed)
    shares = 2.0 ** -np.arange(8)
    centres = 6.0 * rng.standard_normal((8, 4))
    clusters = centres[rng.choice(8, most_rows, p=shares / shares.sum())] + rng.standard_normal((most_rows, 4))
    inputs = {"clusters": clusters}
    for source in designs.sets:
        columns = standardised(designs.rows(source)[0])
        inputs[source] = columns[rng.permutation(len(columns))[:most_rows]]
    points = designs.rows("synthetic")[0][:: max(1, N_ROWS // most_rows)]
    return {"synthetic": exact.kernel_spectrum(points, Bernoulli(order=2))} | {
        source: exact.kernel_spectrum(X, Gaussian(median_distance(X))) for source, X in inputs.items()
    }


def needed(spectrum: Spectrum, weights: Floats, scaled_ridge: float, repeats: int, seed: int) -> tuple[float, float]:
    """Return the smallest number of draws with risk ratio at most 1.05, and of distinct columns in them: medians.

    Signal and noise are those of protocol "prior". Draws are prefixes of one sequence, so L only grows.
    """
    rngs = [np.random.default_rng([seed, repeat]) for repeat in range(repeats)]
    draws, columns = np.median([_needed_once(spectrum, weights, scaled_ridge, rng) for rng in rngs], axis=0)
    return float(draws), float(columns)


def _needed_once(spectrum: Spectrum, weights: Floats, scaled_ridge: float, rng: np.random.Generator) -> tuple[int, int]:
    """Double the number until it is enough, then bisect: few sketches are large if few columns are enough."""
    truth = prior(spectrum, scaled_ridge, rng)
    tolerable = TOLERABLE * exact.risk(spectrum, truth.signal, truth.noise_variance, scaled_ridge).total
    sequence = draw_sequence(weights, _MOST_DRAWS * spectrum.n_rows, rng)

    def enough(p: int) -> bool:
        columns = np.unique(sequence[:p])
        risk = columns_risk(spectrum, columns, truth.signal, truth.noise_variance, scaled_ridge)
        return risk.total <= tolerable

    too_few, many = 0, 1
    while many < len(sequence) and not enough(many):
        too_few, many = many, min(2 * many, len(sequence))
    while many > too_few + max(1, _PRECISION * too_few):
        middle = (too_few + many) // 2
        too_few, many = (too_few, middle) if enough(middle) else (middle, many)
    return many, len(np.unique(sequence[:many]))
