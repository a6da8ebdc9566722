"""Charts that pages and `plot` share: importances, curves, contributions, residuals, the course of tuning."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.explaining import Contributions, Curve, values_in_words
from ridgemark.report.fit_words import important_columns
from ridgemark.report.plots import Chart, Series
from ridgemark.report.writing import printable, shortened
from ridgemark.rows import dense
from ridgemark.rows.places import as_written

_TOP, _BARS, _LINES = 10, 20, 20  # columns of a swarm and a waterfall, of importances, and rows of a curve
_THIRDS = "low value", "middle value", "high value", "text, date or missing"
_GAIN, _LOSS = 0, 1  # colours of a waterfall
_SHORT = {"shared": "one bandwidth", "per_feature": "per feature", "metric": "matrix"} | {
    "all columns included": "all columns",
    "without the Laplacian": "no Laplacian",
}


def importance_chart(model: Any) -> Chart | None:
    """Return the largest importances as bars; None where they are not known or there is one column."""
    largest = important_columns(model, _BARS)
    if not largest:
        return None
    percents = [100.0 * share for _, share in largest]
    bars = Series("importance", percents, range(len(percents)), kind="bars")
    return Chart("importance (%)", "", [bars], names=[_name(name) for name, _ in largest])


def curve_chart(curve: Curve, output: int = 0, what: str = "prediction") -> Chart:
    """Return a curve with its band, and the curves of some rows; of a category, points with bars."""
    mean, low, high = (values.reshape(len(curve.grid), -1)[:, output] for values in (curve.mean, curve.low, curve.high))
    rows = curve.rows.reshape(*curve.rows.shape[:2], -1)[:_LINES, :, output]
    if curve.is_category:
        order = np.argsort(-mean, kind="stable")
        ends = {"low": low[order].tolist(), "high": high[order].tolist()}
        points = Series("mean, and 80% of rows", mean[order].tolist(), list(range(len(mean))), **ends, kind="points")
        return Chart(what, _name(curve.column), [points], names=[_name(str(curve.grid[k])) for k in order])
    x, label = _numbers(curve)
    ends = {"low": low.tolist(), "high": high.tolist()}
    lines = [Series("mean, and 80% of rows", x, mean.tolist(), **ends, marked=False)]
    spread = np.argsort(rows.mean(axis=1))[np.linspace(0, len(rows) - 1, 3).round().astype(np.intp)]
    lines += [
        Series(name, x, rows[k].tolist(), kind="dashed", marked=False)
        for name, k in zip(("a low row", "a middle row", "a high row"), spread, strict=True)
    ]
    return Chart(label, what, lines)


def curves_chart(curve: Curve, labels: Sequence[str]) -> Chart:
    """Return the means of several functions along a column, one for each label."""
    named = list(zip(labels, curve.mean.T.tolist(), strict=False))
    if curve.is_category:
        places = list(range(len(curve.grid)))
        points = [Series(label, mean, places, kind="points") for label, mean in named]
        return Chart("mean probability", _name(curve.column), points, names=[_name(str(level)) for level in curve.grid])
    x, name = _numbers(curve)
    return Chart(name, "mean probability", [Series(label, x, mean, marked=False) for label, mean in named])


def waterfall_chart(
    contributions: Contributions, row: int, words: Sequence[str], output: int = 0, what: str = "prediction"
) -> Chart:
    """Return how the contributions lead from the mean over the background to the prediction for a row."""
    values = contributions.values.reshape(*contributions.values.shape[:2], -1)[row, :, output]
    base = float(np.atleast_1d(contributions.base)[output])
    order = [j for j in np.argsort(-abs(values), kind="stable") if values[j]]
    shown, rest = order[:_TOP], order[_TOP:]
    steps = [
        (
            _name(contributions.column_names[j]) + (f" = {words[j]}" if words[j] else ""),
            values[j],
        )
        for j in shown
    ]
    steps += [(f"{len(rest)} other columns", values[rest].sum())] if rest else []
    ends = base + np.cumsum([step for _, step in steps])
    starts = [base, *ends[:-1].tolist()] if steps else []
    colours = [_GAIN if step > 0 else _LOSS for _, step in steps]
    bars = Series("contribution", ends.tolist(), range(len(steps)), starts, starts, kind="bars", colour=colours)
    names = [f"{name}\n{as_written(step, 3, '+')}" for name, step in steps]
    return Chart(what, "", [bars], names=names)


def swarm_chart(contributions: Contributions, form: Any, features: Any, output: int = 0) -> Chart:
    """Return the contributions of the largest columns at some rows, coloured by the value of the column."""
    values = contributions.values.reshape(*contributions.values.shape[:2], -1)[:, :, output]
    largest = np.argsort(-abs(values).mean(axis=0), kind="stable")[:_TOP]
    order = [int(j) for j in largest if values[:, j].any()]
    thirds = _values_by_third(form, features, order)
    points: dict[int, tuple[list[float], list[float]]] = {}
    for place, j in enumerate(order):
        ranks = np.argsort(np.argsort(values[:, j], kind="stable"))
        jitter = 0.6 * (ranks * 0.6180339887498949 % 1.0) - 0.3
        for third in range(len(_THIRDS)):
            chosen = thirds[place] == third
            x, y = points.setdefault(third, ([], []))
            x += values[chosen, j].tolist()
            y += (place + jitter[chosen]).tolist()
    colours = (5, 7, 1, 2)
    series = [
        Series(_THIRDS[third], x, y, kind="points", colour=colours[third])
        for third, (x, y) in sorted(points.items())
        if x
    ]
    return Chart("contribution", "", series, names=[_name(contributions.column_names[j]) for j in order])


def residual_chart(predicted: Sequence[float], residuals: Sequence[float]) -> Chart:
    """Return residuals against predictions."""
    series = Series("residual", predicted, residuals, kind="points", colour=1)
    return Chart("predicted", "observed - predicted", [series], [("zero", 0.0)])


def tuning_chart(tuning: Any) -> Chart | None:
    """Return the errors that the judging rows contributions in the course of every descent; None without either."""
    if not tuning.descents or not tuning.n_judging:
        return None
    lines = [Series(_descent_name(descent), *descent.looks.T.tolist()) for descent in tuning.descents]
    return Chart("evaluations", "judged error", lines, log_y=True)


def _descent_name(descent: Any) -> str:
    """Return level, start and number of rows of a descent."""
    return f"{_SHORT[descent.level]}: {_SHORT.get(descent.start, descent.start)}, {descent.n_rows:,} rows"


def _values_by_third(form: Any, features: Any, columns: Sequence[int]) -> list[Any]:
    """Return for each column in which third of its values a row is; 3 for columns that are not one number."""
    rows, owners = dense(features), form.owners
    thirds = []
    for j in columns:
        own = np.flatnonzero(owners == j)
        is_number = form.table is None or form.table.fields[j].kind == "number"
        ranks = np.searchsorted(np.sort(rows[:, own[0]]), rows[:, own[0]], side="right") / len(rows)
        gaps = rows[:, own[-1]] if len(own) > 1 else np.zeros(len(rows))
        thirds.append(
            np.where(gaps > 0.0, 3, np.digitize(ranks, [1 / 3, 2 / 3])) if is_number else np.full(len(rows), 3)
        )
    return thirds


def words_of(form: Any, features: Any) -> list[list[str]]:
    """Return the values of the user's columns in words, as they may stand on a page."""
    return [[printable(word) for word in row] for row in values_in_words(form, features)]


def _numbers(curve: Curve) -> tuple[list[float], str]:
    """Return the values of a grid of numbers, or of dates as years, and the label of their axis."""
    if curve.grid.dtype.kind != "M":
        return curve.grid.astype(float).tolist(), _name(curve.column)
    days = curve.grid.astype("datetime64[D]").astype(float)
    return (1970.0 + days / 365.2425).tolist(), f"{_name(curve.column)} (year)"


def _name(name: str) -> str:
    return shortened(printable(name))
