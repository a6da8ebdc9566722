"""Losses with a logarithmic link: counts (Poisson) and positive amounts (gamma)."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Self

import numpy as np

from ridgemark.backends import Array, Flags, Floats, backend_of
from ridgemark.errors import DataError
from ridgemark.losses.loss import Loss, LossWords
from ridgemark.losses.robust import weighted_quantile

_SMALL = 0.05  # the quantile of the positive targets that counts as one event


class LogLink(Loss):
    """A loss whose prediction is `exp(eta)`."""

    positive: ClassVar[bool] = True
    linear_in_targets: ClassVar[bool] = True

    def predicted(self, predictor: Floats) -> Floats:
        return np.exp(predictor)

    def predicted_slope(self, predictor: Floats) -> Floats:
        return np.exp(predictor)

    def constant(self, targets: Floats, weights: Floats) -> float:
        """Return the logarithm of the mean target."""
        unit = float(targets.max())
        return float(np.log(weights @ (targets[:, 0] / unit)) - np.log(weights.sum()) + np.log(unit))


@dataclass(frozen=True)
class Poisson(LogLink):
    """`exp(eta) - y eta`, minus its smallest value: half the deviance of counts, whose variance is their mean.

    With an exposure e the mean is `e exp(eta)`: rows have the target `y/e` and the weight `w e`.

    Parameters
    ----------
    event : float, optional
        The size of one event, half of which is added to targets before their logarithm is taken to tune the kernel; by
        default the 5% quantile of the positive targets, which is 1 for counts.
    """

    event: Annotated[float | None, "> 0"] = None

    name: ClassVar[str] = "poisson"
    words: ClassVar[LossWords] = LossWords(
        "Poisson regression", "the mean count", "half the Poisson deviance", "share of the deviance explained (D^2)"
    )
    nats: ClassVar[bool] = True
    weighs_exposure: ClassVar[bool] = True

    def values(self, targets: Array, predictor: Array) -> Array:
        xp, counted = backend_of(predictor).xp, targets > 0
        moved = predictor - xp.log(xp.where(counted, targets, xp.ones_like(targets)))
        return xp.where(counted, targets * (xp.expm1(moved) - moved), xp.exp(predictor))[:, 0]

    def slopes(self, targets: Array, predictor: Array) -> Array:
        return backend_of(predictor).xp.exp(predictor) - targets

    def curvature(self, targets: Array, predictor: Array) -> Array:
        return backend_of(predictor).xp.exp(predictor)[:, 0]

    def check(self, targets: Floats, weights: Floats) -> None:
        _refuse(targets, weights, targets < 0, self.name, "not be negative")

    def bound(self, targets: Floats, weights: Floats) -> Self:
        self.check(targets, weights)
        positive = (targets[:, 0] > 0) & (weights > 0)
        if not positive.any():
            raise DataError(
                'the targets of loss="poisson" are all zero, so the mean count has no logarithm; give rows with counts'
            )
        if self.event is not None:
            return self
        return replace(self, event=weighted_quantile(targets[positive, 0], weights[positive], _SMALL))

    def outcomes(self, targets: Floats) -> Floats:
        return (targets > 0).astype(float)

    def response(self, targets: Array) -> Array:
        assert self.event is not None
        return backend_of(targets).xp.log(targets + self.event / 2)

    def spread(self, predictor: Floats) -> Floats:
        return np.exp(predictor / 2)

    def with_exposure(self, targets: Floats, weights: Floats, exposure: Floats) -> tuple[Floats, Floats]:
        return targets / exposure[:, None], weights * exposure

    def conjugate(self, targets: Floats, slopes: Floats) -> Floats:
        mean = np.maximum(slopes + targets, 0.0)
        entropies = (x * np.log(np.where(x > 0, x, 1.0)) for x in (mean, targets))
        return (next(entropies) - next(entropies) - slopes)[:, 0]

    def distances(self, gap: float, total_weight: float) -> dict[str, float]:
        return {"root_mean": float(np.sqrt(gap / (8 * total_weight)))}


@dataclass(frozen=True)
class Gamma(LogLink):
    """`y exp(-eta) + eta`, minus its smallest value: half the deviance of positive amounts.

    Their standard deviation is a share of their mean. With an exposure e the mean is `e exp(eta)`: rows have the
    target `y/e`.
    """

    name: ClassVar[str] = "gamma"
    words: ClassVar[LossWords] = LossWords(
        "gamma regression", "the mean amount", "half the gamma deviance", "share of the deviance explained (D^2)"
    )

    def values(self, targets: Array, predictor: Array) -> Array:
        xp = backend_of(predictor).xp
        moved = xp.log(targets) - predictor
        return (xp.expm1(moved) - moved)[:, 0]

    def slopes(self, targets: Array, predictor: Array) -> Array:
        return 1.0 - targets * backend_of(predictor).xp.exp(-predictor)

    def curvature(self, targets: Array, predictor: Array) -> Array:
        return (targets * backend_of(predictor).xp.exp(-predictor))[:, 0]

    def check(self, targets: Floats, weights: Floats) -> None:
        _refuse(targets, weights, targets <= 0, self.name, "be positive")

    def response(self, targets: Array) -> Array:
        return backend_of(targets).xp.log(targets)

    def spread(self, predictor: Floats) -> Floats:
        return np.exp(predictor)

    def with_exposure(self, targets: Floats, weights: Floats, exposure: Floats) -> tuple[Floats, Floats]:
        return targets / exposure[:, None], weights

    def conjugate(self, targets: Floats, slopes: Floats) -> Floats:
        u, rest = slopes[:, 0], np.maximum(1.0 - slopes, 0.0)[:, 0]
        return rest * np.log(np.where(rest > 0, rest, 1.0)) + u * (1.0 + np.log(targets[:, 0]))


def _refuse(targets: Floats, weights: Floats, wrong: Flags, name: str, required: str) -> None:
    """Refuse targets of positive weight that lie outside the domain of a loss."""
    rows = np.flatnonzero(wrong[:, 0] & (weights > 0))
    if len(rows):
        others = "" if len(rows) == 1 else f" and in {len(rows) - 1:,} more"
        raise DataError(
            f"the targets of loss={name!r} must {required}, got {targets[rows[0], 0]:g} in row {rows[0]}{others}; "
            'correct or drop these rows, or choose another loss, such as "huber"'
        )
