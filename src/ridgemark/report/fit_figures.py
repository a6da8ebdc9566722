"""The figures of the page of a fit: kernel, tuning, importances, ridges searched, predictions, residuals, scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.backends import NUMPY
from ridgemark.kernels import Mixture
from ridgemark.kernels.mixture import sum_of_profiles
from ridgemark.report import page as html
from ridgemark.report.fit_words import COVERAGE, CRITERIA, important_columns, n_columns, printable
from ridgemark.report.page import Html
from ridgemark.report.plots import Chart, Series, draw
from ridgemark.rows import ArrayRows, dense
from ridgemark.tuning.coordinates import part_name
from ridgemark.tuning.median import ROWS, median_distance

_POINTS = 200  # points in a plot of scores
_GROUPS, _FEWEST = 5, 20  # groups of rows whose coverage is shown, and rows in each
_EFFECTS = 4  # columns whose effects are drawn
_COLUMNS, _LETTERS = 20, 24  # in a plot of importances: columns, and letters of a name
_SHORT = {"shared": "one bandwidth", "per_feature": "per feature", "metric": "matrix"} | {
    "all columns included": "all columns",
    "without the Laplacian": "no Laplacian",
}
_FADED = 0.02  # a kernel is drawn up to the distance where it falls below this part of its largest value


def tuning_figure(tuning: Any) -> Html | None:
    """Return the errors that the judging rows found in the course of every descent; None without either."""
    if not tuning.descents or not tuning.n_judging:
        return None
    lines = [Series(_descent_name(one), *one.looks.T.tolist()) for one in tuning.descents]
    chart = Chart("evaluations", "judged error", lines, log_y=True)
    least = min(tuning.descents, key=lambda one: one.judged_error)
    ends = "; ".join(f"{line.label}, from {line.y[0]:.3g} to {min(line.y):.3g}" for line in lines)
    several = f"{len(lines)} descents lower" if len(lines) > 1 else "a descent lowers"
    return html.figure(
        draw(chart, "tuning"),
        f"Judged error against evaluations, one line for each descent: {ends}.",
        f"The error on the rows that judge while {several} the leave-one-out error on others, each named by its level, "
        f"its start and its number of rows. The least is {least.judged_error:.3g}.",
    )


def _descent_name(one: Any) -> str:
    """Return level, start and number of rows of a descent."""
    return f"{_SHORT[one.level]}: {_SHORT.get(one.start, one.start)}, {one.n_rows:,} rows"


def profile_figure(kernel: Any, landmarks: Any) -> Html | None:
    """Return `k(r) = sum_m v_m phi_m(r^2/l_m^2)/sum_m v_m` of the radial parts; None with fewer than two of them.

    Marked is the median distance between landmarks.
    """
    if not isinstance(kernel, Mixture) or len(kernel.radial) < 2:
        return None
    parts = kernel.parts()[: len(kernel.radial)]
    total, lengths = sum(weight for weight, _ in parts), [float(part.bandwidth) for _, part in parts]
    points = dense(kernel.mapped(landmarks[:ROWS]))
    middle = median_distance(points / kernel.bandwidth if kernel.metric is None else points @ kernel.metric)

    def values(some: Sequence[Any], r: Any) -> list[float]:
        return list((sum_of_profiles(some, np.square(r), NUMPY) / total).tolist())

    r = np.geomspace(min(*lengths, 3.0 * middle) / 10.0, 10.0 * max(*lengths, middle), _POINTS)
    r = r[(np.array(values(parts, r)) > _FADED) | (r < 2.0 * middle)]
    lines = [Series("radial parts together", r.tolist(), values(parts, r), marked=False)]
    for weight, part in parts:
        lines.append(Series(part_name(part), r.tolist(), values([(weight, part)], r), kind="dashed", marked=False))
    here = values(parts, np.array([middle]))
    lines.append(Series("median distance", [middle], here, kind="mark", colour=0))
    return html.figure(
        draw(Chart("distance in the shared metric", "kernel value / largest", lines, log_x=True), "profile"),
        f"The radial parts together against the distance, from {lines[0].y[0]:.3g} at {r[0]:.3g} to "
        f"{lines[0].y[-1]:.3g} at {r[-1]:.3g}; {here[0]:.3g} at {middle:.3g}, the median distance.",
        "How the radial parts together fall with the distance of two rows, and each of them times its share of the "
        "weights. The star is at the median distance between landmarks.",
    )


def importance_figure(model: Any) -> Html | None:
    """Return the largest importances as bars; None where they are not known or there is one column."""
    largest = important_columns(model, _COLUMNS)
    if not largest:
        return None
    names, shares = [printable(name) for name, _ in largest], [share for _, share in largest]
    short = [shortened(one) for one in names]
    bars = Series("importance", shares, range(len(shares)), kind="bars")
    listed = ", ".join(f"{name} {share:.1%}" for name, share in zip(short, shares, strict=True))
    return html.figure(
        draw(Chart("importance", "", [bars], names=short), "importance"),
        f"The importance of {len(names)} of {n_columns(model)} columns, the largest first: {listed}.",
        "The importance of a column is its share of the mean squared gradient of the prediction times the column's "
        f"variance. Shown: {len(names)} of {n_columns(model)} columns, {sum(shares):.1%} of the total.",
    )


def shortened(name: str) -> str:
    """Return a name of at most 24 letters."""
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 11]}...{name[-8:]}"


def effect_figures(model: Any, summary: Any) -> list[Html]:
    """Return the effects of the most important columns at some rows, against the columns' values, on the first target.

    A column of two values has one difference, and no figure.
    """
    rows = np.linspace(0, summary.n_rows - 1, min(summary.n_rows, 2 * _POINTS)).astype(np.intp)
    points = model.calibration_.rows[rows]
    some, table = ArrayRows(points), model._model.schema.table
    some.encoded = True  # kept rows are features, not the columns of a table
    values = np.asarray(model.effects(some)).reshape(len(rows), len(summary.effects), -1)
    points = dense(points)
    features = np.array([effect.columns[0] for effect in summary.effects])
    importances = model.feature_importances_[features if table is None else table.owners[features]]
    order = [j for j in np.argsort(-importances, kind="stable") if not summary.effects[j].before]
    figures = []
    for j in order[:_EFFECTS]:
        name, average = shortened(printable(summary.effects[j].name)), float(summary.average[j, 0])
        drawn = Series("effect at a row", points[:, features[j]].tolist(), values[:, j, 0].tolist(), kind="points")
        text = (
            f"Effect of {name} against its value, at {len(rows)} rows; the average, corrected for the ridge, is "
            f"{average:.3g}."
        )
        chart = Chart(name, "change of the prediction per unit", [drawn], [("corrected average", average)])
        figures.append(html.figure(draw(chart, f"effect-{j}"), text, text))
    return figures


def path_figure(path: Any, spread: list[float | None]) -> Html:
    """Return RMS errors over the ridges searched, in units of the targets' standard deviation."""
    variance = np.array([s**2 if s else 1.0 for s in spread])
    searched = path.gcv if path.loo_error is None else path.loo_error
    errors, training = (np.sqrt((one / variance).mean(axis=1)).tolist() for one in (searched, path.training_error))
    ridges, criterion = path.ridges.tolist(), CRITERIA[path.criterion]
    chosen = sorted(set(path.chosen.tolist()))
    picked, at_chosen = ", ".join(f"{ridges[k]:.3g}" for k in chosen), min(errors[k] for k in chosen)
    others = "" if path.sample.all() else " at other lambdas"
    sampled = f" Errors{others} are those of a sample of the rows." if path.sample.any() else ""
    return html.figure(
        draw_path("RMS error / spread of y", criterion, ridges, errors, training, chosen),
        f"Error against lambda from {min(ridges):.2g} to {max(ridges):.2g}: the {criterion} error is "
        f"{at_chosen:.3g} of the spread at the chosen lambda {picked}.",
        f"The lambdas tried: {criterion} chose {picked}.{sampled} The training error is not an estimate for new rows.",
    )


