"""Charts as inline SVG: text stays text, and colours are those of the page in light, dark and print mode."""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from typing import Any, Literal

from ridgemark.errors import require
from ridgemark.rows.places import as_written

SERIES = 8  # colours for curves; similar to the Okabe-Ito palette, which is safe for colour-blind readers
# Placeholder colours: each is replaced by a variable of the page's style.
_TOKENS = {"#010101": "var(--ink)", "#010102": "var(--quiet)", "#010103": "var(--line)"} | {
    f"#0102{number:02x}": f"var(--series-{number})" for number in range(SERIES)
}
_PAGE = next(iter(_TOKENS)), list(_TOKENS)[3:]  # ink and palette
# Those of the page in light mode, for axes of the user's own.
_LIGHT = "black", ["#0b66b0", "#c24d00", "#00795a", "#a8417c", "#8a6a00", "#2b8fc4", "#1c2430", "#7a7f87"]
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", ".")
_MARK = "*"
_FEW = 20  # points up to which they are drawn larger, and each is described
_WIDTH, _HEIGHT = 4.3, 3.3  # inches: about a phone's width, so that text is not shrunk there
_LINE_HEIGHT = 0.2  # inches of a name, and of a line of the legend
_LINES = 3  # of the legend, that fit below a chart of this height
_LONG = 23  # letters of a label; longer ones do not fit beside each other
_MOST_TICKS, _TICK_DIGITS = 7, 12  # numbers along an axis, and their digits
_LETTERS, _LETTERS_BESIDE_NAMES = 45, 25  # of tick labels that fit beside each other
_brief = partial(as_written, digits=3)  # of numbers in descriptions
_NARROW = 3.0  # ratio of the ends of an axis; below it the axis is linear, since powers of ten are too far apart


