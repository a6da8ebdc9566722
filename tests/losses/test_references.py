"""Fits by a loss against converged references on the same features."""

import numpy as np
import pytest
from sklearn.linear_model import GammaRegressor, HuberRegressor, PoissonRegressor

from ridgemark import NystromRegressor
from ridgemark.kernels import Gaussian
from ridgemark.losses import Huber, Quantile

N, P = 400, 30


def made(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    X[1::5] = X[::5]  # repeats, with targets of their own
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    return X, f, rng, rng.integers(1, 4, size=n).astype(float)


def fitted(loss, X, y, ridge, weights=None, **options):
    options = {"kernel": Gaussian(1.0), "n_landmarks": P, "selection": "uniform", "random_state": 0} | options
    return NystromRegressor(loss, ridge=ridge, **options).fit(X, y, weights)


def features_and_coefficients(model, X):
    fit = model._model.sums
    return fit.factor.features(X), fit.solution


def assert_same(model, X, coef, intercept):
    _, solution = features_and_coefficients(model, X)
    size = np.abs(coef).max()
    assert solution.coefficients[:, 0] == pytest.approx(coef, abs=1e-5 * size)
    assert float(solution.intercept[0]) == pytest.approx(float(intercept), abs=1e-5 * size)


@pytest.mark.parametrize("weighted", [False, True])
def test_huber_fits_equal_scikit_learns(weighted):
    X, f, rng, weights = made()
    y = f + 0.3 * rng.standard_t(2, size=N)
    weights = weights if weighted else np.ones(N)
    B, _ = features_and_coefficients(fitted(Huber(delta=1.0), X, y, 1e-3, weights), X)
    near = HuberRegressor(epsilon=1.35, alpha=0.1, tol=1e-12, max_iter=20_000).fit(B, y, weights)
    loss, scaled = Huber(delta=1.35 * near.scale_), 0.1 * near.scale_
    # L-BFGS ends at a gradient of 1e-3; Newton's method goes on from there.
    problem = Dense(np.column_stack([B, np.ones(N)]), y, weights, scaled)
    best = problem.minimum(loss, np.append(near.coef_, near.intercept_))
    assert best == pytest.approx(np.append(near.coef_, near.intercept_), abs=0.05)
    assert_same(fitted(loss, X, y, scaled / weights.sum(), weights), X, best[:-1], best[-1])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("loss", "kind"), [("poisson", PoissonRegressor), ("gamma", GammaRegressor)])
def test_rates_equal_scikit_learns(loss, kind, fit_intercept):
    X, f, rng, weights = made()
    mean = np.exp(f + 0.5)
    y = rng.poisson(mean).astype(float) if loss == "poisson" else mean * rng.gamma(2.0, 0.5, N)
    model = fitted(loss, X, y, 1e-3, weights, fit_intercept=fit_intercept)
    B, _ = features_and_coefficients(model, X)
    solver = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 500, "fit_intercept": fit_intercept}
    reference = kind(alpha=1e-3, **solver).fit(B, y, weights)
    assert_same(model, X, reference.coef_, reference.intercept_)


def test_exposures_are_scikit_learns_rates_and_weights():
    X, f, rng, weights = made()
    exposure = rng.uniform(0.2, 5.0, N)
    y = rng.poisson(exposure * np.exp(f)).astype(float)
    options = {"kernel": Gaussian(1.0), "n_landmarks": P, "selection": "uniform", "random_state": 0}
    model = NystromRegressor("poisson", ridge=1e-3, **options).fit(X, y, weights, exposure=exposure)
    B, _ = features_and_coefficients(model, X)
    reference = PoissonRegressor(alpha=1e-3, solver="newton-cholesky", tol=1e-12, max_iter=500)
    reference.fit(B, y / exposure, weights * exposure)
    assert_same(model, X, reference.coef_, reference.intercept_)
    assert model.predict(X, exposure) == pytest.approx(model.predict(X) * exposure)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_quantiles_minimise_the_smoothed_objective_and_nearly_the_plain_one(level):
    X, f, rng, weights = made()
    y = f + 0.3 * rng.normal(size=N) * np.exp(0.3 * X[:, 1])
    model = fitted(Quantile((level,)), X, y, 1e-4, weights)
    B, solution = features_and_coefficients(model, X)
    problem = Dense(np.column_stack([B, np.ones(N)]), y, weights, model.scaled_ridge_)
    mine = np.append(solution.coefficients[:, 0], solution.intercept)
    best = problem.minimum(model.loss_, mine)
    assert problem.objective(model.loss_, mine) <= problem.objective(model.loss_, best) * (1 + 1e-6)
    for narrower in 10.0 ** -np.arange(1, 4):
        sharp = Quantile((level,), model.loss_.width * narrower)
        best = problem.minimum(sharp, best)
    lower = problem.plain_dual(sharp.slopes(y[:, None], problem.predictor(best)))
    assert problem.plain(level, best) <= 1.001 * lower  # the reference has converged
    assert problem.plain(level, mine) <= 1.005 * lower


class Dense:
    """The objective of one quantile on given features, and Newton's method on all of it."""

    def __init__(self, Z, y, weights, s):
        self.Z, self.y, self.weights, self.s = Z, y, weights, s
        self.penalty = np.append(np.full(Z.shape[1] - 1, s), 0.0)

    def predictor(self, c):
        return (self.Z @ c)[:, None]

    def objective(self, loss, c):
        return float(self.weights @ loss.values(self.y[:, None], self.predictor(c))) + c @ (self.penalty * c) / 2

    def plain(self, level, c):
        rest = self.y - self.Z @ c
        return float(self.weights @ np.maximum(level * rest, (level - 1) * rest)) + c @ (self.penalty * c) / 2

    def plain_dual(self, slopes):
        slopes = slopes - self.weights @ slopes / self.weights.sum()  # of sum zero, nearly in the domain
        alpha = -self.weights * slopes[:, 0]
        sums = self.Z[:, :-1].T @ alpha
        return float(alpha @ self.y) - sums @ sums / (2 * self.s)

    def minimum(self, loss, c):
        for _ in range(500):
            eta = self.predictor(c)
            gradient = self.Z.T @ (self.weights * loss.slopes(self.y[:, None], eta)[:, 0]) + self.penalty * c
            D = self.weights * loss.curvature(self.y[:, None], eta)
            H = self.Z.T @ (D[:, None] * self.Z) + np.diag(self.penalty + 1e-12)
            step, share = -np.linalg.solve(H, gradient), 1.0
            while self.objective(loss, c + share * step) > self.objective(loss, c) and share > 1e-10:
                share /= 2
            c = c + share * step
            if -gradient @ step < 1e-13 * self.objective(loss, c):
                break
        return c
