"""Text that is a number or a date in a form that a fit does not read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ridgemark.rows.base import Array
from ridgemark.tables.date_forms import FULL_FORMS, forms_of
from ridgemark.tables.values import not_of_kind

_SIGN = r"[-+(]?\s?"
_DIGITS = r"\d[\d.,'\u00a0 ]*"
_CURRENCY = r"(?:[$€£¥₹]|[A-Z]{3}|US ?[$])"
_FORMS = {
    "money": re.compile(rf"{_SIGN}{_CURRENCY}\s?{_SIGN}{_DIGITS}[kKmMbB]?\)?|{_SIGN}{_DIGITS}\s?[kKmM]?\s?{_CURRENCY}"),
    "per cent": re.compile(rf"{_SIGN}{_DIGITS}\s?[%‰]"),
    "numbers with thousands separators": re.compile(r"[-+]?\d{1,3}([,' ]\d{3})+(\.\d+)?"),
}
_WITH_UNIT = re.compile(r"[-+]?\d[\d.,]*\s?[^\W\d_][^\d\s]{0,5}")
_FEWEST_NUMBERS = 5  # different texts that are numbers with a unit; fewer are names, such as "2 doors" and "4 doors"
_LOOKED_AT = 2000  # texts
_MOSTLY = 0.9  # share of texts in several forms of dates


@dataclass(frozen=True)
class TextKind:
    """What most of the texts of a column are, and an example; `others` are those of another form."""

    what: str
    example: str
    others: tuple[str, ...] = ()


def kind_of_text(levels: Sequence[str]) -> TextKind | None:
    """Return what texts are if most are amounts, measurements, numbers or dates; None for other text."""
    step = 1 + len(levels) // _LOOKED_AT
    texts = [str(level).strip() for level in levels[::step]]
    return _amount(texts) or _measurement(texts) or _number(texts) or _dates(texts)


def _amount(texts: list[str]) -> TextKind | None:
    for what, form in _FORMS.items():
        matching = [text for text in texts if form.fullmatch(text)]
        if 2 * len(matching) > len(texts):
            return TextKind(f"{what} as text", matching[0])
    return None


def _measurement(texts: list[str]) -> TextKind | None:
    matching = [text for text in texts if _WITH_UNIT.fullmatch(text)]
    units = {re.sub(r"[-+\d.,\s]", "", text).lower() for text in matching}
    if len(matching) > _MOSTLY * len(texts) and len(matching) >= _FEWEST_NUMBERS and len(units) <= 2:
        return TextKind("numbers with a unit", matching[0])
    return None


def _number(texts: list[str]) -> TextKind | None:
    other = not_of_kind("number", texts)
    if 2 * other.sum() >= len(texts) or not other.any():
        return None
    return TextKind("numbers", texts[int(np.argmin(other))], tuple(_at(texts, other)))


def _dates(texts: list[str]) -> TextKind | None:
    """Return the kind of dates in several forms, in one form with other text, or with an order that is not clear."""
    if not any(any(character.isdigit() for character in text) for text in texts[:20]):
        return None
    read = {form: ~not_of_kind(form, texts) for form in FULL_FORMS}
    best = max(read, key=lambda form: int(read[form].sum()))
    in_any = np.any(list(read.values()), axis=0)
    if in_any.sum() > _MOSTLY * len(texts) and not read[best].all():
        others = _at(texts, ~read[best])
        return TextKind("dates in several forms", texts[int(np.argmax(read[best]))], tuple(others))
    if not read[best].all() and 2 * read[best].sum() > len(texts):
        return TextKind("dates", texts[int(np.argmax(read[best]))], tuple(_at(texts, ~read[best])))
    if len(forms := forms_of(texts)) > 1:
        return TextKind(f"dates that may be written as {' or '.join(forms)}", texts[0])
    return None


def _at(texts: list[str], which: Array) -> list[str]:
    return [texts[k] for k in np.flatnonzero(which)]
