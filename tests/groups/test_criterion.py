"""The criterion of tuning with groups: refits without each group, its gradient, and groups of one row each."""

from dataclasses import replace

import numpy as np
import pytest

from ridgemark.tuning.coordinates import Coordinates
from ridgemark.tuning.criterion import best_ridge, evaluate
from tests.groups.problems import group_numbers
from tests.tuning.test_criterion import mixture, sample_of, slopes


def grouped(seed=0, n=120, heavy=True, **options):
    """Return a sample with groups, the largest with more rows than landmarks and 80% of the weight."""
    sample = sample_of(seed, n=n, **options)
    groups = group_numbers(n, np.random.default_rng(seed), 50)
    weights = np.where(groups == 0, 0.8, 0.2) * (sample.weights if heavy else 1.0)
    return replace(sample, weights=weights / weights.sum(), groups=groups)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("heavy", [True, False])
def test_the_error_is_that_of_refits_without_each_group(fit_intercept, heavy):
    sample, ridge = grouped(fit_intercept=fit_intercept, heavy=heavy), 1e-3
    kernel = mixture("all parts", "metric")
    C, W = kernel(sample.features, sample.landmarks), kernel(sample.landmarks)
    W += 1e-10 * np.diagonal(W).max() * np.eye(len(W))
    total = 0.0
    for group in np.unique(sample.groups):
        own, rest = sample.groups == group, sample.groups != group
        w, mean, origin = sample.weights[rest], 0.0, 0.0
        if fit_intercept:
            mean, origin = w @ C[rest] / w.sum(), w @ sample.targets[rest] / w.sum()
        A, y = C - mean, sample.targets - origin
        coefficients = np.linalg.solve(
            A[rest].T @ (w[:, None] * A[rest]) + ridge * W, A[rest].T @ (w[:, None] * y[rest])
        )
        total += sample.weights[own] @ ((y - A @ coefficients)[own] ** 2).mean(axis=1)
    assert evaluate(kernel, ridge, sample).error == pytest.approx(total, rel=1e-7)
    assert best_ridge(kernel, sample, np.array([ridge]))[0] == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("level", ["per_feature", "metric"])
def test_gradients_with_groups_are_those_of_finite_differences(level, fit_intercept):
    for seed, ridge in enumerate([1e-4, 1e-3, 1e-2]):
        sample = grouped(seed, fit_intercept=fit_intercept)
        at = Coordinates(mixture("all parts", level, seed), level, (1e-11, 1.0))
        start = at.vector(ridge)

        def error_at(x, sample=sample, at=at):
            return evaluate(at.kernel(x), at.ridge(x), sample).error

        result = evaluate(at.kernel(start), ridge, sample)
        slope, expected = at.gradient(result.kernel, ridge, result.slopes), slopes(error_at, start)
        assert abs(slope - expected).max() <= 1e-6 * abs(expected).max()


def test_groups_of_one_row_have_the_error_of_single_rows():
    sample, kernel = sample_of(), mixture("all parts", "metric")
    alone = evaluate(kernel, 1e-3, sample)
    singly = evaluate(kernel, 1e-3, replace(sample, groups=np.arange(120)))
    assert singly.error == pytest.approx(alone.error, rel=1e-12)
    assert singly.slopes.outer == pytest.approx(alone.slopes.outer, rel=1e-9, abs=1e-12)


def test_single_precision_with_groups_is_close_to_double():
    sample, kernel = grouped(n=300, p=60), mixture("all parts", "metric")
    double, single = (evaluate(kernel, 1e-3, rows) for rows in (sample, sample.in_single_precision()))
    assert single.error == pytest.approx(double.error, rel=1e-4)
    assert abs(single.slopes.outer - double.slopes.outer).max() <= 2e-3 * abs(double.slopes.outer).max()