@dataclass(frozen=True)
class Series:
    """One curve or scatter; `low` and `high` draw a band around the curve, or a bar at each point.

    Bars begin at `low` where it is given, and at zero otherwise.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    kind: Literal["line", "dashed", "points", "mark", "bars"] = "line"
    colour: int | Sequence[int] | None = None  # in the palette, of bars one each; by default that of the series' place
    marked: bool = True  # whether a line has markers; False for lines through very many points


@dataclass(frozen=True)
class Chart:
    """Series on one pair of axes, with horizontal lines at `levels`."""

    x_label: str
    y_label: str
    series: Sequence[Series]
    levels: Sequence[tuple[str, float]] = ()
    log_x: bool = False
    log_y: bool = False
    diagonal: str | None = None  # label of the line y = x
    names: Sequence[str] = ()  # labels of y = 0, 1, ... from the top, in place of numbers; bars then lie along x
    ticks: Sequence[str] = ()  # labels of x = 0, 1, ..., in place of numbers


def draw(chart: Chart, name: str) -> str:
    """Return the chart as an SVG element; the name makes its ids unique on the page.

    Equal charts give equal bytes.
    """
    matplotlib = require_matplotlib()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # the user's settings must not affect the page
        with as_file(files("ridgemark.report") / "plots.mplstyle") as settings:
            matplotlib.rcParams.update(matplotlib.rc_params_from_file(settings, use_default_template=False))
        matplotlib.rcParams["svg.hashsalt"] = name
        figure = matplotlib.figure.Figure(figsize=(_WIDTH, _height(chart)), layout="constrained")
        _fill(figure.add_subplot(), chart, *_PAGE)
        if _has_legend(chart):
            figure.legend(loc="outside lower center", ncols=_legend_shape(chart)[1])
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _inline(text.getvalue(), name)


def draw_on(axes: Any, chart: Chart) -> Any:
    """Draw a chart on axes of matplotlib, new ones for None, and return them."""
    if axes is None:
        require_matplotlib()
        pyplot = require("report", "A plot", "matplotlib.pyplot")
        _, axes = pyplot.subplots(figsize=(_WIDTH, _height(chart)), layout="constrained")
    _fill(axes, chart, *_LIGHT)
    if _has_legend(chart):
        axes.legend()
    return axes


def described(chart: Chart) -> str:
    """Return what a chart shows in words, for those who do not see it."""
    lines = [f"{series.label}: {_points(chart, series)}" for series in chart.series]
    lines += [f"{label}: {_brief(level)}" for label, level in chart.levels]
    axes = "bars" if chart.names else f"{chart.y_label} against {chart.x_label}"
    return f"Chart of {axes}; {'; '.join(lines)}."


def _points(chart: Chart, series: Series) -> str:
    """Return the points of a series, or where there are many the ends of a line, or the extent of a cloud."""
    x, y = series.x, series.y
    if series.kind == "points" and list(y) == list(range(len(chart.names))):
        return ", ".join(f"{name} {_brief(value)}" for name, value in zip(chart.names, x, strict=True))
    if series.kind == "bars":
        sizes = x if series.low is None else [end - start for start, end in zip(series.low, x, strict=True)]
        return ", ".join(f"{name} {_brief(size)}" for name, size in zip(chart.names, sizes, strict=True))
    if chart.names:
        return f"{len(x)} points from {_brief(min(x, default=0.0))} to {_brief(max(x, default=0.0))}"
    if len(y) <= _FEW:
        return ", ".join(f"{_brief(b)} at {_brief(a)}" for a, b in zip(x, y, strict=True))
    if series.kind == "points":
        return f"{len(y)} points from {_brief(min(y))} to {_brief(max(y))}"
    return f"from {_brief(y[0])} at {_brief(x[0])} to {_brief(y[-1])} at {_brief(x[-1])}"


def require_matplotlib() -> Any:
    """Return matplotlib, or raise the error that names its extra."""
    return require("report", "A page with figures", "matplotlib", "matplotlib.figure")


def _fill(axes: Any, chart: Chart, ink: str, palette: Sequence[str]) -> None:
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    if chart.log_x:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    for number, series in enumerate(chart.series):
        _add(axes, series, number, ink, palette, along_x=bool(chart.names))
    for label, level in chart.levels:
        axes.axhline(level, color=ink, linewidth=1.1, linestyle=(0, (4, 2)), label=label)
    if chart.diagonal is not None:
        start = chart.series[0].x[0]  # a point on the diagonal inside the data, so that the axes do not widen
        further = {"xy2": (2.0 * start, 2.0 * start)} if chart.log_x else {"slope": 1.0}
        axes.axline((start, start), **further, color=ink, linewidth=1.1, linestyle=(0, (4, 2)), label=chart.diagonal)
    for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
        low, high = sorted(axis.get_view_interval())
        if axis.get_scale() == "log" and high < _NARROW * low:
            scale("linear")
    _plain_ticks(axes, _LETTERS_BESIDE_NAMES if chart.names else _LETTERS)
    if chart.names:
        axes.set_yticks(range(len(chart.names)), chart.names)
        axes.set_ylim(len(chart.names) - 0.5, -0.5)  # the first on top
        axes.grid(False, axis="y")
    if chart.ticks:
        axes.set_xticks(range(len(chart.ticks)), chart.ticks)


def _has_legend(chart: Chart) -> bool:
    """Return whether names of series are shown: not beside bars, whose names are those of the rows."""
    return not chart.names or len(chart.series) > 1


def _height(chart: Chart) -> float:
    """Return inches, so many that every name and every line of the legend has room."""
    if chart.names:
        legend = _LINE_HEIGHT * _legend_shape(chart)[0] if _has_legend(chart) else 0.0
        lines = max(name.count("\n") for name in chart.names) + 1
        return 0.7 + _LINE_HEIGHT * len(chart.names) * max(lines, 2.0 if _has_legend(chart) else 1.0) + legend
    return _HEIGHT + _LINE_HEIGHT * max(0, _legend_shape(chart)[0] - _LINES)


def _legend_shape(chart: Chart) -> tuple[int, int]:
    """Return the numbers of lines and of columns of the legend."""
    labels = [series.label for series in chart.series] + [label for label, _ in chart.levels]
    labels += [] if chart.diagonal is None else [chart.diagonal]
    columns = 1 if len(labels) == 1 or max(map(len, labels)) > _LONG else 2
    return math.ceil(len(labels) / columns), columns


def _add(axes: Any, series: Series, number: int, ink: str, palette: Sequence[str], along_x: bool) -> None:
    chosen = number if series.colour is None else series.colour
    several = [palette[k % SERIES] for k in (chosen if isinstance(chosen, Sequence) else [chosen])]
    colour, marker = several[0], _MARKERS[number % SERIES]
    x, y, low, high = series.x, series.y, series.low, series.high
    look = {"color": colour, "label": series.label}
    if series.kind == "mark":
        axes.scatter(x, y, s=90, marker=_MARK, edgecolors=ink, linewidths=0.6, zorder=5, **look)
    elif series.kind == "bars":
        starts = [0.0] * len(x) if low is None else low
        axes.use_sticky_edges = low is None  # bars that begin anywhere keep clear of the frame
        sizes = [end - start for start, end in zip(starts, x, strict=True)]
        axes.barh(y, sizes, left=starts, height=0.7, **look | {"color": several})
    elif series.kind == "points":
        few = len(x) <= _FEW
        if low is not None:
            bars, places = (axes.hlines, y) if along_x else (axes.vlines, x)
            bars(places, low, high, color=colour, alpha=0.7 if few else 0.25, linewidth=1.6 if few else 0.8)
        axes.scatter(x, y, s=48 if few else 16, marker=marker, alpha=0.8, linewidths=0, **look)
    else:
        dashes = (0, (5, 2)) if series.kind == "dashed" else "solid"
        drawn = marker if series.marked else None
        axes.plot(x, y, linewidth=1.6, linestyle=dashes, marker=drawn, markersize=4, **look)
        if low is not None:
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def _plain_ticks(axes: Any, room: int) -> None:
    """Write tick labels as people write numbers, along x so many that they fit beside each other in `room` letters."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: as_written(value, _TICK_DIGITS))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(plain)
        if axis.get_scale() == "log":
            low, high = sorted(axis.get_view_interval())
            span = high / low if low > 0 else math.inf
            between = "2357" if span < 10 else "25" if span < 100 else ""
            axis.set_minor_formatter(FuncFormatter(partial(_minor, between)) if between else NullFormatter())
        elif axis is axes.xaxis:
            longest = max((len(plain(value)) for value in axis.get_majorticklocs()), default=1)
            most = max(2, min(_MOST_TICKS, room // (longest + 2)))
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))


def _minor(between: str, value: float, _: object = None) -> str:
    """Label some digits between the decades."""
    leading = f"{value:.0e}"[0]
    return as_written(value, _TICK_DIGITS) if leading in between and f"{value:.3e}"[2:5] == "000" else ""


def _inline(document: str, name: str) -> str:
    """Return the svg element of a document, with the page's colours and unique ids."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for token, variable in _TOKENS.items():
        svg = svg.replace(token, variable)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    # The page sets font and width; the drawing keeps only its aspect ratio.
    svg = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    head, rest = svg.split(">", 1)
    return re.sub(r' (width|height)="[^"]*"', "", head) + ">" + rest.strip()
