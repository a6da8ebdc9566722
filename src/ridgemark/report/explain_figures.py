"""The figures of the page of a fit that explain it: importances, curves, contributions and effects of the columns."""

from dataclasses import replace
from typing import Any

import numpy as np

from ridgemark.errors import ParameterError
from ridgemark.explaining import Curve
from ridgemark.report import charts
from ridgemark.report.fit_figures import figure
from ridgemark.report.fit_words import (
    column_names,
    important_columns,
    n_columns,
    predictor_name,
    predicts,
    transform_of,
)
from ridgemark.report.page import Html
from ridgemark.report.plots import SERIES, Chart, Series
from ridgemark.report.writing import printable, shortened
from ridgemark.rows import ArrayRows, dense
from ridgemark.rows.places import as_written

_EFFECTS, _EFFECT_ROWS = 4, 400  # columns whose effects are drawn, and rows at most
_CORRECTED = "corrected average", "average, corrected for the bias of the ridge,"
_CURVES, _SWARM, _MOST_COLUMNS = 4, 60, 200  # columns with a curve; rows, and columns at most, of contributions


def importance_figure(model: Any) -> Html | None:
    """Return the largest importances as bars; None where they are not known or there is one column."""
    chart = charts.importance_chart(model)
    if chart is None:
        return None
    percents = chart.series[0].x
    return figure(
        chart,
        "importance",
        "The importance of a column says how much predictions change when its value is taken from another row. "
        f"Shown: {len(percents)} of {n_columns(model)} columns, with {sum(percents):.1f}% of the total.",
    )


def curve_figures(fit: Any) -> list[Html]:
    """Return the prediction along the most important columns, in units of the target, or as probabilities."""
    figures = []
    for number, (name, _) in enumerate(important_columns(fit.model, _CURVES)):
        try:
            curve = replace(fit.model.curve(column_names(fit.model).index(name)), column=name)
        except ParameterError:  # of a column that only says when a value is missing
            continue
        figures.append(_curve_figure(fit, _in_own_units(fit.model, curve), f"curve-{number}"))
    return figures


def _curve_figure(fit: Any, curve: Curve, anchor: str) -> Html:
    """Return a curve of the first function; of several quantiles the middle one, of several classes the means."""
    n_outputs, kind, name = curve.mean.reshape(len(curve.grid), -1).shape[1], predicts(fit.model), curve.column
    others = f"while the other columns are as in {len(curve.rows)} rows of the fit"
    along = f"when {shortened(printable(name))} is set to a value, {others}"
    labels = [shortened(printable(str(label))) for label in getattr(fit.model, "classes_", ())]
    if kind == "classes" and n_outputs > 2:
        said = f"The mean probability of each class {along}."
        return figure(charts.curves_chart(curve, labels[:SERIES]), anchor, said)
    output = 1 if kind == "classes" else n_outputs // 2 if kind == "losses" else 0
    what = f"probability of {labels[1]}" if kind == "classes" else f"predicted {printable(fit.targets[output])}"
    said = f"The {what} {along}: the mean over these rows, and a band that holds 80% of them."
    return figure(charts.curve_chart(curve, output, shortened(what)), anchor, said)


def _in_own_units(model: Any, curve: Curve) -> Curve:
    """Return a curve of the linear predictor as one of predictions in units of the target, or of probabilities."""
    loss, transform = model._model.loss, transform_of(model)
    if predicts(model) == "classes":
        return curve.mapped(lambda values: np.exp(loss.log_probabilities(values)))
    return curve.mapped(loss.predicted if transform is None else transform.predicted)


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
    kind = "Shapley values" if contributions.kind == "shapley" else "path integrals"
    what, base = _explained(model), as_written(float(np.atleast_1d(contributions.base)[0]))
    swarm = figure(
        charts.swarm_chart(contributions, form, rows),
        "swarm",
        f"What each column adds to the {what}, or takes from it, at {rows.shape[0]} rows of the fit. The contributions "
        f"of a row ({kind}) sum to the difference between its {what} and {base}, the mean over rows of the fit.",
    )
    chosen = {"smallest": order[0], "median": order[len(order) // 2], "largest": order[-1]}
    return [swarm] + [
        figure(
            charts.waterfall_chart(contributions, int(row), words[row], what=shortened(what)),
            f"waterfall-{which}",
            f"Of these rows the one with the {which} {what}. From the mean, {base}, each column moves it up or down; "
            "the largest contribution comes first.",
        )
        for which, row in chosen.items()
        if values[row].any()
    ]


def _explained(model: Any) -> str:
    """Return what the first function predicts, in words."""
    labels = getattr(model, "classes_", None)
    of_class = "" if labels is None else f" of {printable(str(labels[-1 if len(labels) == 2 else 0]))}"
    return predictor_name(model) + of_class


def effect_figures(model: Any, summary: Any) -> list[Html]:
    """Return the effects of the most important columns at some rows, against the columns' values, on the first target.

    A column of two values has one difference, and no figure.
    """
    rows = np.linspace(0, summary.n_rows - 1, min(summary.n_rows, _EFFECT_ROWS)).astype(np.intp)
    points = model.calibration_.rows[rows]
    some, table = ArrayRows(points), model._model.schema.table
    some.encoded = True  # kept rows are features, not the columns of a table
    values = np.asarray(model.effects(some)).reshape(len(rows), len(summary.effects), -1)
    points = dense(points)
    features = np.array([effect.columns[0] for effect in summary.effects])
    importances = model.feature_importances_[features if table is None else table.owners[features]]
    order = [j for j in np.argsort(-importances, kind="stable") if not summary.effects[j].before]
    # After a transform of the target averages are plain ones.
    label, said = ("average", "average") if summary.standard_error is None else _CORRECTED
    figures = []
    for j in order[:_EFFECTS]:
        name, average = shortened(printable(summary.effects[j].name)), float(summary.average[j, 0])
        drawn = Series("effect at a row", points[:, features[j]].tolist(), values[:, j, 0].tolist(), kind="points")
        chart = Chart(name, "change of the prediction per unit", [drawn], [(label, average)])
        caption = f"Effect of {name} against its value, at {len(rows)} rows; the {said} is {as_written(average)}."
        figures.append(figure(chart, f"effect-{j}", caption))
    return figures
