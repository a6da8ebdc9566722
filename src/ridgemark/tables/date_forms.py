"""The forms in which dates and times are written as text, and which of them a column has."""

import datetime as dt
import re
from collections.abc import Callable, Collection, Sequence

import numpy as np

from ridgemark.rows.base import Array
from ridgemark.rows.column import MOMENT, in_utc

_PLAIN_MOMENTS = re.compile(  # that NumPy reads, in UTC where they have a zone
    r"(?:(?!0000)\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?Z?)?\n)*", re.ASCII
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_FULL = r"(?:1[5-9]|2[01])\d\d"  # years from 1500 to 2199: other numbers may be parts of a code
_YEAR, _MONTH, _DAY = rf"(?P<year>{_FULL})", r"(?P<month>\d{1,2})", r"(?P<day>\d{1,2})"
_ANY_YEAR = rf"(?P<year>{_FULL}|(?<=/)\d\d|\d\d(?=/))"  # of two digits only beside a slash
_LAST_YEAR = rf"(?P<year>{_FULL}|(?<=-)\d\d)"  # or after the name of a month and a hyphen
_AFTER_HOUR = r":(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?P<fraction>[.,]\d{1,9})?)?(?: ?(?P<half>[ap])\.?m\.?)?"
_THEN = rf"(?:[T ](?P<hour>[01]?\d|2[0-3]){_AFTER_HOUR})?"  # a time after the date

_LOOKED_AT = 100  # texts, spread over all, that mostly tell whether a form is theirs
ISO, _YEAR_FIRST, _MONTHLY, CLOCK = "2024-12-31", "2024/12/31", "2024-12", "23:59"
_PATTERNS = {  # by an example
    ISO: r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?( ?(Z|[+-]\d\d:?\d\d))?)?",
    "12/31/2024": rf"{_MONTH}(?P<mark>[/-]){_DAY}(?P=mark){_ANY_YEAR}{_THEN}",
    "31/12/2024": rf"{_DAY}(?P<mark>[/.-]){_MONTH}(?P=mark){_ANY_YEAR}{_THEN}",
    _YEAR_FIRST: rf"{_ANY_YEAR}(?P<mark>[/-]){_MONTH}(?P=mark){_DAY}{_THEN}",
    "2024.12.31": rf"{_YEAR}\.(?P<month>\d\d)\.(?P<day>\d\d){_THEN}",
    _MONTHLY: rf"{_YEAR}[-/](?P<month>\d\d)",
    "31 Dec 2024": rf"{_DAY}[ -]?{_NAME},?[ -]?{_LAST_YEAR}{_THEN}",
    "Dec 31, 2024": rf"{_NAME} ?{_DAY},? {_YEAR}{_THEN}",
    "Dec 2024": rf"{_NAME},?[ -]{_YEAR}",
    "2024 Dec": rf"{_YEAR}[ -]{_NAME}",
    "2024 Q4": rf"{_YEAR}[ -]?Q(?P<quarter>[1-4])",
    "2024 W52": rf"{_YEAR}[ -]W(?P<week>\d{{1,2}})",
    CLOCK: rf"(?P<hour>\d{{1,3}}){_AFTER_HOUR}",  # from the start of 1970 on
}
FORMS = {form: re.compile(pattern, re.ASCII | re.IGNORECASE) for form, pattern in _PATTERNS.items()}
FULL_FORMS = [form for form in FORMS if form not in (_MONTHLY, CLOCK)]  # that other text hardly has


