"""The Cholesky solver agrees with the eigendecomposition at one ridge, and so does all that takes its inverse."""

import copy
from dataclasses import replace

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


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("scaled_ridge", [1e2, 1e-1, 1e-4])
def test_both_forms_of_the_inverse_agree(scaled_ridge, fit_intercept):
    fit = landmark_fit(scaled_ridge, fit_intercept)
    one, many = fit.inverse, fit.solver.at_ridges(fit.scaled_ridge[:1])
    assert one.is_triangular
    assert not many.is_triangular
    right = np.random.default_rng(1).normal(size=(len(one.root), 3))
    near = {"rel": 1e-6, "abs": 1e-7 / scaled_ridge}
    assert one.solve(right) == pytest.approx(many.solve(right), **near)
    assert one.shrinkage(fit.scaled_ridge[:1]) == pytest.approx(many.shrinkage(fit.scaled_ridge[:1]), rel=1e-8)
    squares = [inverse.squared_shrinkage(fit.scaled_ridge[:1]) for inverse in (one, many)]
    assert squares[0] == pytest.approx(squares[1], rel=1e-8)
    for inverse in (one, many):
        assert inverse.root @ inverse.coordinates(right) == pytest.approx(right, rel=1e-6, abs=1e-7)
        assert inverse.of_features(inverse.root.T @ right) == pytest.approx(right, rel=1e-6, abs=1e-7)


def test_the_inverse_of_a_target_is_that_at_its_ridge():
    fit = landmark_fit(1e-1, True)
    ridges = np.array([1e-1, 3.0])
    inverse = fit.solver.at_ridges(ridges)
    for t, ridge in enumerate(ridges):
        expected = np.linalg.inv(fit.centred.gram + ridge * np.eye(len(inverse.root)))
        assert inverse.of_target(t).solve(np.eye(len(expected))) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert np.array_equal(fit.inverse.of_target(1).solve(fit.centred.cross), fit.inverse.solve(fit.centred.cross))


def _answers(model, X):
    """Yield what is computed from the inverse."""
    yield model.predict(X, return_std=True)[1]
    yield model.predict_interval(X)
    yield model.predict_interval(X, adaptive=False)
    yield model.effects(X, return_std=True)[1]
    summary = model.effects_summary(X)
    yield summary.average
    yield summary.standard_error
    found = model.diagnose()
    yield from (found.leverage, found.studentised, found.cook_distance)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_answers_are_the_same_from_both_forms_of_the_inverse(fit_intercept, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    Y = np.c_[np.sin(X[:, 0]), X[:, 1] ** 2] + 0.1 * rng.normal(size=(400, 2))
    w = rng.integers(1, 4, 400).astype(float) if weighted else None
    model = NystromRidge(bandwidth=2.0, n_landmarks=60, fit_intercept=fit_intercept, random_state=0)
    fit = model.fit(X, Y, w)._model.sums
    forms = []
    for inverse in (fit.inverse, fit.solver.at_ridges(fit.scaled_ridge[:1]), fit.solver.at_ridges(fit.scaled_ridge)):
        other = copy.copy(model)
        other._model = replace(model._model, sums=replace(fit, known_inverse=inverse))
        forms.append(list(_answers(other, X[:50])))
    assert fit.inverse.is_triangular
    for one, *others in zip(*forms, strict=True):
        for other in others:
            assert other == pytest.approx(one, rel=1e-6, abs=1e-9)
