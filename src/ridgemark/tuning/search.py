"""The search: families at one bandwidth, then one bandwidth per feature, then a matrix; judged by rows kept apart."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ridgemark.backends import Floats, worker_threads
from ridgemark.passes import Journal, Key, RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.selection import Problem
from ridgemark.selection.auto import PIVOTS
from ridgemark.tuning.criterion import Sample, best_model, best_ridge, fit_small
from ridgemark.tuning.descent import Candidate, Descent, Gain, judge
from ridgemark.tuning.median import median_distance
from ridgemark.tuning.metrics import FullMatrix, Metrics, PerFeature, with_bandwidths
from ridgemark.tuning.pairs import is_radial, with_metric
from ridgemark.tuning.record import Descended, TriedKernel

Item = TypeVar("Item")
Result = TypeVar("Result")

FACTORS = (0.15, 0.25, 0.4, 0.6, 1.0, 1.6, 2.5, 4.0)  # bandwidths tried, over the median distance
_AS_GOOD = 2e-3  # share of the squared error by which bandwidths do not differ; the one nearest the median is taken
_GRID_ROWS = 2000  # rows on which families and bandwidths are compared
MOST_FAMILIES = 3  # of the distance, that go beyond one bandwidth
_NOT_FAR = 1.02  # a family of another kind goes on if its error in trials is at most this times the best
_FEW_ROWS, _FEW_LANDMARKS = 2000, 200  # with which families and starts are tried
_ROUNDS = 3  # of outer products
_SCALES = (0.5, 0.7, 1.0, 1.4, 2.0)  # lengths of a metric tried after each
_FURTHER = {0.7: 0.5, 1.4: 2.0}  # factors of all bandwidths compared at last, beside 1, and those tried after each
_WORTH_UNIFORM = 0.01  # share of the error that uniform landmarks must save
_WORTH_CHANGING = 0.001  # share of the error that another family must save
_WORTH_KEEPING = 0.002  # share that the tuned family must save where an exact fit will have more rows
_GRADIENT_ROWS = 2000  # rows whose gradients are averaged


class Counter:
    """Counts evaluations, from any thread, and reports them."""

    def __init__(self, total: int, report: Callable[[str, int, int], None] | None) -> None:
        self.done, self._total, self._report, self._lock = 0, total, report, threading.Lock()

    def add(self, number: int) -> None:
        """Count and report."""
        with self._lock:
            self.done += number
            self._tell(min(self.done, self._total - 1))

    def finish(self) -> None:
        """Report that all is done, where less than the total was needed."""
        self._tell(self._total)

    def _tell(self, done: int) -> None:
        if self._report is not None:
            self._report("tuning", done, self._total)


@dataclass(frozen=True, eq=False)
class Shared:
    """A family with one bandwidth for all columns, in their units."""

    family: Any
    width: float
    ridge: float


@dataclass(frozen=True, eq=False)
class Found:
    """The best metric of one descent."""

    shared: Shared  # the family, and the bandwidth it began with
    metrics: Metrics
    candidate: Candidate
    record: Descended


@dataclass(eq=False)
class Search:
    """Searches for a metric of one sample.

    Independent starts run in threads, each with one BLAS thread, so the result does not depend on the number of
    threads.
    """

    tuning: Sample
    judging: Sample
    ridges: Floats  # lambdas searched, ascending
    evaluations: int  # of each descent
    patience: int
    count: Callable[[int], None]  # told of every evaluation
    journal: Journal | None = None
    all_judge: bool = False  # whether tuning rows judge too, left out one by one; only if no metric was fitted to them
    interrupted: threading.Event = field(default_factory=threading.Event)

    def shared(self, families: Sequence[Any]) -> tuple[list[Shared], tuple[TriedKernel, ...]]:
        """Return each family with the bandwidth of its smallest leave-one-out error, the best family first."""
        rows = self.tuning.first(_GRID_ROWS, self.tuning.n_landmarks)
        medians = {power: median_distance(self.tuning.features, power) for power in (1, 2)}

        def error_and_ridge(point: tuple[Any, float]) -> tuple[float, float]:
            family, factor = point
            self.count(1)
            key = "grid", family_name(family), factor
            widths = np.full(rows.features.shape[1], factor * medians[_power(family)])
            return self._recall(key, lambda: self._best_ridge(with_bandwidths(family, widths), rows))

        grid = [(family, factor) for family in families for factor in FACTORS]
        results = self._in_threads(error_and_ridge, grid)
        best = []
        for number in range(len(families)):
            part = range(number * len(FACTORS), (number + 1) * len(FACTORS))
            enough = (1.0 + _AS_GOOD) * min(results[position][0] for position in part)
            as_good = [position for position in part if results[position][0] <= enough]
            best.append(min(as_good, key=lambda position: abs(np.log(grid[position][1]))))
        best.sort(key=lambda position: results[position][0])
        found = [Shared(grid[k][0], grid[k][1] * medians[_power(grid[k][0])], results[k][1]) for k in best]
        tried = (TriedKernel(family_name(grid[k][0]), grid[k][1], float(np.sqrt(results[k][0]))) for k in best)
        return found, tuple(tried)

    def descend(self, families: Sequence[Shared], levels: Iterable[str]) -> list[Found]:
        """Descend at the levels asked for.

        Descents end in different minima. So the best families are first tried on fewer rows with fewer landmarks: one
        bandwidth per feature, starting from the shared bandwidth and from outer products of gradients. Descent on all
        rows starts from the best of these, once as it is and once with all columns included. Descent for a matrix
        starts from outer products, and from the same bandwidths per feature. A family that is not a function of the
        distance has no matrix; it goes on with bandwidths of its own, beside the best of the others, unless it is far
        behind.
        """
        d = self.tuning.features.shape[1]
        diagonal, full = PerFeature(d), FullMatrix(d)
        few = replace(self, tuning=self.tuning.first(_FEW_ROWS, _FEW_LANDMARKS))
        radial = [shared for shared in families if is_radial(shared.family)]
        others = [shared for shared in families if not is_radial(shared.family)]
        trials = [(one, start) for one in (*radial[:MOST_FAMILIES], *others) for start in ("shared", "outer products")]
        tried = self._in_threads(lambda trial: few._from(trial[0], diagonal, trial[1]), trials)
        starts: list[tuple[Shared, Metrics, str, Candidate | None]] = []
        best, rival = self._best([one for one in tried if one is not None])
        for one in (best, rival):
            if one is not None:
                included = replace(one.candidate, metric=_with_all_columns(one.candidate.metric))
                starts.append((one.shared, diagonal, one.record.start, one.candidate))
                starts.append((one.shared, diagonal, "all columns included", included))
        if "metric" in levels and radial:
            starts.append((radial[0] if best is None else best.shared, full, "outer products", None))
        if "metric" in levels and best is not None:
            starts.append((best.shared, full, "per_feature", best.candidate))
        return [one for one in self._in_threads(lambda start: self._from(*start), starts) if one is not None]

    def _best(self, trials: Sequence[Found]) -> tuple[Found | None, Found | None]:
        """Return the trial that does best with all rows and landmarks, and the best of families not of the distance.

        The second is None if it is far behind.
        """
        kernels = [with_metric(one.shared.family, one.candidate.metric) for one in trials]
        errors = self._recall(("trials",), lambda: self.judged_errors(kernels))
        ranked = sorted(zip(errors, trials, strict=True), key=lambda one: one[0])
        enough = _NOT_FAR * ranked[0][0] if ranked else 0.0
        best = next((found for _, found in ranked if is_radial(found.shared.family)), None)
        near = (found for error, found in ranked if error <= enough and not is_radial(found.shared.family))
        return best, next(near, None)

    def compare(
        self, families: Sequence[Any], family: Any, metric: Floats, doublings: float = 0.0
    ) -> tuple[Any, float, tuple[TriedKernel, ...]]:
        """Return the family and the factor of all bandwidths that do best on the judging rows, and all families' best.

        A metric is found with few rows and landmarks. With more, rougher families and shorter bandwidths do better, so
        the family that the metric was tuned for is compared with rougher ones only, by the errors expected after
        doubling the landmarks towards their number in the fit. The tuned family is kept unless another saves a share of
        its error. Where all rows are landmarks, the fit is exact and has more rows than are compared here. Rougher
        families gain more from these, so the tuned family must then save a share of the other's error.
        """
        radial = [one for one in families if is_radial(one) and is_radial(family)]
        families = [family, *(one for one in radial if one.smoothness < family.smoothness)]
        tried: dict[tuple[int, float], float] = {}

        def add(points: Sequence[tuple[int, float]]) -> None:
            kernels = [with_metric(families[k], metric / factor) for k, factor in points]
            tried.update(zip(points, self._expected_errors(kernels, doublings), strict=True))

        def best(k: int) -> tuple[int, float]:
            return min((one for one in tried if one[0] == k), key=lambda one: tried[one])

        add([(k, 1.0) for k in range(len(families))])
        # Other lengths only for the tuned family and the best of the others; the next ones where an end is best.
        near = [0, *sorted(range(1, len(families)), key=lambda k: tried[k, 1.0])[:1]]
        add([(k, factor) for k in near for factor in _FURTHER])
        add([(k, _FURTHER[best(k)[1]]) for k in near if best(k)[1] in _FURTHER])
        worth = -_WORTH_KEEPING if self.tuning.all_landmarks else _WORTH_CHANGING
        ranked = sorted(map(best, range(len(families))), key=lambda one: tried[one] * (1.0 + worth * (one[0] > 0)))
        record = tuple(TriedKernel(family_name(families[one[0]]), one[1], tried[one]) for one in ranked)
        return families[ranked[0][0]], ranked[0][1], record

    def _expected_errors(self, kernels: Sequence[Any], doublings: float) -> list[float]:
        """Return the error of every kernel on the judging rows, as expected after some doublings of the landmarks.

        Each further doubling is expected to lower it by the same share as the last one, `e -> e (e/e')^doublings`, e'
        the error with half of the landmarks.
        """
        errors = self.judged_errors(kernels)
        if not doublings:
            return errors
        rows = self.tuning.first(len(self.tuning.weights), self.tuning.n_landmarks // 2)
        halves = replace(self, tuning=rows).judged_errors(kernels)
        pairs = zip(errors, halves, strict=True)
        return [e * (e / half) ** doublings if e < half < np.inf else e for e, half in pairs]

    def uniform_is_better(self, kernel: Any, rng: np.random.Generator) -> bool:
        """Return whether landmarks drawn uniformly predict the judging rows better than those of `Auto`.

        With fewer landmarks than the effective dimension, landmarks spread evenly over the rows' range may leave too
        few where most rows are.
        """
        if self.tuning.all_landmarks:
            return False
        passes = RowPasses(ArrayRows(self.tuning.features))
        problem = Problem(passes, passes.distinct_rows(), kernel, None)
        spread = PIVOTS.choose(problem, self.tuning.n_landmarks, rng).indices
        assert spread is not None
        by_pivots = replace(self, tuning=self.tuning.starting_with(spread))
        errors, others = self.judged(kernel), by_pivots.judged(kernel)
        return Gain.of(errors, others).exceeds(_WORTH_UNIFORM)

    def judged_errors(self, kernels: Sequence[Any]) -> list[float]:
        """Return the error of every kernel, root of the mean square: on the judging rows, or on all if all judge."""

        def error(kernel: Any) -> float:
            judged, left_out = self._judged(kernel)
            errors, counts = [float(judged.mean()), left_out], [len(judged), len(self.tuning.weights)]
            return float(np.sqrt(np.average(errors, weights=counts) if self.all_judge else errors[0]))

        return self._in_threads(error, kernels)

    def judged(self, kernel: Any) -> Floats:
        """Return the squared errors of the judging rows, at the ridge of the smallest leave-one-out error."""
        return self._judged(kernel)[0]

    def _judged(self, kernel: Any) -> tuple[Floats, float]:
        """Return the squared errors of the judging rows, and the mean of those of the tuning rows, left out."""
        try:
            model, left_out = best_model(kernel, self.tuning, self.ridges)
            return judge(model, self.judging), left_out
        except np.linalg.LinAlgError:  # the kernel matrix is not definite
            return np.full(len(self.judging.weights), np.inf), np.inf

    def _from(self, shared: Shared, metrics: Metrics, name: str, candidate: Candidate | None = None) -> Found | None:
        """Descend from a candidate, the shared bandwidth or outer products; None where that is not possible."""
        kind = "trial" if candidate is None else "descent"
        key = kind, metrics.level, name, family_name(shared.family)
        if candidate is not None:
            at = candidate.metric, candidate.ridge
        elif name == "shared":
            at = np.eye(self.tuning.features.shape[1]) / shared.width, shared.ridge
        else:
            at = self._recall((*key, "outer products"), lambda: self._by_gradients(shared, metrics))
        if not np.isfinite(metrics.coordinates(at[0])).all():
            return None
        descent = Descent(self, shared.family, metrics, *at, partial(self._recall, key))
        best = descent.run()
        if best is None:
            return None
        errors, looks = np.sqrt(np.array(descent.errors)), np.array(descent.looks)
        record = Descended(metrics.level, family_name(shared.family), name, best.judged_error, errors, looks)
        return Found(shared, metrics, best, record)

    def _by_gradients(self, shared: Shared, metrics: Metrics) -> tuple[Floats, float]:
        """Return the best metric of a few rounds of `P <- M^1/2`, M the mean outer product of the model's gradients.

        Every round keeps the ratio of the median distance to the bandwidth, and tries some multiples of it.
        """
        best = (np.inf, np.eye(self.tuning.features.shape[1]) / shared.width, shared.ridge)
        _, metric, ridge = best
        for _ in range(_ROUNDS):
            kernel = with_metric(shared.family, metric)
            try:
                model = fit_small(kernel, self.tuning, ridge)
            except np.linalg.LinAlgError:
                break
            rows = self.tuning.features[:_GRADIENT_ROWS]
            gradients = kernel.gradient(rows, model.landmarks).of_functions(model.coefficients)
            outer = np.einsum("ijt,ikt->jk", gradients, gradients, optimize=True)
            if not 0.0 < np.trace(outer) < np.inf:  # a constant, or beyond the floating-point range
                break
            root = metrics.root(outer)
            power = _power(shared.family)
            before, after = (median_distance(self.tuning.features @ one, power) for one in (metric, root))
            scaled = [root * (before / after) * scale for scale in _SCALES]
            errors = [self._best_ridge(with_metric(shared.family, one), self.tuning) for one in scaled]
            position = int(np.argmin([error for error, _ in errors]))
            metric, (error, ridge) = scaled[position], errors[position]
            best = min(best, (error, metric, ridge), key=lambda one: one[0])
        return best[1], best[2]

    def _recall(self, key: Key, compute: Callable[[], Result], *more: Any) -> Result:
        """Return the result of a step, from the journal where it is there."""
        return compute() if self.journal is None else self.journal.recall((*key, *more), compute)

    def _best_ridge(self, kernel: Any, rows: Sample) -> tuple[float, float]:
        """Return the smallest error and its ridge; infinity where the kernel matrix is not definite or not finite."""
        try:
            error, ridge = best_ridge(kernel, rows, self.ridges)
        except np.linalg.LinAlgError:
            error = np.nan
        return (error, ridge) if np.isfinite(error) else (np.inf, float(self.ridges[-1]))

    def _in_threads(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Return the results in the order of the items; an interruption ends all of them."""
        with ThreadPoolExecutor(worker_threads(), thread_name_prefix="ridgemark-tuning") as pool:
            try:  # without NumPy's warnings: a thread does not inherit its caller's settings
                return list(pool.map(np.errstate(all="ignore")(work), items))
            except BaseException:
                self.interrupted.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _with_all_columns(metric: Floats) -> Floats:
    """Return a start at which every column has some influence: half of the squared distance is spread evenly over them.

    A descent soon gives very long bandwidths to columns that matter only as a product of each other, because other
    columns explain more at first; from there its gradient no longer shows the product.
    """
    squares = metric.diagonal() ** 2
    return np.diag(np.sqrt((squares + squares.mean()) / 2.0))


def _power(family: Any) -> int:
    """Return the power of differences that the family's distance sums."""
    return 2 if is_radial(family) else 1


def family_name(family: Any) -> str:
    """Return a family's name with its parameters other than bandwidth and metric."""
    shown = [f"{name}={value!r}" for name, value in family.get_params().items() if name not in ("bandwidth", "metric")]
    return f"{type(family).__name__}({', '.join(shown)})" if shown else type(family).__name__
