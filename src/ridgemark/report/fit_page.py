"""The page of a fit: what was fitted, how it was tuned, its errors, its distance to exact, and the influential rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.certificates.record import LARGEST_FACTOR, rounded_up, spent
from ridgemark.report import fit_figures as figures
from ridgemark.report import fit_words as words
from ridgemark.report import page as html
from ridgemark.report.class_page import class_errors, class_rows, class_sets, loss_path_figure
from ridgemark.report.fit_answers import fit_answers
from ridgemark.report.fit_words import COVERAGE, LEVELS, printable
from ridgemark.report.page import Column, Html

_MOST_NAMES = 24
_MOST_TARGETS = 4  # targets that get their own figure
_MOST_EFFECTS = 40  # lines of the table of effects
_FEW = 3  # columns whose effects on the log-odds of several classes are shown
_TOP = 10  # influential rows
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
_INFLUENCE = {"row": "d", "leverage": ".3f", "loo_residual": ".4g", "studentised": ".2f", "cook_distance": ".2e"}


class _Fit:
    """A fitted `NystromRidge` or `NystromClassifier`, the record of its run, and what several sections show of them."""

    def __init__(self, model: Any, run: Any) -> None:
        self.model, self.run = model, run
        self.certificate = model.certificate_
        self.targets = list(run.target_names or [f"target {k}" for k in range(np.size(model.intercept_))])
        unknown: list[Any] = [None] * len(self.targets)
        self.spread = words.target_spread(model) or unknown
        self.classes = hasattr(model, "classes_")
        self.rows = run.held_out or run.sample
        self.which = "held-out rows" if run.held_out else "training rows, each predicted from the others"
        left_out = [run.sample["rms"]] * len(self.targets) if self.classes and run.sample else None
        self.loo = left_out or words.leave_one_out_error(model) or unknown
        self.explained = words.explained(model) or unknown
        self.diagnosis = model.diagnose() if hasattr(model, "loo_residuals_") else None
        self.verdict = None
        if self.diagnosis is not None and self.diagnosis.scores is not None and self.diagnosis.scores.informative:
            # About the scores of the draw, at a smaller lambda than the fit's.
            self.verdict = f"For drawing landmarks, {printable(self.diagnosis.verdict)}."


def fit_page(
    model: Any,
    run: Any,
    version: str,
    title: str | None = None,
    first: Sequence[html.Section] = (),
    further: Sequence[html.Section] = (),
) -> str:
    """Return the page of a fitted model and its `RunRecord`; what they do not know is left out.

    It is one HTML document with the package's version, and with sections before and after its own.
    """
    fit, importance = _Fit(model, run), figures.importance_figure(model)
    parts: list[html.Section] = [
        ("How good is it?", "good", class_errors(fit) if fit.classes else _good(fit)),
        *([("What matters?", "columns", [importance, *_effects(fit)])] if importance is not None else []),
        *([("How sure is a prediction?", "sure", _sure(fit))] if hasattr(model, "calibration_") else []),
        ("How close to exact?", "exact", _exact(fit)),
        ("Which rows matter?", "rows", class_rows(fit) if fit.classes else _rows(fit)),
        *([("How the kernel was tuned", "tuned", _tuned(model))] if hasattr(model, "tuning_") else []),
        ("What was fitted", "fitted", _fitted(fit, version)),
        ("Time and memory", "cost", [_pairs("Cost of the fit", _costs(model, run))]),
    ]
    parts = [*first, *parts, *further]
    known = fit_answers(fit)
    unknown = html.note("This model has neither leave-one-out residuals nor a certificate.")
    return html.page(
        printable(title or ("A fit from landmarks" if run.data is None else f"Fit of {run.data}")),
        [
            html.answers(known) if known else unknown,
            html.contents([(title, anchor) for title, anchor, _ in parts]),
            *(html.section(title, anchor, blocks) for title, anchor, blocks in parts),
        ],
    )


def _fitted(fit: _Fit, version: str) -> list[Html]:
    model, path = fit.model, getattr(fit.model, "ridge_path_", None)
    chosen = "given" if path is None else f"chosen among {len(path.ridges)} by {words.CRITERIA[path.criterion]}"
    ridges = ", ".join(f"{ridge:.4g}" for ridge in np.atleast_1d(model.ridge_))
    facts = [
        ("data", fit.run.data),
        ("target", ", ".join(fit.targets)),
        ("kernel", words.kernel_words(model)),
        ("lambda", f"{ridges} ({chosen})"),
        ("landmarks", words.landmark_words(model)),
        ("effective dimension", "{:.4g} to {:.4g}".format(*model.effective_dimension_)),
        ("coherence", "{:.3g} to {:.3g}".format(*model.coherence_) if hasattr(model, "coherence_") else None),
        ("columns", str(words.n_columns(model))),
        ("intercept", "yes" if model.fit_intercept else "no"),
        ("solver", model.solver_),
        ("seed", str(model.random_state)),
        ("ridgemark", version),
    ]
    blocks = [_pairs("The fit", facts)]
    if path is not None and len(path.ridges) > 1:
        blocks.insert(0, loss_path_figure(path) if fit.classes else figures.path_figure(path, fit.spread))
    if (used := words.used_names(model)) is not None:
        names = list(map(printable, used))
        more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        blocks.append(html.paragraph(f"Columns: {', '.join(names[:_MOST_NAMES])}{more}."))
    return blocks


def _tuned(model: Any) -> list[Html]:
    tuning = model.tuning_
    sentence = f"The kernel is {words.tuned_words(tuning, ' with ')}, since {tuning.reason}; it was tuned on "
    sentence += f"{tuning.n_tuning:,} rows with {tuning.n_landmarks:,} landmarks"
    levels = tuning.levels if tuning.n_judging else ()
    if levels:
        sentence += f" in {tuning.n_evaluations:,} evaluations, and judged by {tuning.n_judging:,} other rows"
    drawn = [figures.profile_figure(model.kernel_, model.landmarks_), figures.tuning_figure(tuning)]
    shown = [figure for figure in drawn if figure is not None]
    return [
        html.paragraph(f"{sentence}. Errors are RMS, in standard deviations of the target."),
        *_parts(tuning),
        *_levels(levels),
        *([html.side_by_side(shown)] if shown else []),
    ]


def _parts(tuning: Any) -> list[Html]:
    """Return the parts of the kernel as a table, and which parts were left out."""
    rows = [
        [one.kernel, f"{one.weight:.3g}", "-" if one.length is None else f"{one.length:.3g}"] for one in tuning.parts
    ]
    caption = "Parts of the kernel, a weighted sum; lengths are in units of the shared metric"
    columns = [Column("part"), *html.number_columns("weight", "length")]
    without = f"Left out, since the judging rows are predicted as well without them: {', '.join(tuning.dropped)}."
    return [
        *([html.table(caption, columns, rows, stacked=True)] if len(rows) > 1 else []),
        *([html.paragraph(without)] if tuning.dropped else []),
    ]


def _levels(levels: Sequence[Any]) -> list[Html]:
    """Return how each level was judged as a table; nothing where none was."""
    last = max((k for k, one in enumerate(levels) if one.taken), default=None)
    rows = [
        [LEVELS[one.level], f"{one.judged_error:.4g}"]
        + (["-"] * 3 if k == 0 else [f"{one.gain:z.1%}", f"{one.standard_errors:z.1f}", f"{one.better:.0%}"])
        + ["yes" if k == last else "surpassed" if one.taken else "no"]
        for k, one in enumerate(levels)
    ]
    numbers = html.number_columns("judged error", "gain", "standard errors", "rows better")
    columns = [Column("level"), *numbers, Column("taken")]
    caption = "Levels, each judged against the one taken before it"
    return [html.table(caption, columns, rows, stacked=True)] if rows else []


def _good(fit: _Fit) -> list[Html]:
    shown = [] if fit.rows is None else fit.targets[:_MOST_TARGETS]
    drawn = [
        draw(fit.rows, fit.which, target, name)
        for target, name in enumerate(shown)
        for draw in (figures.predicted_figure, figures.residual_figure)
    ]
    return [*([html.side_by_side(drawn)] if drawn else []), _errors(fit)]


def _sure(fit: _Fit) -> list[Html]:
    if fit.classes:
        return class_sets(fit)
    if shortage := words.interval_shortage(fit.model):
        return [html.note(f"Intervals are {shortage}.")]
    known = fit.model.calibration_
    proved = f"coverage of at least {2 * COVERAGE - 1:.0%} is proved"
    promise = proved if known.guaranteed else f"coverage near {COVERAGE:.0%} in practice, without a proof"
    figure = figures.coverage_figure(fit.rows, "held-out" if fit.run.held_out else "training")
    return [
        *([] if figure is None else [figure]),
        html.paragraph(
            f"Intervals come from the residuals of {len(known.residuals):,} rows, each predicted without itself. What "
            f"they promise: {promise}, since {known.reason}."
        ),
    ]


def _errors(fit: _Fit) -> Html:
    columns: list[tuple[str, Sequence[float | None], str]] = [
        ("spread (sd)", fit.spread, ".4g"),
        ("leave-one-out RMS", fit.loo, ".4g"),
        ("variance explained", fit.explained, ".1%"),
    ]
    caption, held_out = "Errors, in units of the target", fit.run.held_out
    if held_out is not None:
        caption += f"; held out: {held_out['n_rows']:,} rows"
        caption += words.repeated_words(held_out)
        unknown = [None] * len(fit.targets)
        columns += [("held-out RMS", held_out["rms"], ".4g"), ("in interval", held_out["coverage"] or unknown, ".1%")]
    cells = [["-" if value is None else format(value, form) for value in values] for _, values, form in columns]
    rows = [list(row) for row in zip(map(printable, fit.targets), *cells, strict=True)]
    headings = html.number_columns(*(heading for heading, _, _ in columns))
    return html.table(caption, [Column("target"), *headings], rows, stacked=True)


def _distance(fit: _Fit) -> str:
    """Return the claim of the certificate, or that its bound is not informative."""
    said = words.distance_words(fit.model) or ""
    return f"{said[0].upper()}{said[1:]}." if fit.certificate.vacuous else str(fit.certificate.claim)


def _exact(fit: _Fit) -> list[Html]:
    certificate = fit.certificate
    if certificate is None:
        return [html.note("This model has no certificate: the gradient solver keeps no sums to compute one.")]
    bound = None if certificate.vacuous else ", ".join(map(rounded_up, np.atleast_1d(certificate.bound)))
    certainty = {"deterministic": "always true", "probability": "true with a probability"}
    known = {name: label for name, label in _INPUTS.items() if not (fit.classes and name == "target_rms")}
    factor, inputs, promise = certificate.risk_factor, certificate.inputs, certificate.inputs["theorem_3"]
    facts = [
        ("distance to exact, at most (RMS)", bound),
        ("kind", f"{certificate.kind} ({certainty.get(certificate.certainty, certificate.certainty)})"),
        # An audit has no factor: it is about this target only.
        ("risk over that of exact, at most", None if factor is None or factor > LARGEST_FACTOR else rounded_up(factor)),
        ("cost", spent(certificate.cost)),
    ]
    return [
        html.note(_distance(fit)),
        _pairs("The certificate", facts),
        _pairs("Inputs of the certificate", [(label, _value(inputs.get(name))) for name, label in known.items()]),
        *([html.paragraph(f"Before any measurement: {promise}")] if promise is not None else []),
    ]


def _effects(fit: _Fit) -> list[Html]:
    """Return the effects of the most important columns as figures, and average effects as a table."""
    if fit.classes:
        known = (fit.run.sample or {}).get("effects")
        if known and len(fit.model.classes_) > 2:
            most = {name for name, _ in words.important_columns(fit.model, _FEW)}
            known = [one for one in known if one["column"] in most]
        return [_effects_table(known, "on the log-odds")] if known else []
    if not hasattr(fit.model, "calibration_"):
        return []
    summary = fit.model.effects_summary()
    table = _effects_table(summary.to_record(), f"over {summary.n_rows:,} rows")
    return [html.side_by_side(figures.effect_figures(fit.model, summary)), table]


def _effects_table(effects: Sequence[Any], over: str) -> Html:
    """Return average effects, with standard errors where they are known, and quartiles."""
    several = any(one["target"] != effects[0]["target"] for one in effects)
    headings = {"average": "average", "standard_error": "std. error", "t_value": "t value"}
    names = [name for name in headings if name in effects[0]]
    sizes = [-abs(one[names[-1]]) for one in effects]
    shown = np.sort(np.argsort(sizes, kind="stable")[:_MOST_EFFECTS])
    rows = [
        [figures.shortened(printable(one["column"])), one["unit"], *[printable(str(one["target"]))] * several]
        + [f"{value:.4g}" for value in (*(one[name] for name in names), *one["quartiles"])]
        for one in (effects[k] for k in shown)
    ]
    columns = [Column("column"), Column("effect"), *[Column("target")] * several]
    numbers = html.number_columns(*(headings[name] for name in names), "25%", "50%", "75%")
    caption = f"Average effects {over}, and quartiles over the rows"
    if len(shown) < len(effects):
        caption += f"; the {len(shown)} of {len(effects)} with the largest {headings[names[-1]]}"
    return html.table(caption, [*columns, *numbers], rows)


def _rows(fit: _Fit) -> list[Html]:
    figure = figures.scores_figure(fit.model, fit.diagnosis)
    blocks = [] if fit.verdict is None else [html.paragraph(fit.verdict)]
    blocks += [] if figure is None else [figure]
    influential = [] if fit.diagnosis is None else fit.diagnosis.to_record(_TOP)["top"]
    if influential:
        numbers = html.number_columns("row", "leverage", "leave-one-out residual", "studentised", "Cook's distance")
        rows = [
            [format(one[name], form) for name, form in _INFLUENCE.items()]
            + ["yes" if one["landmark"] else "no", str(one["why"])]
            for one in influential
        ]
        caption = "The most influential rows, numbered from 0"
        blocks.append(html.table(caption, [*numbers, Column("landmark"), Column("why")], rows, stacked=True))
    return blocks or [
        html.note(
            "This model has no leave-one-out residuals of all rows, so influential rows are not known. Model files of "
            "`ridgemark fit --keep-sums` have them."
        )
    ]


def _costs(model: Any, run: Any) -> list[tuple[str, str | None]]:
    peak, waited = run.peak_bytes, run.waiting_share
    return [
        ("time", words.spoken(run.seconds) if run.seconds else None),
        ("memory, at most", f"{peak / 2**20:,.0f} MiB (the whole process)" if peak else None),
        ("passes over the rows", str(model.n_passes_)),
        ("of their time, waiting for rows", None if waited is None else f"{waited:.0%}"),
        ("kernel entries", f"{model.n_kernel_evaluations_:,}"),
    ]


def _pairs(caption: str, entries: Sequence[tuple[str, str | None]]) -> Html:
    """Return a table of labels and values; what is None is left out."""
    rows = [[printable(what), printable(value)] for what, value in entries if value is not None]
    return html.table(caption, [Column("what"), Column("value")], rows)


def _value(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return ", ".join(str(_value(entry)) for entry in value)
    return None if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
