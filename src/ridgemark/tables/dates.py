"""Dates and times as numbers: the year, cycles of the year and of the day, and the time elapsed."""

import numpy as np

from ridgemark.backends import Floats
from ridgemark.rows.base import Array

ELAPSED = "elapsed days"
PARTS = ("year", "day of year sin", "day of year cos", "time of day sin", "time of day cos", ELAPSED)
LATEST = 2.0**63 / 1e6  # seconds since 1970, which 64 bits count in microseconds
_DAY = 86_400.0  # seconds


def date_parts(moments: Array, origin: float) -> Floats:
    """Return the parts (n, 6) of moments, none of them missing.

    With d the day of the year from 0, D the days of this year and s the seconds of the day:
    `(year, sin 2 pi d/D, cos 2 pi d/D, sin 2 pi s/86400, cos 2 pi s/86400, days since the origin)`.
    """
    days, years = moments.astype("datetime64[D]"), moments.astype("datetime64[Y]")
    first, following = (year.astype("datetime64[D]") for year in (years, years + np.timedelta64(1, "Y")))
    of_year = (days - first) / (following - first)
    of_day = (moments - days) / np.timedelta64(1, "D")
    angles = 2.0 * np.pi * np.stack([of_year, of_day])
    elapsed = days.astype(np.int64) + of_day - origin / _DAY
    sines, cosines = np.sin(angles), np.cos(angles)
    year = years.astype(np.int64) + 1970.0
    return np.stack([year, sines[0], cosines[0], sines[1], cosines[1], elapsed], axis=1)


def seconds(moment: np.datetime64) -> float:
    """Return whole seconds since 1970, which a float holds exactly."""
    return float(moment.astype("datetime64[s]").astype(np.int64))


def moment(since_1970: float) -> np.datetime64:
    """Return the moment so many seconds after the start of 1970."""
    return np.datetime64(int(since_1970), "s")
