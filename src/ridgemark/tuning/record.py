"""What tuning did: the levels tried, how each was judged, which was chosen, and the parts of the kernel."""

import math
from dataclasses import dataclass, field
from typing import Annotated

from ridgemark.backends import Floats


@dataclass(frozen=True, eq=False)
class Descended:
    """One descent; errors are RMS, in standard deviations of the target (with several, of their mean square)."""

    level: str
    start: str  # what it started from
    n_rows: Annotated[int, "> 0"]  # rows it was tuned on
    judged_error: Annotated[float, "any"]  # the best on the judging rows
    loo_errors: Annotated[Floats, "(_)", "any"]  # leave-one-out on the tuning rows, one for each evaluation
    looks: Annotated[Floats, "(_, 2)", "any"]  # evaluations before a look at the judging rows, and the error on these


@dataclass(frozen=True, eq=False)
class Level:
    """The best kernel of one level, and why it was taken or not."""

    level: str
    judged_error: Annotated[float, "any"]
    gain: Annotated[float, "any"]  # share of the judged error that it saves over the level chosen before it
    standard_errors: Annotated[float, "any"]  # paired gain in squared error, in standard errors
    better: float  # share of the judging rows that it predicts better
    taken: bool


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the kernel; weights sum to one, and lengths are in units of the shared metric."""

    kernel: str
    weight: float
    length: float | None  # None of a part that does not share the metric


@dataclass(frozen=True, eq=False)
class Baselines:
    """Errors of the tuned small model and of simpler ones, fitted to the same rows, on the rows that judge.

    All are RMS, in standard deviations of the target (with several, of their mean square).

    Attributes
    ----------
    n_rows : int
        Rows that all were fitted to.
    model : float
        The error of the tuned model on the judging rows; a little too small, as these rows stopped its descents.
    mean, mean_left_out : float
        Those of the mean of the target, on the judging rows and by leave-one-out.
    linear, linear_left_out : float or None
        Those of linear ridge regression; None with more than 500 features.
    """

    n_rows: Annotated[int, "> 0"]
    model: Annotated[float, ">= 0"]
    mean: Annotated[float, ">= 0"]
    mean_left_out: Annotated[float, ">= 0"]
    linear: Annotated[float, ">= 0"] | None = None
    linear_left_out: Annotated[float, ">= 0"] | None = None


@dataclass(frozen=True, eq=False)
class TuningResult:
    """How the kernel was tuned.

    Attributes
    ----------
    level : {"shared", "per_feature", "metric"}
        What was chosen: one bandwidth for standardised columns, one bandwidth per feature, or a matrix.
    kernel : str
        The names of the kernel's parts.
    reason : str
        Why this level.
    parts : tuple of Part
        The kernel's parts with their weights and lengths.
    dropped : tuple of str
        Parts that were tried and left out, since the judging rows are predicted as well without them.
    n_tuning, n_judging, n_landmarks : int
        Numbers of tuning rows, of judging rows, and of landmarks of the small models.
    descents : tuple of Descended
        Every descent with its trajectory.
    levels : tuple of Level
        How each level was judged.
    uniform_landmarks : bool
        Whether uniform landmarks predicted the judging rows better by 1% or more than those by randomly pivoted
        Cholesky; `selection="auto"` then draws uniform landmarks.
    saved_by_doubling : float or None
        Share of the error on the judging rows that the last doubling of the landmarks of the small model saved, where
        there were rows for it.
    n_evaluations : int
        Evaluations of the leave-one-out error with its gradient.
    ridge : float
        The lambda of the small model, close to that of the fit.
    baselines : Baselines or None
        The errors on the judging rows of this kernel, of linear ridge regression and of the mean.
    seconds : float
        Time; not saved.
    """

    level: str
    kernel: str
    reason: str
    parts: tuple[Part, ...]
    dropped: tuple[str, ...]
    n_tuning: int
    n_judging: int
    n_landmarks: Annotated[int, "> 0"]
    descents: tuple[Descended, ...]
    levels: tuple[Level, ...]
    uniform_landmarks: bool
    saved_by_doubling: float | None
    n_evaluations: int
    ridge: Annotated[float, "> 0"]
    baselines: Baselines | None = None
    seconds: float | None = field(default=None, compare=False)

    @property
    def judged_error(self) -> float | None:
        """The error on the judging rows of the level taken; None if no level was judged."""
        return next((level.judged_error for level in reversed(self.levels) if level.taken), None)

    def ridge_for(self, n_rows: int) -> float:
        """Return the lambda for so many distinct rows: with the root of their number it falls and n lambda grows."""
        return self.ridge * math.sqrt(self.n_tuning / max(n_rows, self.n_tuning))
