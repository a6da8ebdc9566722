"""One fit and one prediction on generated rows: the bare arithmetic, this package and scikit-learn, timed in turn.

All have the same kernel, ridge and number of landmarks. The bare arithmetic is the least that a fit in one pass must
do: one matrix product for the kernel, its exponential, and one symmetric update.

Run: python benchmarks/contenders.py, some seconds. benchmarks/fit.py is the long form.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ridgemark import NystromRidge
from ridgemark.backends import Floats

Calls = Mapping[str, Callable[[], Any]]

_BLOCK = 4096
_REST = 0.15  # seconds after which spinning threads go to sleep
_BANDWIDTH, _RIDGE = 6.0, 1e-6  # of the fit that is timed


def synthetic_rows(n: int, n_features: int = 20, seed: int = 0) -> tuple[Floats, Floats]:
    """Return standard normal rows and a noisy target that depends on three of their features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def bare_fit(X: Floats, Z: Floats, bandwidth: float) -> Floats:
    """Do the minimum of any fit in one pass: one product for the kernel, its exponential, a symmetric update."""
    gram = np.zeros((len(Z), len(Z)), order="F")
    for block in _kernel_blocks(X, Z, bandwidth):
        gram = dsyrk(1.0, block.T, beta=1.0, c=gram, overwrite_c=1)
    return gram


def bare_predict(X: Floats, Z: Floats, bandwidth: float, coefficients: Floats) -> Floats:
    """Do the minimum of any prediction: one product for the kernel, its exponential, and a product."""
    return np.concatenate([block @ coefficients for block in _kernel_blocks(X, Z, bandwidth)])


def _kernel_blocks(X: Floats, Z: Floats, bandwidth: float) -> Iterator[Floats]:
    """Yield the kernel of blocks of rows, each in the memory of the one before.

    Two columns added to rows and landmarks hold the squared norms, so that their product is the exponent.
    """
    rows = np.c_[X, (X * X).sum(axis=1), np.ones(len(X))]
    points = np.c_[2 * Z, -np.ones(len(Z)), -(Z * Z).sum(axis=1)] / (2 * bandwidth**2)
    buffer = np.empty((_BLOCK, len(Z)))
    for start in range(0, len(X), _BLOCK):
        block = rows[start : start + _BLOCK]
        block = np.matmul(block, points.T, out=buffer[: len(block)])
        yield np.exp(block, out=block)


def landmark_ridge(Z: Floats, bandwidth: float, ridge: float) -> Any:
    """Return our estimator with landmarks, bandwidth and ridge given."""
    return NystromRidge(bandwidth=bandwidth, ridge=ridge, selection=Z)


def scikit_learn_ridge(n: int, n_landmarks: int, bandwidth: float, ridge: float) -> Any:
    """Return scikit-learn's pipeline with the same kernel, ridge and number of landmarks."""
    return make_pipeline(
        Nystroem(gamma=1 / (2 * bandwidth**2), n_components=n_landmarks, random_state=0),
        Ridge(alpha=ridge * n, solver="cholesky"),
    )


def in_turn(calls: Calls, repeats: int) -> dict[str, Floats]:
    """Return the seconds of every call; each repeat runs all calls in turn."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            time.sleep(_REST)
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
    return {name: np.array(seconds) for name, seconds in taken.items()}


def compare_fits(
    X: Floats, y: Floats, n_landmarks: int, bandwidth: float, ridge: float, repeats: int
) -> dict[str, float]:
    """Time one fit with given landmarks and ridge: medians of seconds, and of ratios within a repeat."""
    Z, ours = _ours(X, n_landmarks, bandwidth, ridge)
    peer = scikit_learn_ridge(len(X), n_landmarks, bandwidth, ridge)
    fits: Calls = {
        "bare": lambda: bare_fit(X, Z, bandwidth),
        "ridgemark": lambda: ours.fit(X, y),
        "scikit_learn": lambda: peer.fit(X, y),
    }
    return _medians(in_turn(fits, repeats))


def compare_predictions(
    X: Floats, y: Floats, n_landmarks: int, bandwidth: float, ridge: float, repeats: int
) -> dict[str, float]:
    """Time the predictions for all rows by a model fitted to some of them; see `compare_fits`."""
    Z, ours = _ours(X, n_landmarks, bandwidth, ridge)
    ours.fit(X[: 2 * n_landmarks], y[: 2 * n_landmarks])
    bare = partial(bare_predict, X, Z, bandwidth, ours.dual_coef_)
    return _medians(in_turn({"bare": bare, "ridgemark": lambda: ours.predict(X)}, repeats))


def _ours(X: Floats, n_landmarks: int, bandwidth: float, ridge: float) -> tuple[Floats, Any]:
    Z = X[np.random.default_rng(1).choice(len(X), n_landmarks, replace=False)]
    return Z, landmark_ridge(Z, bandwidth, ridge)


def _medians(taken: dict[str, Floats]) -> dict[str, float]:
    medians = {f"{name}_seconds": float(np.median(seconds)) for name, seconds in taken.items()}
    medians["over_bare"] = float(np.median(taken["ridgemark"] / taken["bare"]))
    if "scikit_learn" in taken:
        medians["times_faster"] = float(np.median(taken["scikit_learn"] / taken["ridgemark"]))
    return medians


def line(seconds: dict[str, float]) -> str:
    """Return what was timed in one line."""
    parts = [f"{seconds['ridgemark_seconds']:.3g} s", f"{seconds['over_bare']:.2f} times the bare arithmetic"]
    if "times_faster" in seconds:
        parts.append(f"{seconds['times_faster']:.2f} times as fast as scikit-learn")
    return ", ".join(parts)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=20, help="at least 3")
    parser.add_argument("--landmarks", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5, help="medians of these are shown")
    options = parser.parse_args(arguments)
    rows = synthetic_rows(options.rows, options.features)
    print(f"{options.rows:,} x {options.features}, {options.landmarks} landmarks, medians of {options.repeats}")
    for name, compare in {"fit": compare_fits, "predict": compare_predictions}.items():
        print(f"{name}: {line(compare(*rows, options.landmarks, _BANDWIDTH, _RIDGE, options.repeats))}", flush=True)


if __name__ == "__main__":
    main()
