"""The leave-one-out error of a small landmark model, and its gradients."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ridgemark.kernels import Gaussian, Laplacian, Linear, Matern12, Matern32, Matern52, Mixture, PowerExponential
from ridgemark.tuning.coordinates import LEVELS, Coordinates
from ridgemark.tuning.criterion import Sample, best_ridge, evaluate, fit_small
from ridgemark.tuning.scratch import Scratch

FAMILIES = [
    Gaussian(),
    Matern52(),
    Matern32(),
    Matern12(),
    PowerExponential(exponent=1.4),
    PowerExponential(exponent=0.8),
]
NAMES = [f"{type(one).__name__}{getattr(one, 'exponent', '')}" for one in FAMILIES]
WIDE = np.array([0.7, 0.5, 0.9])
MIXTURES = {
    "all parts": ([Gaussian(1.0), Matern32(0.4), Matern12(3.0)], [Laplacian(2.0 * WIDE), Linear(widths=3.0 * WIDE)]),
    "radial": ([Matern52(1.0), PowerExponential(0.6, exponent=1.4)], []),
    "one": ([Gaussian(1.0)], []),
    "laplacian": ([], [Laplacian(2.0 * WIDE)]),
    "laplacian and linear": ([], [Laplacian(2.0 * WIDE), Linear(widths=WIDE)]),
}


def mixture(name, level, seed=0):
    """Return a mixture of this name whose metric is a matrix or has a bandwidth for each feature."""
    rng, (radial, others) = np.random.default_rng(seed), MIXTURES[name]
    weights = rng.uniform(0.2, 1.0, len(radial) + len(others)).tolist()
    if level == "metric":
        return Mixture(radial, others, weights, metric=np.diag(1.0 / WIDE) + 0.2 * rng.normal(size=(3, 3)))
    return Mixture(radial, others, weights, bandwidth=1.0 / WIDE)


def sample_of(seed=0, n=120, d=3, p=20, targets=2, fit_intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.c_[np.sin(2 * X[:, 0]) + X[:, 1] ** 2, X[:, 2] * X[:, 0]][:, :targets] + 0.1 * rng.normal(size=(n, targets))
    weights = rng.uniform(0.3, 3.0, n)
    return Sample(X, y, weights / weights.sum(), p, fit_intercept)


def test_threads_change_no_bit_of_the_criterion():
    """The sample has two parts, which threads compute in any order."""
    sample, kernel = sample_of(n=2500, p=60), mixture("all parts", "metric")
    with ThreadPoolExecutor(3) as threads:
        alone, shared = (evaluate(kernel, 1e-3, sample, Scratch(pool)) for pool in (None, threads))
    assert alone.error == shared.error
    for name in ("ridge", "weights", "lengths", "outer", "widths"):
        assert np.array_equal(getattr(alone.slopes, name), getattr(shared.slopes, name))
    whole, _ = best_ridge(kernel, sample, np.array([1e-3]))
    assert alone.error == pytest.approx(whole, rel=1e-6)


def slopes(error_at, x, step=1e-5):
    """Return the gradient by central differences."""
    found = np.empty_like(x)
    for k in range(len(x)):
        moved = np.zeros_like(x)
        moved[k] = step
        found[k] = (error_at(x + moved) - error_at(x - moved)) / (2 * step)
    return found


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("level", LEVELS)
def test_gradients_are_those_of_finite_differences(name, level, fit_intercept):
    if level != "metric" or MIXTURES[name][0]:
        check_gradients(name, level, fit_intercept)


def test_gradients_of_columns_of_two_values_are_those_of_finite_differences():
    check_gradients("all parts", "per_feature", True, indicators=True)


def check_gradients(name, level, fit_intercept, indicators=False):
    for seed, ridge in enumerate([1e-4, 1e-3, 1e-2]):
        sample = sample_of(seed, fit_intercept=fit_intercept)
        if indicators:
            sample.features[:, 1:] = np.where(sample.features[:, 1:] > 0.5, 3.0, -1.0)
        coordinates = Coordinates(mixture(name, level, seed), level, (1e-11, 1.0))
        start = coordinates.vector(ridge)

        def error_at(x, sample=sample, at=coordinates):
            return evaluate(at.kernel(x), at.ridge(x), sample).error

        result = evaluate(coordinates.kernel(start), ridge, sample)
        found, expected = coordinates.gradient(result.kernel, ridge, result.slopes), slopes(error_at, start)
        assert found.shape == start.shape
        assert abs(found - expected).max() <= 1e-6 * abs(expected).max()


@pytest.mark.parametrize("level", LEVELS)
def test_a_vector_stands_for_the_mixture_it_came_from(level):
    given = mixture("all parts", level)
    at = Coordinates(given, level, (1e-11, 1.0))
    again = at.kernel(at.vector(1e-3))
    rows = np.random.default_rng(0).normal(size=(10, 3))
    assert np.allclose(again(rows), given(rows) / sum(given.weights), rtol=1e-12)
    assert sum(again.weights) == pytest.approx(1.0)
    assert at.ridge(at.vector(1e-3)) == pytest.approx(1e-3)


def test_single_precision_is_close_to_double():
    sample = sample_of(n=300, p=60)
    kernel = mixture("all parts", "metric")
    double, single = (evaluate(kernel, 1e-3, one) for one in (sample, sample.in_single_precision()))
    assert single.error == pytest.approx(double.error, rel=1e-4)
    assert abs(single.slopes.outer - double.slopes.outer).max() <= 2e-3 * abs(double.slopes.outer).max()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_error_is_that_of_refits_without_each_row(fit_intercept):
    sample, ridge = sample_of(n=40, p=12, fit_intercept=fit_intercept), 1e-3
    kernel = mixture("all parts", "metric")
    C, W = kernel(sample.features, sample.landmarks), kernel(sample.landmarks)
    W += 1e-10 * np.diagonal(W).max() * np.eye(12)
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
    assert evaluate(kernel, ridge, sample).error == pytest.approx(total, rel=1e-7)


def test_the_best_ridge_has_the_smallest_error_and_one_ridge_has_its_own():
    sample = sample_of(targets=1)
    kernel = mixture("one", "metric")
    error = evaluate(kernel, 1e-3, sample).error
    assert best_ridge(kernel, sample, np.array([1e-4, 1e-3, 1e-2]))[0] <= error * (1.0 + 1e-9)
    assert best_ridge(kernel, sample, np.array([1e-3]))[0] == pytest.approx(error, rel=1e-6)


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
    model, _ = fit_small(kernel, sample, 1e-3)
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
    model, _ = fit_small(Matern12(1.0), sample, 1e-3)
    gradient = Matern12(1.0).gradient(sample.landmarks, model.landmarks)
    assert np.isfinite(gradient.of_functions(model.coefficients)).all()
