"""Kernels and kernel ridge regression in 50 digits, from the same floating-point numbers."""

from __future__ import annotations

import mpmath
import numpy as np

from ridgemark.kernels import (
    Bernoulli,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Mixture,
    Polynomial,
    PowerExponential,
    Product,
    Scaled,
    Sum,
)

DIGITS = 50


def kernel_value(kernel, x, z):
    """Return k(x, z) by its definition, in the precision mpmath works in; mapped rows count as given numbers."""
    if isinstance(kernel, Mixture):
        return _mixture(kernel, kernel.mapped(x[None])[0], kernel.mapped(z[None])[0])
    x, z = ([mpmath.mpf(float(v)) for v in side] for side in (x, z))
    if isinstance(kernel, Sum):
        return kernel_value(kernel.left, x, z) + kernel_value(kernel.right, x, z)
    if isinstance(kernel, Product):
        return kernel_value(kernel.left, x, z) * kernel_value(kernel.right, x, z)
    if isinstance(kernel, Scaled):
        return mpmath.mpf(float(kernel.factor)) * kernel_value(kernel.kernel, x, z)
    return _FORMULAS[type(kernel)](kernel, x, z)


def _apart(kernel, x, z):
    """Return the components of `P'(x - z)`, or the differences of coordinates in bandwidths."""
    metric = getattr(kernel, "metric", None)
    if metric is not None:
        return [
            _dot([mpmath.mpf(float(p)) for p in column], [a - b for a, b in zip(x, z, strict=True)])
            for column in np.transpose(metric)
        ]
    widths = np.broadcast_to(kernel.bandwidth, len(x))
    return [(a - b) / mpmath.mpf(float(w)) for a, b, w in zip(x, z, widths, strict=True)]


def radial_value(kernel, rho):
    """Return a radial kernel as a function of the squared distance, in bandwidths or in the metric."""
    r = mpmath.sqrt(rho)
    if isinstance(kernel, Gaussian):
        return mpmath.exp(-rho / 2)
    if isinstance(kernel, Matern12):
        return mpmath.exp(-r)
    if isinstance(kernel, Matern32):
        return (1 + mpmath.sqrt(3) * r) * mpmath.exp(-mpmath.sqrt(3) * r)
    if isinstance(kernel, Matern52):
        return (1 + mpmath.sqrt(5) * r + 5 * rho / 3) * mpmath.exp(-mpmath.sqrt(5) * r)
    return mpmath.exp(-(r ** mpmath.mpf(float(kernel.exponent))))


def _radial(kernel, x, z):
    return radial_value(kernel, mpmath.fsum(a * a for a in _apart(kernel, x, z)))


def _mixture(kernel, x, z):
    """Return the weighted sum of the parts at mapped rows, the radial ones of the shared distance."""
    weights = [mpmath.mpf(float(one)) for one in kernel.weights]
    total = mpmath.mpf(0)
    if len(kernel.radial):
        rho = mpmath.fsum(a * a for a in _apart(kernel, *([mpmath.mpf(float(v)) for v in side] for side in (x, z))))
        for weight, part in zip(weights, kernel.radial, strict=False):
            total += weight * radial_value(part, rho / mpmath.mpf(float(part.bandwidth)) ** 2)
    for weight, part in zip(weights[len(kernel.radial) :], kernel.others, strict=True):
        total += weight * kernel_value(part, x, z)
    return total


def _linear(kernel, x, z):
    """Return the product of rows measured from the origin in widths."""
    origin, widths = (np.broadcast_to(0.0 if one is None else one, len(x)) for one in (kernel.origin, kernel.widths))
    x, z = (
        [(a - mpmath.mpf(float(o))) / mpmath.mpf(float(w)) for a, o, w in zip(side, origin, widths, strict=True)]
        for side in (x, z)
    )
    return _dot(x, z)


def _dot(x, z):
    return mpmath.fsum(a * b for a, b in zip(x, z, strict=True))


def _polynomial(kernel, x, z):
    widths = [mpmath.mpf(float(w)) for w in np.broadcast_to(kernel.bandwidth, len(x))]
    products = mpmath.fsum(a * b / w**2 for a, b, w in zip(x, z, widths, strict=True))
    return (products + mpmath.mpf(float(kernel.offset))) ** int(kernel.degree)


def _bernoulli(kernel, x, z):
    degree, turn = 2 * kernel.order, x[0] - z[0]
    return (-1) ** (kernel.order - 1) * mpmath.bernpoly(degree, turn - mpmath.floor(turn)) / mpmath.factorial(degree)


_FORMULAS = {
    Gaussian: _radial,
    Laplacian: lambda kernel, x, z: mpmath.exp(-mpmath.fsum(abs(a) for a in _apart(kernel, x, z))),
    Matern12: _radial,
    Matern32: _radial,
    Matern52: _radial,
    PowerExponential: _radial,
    Linear: _linear,
    Polynomial: _polynomial,
    Cosine: lambda kernel, x, z: _dot(x, z) / mpmath.sqrt(_dot(x, x) * _dot(z, z)),
    Bernoulli: _bernoulli,
}


class KernelRidge:
    """Exact kernel ridge regression; rows of weight zero are absent."""

    def __init__(self, kernel, X, y, scaled_ridge, weights=None, fit_intercept=False):
        weights = np.ones(len(X)) if weights is None else weights
        present = np.flatnonzero(weights)
        self.kernel, self.X = kernel, X[present]
        y, shift = numbers(y[present]), mpmath.mpf(scaled_ridge) / numbers(weights[present])
        K = np.empty((len(y), len(y)), dtype=object)
        for i, x in enumerate(self.X):
            K[i, : i + 1] = K[: i + 1, i] = [kernel_value(kernel, x, z) for z in self.X[: i + 1]]
        of_ones, of_y = solve_positive(K + np.diag(shift), np.ones_like(y), y)
        self.constant = of_y.sum() / of_ones.sum() if fit_intercept else 0
        self.coefficients = of_y - self.constant * of_ones
        self.fitted = y - shift * self.coefficients  # at the rows present

    def __call__(self, rows):
        """Return the function at some rows."""
        values = ([kernel_value(self.kernel, x, z) for z in self.X] for x in rows)
        return np.array([self.coefficients @ np.array(row, dtype=object) + self.constant for row in values])


def kernel_ridge(kernel, X, y, scaled_ridge, weights=None, fit_intercept=False, at=None):
    """Return exact kernel ridge regression at the rows `at`, the training rows unless given, as mpmath numbers."""
    return list(KernelRidge(kernel, X, y, scaled_ridge, weights, fit_intercept)(X if at is None else at))


def numbers(values):
    """Return floats as an array of mpmath numbers."""
    return np.array([mpmath.mpf(float(value)) for value in values], dtype=object)


def solve_positive(matrix, *right):
    """Solve by Gaussian elimination without pivoting, for a positive definite matrix; one row for each right side."""
    n, table = len(matrix), np.column_stack([matrix, *right])
    for k in range(n):
        table[k, k:] = table[k, k:] / table[k, k]
        table[k + 1 :, k + 1 :] -= np.outer(table[k + 1 :, k], table[k, k + 1 :])
    for k in range(n - 1, -1, -1):
        table[:k, n:] -= np.outer(table[:k, k], table[k, n:])
    return table[:, n:].T
