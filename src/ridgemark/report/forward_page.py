"""The page of predictions of the future: errors and coverage by time."""

from typing import Any

import numpy as np

from ridgemark.report import page as html
from ridgemark.report.fit_figures import figure
from ridgemark.report.page import Answer
from ridgemark.report.plots import Chart, Series
from ridgemark.rows.places import as_written


def forward_page(result: Any) -> str:
    """Return the page of a `Forward`, for the first target where there are several."""
    windows = result.windows
    begin = windows[0].begin
    at, x = [_position(window, begin) for window in windows], _axis(begin)
    rms, expected = [float(window.rms[0]) for window in windows], [window.expected for window in windows]
    lines = [Series("future", at, rms)]
    if all(values is not None for values in expected):
        lines.append(Series("shown by the fit", at, [float(values[0]) for values in expected], kind="dashed"))
    drawn = [
        figure(Chart(x, "RMS error", lines), "errors", "The error on each stretch, and the one that its fit showed.")
    ]
    inside, total = [window.coverage for window in windows], result.coverage
    answers = [
        Answer(
            "How large are errors on the future?", "time", f"RMS {as_written(result.rms[0])}", _sentence(result), None
        )
    ]
    if total is not None:
        series = [Series("inside", at, [float(values[0]) for values in inside if values is not None])]
        chart = Chart(x, "share inside", series, levels=[(f"{result.asked:.0%} asked", result.asked)])
        drawn.append(figure(chart, "coverage", "The share of the rows of each stretch inside their intervals."))
        said = f"Intervals asked to hold {result.asked:.0%} held {total[0]:.1%} of the rows, over all stretches."
        answers.append(Answer("Do intervals hold?", "time", f"{total[0]:.1%} inside", said, None))
    columns = [
        html.Column("from"),
        *html.number_columns("to", "past rows", "rows", "RMS", "shown by the fit", "inside"),
    ]
    rows = [_cells(window) for window in windows]
    table = html.table("Every stretch was predicted from the rows before it alone", columns, rows, stacked=True)
    blocks = [html.answers(answers), html.section("By time", "time", [html.side_by_side(drawn), table])]
    return html.page("Predictions of the future", blocks)


def _sentence(result: Any) -> str:
    n_rows = sum(len(window.rows) for window in result.windows)
    return f"Over {n_rows:,} rows in {len(result.windows)} stretches of time, each predicted from the rows before it."


def _cells(window: Any) -> list[str]:
    expected = "-" if window.expected is None else as_written(window.expected[0])
    inside = "-" if window.coverage is None else f"{window.coverage[0]:.1%}"
    return [
        *(f"{time!s:.19}" for time in (window.begin, window.end)),
        *(f"{window.n_past:,}", f"{len(window.rows):,}", as_written(window.rms[0]), expected, inside),
    ]


def _position(window: Any, begin: Any) -> float:
    """Return the middle of a window; of dates in days from the first."""
    ends = [window.begin, window.end]
    if isinstance(begin, np.datetime64):
        ends = [(end - begin) / np.timedelta64(1, "D") for end in ends]
    return float(np.mean(ends))


def _axis(time: Any) -> str:
    return f"days from {time!s:.10}" if isinstance(time, np.datetime64) else "time"
