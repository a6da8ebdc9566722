"""Divide and conquer (Zhang, Duchi and Wainwright): kernel ridge regression on random parts of the rows, averaged."""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ridgemark.backends import Floats
from ridgemark.errors import ParameterError
from ridgemark.exact import Risk


def random_parts(n_rows: int, n_parts: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Divide the rows at random into parts whose sizes differ by at most one."""
    if not 1 <= n_parts <= n_rows:
        raise ParameterError(f"n_parts must lie between 1 and the number of rows, {n_rows}, got {n_parts!r}")
    return np.array_split(rng.permutation(n_rows), n_parts)


def averaging_smoother(kernel_matrix: Floats, parts: list[NDArray[np.intp]], ridge: float) -> Floats:
    """Return A with fitted values `A y`: the mean over parts J of `k(x, X_J) (K_JJ + |J| lambda I)^-1 y_J`.

    Every part uses the lambda of the whole set, as the method requires: each part overfits, and averaging helps.
    """
    smoother = np.zeros_like(kernel_matrix)
    for part in parts:
        inner = kernel_matrix[np.ix_(part, part)] + len(part) * ridge * np.eye(len(part))
        smoother[:, part] = scipy.linalg.solve(inner, kernel_matrix[part], assume_a="pos").T / len(parts)
    return smoother


def averaging_risk(
    kernel_matrix: Floats, parts: list[NDArray[np.intp]], signal: Floats, noise_variance: float, ridge: float
) -> Risk:
    """Return the in-sample risk: `|A f* - f*|^2/n + noise_variance |A|_F^2/n`."""
    smoother = averaging_smoother(kernel_matrix, parts, ridge)
    missed = smoother @ signal - signal
    n = len(signal)
    return Risk(float(missed @ missed) / n, noise_variance * float(np.sum(smoother**2)) / n)


def kernel_evaluations(parts: list[NDArray[np.intp]]) -> int:
    """Return the number of kernel evaluations of the fits, `sum |J|^2`, about n^2/m."""
    return sum(len(part) ** 2 for part in parts)
