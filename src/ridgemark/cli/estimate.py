"""Time and memory of a fit, estimated before it begins from counted operations and the measured speed."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ridgemark.backends.threads import one_blas_thread, worker_threads
from ridgemark.kernels import Gaussian
from ridgemark.report.fit_words import spoken
from ridgemark.rows import DEFAULT_MEMORY_BUDGET, BaseRows, RowSource
from ridgemark.selection.count import ALL_ROWS_UP_TO, FEWEST, memory_limit, work_limit
from ridgemark.selection.pilot import PILOT
from ridgemark.solvers import LANDMARKS_BEFORE_GRADIENT, choose_solver, solver_cost
from ridgemark.tuning import Tuner
from ridgemark.tuning.criterion import Sample, evaluate
from ridgemark.tuning.draw import MOST_FEATURES

Clock = Callable[[], float]

AUDITED = 10_000  # up to this many rows an audit (one product with the kernel matrix) takes seconds
LONG = 10.0  # seconds; a longer run is announced beforehand
_MATRICES = 6  # p x p arrays that a fit holds at once
_BLOCK = 2048  # rows of a block; each thread holds three arrays of a block
_SEARCHED = 49  # ridges searched; their residuals and squared residuals are held at once
_PER_ROW = 12  # numbers a fit holds per row: groups of equal rows, score brackets, weights
_SIDE, _TIMES = 384, 10  # size and number of the matrix products, and of the kernel blocks, that measure the speed

# What fits were measured to take: operations of a matrix product, and entries of a kernel block.
_PASSES = {True: 4.0, False: 6.7}  # n p^2, where the features of all rows can be held, and where they cannot
_CUBED, _PILOTS = 54.0, 7.0  # p^3, n 500 min(p, 500)
_ENTRIES, _AUDIT, _PER_SEARCH = 5.0, 0.5, 1600.0  # n p, n^2, n
_START = 0.2  # seconds of the smallest fit
_SOLVING = (0.75, 1.4)  # what a fit took over these counts, at least and at most
_LEAST, _MOST = 0.85, 0.5  # "auto" takes mostly this share of its limit, or more; at most this one of the rows


# Evaluations of the criterion that tuning takes: besides descents, and in them, which may end early. Measured without
# the Laplacian; what it adds is counted.
_BESIDES, _DESCENTS = (85.0, 110.0), (100.0, 200.0)
_EVALUATIONS = 40  # of each descent, in these measurements
_AT_ONCE = 4  # descents at most
_TIMED_ROWS, _OVERHEAD = 1000, 1500  # rows of the evaluation that is timed; one takes as long as m + 1500


class Estimate(NamedTuple):
    """Seconds, at least and at most; those that tuning takes at most; bytes; and the most landmarks."""

    least: float
    most: float
    tuning: float
    memory: float
    n_landmarks: int


class Speed(NamedTuple):
    """Seconds of one operation of a matrix product, and of one entry of a kernel block."""

    operation: float
    entry: float


def estimate(
    source: RowSource, n_landmarks: Any, searched: bool, tuner: Tuner | None = None, clock: Clock = time.perf_counter
) -> Estimate:
    """Return what a fit may take on this machine: products, kernel entries and a step of the tuner are timed."""
    n = source.n_rows
    if n_landmarks == "auto":
        most = min(max(ALL_ROWS_UP_TO, int(_MOST * n)), n, work_limit(n), memory_limit(DEFAULT_MEMORY_BUDGET))
        least = max(1, int(_LEAST * most))
    else:
        most = least = min(n, int(n_landmarks))
    speed = measured_speed(source.n_features, clock)
    tuning = (0.0, 0.0) if tuner is None else _tuning(source, tuner.sizes(n_landmarks), tuner.evaluations, clock)
    low, high = (
        share * _solving(source, p, searched, speed) + seconds
        for share, p, seconds in zip(_SOLVING, (least, most), tuning, strict=True)
    )
    return Estimate(low, high, tuning[1], _memory(source, most, searched), most)


def _tuning(source: RowSource, sizes: tuple[int, int, int], evaluations: int, clock: Clock) -> tuple[float, float]:
    """Return the seconds that tuning takes, at least and at most: one evaluation on a few rows is timed."""
    rows = max(2, min(sizes[0], 3 * source.n_rows // 4))
    landmarks = max(1, min(sizes[2], rows // 2))
    timed = max(min(_TIMED_ROWS, rows), landmarks)
    features = np.random.default_rng(0).normal(size=(timed, min(source.n_features, MOST_FEATURES)))
    sample = Sample(features, features[:, :1], np.full(timed, 1.0 / timed), landmarks, True)
    with one_blas_thread():
        begin = clock()
        evaluate(Gaussian(), np.eye(features.shape[1]), 1.0, sample)
        taken = (clock() - begin) * (rows + _OVERHEAD) / (timed + _OVERHEAD) / min(worker_threads(), _AT_ONCE)
    share = evaluations / _EVALUATIONS
    least, most = (taken * (one + share * more) for one, more in zip(_BESIDES, _DESCENTS, strict=True))
    return least, most


def _solving(source: RowSource, p: int, searched: bool, speed: Speed) -> float:
    """Return the seconds of a fit without tuning: operations of the solver and a pilot, and kernel entries `5 n p`.

    An audit takes `n^2 / 2` further entries, and a search for the ridge the time of 1,600 n.
    """
    n = source.n_rows
    pilot = _PILOTS * n * min(n, PILOT) * min(p, PILOT)
    entries = _ENTRIES * n * p + _PER_SEARCH * n * searched + (_AUDIT * n**2 if n <= AUDITED else 0.0)
    return _START + (_operations(source, p, searched) + pilot) * speed.operation + entries * speed.entry


def _operations(source: RowSource, p: int, searched: bool) -> float:
    """Return the operations of the solver: for one ridge as it counts them; `4 n p^2 + 54 p^3` to search for the ridge.

    Features that cannot be held are computed twice: `6.7 n p^2`. The gradient solver searches with fewer landmarks.
    """
    size = source.n_rows, p, source.n_features, source.n_targets
    cost, by_gradient, operations = solver_cost(*size), choose_solver(*size) == "gradient", 0.0
    if searched:
        some = min(p, LANDMARKS_BEFORE_GRADIENT) if by_gradient else p
        held = 8 * source.n_rows * some <= DEFAULT_MEMORY_BUDGET
        operations = _PASSES[held] * source.n_rows * some**2 + _CUBED * some**3
    if by_gradient:
        operations += 2 * cost.gradient
    return operations or 2 * cost.direct


def _memory(source: RowSource, p: int, searched: bool) -> float:
    n, t = source.n_rows, source.n_targets
    residuals = 16.0 * n * (t + 1) * _SEARCHED if searched else 0.0
    stay = isinstance(source, BaseRows) and source.staying(None) is not source  # as rows of a small file do
    held = source.n_features if stay or not getattr(source, "reads_ahead", False) else 0
    rows = 8.0 * n * (_PER_ROW + held)
    memory = 8.0 * (_MATRICES * p**2 + 3 * worker_threads() * min(n, _BLOCK) * p) + min(residuals, 2.0**29) + rows
    return max(memory, min(8.0 * n * p, DEFAULT_MEMORY_BUDGET) + rows)  # the factor of randomly pivoted Cholesky


def forecast(source: RowSource, n_landmarks: Any, searched: bool, tuner: Tuner | None = None) -> str | None:
    """Return the estimate as text, with an option that shortens the run, if that may be long, else None."""
    found = estimate(source, n_landmarks, searched, tuner)
    if found.most < LONG:
        return None
    takes = f"{spoken(found.least)} to {spoken(found.most)} and about {max(found.memory / 2**30, 0.1):.1f} GiB"
    fewer = f"--landmarks {max(FEWEST, found.n_landmarks // 2)}"
    faster = "--bandwidth median, without tuning" if found.tuning > found.most / 2 else f"{fewer}, less accurate"
    return f"{source.n_rows:,} rows: {takes}; faster: {faster}; Ctrl-C during the fit writes nothing"


def measured_speed(n_features: int, clock: Clock) -> Speed:
    """Return the seconds of an operation of a matrix product, and of a kernel entry, on all worker threads."""
    taken = min(n_features, MOST_FEATURES)
    a, rows, kernel = np.ones((_SIDE, _SIDE)), np.random.default_rng(0).normal(size=(_SIDE, taken)), Gaussian()
    with one_blas_thread():
        threads = worker_threads()
        product, block = _seconds(lambda: a @ a, clock), _seconds(lambda: kernel(rows, rows), clock)
    return Speed(product / (2.0 * _SIDE**3) / threads, block * n_features / taken / _SIDE**2 / threads)


def _seconds(work: Callable[[], object], clock: Clock) -> float:
    work()
    begin = clock()
    for _ in range(_TIMES):
        work()
    return max(clock() - begin, 1e-6) / _TIMES
