"""The search: one length for all columns, one per feature, a matrix; few rows first, then more; other rows judge."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from ridgemark.backends import Floats, worker_threads
from ridgemark.kernels import Laplacian, Mixture
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.selection import Problem
from ridgemark.selection.auto import PIVOTS
from ridgemark.tuning.coordinates import Coordinates, matrix_of, of_length
from ridgemark.tuning.criterion import Sample, best_model, best_ridge, fit_small
from ridgemark.tuning.descent import Candidate, Descent, Gain, judge
from ridgemark.tuning.median import median_distance
from ridgemark.tuning.record import Descended
from ridgemark.tuning.scratch import Scratch

Item = TypeVar("Item")
Result = TypeVar("Result")

FACTORS = (0.15, 0.25, 0.4, 0.6, 1.0, 1.6, 2.5, 4.0)  # lengths tried, over the median distance
_AS_GOOD = 2e-3  # share of the squared error by which lengths do not differ; the one nearest the median is taken
_GRID_ROWS, _GRID_LANDMARKS = 1000, 150  # with which lengths are compared
_FEW_ROWS, _FEW_LANDMARKS = 1500, 200  # with which most of a metric is found
SINGLE_FROM = 400  # rows from which on single precision saves much time
_LEAST_IN_SINGLE = 1e-6  # lambda: sums in single precision are known to some 1e-7
# Looks without a gain that end a descent: one for so many judging rows. Few cannot tell small gains that come late.
_ROWS_PER_LOOK, _FEWEST_LOOKS = 200, 3
_LEAST_EIGENVALUE = 1e-6  # of a mean outer product, relative to the largest: descent never raises the rank of P
_ROUNDS = 3  # of outer products
_SCALES = (0.7, 1.0, 1.4)  # lengths of a metric tried after each
_GRADIENT_ROWS = 2000  # rows whose gradients are averaged
_WORTH_UNIFORM = 0.01  # share of the error that uniform landmarks must save
_SHORTER, _WORTH_SHORTER = (0.7, 0.5), 0.001  # factors of all lengths tried at last, and the share they must save
_WORTH_A_PART, _PART_ERRORS = 0.001, 1.0  # share of the error that a part must save, and standard errors


class Interrupted(Exception):
    """Another descent was interrupted."""


class Counter:
    """Counts evaluations, from any thread, and reports them."""

    def __init__(self, total: int, report: Callable[[str, int, int], None] | None) -> None:
        self.done, self._total, self._report, self._lock = 0, total, report, threading.Lock()

    def add(self, number: int = 1) -> None:
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
class DescentResult:
    """The best mixture of one descent."""

    level: str
    candidate: Candidate
    record: Descended


@dataclass(frozen=True, eq=False)
class Expected:
    """The error of a mixture on the judging rows, and what it is expected to be with more landmarks."""

    judged: Floats  # squared error of every judging row
    saved: float  # share of the error that twice the landmarks save
    error: float  # after some doublings of the landmarks

    @classmethod
    def of(cls, judged: Floats, before: Floats, doublings: float) -> Expected:
        """Compare the errors with those of half of the landmarks."""
        error, earlier = float(np.sqrt(judged.mean())), float(np.sqrt(before.mean()))
        saved = 1.0 - error / earlier if 0.0 < error < earlier < np.inf else 0.0
        return cls(judged, saved, error * (1.0 - saved) ** doublings)

    def is_better(self, other: Expected, share: float) -> bool:
        """Return whether the expected error is smaller than another by this share."""
        return (1.0 + share) * self.error < other.error


@dataclass(eq=False)
class Search:
    """Searches for a mixture on one sample.

    Independent descents run in threads, and so do parts of the rows of one evaluation, each with one BLAS thread: the
    result does not depend on the number of threads.
    """

    tuning: Sample
    judging: Sample
    ridges: Floats  # lambdas searched, ascending
    evaluations: int  # of each descent
    patience: int
    count: Callable[[], None]  # called before every evaluation
    threads: Executor | None = None  # for parts of the rows
    interrupted: threading.Event = field(default_factory=threading.Event)

    def on_few(self) -> Search:
        """Return the search with fewer rows and landmarks; if they are still many, in single precision."""
        smaller = replace(self, tuning=self.tuning.first(_FEW_ROWS, _FEW_LANDMARKS))
        many = len(smaller.tuning.weights) >= SINGLE_FROM
        return smaller.in_single_precision() if many and self.ridges[-1] >= _LEAST_IN_SINGLE else smaller

    def in_single_precision(self) -> Search:
        """Return the search in single precision, which takes half the time."""
        return replace(self, tuning=self.tuning.in_single_precision(), judging=self.judging.in_single_precision())

    def start(self, mixture: Mixture) -> tuple[Mixture, float, float]:
        """Return the mixture with the best length for all columns, its leave-one-out error, and its ridge."""
        rows = self.tuning.first(_GRID_ROWS, _GRID_LANDMARKS)
        medians = {power: median_distance(self.tuning.features, power) for power in (1, 2)}
        starts = [_with_length(mixture, factor, medians, rows.features.shape[1]) for factor in FACTORS]

        def error_and_ridge(kernel: Mixture) -> tuple[float, float]:
            self._counted()
            return self._best_ridge(kernel, rows)

        results = self._in_threads(error_and_ridge, starts)
        enough = (1.0 + _AS_GOOD) * min(error for error, _ in results)
        as_good = [k for k, (error, _) in enumerate(results) if error <= enough]
        best = min(as_good, key=lambda k: abs(np.log(FACTORS[k])))
        return starts[best], *results[best]

    def descend(self, starts: Sequence[tuple[str, str, Mixture, float]]) -> list[DescentResult]:
        """Descend from some starts, each a level, a name, a mixture and a ridge; drop those that fail at once."""
        return [result for result in self._in_threads(self._descended, starts) if result is not None]

    def _descended(self, start: tuple[str, str, Mixture, float]) -> DescentResult | None:
        level, name, mixture, ridge = start
        if name == "outer products":
            mixture, ridge = self._by_gradients(mixture, ridge)
        if name == "all columns included":
            mixture = _with_all_columns(mixture)
        smallest, largest = float(self.ridges[0]), float(self.ridges[-1])
        if self.tuning.is_single:
            smallest = max(smallest, _LEAST_IN_SINGLE)
        coordinates = Coordinates(mixture, level, (smallest, largest))
        if not np.isfinite(coordinates.vector(ridge)).all():
            return None
        patience = min(self.patience, max(_FEWEST_LOOKS, len(self.judging.weights) // _ROWS_PER_LOOK))
        given = coordinates, self.tuning, self.judging, self.evaluations, patience, self._counted
        descent = Descent(*given, Scratch(self.threads))
        best = descent.run(ridge)
        if best is None:
            return None
        errors, looks = np.sqrt(np.array(descent.errors)), np.array(descent.looks)
        record = Descended(level, name, len(self.tuning.weights), best.judged_error, errors, looks)
        return DescentResult(level, best, record)

    def _by_gradients(self, mixture: Mixture, ridge: float) -> tuple[Mixture, float]:
        """Return the best metric of a few rounds of `P <- M^1/2`, M the mean outer product of the model's gradients.

        Every round keeps the ratio of the median distance to the bandwidth, and tries some multiples of it.
        """
        best = (np.inf, mixture, ridge)
        for _ in range(_ROUNDS):
            try:
                model, _ = fit_small(mixture, self.tuning, ridge)
            except np.linalg.LinAlgError:
                break
            rows = self.tuning.features[:_GRADIENT_ROWS]
            gradients = mixture.gradient(rows, model.landmarks).of_functions(model.coefficients)
            outer = np.einsum("ijt,ikt->jk", gradients, gradients, optimize=True)
            if not 0.0 < np.trace(outer) < np.inf:  # a constant, or beyond the floating-point range
                break
            values, vectors = np.linalg.eigh(outer)
            root = (vectors * np.sqrt(np.maximum(values, _LEAST_EIGENVALUE * values.max()))) @ vectors.T
            before, after = (median_distance(self.tuning.features @ matrix) for matrix in (matrix_of(mixture), root))
            tried = [mixture.changed(bandwidth=1.0, metric=root * (before / after) * scale) for scale in _SCALES]
            errors = [self._best_ridge(trial, self.tuning.first(_GRID_ROWS, _GRID_LANDMARKS)) for trial in tried]
            position = int(np.argmin([error for error, _ in errors]))
            mixture, (error, ridge) = tried[position], errors[position]
            best = min(best, (error, mixture, ridge), key=lambda result: result[0])
        return best[1], best[2]

    def without_idle_parts(self, candidate: Candidate) -> Candidate:
        """Return the mixture without the parts that save less than 0.1% of the error or one standard error.

        A part that saves 0.1% of the leave-one-out error stays too: few judging rows cannot tell what it is worth. The
        part that saves least is left out first, at the same ridge; then the best ridge of the remaining parts is found.
        A part that is not idle stays needed when others are left out. A mixture with a matrix keeps one radial part.
        """
        mixture, ridge = candidate.kernel, candidate.ridge
        (errors, left_out), idle = self.both_errors(mixture, ridge), list(range(len(mixture.weights)))
        while idle and len(mixture.weights) > 1:
            if mixture.metric is not None and len(mixture.radial) == 1:
                idle = [number for number in idle if number > 0]
            rests = {number: without(mixture, number) for number in idle}
            found = dict(
                zip(rests, self._in_threads(partial(self.both_errors, ridge=ridge), rests.values()), strict=True)
            )
            gains = {number: Gain.of(errors, judged) for number, (judged, _) in found.items()}
            enough = left_out / (1.0 - _WORTH_A_PART) ** 2
            idle = [number for number in idle if _is_idle(gains[number]) and found[number][1] < enough]
            if not idle:
                break
            least = min(idle, key=lambda number: gains[number].share)
            mixture, ridge = rests[least], self._best_ridge(rests[least], self.tuning)[1]
            errors, left_out = self.both_errors(mixture, ridge)
            idle = [number - (number > least) for number in idle if number != least]
        return Candidate(mixture, ridge, errors)

    def expected(self, mixtures: Sequence[Mixture], doublings: float) -> list[Expected]:
        """Return the error of every mixture on the judging rows, and as expected after some doublings of the landmarks.

        Each further doubling is expected to save the same share of it as the last one did.
        """
        halves = replace(self, tuning=self.tuning.first(len(self.tuning.weights), self.tuning.n_landmarks // 2))
        judged, before = (self._in_threads(search.judged, mixtures) for search in (self, halves))
        return [Expected.of(*errors, doublings) for errors in zip(judged, before, strict=True)]

    def shortened(self, mixture: Mixture, doublings: float) -> tuple[Mixture, Expected]:
        """Return the mixture with all lengths 0.7 or 0.5 times as long, where that lowers the expected error.

        0.5 is tried only where 0.7 does better than 1.
        """
        shorter, shortest = (scaled(mixture, factor) for factor in _SHORTER)
        expected, other = self.expected([mixture, shorter], doublings)
        if not other.is_better(expected, _WORTH_SHORTER):
            return mixture, expected
        (last,) = self.expected([shortest], doublings)
        return (shortest, last) if last.is_better(other, _WORTH_SHORTER) else (shorter, other)

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

    def judged(self, kernel: Any, ridge: float | None = None) -> Floats:
        """Return the squared errors of the judging rows, at a ridge or that of the smallest leave-one-out error."""
        return self.both_errors(kernel, ridge)[0]

    def both_errors(self, kernel: Any, ridge: float | None = None) -> tuple[Floats, float]:
        """Return what `judged` does, and the mean squared error of the tuning rows left out."""
        try:
            if ridge is None:
                model, left_out = best_model(kernel, self.tuning, self.ridges)
            else:
                model, left_out = fit_small(kernel, self.tuning, ridge)
            return judge(model, self.judging), left_out
        except np.linalg.LinAlgError:  # the kernel matrix is not definite
            return self.judging.of_units(np.full(len(self.judging.weights), np.inf)), np.inf

    def _counted(self) -> None:
        if self.interrupted.is_set():
            raise Interrupted
        self.count()

    def _best_ridge(self, kernel: Any, rows: Sample) -> tuple[float, float]:
        """Return the smallest error and its ridge; infinity where the kernel matrix is not definite or not finite."""
        try:
            error, ridge = best_ridge(kernel, rows, self.ridges)
        except np.linalg.LinAlgError:
            error = np.nan
        return (error, ridge) if np.isfinite(error) else (np.inf, float(self.ridges[-1]))

    def _in_threads(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the results in the order of the items; an interruption ends all of them."""
        with ThreadPoolExecutor(worker_threads(), thread_name_prefix="ridgemark-tuning") as pool:
            try:  # without NumPy's warnings: a thread does not inherit its caller's settings
                return list(pool.map(np.errstate(all="ignore")(work), items))
            except BaseException:
                self.interrupted.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _is_idle(gain: Gain) -> bool:
    """Return whether a part saves too little; False where the kernel is not definite without it."""
    return gain.share < _WORTH_A_PART or gain.standard_errors < _PART_ERRORS


