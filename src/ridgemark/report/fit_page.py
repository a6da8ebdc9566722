"""The page of a fit: what was fitted, its errors, its distance to exact, and the influential rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ridgemark.certificates.record import rounded_up, spent
from ridgemark.report import page as html
from ridgemark.report.page import Column, Html
from ridgemark.report.plots import Chart, Series, draw

_MOST_NAMES = 24
_MOST_TARGETS = 4  # targets that get their own figure
_INPUTS = {  # inputs of a certificate and their labels; inputs shown elsewhere are left out
    "scaled_ridge": "n lambda",
    "target_rms": "spread of the target (sd)",
    "rms_left": "training error (RMS)",
    "unmeasured": "distance known before measuring, at most",
    "energy_bound": "distance by the energy, at most",
    "energy_estimate": "the same, estimated from the rows sampled",
    "gap_bound": "distance by the duality gap, at most",
    "duality_gap": "duality gap",
    "rounding": "allowance for rounding",
    "sampled_rows": "rows sampled",
    "trace_residual": "trace of K - L",
    "delta": "largest eigenvalue of K - L, at most",
    "delta_over_scaled_ridge": "the same over n lambda",
    "lanczos_steps": "Lanczos steps",
    "ritz_value": "largest Ritz value",
    "failure_probability": "failure probability",
}
_CLOSE = 0.1  # fraction of the leave-one-out error; a smaller distance to exact does not matter


@dataclass(frozen=True)
class TargetErrors:
    """Errors of one target; None for what was not measured."""

    name: str
    spread: float | None  # standard deviation of the target
    loo: float | None  # root mean squares, in units of the target
    held_out: float | None = None
    coverage: float | None = None  # fraction of held-out rows inside their intervals


@dataclass(frozen=True)
class PathCurves:
    """RMS errors over the ridges searched, in units of the targets' standard deviation."""

    ridges: Sequence[float]
    criterion: str  # "leave-one-out" or "generalised cross-validation"
    error: Sequence[float]
    training: Sequence[float]
    chosen: Sequence[int]  # positions in `ridges`


@dataclass(frozen=True)
class SortedScores:
    """Scores of some rows by rank, the largest first, and the ranks of the landmarks among all rows."""

    what: str
    n_rows: int
    ranks: Sequence[int]
    scores: Sequence[float]
    landmark_ranks: Sequence[int]
    landmark_scores: Sequence[float]


@dataclass(frozen=True)
class Predictions:
    """Observed and predicted values of one target on some rows, with intervals if available."""

    observed: Sequence[float]
    predicted: Sequence[float]
    lower: Sequence[float] | None
    upper: Sequence[float] | None


@dataclass(frozen=True)
class FitRecord:
    """Everything the page of a fit shows, as plain numbers and text."""

    title: str
    facts: Sequence[tuple[str, str]]
    feature_names: Sequence[str] | None
    n_rows: int | None
    n_landmarks: int
    effective_dimension: tuple[float, float]
    errors: Sequence[TargetErrors]
    held_out_rows: int | None
    certificate: Mapping[str, Any] | None
    path: PathCurves | None
    scores: SortedScores | None
    verdict: str | None  # whether sampling by scores pays
    influential: Sequence[Mapping[str, Any]]
    predictions: Sequence[Predictions]  # one for each target
    predicted_rows: str  # description of these rows
    interval_coverage: float
    interval_promise: str | None
    costs: Sequence[tuple[str, str]]


def fit_page(record: FitRecord, further: Sequence[html.Section] = ()) -> str:
    """Return the page as one HTML document, with further sections at its end."""
    parts: list[html.Section] = [
        ("What was fitted", "fitted", _fitted(record)),
        ("How good it is", "good", _good(record)),
        ("How far from exact", "exact", _exact(record)),
        ("Which rows matter", "rows", _rows(record)),
        ("Time and memory", "cost", [_pairs("Cost of the fit", record.costs)]),
        *further,
    ]
    return html.page(
        printable(record.title),
        [
            _numbers(record),
            _glance(record),
            html.contents([(title, anchor) for title, anchor, _ in parts]),
            *(html.section(title, anchor, blocks) for title, anchor, blocks in parts),
        ],
    )


