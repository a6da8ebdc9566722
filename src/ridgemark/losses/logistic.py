"""Log losses of labels: logistic for two classes, softmax for several.

Both are linear in y. So rows with equal features are one row, with their total weight and mean target.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from ridgemark.backends import Array, Floats, backend_of
from ridgemark.losses.loss import Loss, LossWords


class ClassLoss(Loss):
    """A log loss of labels.

    Targets are indicators: of the second class, shape (n, 1), or of every class, shape (n, K).
    """

    words: ClassVar[LossWords] = LossWords(
        "kernel logistic regression", "the probability of each class", "log loss", "share of rows predicted right"
    )
    linear_in_targets: ClassVar[bool] = True
    nats: ClassVar[bool] = True

    @abstractmethod
    def log_probabilities(self, predictor: Array) -> Array:
        """Return the logarithm of the probability of every class, shape (n, K), from the log-odds eta."""

    @abstractmethod
    def _probabilities(self, predictor: Array) -> tuple[Array, Array]:
        """Return p and `1 - p` of every target, both exact where they are tiny."""

    def slopes(self, targets: Array, predictor: Array) -> Array:
        p, rest = self._probabilities(predictor)
        return (1.0 - targets) * p - targets * rest

    def curvature_diagonal(self, targets: Array, predictor: Array) -> Array:
        p, rest = self._probabilities(predictor)
        return p * rest

    def indicators(self, targets: Array) -> Array:
        """Return the indicator of every class, shape (n, K)."""
        return targets

    def outcomes(self, targets: Floats) -> Floats:
        return self.indicators(targets)


@dataclass(frozen=True)
class Logistic(ClassLoss):
    """`log(1 + exp(eta)) - y eta` for y in [0, 1]: `l' = p - y` and `l'' = p (1 - p)`, with `p = 1/(1 + exp(-eta))`."""

    name: ClassVar[str] = "logistic"
    steepest: ClassVar[float] = 0.25

    def values(self, targets: Array, predictor: Array) -> Array:
        # Two terms of one sign: exact also where the loss is tiny.
        logs = self.log_probabilities(predictor)
        return -((1.0 - targets[:, 0]) * logs[:, 0] + targets[:, 0] * logs[:, 1])

    def curvature(self, targets: Array, predictor: Array) -> Array:
        return self.curvature_diagonal(targets, predictor)[:, 0]

    def log_probabilities(self, predictor: Array) -> Array:
        backend = backend_of(predictor)
        both = backend.xp.concat([predictor, -predictor], axis=1)
        return -backend.at_least(both, 0.0) - backend.xp.log1p(backend.xp.exp(-abs(both)))

    def indicators(self, targets: Array) -> Array:
        return backend_of(targets).xp.concat([1.0 - targets, targets], axis=1)

    def _probabilities(self, predictor: Array) -> tuple[Array, Array]:
        xp = backend_of(predictor).xp
        odds = xp.exp(-abs(predictor))  # of the less probable class
        likely, unlikely, positive = 1.0 / (1.0 + odds), odds / (1.0 + odds), predictor > 0
        return xp.where(positive, likely, unlikely), xp.where(positive, unlikely, likely)


@dataclass(frozen=True)
class Softmax(ClassLoss):
    """`log sum_k exp(eta_k) - y'eta` for y with sum 1: `l' = p - y`, `l'' = diag(p) - p p'`, with `p = softmax(eta)`.

    The matrix l'' has one eigenvalue zero, of equal entries; the mean of the others is `sum_k p_k (1 - p_k)/(K - 1)`.
    """

    name: ClassVar[str] = "softmax"
    scalar: ClassVar[bool] = False
    steepest: ClassVar[float] = 0.5  # Boehning's bound

    def values(self, targets: Array, predictor: Array) -> Array:
        return -(targets * self.log_probabilities(predictor)).sum(axis=1)

    def curvature(self, targets: Array, predictor: Array) -> Array:
        return self.curvature_diagonal(targets, predictor).sum(axis=1) / (predictor.shape[1] - 1)

    def curvature_parts(self, targets: Array, predictor: Array) -> Array:
        return self._probabilities(predictor)[0]

    def curvature_times(self, parts: Array, vectors: Array) -> Array:
        return parts * (vectors - backend_of(parts).xp.einsum("ij,ij->i", parts, vectors)[:, None])

    def log_probabilities(self, predictor: Array) -> Array:
        shifted, _, _, others = _exponentials(predictor)
        return shifted - backend_of(predictor).xp.log1p(others)

    def _probabilities(self, predictor: Array) -> tuple[Array, Array]:
        _, exponentials, largest, others = _exponentials(predictor)
        p = exponentials / (1.0 + others)
        return p, backend_of(p).xp.where(largest, others / (1.0 + others), 1.0 - p)


def _exponentials(predictor: Array) -> tuple[Array, Array, Array, Array]:
    """Return `eta - max eta`, its exponentials, which class is the largest, and the sum over all others, (n, 1)."""
    backend = backend_of(predictor)
    shifted = predictor - backend.xp.max(predictor, axis=1)[:, None]
    numbers = backend.xp.arange(predictor.shape[1], device=backend.device)
    largest = numbers == backend.xp.argmax(shifted, axis=1)[:, None]
    exponentials = backend.xp.exp(shifted)
    return shifted, exponentials, largest, backend.xp.where(largest, 0.0, exponentials).sum(axis=1)[:, None]


def class_loss(n_classes: int) -> ClassLoss:
    """Return the log loss for so many classes."""
    return Logistic() if n_classes == 2 else Softmax()