def _with_length(mixture: Mixture, factor: float, medians: dict[int, float], n_features: int) -> Mixture:
    """Return the mixture with one length for all columns, this factor of the median distance."""
    others = [
        Laplacian(np.full(n_features, factor * medians[1])) if isinstance(part, Laplacian) else part
        for part in mixture.others
    ]
    wide = np.full(n_features, factor * medians[2])
    return mixture.changed(others=others, bandwidth=wide)


def scaled(mixture: Mixture, factor: float) -> Mixture:
    """Return the mixture with all lengths multiplied by a factor."""
    others = [
        Laplacian(np.asarray(part.bandwidth) * factor) if isinstance(part, Laplacian) else part
        for part in mixture.others
    ]
    if mixture.metric is None:
        return mixture.changed(others=others, bandwidth=np.asarray(mixture.bandwidth) * factor)
    return mixture.changed(others=others, metric=np.asarray(mixture.metric) / factor)


def _with_all_columns(mixture: Mixture) -> Mixture:
    """Return a start at which every column has some influence: half of the squared distance is spread evenly over them.

    A descent soon gives very long bandwidths to columns that matter only as a product of each other, because other
    columns explain more at first; from there its gradient no longer shows the product.
    """
    squares = np.asarray(mixture.bandwidth) ** -2.0
    wide = ((squares + squares.mean()) / 2.0) ** -0.5
    return mixture.changed(bandwidth=wide)


def without(mixture: Mixture, number: int) -> Mixture:
    """Return the mixture without one part; the first length stays 1."""
    parameters = mixture.get_params(deep=False)
    weights = [weight for k, weight in enumerate(mixture.weights) if k != number]
    n_radial = len(mixture.radial)
    radial = [part for k, part in enumerate(mixture.radial) if k != number]
    others = [part for k, part in enumerate(mixture.others, start=n_radial) if k != number]
    total = sum(weights)
    parameters |= {"radial": radial, "others": others, "weights": [weight / total for weight in weights]}
    if radial and float(radial[0].bandwidth) != 1.0:
        unit = float(radial[0].bandwidth)
        parameters["radial"] = [of_length(part, float(part.bandwidth) / unit) for part in radial]
        if mixture.metric is None:
            parameters["bandwidth"] = np.asarray(mixture.bandwidth) * unit
        else:
            parameters["metric"] = np.asarray(mixture.metric) / unit
    if not radial:
        parameters |= {"bandwidth": 1.0, "metric": None}
    return Mixture(**parameters)
