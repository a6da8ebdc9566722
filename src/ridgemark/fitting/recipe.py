"""The parameters of a fit, checked; the only place where lambda is multiplied by n."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from ridgemark.backends import Flags, Floats
from ridgemark.certificates import KINDS
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.fitting.effort import Effort, effort_of
from ridgemark.linalg import check_range
from ridgemark.losses import Moments
from ridgemark.parameters import check_flags, positive_count, real_number
from ridgemark.path import Ridges
from ridgemark.selection import make_selection
from ridgemark.selection.count import ALL_ROWS_UP_TO
from ridgemark.transforms import KINDS as TRANSFORMS
from ridgemark.tuning import TuningResult

SOLVERS = ("auto", "direct", "gradient")


@dataclass(frozen=True)
class Recipe:
    """The parameters of a fit; every field is the `NystromRidge` parameter of that name."""

    kernel: Any
    bandwidth: Any
    ridge: Any
    n_landmarks: Any
    selection: Any
    risk_tolerance: float = 0.1
    failure_probability: float = 0.05
    ridge_per_target: bool = False
    fit_intercept: bool = False
    solver: Any = "direct"
    certify_with: Any = None
    effort: Any = "default"
    target_transform: Any = None

    def __post_init__(self) -> None:
        check_ridge(self.ridge)
        effort_of(self.effort)
        if not (isinstance(self.n_landmarks, str) and self.n_landmarks == "auto"):
            positive_count(self.n_landmarks, "n_landmarks", ' or "auto"')
        _check_one_of("solver", self.solver, SOLVERS)
        if self.certify_with is not None:
            _check_one_of("certify_with", self.certify_with, KINDS, "None or one of")
        if self.target_transform is not None:
            _check_one_of("target_transform", self.target_transform, (*TRANSFORMS, "auto"))
        check_flags(self, "fit_intercept", "ridge_per_target")
        for name, largest in (("risk_tolerance", math.inf), ("failure_probability", 0.5)):
            value = getattr(self, name)
            if not 0 < real_number(value) < largest:
                raise ParameterError(f"{name} must be a number between 0 and {largest:g}, got {value!r}")
        if self.certify_with is not None and self.solver == "gradient":
            raise ParameterError(
                'certify_with needs the sums that a direct solver keeps; leave solver="auto" or choose "direct"'
            )

    def after(self, tuning: TuningResult | None) -> Recipe:
        """Return the recipe with what tuning found of the landmarks."""
        auto = isinstance(self.selection, str) and self.selection == "auto"
        return replace(self, selection="uniform") if auto and tuning and tuning.uniform_landmarks else self

    @property
    def chosen_effort(self) -> Effort:
        """The tuner and the share of the usual landmarks."""
        return effort_of(self.effort)

    @property
    def one_ridge(self) -> bool:
        """Whether the ridge is given, not searched."""
        return isinstance(self.ridge, Real)

    @property
    def criterion(self) -> str:
        """The criterion that chooses among ridges: "loo" or "gcv"."""
        return "gcv" if isinstance(self.ridge, str) and self.ridge == "gcv" else "loo"

    def needs_first_ridge(self, n_distinct: int) -> bool:
        """Return whether the landmarks, or their number, depend on the ridge."""
        selection = make_selection(self.selection)
        counted = isinstance(self.n_landmarks, str) and selection.own_count() is None and n_distinct > ALL_ROWS_UP_TO
        return selection.needs_ridge or counted

    def first_ridge(self, suggested: float | None, total_weight: float) -> float:
        """Return the n lambda at which landmarks are drawn: of the ridge given, or else of the one suggested."""
        return float(_scaled(np.array(self.ridge if self.one_ridge else suggested, dtype=np.float64), total_weight))

    def smallest_ridge(self, total_weight: float) -> float | None:
        """Return the smallest n lambda of those given; None where the ridges depend on the kernel."""
        return None if isinstance(self.ridge, str) else float(_scaled(np.min(self.ridge), total_weight))

    def ridges(self, moments: Moments, decades: int = 14, factor: float = 1.0) -> Ridges:
        """Return the ridges to search: those given, or some decades below the kernel's mean diagonal times a factor."""
        if isinstance(self.ridge, str):
            mean_diagonal = float(check_range(np.array(moments.trace_kernel))) / moments.total_weight
            ridges = default_ridges(mean_diagonal * factor, moments.total_weight, decades)
        else:
            ridges = np.atleast_1d(np.asarray(self.ridge, dtype=np.float64))
        descending = np.sort(ridges)[::-1]
        return Ridges(descending, _scaled(descending, moments.total_weight))


def _scaled(ridges: Floats, total_weight: float) -> Floats:
    """Return `n lambda` for every lambda, n the total weight of the rows: here alone lambda meets n."""
    scaled = np.asarray(ridges, dtype=np.float64) * total_weight
    if not _in_range(scaled).all():
        raise NumericalError(
            f"ridge times the sum of weights {total_weight:g} leaves the floating-point range, "
            f"got {scaled.min():g} to {scaled.max():g}; rescale the weights or choose another ridge"
        )
    return scaled


def default_ridges(mean_diagonal: float, total_weight: float = 1.0, decades: int = 14) -> Floats:
    """Return the path searched when none is given: some decades down from the kernel's mean diagonal, four in each.

    Ridges that leave the floating-point range when multiplied by the sum of weights are not searched.
    """
    ridges = (mean_diagonal if mean_diagonal > 0 else 1.0) * np.logspace(0, -decades, 4 * decades + 1)
    usable: Floats = ridges[_in_range(ridges * total_weight)]
    if not len(usable):
        raise NumericalError(
            f"every ridge to search, times the sum of weights, leaves the floating-point range: the kernel's diagonal "
            f"has mean {mean_diagonal:.3g}, the weights sum to {total_weight:.3g}; multiply the kernel or the weights "
            "by a factor"
        )
    return usable


def _in_range(scaled_ridges: Floats) -> Flags:
    """Return which values of n lambda, with their inverses and products, stay within the floating-point range."""
    return (scaled_ridges > 1e-300) & (scaled_ridges < 1e300)


def check_ridge(ridge: Any) -> None:
    """Raise an error unless the value is a ridge, a list of ridges, "loo" or "gcv"."""
    if isinstance(ridge, str) and ridge in ("loo", "gcv"):
        return
    try:
        values = np.asarray(ridge, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.array(np.nan)
    usable = values.ndim <= 1 and values.size and np.isfinite(values).all() and (values > 0).all()
    if not usable or isinstance(ridge, str | bool):
        raise ParameterError(
            f'ridge must be a positive finite number, a list of them to search, "loo" or "gcv", got {ridge!r}'
        )


def _check_one_of(name: str, value: Any, allowed: tuple[str, ...], words: str = "one of") -> None:
    if not (isinstance(value, str) and value in allowed):
        raise ParameterError(f"{name} must be {words} {', '.join(map(repr, allowed))}, got {value!r}")