def draw_path(
    what: str, criterion: str, ridges: list[float], errors: list[float], training: list[float], chosen: Sequence[int]
) -> str:
    """Return the drawing of errors over the ridges searched, with those chosen."""
    lines = [
        Series(criterion, ridges, errors),
        Series("training", ridges, training, kind="dashed"),
        Series("chosen", [ridges[k] for k in chosen], [errors[k] for k in chosen], kind="mark", colour=3),
    ]
    return draw(Chart("lambda", what, lines, log_x=True, log_y=True), "path")


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


def residual_figure(rows: Any, which: str, target: int, name: str) -> Html:
    """Return observed minus predicted values against predicted ones."""
    observed, predicted = rows["observed"][target], rows["predicted"][target]
    residuals = np.subtract(observed, predicted)
    series = Series("residual", predicted, residuals.tolist(), kind="points", colour=1)
    chart = Chart("predicted", "observed - predicted", [series], [("zero", 0.0)])
    return html.figure(
        draw(chart, f"residuals-{target}"),
        f"Residuals of {printable(name)} against predictions for {len(observed)} {which}, from {residuals.min():.3g} "
        f"to {residuals.max():.3g}.",
        "Residuals should scatter around zero everywhere. A curve means that the model misses something; a funnel, "
        "that the noise grows.",
    )


def coverage_figure(rows: Any, which: str) -> Html | None:
    """Return the share of rows inside their interval in groups of the prediction; None for few rows or no intervals."""
    if rows is None or "lower" not in rows or len(rows["observed"][0]) < _GROUPS * _FEWEST:
        return None
    observed, predicted, lower, upper = (
        np.array(rows[name][0]) for name in ("observed", "predicted", "lower", "upper")
    )
    groups = np.array_split(np.argsort(predicted, kind="stable"), _GROUPS)
    shares = [float(np.mean((lower[g] <= observed[g]) & (observed[g] <= upper[g]))) for g in groups]
    middles = [float(np.median(predicted[g])) for g in groups]
    spread = [2.0 * np.sqrt(COVERAGE * (1 - COVERAGE) / len(g)) for g in groups]
    band = (
        [share - s for share, s in zip(shares, spread, strict=True)],
        [min(share + s, 1.0) for share, s in zip(shares, spread, strict=True)],
    )
    series = Series("share inside", middles, shares, *band, kind="points", colour=2)
    chart = Chart("predicted", "share inside the interval", [series], [(f"asked: {COVERAGE:.0%}", COVERAGE)])
    listed = ", ".join(f"{share:.0%}" for share in shares)
    return html.figure(
        draw(chart, "coverage"),
        f"Share of {which} rows inside their interval, in {_GROUPS} groups by the prediction: {listed}.",
        f"Intervals of {len(observed)} {which} rows, in {_GROUPS} groups by the prediction. Bars: two standard errors.",
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
