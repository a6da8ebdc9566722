"""The figures of the page of a fit: kernel, tuning, importances, ridges searched, predictions, residuals, scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.backends import NUMPY
from ridgemark.errors import ParameterError
from ridgemark.kernels import Mixture
from ridgemark.kernels.mixture import sum_of_profiles
from ridgemark.report import charts
from ridgemark.report import page as html
from ridgemark.report.fit_words import important_columns, n_columns, predictor_name
from ridgemark.report.page import Html
from ridgemark.report.plots import Chart, Series, described, draw
from ridgemark.report.promises import COVERAGE
from ridgemark.report.writing import printable, shortened
from ridgemark.rows import ArrayRows, dense
from ridgemark.rows.places import as_written
from ridgemark.tuning.coordinates import part_name
from ridgemark.tuning.median import ROWS, median_distance

_POINTS = 200  # points in a plot of scores
_GROUPS, _FEWEST = 5, 20  # groups of rows whose coverage is shown, and rows in each
_EFFECTS = 4  # columns whose effects are drawn
_CURVES, _SWARM, _MOST_COLUMNS = 4, 60, 200  # columns with a curve; rows, and columns at most, of contributions
_FADED = 0.02  # a kernel is drawn up to the distance where it falls below this part of its largest value


def figure(chart: Chart, name: str, caption: str) -> Html:
    """Return a chart with its description and its caption."""
    return html.figure(draw(chart, name), described(chart), caption)


def tuning_figure(tuning: Any) -> Html | None:
    """Return the errors that the judging rows found in the course of every descent; None without either."""
    chart = charts.tuning_chart(tuning)
    if chart is None:
        return None
    count = len(chart.series)
    least = min(tuning.descents, key=lambda descent: descent.judged_error)
    several = f"{count} descents lower" if count > 1 else "a descent lowers"
    return figure(
        chart,
        "tuning",
        f"The error on the rows that judge while {several} the leave-one-out error on others, each named by its level, "
        f"its start and its number of rows. The least is {least.judged_error:.3g}.",
    )


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
    return figure(
        Chart("distance in the shared metric", "kernel value / largest", lines, log_x=True),
        "profile",
        "How the radial parts together fall with the distance of two rows, and each of them times its share of the "
        "weights. The star is at the median distance between landmarks.",
    )


def importance_figure(model: Any) -> Html | None:
    """Return the largest importances as bars; None where they are not known or there is one column."""
    chart = charts.importance_chart(model)
    if chart is None:
        return None
    shares = chart.series[0].x
    return figure(
        chart,
        "importance",
        "The importance of a column says how much predictions change when its value is taken from another row. "
        f"Shown: {len(shares)} of {n_columns(model)} columns, {sum(shares):.1%} of the total.",
    )


def curve_figures(model: Any, what: str) -> list[Html]:
    """Return the prediction along the most important columns."""
    figures = []
    for number, (name, _) in enumerate(important_columns(model, _CURVES)):
        columns = list(getattr(model, "feature_names_in_", ()))
        curve = model.curve(columns.index(name) if columns else int(name.removeprefix("column ")))
        caption = (
            f"The {what} along {shortened(printable(name))}, the other columns as in {len(curve.rows)} rows of the "
            "fit: their mean, and between which values four fifths of them lie."
        )
        figures.append(figure(charts.curve_chart(curve, what=what), f"curve-{number}", caption))
    return figures


def contribution_figures(model: Any) -> list[Html]:
    """Return the contributions at rows of the fit, and at the one of median prediction and two at its ends."""
    form, background = model._model.schema, model._model.background
    if background is None or not 1 < n_columns(model) <= _MOST_COLUMNS:
        return []
    rows = background.rows[:_SWARM]
    some = ArrayRows(rows)
    some.encoded = True  # kept rows are features, not the columns of a table
    try:
        contributions = model.contributions(some)
    except ParameterError:  # a kernel without derivatives
        return []
    values = contributions.values.reshape(rows.shape[0], form.n_features, -1)[:, :, 0]
    if not values.any():  # every prediction is the same
        return []
    totals = values.sum(axis=1)
    order, words = np.argsort(totals, kind="stable"), charts.words_of(form, rows)
    kind = "Shapley values" if contributions.kind == "shapley" else "Path integrals"
    swarm = figure(
        charts.swarm_chart(contributions, form, rows),
        "swarm",
        f"What each column contributes to the prediction at {rows.shape[0]} rows of the fit, from the mean over "
        f"others. {kind}; those of a row add up to its prediction.",
    )
    chosen = {"smallest": order[0], "median": order[len(order) // 2], "largest": order[-1]}
    return [swarm] + [
        figure(
            charts.waterfall_chart(contributions, int(row), words[row], what=predictor_name(model)),
            f"waterfall-{which}",
            f"The row of the {which} prediction among these: how its columns lead from the mean, "
            f"{as_written(float(np.atleast_1d(contributions.base)[0]))}, to its prediction, the largest first.",
        )
        for which, row in chosen.items()
        if values[row].any()
    ]


def far_figure(rows: Any) -> Html | None:
    """Return the errors of rows by how far they are from the data; None where that is not known."""
    if rows is None or "far_errors" not in rows:
        return None
    shares, errors, counts = map(list, zip(*rows["far_errors"], strict=True))
    names = [f"{share:.0%}" for share in shares]
    points = Series("error (RMS)", list(range(len(errors))), errors, kind="line")
    return figure(
        Chart("share of rows of the fit that are as far, at most", "error (RMS)", [points], ticks=names),
        "far",
        f"Errors of {sum(map(int, counts)):,} held-out rows by how far they are from the data, the farthest left. "
        f"{rows['far']:.1%} of the rows are farther than 95% of the rows of the fit.",
    )


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
        chart = Chart(name, "change of the prediction per unit", [drawn], [("corrected average", average)])
        caption = (
            f"Effect of {name} against its value, at {len(rows)} rows; the average, corrected for the ridge, is "
            f"{average:.3g}."
        )
        figures.append(figure(chart, f"effect-{j}", caption))
    return figures


def path_figure(
    criterion: str,
    path: Any,
    errors: tuple[str, list[float]],
    training: tuple[str, list[float]],
    chosen: Sequence[int],
    remark: str,
) -> Html:
    """Return errors over the ridges searched, with those of the training rows, each after its name."""
    ridges = path.ridges.tolist()
    lines = [
        Series(criterion, ridges, errors[1]),
        Series("training", ridges, training[1], kind="dashed"),
        Series("chosen", [ridges[k] for k in chosen], [errors[1][k] for k in chosen], kind="mark", colour=3),
    ]
    return figure(
        Chart("lambda", errors[0], lines, log_x=True, log_y=True),
        "path",
        f"The lambdas tried: {criterion} chose {', '.join(f'{ridges[k]:.3g}' for k in chosen)}.{remark} "
        f"The {training[0]} is not an estimate for new rows.",
    )


def loss_path_figure(criterion: str, path: Any, loss: str) -> Html:
    """Return mean losses over the ridges searched."""
    searched, training = (loss, path.loo_loss.tolist()), ("training loss", path.training_loss.tolist())
    return path_figure(criterion, path, searched, training, [path.chosen], "")


def predicted_figure(rows: Any, which: str, target: int, name: str, log: bool = False) -> Html:
    """Return observed against predicted values of one target on some rows, with intervals if available.

    Axes are logarithmic if `log`, where all values are positive.
    """
    observed, predicted = rows["observed"][target], rows["predicted"][target]
    lower, upper = (rows[side][target] if side in rows else None for side in ("lower", "upper"))
    series = Series("observed", predicted, observed, lower, upper, kind="points")
    bars = f" Bars are prediction intervals with target coverage {COVERAGE:.0%}." if "lower" in rows else ""
    log = log and min(map(min, filter(None, (observed, predicted, lower)))) > 0
    chart = Chart("predicted", "observed", [series], diagonal="observed = predicted", log_x=log, log_y=log)
    return figure(chart, f"predicted-{target}", f"{printable(name)}: {len(observed)} {which}.{bars}")


def residual_figure(rows: Any, which: str, target: int, name: str) -> Html:
    """Return observed minus predicted values against predicted ones."""
    observed, predicted = rows["observed"][target], rows["predicted"][target]
    return figure(
        charts.residual_chart(predicted, np.subtract(observed, predicted).tolist()),
        f"residuals-{target}",
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
    shares = np.array([np.mean((lower[g] <= observed[g]) & (observed[g] <= upper[g])) for g in groups])
    spread = np.array([2.0 * np.sqrt(COVERAGE * (1 - COVERAGE) / len(g)) for g in groups])
    middles = [float(np.median(predicted[g])) for g in groups]
    band = (shares - spread).tolist(), np.minimum(shares + spread, 1.0).tolist()
    series = Series("share inside", middles, shares.tolist(), *band, kind="points", colour=2)
    return figure(
        Chart("predicted", "share inside the interval", [series], [(f"asked: {COVERAGE:.0%}", COVERAGE)]),
        "coverage",
        f"Intervals of {len(observed)} {which} rows, in {_GROUPS} groups by the prediction. Bars: two standard errors.",
    )


def scores_figure(model: Any, diagnosis: Any) -> Html | None:
    """Return the scores by which landmarks were drawn, or else the leverage, the largest first; landmarks are marked.

    None where neither is known, or no score is positive.
    """
    scores = getattr(model, "leverage_scores_", None)
    if scores is None and diagnosis is None:
        return None
    what = "leverage" if scores is None else "upper bound of the leverage score"
    values = diagnosis.leverage if scores is None else scores.upper
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
    return figure(
        Chart("rank", what, drawn, log_x=True, log_y=True),
        "scores",
        f"{what[0].upper()}{what[1:]} of {len(values):,} rows, the largest first. Flat: all rows matter equally. "
        "Steep: a few rows dominate the fit, and landmarks should be among them.",
    )
