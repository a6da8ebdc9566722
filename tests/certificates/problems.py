"""Random problems, their fits, and the exact solutions that certificates are tested against."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ridgemark import exact
from ridgemark.kernels import Gaussian, Laplacian, Linear, Matern12, Matern32, Mixture, Polynomial
from ridgemark.losses import loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.selection import Given, Problem, make_selection
from ridgemark.solvers import solve_landmarks

KERNELS = [
    Gaussian(1.0),
    Gaussian(3.0),
    Laplacian(2.0),
    Matern12(1.0),
    Matern32(0.5),
    Linear(),
    Polynomial(2),
    100.0 * Gaussian(1.0) + Linear(),
    Mixture([Gaussian(3.0), Matern32(0.3), Matern12(1.0)], [Laplacian(2.0), Linear()], [1.0, 0.5, 0.1, 0.2, 0.3], 2.0),
]
WITH_METRIC = [Gaussian, Matern12, Matern32]  # with a random matrix
SAMPLERS = ["uniform", "diagonal", "leverage", "recursive", "bless", "rpcholesky", "kmeans", "rank_leverage"]


class Fitted:
    """A fit from landmarks with its rows."""

    def __init__(self, X, y, kernel, landmarks, ridge, weights=None, fit_intercept=False, sampler=None, seed=0):
        self.X, self.kernel, self.weights = X, kernel, np.ones(len(X)) if weights is None else weights
        self.y = y.reshape(len(X), -1)
        self.passes = RowPasses(ArrayRows(X, self.y, weights))
        scaled_ridge = np.broadcast_to(ridge * self.weights.sum(), (self.y.shape[1],)).astype(float)
        if sampler is None:
            selection = Given(indices=landmarks) if np.ndim(landmarks) == 1 else Given(points=landmarks)
            count = len(landmarks)
        else:
            selection, count = make_selection(sampler), landmarks
        problem = Problem(self.passes, self.passes.distinct_rows(), kernel, float(scaled_ridge.min()))
        chosen = selection.choose(problem, count, np.random.default_rng(seed))
        self.indices = chosen.indices
        factor = nystrom_factor(kernel, chosen.points, chosen.indices)
        origin = np.average(self.y, axis=0, weights=weights) if fit_intercept else np.zeros(self.y.shape[1])
        moments = loss_sums(self.passes, factor, origin, float(scaled_ridge.min()))
        self.fit = solve_landmarks(factor, moments, fit_intercept, scaled_ridge, origin)

    def predict(self, X):
        return self.fit.factor.cross_kernel(X) @ self.fit.dual_coef + self.fit.intercept

    def distance(self):
        """RMS distance of the fitted values to exact kernel ridge regression, per target."""
        return np.sqrt(np.average((self.predict(self.X) - self.exact(self.X)) ** 2, axis=0, weights=self.weights))

    def exact(self, X):
        K, cross = exact.kernel_matrix(self.X, self.kernel), self.kernel(X, self.X)
        fits = [
            exact.kernel_ridge(K, self.y[:, t], s, self.weights, self.fit.fit_intercept).predict(cross)
            for t, s in enumerate(self.fit.scaled_ridge)
        ]
        return np.stack(fits, axis=1)

    def rounding(self):
        """The rounding error of exact.py itself, per target: `eps |K|/(n lambda)` times the targets."""
        largest = np.linalg.eigvalsh(exact.weighted_kernel(exact.kernel_matrix(self.X, self.kernel), self.weights))[-1]
        relative = 8 * np.finfo(float).eps * (1 + largest / self.fit.scaled_ridge)
        return relative * np.abs(self.y).max(axis=0)

    def operators(self):
        """K and L, weighted, and centred where there is an intercept."""
        K, B = exact.kernel_matrix(self.X, self.kernel), self.fit.factor.features(self.X)
        root = np.sqrt(self.weights)
        P = np.eye(len(root))
        if self.fit.fit_intercept:
            P -= np.outer(root, root) / self.weights.sum()
        return [P @ (root[:, None] * A * root) @ P for A in (K, B @ B.T)]

    def worst_bias_ratio(self):
        """Largest squared bias of L over that of K, over all signals."""
        K, L = self.operators()
        shift = float(self.fit.scaled_ridge.min()) * np.eye(len(K))
        return np.linalg.norm(np.linalg.solve(L + shift, K + shift), 2) ** 2

    def distance_in_exact_arithmetic(self, target=0):
        """The same distance from the kernel matrix, in rational arithmetic."""
        K, y = exact.kernel_matrix(self.X, self.kernel), self.y[:, target]
        f, s = self.predict(self.X)[:, target], Fraction(float(self.fit.scaled_ridge[target]))
        present = np.flatnonzero(self.weights)
        w = [Fraction(float(v)) for v in self.weights[present]]
        system = [[Fraction(float(K[i, j])) for j in present] for i in present]
        for i, row in enumerate(system):
            row[i] += s / w[i]
        right = [Fraction(float(v)) for v in y[present]]
        if self.fit.fit_intercept:
            system = [[*row, Fraction(1)] for row in system] + [[Fraction(1)] * len(present) + [Fraction(0)]]
            dual = _solve(system, [*right, Fraction(0)])[:-1]
        else:
            dual = _solve(system, right)
        terms = (
            wi * (yi - s / wi * a - Fraction(float(f[i]))) ** 2
            for wi, yi, a, i in zip(w, right, dual, present, strict=True)
        )
        return float(sum(terms) / sum(w)) ** 0.5


def _solve(matrix, right):
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    n = len(rows)
    for c in range(n):
        best = max(range(c, n), key=lambda r: abs(rows[r][c]))
        rows[c], rows[best] = rows[best], rows[c]
        for r in range(n):
            if r != c and rows[r][c]:
                factor = rows[r][c] / rows[c][c]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[c], strict=True)]
    return [rows[c][n] / rows[c][c] for c in range(n)]


def random_metric(rng, family, d):
    """A kernel of the family with a matrix of up to d columns."""
    return family(metric=rng.normal(size=(d, int(rng.integers(1, d + 1)))) * 10 ** rng.uniform(-1, 1))


def random_problem(seed, most_rows, sampler=None):
    """A fit of a random design: clouds, outliers, clusters or repeated rows; weights, intercept, targets, ridges."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, most_rows)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d))
    design = rng.integers(4)
    if design == 1:
        X[: 1 + n // 20] *= 20
    elif design == 2:
        X = 0.1 * X + 5 * rng.normal(size=(4, d))[rng.integers(0, 4, n)]
    elif design == 3:
        X = X[rng.integers(0, 1 + n // 3, n)]
    n_targets = int(rng.integers(1, 3))
    y = np.c_[np.sin(X[:, 0]) + 10 ** rng.uniform(-4, 0) * rng.normal(size=n), rng.normal(size=n)][:, :n_targets]
    y = y * 10 ** rng.uniform(-3, 3) + rng.choice([0.0, 1.0, 100.0])
    weights = None if rng.random() < 0.5 else rng.uniform(0.1, 3, n) * (np.arange(n) % 5 > 0)
    available = np.arange(n) if weights is None else np.flatnonzero(weights)
    count = int(rng.integers(1, len(available) + 1))
    landmarks = count if sampler else np.sort(rng.choice(available, count, replace=False))
    ridge = 10 ** rng.uniform(-9, -1, n_targets if rng.random() < 0.5 else 1)
    number = rng.integers(len(KERNELS) + len(WITH_METRIC))
    kernel = KERNELS[number] if number < len(KERNELS) else random_metric(rng, WITH_METRIC[number - len(KERNELS)], d)
    return Fitted(X, y, kernel, landmarks, ridge, weights, bool(rng.random() < 0.5), sampler, seed)
