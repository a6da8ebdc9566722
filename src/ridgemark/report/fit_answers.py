"""The first screen of the page of a fit: how good, what matters, how sure, how close to exact, with a sentence each."""

from typing import Any

import numpy as np

from ridgemark.certificates.record import rounded_up
from ridgemark.report.class_page import TONES, class_answers
from ridgemark.report.fit_words import COVERAGE, distance_words, how_much, important_columns, n_columns, printable
from ridgemark.report.page import Answer

_CLOSE = 0.1  # fraction of the leave-one-out error; a smaller distance to exact does not matter
_FEW = 3  # columns named


def fit_answers(fit: Any) -> list[Answer]:
    """Return the answers that are known of a fit, in the order of the sections they link to."""
    good, sure = class_answers(fit) if hasattr(fit.model, "classes_") else (_good(fit), _sure(fit))
    found = [good, _matters(fit.model), sure, _close(fit)]
    return [answer for answer in found if answer is not None]


def _good(fit: Any) -> Answer | None:
    known = [k for k, share in enumerate(fit.explained) if share is not None]
    if not known:
        return None
    worst = min(known, key=lambda k: fit.explained[k])
    share, name = fit.explained[worst], printable(fit.targets[worst])
    which = " (the worst of the targets)" if len(known) > 1 else ""
    sentence = (
        f"The share of the variance of {name}{which} that is explained when each row is predicted from the others. The "
        f"typical error is {fit.loo[worst]:.3g}; {name} itself varies by {fit.spread[worst]:.3g}."
    )
    if fit.run.held_out is not None:
        held_out = fit.run.held_out
        sentence += f" On {held_out['n_rows']:,} held-out rows the error is {held_out['rms'][worst]:.3g}."
    return Answer("How good is it?", "good", f"{max(share, 0.0):.1%} explained", sentence, TONES[how_much(share)])


def _matters(model: Any) -> Answer | None:
    largest = important_columns(model, _FEW)
    if not largest:
        return None
    names = [f"{printable(name)[:24]} ({share:.0%})" for name, share in largest]
    sentence = (
        f"Of {n_columns(model)} columns the predictions vary most with {', '.join(names)}; in brackets the share "
        "of the variation."
    )
    return Answer("What matters?", "columns", printable(largest[0][0])[:24], sentence, None)


def _sure(fit: Any) -> Answer | None:
    rows = fit.rows
    if rows is None or "lower" not in rows or not hasattr(fit.model, "calibration_"):
        return None
    half = float(np.median(np.subtract(rows["upper"][0], rows["lower"][0]))) / 2
    sentence = (
        f"A typical interval reaches this far on both sides. Intervals should hold {COVERAGE:.0%} of new observations; "
        "they are wider where errors are larger."
    )
    if fit.run.held_out is not None:
        sentence += f" Of the held-out rows {fit.run.held_out['coverage'][0]:.1%} lie inside their interval."
    guaranteed = fit.model.calibration_.guaranteed
    sentence += f" At least {2 * COVERAGE - 1:.0%} is proved." if guaranteed else " This is an estimate, not a proof."
    return Answer("How sure is a prediction?", "sure", f"about ± {half:.3g}", sentence, None)


def _close(fit: Any) -> Answer | None:
    certificate = fit.certificate
    if certificate is None:
        return None
    words = distance_words(fit.model) or ""
    if certificate.vacuous:
        return Answer("How close to exact?", "exact", "not known", f"{words[0].upper()}{words[1:]}.", "open")
    bounds = np.broadcast_to(certificate.bound, len(fit.loo))
    close = all(loo is not None and bound <= _CLOSE * loo for bound, loo in zip(bounds, fit.loo, strict=True))
    count, every = fit.model.n_landmarks_, fit.model.landmark_count_.rule.startswith("all ")
    used = f"All {count:,} distinct rows are landmarks." if every else f"The fit computes with {count:,} landmarks."
    sentence = f"{used} Proved: its fitted values are {words}."
    sentence += " More landmarks would not change the predictions noticeably." if close and not every else ""
    short = f"within {rounded_up(np.max(certificate.bound))}"
    return Answer("How close to exact?", "exact", short, sentence, "good" if close else "open")