def forms_of(texts: Sequence[str] | Array) -> list[str]:
    """Return the forms in which all texts are dates: several where the order of day and month cannot be told.

    A table by months has many dates that are all the first of a month: more than twelve decide the order.
    """
    read, some = {}, texts[:: 1 + len(texts) // _LOOKED_AT]
    for form in FORMS:
        if any(np.isnat(read_dates(few, form)).any() for few in (texts[:1], some)):  # mostly the first one tells
            continue
        dates = read_dates(texts, form)
        if not np.isnat(dates).any() and _is_plausible(texts, dates, form):
            read[form] = dates
        if ISO in read:
            return [ISO]
    if len(read) > 1:
        read.pop(_YEAR_FIRST, None)  # of two digits, which is rare
    firsts = [form for form, dates in read.items() if _by_months(dates)]
    return firsts if len(firsts) == 1 else list(read)


def read_dates(texts: Sequence[str] | Array, form: str) -> Array:
    """Return texts as moments; NaT marks text that is not a date in this form or in that of ISO."""
    stripped = [text.strip() for text in texts]
    if (plain := _plain_moments(stripped)) is not None:
        return plain
    dates = np.full(len(stripped), "NaT", MOMENT)
    if form != ISO:
        matches = {k: match for k, text in enumerate(stripped) if (match := FORMS[form].fullmatch(text))}
        dates[list(matches)] = _composed(list(matches.values()), FORMS[form].groupindex)
    for k in np.flatnonzero(np.isnat(dates)).tolist():
        dates[k] = _iso(stripped[k])
    return dates


def _is_plausible(texts: Sequence[str] | Array, dates: Array, form: str) -> bool:
    """Return whether texts in a short form are dates: not seasons such as 2008/09, and not ratios such as 1:10."""
    if form == _MONTHLY:
        months = dates.astype("M8[M]").astype(int)
        return bool((months % 12 + 1 != (months // 12 + 1971) % 100).any())
    return form != CLOCK or max(map(len, texts)) > len("1:10")


def _by_months(dates: Array) -> bool:
    """Return whether more than twelve days are all the first of a month, without a time."""
    first = bool((dates == dates.astype("M8[M]")).all())
    return first and len(np.unique(dates)) > len(_MONTHS)


def _plain_moments(texts: list[str]) -> Array | None:
    """Return texts as moments, five times faster than one by one; None if one has another form or does not exist."""
    lines = "\n".join([*texts, ""])
    if not _PLAIN_MOMENTS.fullmatch(lines) or lines.count("\n") != len(texts):
        return None
    try:
        return np.array(lines.replace("Z", "").splitlines(), dtype=MOMENT)
    except ValueError:  # no such day
        return None


def _iso(text: str) -> dt.datetime | None:
    if FORMS[ISO].fullmatch(text):
        try:
            return in_utc(dt.datetime.fromisoformat(text.upper().replace(" +", "+").replace(" -", "-")))
        except (ValueError, OverflowError):  # no such day, or outside the years 1 to 9999
            pass
    return None


def _composed(matches: Sequence[re.Match[str]], names: Collection[str]) -> Array:
    """Return the moments of the named parts of texts, of a month, quarter or week its first day; NaT for no such day.

    Years of two digits are those from 1930 to 2029, as in spreadsheets.
    """

    def part(name: str, default: int, number: Callable[[str], int] = int) -> Array:
        if name not in names:
            return np.full(len(matches), default)
        return np.array([number(match[name]) if match[name] else default for match in matches], dtype=np.int64)

    year = part("year", 1970)
    year += np.where(year >= 100, 0, np.where(year >= 30, 1900, 2000))
    month = (
        part("month", 1)
        + part("name", 0, lambda name: _MONTHS.index(name[:3].lower()))
        + 3 * part("quarter", 0, lambda quarter: int(quarter) - 1)
    )
    hour, half = part("hour", 0), part("half", 0, lambda half: 1 + (half.lower() == "p"))
    months = (year - 1970).astype("M8[Y]").astype("M8[M]") + (month - 1).astype("m8[M]")
    days = months.astype("M8[D]") + (part("day", 1) - 1).astype("m8[D]")
    exists = (month >= 1) & (month <= 12) & (days.astype("M8[M]") == months)
    exists &= (half == 0) | ((hour >= 1) & (hour <= 12))
    if "week" in names:  # the first has the fourth of January, and weeks have the year of their Thursday
        three = np.timedelta64(3, "D")
        since_monday = (days.astype(np.int64) + 6) % 7  # of the fourth
        days += three + (7 * (part("week", 1) - 1) - since_monday).astype("m8[D]")
        exists &= (days + three).astype("M8[Y]") == months.astype("M8[Y]")
    hour = np.where(half > 0, hour % 12 + 12 * (half - 1), hour)
    seconds = 3600 * hour + 60 * part("minute", 0) + part("second", 0)
    microseconds = part("fraction", 0, lambda digits: int(digits[1:7].ljust(6, "0")))
    of_day = (10**6 * seconds + microseconds).astype("m8[us]")
    return np.where(exists, days.astype(MOMENT) + of_day, np.datetime64("NaT", "us"))
