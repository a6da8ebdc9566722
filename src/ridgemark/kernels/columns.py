"""A map of columns that a kernel applies to rows first: constant outside a range, bounded for long-tailed columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from ridgemark.backends import Array, Flags, Floats, backend_of
from ridgemark.errors import ParameterError
from ridgemark.parameters import Parameterised

BEND = 4.0  # widths from the centre at which the square of the curve is half the square of its bound
LIMIT = 2.0**30  # widths from the centre beyond which the curve is its bound to the last digit


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
        xp, inside, z, centre, width = self._inside(rows)
        if width is None:
            return inside
        soft = centre + width * (z / xp.sqrt(1.0 + (z / BEND) ** 2))
        return xp.where(width > 0.0, soft, inside)

    def slopes(self, rows: Array) -> Array:
        """Return the derivative of every column's map at every row; zero outside the range."""
        xp, inside, z, _, width = self._inside(rows)
        slopes = xp.astype(inside == rows, rows.dtype)
        return slopes if width is None else slopes * xp.where(width > 0.0, (1.0 + (z / BEND) ** 2) ** -1.5, 1.0)

    def _inside(self, rows: Array) -> tuple[Any, ...]:
        """Return rows within the range, their distances from the centre in widths, and centre and width."""
        backend = backend_of(rows)
        xp = backend.xp
        with np.errstate(over="ignore"):
            arrays = (
                None if array is None else backend.from_host(array, like=rows) for array in self._numbers(rows.shape[1])
            )
            low, high, centre, width = arrays
            inside = xp.where(rows < low, low, xp.where(rows > high, high, rows))
            if width is None:
                return xp, inside, None, None, None
            z = (inside - centre) / xp.where(width > 0.0, width, 1.0)
        return xp, inside, backend.within(z, -LIMIT, LIMIT), centre, width

    def _numbers(self, n_features: int) -> list[Floats | None]:
        """Return the four parameters, checked."""
        numbers = [_per_column(name, getattr(self, name), n_features) for name in ("low", "high", "centre", "width")]
        low, high, centre, width = numbers
        if low is None or high is None or not (low <= high).all():
            raise ParameterError("ColumnMap: low must be at most high in every column, and both be given")
        if (centre is None) != (width is None):
            raise ParameterError("ColumnMap: centre and width must be given together")
        if centre is not None and not np.isfinite(centre).all():
            raise ParameterError(f"ColumnMap: centre must be finite, got {centre.tolist()}")
        if width is not None and not ((width >= 0.0) & (width < np.inf)).all():
            raise ParameterError(f"ColumnMap: width must be finite and at least 0, got {width.tolist()}")
        return numbers

    @property
    def soft(self) -> Flags:
        """Which columns are soft."""
        return np.zeros(len(self.low)) > 0.0 if self.width is None else np.asarray(self.width) > 0.0


def _per_column(name: str, value: Any, n_features: int) -> Floats | None:
    """Return a parameter as one number for each column, or None where it is not given."""
    if value is None:
        return None
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(())
    if numbers.shape == (n_features,):
        return numbers
    raise ParameterError(
        f"ColumnMap: {name} must hold one number for each of the {n_features} columns, got "
        + (f"shape {np.shape(value)}" if numbers.ndim else repr(value))
    )
