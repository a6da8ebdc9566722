"""The duality gap of fits by a loss against converged dense solutions with the whole kernel."""

import numpy as np
import pytest

from ridgemark import NystromRegressor
from ridgemark.errors import DataError
from ridgemark.kernels import Gaussian, Matern12, Matern52
from ridgemark.losses import Gamma, Huber, Poisson, Quantile, balanced

LOSSES = ["huber", "poisson", "gamma", "quantile"]


def problem(loss, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(15, 70))
    X = rng.uniform(-2, 2, size=(n, int(rng.integers(1, 4))))
    if seed % 3 == 0:
        X[1::3] = X[:-1:3][: len(X[1::3])]
    f = rng.normal(scale=1.5) * np.sin(2 * X[:, 0]) + rng.normal()
    made = {
        "huber": lambda: f + 0.3 * rng.standard_t(1.5, n),
        "poisson": lambda: np.maximum(rng.poisson(np.exp(f)), np.eye(n)[0]),
        "gamma": lambda: np.exp(f) * rng.gamma(2.0, 0.5, n),
        "quantile": lambda: f + 0.3 * rng.normal(size=n),
    }
    weights = rng.uniform(0.1, 3.0, n) if seed % 2 else None
    kernel = [Gaussian(1.0), Matern12(1.0), Matern52(0.7)][seed % 3]
    options = {"ridge": float(10.0 ** rng.uniform(-5, -1)), "n_landmarks": int(rng.integers(2, n // 2))}
    return X, made[loss](), weights, kernel, options | {"fit_intercept": bool(seed % 5)}


def exact(loss, K, y, weights, s, fit_intercept):
    """The minimum over all functions: damped Newton steps on the values f = K a, with a whole eigenbasis."""
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-12 * values.max()
    Z = vectors[:, keep] * np.sqrt(values[keep])
    Z = np.column_stack([Z, np.ones(len(y)) * fit_intercept])
    penalty = np.append(np.full(Z.shape[1] - 1, s), 0.0)
    c = np.zeros(Z.shape[1])
    if fit_intercept:
        c[-1] = balanced(loss, y, weights, np.zeros_like(y))

    def objective(c):
        with np.errstate(over="ignore"):
            return float(weights @ loss.values(y, (Z @ c)[:, None])) + c @ (penalty * c) / 2

    for _ in range(400):
        eta = (Z @ c)[:, None]
        gradient = Z.T @ (weights * loss.slopes(y, eta)[:, 0]) + penalty * c
        H = Z.T @ ((weights * loss.curvature(y, eta))[:, None] * Z) + np.diag(penalty + 1e-10 * s)
        step, share = -np.linalg.solve(H + 1e-14 * np.eye(len(H)), gradient), 1.0
        while not objective(c + share * step) <= objective(c) and share > 1e-12:
            share /= 2
        c = c + share * step
        if -gradient @ step <= 1e-15 * objective(c):
            break
    return objective(c), Z @ c


def check(loss, seed):
    X, y, weights, kernel, options = problem(loss, seed)
    model = NystromRegressor(loss, kernel=kernel, selection="uniform", random_state=seed, **options).fit(X, y, weights)
    certificate = model.certify(X, y, sample_weight=weights)
    w = np.ones(len(y)) if weights is None else weights
    unit = model._model.sums.weight_unit
    s, targets = model.scaled_ridge_, y[:, None].astype(float)
    best, eta = exact(model.loss_, kernel(X, X), targets, w, s, options["fit_intercept"])
    lost = certificate.inputs["objective"][0] * unit - best
    gap = certificate.inputs["gap"][0] * unit
    assert lost <= gap * (1 + 1e-9) + 1e-11 * best, (loss, seed, lost, gap)
    null = certificate.inputs["null_objective"][0] * unit
    if null - best > 1e-9 * null:
        assert lost / (null - best) <= certificate.bound + 1e-9, (loss, seed)
    fit = model._model.sums
    mine = np.asarray(model._linear(X)) - (model._model.function.intercept - fit.intercept)  # quantiles move it later
    far = np.abs(mine[:, 0] - eta).max()
    assert far <= certificate.inputs["predictor"][0] + 1e-6 * (1 + np.abs(eta).max()), (loss, seed)
    assert_distances(model.loss_, certificate, targets, mine, eta[:, None], w)


def assert_distances(loss, certificate, y, mine, truth, weights):
    measured = {
        "huber": lambda: ("slopes", loss.slopes(y, mine) - loss.slopes(y, truth)),
        "poisson": lambda: ("root_mean", np.exp(mine / 2) - np.exp(truth / 2)),
    }
    if loss.name in measured:
        name, difference = measured[loss.name]()
        rms = float(np.sqrt(weights @ difference[:, 0] ** 2 / weights.sum()))
        assert rms <= certificate.inputs[name][0] + 1e-7 * (1 + np.abs(difference).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_no_gap_is_below_what_is_lost(loss):
    for seed in range(8):
        check(loss, seed)


@pytest.mark.parametrize("loss", LOSSES)
def test_with_all_rows_as_landmarks_nothing_is_lost(loss):
    X, y, weights, kernel, options = problem(loss, 7)
    options |= {"n_landmarks": len(X), "ridge": 1e-3}
    model = NystromRegressor(loss, kernel=kernel, random_state=0, **options).fit(X, y, weights)
    assert model.certify(X, y, sample_weight=weights).bound < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_no_gap_is_below_what_is_lost_in_300_problems(loss):
    for seed in range(300):
        check(loss, seed)


@pytest.mark.parametrize("loss", LOSSES)
def test_certificates_refuse_other_rows(loss):
    X, y, _, kernel, options = problem(loss, 1)
    model = NystromRegressor(loss, kernel=kernel, random_state=0, **options).fit(X, y)
    with pytest.raises(DataError, match="not the rows"):
        model.certify(X[::-1], y)
    with pytest.raises(DataError, match="not the rows"):
        model.certify(X[1:], y[1:])


@pytest.mark.parametrize("loss", [Huber(delta=0.7), Poisson(event=1.0), Gamma(), Quantile((0.3,), width=0.2)])
def test_slopes_curvatures_and_conjugates_belong_to_the_values(loss):
    rng = np.random.default_rng(0)
    y, eta = rng.gamma(2.0, 1.0, (50, 1)), rng.normal(size=(50, 1))
    if loss.name == "poisson":
        y[:10] = 0.0
    step = 1e-5
    slope = (loss.values(y, eta + step) - loss.values(y, eta - step)) / (2 * step)
    assert loss.slopes(y, eta)[:, 0] == pytest.approx(slope, abs=1e-6)
    curved = (loss.slopes(y, eta + step) - loss.slopes(y, eta - step))[:, 0] / (2 * step)
    assert loss.curvature(y, eta) == pytest.approx(curved, abs=1e-5)
    u = loss.slopes(y, eta)
    assert loss.values(y, eta) + loss.conjugate(y, u) == pytest.approx((u * eta)[:, 0], abs=1e-9)
    other = loss.slopes(y, eta + rng.normal(size=(50, 1)))
    assert (loss.values(y, eta) + loss.conjugate(y, other) - (other * eta)[:, 0] >= -1e-9).all()
    assert (loss.values(y, eta) >= 0).all()
