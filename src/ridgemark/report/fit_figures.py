"""The figures on the page of a fit: ridges searched, observed against predicted, scores."""

from typing import Any

import numpy as np

from ridgemark.report import page as html
from ridgemark.report.fit_words import COVERAGE, CRITERIA, printable
from ridgemark.report.page import Html
from ridgemark.report.plots import Chart, Series, draw

_POINTS = 200  # points in a plot of scores


def path_figure(path: Any, spread: list[float | None]) -> Html:
    """Return RMS errors over the ridges searched, in units of the targets' standard deviation."""
    variance = np.array([s**2 if s else 1.0 for s in spread])
    searched = path.gcv if path.loo_error is None else path.loo_error
    errors, training = (np.sqrt((one / variance).mean(axis=1)).tolist() for one in (searched, path.training_error))
    ridges, criterion = path.ridges.tolist(), CRITERIA[path.criterion]
    chosen = sorted(set(path.chosen.tolist()))
    chart = Chart(
        "lambda",
        "RMS error / spread of y",
        [
            Series(criterion, ridges, errors),
            Series("training", ridges, training, kind="dashed"),
            Series("chosen", [ridges[k] for k in chosen], [errors[k] for k in chosen], kind="mark", colour=3),
        ],
        log_x=True,
        log_y=True,
    )
    picked = ", ".join(f"{ridges[k]:.3g}" for k in chosen)
    return html.figure(
        draw(chart, "path"),
        f"Error against lambda from {min(ridges):.2g} to {max(ridges):.2g}: the {criterion} error is "
        f"least, {min(errors):.3g} of the spread, at the chosen lambda {picked}.",
        f"The path of lambdas: {criterion} chose {picked}. The training error is not an estimate for new rows.",
    )


def predicted_figure(rows: Any, which: str, target: int, name: str) -> Html:
    """Return observed against predicted values of one target on some rows, with intervals if available."""
    observed, predicted = rows["observed"][target], rows["predicted"][target]
    lower, upper = (rows[side][target] if side in rows else None for side in ("lower", "upper"))
    series = Series("observed", predicted, observed, lower, upper, kind="points")
    chart = Chart("predicted", "observed", [series], diagonal="observed = predicted")
    bars = f" Bars are prediction intervals with target coverage {COVERAGE:.0%}." if "lower" in rows else ""
    head = f"{len(observed)} {which}"
    return html.figure(
        draw(chart, f"predicted-{target}"),
        f"Observed against predicted {printable(name)} for {head}, scattered around the diagonal.",
        f"{printable(name)}: {head}.{bars}",
    )


def scores_figure(model: Any, diagnosis: Any) -> Html | None:
    """Return the scores by which landmarks were drawn, or else the leverage, the largest first; landmarks are marked.

    None where neither is known, or no score is positive.
    """
    scores = getattr(model, "leverage_scores_", None)
    if scores is None and diagnosis is None:
        return None
    what, values = ("leverage", None) if scores is None else ("upper bound of the leverage score", scores.upper)
    values = diagnosis.leverage if values is None else values
    order = np.argsort(-values, kind="stable")
    values = values[order]
    n_positive = np.count_nonzero(values > 0)  # a logarithmic axis needs positive values
    shown = np.unique(np.geomspace(1, len(values), _POINTS).round().astype(np.intp)) - 1
    shown = shown[shown < n_positive]
    if not len(shown):
        return None
    indices = model.landmark_indices_
    landmarks = np.flatnonzero(np.isin(order[:n_positive], [] if indices is None else indices))
    if len(landmarks) > _POINTS:
        landmarks = landmarks[np.linspace(0, len(landmarks) - 1, _POINTS).astype(np.intp)]
    drawn = [
        Series("rows", (shown + 1).tolist(), values[shown].tolist(), colour=7, marked=False),
        Series("landmarks", (landmarks + 1).tolist(), values[landmarks].tolist(), kind="points", colour=1),
    ]
    head = f"{what} of {len(values):,} rows"
    return html.figure(
        draw(Chart("rank", what, drawn, log_x=True, log_y=True), "scores"),
        f"The {head} in descending order, from {max(drawn[0].y):.3g} to {min(drawn[0].y):.3g}; landmarks are "
        f"marked, the first at rank {min(drawn[1].x, default=0)}.",
        f"{head[0].upper()}{head[1:]}, the largest first. Flat: all rows matter equally. Steep: a few rows "
        "dominate the fit, and landmarks should be among them.",
    )
