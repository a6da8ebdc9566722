"""The paper's synthetic design in words, numbers and a section of a page."""

from itertools import pairwise

import numpy as np

from ridgemark.paper.synthetic import N_ROWS, RIDGE, RISK_TOLERANCE, SyntheticScores
from ridgemark.report import page as html
from ridgemark.report.plots import Chart, Series, draw

_EDGES = np.linspace(0.0, 1.0, 11)
_RARE = 0.3  # half-width of the middle interval, where points are rare


def design_section(result: SyntheticScores) -> html.Section:
    """Return the section of a page: the verdict, and the scores against x."""
    chart = Chart(
        "x", "exact leverage score", [Series("rows", result.points.tolist(), result.scores.tolist(), kind="points")]
    )
    return (
        "The paper's synthetic design",
        "design",
        [
            html.paragraph(verdict(result)),
            html.figure(
                draw(chart, "design"),
                f"Exact leverage scores of {N_ROWS} rows against x: small at the dense borders, and up to "
                f"{result.scores.max():.2g} in the middle, where they are rare.",
                f"Exact scores of {N_ROWS} rows that are dense at the borders of the unit interval.",
            ),
        ],
    )


def regions(result: SyntheticScores) -> list[dict[str, float]]:
    """Summarise the scores over ten equal parts of the unit interval."""
    region = np.clip(np.digitize(result.points, _EDGES) - 1, 0, len(_EDGES) - 2)
    rows = []
    for k, (low, high) in enumerate(pairwise(_EDGES)):
        scores = result.scores[region == k]
        rows.append(
            {
                "from": round(float(low), 3),
                "to": round(float(high), 3),
                "rows": len(scores),
                "largest_score": float(scores.max(initial=0.0)),
                "share_of_effective_dimension": float(scores.sum()) / result.effective_dimension,
            }
        )
    return rows


def design_record(result: SyntheticScores, seed: int) -> dict[str, object]:
    """Return the design and its scores in plain numbers, for a machine."""
    return {
        "design": "synthetic",
        "n_rows": N_ROWS,
        "seed": seed,
        "kernel": "Bernoulli(order=2)",
        "ridge": RIDGE * RISK_TOLERANCE,
        "effective_dimension": result.effective_dimension,
        "max_degrees_of_freedom": result.max_degrees_of_freedom,
        "max_degrees_of_freedom_operator": result.max_degrees_of_freedom_operator,
        "coherence": result.coherence,
        "regions": regions(result),
    }


def verdict(result: SyntheticScores) -> str:
    """Return in words which rows carry the effective dimension."""
    middle = np.abs(result.points - 0.5) < _RARE
    share = result.scores[middle].sum() / result.effective_dimension
    columns = round(2 * result.effective_dimension)
    return (
        f"Exact at lambda epsilon = {RIDGE * RISK_TOLERANCE:g}: effective dimension {result.effective_dimension:.1f}, "
        f"maximal degrees of freedom {result.max_degrees_of_freedom:.1f}, coherence {result.coherence:.1f}. "
        f"The {middle.sum()} rows with {0.5 - _RARE:.1f} < x < {0.5 + _RARE:.1f} are {middle.mean():.0%} of the data "
        f"and carry {share:.0%} of the effective dimension: of {columns} columns a uniform draw takes about "
        f"{columns * middle.mean():.0f} there, a draw by the scores about {columns * share:.0f}."
    )
