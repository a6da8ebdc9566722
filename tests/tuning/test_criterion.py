"""The leave-one-out error of a small landmark model, and its gradients."""

import numpy as np
import pytest

from ridgemark.kernels import Gaussian, Laplacian, Matern12, Matern32, Matern52, PowerExponential
from ridgemark.tuning.criterion import Sample, best_ridge, evaluate, fit_small
from ridgemark.tuning.metrics import FullMatrix, PerFeature
from ridgemark.tuning.pairs import with_metric

FAMILIES = [
    Gaussian(),
    Matern52(),
    Matern32(),
    Matern12(),
    PowerExponential(exponent=1.4),
    PowerExponential(exponent=0.8),
]
NAMES = [f"{type(one).__name__}{getattr(one, 'exponent', '')}" for one in FAMILIES]


def sample_of(seed=0, n=120, d=3, p=20, targets=2, fit_intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.c_[np.sin(2 * X[:, 0]) + X[:, 1] ** 2, X[:, 2] * X[:, 0]][:, :targets] + 0.1 * rng.normal(size=(n, targets))
    weights = rng.uniform(0.3, 3.0, n)
    return Sample(X, y, weights / weights.sum(), p, fit_intercept)


def slopes(error_at, x, step=1e-5):
    """Return the gradient by central differences."""
    found = np.empty_like(x)
    for k in range(len(x)):
        moved = np.zeros_like(x)
        moved[k] = step
        found[k] = (error_at(x + moved) - error_at(x - moved)) / (2 * step)
    return found


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
@pytest.mark.parametrize("metrics", [PerFeature(3), FullMatrix(3)], ids=lambda one: one.level)
def test_gradients_are_those_of_finite_differences(family, metrics, fit_intercept):
    check_gradients(family, metrics, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gradients_of_the_laplacian_are_those_of_finite_differences(fit_intercept):
    check_gradients(Laplacian(), PerFeature(3), fit_intercept)


def test_gradients_of_columns_of_two_values_are_those_of_finite_differences():
    check_gradients(Laplacian(), PerFeature(3), True, indicators=True)


def check_gradients(family, metrics, fit_intercept, indicators=False):
    for seed, ridge in enumerate([1e-4, 1e-3, 1e-2]):
        sample = sample_of(seed, fit_intercept=fit_intercept)
        if indicators:
            sample.features[:, 1:] = np.where(sample.features[:, 1:] > 0.5, 3.0, -1.0)
        mixing = 0.2 * np.random.default_rng(seed).normal(size=(3, 3)) if metrics.level == "metric" else 0.0
        start = metrics.coordinates(np.diag([0.7, 0.5, 0.9]) + mixing)

        def error_at(x, sample=sample, ridge=ridge):
            return evaluate(family, metrics.metric(x), ridge, sample).error

        metric = metrics.metric(start)
        result = evaluate(family, metric, ridge, sample)
        expected = slopes(error_at, start)
        assert abs(metrics.gradient(metric, result) - expected).max() <= 1e-6 * abs(expected).max()
        by_ridge = slopes(
            lambda s, sample=sample, m=metric: evaluate(family, m, np.exp(s[0]), sample).error, np.log([ridge])
        )
        assert result.ridge_slope * ridge == pytest.approx(by_ridge[0], rel=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_error_is_that_of_refits_without_each_row(fit_intercept):
    sample, metric, ridge = sample_of(n=40, p=12, fit_intercept=fit_intercept), 0.6 * np.eye(3), 1e-3
    kernel = with_metric(Gaussian(), metric)
    C, W = kernel(sample.features, sample.landmarks), kernel(sample.landmarks)
    W += 1e-10 * np.eye(12)
    total = 0.0
    for row in range(40):
        rest = np.arange(40) != row
        w, y = sample.weights[rest], sample.targets[rest]
        A, target = C[rest], y
        if fit_intercept:  # an unpenalised constant: centred with the weights of the rows left
            share = w / w.sum()
            mean, origin = share @ C[rest], share @ y
            A, target = C[rest] - mean, y - origin
        coefficients = np.linalg.solve(A.T @ (w[:, None] * A) + ridge * W, A.T @ (w[:, None] * target))
        constant = origin - mean @ coefficients if fit_intercept else 0.0
        total += sample.weights[row] * ((sample.targets[row] - C[row] @ coefficients - constant) ** 2).mean()
    assert evaluate(Gaussian(), metric, ridge, sample).error == pytest.approx(total, rel=1e-7)


def test_the_best_ridge_has_the_smallest_error_and_one_ridge_has_its_own():
    sample = sample_of(targets=1)
    error = evaluate(Gaussian(), np.eye(3), 1e-3, sample).error
    best = best_ridge(with_metric(Gaussian(), np.eye(3)), sample, np.array([1e-4, 1e-3, 1e-2]))
    assert best[0] <= error
    assert best_ridge(with_metric(Gaussian(), np.eye(3)), sample, np.array([1e-3]))[0] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES, ids=NAMES)
@pytest.mark.parametrize("form", ["bandwidth", "bandwidths", "metric"])
def test_gradients_of_predictions_are_those_of_finite_differences(family, form):
    sample = sample_of()
    shapes = {
        "bandwidth": {"bandwidth": 1.3},
        "bandwidths": {"bandwidth": np.array([0.8, 1.5, 2.0])},
        "metric": {"bandwidth": 1.0, "metric": np.random.default_rng(1).normal(size=(3, 2))},
    }
    kernel = type(family)(**family.get_params() | shapes[form])
    model = fit_small(kernel, sample, 1e-3)
    rows = np.random.default_rng(2).normal(size=(15, 3))  # none of them a landmark
    found = kernel.gradient(rows, model.landmarks).of_functions(model.coefficients)
    expected = np.empty_like(found)
    for k in range(3):
        step = np.zeros(3)
        step[k] = 1e-5
        expected[:, k] = (kernel(rows + step, model.landmarks) - kernel(rows - step, model.landmarks)) @ (
            model.coefficients / 2e-5
        )
    assert abs(found - expected).max() <= 1e-6 * abs(expected).max()


def test_a_landmark_itself_has_a_finite_gradient():
    sample = sample_of()
    model = fit_small(Matern12(1.0), sample, 1e-3)
    gradient = Matern12(1.0).gradient(sample.landmarks, model.landmarks)
    assert np.isfinite(gradient.of_functions(model.coefficients)).all()
