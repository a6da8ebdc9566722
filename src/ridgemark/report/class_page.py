"""The parts of the page of a fit that differ for classes: errors of labels, sets of labels, and influential rows."""

from typing import Any

import numpy as np

from ridgemark.report import page as html
from ridgemark.report.fit_figures import draw_path
from ridgemark.report.fit_words import COVERAGE, how_much, printable
from ridgemark.report.page import Answer, Column, Html
from ridgemark.report.plots import Chart, Series, draw

TONES: dict[str, html.Tone] = {"most of it": "good", "part of it": "open", "hardly anything": "bad"}
_MOST_CLASSES = 12  # in a confusion table
_INFLUENCE = {"row": "d", "leverage": ".3f", "probability": ".3g", "cook_distance": ".2e"}


def class_answers(fit: Any) -> list[Answer | None]:
    """Return how good and how sure a fit of classes is, where that is known."""
    rows, which = fit.rows, fit.which
    if rows is None:
        return [None, None]
    confusion = np.array(rows["confusion"])
    shares = confusion.sum(axis=1) / confusion.sum()
    guessed, gain = int(shares.argmax()), _gain(rows)
    sentence = (
        f"The share of {rows['n_rows']:,} {which} whose label is the most probable one. The most frequent label, "
        f"{_name(fit, guessed)}, is that of {shares[guessed]:.1%}. The log loss is {rows['log_loss']:.3g}, "
        f"{gain:.0%} below that of the classes' shares."
    )
    good = Answer("How good is it?", "good", f"{rows['accuracy']:.1%} of labels right", sentence, TONES[how_much(gain)])
    covered, size, single = rows["sets"]
    sentence = (
        f"For so many rows one label alone is probable enough. Others have several or none, {size:.3g} on average over "
        f"all rows. These sets of labels should hold the right one for {COVERAGE:.0%} of new rows, and hold that of "
        f"{covered:.1%} of {which}."
    )
    sentence += (
        " The coverage is proved." if fit.model.calibration_.guaranteed else " This is an estimate, not a proof."
    )
    return [good, Answer("How sure is a prediction?", "sure", f"one label for {single:.0%} of rows", sentence, None)]


def class_errors(fit: Any) -> list[Html]:
    """Return the calibration plot, the confusion table and the errors of every class."""
    if fit.rows is None:
        return [html.note("The errors of this model are not known; give rows with --test.")]
    return [_calibration_figure(fit), *_confusion(fit), _by_class(fit)]


def class_sets(fit: Any) -> list[Html]:
    """Return what sets of labels promise."""
    known = fit.model.calibration_
    promise = "their coverage is proved" if known.guaranteed else "coverage near what is asked, without a proof"
    return [
        html.paragraph(
            f"Sets of labels take their threshold from the probabilities of the own label of {len(known.scores):,} "
            f"rows. What they promise: {promise}, since {known.reason}."
        )
    ]


def class_rows(fit: Any) -> list[Html]:
    """Return the most influential rows."""
    if not (fit.run.sample or {}).get("top"):
        return [html.note("The rows of the fit are not known; `diagnose(X, y)` in Python finds the influential ones.")]
    numbers = html.number_columns("row", "leverage", "probability of its label", "Cook's distance")
    rows = [
        [format(one[name], form) for name, form in _INFLUENCE.items()]
        + [printable(str(one["label"])), "yes" if one["landmark"] else "no", str(one["why"])]
        for one in fit.run.sample["top"]
    ]
    caption = "The most influential rows, numbered from 0; probabilities are those of a fit to the other rows"
    columns = [*numbers, Column("label"), Column("landmark"), Column("why")]
    return [html.table(caption, columns, rows, stacked=True)]


def loss_path_figure(path: Any) -> Html:
    """Return log losses over the ridges searched."""
    ridges, losses = path.ridges.tolist(), path.loo_loss.tolist()
    picked = ridges[path.chosen]
    return html.figure(
        draw_path("log loss", "leave-one-out", ridges, losses, path.training_loss.tolist(), [path.chosen]),
        f"Log loss against lambda from {min(ridges):.2g} to {max(ridges):.2g}: the leave-one-out loss is "
        f"{losses[path.chosen]:.3g} at the chosen lambda {picked:.3g}.",
        f"The lambdas tried: leave-one-out chose {picked:.3g}. The training loss is not an estimate for new rows.",
    )


def _gain(rows: Any) -> float:
    """Return how far the log loss is below that of the classes' shares, as a share of it."""
    shares = np.array(rows["confusion"]).sum(axis=1)
    shares = shares[shares > 0] / shares.sum()
    entropy = -float(shares @ np.log(shares))
    return 1.0 - rows["log_loss"] / entropy if entropy > 0 else 0.0


def _name(fit: Any, place: int) -> str:
    return printable(str(fit.model.classes_[place]))[:24]


def _count(rows: Any) -> str:
    """Return a number of rows, or their weight, without an exponent."""
    return f"{rows:,.0f}" if rows >= 1000 else f"{rows:.4g}"


def _calibration_figure(fit: Any) -> Html:
    """Return how often labels occur against their probability, in groups of rows."""
    p, share, count = np.array(fit.rows["calibration"]).T
    spread = 2.0 * np.sqrt(p * (1.0 - p) / count)
    low, high = (np.clip(share + side * spread, 0.0, 1.0).tolist() for side in (-1, 1))
    series = Series("observed", p.tolist(), share.tolist(), low, high, kind="points")
    two = len(fit.model.classes_) == 2
    of = f"of {_name(fit, 1)}" if two else "of the most probable label"
    listed = ", ".join(f"{a:.2f} and {b:.2f}" for a, b in zip(p, share, strict=True))
    return html.figure(
        draw(Chart(f"probability {of}", "share of rows", [series], diagonal="calibrated"), "calibration"),
        f"Probability {of} against how often it was right, in {len(p)} groups of rows: {listed}.",
        f"{fit.rows['n_rows']:,} {fit.which}, in {len(p)} groups by the probability {of}. On the diagonal, "
        "probabilities are what they say. Bars: two standard errors.",
    )


def _confusion(fit: Any) -> list[Html]:
    """Return the counts of rows by label and most probable label; of many classes the most frequent confusions."""
    confusion, labels = np.array(fit.rows["confusion"]), [_name(fit, k) for k in range(len(fit.model.classes_))]
    if len(labels) <= _MOST_CLASSES:
        cells = [[label, *(_count(count) for count in row)] for label, row in zip(labels, confusion, strict=True)]
        columns = [Column("label"), *html.number_columns(*(f"as {label}" for label in labels))]
        return [html.table(f"Labels (rows) and most probable labels (columns) of {fit.which}", columns, cells)]
    np.fill_diagonal(confusion, 0.0)
    largest = np.argsort(-confusion, axis=None, kind="stable")[:_MOST_CLASSES]
    pairs = [np.unravel_index(place, confusion.shape) for place in largest]
    cells = [[labels[j], labels[k], _count(confusion[j, k])] for j, k in pairs if confusion[j, k] > 0]
    columns = [Column("label"), Column("most probable"), *html.number_columns("rows")]
    return [html.table(f"The most frequent confusions of {fit.which}", columns, cells, stacked=True)] if cells else []


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
