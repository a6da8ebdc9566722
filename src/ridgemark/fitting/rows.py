"""The rows of a fit: those that choose kernel and landmarks, and those that sums are over."""

from dataclasses import dataclass

from ridgemark.backends import Indices
from ridgemark.errors import ParameterError
from ridgemark.fitting.recipe import Recipe
from ridgemark.fitting.response import response_passes
from ridgemark.losses import ClassLoss, Loss
from ridgemark.passes import Cost, RowPasses
from ridgemark.rows import DistinctRows


@dataclass(frozen=True, eq=False)
class FitRows:
    """All rows of a fit, and those of them that choose kernel and landmarks.

    Their targets are those of squared errors: of a smooth loss its response, or the indicators of classes.
    """

    summed: RowPasses  # all rows
    choosing: RowPasses  # the same, or beyond the memory budget a sample
    own: RowPasses  # the rows that choose, with the targets of the loss

    @property
    def cost(self) -> Cost:
        """What the passes over all rows took."""
        return self.summed.cost if self.own is self.choosing else self.summed.cost + self.own.cost

    @property
    def distinct(self) -> DistinctRows:
        """The distinct rows among those that choose."""
        return self.choosing.distinct_rows()

    @property
    def are_sampled(self) -> bool:
        """Whether a sample chooses."""
        return self.choosing is not self.summed

    @property
    def total_weight(self) -> float:
        """The n of n lambda, for the rows that choose."""
        return float(self.choosing.row_counts().sum())

    @property
    def share(self) -> float:
        """Weight of the rows that choose, as a share of all: factor of n lambda from all rows to those."""
        return self.total_weight / self.summed.total_weight if self.are_sampled else 1.0

    def numbers_of(self, indices: Indices | None) -> Indices | None:
        """Return the numbers, among all rows, of some rows that choose."""
        return indices if indices is None or not self.are_sampled else self.summed.sample()[0].numbers[indices]


def rows_of_fit(passes: RowPasses, recipe: Recipe, loss: Loss | None = None) -> FitRows:
    """Return the rows of a fit; beyond the memory budget a sample of the rows chooses."""
    if passes.has_groups and recipe.criterion == "gcv":
        raise ParameterError(
            'generalised cross-validation leaves out single rows, not groups; choose ridge="loo", a number or a list'
        )
    if loss is not None and not isinstance(loss, ClassLoss):
        response = response_passes(passes, loss)
        return FitRows(response, response, passes)
    if not passes.beyond_memory:
        return FitRows(passes, passes, passes)
    if recipe.solver == "gradient" or recipe.certify_with is not None:
        passes.require_memory()
    sample = passes.passes_over_sample()
    return FitRows(passes, sample, sample)
