"""The kernel of a fit: as given, with the median distance as bandwidth, or tuned."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from ridgemark.errors import ParameterError
from ridgemark.kernels import NAMED, Kernel, has_bandwidth, make_kernel
from ridgemark.kernels.stationary import StationaryKernel
from ridgemark.passes import RowPasses
from ridgemark.tuning.coordinates import LEVELS
from ridgemark.tuning.median import ROWS, median_distance
from ridgemark.tuning.record import TuningResult
from ridgemark.tuning.tuner import Tuner


def choose_kernel(
    kernel: Any,
    bandwidth: Any,
    passes: RowPasses,
    rng: np.random.Generator,
    ridge: Any = "loo",
    fit_intercept: bool = True,
    n_landmarks: Any = "auto",
    usual: Tuner | None = None,
) -> tuple[Kernel, TuningResult | None]:
    """Return the kernel with its bandwidth or metric, and how it was tuned.

    A Kernel object has its own bandwidth, and some kernels have none: they are used as they are, with columns as they
    are, and giving a bandwidth as well is an error. `usual` is the tuner where the bandwidth is none itself.
    """
    tuner = make_tuner(bandwidth, usual or Tuner())
    by_default = isinstance(bandwidth, str) and bandwidth in ("auto", "median")
    if tuner is not None and has_bandwidth(kernel) and issubclass(NAMED[kernel], StationaryKernel):
        if not passes.source.n_targets:
            raise ParameterError(
                'a bandwidth is tuned to targets, and there are none here; give bandwidth="median", a number or one '
                "per feature"
            )
        return tuner.tune(kernel, passes, ridge, fit_intercept, rng, n_landmarks)
    if by_default and has_bandwidth(kernel):
        return _by_median(kernel, passes, rng), None
    if tuner is not None and not by_default:
        raise ParameterError(
            f"bandwidth={bandwidth!r} cannot tune kernel={kernel!r}; give the name of a kernel of the distance, such "
            'as "gaussian", or "auto"'
        )
    chosen: Any = None if by_default else bandwidth
    if chosen is not None and np.ndim(chosen) and not isinstance(chosen, str):
        try:
            chosen = np.asarray(chosen, dtype=np.float64)
        except (TypeError, ValueError):
            raise _wrong(bandwidth) from None
    # A copy: changes of the user's kernel after a fit must not change the fitted model.
    return clone(make_kernel(kernel, chosen)), None


def make_tuner(bandwidth: Any, usual: Tuner) -> Tuner | None:
    """Return the tuner that a bandwidth asks for, at one level or all; None for a number, numbers or "median"."""
    if isinstance(bandwidth, Tuner):
        return bandwidth
    if isinstance(bandwidth, str) and bandwidth in LEVELS:
        return replace(usual, levels=(bandwidth,))
    if isinstance(bandwidth, str) and bandwidth == "auto":
        return usual
    if bandwidth is None or (isinstance(bandwidth, str) and bandwidth != "median"):
        raise _wrong(bandwidth)
    return None


def _by_median(kernel: Any, passes: RowPasses, rng: np.random.Generator) -> Kernel:
    """Return the kernel with the median distance between rows as bandwidth, every column in its own unit."""
    distinct, columns = passes.distinct_rows(), passes.columns()
    sample = rng.choice(distinct.indices, min(ROWS, len(distinct)), replace=False)
    median = median_distance(columns.in_units(passes.take(sample).features))
    return clone(make_kernel(kernel)).set_params(bandwidth=median * columns.units)


def _wrong(bandwidth: Any) -> ParameterError:
    return ParameterError(
        'bandwidth must be "auto", "shared", "per_feature", "metric", "median", a Tuner, a positive number or one per '
        f"feature, got {bandwidth!r}"
    )
