"""The parts of the page of a fit of classes; `number_page` has the same functions."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ridgemark.report import charts, number_page, quality
from ridgemark.report import fit_figures as figures
from ridgemark.report import fit_words as words
from ridgemark.report import page as html
from ridgemark.report.cautions import Caution
from ridgemark.report.first_screen import gained
from ridgemark.report.fit_tables import baselines_table, most_effects, rows_of_run
from ridgemark.report.page import Answer, Column, Html
from ridgemark.report.quality import COVERAGE, TONES, how_much
from ridgemark.report.writing import printable

_MOST_CLASSES = 12  # in a confusion table
_FEW_FOUND = 0.2  # share of the rows of a class that are recognised; few below it
_RARE = 0.8  # share of the most frequent label from which on the share of right labels says little


def left_out_error(model: Any, run: Any) -> list[float] | None:
    """Return the RMS error of the probabilities of rows left out, for every function."""
    return [run.sample["rms"]] * np.size(model.intercept_) if run.sample else None


nearness = number_page.nearness


def good(fit: Any) -> Answer | None:
    """Return how good the fit is, where that is known."""
    if (rows := fit.rows) is None:
        return None
    shares = quality.class_shares(rows)
    guessed, gain = int(shares.argmax()), _gain(rows)
    frequent = f"the most frequent label, {_name(fit, guessed)}, is that of {shares[guessed]:.1%}"
    loss = f"The log loss is {rows['log_loss']:.3g}, {gain:.0%} below that of the classes' shares."
    tone = TONES[how_much(gain)]
    short = f"{rows['accuracy']:.1%} of labels right"
    sentence = f"The share of {rows['n_rows']:,} {fit.which}, whose label is the most probable one; {frequent}. {loss}"
    if shares[guessed] > _RARE and (precision := rows.get("average_precision")) is not None:
        # Always naming the most frequent label is right nearly as often.
        short = f"average precision {precision:.2f}"
        which = _name(fit, int(shares.argmin())) if len(shares) == 2 else "each class"
        by_chance = shares.min() if len(shares) == 2 else shares.mean()
        sentence = (
            f"How well probabilities rank the rows of {which} first: 1 is perfect, and {by_chance:.2f} is chance. The "
            f"most probable label is right for {rows['accuracy']:.1%} of {rows['n_rows']:,} {fit.which}; {frequent}. "
            f"{loss}"
        )
    return Answer("How good is it?", "good", short, sentence, tone)


def beside(fit: Any) -> Answer | None:
    """Return how far the log loss is below that of the classes' shares, where nothing else is known."""
    if fit.rows is None:
        return None
    ours, shares = fit.rows["log_loss"], quality.log_loss_of_shares(fit.rows)
    sentence = f"Than the shares of the classes. The log loss is {ours:.3g}, that of the shares {shares:.3g}."
    if compared := quality.baselines(fit.model):
        kernel, simpler = compared[:2]
        sentence += (
            f" By squared errors on {fit.model.tuning_.n_judging:,} rows that none was fitted to, this kernel has "
            f"{kernel.judged / simpler.judged:.0%} of the error of {simpler.name}."
        )
    return gained(_gain(fit.rows), sentence, "log loss")


def held_out_ratio(fit: Any) -> float | None:
    """Return the log loss of held-out rows over that of rows left out."""
    left_out = fit.run.sample
    return fit.run.held_out["log_loss"] / left_out["log_loss"] if left_out and left_out["log_loss"] > 0 else None


def cautions(fit: Any) -> Iterator[Caution]:
    """Say which classes are hardly ever recognised."""
    if fit.rows is None:
        return
    confusion = np.array(fit.rows["confusion"])
    own, totals = np.diag(confusion), confusion.sum(axis=1)
    missed = [k for k in range(len(own)) if totals[k] > 0 and own[k] < _FEW_FOUND * totals[k]]
    if not missed:
        return
    parts = [f"{_count(own[k])} of {_count(totals[k])} rows of {_name(fit, k)}" for k in missed[:_MOST_CLASSES]]
    remedy = "; a lower threshold finds more of them (fit --cost or --rate)" if len(own) == 2 else ""
    said = f"The most probable label recognises only {', '.join(parts)}{remedy}."
    yield Caution("rows of a class that are missed", said)


def sure(fit: Any) -> Answer | None:
    """Return how sure a prediction is, where that is known."""
    if fit.rows is None:
        return None
    covered, _, single = fit.rows["sets"]
    proved = "That is proved." if fit.model.calibration_.guaranteed else "That is an estimate, not a proof."
    sentence = (
        f"A prediction can be a set of labels that holds the right one for {COVERAGE:.0%} of new rows. {single:.0%} of "
        f"the sets have one label; others have several or none. Of {fit.which}, {covered:.1%} have their label "
        f"in the set. {proved}"
    )
    return Answer("How sure is a prediction?", "sure", f"one label for {single:.0%} of rows", sentence, None)


