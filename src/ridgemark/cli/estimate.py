"""Time and memory of a fit, estimated before it begins from counted operations and the measured speed."""

import time
from typing import Any

import numpy as np

from ridgemark.backends.threads import one_blas_thread, worker_threads
from ridgemark.report.fit_words import spoken
from ridgemark.rows import DEFAULT_MEMORY_BUDGET, RowSource
from ridgemark.selection.count import memory_limit, work_limit
from ridgemark.selection.pilot import PILOT
from ridgemark.solvers import solver_cost

LONG = 10.0  # seconds; a longer run is announced beforehand
_MATRICES = 6  # p x p arrays that a fit holds at once
_BLOCK = 2048  # rows of a block; each thread holds three arrays of a block
_SEARCHED = 41  # ridges searched; their residuals and squared residuals are held at once
_PER_ROW = 12  # numbers a fit holds per row: groups of equal rows, score brackets, weights
_PILOTS = 4  # passes over the rows with the landmarks of the pilot
_TUNING, _TUNING_ROWS = 1.2e12, 8000  # multiplications and additions of a default tuning, and the rows it may take
_SIDE = 384  # size of the matrices whose product measures the speed
_SHARE = 0.27  # fraction of that speed that a whole fit reaches, with exponentials, reading and sums


def estimate(source: RowSource, n_landmarks: Any, searched: bool, tuned: bool = False) -> tuple[float, float]:
    """Return seconds and bytes a fit may take; "auto" counts as the most landmarks it may take."""
    n, t = source.n_rows, source.n_targets
    p = min(n, work_limit(n), memory_limit(None)) if n_landmarks == "auto" else min(n, int(n_landmarks))
    cost = solver_cost(n, p, source.n_features, t, _SEARCHED if searched else 1)
    pilots = _PILOTS * solver_cost(n, min(n, PILOT), source.n_features, t).direct
    tuning = _TUNING * min(1.0, n / _TUNING_ROWS) ** 3 if tuned else 0.0
    operations = min(cost.direct, 2 * cost.gradient) + 0.7 * pilots + tuning
    seconds = operations / (_SHARE * _operations_per_second())
    residuals = 16.0 * n * (t + 1) * _SEARCHED if searched else 0.0
    held = 0 if getattr(source, "reads_ahead", False) else source.n_features  # rows of a file are not held
    rows = 8.0 * n * (_PER_ROW + held)
    memory = 8.0 * (_MATRICES * p**2 + 3 * worker_threads() * min(n, _BLOCK) * p) + min(residuals, 2.0**29) + rows
    memory = max(memory, min(8.0 * n * p, DEFAULT_MEMORY_BUDGET) + rows)  # the factor of randomly pivoted Cholesky
    return seconds, memory


def forecast(source: RowSource, n_landmarks: Any, searched: bool, tuned: bool = False) -> str | None:
    """Return the estimate as text if the run may be long, else None."""
    seconds, memory = estimate(source, n_landmarks, searched, tuned)
    if seconds < LONG:
        return None
    size = f"up to about {spoken(seconds)} and {memory / 2**30:.1f} GiB"
    return f"{source.n_rows:,} rows: {size}; Ctrl-C during the fit writes nothing"


def _operations_per_second() -> float:
    a = np.ones((_SIDE, _SIDE))
    threads = worker_threads()
    with one_blas_thread():
        a @ a
        begin = time.perf_counter()
        for _ in range(3):
            a @ a
        taken = time.perf_counter() - begin
    return threads * 3 * 2.0 * _SIDE**3 / max(taken, 1e-6)
