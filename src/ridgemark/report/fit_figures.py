"""The figures of the page of a fit: kernel, tuning, ridges searched, predictions, residuals, scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.backends import NUMPY
from ridgemark.kernels import Mixture
from ridgemark.kernels.mixture import sum_of_profiles
from ridgemark.report import charts
from ridgemark.report import page as html
from ridgemark.report.page import Html
from ridgemark.report.plots import Chart, Series, described, draw
from ridgemark.report.quality import COVERAGE, coverage_by_group
from ridgemark.report.writing import printable
from ridgemark.rows import dense
from ridgemark.tuning.coordinates import part_name
from ridgemark.tuning.median import ROWS, median_distance

_POINTS = 200  # points in a plot of scores
_FAR_GROUPS = {0.05: "the farthest 5%", 0.2: "the next 15%", 0.5: "the next 30%", 1.0: "the nearest half"}
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
        "How the kernel falls with the distance between two rows: its radial parts together, and each times its share "
        "of the weights. The star is at the median distance between landmarks.",
    )


def far_figure(rows: Any, what: str = "error (RMS)") -> Html | None:
    """Return the errors of held-out rows by how far they are from the data; None where that is not known."""
    if rows is None or "far_errors" not in rows:
        return None
    shares, errors, counts = map(list, zip(*rows["far_errors"], strict=True))
    names = [f"{_FAR_GROUPS[share]} ({int(count):,} rows)" for share, count in zip(shares, counts, strict=True)]
    points = Series(what, errors, list(range(len(errors))), kind="points")
    return figure(
        Chart(what, "", [points], names=names),
        "far",
        "Held-out rows in groups, by how far they are from the rows of the fit. The first group is as far away as the "
        f"farthest 5% of the rows of the fit are from the others; {rows['far']:.1%} of the held-out rows are in it.",
    )


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
    bars = f" Bars: intervals that should hold {COVERAGE:.0%} of new observations." if "lower" in rows else ""
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
    groups = coverage_by_group(rows)
    if not groups:
        return None
    ends = [(group.share - 2.0 * group.error, min(group.share + 2.0 * group.error, 1.0)) for group in groups]
    low, high = map(list, zip(*ends, strict=True))
    middles, shares = [group.middle for group in groups], [group.share for group in groups]
    series = Series("share inside", middles, shares, low, high, kind="points", colour=2)
    return figure(
        Chart("predicted", "share inside the interval", [series], [(f"asked: {COVERAGE:.0%}", COVERAGE)]),
        "coverage",
        f"The share of {len(rows['observed'][0])} {which} rows inside their interval, in {len(groups)} groups by the "
        "prediction. Bars: two standard errors of the share asked for.",
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
