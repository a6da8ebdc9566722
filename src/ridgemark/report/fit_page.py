"""The page of a fit: short answers, errors, what to mistrust, what matters; folded, how it was fitted."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ridgemark.certificates.record import LARGEST_FACTOR, rounded_up, spent
from ridgemark.report import class_page, loss_page, number_page, promises, quality
from ridgemark.report import explain_figures as explain
from ridgemark.report import fit_figures as figures
from ridgemark.report import fit_words as words
from ridgemark.report import page as html
from ridgemark.report.cautions import cautions
from ridgemark.report.first_screen import NOTHING_SEEN, answers, lead
from ridgemark.report.fit_tables import columns_table, pairs
from ridgemark.report.fit_words import LEVELS
from ridgemark.report.page import Column, Html
from ridgemark.report.writing import printable, spoken
from ridgemark.rows.places import as_written

PAGES = {"numbers": number_page, "classes": class_page, "losses": loss_page}

_EXACT = "Exact is the fit by the same kernel and lambda that has every distinct row as a landmark."
_EFFECT = (
    "The effect of a column at a row is the derivative of the prediction, its change per unit of the column; of "
    "levels, the difference that one makes in place of another."
)
_MOST_STEPS = 20  # of a fit of all rows
_INPUTS = {  # inputs of a certificate and their labels; inputs shown elsewhere are left out
    "scaled_ridge": "n lambda",
    "rms_left": "training error (RMS)",
    "unmeasured": "bound known before measuring",
    "energy_bound": "distance by the energy, at most",
    "energy_estimate": "the same, estimated from the rows sampled",
    "gap_bound": "distance by the duality gap, at most",
    "duality_gap": "duality gap",
    "gap": "duality gap",
    "objective": "objective of the fit",
    "null_objective": "objective of the best constant",
    "function_norm": "distance from the exact function in its norm, at most",
    "predictor": "distance from the exact function anywhere, at most",
    "slopes": "distance of the slopes of the loss (RMS), at most",
    "root_mean": "distance of the square roots of the means (RMS), at most",
    "rounding": "allowance for rounding",
    "sampled_rows": "rows sampled",
    "trace_residual": "trace of K - L",
    "delta": "largest eigenvalue of K - L, at most",
    "delta_over_scaled_ridge": "the same over n lambda",
    "lanczos_steps": "Lanczos steps",
    "ritz_value": "largest Ritz value",
    "failure_probability": "failure probability",
}


class _Fit:
    """A model, the record of its run, and what several sections show of them."""

    def __init__(self, model: Any, run: Any) -> None:
        self.model, self.run = model, run
        self.parts = PAGES[words.predicts(model)]
        self.certificate = getattr(model, "certificate_", None)
        self.targets = words.target_names(model, run)
        unknown: list[Any] = [None] * len(self.targets)
        self.spread = quality.target_spread(model) or unknown
        self.fitted_spread = quality.fitted_spread(model) or unknown  # of the targets that the model was fitted to
        self.loo = self.parts.left_out_error(model, run) or unknown
        self.rows = run.held_out or run.sample
        self.which = "held-out rows" if run.held_out else f"training rows, {quality.OTHERS[words.left_out(model)]}"


def fit_page(model: Any, run: Any, version: str, title: str | None = None, first: Sequence[html.Section] = ()) -> str:
    """Return the page of a fitted model and its `RunRecord`; what they do not know is left out.

    It is one HTML document with the package's version, and with sections before its own.
    """
    fit = _Fit(model, run)
    parts, calibrated, seen = fit.parts, hasattr(model, "calibration_"), cautions(fit)
    sections: list[html.Section] = [
        *first,
        ("How good is it?", "good", parts.errors(fit)),
        ("What to mistrust", "mistrust", [html.labelled(seen) if seen else html.paragraph(NOTHING_SEEN)]),
        ("What matters?", "columns", _columns(fit)),
        ("Why these predictions?", "why", [html.side_by_side(drawn)] if (drawn := _contributions(model)) else []),
        ("How sure is a prediction?", "sure", parts.intervals(fit) if calibrated else []),
        ("Which rows matter?", "rows", parts.rows(fit) if hasattr(model, "diagnose") else []),
    ]
    details: list[html.Section] = [
        ("How close to exact?", "exact", _exact(fit)),
        ("How the kernel was tuned", "tuned", _tuned(model) if hasattr(model, "tuning_") else []),
        ("What was fitted", "fitted", _fitted(fit, version)),
        ("Time and memory", "cost", [pairs("Cost of the fit", _costs(model, run))]),
    ]
    shown = [[section for section in part if any(section[2])] for part in (sections, details)]
    return html.page(
        printable(title or ("A fit from landmarks" if run.data is None else f"Fit of {run.data}")),
        [
            html.lead(lead(fit)),
            html.answers(answers(fit, seen)),
            html.contents([(title, anchor) for title, anchor, _ in shown[0] + shown[1]]),
            *(html.section(*section) for section in shown[0]),
            *(html.folded(*section) for section in shown[1]),
        ],
    )


def _columns(fit: _Fit) -> list[Html | None]:
    """Return what matters, predictions along the most important columns, effects, and how every column was read."""
    importance = explain.importance_figure(fit.model)
    if importance is None:
        return [columns_table(fit.model)]
    effects = list(filter(None, fit.parts.effects(fit)))
    effects = [html.paragraph(_EFFECT), *effects] if effects else []
    return [
        importance,
        html.side_by_side(explain.curve_figures(fit)),
        columns_table(fit.model),
        html.folded("Effects: how much a prediction changes per unit of a column", "effects", effects, "h3")
        if effects
        else None,
    ]


def _contributions(model: Any) -> list[Html]:
    """Return what columns contribute to predictions; nothing for other models than those from landmarks."""
    return explain.contribution_figures(model) if hasattr(model, "contributions") else []


def _fitted(fit: _Fit, version: str) -> list[Html]:
    model, path = fit.model, getattr(fit.model, "ridge_path_", None)
    chosen = "given" if path is None else f"chosen among {len(path.ridges)} by {words.criterion(fit.model)}"
    ridges = ", ".join(f"{ridge:.4g}" for ridge in np.atleast_1d(model.ridge_))
    facts = [
        ("data", fit.run.data),
        ("target", ", ".join(fit.targets)),
        ("exposure", None if fit.run.exposure is None else str(fit.run.exposure)),
        ("loss", words.loss_spelled(model)),
        ("fitted to", words.transform_words(model)),
        ("kernel", words.kernel_words(model)),
        ("lambda", f"{ridges} ({chosen})"),
        ("landmarks", words.landmark_words(model) if hasattr(model, "landmark_count_") else f"{model.n_landmarks_:,}"),
        ("effective dimension", _range(getattr(model, "effective_dimension_", None))),
        ("coherence", _range(getattr(model, "coherence_", None))),
        ("columns", str(words.n_columns(model))),
        ("intercept", "yes" if model.fit_intercept else "no"),
        ("solver", getattr(model, "solver_", None)),
        ("seed", str(model.random_state)),
        ("ridgemark", version),
    ]
    blocks = [pairs("The fit", facts)]
    if path is not None and len(path.ridges) > 1:
        blocks.insert(0, fit.parts.path_figure(fit, path))
    return blocks


def _range(bracket: Any) -> str | None:
    return None if bracket is None else "{:.4g} to {:.4g}".format(*bracket)


def _tuned(model: Any) -> list[Html | None]:
    tuning = model.tuning_
    sentence = f"The kernel is {words.tuned_words(tuning, ' with ')}, since {tuning.reason}; it was tuned on "
    sentence += f"{tuning.n_tuning:,} rows with {tuning.n_landmarks:,} landmarks"
    levels = tuning.levels if tuning.n_judging else ()
    if levels:
        sentence += f" in {tuning.n_evaluations:,} evaluations, and judged by {tuning.n_judging:,} other rows"
    return [
        html.paragraph(f"{sentence}. Errors are RMS, in standard deviations of {words.TUNED[words.predicts(model)]}."),
        *_parts(tuning),
        _levels(levels),
        html.side_by_side([figures.profile_figure(model.kernel_, model.landmarks_), figures.tuning_figure(tuning)]),
    ]


def _parts(tuning: Any) -> list[Html | None]:
    """Return the parts of the kernel as a table, and which parts were left out."""
    rows = [
        [part.kernel, f"{part.weight:.3g}", "-" if part.length is None else f"{part.length:.3g}"]
        for part in tuning.parts
    ]
    caption = "Parts of the kernel, a weighted sum; lengths are in units of the shared metric"
    columns = [Column("part"), *html.number_columns("weight", "length")]
    without = f"Left out, since the judging rows are predicted as well without them: {', '.join(tuning.dropped)}."
    return [
        html.table(caption, columns, rows, stacked=True) if len(rows) > 1 else None,
        html.paragraph(without) if tuning.dropped else None,
    ]


def _levels(levels: Sequence[Any]) -> Html | None:
    """Return how each level was judged as a table; None where none was."""
    last = max((k for k, level in enumerate(levels) if level.taken), default=None)
    rows = [
        [LEVELS[level.level], f"{level.judged_error:.4g}"]
        + (["-"] * 3 if k == 0 else [f"{level.gain:z.1%}", f"{level.standard_errors:z.1f}", f"{level.better:.0%}"])
        + ["yes" if k == last else "surpassed" if level.taken else "no"]
        for k, level in enumerate(levels)
    ]
    numbers = html.number_columns("judged error", "gain", "standard errors", "rows better")
    columns = [Column("level"), *numbers, Column("taken")]
    return (
        html.table("Levels, each judged against the one taken before it", columns, rows, stacked=True) if rows else None
    )


def _exact(fit: _Fit) -> list[Html | None]:
    distance = promises.distance_words(fit.model) or ""
    if (certificate := fit.certificate) is None:
        if distance:
            return [html.paragraph(f"All rows were fitted: predictions are {distance}."), _steps(fit.model)]
        why = promises.without_certificate(fit.model)
        return [html.note(f"This model has no certificate: {why}.")]
    near = fit.parts.nearness(fit)
    certainty = {"deterministic": "always true", "probability": "true with a probability"}
    factor, inputs, promise = certificate.risk_factor, certificate.inputs, certificate.inputs["theorem_3"]
    facts = [
        (near.label, None if certificate.vacuous else near.bound),
        ("kind", f"{certificate.kind} ({certainty.get(certificate.certainty, certificate.certainty)})"),
        # An audit has no factor: it is about this target only.
        ("risk over that of exact, at most", None if factor is None or factor > LARGEST_FACTOR else rounded_up(factor)),
        ("cost", spent(certificate.cost)),
    ]
    return [
        html.paragraph(_EXACT),
        html.note(f"{distance[0].upper()}{distance[1:]}." if certificate.vacuous else str(certificate.claim)),
        pairs("The certificate", facts),
        pairs("Inputs of the certificate", [(label, _value(inputs.get(name))) for name, label in _INPUTS.items()]),
        None if promise is None else html.paragraph(f"Before any measurement: {promise}"),
    ]


def _steps(model: Any) -> Html:
    """Return the bounds on the distance to exact after every step of a fit of all rows."""
    rows = [[f"{k:,}", ", ".join(map(rounded_up, step.returned))] for k, step in enumerate(model.history_)]
    columns = [Column("products with the kernel matrix"), *html.number_columns("distance to exact, at most (RMS)")]
    return html.table("Bounds after every step", columns, rows[-_MOST_STEPS:])


def _costs(model: Any, run: Any) -> list[tuple[str, str | None]]:
    peak, waited = run.peak_bytes, run.waiting_share
    return [
        ("time", spoken(run.seconds) if run.seconds else None),
        ("memory, at most", f"{peak / 2**20:,.0f} MiB (the whole process)" if peak else None),
        ("passes over the rows", str(model.n_passes_)),
        ("of their time, waiting for rows", None if waited is None else f"{waited:.0%}"),
        ("kernel entries", f"{model.n_kernel_evaluations_:,}"),
    ]


def _value(value: Any) -> str | None:
    if isinstance(value, list | tuple):
        return ", ".join(str(_value(entry)) for entry in value)
    return None if value is None else as_written(value) if isinstance(value, float) else str(value)
