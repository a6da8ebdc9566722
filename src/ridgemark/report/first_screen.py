"""The first screen of the page of a fit: what it is, how good, beside what, what matters, and what to mistrust."""

from collections.abc import Sequence
from typing import Any

from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality
from ridgemark.report.cautions import Caution
from ridgemark.report.page import Answer
from ridgemark.report.writing import printable, shortened
from ridgemark.rows.places import as_written

NOTHING_SEEN = "None of the checks of the fit and its errors found anything."
_FEW = 3  # columns named
_LABELS = 4  # cautions named


def lead(fit: Any) -> str:
    """Return what was fitted to what, in a sentence."""
    model, run = fit.model, fit.run
    names = ", ".join(run.target_names or ()) or "The target"
    if words.predicts(model) == "classes":  # whose functions are named after the labels too
        named = [str(key) for key in run.target or ()] or [name.split("=")[0] for name in run.target_names or ()][:1]
        names = f"{', '.join(named) or 'The target'} ({len(model.classes_)} classes)"
    count = words.n_columns(model)
    rows = "" if run.n_rows is None else f" of {run.n_rows:,} rows"
    said = f"{printable(names)}, predicted from {count:,} column{'s' * (count != 1)}{rows} by {type(model).__name__}."
    if (n_groups := getattr(model, "n_groups_", None)) is None:
        return said
    return f"{said} The rows form {n_groups:,} groups: errors and intervals are those of rows of a new group."


def answers(fit: Any, cautions: Sequence[Caution]) -> list[Answer]:
    """Return the questions of a first look, with short answers; without those that the model cannot answer."""
    parts = fit.parts
    cards = (parts.good(fit), _beside(fit), _matters(fit.model), parts.sure(fit), _mistrust(cautions), _close(fit))
    return [card for card in cards if card is not None]


def _beside(fit: Any) -> Answer | None:
    """Return how much smaller the error is than that of the best simple model, or of a constant."""
    compared = quality.baselines(fit.model)
    if not compared or words.predicts(fit.model) == "classes":
        return fit.parts.beside(fit)
    ours, *simpler = compared
    best = min(simpler, key=lambda model: model.judged)
    gain = 1.0 - ours.judged / best.judged if best.judged > 0 else 0.0
    unit, said = _unit(fit)
    sizes = [f"{as_written(entry.judged * unit, 3)} for {entry.name}" for entry in compared]
    sentence = (
        f"Than {best.name}. On {fit.model.tuning_.n_judging:,} rows that none was fitted to, the typical error (RMS"
        f"{said}) is {', '.join(sizes[:-1])} and {sizes[-1]}."
    )
    if (boosting := quality.boosting_words(fit.run)) is not None:
        sentence += f" Gradient boosting: {boosting}."
    return gained(gain, sentence)


def gained(gain: float, sentence: str, what: str = "error") -> Answer:
    """Return the answer beside a simpler model, whose error or loss is larger by this share of its own."""
    short = f"{gain:.0%} less {what}" if gain >= 0.005 else "no better"
    tone = quality.tone(1.0 - (1.0 - gain) ** 2 if gain > 0 else 0.0)
    return Answer("Better than a simple model?", "good", short, sentence, tone)


def _unit(fit: Any) -> tuple[float, str]:
    """Return what errors in standard deviations are multiplied by, and the words for the unit."""
    in_units = (
        words.predicts(fit.model) == "numbers" and len(fit.targets) == 1 and words.transform_of(fit.model) is None
    )
    if in_units and fit.spread[0]:
        return fit.spread[0], ""
    return 1.0, f", in {quality.unit_words(fit.model)}"


def _matters(model: Any) -> Answer | None:
    largest = words.important_columns(model, _FEW)
    if not largest:
        return None
    names = [f"{shortened(printable(name))} ({share:.0%})" for name, share in largest]
    sentence = (
        f"The predictions vary most with {', '.join(names)}. These importances sum to 100% over all "
        f"{words.n_columns(model):,} columns."
    )
    return Answer("What matters?", "columns", shortened(printable(largest[0][0])), sentence, None)


def _mistrust(cautions: Sequence[Caution]) -> Answer:
    """Return how many cautions there are, and what the first ones are about."""
    if not cautions:
        return Answer("What to mistrust?", "mistrust", "nothing seen", NOTHING_SEEN, "good")
    labels = [caution.label for caution in cautions[:_LABELS]]
    more = f", and {len(cautions) - _LABELS} more" if len(cautions) > _LABELS else ""
    count = f"{len(cautions)} point{'s' * (len(cautions) > 1)}"
    return Answer("What to mistrust?", "mistrust", count, f"Look at: {', '.join(labels)}{more}.", "open")


def _close(fit: Any) -> Answer | None:
    certificate, distance = fit.certificate, promises.distance_words(fit.model) or ""
    if certificate is None:
        if not distance:
            return None
        short = f"within {promises.reached(fit.model)}"  # a fit of all rows, refined to a tolerance
        return Answer("How close to exact?", "exact", short, f"Proved: predictions are {distance}.", "good")
    if certificate.vacuous:
        return Answer("How close to exact?", "exact", "not known", f"{distance[0].upper()}{distance[1:]}.", "open")
    near = fit.parts.nearness(fit)
    count, every = fit.model.n_landmarks_, fit.model.landmark_count_.rule.startswith("all ")
    used = f"All {count:,} distinct rows are landmarks." if every else f"The fit computes with {count:,} landmarks."
    sentence = f"{used} Proved: {near.subject} {distance}."
    sentence += " More landmarks would not change the predictions noticeably." if near.negligible and not every else ""
    return Answer("How close to exact?", "exact", near.short, sentence, "good" if near.close else "open")
