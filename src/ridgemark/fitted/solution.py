"""What a fit from landmarks chose and solved: its function, its landmarks, its ridge, and facts about its rows."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends import Floats, Indices, Rows
from ridgemark.certificates import Certificate
from ridgemark.fitted.frozen import Frozen
from ridgemark.kernels import CrossKernel, Kernel
from ridgemark.leverage import Bracket, ScoreBracket
from ridgemark.losses import Moments
from ridgemark.operators import Cross
from ridgemark.passes import RowPasses
from ridgemark.path import KeptRows, LossPath, RidgePath
from ridgemark.rows import ArrayRows
from ridgemark.selection import LandmarkCount


class Function(Frozen):
    """`f(x) = k(x) dual_coef + intercept`: all that a prediction needs, of every estimator."""

    kernel: Kernel
    points: Annotated[Any, Annotated[Rows, "(p, e)"] | None]  # None where the kernel is known between rows by number
    numbers: Annotated[Indices | None, "(p)", "< s", "< n"]  # of the points; None if they are not training rows
    dual_coef: Annotated[Floats, "(p, t)"]
    intercept: Annotated[Floats, "(t)"]

    @property
    def n_points(self) -> int:
        """Number of points, p."""
        return len(self.dual_coef)

    @cached_property
    def cross_kernel(self) -> CrossKernel:
        """The kernel bound to the points."""
        return self.kernel.bind(self.points, self.numbers)

    def values(self, passes: RowPasses) -> Floats:
        """Return f at the rows of some passes, shape (n, t)."""
        return Cross(passes, self.cross_kernel) @ self.dual_coef + self.intercept

    def at(self, rows: Any) -> Floats:
        """Return f at rows of features in memory, shape (n, t)."""
        return self.values(RowPasses(ArrayRows(rows)))


class Choice(Frozen):
    """How the landmarks were chosen."""

    count: LandmarkCount
    scores: ScoreBracket | None  # that drew them
    sums: Moments  # of the rows that chose them, without the Gram matrix
    scored: bool  # whether they were drawn by leverage scores
    blind: bool  # whether they were drawn uniformly, and neither their number nor the bandwidth looked at the rows

    def check_record(self) -> None:
        """Refuse what a fit does not make: a file may hold it."""
        if self.sums.gram.size:
            raise ValueError("the sums of the rows that chose the landmarks must be without the Gram matrix")


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Whether a fit was certified as close to exact as `risk_tolerance` asks, and the rounds it took.

    Attributes
    ----------
    met : bool
        Whether the certificate proves it.
    reason : str
        Why the fit ended here.
    n_landmarks : tuple of int
        Landmarks of every round.
    bounds : tuple of float
        The certificate's bound after every round, the largest over targets.
    """

    met: bool
    reason: str
    n_landmarks: tuple[int, ...]
    bounds: Annotated[tuple[float, ...], "any"]


class Solution(Frozen):
    """The ridge at which the coefficients were solved, and what chose it."""

    ridge: Annotated[Floats, "(t)", "> 0"]  # lambda
    scaled_ridge: Annotated[Floats, "(t)", "> 0"]  # lambda times the sum of weights
    effective_dimension: Bracket
    path: RidgePath | LossPath | None  # the ridges searched; None where one was given
    ridge_per_target: bool = False
    solver: Annotated[str, Literal["direct", "gradient"]] = "direct"
    # Of a gradient, the RMS distance from the direct solution at most.
    solver_bound: Annotated[Floats | None, "(t)", ">= 0"] = None
    certificate: Certificate | None = None  # as measured; see `FittedModel.certificate`
    tolerance: Tolerance | None = None


class RowFacts(Frozen):
    """What is kept of the rows of all batches."""

    n_duplicates: int
    constant_columns: Annotated[tuple[int, ...], "< e"]
    two_valued: tuple[tuple[int, float, float], ...]  # column, low and high of each column of two values
    hashes: Annotated[NDArray[np.uint64], "(_)", "ascending"]  # the smallest: they count distinct rows
    sample: KeptRows | None  # for leave-one-out when the rows are gone
    n_groups: Annotated[int | None, "> 0"] = None  # that left together; None where rows had no labels of groups
