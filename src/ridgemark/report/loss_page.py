"""The parts of the page of a fit by a loss, in the words of the loss; `number_page` has the same functions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ridgemark.certificates.record import rounded_up
from ridgemark.report import charts, promises, quality
from ridgemark.report import fit_figures as figures
from ridgemark.report import fit_words as words
from ridgemark.report import page as html
from ridgemark.report.cautions import Caution
from ridgemark.report.first_screen import gained
from ridgemark.report.fit_tables import most_effects, rows_of_run
from ridgemark.report.page import Answer, Column, Html
from ridgemark.report.plots import Chart, Series
from ridgemark.report.promises import Nearness
from ridgemark.report.quality import COVERAGE
from ridgemark.report.writing import printable
from ridgemark.rows.places import as_written

_CLOSE, _NEGLIGIBLE = 0.1, 0.01  # shares of the gain: a good fit, and one that more landmarks would hardly change
_BARS = "Bars: two standard errors."


def left_out_error(model: Any, run: Any) -> None:
    """Return None: certificates by a loss are not compared with errors in units of the target."""


def nearness(fit: Any) -> Nearness:
    """Return how close to exact the fit is proved to be, as a share of what can be gained."""
    bounds = np.atleast_1d(fit.certificate.bound)
    percents = ", ".join(f"{rounded_up(100 * bound)}%" for bound in bounds)
    worst = float(bounds.max())
    short, what = f"loses at most {rounded_up(100 * worst)}%", "share of the achievable gain lost, at most"
    return Nearness(short, "the fit", worst <= _CLOSE, worst <= _NEGLIGIBLE, what, percents)


def good(fit: Any) -> Answer | None:
    """Return how good the fit is, where that is known."""
    if (losses := _left_out(fit)) is None:
        return None
    said, share = fit.model.loss_.words, _mean_share(losses)
    sentence = (
        f"The {said.score}, each row predicted without it: 0% is as good as the best constant, 100% perfect. What is "
        f"predicted: {said.predicts}."
    )
    if (held_out := fit.run.held_out) is not None:
        sentence += f" On {held_out['n_rows']:,} held-out rows the share is {_mean_share(held_out):.1%}."
    tone = quality.tone(share)
    return Answer("How good is it?", "good", f"{max(share, 0.0):.1%} explained", sentence, tone)


def beside(fit: Any) -> Answer | None:
    """Return how much smaller the loss is than that of the best constant."""
    if (losses := _left_out(fit)) is None:
        return None
    sentence = (
        f"Than the best constant, {quality.OTHERS[words.left_out(fit.model)]}: {quality.loss_words(fit.model, losses)}."
    )
    return gained(_mean_share(losses), sentence, "loss")


def held_out_ratio(fit: Any) -> float | None:
    """Return the loss of held-out rows over that of rows left out, the largest over the functions."""
    losses = _left_out(fit)
    pairs = [] if losses is None else zip(fit.run.held_out["loss"], losses["loss"], strict=True)
    return max((held_out / loss for held_out, loss in pairs if loss > 0), default=None)


def cautions(fit: Any) -> tuple[Caution, ...]:
    """Return nothing: what is said of all fits suffices."""
    return ()


def sure(fit: Any) -> Answer | None:
    """Return how sure a prediction is, where that is known."""
    rows = fit.rows
    if rows is None or "lower" not in rows:
        return None
    width = float(np.median(np.subtract(rows["upper"][0], rows["lower"][0])))
    proved = "This is proved." if fit.model.calibration_.guaranteed else "This is an estimate, not a proof."
    sentence = (
        f"The width of a typical interval. Intervals should hold {COVERAGE:.0%} of new observations, and hold "
        f"{rows['coverage']:.1%} of {fit.which}. {proved}"
    )
    return Answer("How sure is a prediction?", "sure", f"about {as_written(width, 3)} wide", sentence, None)


def errors(fit: Any) -> list[Html | None]:
    """Return how well predictions are calibrated, predictions against observations, and the losses."""
    if fit.rows is None:
        return [
            html.note("The errors of this model are not known; give rows: report(path, X, y), or --test."),
            _losses(fit),
        ]
    rows, loss = fit.rows, fit.model.loss_
    middle = [rows["predicted"][len(rows["predicted"]) // 2]]
    exposure = "" if fit.run.exposure is None else " per exposure"
    drawn, name = rows | {"predicted": middle}, fit.targets[len(fit.targets) // 2] + exposure
    if loss.levels:
        calibration = [_shares_figure(fit), _groups_figure(fit)]
    elif rows["calibration"] and len(rows["calibration"][0]) > 1:
        calibration = [_means_figure(fit)]
    else:
        calibration = [figures.residual_figure(drawn, fit.which, 0, name)]
    both = figures.predicted_figure(drawn, fit.which, 0, name, log=loss.positive)
    return [html.side_by_side([*calibration, both]), _losses(fit)]


def intervals(fit: Any) -> list[Html | None]:
    """Return what intervals promise, and how many rows they hold."""
    if shortage := promises.interval_shortage(fit.model):
        return [html.note(f"Intervals are {shortage}.")]
    if fit.rows is None or "lower" not in fit.rows:
        return []
    calibration = fit.model.calibration_
    promise = "their coverage is proved" if calibration.guaranteed else "coverage near what is asked, without a proof"
    return [
        html.side_by_side(
            [
                figures.coverage_figure(fit.rows, "held-out" if fit.run.held_out else "training"),
                figures.far_figure(fit.run.held_out, fit.model.loss_.words.loss),
            ]
        ),
        html.paragraph(
            f"Intervals come from {len(calibration.targets):,} rows, each predicted without itself. What they promise: "
            f"{promise}, since {calibration.reason}."
        ),
    ]


def effects(fit: Any) -> list[Html | None]:
    """Return average effects on the prediction as a table."""
    return [most_effects(fit, "on the prediction")]


def rows(fit: Any) -> list[Html | None]:
    """Return the most influential rows."""
    return rows_of_run(fit, "predictions and losses")


def path_figure(fit: Any, path: Any) -> Html:
    """Return mean losses over the ridges searched; of equal targets, which every ridge predicts, a note."""
    if (losses := _left_out(fit)) is not None and not losses["null_loss"].max() > 0:
        return html.note("All targets are equal, so that every lambda predicts them.")
    return figures.loss_path_figure(words.criterion(fit.model), path, fit.model.loss_.words.loss)


def _left_out(fit: Any) -> Mapping[str, Any] | None:
    """Return losses of rows predicted without them; None where no rows are known."""
    losses = getattr(fit.model, "calibration_", None)
    return None if losses is None else {name: getattr(losses, name) for name in ("loss", "null_loss", "below")}


def _mean_share(losses: Mapping[str, Any]) -> float:
    shares = quality.shares_explained(losses["loss"], losses["null_loss"])
    return float(np.mean([share or 0.0 for share in shares]))


def _losses(fit: Any) -> Html | None:
    """Return the loss of every function, left out and held out, beside that of the best constant."""
    said, levels = fit.model.loss_.words, fit.model.loss_.levels
    columns: list[tuple[str, Sequence[float | None], Callable[[float], str]]] = []
    share = "{:.1%}".format
    for which, losses in (("left out", _left_out(fit)), ("held out", fit.run.held_out)):
        if losses is not None:
            columns += [
                (f"{said.loss}, {which}", losses["loss"], as_written),
                ("of the best constant", losses["null_loss"], as_written),
                ("explained", quality.shares_explained(losses["loss"], losses["null_loss"]), share),
            ]
            columns += [("below", losses["below"], share)] if levels else []
    if not columns:
        return None
    cells = [["-" if value is None else form(value) for value in values] for _, values, form in columns]
    table = [list(row) for row in zip(map(printable, fit.targets), *cells, strict=True)]
    held_out = fit.run.held_out
    beside = "" if held_out is None else f"; held out: {held_out['n_rows']:,} rows{quality.repeated_words(held_out)}"
    headings = html.number_columns(*(heading for heading, _, _ in columns))
    return html.table(f"Mean losses{beside}", [Column("target"), *headings], table, stacked=True)


def _means_figure(fit: Any) -> Html:
    """Return the mean observation against the mean prediction, in groups of rows."""
    chart = charts.calibration_chart(fit.model, fit.rows)
    return figures.figure(
        chart,
        "calibration",
        f"{fit.rows['n_rows']:,} {fit.which}, in {len(chart.series[0].x)} groups by the prediction. On the diagonal, "
        f"predictions are what is observed on average. {_BARS}",
    )


def _shares_figure(fit: Any) -> Html | None:
    """Return the share of the targets below each quantile against its level; None for one level."""
    levels, below = fit.model.loss_.levels, np.array(fit.rows["below"])
    if len(levels) < 2:
        return None
    spread = 2.0 * np.array(fit.rows["below_error"])
    low, high = (np.clip(below + side * spread, 0.0, 1.0).tolist() for side in (-1.0, 1.0))
    series = Series("observed", levels, below.tolist(), low, high, kind="points")
    return figures.figure(
        Chart("level", "share below", [series], diagonal="calibrated"),
        "shares",
        f"The share of the targets below each quantile: {fit.rows['n_rows']:,} {fit.which}. On the diagonal, as many "
        f"lie below as the level says. {_BARS}",
    )


def _groups_figure(fit: Any) -> Html:
    """Return the share of the targets below each quantile in groups of rows."""
    levels = fit.model.loss_.levels
    chart = charts.calibration_chart(fit.model, fit.rows)
    which = "prediction" if len(levels) == 1 else f"{levels[len(levels) // 2]:g} quantile"
    return figures.figure(
        chart,
        "calibration",
        f"{fit.rows['n_rows']:,} {fit.which}, in {len(chart.series[0].x)} groups by the {which}: in each, as many "
        f"should lie below as the level says. {_BARS}",
    )
