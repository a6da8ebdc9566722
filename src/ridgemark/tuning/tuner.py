"""The tuner: the families, then the levels in turn, and the kernel they end with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from ridgemark.errors import ParameterError
from ridgemark.kernels import Kernel, PowerExponential, make_kernel
from ridgemark.kernels.stationary import StationaryKernel
from ridgemark.parameters import Parameterised, positive_count
from ridgemark.passes import RowPasses
from ridgemark.tuning.criterion import Sample
from ridgemark.tuning.draw import FEWEST_ROWS, MOST_FEATURES, TuningRows, draw_rows
from ridgemark.tuning.levels import LEVELS, choose
from ridgemark.tuning.metrics import with_bandwidths
from ridgemark.tuning.pairs import is_radial
from ridgemark.tuning.record import TuningResult
from ridgemark.tuning.search import FACTORS, MOST_FAMILIES, Counter, Search, family_name

FAMILIES = ("gaussian", "matern52", "matern32", "matern12", PowerExponential(exponent=1.4), "laplacian")
_MOST_FOR_MATRIX = 200  # features of a matrix, and of a family that is not a function of the distance
_RIDGES = np.logspace(-11, 0.0, 23)  # searched for the small models
# Landmarks of the small models: at least and at most, and as a part of those of the fit; and rows for each of them.
_LANDMARKS, _MOST_LANDMARKS, _PART, _ROWS_PER_LANDMARK = 400, 800, 6, 10
_MOST_DOUBLINGS = 2.0  # of the landmarks compared, over which the last one's gain is expected to go on


@dataclass(eq=False, repr=False)
class Tuner(Parameterised):
    """Chooses the kernel's family and its metric by closed-form leave-one-out on some rows, and judges them on others.

    The levels are one bandwidth for all columns (each in units of its standard deviation), one bandwidth per feature,
    and a matrix. A level is taken if it saves 0.2% (a matrix: 0.5%) of the error on the judging rows, and not by
    chance: the paired gain in squared error exceeds two standard errors, or the share of rows predicted better exceeds
    a half by three standard errors. With fewer than 100 distinct rows all columns share one bandwidth. All limits count
    rows or evaluations, never seconds, so that the same seed gives the same kernel.

    Parameters
    ----------
    rows : int, optional
        Distinct rows to tune on; by default ten for each of the landmarks below.
    judging_rows : int, default=3000
        Largest number of other distinct rows, at most a quarter of all, that stop the descents and choose the level.
    landmarks : int, optional
        Landmarks of the small models, at most half of the rows. By default 400. If the number of the fit's own
        landmarks is given, or the fit is exact, a sixth of these, 400 to 800: a metric found with few landmarks is too
        smooth for a fit with many.
    evaluations : int, default=40
        Largest number of evaluations of the leave-one-out error and its gradient in each descent; there are up to six
        descents, after up to eight with fewer rows and landmarks.
    patience : int, default=3
        Number of consecutive checks on the judging rows without a gain of 0.1% after which a descent ends.
    levels : sequence of {"shared", "per_feature", "metric"}, default all
        The levels to choose among; a single one is taken without being judged.
    kernels : sequence of names or Kernels, optional
        Families tried where the estimator has `kernel="auto"`; by default Gaussian, Matern 5/2, 3/2 and 1/2,
        `exp(-r^1.4)`, and the Laplacian, which has no matrix but bandwidths of its own.

    Examples
    --------
    >>> from ridgemark.tuning import Tuner
    >>> Tuner(rows=2000, levels=("shared", "per_feature")).rows
    2000
    """

    rows: int | None = None
    judging_rows: int = 3000
    landmarks: int | None = None
    evaluations: int = 40
    patience: int = 3
    levels: Sequence[str] = LEVELS
    kernels: Sequence[Any] | None = None

    def tune(
        self,
        kernel: Any,
        passes: RowPasses,
        ridge: Any,
        fit_intercept: bool,
        rng: np.random.Generator,
        n_landmarks: Any = "auto",
    ) -> tuple[Kernel, TuningResult]:
        """Return the tuned kernel, and how it was tuned.

        `kernel` is a family by name, or "auto"; `ridge` a lambda, several to search, or the name of a criterion;
        `n_landmarks` the number of the fit's landmarks, where it is given.
        """
        begin = perf_counter()
        self._check()
        given = self._families(kernel)
        exact = not isinstance(n_landmarks, str) and n_landmarks >= len(passes.distinct_rows())
        rows = draw_rows(passes, self.sizes(n_landmarks), exact, fit_intercept, rng)
        levels, limit = self._levels(given, rows)
        families = self._tried(given, levels, rows)
        counter = Counter(self._most_evaluations(families, levels), passes.progress)
        ridges = _RIDGES if isinstance(ridge, str) else np.sort(np.atleast_1d(np.asarray(ridge, dtype=np.float64)))
        search = Search(rows.tuning, rows.judging, ridges, self.evaluations, self.patience, counter.add, passes.journal)
        best_of_families, tried = search.shared(families)
        shared, chosen, found, uniform = best_of_families[0], None, [], False
        if levels != ("shared",):
            found, larger = search.descend(best_of_families, levels), replace(search, tuning=rows.larger)
            doublings = _doublings(rows.larger, n_landmarks)
            chosen = passes.recall(
                "chosen", rng, lambda: choose(search, larger, best_of_families, found, levels, doublings)
            )
            uniform = passes.recall("uniform", rng, lambda: larger.uniform_is_better(chosen.kernel, rng))
        counter.finish()
        result = TuningResult(
            level="shared" if chosen is None else chosen.level,
            kernel=family_name(shared.family if chosen is None else chosen.family),
            reason=limit if chosen is None else limit or chosen.reason,
            n_tuning=len(rows.tuning.weights),
            n_judging=len(rows.judging.weights),
            n_landmarks=rows.tuning.n_landmarks,
            tried=tried,
            descents=tuple(one.record for one in found),
            levels=() if chosen is None else chosen.levels,
            compared=() if chosen is None else chosen.compared,
            uniform_landmarks=uniform,
            n_evaluations=sum(len(one.record.loo_errors) for one in found),
            seconds=perf_counter() - begin,
        )
        passes.count_entries(counter.done * result.n_tuning * result.n_landmarks)
        if chosen is None:
            return with_bandwidths(shared.family, shared.width * rows.units), result
        return chosen.metrics.kernel(chosen.family, chosen.metric, rows.units), result

    def _most_evaluations(self, families: Sequence[Any], levels: Sequence[str]) -> int:
        """Return how many evaluations the search may make."""
        radial = sum(map(is_radial, families))
        others = len(families) - radial
        trials = 2 * (min(radial, MOST_FAMILIES) + others)
        of_best = (4 if "metric" in levels else 2) if radial else 0
        descents = trials + of_best + (2 if others else 0)
        return len(families) * len(FACTORS) + self.evaluations * (0 if tuple(levels) == ("shared",) else descents)

    def _check(self) -> None:
        for name in ("rows", "judging_rows", "landmarks", "evaluations", "patience"):
            if getattr(self, name) is not None or name not in ("rows", "landmarks"):
                positive_count(getattr(self, name), f"Tuner: {name}")
        levels = self.levels
        if isinstance(levels, str) or not len(levels) or not set(levels) <= set(LEVELS):
            raise ParameterError(
                f"Tuner: levels must be a list of one or several of {', '.join(map(repr, LEVELS))}, got {levels!r}"
            )

    def sizes(self, n_landmarks: Any = "auto") -> tuple[int, int, int]:
        """Return the numbers of tuning rows, judging rows and landmarks, for a fit with so many landmarks."""
        wanted = int(n_landmarks) // _PART if isinstance(n_landmarks, int | np.integer) else 0
        landmarks = min(max(wanted, _LANDMARKS), _MOST_LANDMARKS) if self.landmarks is None else self.landmarks
        return _ROWS_PER_LANDMARK * landmarks if self.rows is None else self.rows, self.judging_rows, landmarks

    def _families(self, kernel: Any) -> list[Any]:
        """Return the families to try, as kernels whose bandwidth is to be set."""
        given = (FAMILIES if self.kernels is None else self.kernels) if kernel == "auto" else (kernel,)
        families = [clone(make_kernel(one)) for one in given]
        if not families or not all(isinstance(one, StationaryKernel) for one in families):
            raise ParameterError(f"Tuner: kernels must be names or objects of kernels with a bandwidth, got {given!r}")
        return families

    def _tried(self, families: list[Any], levels: tuple[str, ...], rows: TuningRows) -> list[Any]:
        """Return the families without those that the levels exclude.

        One that is not a function of the distance has no matrix, and shows its worth with one bandwidth per feature.
        For rows that are sparse or have many features its distances take long.
        """
        given, few = self.kernels is not None, not rows.was_sparse and len(rows.units) <= _MOST_FOR_MATRIX
        if (few or given) if "per_feature" in levels else (given and "metric" not in levels):
            return families
        return [one for one in families if is_radial(one)] or families

    def _levels(self, families: list[Any], rows: TuningRows) -> tuple[tuple[str, ...], str]:
        """Return the levels to choose among, simplest first; and the reason where there is one only, or another."""
        asked = tuple(level for level in LEVELS if level in self.levels)
        if not len(rows.judging.weights):
            return ("shared",), f"there are fewer than {FEWEST_ROWS} distinct rows"
        if len(rows.units) > MOST_FEATURES:
            return ("shared",), f"rows of {len(rows.units):,} features are tuned by one bandwidth"
        if asked == ("shared",):
            return asked, "it was asked for"
        limit = _why_no_matrix(families, rows)
        if not limit or "metric" not in asked:
            return asked, ""
        others = tuple(level for level in asked if level != "metric")
        return others or ("per_feature",), "" if others else limit


def _why_no_matrix(families: Sequence[Any], rows: TuningRows) -> str:
    """Return why the metric cannot be a matrix; an empty string where it can."""
    if rows.was_sparse:
        return "sparse rows have no full metric"
    if len(rows.units) > _MOST_FOR_MATRIX:
        return f"rows of more than {_MOST_FOR_MATRIX} features have no full metric"
    return "" if any(map(is_radial, families)) else "a kernel that is not a function of the distance has no full metric"


def _doublings(sample: Sample, n_landmarks: Any) -> float:
    """Return how often the landmarks of a sample must be doubled to have those of the fit; at most twice.

    None where the fit's number is not given, or all rows are landmarks: an exact fit has more rows as well.
    """
    if isinstance(n_landmarks, str) or sample.all_landmarks:
        return 0.0
    return float(np.clip(np.log2(n_landmarks / sample.n_landmarks), 0.0, _MOST_DOUBLINGS))
