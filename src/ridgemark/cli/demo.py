"""`ridgemark demo`: the paper's synthetic design, scored exactly."""

from __future__ import annotations

import json

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ridgemark.paper.synthetic import N_ROWS, RIDGE, RISK_TOLERANCE, SEED, SyntheticScores, synthetic_scores

_EDGES = np.linspace(0.0, 1.0, 11)
_RARE = 0.3  # half the width of the middle where points are rare


@click.command(epilog="Example: ridgemark demo --seed 3")
@click.option("--seed", default=SEED, show_default=True, type=click.IntRange(min=0), help="Seed of the points.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def demo(seed: int, as_json: bool) -> None:
    """Score the rows of the paper's synthetic design.

    500 points crowd at the borders of the unit interval and avoid its middle; the exact ridge leverage scores
    show that the few rows in the middle carry most of the difficulty.
    """
    result = synthetic_scores(seed=seed)
    if as_json:
        click.echo(json.dumps(_record(result, seed)))
    else:
        _print(result, seed)


def _regions(result: SyntheticScores) -> list[dict[str, float]]:
    """Summarise the scores over ten equal parts of the unit interval."""
    region = np.clip(np.digitize(result.points, _EDGES) - 1, 0, len(_EDGES) - 2)
    rows = []
    for k in range(len(_EDGES) - 1):
        scores = result.scores[region == k]
        rows.append(
            {
                "from": round(float(_EDGES[k]), 3),
                "to": round(float(_EDGES[k + 1]), 3),
                "rows": len(scores),
                "largest_score": float(scores.max(initial=0.0)),
                "share_of_effective_dimension": float(scores.sum()) / result.effective_dimension,
            }
        )
    return rows


def _record(result: SyntheticScores, seed: int) -> dict[str, object]:
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
        "regions": _regions(result),
    }


def _print(result: SyntheticScores, seed: int) -> None:
    table = Table(title=f"Exact scores of {N_ROWS} rows, Bernoulli kernel, seed {seed}")
    for heading in ("x from", "to", "rows", "largest score", "share of d_eff"):
        table.add_column(heading, justify="right")
    for region in _regions(result):
        table.add_row(
            f"{region['from']:.1f}",
            f"{region['to']:.1f}",
            f"{region['rows']:.0f}",
            f"{region['largest_score']:.3f}" if region["rows"] else "-",
            f"{region['share_of_effective_dimension']:.1%}",
        )
    console = Console()
    console.print(table)
    middle = np.abs(result.points - 0.5) < _RARE
    share = result.scores[middle].sum() / result.effective_dimension
    columns = round(2 * result.effective_dimension)
    console.print(
        f"Exact at lambda epsilon = {RIDGE * RISK_TOLERANCE:g}: effective dimension {result.effective_dimension:.1f}, "
        f"maximal degrees of freedom {result.max_degrees_of_freedom:.1f}, coherence {result.coherence:.1f}.",
        f"The {middle.sum()} rows with {0.5 - _RARE:.1f} < x < {0.5 + _RARE:.1f} are {middle.mean():.0%} of the data "
        f"and carry {share:.0%} of the effective dimension: of {columns} columns a uniform draw takes about "
        f"{columns * middle.mean():.0f} there, a draw by the scores about {columns * share:.0f}.",
        sep="\n",
        highlight=False,
    )
