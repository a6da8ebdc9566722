"""A map of columns that a kernel applies to rows first: bounded outside a range, soft where tails are long."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgemark.backends import Array, Backend, Flags, backend_of
from ridgemark.errors import ParameterError
from ridgemark.parameters import Parameterised

_BEND = 4.0  # widths from the centre at which a soft column is halfway to its bound, in the square


class ColumnMap(Parameterised):
    """`x -> t(min(max(x, low), high))` for every column, with t the identity, or for a soft column a bounded curve.

    With z the distance from the centre in widths, `t = centre + width z/sqrt(1 + (z/4)^2)`: a line in the middle, and
    at most four widths from the centre. IEEE arithmetic rounds every operation here correctly, so that the map of a row
    is the same in every block and on every device. The kernel is a function of the mapped rows as they are rounded, so
    rounding in the map is not an error of its values.

    Parameters
    ----------
    low, high : array of shape (n_features,)
        The range outside which a column is constant.
    centre, width : array of shape (n_features,), optional
        Centre and width of soft columns; a width of 0 marks a column that is not soft.
    """

    def __init__(self, low: Any, high: Any, centre: Any = None, width: Any = None) -> None:
        self.low = low
        self.high = high
        self.centre = centre
        self.width = width

    def apply(self, rows: Array) -> Array:
        """Return the mapped rows."""
        backend = backend_of(rows)
        low, high, centre, width = self._arrays(rows, backend)
        xp = backend.xp
        inside = xp.where(rows < low, low, xp.where(rows > high, high, rows))
        if width is None:
            return inside
        step = xp.where(width > 0.0, width, 1.0)
        z = (inside - centre) / step
        soft = centre + step * (z / xp.sqrt(1.0 + (z / _BEND) ** 2))
        return xp.where(width > 0.0, soft, inside)

    def slopes(self, rows: Array) -> Array:
        """Return the derivative of every column's map at every row; zero outside the range."""
        backend = backend_of(rows)
        low, high, centre, width = self._arrays(rows, backend)
        xp = backend.xp
        inside = xp.astype((rows >= low) & (rows <= high), rows.dtype)
        if width is None:
            return inside
        z = (xp.where(rows < low, low, xp.where(rows > high, high, rows)) - centre) / xp.where(width > 0.0, width, 1.0)
        return inside * xp.where(width > 0.0, (1.0 + (z / _BEND) ** 2) ** -1.5, 1.0)

    def _arrays(self, rows: Array, backend: Backend) -> tuple[Any, ...]:
        """Return the four arrays in the rows' precision; centre and width may be None."""
        given = [None if one is None else np.asarray(one, dtype=np.float64) for one in self._all()]
        for name, one in zip(("low", "high", "centre", "width"), given, strict=True):
            if one is not None and one.shape != (rows.shape[1],):
                raise ParameterError(
                    f"ColumnMap: {name} must hold one number for each of the {rows.shape[1]} columns, "
                    f"got shape {one.shape}"
                )
        return tuple(None if one is None else backend.from_host(one, like=rows) for one in given)

    def _all(self) -> tuple[Any, ...]:
        return self.low, self.high, self.centre, self.width

    @property
    def soft(self) -> Flags:
        """Which columns are soft."""
        return np.zeros(len(self.low)) > 0.0 if self.width is None else np.asarray(self.width) > 0.0
