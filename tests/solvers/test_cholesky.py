"""The Cholesky solver agrees with the eigendecomposition at one ridge."""

import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.kernels import Gaussian
from ridgemark.losses import loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers import SpectralSolver, solve_landmarks
from ridgemark.solvers.landmark_fit import CentredMoments, solve_one_ridge


def landmark_fit(scaled_ridge, fit_intercept, n_landmarks=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.c_[np.sin(X[:, 0]) + 5.0, X[:, 1] + 0.1 * rng.normal(size=300)]
    factor = nystrom_factor(Gaussian(2.0), X[:n_landmarks], np.arange(n_landmarks))
    moments = loss_sums(RowPasses(ArrayRows(X, y, rng.integers(1, 4, 300).astype(float))), factor)
    return solve_landmarks(factor, moments, fit_intercept, np.full(2, scaled_ridge), np.zeros(2))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("scaled_ridge", [1e2, 1e-1, 1e-4])
def test_cholesky_and_spectral_solvers_agree(scaled_ridge, fit_intercept):
    fit = landmark_fit(scaled_ridge, fit_intercept)
    one = solve_one_ridge(fit.centred, scaled_ridge)
    every = SpectralSolver(fit.moments, fit_intercept)
    expected = every.solution(scaled_ridge)
    assert one.solution.coefficients == pytest.approx(expected.coefficients, rel=1e-6, abs=1e-8)
    assert one.solution.intercept == pytest.approx(expected.intercept, rel=1e-8, abs=1e-10)
    assert one.effective_dimension == pytest.approx(every.effective_dimension(scaled_ridge), rel=1e-8)
    assert one.training_error == pytest.approx(every.training_error(scaled_ridge), rel=1e-7)


def test_a_given_ridge_needs_no_eigendecomposition(monkeypatch):
    def refuse(*_):
        raise AssertionError("an eigendecomposition was made")

    X = np.random.default_rng(0).normal(size=(400, 3))
    model = NystromRidge(bandwidth=2.0, ridge=1e-3, n_landmarks=50, selection="uniform", random_state=0)
    monkeypatch.setattr("ridgemark.backends.numpy.NumpyBackend.eigh", refuse)
    model.fit(X, X[:, 0])
    with pytest.raises(AssertionError):
        model.set_params(ridge="gcv").fit(X, X[:, 0])


def test_a_ridge_below_rounding_is_solved_by_the_eigendecomposition():
    fit = landmark_fit(1e-300, False)
    assert solve_one_ridge(fit.centred, 1e-300) is None
    assert np.isfinite(fit.solution.coefficients).all()


def test_the_size_of_the_moments_bounds_their_largest_eigenvalue():
    fit = landmark_fit(1.0, True)
    largest = np.linalg.eigvalsh(CentredMoments(fit.moments, True).gram)[-1]
    assert largest <= fit.centred.size * (1 + 1e-12)
