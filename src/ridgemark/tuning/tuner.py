"""The tuner: parts, levels and descents, and the kernel they end with."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from ridgemark.errors import ParameterError
from ridgemark.kernels import Kernel, Laplacian, Linear, Mixture, make_kernel
from ridgemark.kernels.stationary import RadialKernel, StationaryKernel
from ridgemark.parameters import Parameterised, positive_count
from ridgemark.passes import RowPasses
from ridgemark.selection.count import work_limit
from ridgemark.tuning.baselines import compare_with_baselines
from ridgemark.tuning.coordinates import LEVELS, in_raw_units, names_of, of_length, part_name, simplified
from ridgemark.tuning.criterion import Sample
from ridgemark.tuning.descent import Candidate, Gain
from ridgemark.tuning.draw import FEWEST_GROUPS, FEWEST_ROWS, TuningRows, draw_rows
from ridgemark.tuning.levels import choose_level, reason_for
from ridgemark.tuning.record import Level, Part, TuningResult
from ridgemark.tuning.scratch import threads_for_rows
from ridgemark.tuning.search import FACTORS, Counter, DescentResult, Expected, Search, without

PARTS = ("gaussian", "matern32", "matern12", "laplacian", "linear")
_SHORTER = (1.0, 0.4, 0.2)  # inverse lengths of the radial parts at the start; the roughest varies most slowly
_SHARE_OF_OTHERS = 0.2  # of the weights at the start, for each part that is not radial
_MOST_FOR_MATRIX = 200  # features of a matrix, and of a Laplacian
_RIDGES = np.logspace(-11, 0.0, 23)  # searched for the small models
# Landmarks of the small models: a sixth of those of the fit, but at least and at most these; and rows for each of them.
_LANDMARKS, _MOST_LANDMARKS, _PART, _ROWS_PER_LANDMARK = 400, 800, 6, 10
_WORTH_A_LAPLACIAN = 0.005  # share of the error that it must save, since its values take long
_WORTH_MORE = 1.25  # a further descent takes at least this many times the rows, or landmarks, of those before it
_SMALL_ERROR = 0.05  # of the targets' deviation
_NO_CONTEST = 0.05  # a Laplacian that saves this share with few rows is kept without a comparison
# If doubling the landmarks saves more than this share of the error, a last descent doubles them; its most evaluations.
_MORE_LANDMARKS_SAVE, _LAST_EVALUATIONS = 0.05, 20
_MOST_DOUBLINGS = 2.0  # of the landmarks compared, over which the last one's gain is expected to go on
_FEW_FOR_SHARED = 1000  # with more tuning rows, no descent is made for one bandwidth of all columns


@dataclass(eq=False, repr=False)
class Tuner(Parameterised):
    """Learns the parts of the kernel and their metric by closed-form leave-one-out on some rows, judged on others.

    The kernel is a mixture: radial parts that share a metric, each with a length and a weight of its own, a Laplacian
    with its own bandwidths, and a linear part. The levels of the metric are one bandwidth for all columns (each in
    units of its standard deviation), one bandwidth per feature, and a matrix. A level is taken if it saves 0.2% (a
    matrix: 0.5%) of the error on the judging rows, and not by chance: the paired gain in squared error exceeds two
    standard errors, or the share of rows predicted better exceeds a half by three standard errors. A part that saves
    less than 0.1% or one standard error (a Laplacian: 0.5%) is left out, unless it saves 0.1% of the leave-one-out
    error. With fewer than 100 distinct rows all columns share one bandwidth. All limits count rows or evaluations,
    never seconds, so that the same seed gives the same kernel.

    Parameters
    ----------
    rows : int, optional
        Distinct rows to tune on at last, after descents on at most 1,500 of them; by default ten for each of the
        landmarks below.
    judging_rows : int, default=1500
        Largest number of other distinct rows, at most a quarter of all, that stop the descents and choose the level.
    landmarks : int, optional
        Landmarks of the small models, at most half of the rows. By default 400. If the number of the fit's own
        landmarks is given, or the fit is exact, a sixth of these, 400 to 800: a metric found with few landmarks is too
        smooth for a fit with many.
    evaluations : int, default=40
        Largest number of evaluations of the leave-one-out error and its gradient in each descent. If doubling the
        landmarks saves 5% of the error, a last descent with twice the landmarks has at most 20.
    patience : int, default=5
        Number of consecutive checks on the judging rows without a gain of 0.1% after which a descent ends; with fewer
        than 1,000 judging rows one for each 200 of them, and at least three.
    levels : sequence of {"shared", "per_feature", "metric"}, default all
        The levels to choose among; a single one is taken without being judged.
    kernels : sequence of names or Kernels, optional
        Parts of the mixture where the estimator has `kernel="auto"`: kernels of the distance, "laplacian", and beside
        these "linear". By default Gaussian, Matern 3/2 and 1/2, Laplacian and linear.

    Examples
    --------
    >>> from ridgemark.tuning import Tuner
    >>> Tuner(rows=2000, levels=("shared", "per_feature")).rows
    2000
    """

    rows: int | None = None
    judging_rows: int = 1500
    landmarks: int | None = None
    evaluations: int = 40
    patience: int = 5
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
        parts = self._parts(kernel)
        rows = draw_rows(passes, self.sizes(n_landmarks), fit_intercept, rng)
        mixture = _start(parts, rows)
        levels, limit = self._levels(mixture, rows)
        counter = Counter(len(FACTORS) + self.evaluations * _most_descents(levels), passes.progress)
        ridges = _RIDGES if isinstance(ridge, str) else np.sort(np.atleast_1d(np.asarray(ridge, dtype=np.float64)))
        with threads_for_rows() as threads:
            search = Search(rows.tuning, rows.judging, ridges, self.evaluations, self.patience, counter.add, threads)
            tuned = (
                _grid(search, parts, rows)
                if rows.is_wide
                else _descend(search, rows.larger, mixture, levels, _doublings(rows.larger, n_landmarks, passes))
            )
        uniform, n_rows = False, passes.source.n_rows
        if len(rows.judging.weights) and not rows.is_wide and 2 * _wanted(n_landmarks, n_rows) < n_rows:
            uniform = search.uniform_is_better(tuned.mixture, rng)
        judged = np.empty(0)
        if tuned.expected is not None:
            judged = tuned.expected.judged.astype(np.float64)
        elif len(rows.judging.weights):
            judged = replace(search, tuning=rows.larger).judged(tuned.mixture, tuned.ridge)
        counter.finish()
        result = TuningResult(
            level=tuned.level,
            kernel=names_of([part for _, part in tuned.mixture.parts()]),
            reason=limit or tuned.reason,
            parts=_listed(tuned.mixture),
            dropped=tuned.dropped,
            n_tuning=len(rows.tuning.weights),
            n_judging=len(rows.judging.weights),
            n_landmarks=rows.tuning.n_landmarks,
            descents=tuple(result.record for result in tuned.results),
            levels=tuned.levels,
            uniform_landmarks=uniform,
            saved_by_doubling=None if tuned.expected is None else tuned.expected.saved,
            n_evaluations=sum(len(result.record.loo_errors) for result in tuned.results),
            ridge=tuned.ridge,
            baselines=compare_with_baselines(rows, judged),
            seconds=perf_counter() - begin,
        )
        passes.count_entries(result.n_evaluations * result.n_tuning * result.n_landmarks)
        raw = in_raw_units(tuned.mixture, rows.units, rows.origin)
        if kernel == "auto" and any(isinstance(part, Linear) for part in raw.others):
            raw = raw.set_params(columns=rows.columns)  # a linear part would grow without bound far from the rows
        return simplified(raw), result

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

    def _parts(self, kernel: Any) -> list[Any]:
        """Return the parts of the mixture: the family given by name, or those of "auto"."""
        kernels = (PARTS if self.kernels is None else self.kernels) if kernel == "auto" else (kernel,)
        parts = [clone(make_kernel(part)) for part in kernels]
        all_allowed = all(isinstance(part, RadialKernel | Laplacian | Linear) for part in parts)
        if not all_allowed or not any(isinstance(part, StationaryKernel) for part in parts):
            raise ParameterError(
                'Tuner: kernels must be names or objects of kernels of the distance, "laplacian" or, beside one of '
                f'these, "linear", got {kernels!r}'
            )
        return parts

    def _levels(self, mixture: Mixture, rows: TuningRows) -> tuple[tuple[str, ...], str]:
        """Return the levels to choose among, simplest first; and the reason where there is one only, or another."""
        asked = tuple(level for level in LEVELS if level in self.levels)
        if not len(rows.judging.weights):
            lacking = (
                f"{FEWEST_ROWS} distinct rows"
                if rows.tuning.groups is None
                else f"{FEWEST_GROUPS} groups that could judge"
            )
            return ("shared",), f"there are fewer than {lacking}"
        if rows.is_wide:
            return ("shared",), f"rows of {len(rows.units):,} features are tuned by one bandwidth"
        if asked == ("shared",):
            return asked, "it was asked for"
        limit = _why_no_matrix(mixture, rows)
        if not limit or "metric" not in asked:
            return asked, ""
        others = tuple(level for level in asked if level != "metric")
        return others or ("per_feature",), "" if others else limit


@dataclass(frozen=True, eq=False)
class _Tuned:
    """The mixture that tuning ends with, for rows in units of their columns."""

    mixture: Mixture
    ridge: float
    level: str
    reason: str
    results: list[DescentResult]
    levels: tuple[Level, ...] = ()
    dropped: tuple[str, ...] = ()
    expected: Expected | None = None


def _start(parts: Sequence[Any], rows: TuningRows) -> Mixture:
    """Return the mixture to start from; rows that are sparse or have many features have no Laplacian beside others."""
    radial = [part for part in parts if isinstance(part, RadialKernel)]
    others = [part for part in parts if not isinstance(part, RadialKernel)]
    d = len(rows.units)
    if radial and (rows.was_sparse or d > _MOST_FOR_MATRIX):
        others = [part for part in others if not isinstance(part, Laplacian)]
    if rows.is_wide:
        others = [part for part in others if isinstance(part, Laplacian) and not radial]
    lengths = np.resize(np.array(_SHORTER), len(radial)) if len(radial) <= len(_SHORTER) else np.ones(len(radial))
    others = [Linear(widths=np.full(d, np.sqrt(d))) if isinstance(part, Linear) else part for part in others]
    share = _SHARE_OF_OTHERS if radial else 1.0 / len(others)
    rest = (1.0 - share * len(others)) / max(1, len(radial))
    weights = [rest] * len(radial) + [share] * len(others)
    return Mixture([of_length(part, 1.0 / b) for part, b in zip(radial, lengths, strict=True)], others, weights)


def _descend(search: Search, larger: Sample, mixture: Mixture, levels: Sequence[str], doublings: float) -> _Tuned:
    """Descend at the levels asked for: on few rows first, then for the best mixture on more.

    Descent for a matrix starts from the bandwidths per feature, and from outer products of gradients.
    """
    on_few = search.on_few()
    start, _, ridge = on_few.start(mixture)
    simple = [level for level in ("shared", "per_feature") if level in levels]
    if tuple(levels) != ("shared",):
        if len(search.tuning.weights) > _FEW_FOR_SHARED and "shared" in simple:
            simple.remove("shared")
        if "per_feature" not in simple:
            simple.append("per_feature")
    results = on_few.descend([(level, "one length", start, ridge) for level in simple])
    here = next((result.candidate for result in results if result.level == "per_feature"), None)
    if here is not None and mixture.radial:
        kernel_and_ridge = here.kernel, here.ridge
        starts = [("per_feature", "all columns included", *kernel_and_ridge)] if "per_feature" in levels else []
        if "metric" in levels:
            starts += [("metric", name, *kernel_and_ridge) for name in ("per_feature", "outer products")]
        results += on_few.descend(starts)
    allowed = [result for result in results if result.level in levels] or results
    if not allowed:
        return _Tuned(start, ridge, "shared", "the criterion could not be evaluated", results)
    best, levels_judged = choose_level(allowed)
    mixture, ridge, expected = best.candidate.kernel, best.candidate.ridge, None
    if len(search.judging.weights):
        (mixture, expected), ridge, more = _on_more_rows(search, larger, best, doublings)
        results += more
    dropped = [part_name(part) for _, part in start.parts()]
    for _, part in mixture.parts():
        dropped.remove(part_name(part))
    reason = reason_for(levels_judged, len(levels) == 1)
    return _Tuned(mixture, ridge, best.level, reason, results, levels_judged, tuple(dropped), expected)


def _on_more_rows(
    search: Search, larger: Sample, best: DescentResult, doublings: float
) -> tuple[tuple[Mixture, Expected | None], float, list[DescentResult]]:
    """Descend on more rows where there are more; return the mixture without its idle parts, and its expected errors.

    Also its ridge, and the descents. A metric is found with few landmarks; with more, shorter lengths often do better
    and are tried. Where twice the landmarks save much of the error, a last descent has more of them. Double precision
    is for errors so small that single precision would hide what is left.
    """
    on_few, more = search.on_few(), replace(search, tuning=larger)
    was_single, is_small = on_few.tuning.is_single, best.candidate.judged_error < _SMALL_ERROR
    if was_single and not is_small:
        search, more = search.in_single_precision(), more.in_single_precision()
    starts = _with_and_without_laplacian(on_few, best.candidate.kernel)
    found, results, used = replace(best.candidate, kernel=starts[0][1]), [], on_few.tuning
    if len(search.tuning.weights) >= _WORTH_MORE * len(used.weights) or (was_single and is_small):
        found, results, used = *_descend_from(search, more, best, starts, doublings), search.tuning
    taken = search.without_idle_parts(found)
    mixture, expected = more.shortened(taken.kernel, doublings)
    last: list[DescentResult] = []
    many = more.tuning.n_landmarks >= _WORTH_MORE * used.n_landmarks
    if doublings and many and expected.saved > _MORE_LANDMARKS_SAVE:
        rows = more.tuning.first(len(search.tuning.weights), larger.n_landmarks)
        few = replace(search, tuning=rows, evaluations=min(search.evaluations, _LAST_EVALUATIONS))
        last = few.descend([(best.level, "more landmarks", mixture, taken.ridge)])
    if last:
        mixture, taken = last[0].candidate.kernel, last[0].candidate
    return (mixture, expected), taken.ridge, results + last


def _with_and_without_laplacian(search: Search, start: Mixture) -> list[tuple[str, Mixture]]:
    """Return the starts of the descents on more rows: what few rows ended with, without its Laplacian, or both."""
    starts = [("few rows", start)]
    numbers = [k for k, (_, part) in enumerate(start.parts()) if isinstance(part, Laplacian)]
    if numbers and len(start.weights) > 1:
        alone = without(start, numbers[0])
        saved = Gain.of(search.judged(start), search.judged(alone)).share
        if saved < _NO_CONTEST:
            starts.append(("without the Laplacian", alone))
        if saved < _WORTH_A_LAPLACIAN:
            starts.pop(0)
    return starts


def _descend_from(
    search: Search, more: Search, best: DescentResult, starts: list[tuple[str, Mixture]], doublings: float
) -> tuple[Candidate, list[DescentResult]]:
    """Descend from the starts; return the best candidate by the errors expected with more landmarks, and all descents.

    With more landmarks a Laplacian gains less.
    """
    if len(starts) == 1 and best.level == "per_feature" and starts[0][1].radial:
        starts = [*starts, ("all columns included", starts[0][1])]
    results = search.descend([(best.level, name, mixture, best.candidate.ridge) for name, mixture in starts])
    position = 0
    if len(results) > 1:
        first, second = more.expected([result.candidate.kernel for result in results], doublings)
        contested = results[1].record.start == "without the Laplacian"
        position = int(second.error < (1.0 + _WORTH_A_LAPLACIAN * contested) * first.error)
    return results[position].candidate if results else best.candidate, results


def _grid(search: Search, parts: Sequence[Any], rows: TuningRows) -> _Tuned:
    """Return the best part alone with one length for all columns, for rows that are too wide for a descent."""
    radial = [part for part in parts if isinstance(part, RadialKernel)]
    others: list[Any] = [part for part in parts if isinstance(part, Laplacian)]
    tried = [search.start(_start([part], rows)) for part in radial or others]
    mixture, _, ridge = min(tried, key=lambda result: result[1])
    return _Tuned(mixture, ridge, "shared", "", [], dropped=())


def _listed(mixture: Mixture) -> tuple[Part, ...]:
    """Return the parts of a mixture for the record."""
    n_radial, total = len(mixture.radial), float(sum(mixture.weights))
    return tuple(
        Part(part_name(part), weight / total, float(part.bandwidth) if k < n_radial else None)
        for k, (weight, part) in enumerate(mixture.parts())
    )


def _doublings(sample: Sample, n_landmarks: Any, passes: RowPasses) -> float:
    """Return how often the landmarks of a sample must be doubled to have those of the fit; at most twice."""
    wanted = _wanted(n_landmarks, passes.source.n_rows)
    return float(np.clip(np.log2(wanted / sample.n_landmarks), 0.0, _MOST_DOUBLINGS))


def _wanted(n_landmarks: Any, n_rows: int) -> int:
    """Return how many landmarks the fit has at most."""
    return min(work_limit(n_rows) if isinstance(n_landmarks, str) else int(n_landmarks), n_rows)


def _most_descents(levels: Sequence[str]) -> int:
    """Return how many descents there may be."""
    return len(levels) + 2 * ("metric" in levels or "per_feature" in levels) + 2


def _why_no_matrix(mixture: Mixture, rows: TuningRows) -> str:
    """Return why the metric cannot be a matrix; an empty string where it can."""
    if rows.was_sparse:
        return "sparse rows have no full metric"
    if len(rows.units) > _MOST_FOR_MATRIX:
        return f"rows of more than {_MOST_FOR_MATRIX} features have no full metric"
    return "" if mixture.radial else "a kernel that is not a function of the distance has no full metric"
