"""Table 1: dimensions from their definitions, and risk ratios at the paper's p, with columns drawn as in the paper."""

from dataclasses import dataclass

import numpy as np

from ridgemark import exact
from ridgemark.exact import Risk
from ridgemark.paper.designs import Design, Designs
from ridgemark.paper.printed import PrintedRow
from ridgemark.paper.protocols import Truth, from_inputs, from_targets
from ridgemark.paper.sketching import approximation
from ridgemark.paper.synthetic import RISK_TOLERANCE
from ridgemark.sampling import draw_with_replacement


@dataclass(frozen=True)
class Ratio:
    """`risk(f_L)/risk(f_K)` over repeated draws of the columns, for one protocol.

    Attributes
    ----------
    protocol : str
        Name of the signal and noise.
    mean, standard_deviation, lowest, highest : float
        Over repeats.
    noise_only, noise_free : float
        The mean ratios of the variances alone and of the squared biases alone; for these signals, any other noise
        level gives a ratio between them.
    """

    protocol: str
    mean: float
    standard_deviation: float
    lowest: float
    highest: float
    noise_only: float
    noise_free: float


@dataclass(frozen=True)
class Row:
    """One row of Table 1, measured; numbers are None if data are missing, which `missing` names.

    `effective_dimension` and both `max_degrees_of_freedom` are taken at lambda epsilon, epsilon = 0.01;
    `plain_effective_dimension` at lambda.
    """

    printed: PrintedRow
    source: str | None
    n_rows: int | None = None
    effective_dimension: float | None = None
    max_degrees_of_freedom: float | None = None
    max_degrees_of_freedom_operator: float | None = None
    plain_effective_dimension: float | None = None
    n_draws: int | None = None
    mean_columns: float | None = None  # distinct columns among the draws
    ratios: tuple[Ratio, ...] = ()
    missing: str = ""


def measure_row(designs: Designs, printed: PrintedRow, repeats: int) -> Row:
    """Measure one row: dimensions, and the risk ratio for every protocol that the data allow."""
    design = designs.open(printed)
    if design is None:
        return Row(printed, None, missing=designs.missing(printed))
    spectrum, n = design.spectrum, design.n_rows
    scaled_ridge = n * printed.ridge
    at = RISK_TOLERANCE * scaled_ridge
    effective_dimension = exact.effective_dimension(spectrum, at)
    n_draws = printed.n_draws if printed.in_paper else round(printed.columns_per_dimension * effective_dimension)
    ratios, mean_columns = _ratios(design, scaled_ridge, n_draws, repeats, designs.seed)
    return Row(
        printed,
        design.source,
        n,
        effective_dimension,
        exact.max_degrees_of_freedom(spectrum, at),
        exact.max_degrees_of_freedom(spectrum, at, form="operator"),
        exact.effective_dimension(spectrum, scaled_ridge),
        n_draws,
        mean_columns,
        ratios,
        designs.missing(printed),
    )


def _ratios(
    design: Design, scaled_ridge: float, n_draws: int, repeats: int, seed: int
) -> tuple[tuple[Ratio, ...], float]:
    """Draw `n_draws` columns with replacement by the exact scores at lambda epsilon, `repeats` times."""
    spectrum = design.spectrum
    scores = exact.leverage_scores(spectrum, RISK_TOLERANCE * scaled_ridge)
    fixed = {} if design.targets is None else from_targets(spectrum, design.targets, scaled_ridge)
    risks: dict[str, list[tuple[Risk, Risk]]] = {}
    columns = []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        draw = draw_with_replacement(scores, n_draws, rng)
        columns.append(len(draw.indices))
        sketched = approximation(spectrum, draw)
        truths: dict[str, Truth] = fixed | from_inputs(spectrum, scaled_ridge, rng)
        for name, truth in truths.items():
            pair = [exact.risk(s, truth.signal, truth.noise_variance, scaled_ridge) for s in (sketched, spectrum)]
            risks.setdefault(name, []).append((pair[0], pair[1]))
    return tuple(_summary(name, pairs) for name, pairs in risks.items()), float(np.mean(columns))


def _summary(protocol: str, pairs: list[tuple[Risk, Risk]]) -> Ratio:
    ratios = np.array([ours.total / full.total for ours, full in pairs])
    return Ratio(
        protocol,
        float(ratios.mean()),
        float(ratios.std()),
        float(ratios.min()),
        float(ratios.max()),
        float(np.mean([ours.variance / full.variance for ours, full in pairs])),
        float(np.mean([ours.squared_bias / full.squared_bias for ours, full in pairs])),
    )
