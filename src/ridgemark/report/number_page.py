"""The parts of the page of a fit of numbers; `class_page` has the same functions."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ridgemark.certificates.record import rounded_up
from ridgemark.report import explain_figures as explain
from ridgemark.report import fit_figures as figures
from ridgemark.report import fit_words as words
from ridgemark.report import page as html
from ridgemark.report import promises, quality
from ridgemark.report.cautions import Caution
from ridgemark.report.first_screen import gained
from ridgemark.report.fit_tables import baselines_table, effects_table, influential_rows
from ridgemark.report.page import Answer, Column, Html
from ridgemark.report.promises import Nearness
from ridgemark.report.quality import COVERAGE
from ridgemark.report.writing import printable
from ridgemark.rows.places import as_written

_MOST_TARGETS = 4  # targets that get their own figure
_CLOSE = 0.1  # fraction of the leave-one-out error; a smaller distance to exact does not matter
_TOP = 10  # influential rows
_OF_NEW = {"row": "new observations", "group": "observations of new groups"}
_ITSELF = {"row": "itself", "group": "its group; all {:,} groups count equally"}


def left_out_error(model: Any, run: Any) -> list[float] | None:
    """Return the RMS error of rows left out, for every target."""
    return quality.leave_one_out_error(model)


def nearness(fit: Any) -> Nearness:
    """Return how close to exact the fitted values are proved to be, in units of the target."""
    bounds = np.atleast_1d(fit.certificate.bound)
    errors = (quality.fitted_error(fit.model) if words.predicts(fit.model) == "numbers" else None) or fit.loo
    broad = np.broadcast_to(bounds, len(errors))
    close = all(loo is not None and bound <= _CLOSE * loo for bound, loo in zip(broad, errors, strict=True))
    largest, all_ = rounded_up(bounds.max()), ", ".join(map(rounded_up, bounds))
    return Nearness(
        f"within {largest}", "its fitted values are", close, close, "distance to exact, at most (RMS)", all_
    )


def good(fit: Any) -> Answer | None:
    """Return how good the fit is, where that is known."""
    shares = {k: share for k, share in enumerate(quality.explained(fit.model) or ()) if share is not None}
    if not shares:
        return _good_held_out(fit)
    worst = min(shares, key=lambda k: shares[k])
    share, name = shares[worst], printable(fit.targets[worst])
    which = " (the worst of the targets)" if len(shares) > 1 else ""
    others = quality.OTHERS[words.left_out(fit.model)]
    sentence = (
        f"The share of the variance of {name}{which} that predictions explain, {others}. The typical error (RMS) is "
        f"{as_written(fit.loo[worst])}, and the standard deviation of {name} "
        f"{as_written(fit.spread[worst])}."
    )
    if (held_out := fit.run.held_out) is not None:
        sentence += f" On {held_out['n_rows']:,} held-out rows the error is {as_written(held_out['rms'][worst])}."
    tone = quality.tone(share)
    return Answer("How good is it?", "good", f"{max(share, 0.0):.1%} explained", sentence, tone)


def _good_held_out(fit: Any) -> Answer | None:
    """Return how good a fit is on held-out rows, where errors of rows left out are not known."""
    rows = fit.run.held_out
    share = None if rows is None else rows["r2"][0]
    if share is None:
        return None
    sentence = (
        f"The share of the variance of {printable(fit.targets[0])} that predictions explain on {rows['n_rows']:,} "
        f"held-out rows. The typical error (RMS) is {as_written(rows['rms'][0])}."
    )
    return Answer("How good is it?", "good", f"{max(share, 0.0):.1%} explained", sentence, quality.tone(share))


def beside(fit: Any) -> Answer | None:
    """Return how much smaller the error is than that of the mean, where nothing else is known."""
    if fit.loo[0] is None or not fit.spread[0]:
        return None
    name = printable(fit.targets[0])
    sentence = (
        f"Than the mean of {name}, whose error is the standard deviation, {as_written(fit.spread[0])}; that of the "
        f"predictions is {as_written(fit.loo[0])}, {quality.OTHERS[words.left_out(fit.model)]}."
    )
    return gained(1.0 - fit.loo[0] / fit.spread[0], sentence)


def held_out_ratio(fit: Any) -> float | None:
    """Return the error of held-out rows over that of rows left out, the largest over the targets."""
    pairs = zip(fit.run.held_out["rms"], fit.loo, strict=True)
    return max((rms / loo for rms, loo in pairs if loo), default=None)


def cautions(fit: Any) -> Iterator[Caution]:
    """Say where the target has a long tail, or rows are equal."""
    rows = fit.rows
    is_said = any(label.startswith("skewed target") for label in fit.run.findings or ())
    if rows is not None and len(rows["observed"]) == 1 and not is_said:
        hint = quality.skewed_words(fit.model, rows["observed"][0], rows["predicted"][0])
        if hint is not None:
            yield Caution("skewed target", f"{hint[0].upper()}{hint[1:]}.")
    if quality.explained(fit.model) and (repeats := quality.repeats_words(fit.model)) is not None:
        yield Caution("equal rows", f"{repeats[0].upper()}{repeats[1:]}.")


def sure(fit: Any) -> Answer | None:
    """Return how sure a prediction is, where that is known."""
    rows = fit.rows
    if rows is None or "lower" not in rows or not hasattr(fit.model, "calibration_"):
        return None
    half = float(np.median(np.subtract(rows["upper"][0], rows["lower"][0]))) / 2
    sentence = (
        f"A typical interval reaches this far on both sides. Intervals should hold {COVERAGE:.0%} of "
        f"{_OF_NEW[words.left_out(fit.model)]}; they are wider where errors are larger."
    )
    if fit.run.held_out is not None:
        sentence += f" Of the held-out rows {fit.run.held_out['coverage'][0]:.1%} lie inside their interval."
    guaranteed = fit.model.calibration_.guaranteed
    sentence += (
        f" At least {2 * COVERAGE - 1:.0%} is proved."
        if guaranteed
        else " This coverage is an estimate, and not proved."
    )
    return Answer("How sure is a prediction?", "sure", f"about ± {as_written(half, 3)}", sentence, None)


def errors(fit: Any) -> list[Html | None]:
    """Return predictions and residuals, and a table of the errors of every target."""
    shown = [] if fit.rows is None else fit.targets[:_MOST_TARGETS]
    drawn = [
        draw(fit.rows, fit.which, target, name)
        for target, name in enumerate(shown)
        for draw in (figures.predicted_figure, figures.residual_figure)
    ]
    unknown, share = [None] * len(fit.targets), "{:.1%}".format
    columns: list[tuple[str, Sequence[float | None], Callable[[float], str]]] = [
        ("spread (sd)", fit.spread, as_written),
        (f"{words.CRITERIA['groups' if words.left_out(fit.model) == 'group' else 'loo']} RMS", fit.loo, as_written),
        ("variance explained", quality.explained(fit.model) or unknown, share),
    ]
    caption, held_out = "Errors, in units of the target", fit.run.held_out
    if held_out is not None:
        caption += f"; held out: {held_out['n_rows']:,} rows{quality.repeated_words(held_out)}"
        columns += [
            ("held-out RMS", held_out["rms"], as_written),
            ("in interval", held_out["coverage"] or unknown, share),
        ]
    columns = [column for column in columns if any(value is not None for value in column[1])]
    cells = [["-" if value is None else form(value) for value in values] for _, values, form in columns]
    rows = [list(row) for row in zip(map(printable, fit.targets), *cells, strict=True)]
    headings = html.number_columns(*(heading for heading, _, _ in columns))
    beside = baselines_table(fit.model, fit.run)
    return [*beside, html.side_by_side(drawn), html.table(caption, [Column("target"), *headings], rows, stacked=True)]


def intervals(fit: Any) -> list[Html | None]:
    """Return what intervals promise, and how many rows they hold."""
    if shortage := promises.interval_shortage(fit.model):
        return [html.note(f"Intervals are {shortage}.")]
    calibration = fit.model.calibration_
    proved = f"coverage of at least {2 * COVERAGE - 1:.0%} is proved"
    left_out = _ITSELF[words.left_out(fit.model)].format(calibration.n_distinct)
    promise = proved if calibration.guaranteed else f"coverage near {COVERAGE:.0%} in practice, without a proof"
    return [
        html.side_by_side(
            [
                figures.coverage_figure(fit.rows, "held-out" if fit.run.held_out else "training"),
                figures.far_figure(fit.run.held_out),
            ]
        ),
        html.paragraph(
            f"Intervals come from the residuals of {len(calibration.residuals):,} rows, each predicted without "
            f"{left_out}. What they promise: {promise}, since {calibration.reason}."
        ),
    ]


def effects(fit: Any) -> list[Html | None]:
    """Return the effects of the most important columns as figures, and average effects as a table."""
    if not hasattr(fit.model, "calibration_"):
        return []
    summary = fit.model.effects_summary()
    table = effects_table(summary.to_record(), f"over {summary.n_rows:,} rows")
    return [html.side_by_side(explain.effect_figures(fit.model, summary)), table]


def rows(fit: Any) -> list[Html | None]:
    """Return the scores of the rows, and the most influential ones."""
    diagnosis = fit.model.diagnose() if hasattr(fit.model, "loo_residuals_") else None
    figure, verdict, table = figures.scores_figure(fit.model, diagnosis), None, None
    if diagnosis is not None:
        top = diagnosis.to_record(_TOP)["top"]
        table = influential_rows("The most influential rows, numbered from 0", top)
        if diagnosis.scores is not None and diagnosis.scores.informative:
            # About the scores of the draw, at a smaller lambda than the fit's.
            verdict = html.paragraph(f"For drawing landmarks, {printable(diagnosis.verdict)}.")
    unknown = (
        "This model has no leave-one-out residuals of all rows, so influential rows are not known. A model file has "
        "them if all sums were kept: save(path, sums=True), or fit --keep-sums."
    )
    return [verdict, figure, table] if verdict or figure or table else [html.note(unknown)]


def path_figure(fit: Any, path: Any) -> Html:
    """Return RMS errors over the ridges searched, in units of the targets' standard deviation."""
    variance = np.array([s**2 if s else 1.0 for s in fit.fitted_spread])
    searched = path.gcv if path.loo_error is None else path.loo_error
    errors, training = (np.sqrt((e / variance).mean(axis=1)).tolist() for e in (searched, path.training_error))
    others = "" if path.sample.all() else " at other lambdas"
    sampled = f" Errors{others} are those of a sample of the rows." if path.sample.any() else ""
    chosen = sorted(set(path.chosen.tolist()))
    searched, training = ("RMS error / spread of y", errors), ("training error", training)
    return figures.path_figure(words.criterion(fit.model), path, searched, training, chosen, sampled)
