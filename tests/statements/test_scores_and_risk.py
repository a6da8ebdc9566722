"""Scores reflect the design, and the closed-form risk equals the simulated risk."""

import numpy as np
import pytest

from ridgemark import exact
from ridgemark.kernels import Bernoulli, Gaussian, Matern12
from ridgemark.paper.synthetic import synthetic_points
from tests.statements.designs import SKETCHES, kernel_designs

DESIGNS = kernel_designs()


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("ridge", [1e-1, 1e-4, 1e-7, 1e-10])
def test_on_an_even_grid_the_bernoulli_scores_are_constant(order, ridge):
    n = 120
    grid = np.arange(n)[:, None] / n
    scores = exact.leverage_scores(exact.kernel_matrix(grid, Bernoulli(order)), n * ridge)
    assert np.ptp(scores) <= 1e-8 * scores.max() + 1e-12


def test_on_an_uneven_design_the_rare_region_has_the_high_scores():
    points = synthetic_points()
    scores = exact.leverage_scores(exact.kernel_matrix(points[:, None], Bernoulli(2)), 500 * 1e-8)
    middle = np.abs(points - 0.5) < 0.25
    assert scores[middle].min() > 3 * np.median(scores[~middle])


@pytest.mark.parametrize("design", ["even", "outliers", "clusters", "rare middle"])
def test_scores_become_even_as_the_tolerance_shrinks(design):
    K = (
        DESIGNS[design]
        if design != "rare middle"
        else exact.kernel_matrix(synthetic_points(80)[:, None], Matern12(0.3))
    )
    coherences = []
    for epsilon in 10.0 ** -np.arange(0, 14, 2):
        scores = exact.leverage_scores(K, 80 * 1e-2 * epsilon)
        coherences.append(80 * scores.max() / scores.sum())
    assert (np.diff(coherences) <= 1e-9).all()
    assert coherences[0] > 1.05
    assert coherences[-1] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("design", DESIGNS)
def test_closed_form_risk_is_the_mean_of_simulated_losses(design):
    K, n, repeats, scaled_ridge, noise_variance = DESIGNS[design], 80, 4000, 0.8, 0.25
    rng = np.random.default_rng(0)
    signal = K @ rng.normal(size=n) / 5
    matrices = {"K": K, "L": exact.nystrom_approximation(K, SKETCHES["uniform columns"](n, 8, rng))}
    for name, matrix in matrices.items():
        targets = signal[:, None] + np.sqrt(noise_variance) * rng.normal(size=(n, repeats))
        fitted = exact.kernel_ridge(matrix, targets, scaled_ridge).fitted
        losses = ((fitted - signal[:, None]) ** 2).mean(axis=0)
        standard_error = losses.std(ddof=1) / np.sqrt(repeats)
        risk = exact.risk(matrix, signal, noise_variance, scaled_ridge)
        assert abs(losses.mean() - risk.total) <= 4.5 * standard_error, name
        squared_bias = ((fitted.mean(axis=1) - signal) ** 2).mean()
        assert squared_bias == pytest.approx(risk.squared_bias + risk.variance / repeats, rel=0.2, abs=1e-4), name


def test_repeated_rows_share_the_score_of_one_weighted_row():
    """A row repeated m times has score s/m each, s the score of the row with weight m."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    weights = rng.integers(1, 5, 20)
    repeated = np.repeat(X, weights, axis=0)
    K = exact.kernel_matrix(X, Gaussian(1.0))
    weighted = exact.leverage_scores(exact.weighted_kernel(K, weights), 0.5)
    each = exact.leverage_scores(exact.kernel_matrix(repeated, Gaussian(1.0)), 0.5)
    assert each == pytest.approx(np.repeat(weighted / weights, weights), abs=1e-10)
