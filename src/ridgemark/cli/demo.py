"""`ridgemark demo`: a simulated robot arm, fitted, certified and compared with simpler fits."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich.table import Table

from ridgemark.certificates.record import rounded_up
from ridgemark.cli import options as shared
from ridgemark.cli.measures import fit_and_measure, held_out, kind_of, summary
from ridgemark.cli.output import check_outputs, print_json, print_lines, print_table
from ridgemark.cli.report import write_page
from ridgemark.cli.robot_arm import NOISE, TARGET, ArmRows, arm_rows
from ridgemark.errors import MissingExtraError
from ridgemark.estimators import NystromRidge
from ridgemark.report import page as html
from ridgemark.report.plots import require_matplotlib
from ridgemark.rows import open_rows
from ridgemark.tuning import Tuner

PAGE = Path("ridgemark-demo.html")

_FITTED, _HELD_OUT = 3000, 2000  # rows of the arm
_LANDMARKS = 400
# A small part of the usual work; the arm moves smoothly, so smooth kernels suffice.
_TUNER = Tuner(rows=1500, judging_rows=500, landmarks=150, kernels=("gaussian", "linear"))
_CAPTION = f"Errors (RMS) from the signal without noise at {_HELD_OUT:,} new states"
_HEADINGS = ("error on new states", "on rare states", "distance to exact, at most")


class _Compared(NamedTuple):
    """A fit of the arm: its errors at new states and at rare ones, and how far it is from exact at most."""

    name: str
    error: float
    rare_error: float
    bound: float


@shared.command("demo", "--seed 3")
@shared.seed_option
@shared.json_option
def command(seed: int, as_json: bool) -> None:
    """Fit a simulated robot arm, and compare the fit with simpler ones.

    3,000 states of a robot arm with 32 inputs, of which five have an effect, are fitted, certified and tested on 2,000
    others. The fit is compared with a kernel of one bandwidth, and with landmarks drawn uniformly. The page
    ridgemark-demo.html is written into the current folder and replaces that of an earlier run; it needs the extra
    `report`.
    """
    check_outputs([("the page", PAGE)], [], force=True)  # replaces the page of an earlier run
    begin, rng = time.perf_counter(), np.random.default_rng(seed)
    seen, new = arm_rows(_FITTED, rng), arm_rows(_HELD_OUT, rng)
    model: Any = NystromRidge(bandwidth=_TUNER, n_landmarks=_LANDMARKS, random_state=seed)
    run = fit_and_measure(model, open_rows(seen.table(), target=TARGET))
    others = held_out(model, open_rows(new.table(), target=TARGET), Path("other states"))
    run = replace(run, held_out=others, seconds=time.perf_counter() - begin)
    compared = _compare(model, seen, new, seed)
    try:
        require_matplotlib()
        title = "A simulated robot arm, fitted from landmarks"
        write_page(model, run, PAGE, True, title=title, first=[_section(compared)])
        page, said = str(PAGE.absolute()), str(PAGE.absolute())
    except MissingExtraError as error:
        page, said = None, f"No page was written: {error}"
    if as_json:
        errors = {fit.name: {"error": fit.error, "bound": fit.bound} for fit in compared}
        print_json({"robot_arm": summary(model, run) | {"noise": NOISE, "compared": errors}, "page": page})
        return
    click.echo(f"A simulated robot arm: {_FITTED:,} states, 32 inputs, noise {NOISE:g}")
    print_lines(kind_of(model).lines(model, run))
    table = Table("fit", title=_CAPTION)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for row in _cells(compared):
        table.add_row(*row)
    print_table(table)
    click.echo(said)


def _compare(model: Any, seen: ArmRows, new: ArmRows, seed: int) -> list[_Compared]:
    """Return the errors of the fit, of one with one bandwidth, and of one with landmarks drawn uniformly."""
    rows, others = open_rows(seen.table(), target=TARGET), open_rows(new.table(), target=TARGET)
    how = {"n_landmarks": _LANDMARKS, "random_state": seed}
    tuned = {"kernel": model.kernel_, "ridge": model.ridge_}
    models: dict[str, Any] = {
        "one bandwidth": NystromRidge(bandwidth="median", **how).fit(rows),
        "uniform landmarks": NystromRidge(selection="uniform", **tuned, **how).fit(rows),
        "tuned, landmarks chosen": model,
    }
    compared = []
    for name, fitted in models.items():
        squares = (np.asarray(fitted.predict(others)) - new.signal) ** 2
        error, rare = (float(np.sqrt(part.mean())) for part in (squares, squares[new.rare]))
        compared.append(_Compared(name, error, rare, float(np.max(fitted.certify(rows).bound))))
    return compared


def _cells(compared: list[_Compared]) -> list[list[str]]:
    """Return the lines of a table."""
    return [[fit.name, f"{fit.error:.3g}", f"{fit.rare_error:.3g}", rounded_up(fit.bound)] for fit in compared]


def _section(compared: list[_Compared]) -> html.Section:
    """Return the section of the page that compares the fits."""
    plain, uniform, ours = compared
    text = (
        "The rows are simulated, so the signal is known: the acceleration of the last joint of a robot arm, measured "
        f"with noise of {NOISE:g}. Five of the 32 inputs have an effect. In 4% of the states the arm is outside its "
        f"usual range. The error at new states is {plain.error / ours.error:.1f} times smaller than with one bandwidth "
        f"for all columns, and the proved distance to exact {uniform.bound / ours.bound:.1f} times smaller than with "
        "landmarks drawn uniformly."
    )
    columns = [html.Column("fit"), *html.number_columns(*_HEADINGS)]
    table = html.table(_CAPTION, columns, _cells(compared), stacked=True)
    return "Compared with simpler fits", "compared", [html.paragraph(text), table]
