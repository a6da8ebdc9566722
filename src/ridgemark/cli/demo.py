"""`ridgemark demo`: the paper's synthetic design, scored exactly, and a simulated robot arm, fitted and certified."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from ridgemark.cli import options as shared
from ridgemark.cli.fit import fit_and_measure, fit_lines
from ridgemark.cli.measures import held_out, summary
from ridgemark.cli.output import check_outputs, print_json, print_lines
from ridgemark.cli.report import write_page
from ridgemark.cli.robot_arm import NOISE, TARGET, arm_rows
from ridgemark.errors import MissingExtraError
from ridgemark.estimators import NystromRidge
from ridgemark.fitted import RunRecord
from ridgemark.paper.synthetic import N_ROWS, SyntheticScores, synthetic_scores
from ridgemark.paper.synthetic_words import design_record, design_section, regions, verdict
from ridgemark.report import page as html
from ridgemark.report.plots import require_matplotlib
from ridgemark.rows import open_rows
from ridgemark.selection import Leverage

PAGE = Path("ridgemark-demo.html")

_FITTED, _HELD_OUT = 5000, 1000  # rows of the arm
_BANDWIDTH, _LANDMARKS = 10.0, 1000  # twice the median distance, as the arm's signal is smooth in all of its inputs


@shared.command("demo", "--seed 3")
@shared.seed_option
@shared.json_option
def command(seed: int, as_json: bool) -> None:
    """Score the paper's synthetic design, and fit a simulated robot arm.

    500 points are dense at the borders of the unit interval and rare in its middle; the exact ridge leverage scores
    show that the few rows in the middle carry most of the effective dimension. Then 5,000 states of a robot arm with 32
    inputs are fitted, certified and tested on 1,000 others. The page ridgemark-demo.html is written into the current
    folder and replaces that of an earlier run; it needs the extra `report`.
    """
    check_outputs([("the page", PAGE)], [], force=True)  # replaces the page of an earlier run
    result = synthetic_scores(seed=seed)
    model, run, signal_error = _fit_arm(seed)
    try:
        require_matplotlib()
    except MissingExtraError as error:
        missing: str | None = str(error)
    else:
        missing = None
        title = "A simulated robot arm, fitted from landmarks"
        write_page(model, run, PAGE, True, title, [_arm_section(signal_error), design_section(result)])
    if as_json:
        arm = summary(model, run) | {"noise": NOISE, "rms_from_signal": signal_error}
        print_json(design_record(result, seed) | {"robot_arm": arm, "page": None if missing else str(PAGE.absolute())})
        return
    _print(result, seed)
    click.echo(f"\nA simulated robot arm, noise {NOISE:g}: {signal_error:.3g} (RMS) from the signal without noise")
    print_lines(fit_lines(model, run))
    click.echo(f"No page was written: {missing}" if missing else str(PAGE.absolute()))


def _fit_arm(seed: int) -> tuple[Any, RunRecord, float]:
    """Return the fitted arm and its record, and how far it is at other rows from the signal without noise."""
    begin = time.perf_counter()
    rng = np.random.default_rng(seed)
    seen, new = arm_rows(_FITTED, rng), arm_rows(_HELD_OUT, rng)
    selection = Leverage(n_pilot=_LANDMARKS)  # a smaller pilot gives poor scores for 32 inputs
    model: Any = NystromRidge(bandwidth=_BANDWIDTH, n_landmarks=_LANDMARKS, selection=selection, random_state=seed)
    run = fit_and_measure(model, open_rows(seen.table(), target=TARGET))
    others = open_rows(new.table(), target=TARGET)
    run = replace(run, held_out=held_out(model, others, "other states"), seconds=time.perf_counter() - begin)
    return model, run, float(np.sqrt(np.mean((model.predict(others) - new.signal) ** 2)))


def _arm_section(signal_error: float) -> html.Section:
    known = html.paragraph(
        "The rows are simulated, so the signal is known: the acceleration of a robot arm's last joint as a function of "
        f"the angles, velocities, torques and loads of its eight joints, measured with noise of {NOISE:g}. Predictions "
        f"at {_HELD_OUT:,} other states are within {signal_error:.3g} (RMS) of the noise-free signal."
    )
    return "What is known here", "known", [known]


def _print(result: SyntheticScores, seed: int) -> None:
    table = Table(title=f"Exact scores of {N_ROWS} rows, Bernoulli kernel, seed {seed}")
    for heading in ("x from", "to", "rows", "largest score", "share of d_eff"):
        table.add_column(heading, justify="right")
    for region in regions(result):
        table.add_row(
            f"{region['from']:.1f}",
            f"{region['to']:.1f}",
            f"{region['rows']:.0f}",
            f"{region['largest_score']:.3f}" if region["rows"] else "-",
            f"{region['share_of_effective_dimension']:.1%}",
        )
    Console().print(table)
    click.echo(verdict(result))
