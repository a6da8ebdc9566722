"""Residuals of rows and groups left out equal those of fits without them."""

import numpy as np
import pytest

from ridgemark.checks.quick_fit import QuickFit


def fitted(B, y, shift):
    """Return the features and shrinkage of `B (B'B + shift I)^-1 B'` for centred B, and the fit."""
    spectrum, vectors = np.linalg.eigh(B.T @ B)
    features = B @ (vectors / np.sqrt(spectrum))
    shrinkage = spectrum / (spectrum + shift)
    centred = y - y.mean(axis=0)
    return QuickFit(features, shrinkage, centred - features @ (shrinkage[:, None] * (features.T @ centred)))


def refitted(B, y, shift, rows):
    """Return the residuals of rows in a fit without them."""
    X, t = np.delete(B, rows, axis=0), np.delete(y, rows, axis=0)
    mean, middle = X.mean(axis=0), t.mean(axis=0)
    c = np.linalg.solve((X - mean).T @ (X - mean) + shift * np.eye(B.shape[1]), (X - mean).T @ (t - middle))
    return y[rows] - (B[rows] - mean) @ c - middle


@pytest.mark.parametrize("n_groups", [60, 9])
def test_residuals_without_a_group_are_those_of_a_fit_without_it(n_groups):
    rng = np.random.default_rng(0)
    B, y, groups = rng.normal(size=(60, 4)), rng.normal(size=(60, 2)), np.arange(60) % n_groups
    B -= B.mean(axis=0)
    fit = fitted(B, y, 3.0)
    residuals = fit.without_groups(groups)
    for group in range(n_groups):
        rows = np.flatnonzero(groups == group)
        np.testing.assert_allclose(residuals[rows], refitted(B, y, 3.0, rows), rtol=1e-6)
    if n_groups == 60:
        np.testing.assert_allclose(fit.left_out, residuals, rtol=1e-6)
