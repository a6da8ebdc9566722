"""The rows of a fit: those that choose kernel and landmarks, and those that sums are over."""

from dataclasses import dataclass

from ridgemark.backends import Indices
from ridgemark.errors import ParameterError
from ridgemark.fitting.recipe import Recipe
from ridgemark.passes import RowPasses
from ridgemark.rows import DistinctRows


@dataclass(frozen=True, eq=False)
class FitRows:
    """All rows of a fit, and those of them that choose kernel and landmarks."""

    summed: RowPasses  # all rows
    choosing: RowPasses  # the same, or beyond the memory budget a sample

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


def rows_of_fit(passes: RowPasses, recipe: Recipe) -> FitRows:
    """Return the rows of a fit; beyond the memory budget a sample of the rows chooses."""
    if passes.has_groups and recipe.criterion == "gcv":
        raise ParameterError(
            'generalised cross-validation leaves out single rows, not groups; choose ridge="loo", a number or a list'
        )
    if not passes.beyond_memory:
        return FitRows(passes, passes)
    if recipe.solver == "gradient" or recipe.certify_with is not None:
        passes.require_memory()
    return FitRows(passes, passes.passes_over_sample())
