"""Log losses of labels: logistic for two classes, softmax for several.

Both are linear in y. So rows with equal features are one row, with their total weight and mean target.
"""

from typing import ClassVar

import numpy as np
from scipy.special import expit

from ridgemark.backends import Floats
from ridgemark.losses.loss import Loss


class ClassLoss(Loss):
    """A log loss of labels.

    Targets are indicators: of the second class, shape (n, 1), or of every class, shape (n, K).
    """

    def log_probabilities(self, predictor: Floats) -> Floats:
        """Return the logarithm of the probability of every class, shape (n, K), from the log-odds eta."""
        raise NotImplementedError

    def indicators(self, targets: Floats) -> Floats:
        """Return the indicator of every class, shape (n, K)."""
        return targets


class Logistic(ClassLoss):
    """`log(1 + exp(eta)) - y eta` for y in [0, 1]: `l' = p - y` and `l'' = p (1 - p)`, with `p = 1/(1 + exp(-eta))`."""

    steepest: ClassVar[float] = 0.25

    def values(self, targets: Floats, predictor: Floats) -> Floats:
        # Two terms of one sign: exact also where the loss is tiny.
        return ((1.0 - targets) * np.logaddexp(0.0, predictor) + targets * np.logaddexp(0.0, -predictor))[:, 0]

    def slopes(self, targets: Floats, predictor: Floats) -> Floats:
        return (1.0 - targets) * expit(predictor) - targets * expit(-predictor)

    def curvature(self, predictor: Floats) -> Floats:
        return (expit(predictor) * expit(-predictor))[:, 0]

    def log_probabilities(self, predictor: Floats) -> Floats:
        return -np.logaddexp(0.0, np.hstack([predictor, -predictor]))

    def indicators(self, targets: Floats) -> Floats:
        return np.hstack([1.0 - targets, targets])


class Softmax(ClassLoss):
    """`log sum_k exp(eta_k) - y'eta` for y with sum 1: `l' = p - y`, `l'' = diag(p) - p p'`, with `p = softmax(eta)`.

    The matrix l'' has one eigenvalue zero, of equal entries; the mean of the others is `sum_k p_k (1 - p_k)/(K - 1)`.
    """

    scalar: ClassVar[bool] = False
    steepest: ClassVar[float] = 0.5  # Boehning's bound

    def values(self, targets: Floats, predictor: Floats) -> Floats:
        return -(targets * self.log_probabilities(predictor)).sum(axis=1)

    def slopes(self, targets: Floats, predictor: Floats) -> Floats:
        p, rest = _probabilities(predictor)
        return (1.0 - targets) * p - targets * rest

    def curvature(self, predictor: Floats) -> Floats:
        return self.curvature_diagonal(predictor).sum(axis=1) / (predictor.shape[1] - 1)

    def curvature_diagonal(self, predictor: Floats) -> Floats:
        return np.multiply(*_probabilities(predictor))

    def curvature_product(self, predictor: Floats, vectors: Floats) -> Floats:
        p, _ = _probabilities(predictor)
        return p * (vectors - (p * vectors).sum(axis=1, keepdims=True))

    def log_probabilities(self, predictor: Floats) -> Floats:
        shifted = predictor - predictor.max(axis=1, keepdims=True)
        return shifted - np.log1p(_others(shifted))


def _others(shifted: Floats) -> Floats:
    """Return the sum of `exp(eta_k - max eta)` over all classes but the largest one, shape (n, 1)."""
    exponentials = np.exp(shifted)
    np.put_along_axis(exponentials, shifted.argmax(axis=1)[:, None], 0.0, axis=1)
    return exponentials.sum(axis=1, keepdims=True)


def _probabilities(predictor: Floats) -> tuple[Floats, Floats]:
    """Return p and `1 - p`, both exact where they are tiny."""
    shifted = predictor - predictor.max(axis=1, keepdims=True)
    others = _others(shifted)
    p = np.exp(shifted) / (1.0 + others)
    rest = 1.0 - p
    np.put_along_axis(rest, shifted.argmax(axis=1)[:, None], others / (1.0 + others), axis=1)
    return p, rest


def class_loss(n_classes: int) -> ClassLoss:
    """Return the log loss for so many classes."""
    return Logistic() if n_classes == 2 else Softmax()