def errors(fit: Any) -> list[Html | None]:
    """Return the calibration plot, the confusion table and the errors of every class."""
    if fit.rows is None:
        path = getattr(fit.model, "ridge_path_", None)
        overall = "" if path is None else f"The log loss of rows left out is {float(path.loo_loss[path.chosen]):.4g}. "
        return [html.note(f"{overall}Errors of single classes are known with rows: report(path, X, y), or --test.")]
    return [
        html.paragraph(f"On {fit.which}: {quality.class_errors(fit.rows, fit.model.classes_)}."),
        _threshold(fit),
        *baselines_table(fit.model, fit.run),
        _calibration_figure(fit),
        _confusion(fit),
        _by_class(fit),
    ]


def intervals(fit: Any) -> list[Html | None]:
    """Return what sets of labels promise."""
    calibration = fit.model.calibration_
    promise = "their coverage is proved" if calibration.guaranteed else "coverage near what is asked, without a proof"
    return [
        figures.far_figure(fit.run.held_out, "log loss"),
        html.paragraph(
            f"A set of labels has every label whose probability is above a threshold. The threshold comes from "
            f"{len(calibration.scores):,} rows: {COVERAGE:.0%} of them have their own label above it. What sets "
            f"promise for new rows: {promise}, since {calibration.reason}."
        ),
    ]


def effects(fit: Any) -> list[Html | None]:
    """Return average effects on the log-odds as a table; with several classes those of the most important columns."""
    return [most_effects(fit, "on the log-odds")]


def rows(fit: Any) -> list[Html | None]:
    """Return the most influential rows."""
    return rows_of_run(fit, "probabilities")


def path_figure(fit: Any, path: Any) -> Html:
    """Return log losses over the ridges searched."""
    return figures.loss_path_figure(words.criterion(fit.model), path, "log loss")


def _gain(rows: Any) -> float:
    """Return how far the log loss is below that of the classes' shares, as a share of it."""
    entropy = quality.log_loss_of_shares(rows)
    return 1.0 - rows["log_loss"] / entropy if entropy > 0 else 0.0


def _name(fit: Any, place: int) -> str:
    return printable(str(fit.model.classes_[place]))[:24]


def _count(rows: Any) -> str:
    """Return a number of rows, or their weight, without an exponent."""
    return f"{rows:,.0f}" if rows >= 1000 else f"{rows:.4g}"


def _threshold(fit: Any) -> Html | None:
    """Return the threshold that was chosen for a cost or a rate, and what follows from it; None where none was."""
    chosen = fit.run.threshold
    if chosen is None:
        return None
    (_, false), (missed, right) = chosen["confusion"]
    name, others = _name(fit, 1), quality.OTHERS[words.left_out(fit.model)]
    cells = [
        [f"{chosen['threshold']:.4g}", f"{chosen['rate']:.1%}", *map(_count, (right, false, missed))]
        + [f"{chosen[share]:.1%}" for share in ("recall", "precision")]
    ]
    headings = ["threshold", f"rows called {name}", "rightly", "false alarms", "missed", "found (recall)", "precision"]
    caption = f"The probability from which on a row is called {name}: {chosen['reason']}; training rows, {others}"
    return html.table(caption, html.number_columns(*headings), cells, stacked=True)


def _calibration_figure(fit: Any) -> Html:
    """Return how often labels occur against their probability, in groups of rows."""
    chart = charts.calibration_chart(fit.model, fit.rows)
    of = charts.judged_label(fit.model)
    return figures.figure(
        chart,
        "calibration",
        f"{fit.rows['n_rows']:,} {fit.which}, in {len(chart.series[0].x)} groups by the probability {of}. On the "
        "diagonal, probabilities are what they say. Bars: two standard errors.",
    )


def _confusion(fit: Any) -> Html | None:
    """Return the counts of rows by label and most probable label; of many classes the most frequent confusions."""
    confusion, labels = np.array(fit.rows["confusion"]), [_name(fit, k) for k in range(len(fit.model.classes_))]
    if len(labels) <= _MOST_CLASSES:
        cells = [[label, *(_count(count) for count in row)] for label, row in zip(labels, confusion, strict=True)]
        columns = [Column("label"), *html.number_columns(*(f"as {label}" for label in labels))]
        caption = f"Labels (rows) and most probable labels (columns) of {fit.which}"
        return html.table(caption, columns, cells, stacked=len(labels) > 2)
    np.fill_diagonal(confusion, 0.0)
    largest = np.argsort(-confusion, axis=None, kind="stable")[:_MOST_CLASSES]
    pairs = [np.unravel_index(place, confusion.shape) for place in largest]
    cells = [[labels[j], labels[k], _count(confusion[j, k])] for j, k in pairs if confusion[j, k] > 0]
    columns = [Column("label"), Column("most probable"), *html.number_columns("rows")]
    return html.table(f"The most frequent confusions of {fit.which}", columns, cells, stacked=True) if cells else None


def _by_class(fit: Any) -> Html:
    """Return rows, recall, precision and log loss of every class."""
    confusion = np.array(fit.rows["confusion"])
    own, all_, said = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    cells = [
        [_name(fit, k), _count(all_[k])]
        + ["-" if whole == 0 else f"{own[k] / whole:.1%}" for whole in (all_[k], said[k])]
        + [f"{fit.rows['by_class'][k]:.3g}"]
        for k in range(len(own))
    ]
    columns = html.number_columns("rows", "found (recall)", "right when predicted (precision)", "log loss")
    return html.table(f"Errors of every class on {fit.which}", [Column("class"), *columns], cells, stacked=True)
