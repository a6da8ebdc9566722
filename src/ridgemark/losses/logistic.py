"""Log losses of labels: logistic for two classes, softmax for several.

Both are linear in y. So rows with equal features are one row, with their total weight and mean target.
"""

from typing import ClassVar

import numpy as np
from scipy.special import expit, log_softmax, softmax

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

    def values(self, targets: Floats, predictor: Floats) -> Floats:
        return (np.logaddexp(0.0, predictor) - targets * predictor)[:, 0]

    def slopes(self, targets: Floats, predictor: Floats) -> Floats:
        return expit(predictor) - targets

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

    def values(self, targets: Floats, predictor: Floats) -> Floats:
        return -(targets * log_softmax(predictor, axis=1)).sum(axis=1)

    def slopes(self, targets: Floats, predictor: Floats) -> Floats:
        return softmax(predictor, axis=1) - targets

    def curvature(self, predictor: Floats) -> Floats:
        p = softmax(predictor, axis=1)
        return (p * (1.0 - p)).sum(axis=1) / (p.shape[1] - 1)

    def curvature_product(self, predictor: Floats, vectors: Floats) -> Floats:
        p = softmax(predictor, axis=1)
        return p * (vectors - (p * vectors).sum(axis=1, keepdims=True))

    def log_probabilities(self, predictor: Floats) -> Floats:
        return log_softmax(predictor, axis=1)


def class_loss(n_classes: int) -> ClassLoss:
    """Return the log loss for so many classes."""
    return Logistic() if n_classes == 2 else Softmax()
