"""How a model does on the future: fitted to the past, and tested on the rows that follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from ridgemark.backends import Floats, Indices
from ridgemark.errors import DataError, ParameterError
from ridgemark.parameters import check_flags, positive_count
from ridgemark.rows.columns import as_array
from ridgemark.rows.places import as_written


@dataclass(frozen=True, eq=False)
class Window:
    """One stretch of time, predicted from the rows before it.

    Attributes
    ----------
    begin, end : scalar
        The first and the last time of its rows.
    rows : array of shape (m,)
        Their numbers.
    n_past : int
        Number of rows that the model was fitted to.
    rms : array of shape (n_targets,)
        Root mean squared error on the rows.
    expected : array of shape (n_targets,) or None
        The error that the fit to the past shows: the RMS of its `loo_residuals_`.
    coverage : array of shape (n_targets,) or None
        Share of the rows inside their intervals; None for a model without intervals.
    predicted : array of shape (m, n_targets)
        The predictions.
    """

    begin: Any
    end: Any
    rows: Indices
    n_past: int
    rms: Floats
    expected: Floats | None
    coverage: Floats | None
    predicted: Floats


@dataclass(frozen=True, eq=False)
class Forward:
    """Errors and coverage of predictions of the future, window by window; prints as a table.

    Attributes
    ----------
    windows : tuple of Window
        In the order of time.
    asked : float
        The coverage that was asked for.
    """

    windows: tuple[Window, ...]
    asked: float

    @property
    def rms(self) -> Floats:
        """Root mean squared error over the rows of all windows, shape (n_targets,)."""
        sizes = np.array([len(window.rows) for window in self.windows])
        return np.sqrt(np.average([window.rms**2 for window in self.windows], axis=0, weights=sizes))

    @property
    def coverage(self) -> Floats | None:
        """Share of the rows of all windows inside their intervals, shape (n_targets,); None without intervals."""
        shares = [window.coverage for window in self.windows if window.coverage is not None]
        sizes = [len(window.rows) for window in self.windows if window.coverage is not None]
        return np.average(shares, axis=0, weights=sizes) if shares else None

    def write_page(self, path: Any) -> Path:
        """Write an HTML page that shows errors and coverage by time; needs the extra `report`."""
        from ridgemark.report.forward_page import forward_page  # matplotlib is optional

        path = Path(path)
        path.write_text(forward_page(self), encoding="utf-8")
        return path

    def __str__(self) -> str:
        lines = [f"{'from':>19} {'to':>19} {'past':>9} {'rows':>7} {'RMS':>10} {'expected':>10} {'inside':>7}"]
        for window in self.windows:
            expected = "-" if window.expected is None else as_written(window.expected[0])
            inside = "-" if window.coverage is None else f"{window.coverage[0]:.1%}"
            lines.append(
                f"{window.begin!s:>19.19} {window.end!s:>19.19} {window.n_past:>9,} {len(window.rows):>7,} "
                f"{as_written(window.rms[0]):>10} {expected:>10} {inside:>7}"
            )
        return "\n".join(lines)


def forward(
    model: Any,
    X: Any,
    y: Any,
    *,
    time: Any,
    n_splits: int = 5,
    gap: Any = 0,
    coverage: float = 0.9,
    refit: bool = True,
    sample_weight: Any = None,
    groups: Any = None,
) -> Forward:
    """Predict stretches of time one after the other, each from the rows before it alone.

    The times are cut into `n_splits + 1` stretches of about equally many rows; rows of equal time stay together. The
    first stretch is only fitted; each other one is predicted by a model fitted to all rows before it.

    Parameters
    ----------
    model : estimator
        A regressor; it is cloned, and not changed.
    X : array, sparse matrix or DataFrame of shape (n, n_features)
        The rows, in any order.
    y : array of shape (n,) or (n, n_targets)
        The targets.
    time : array of shape (n,)
        The time of each row: numbers or dates.
    n_splits : int, default=5
        Number of stretches to predict.
    gap : number or timedelta, default=0
        Rows less than this before a stretch are not fitted, in the unit of `time`: how long a target takes to be known.
    coverage : float, default=0.9
        Target coverage of the intervals.
    refit : bool, default=True
        Whether each fit chooses everything anew. Otherwise kernel and landmarks are those of the first fit, and rows
        are added by `partial_fit`, in closed form, which takes less time; do so where later rows resemble the first.
    sample_weight, groups : array of shape (n,), optional
        As for `fit`; errors and coverage are those of the rows, without weights.

    Returns
    -------
    Forward

    Examples
    --------
    >>> import numpy as np
    >>> from ridgemark import NystromRidge
    >>> from ridgemark.evaluate import forward
    >>> day = np.arange(300)
    >>> y = np.sin(day / 10) + 0.1 * np.random.default_rng(0).normal(size=300)
    >>> model = NystromRidge(bandwidth=1.0, n_landmarks=30, random_state=0)
    >>> result = forward(model, np.c_[np.sin(day / 10), np.cos(day / 10)], y, time=day, n_splits=4)
    >>> [len(window.rows) for window in result.windows]
    [60, 60, 60, 60]
    """
    check_flags(_Options(refit), "refit")
    times, targets = _times(time), np.asarray(y)
    if len(targets) != len(times):
        raise DataError(f"time must have one entry for each of the {len(targets)} rows, got {len(times)}")
    if not refit and groups is not None:
        raise ParameterError("refit=False adds rows by partial_fit, which takes no groups; leave out refit=False")
    metadata = {"sample_weight": sample_weight, "groups": groups}
    fitted, added, windows = clone(model), np.zeros(len(times), dtype=bool), []
    for past, rows in _stretches(times, positive_count(n_splits, "n_splits"), gap):
        if refit:
            fitted = clone(model).fit(_safe_indexing(X, past), targets[past], **_of(metadata, past))
        else:
            new = past[~added[past]]
            if len(new):
                fitted.partial_fit(_safe_indexing(X, new), targets[new], **_of(metadata, new))
            added[past] = True
            if hasattr(fitted, "predict_interval"):
                fitted.calibrate(_safe_indexing(X, past), targets[past], **_of(metadata, past))
        windows.append(_judged(fitted, _safe_indexing(X, rows), targets[rows], times, past, rows, coverage))
    return Forward(tuple(windows), coverage)


@dataclass(frozen=True)
class _Options:
    refit: Any


def _judged(
    fitted: Any, X: Any, observed: NDArray[Any], times: NDArray[Any], past: Indices, rows: Indices, coverage: float
) -> Window:
    predicted = np.asarray(fitted.predict(X), dtype=np.float64).reshape(len(rows), -1)
    observed = observed.reshape(predicted.shape)
    residuals, inside = getattr(fitted, "loo_residuals_", None), None
    if residuals is not None:
        residuals = np.sqrt(np.mean(np.asarray(residuals).reshape(-1, predicted.shape[1]) ** 2, axis=0))
    if hasattr(fitted, "predict_interval"):
        ends = np.asarray(fitted.predict_interval(X, coverage)).reshape(len(rows), 2, -1)
        inside = np.mean((ends[:, 0] <= observed) & (observed <= ends[:, 1]), axis=0)
    rms = np.sqrt(np.mean((predicted - observed) ** 2, axis=0))
    of_rows = times[rows]
    return Window(of_rows.min(), of_rows.max(), rows, len(past), rms, residuals, inside, predicted)


def _of(metadata: dict[str, Any], rows: Indices) -> dict[str, Any]:
    """Return what was given with the rows, at some of them."""
    return {name: _safe_indexing(values, rows) for name, values in metadata.items() if values is not None}


def _times(time: Any) -> NDArray[Any]:
    """Return the times as an array that can be sorted; refuse missing ones."""
    times = as_array(time, "time")
    if times.dtype.kind == "O":
        times = np.array(times.tolist(), dtype="datetime64[us]") if times.size and hasattr(times[0], "year") else times
    if times.ndim != 1 or times.dtype.kind not in "iufM":
        raise DataError(f"time must be numbers or dates, one for each row; got {times.dtype} of shape {times.shape}")
    missing = np.isnat(times) if times.dtype.kind == "M" else np.isnan(times.astype(np.float64))
    if missing.any():
        raise DataError(f"the time of row {int(np.argmax(missing))} is missing; drop the row or fill it in")
    return times


def _stretches(times: NDArray[Any], n_splits: int, gap: Any) -> Iterator[tuple[Indices, Indices]]:
    """Yield the rows before each stretch, without those in the gap, and the rows of the stretch."""
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    ends = [round(k * len(times) / (n_splits + 1)) for k in range(1, n_splits + 2)]
    starts = np.unique(np.searchsorted(ordered, ordered[[min(end, len(times) - 1) for end in ends[:-1]]]))
    starts = starts[starts > 0]
    if len(starts) < n_splits:
        raise ParameterError(
            f"n_splits={n_splits} needs {n_splits + 1} stretches of different times, and there are only "
            f"{len(np.unique(times))} times, or one of them has too many rows; choose fewer splits"
        )
    for first, last in zip(starts, [*starts[1:], len(times)], strict=True):
        try:
            past = order[: np.searchsorted(ordered, ordered[first] - gap)] if gap else order[:first]
        except (TypeError, ValueError) as error:
            raise ParameterError(f"gap={gap!r} cannot be subtracted from times of type {times.dtype}") from error
        if not len(past):
            raise ParameterError(f"gap={gap!r} leaves no rows before {ordered[first]}; choose a smaller gap")
        yield np.sort(past), np.sort(order[first:last])