def printable(name: str) -> str:
    """Return text from a file without invisible characters or those that change the text direction."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in name)


def _numbers(record: FitRecord) -> Html:
    entries = [("landmarks", f"{record.n_landmarks:,}")]
    if record.n_rows is not None:
        entries.insert(0, ("rows", f"{record.n_rows:,}"))
    if len(record.errors) == 1:
        errors = record.errors[0]
        entries += [
            (label, f"{value:.3g}")
            for label, value in (("leave-one-out error (RMS)", errors.loo), ("held-out error (RMS)", errors.held_out))
            if value is not None
        ]
        explained = _explained(errors.loo, errors.spread)
        if explained is not None:
            entries.append(("variance explained (leave-one-out)", f"{explained:.1%}"))
    if record.certificate is not None:
        entries.append(("distance to exact, at most (RMS)", _largest(record.certificate["bound"])))
    return html.key_numbers(entries)


def _glance(record: FitRecord) -> Html:
    """Return three questions with their answers and a one-word verdict each."""
    rows: list[list[str]] = []
    explained = [e for t in record.errors if (e := _explained(t.loo, t.spread)) is not None]
    if explained:
        worst = min(explained)
        tone: html.Tone = "good" if worst > 0.5 else "open" if worst > 0.05 else "bad"
        word = {"good": "most of it", "open": "some of it", "bad": "very little"}[tone]
        rows.append(
            [
                "Does it predict?",
                f"Rows left out in turn are predicted with {worst:.1%} of the variance explained"
                + (" (the worst of the targets)." if len(explained) > 1 else "."),
                html.badge(word, tone),
            ]
        )
    if record.certificate is not None:
        rows.append(["Is it close to exact?", record.certificate["claim"], _closeness(record)])
    if record.verdict is not None:
        dimension = "effective dimension {:.3g} to {:.3g} at lambda".format(*record.effective_dimension)
        rows.append(["Which rows carry it?", _sentence(record.verdict), dimension])
    if not rows:
        return html.note("This model has neither leave-one-out residuals nor a certificate.")
    return html.table("At a glance", [Column("question"), Column("answer"), Column("in short")], rows, stacked=True)


def _closeness(record: FitRecord) -> Html:
    assert record.certificate is not None
    if record.certificate["vacuous"]:
        return html.badge("not known", "open")
    bounds = _each(record.certificate["bound"], len(record.errors))
    errors = [errors.loo for errors in record.errors]
    if all(
        loo is not None and bound is not None and bound <= _CLOSE * loo
        for bound, loo in zip(bounds, errors, strict=True)
    ):
        return html.badge("yes", "good")
    return html.badge("partly", "open")


def _fitted(record: FitRecord) -> list[Html]:
    blocks = [_pairs("The fit", record.facts)]
    if record.feature_names is not None:
        names = [printable(name) for name in record.feature_names]
        more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        blocks.append(html.paragraph(f"Features: {', '.join(names[:_MOST_NAMES])}{more}."))
    return blocks


def _good(record: FitRecord) -> list[Html]:
    blocks = [_errors(record)]
    figures = [] if record.path is None else [_path_figure(record.path)]
    for number, (errors, shown) in enumerate(zip(record.errors, record.predictions, strict=False)):
        if number < _MOST_TARGETS:
            figures.append(_predicted_figure(record, errors.name, shown, number))
    if figures:
        blocks.append(html.side_by_side(figures))
    if record.interval_promise is not None:
        blocks.append(html.paragraph(f"What the intervals promise: {record.interval_promise}"))
    return blocks


def _errors(record: FitRecord) -> Html:
    headings = ["spread (sd)", "leave-one-out RMS", "variance explained"]
    rows = [
        [printable(one.name), _number(one.spread), _number(one.loo), _share(_explained(one.loo, one.spread))]
        for one in record.errors
    ]
    caption = "Errors, in units of the target"
    if record.held_out_rows is not None:
        caption += f"; held out: {record.held_out_rows:,} rows"
        headings += ["held-out RMS", "in interval"]
        rows = [
            [*cells, _number(one.held_out), _share(one.coverage)]
            for cells, one in zip(rows, record.errors, strict=True)
        ]
    return html.table(caption, [Column("target"), *html.number_columns(*headings)], rows, stacked=True)


def _path_figure(path: PathCurves) -> Html:
    chosen = sorted(set(path.chosen))
    ridges = [path.ridges[k] for k in chosen]
    chart = Chart(
        "lambda",
        "RMS error / spread of y",
        [
            Series(path.criterion, path.ridges, path.error),
            Series("training", path.ridges, path.training, kind="dashed"),
            Series("chosen", ridges, [path.error[k] for k in chosen], kind="mark", colour=3),
        ],
        log_x=True,
        log_y=True,
    )
    picked = ", ".join(f"{ridge:.3g}" for ridge in ridges)
    return html.figure(
        draw(chart, "path"),
        f"Error against lambda from {min(path.ridges):.2g} to {max(path.ridges):.2g}: the {path.criterion} error is "
        f"least, {min(path.error):.3g} of the spread, at the chosen lambda {picked}.",
        f"The path of lambdas: {path.criterion} chose {picked}. The training error is not an estimate for new rows.",
    )


def _predicted_figure(record: FitRecord, name: str, shown: Predictions, number: int) -> Html:
    chart = Chart(
        "predicted",
        "observed",
        [Series("observed", shown.predicted, shown.observed, shown.lower, shown.upper, kind="points")],
        diagonal="observed = predicted",
    )
    with_bars = f" Bars are prediction intervals with target coverage {record.interval_coverage:.0%}."
    bars = "" if shown.lower is None else with_bars
    return html.figure(
        draw(chart, f"predicted-{number}"),
        f"Observed against predicted {printable(name)} for {len(shown.observed)} {record.predicted_rows}, "
        "scattered around the diagonal.",
        f"{printable(name)}: {len(shown.observed)} {record.predicted_rows}.{bars}",
    )


def _exact(record: FitRecord) -> list[Html]:
    certificate = record.certificate
    if certificate is None:
        return [html.note("This model has no certificate: the gradient solver keeps no sums to compute one.")]
    inputs = certificate["inputs"]
    shown = [(words, _value(inputs[name])) for name, words in _INPUTS.items() if name in inputs]
    certainty = {"deterministic": "always true", "probability": "true with a probability"}.get(
        certificate["certainty"], certificate["certainty"]
    )
    facts = [
        ("kind", f"{certificate['kind']} ({certainty})"),
        ("cost", spent(certificate["cost"])),
    ]
    if certificate["risk_factor"] is not None:  # an audit has none: it is about this target only
        facts.insert(1, ("risk over that of exact, at most", rounded_up(certificate["risk_factor"])))
    return [
        html.note(certificate["claim"]),
        _pairs("The certificate", facts),
        _pairs("Inputs of the certificate", shown),
        html.paragraph(f"Before any measurement: {inputs['theorem_3']}"),
    ]


def _rows(record: FitRecord) -> list[Html]:
    blocks = [] if record.verdict is None else [html.paragraph(_sentence(record.verdict))]
    if record.scores is not None:
        blocks.append(_scores_figure(record.scores))
    if record.influential:
        columns = [
            Column("row", numeric=True),
            *html.number_columns("leverage", "leave-one-out residual", "studentised", "Cook's distance"),
            Column("landmark"),
            Column("why"),
        ]
        rows = [
            [
                str(one["row"]),
                f"{one['leverage']:.3f}",
                f"{one['loo_residual']:.4g}",
                f"{one['studentised']:.2f}",
                f"{one['cook_distance']:.2e}",
                "yes" if one["landmark"] else "no",
                str(one["why"]),
            ]
            for one in record.influential
        ]
        blocks.append(html.table("The most influential rows, numbered from 0", columns, rows, stacked=True))
    return blocks or [html.note("This model has no leave-one-out residuals, so influential rows are not known.")]


def _scores_figure(scores: SortedScores) -> Html:
    chart = Chart(
        "rank",
        scores.what,
        [
            Series("rows", scores.ranks, scores.scores, colour=7, marked=False),
            Series("landmarks", scores.landmark_ranks, scores.landmark_scores, kind="points", colour=1),
        ],
        log_x=True,
        log_y=True,
    )
    head = f"{scores.what} of {scores.n_rows:,} rows"
    return html.figure(
        draw(chart, "scores"),
        f"The {head} in descending order, from {max(scores.scores):.3g} to {min(scores.scores):.3g}; landmarks are "
        f"marked, the first at rank {min(scores.landmark_ranks, default=0)}.",
        f"{head[0].upper()}{head[1:]}, the largest first. Flat: all rows matter equally. Steep: a few rows "
        "dominate the fit, and landmarks should be among them.",
    )


def _pairs(caption: str, entries: Sequence[tuple[str, str]]) -> Html:
    rows = [[printable(what), printable(value)] for what, value in entries]
    return html.table(caption, [Column("what"), Column("value")], rows)


def _sentence(verdict: str) -> str:
    """Return a verdict as a sentence; it is about the scores of the draw, at a smaller lambda than the fit's."""
    return f"For drawing landmarks, {printable(verdict)}."


def _explained(rms: float | None, spread: float | None) -> float | None:
    return None if rms is None or not spread else 1.0 - (rms / spread) ** 2


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(entry) for entry in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _each(value: Any, count: int) -> list[Any]:
    return list(value) if isinstance(value, list) else [value] * count


def _largest(value: Any) -> str:
    known = [entry for entry in _each(value, 1) if entry is not None]
    return rounded_up(max(known)) if known else "-"
