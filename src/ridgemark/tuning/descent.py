"""Descent on the leave-one-out error, stopped by the error on other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from ridgemark.backends import Floats
from ridgemark.kernels import Mixture
from ridgemark.tuning.coordinates import Coordinates
from ridgemark.tuning.criterion import Evaluation, Sample, SmallModel, evaluate
from ridgemark.tuning.scratch import Scratch

_ITERATIONS_PER_LOOK = 2
_IMPROVED = 1e-3  # relative gain on the judging rows that is worth further looks
_MEAN_ERRORS, _SIGN_ERRORS = 2.0, 3.0  # standard errors by which a gain must exceed zero: in the mean, or in sign
_TINY = float(np.finfo(np.float64).tiny)
_STEPS = 12  # lengths tried in one direction; where more are needed, rounding hides the decrease
# In single precision a descent ends after so many steps in one direction that change the error by less than this share.
_ALIKE_STEPS, _ALIKE = 4, 3e-4
_REMEMBERED = 20  # steps from which L-BFGS estimates curvature


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mixture with its ridge, and how it did on the judging rows."""

    kernel: Mixture  # for rows in units of their columns
    ridge: float
    judged: Floats  # squared error of every judging row, times its relative weight

    @property
    def judged_error(self) -> float:
        """Root of the mean squared error on the judging rows."""
        return float(np.sqrt(self.judged.mean()))


def judge_errors(residuals: Floats, judging: Sample) -> Floats:
    """Return the squared residual of every judging row, the mean over targets, times its relative weight."""
    return (residuals**2).mean(axis=1) * (judging.weights * len(judging.weights))


def judge(model: SmallModel, judging: Sample) -> Floats:
    """Return the squared error of every judging row, times its relative weight; of groups, if they are many, that.

    Errors within a group are alike, so that groups count as one observation each.
    """
    return judging.of_units(model.squared_errors(judging) * (judging.weights * len(judging.weights)))


@dataclass(frozen=True)
class Gain:
    """How much smaller the errors of one kernel are than those of another, on the judging rows."""

    share: float  # of the root mean square that is saved
    standard_errors: float  # the paired gain in squared error, in units of its standard error
    better: float  # share of the rows that are predicted better
    n_rows: int

    @classmethod
    def of(cls, errors: Floats, others: Floats) -> Gain:
        """Compare the squared errors of the same rows."""
        errors, others = errors.astype(np.float64), others.astype(np.float64)  # single precision has no _TINY
        gains, before = others - errors, max(float(np.sqrt(others.mean())), _TINY)
        noise = max(float(gains.std()) / np.sqrt(len(gains)), _TINY)
        share = 1.0 - float(np.sqrt(errors.mean())) / before
        return cls(share, float(gains.mean() / noise), float(np.mean(gains > 0.0)), len(gains))

    def exceeds(self, share: float) -> bool:
        """Return whether more than this share is saved, and not by chance; without the latter pure noise is tuned.

        Either the mean gain exceeds two standard errors, or the share of rows predicted better exceeds a half by three
        standard errors: where few rows have most of the error, the mean gain is not reliable.
        """
        signs = (2.0 * self.better - 1.0) * np.sqrt(self.n_rows)
        return self.share > share and (self.standard_errors > _MEAN_ERRORS or bool(signs > _SIGN_ERRORS))


class _Stopped(Exception):
    pass


@dataclass(eq=False)
class Descent:
    """One run of L-BFGS over the coordinates of a mixture, on log E.

    The error on the judging rows, or without such rows that of rows left out, is checked after every second iteration.
    The run ends when the evaluations are used up, when `patience` checks in a row found no gain of 0.1%, or at a
    minimum. Its result is the best mixture that was checked.
    """

    coordinates: Coordinates
    tuning: Sample
    judging: Sample
    evaluations: int
    patience: int
    count: Callable[[], None]  # called before every evaluation; may raise an error that ends the run
    space: Scratch
    errors: list[float] = field(default_factory=list)  # leave-one-out error of every evaluation
    looks: list[tuple[int, float]] = field(default_factory=list)  # evaluations before it, error on the judging rows
    best: Candidate | None = None
    _to_beat: float = np.inf
    _worse: int = 0
    _iterations: int = 0
    _before: int = 0  # evaluations before this iteration
    _last: tuple[bytes, Evaluation] | None = None

    def run(self, ridge: float) -> Candidate | None:
        """Return the best mixture found; None if the criterion cannot be evaluated at the start."""
        x = self.coordinates.vector(ridge)
        try:
            self._look(x)
            minimum = minimize(
                self._criterion,
                x,
                jac=True,
                method="L-BFGS-B",
                bounds=self.coordinates.bounds(),
                callback=self._after_iteration,
                options={"maxcor": _REMEMBERED, "maxls": _STEPS, "maxfun": 10**6, "gtol": 1e-6, "ftol": 1e-6},
            )
            self._look(minimum.x)
        except (_Stopped, np.linalg.LinAlgError):  # a kernel matrix that is not definite ends the run
            pass
        return self.best

    def _evaluation(self, x: Floats) -> Evaluation:
        if self._last is not None and self._last[0] == x.tobytes():
            return self._last[1]
        if len(self.errors) >= self.evaluations or self._is_hidden_by_rounding():
            raise _Stopped
        self.count()
        result = evaluate(self.coordinates.kernel(x), self.coordinates.ridge(x), self.tuning, self.space)
        self.errors.append(result.error)
        if not np.isfinite(result.error):
            raise _Stopped
        self._last = x.tobytes(), result
        return result

    def _is_hidden_by_rounding(self) -> bool:
        """Return whether the steps tried since the last iteration leave the error as it is, in single precision."""
        tried = self.errors[self._before :]
        if not self.tuning.is_single or len(tried) < _ALIKE_STEPS:
            return False
        return bool(np.ptp([*tried, self.errors[self._before - 1]]) < _ALIKE * tried[0])

    def _criterion(self, x: Floats) -> tuple[float, Floats]:
        result, at = self._evaluation(x), self.coordinates
        error = max(result.error, _TINY)
        slope = at.gradient(result.kernel, at.ridge(x), result.slopes) / error
        if not np.isfinite(slope).all():  # beyond the floating-point range
            raise _Stopped
        return float(np.log(error)), slope

    def _after_iteration(self, x: Floats) -> None:
        self._iterations += 1
        self._before = len(self.errors)
        if self._iterations % _ITERATIONS_PER_LOOK == 0:
            self._look(x)
            if self._worse >= self.patience:
                raise _Stopped

    def _look(self, x: Floats) -> None:
        result = self._evaluation(x)
        judged = judge(result.model, self.judging) if len(self.judging.weights) else result.left_out
        candidate = Candidate(result.kernel, self.coordinates.ridge(x), judged)
        self.looks.append((len(self.errors), candidate.judged_error))
        if not np.isfinite(candidate.judged_error):
            raise _Stopped
        if candidate.judged_error < (1.0 - _IMPROVED) * self._to_beat:
            self._to_beat, self._worse = candidate.judged_error, 0
        else:
            self._worse += 1
        if self.best is None or candidate.judged_error < self.best.judged_error:
            self.best = candidate
