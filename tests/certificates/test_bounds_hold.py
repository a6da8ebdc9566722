"""Every certificate is at least the true distance or ratio; probabilistic ones fail no more often than stated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ridgemark import exact
from ridgemark.certificates import audit, distance_at, operator_certificate, trace_certificate
from ridgemark.certificates.residual import lanczos, lanczos_steps
from ridgemark.kernels import Gaussian
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from tests.certificates.problems import SAMPLERS, Fitted, random_problem
from tests.helpers import most_failures, real_data, standardised

NEVER = 1e-9  # a failure probability so small that no test should see a failure


def _all_kinds(problem):
    passes, fit, rng = problem.passes, problem.fit, np.random.default_rng(0)
    n = len(problem.X)
    return {
        "audit": audit(passes, fit, rng=rng),
        "audit with the landmarks' rows": audit(passes, fit, rng=rng, landmark_indices=problem.indices),
        "sampled audit": audit(passes, fit, rng=rng, kernel_entries=max(n, n * n // 3), failure_probability=NEVER),
        "operator": operator_certificate(passes, fit, rng=rng, failure_probability=NEVER),
        "trace": trace_certificate(fit),
    }


def _check(problem):
    distance, allowance = problem.distance(), problem.rounding()
    for kind, certificate in _all_kinds(problem).items():
        assert (distance <= certificate.bound + allowance).all(), kind
        if certificate.risk_factor is not None:
            slack = 1e-6 + 1e-13 * problem.fit.moments.trace_kernel / problem.fit.scaled_ridge.min()
            assert problem.worst_bias_ratio() <= certificate.risk_factor * (1 + slack), kind


@given(seed=st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_no_certificate_is_below_the_true_distance_or_ratio(seed):
    _check(random_problem(seed, 50))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [None, *SAMPLERS])
@given(seed=st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_no_certificate_of_any_selection_is_below_the_true_distance_or_ratio(sampler, seed):
    _check(random_problem(seed, 120, sampler))


@given(seed=st.integers(0, 10**9))
@settings(max_examples=30, deadline=None)
def test_no_certificate_is_below_the_distance_in_exact_arithmetic(seed):
    """The reference has no rounding error, so the allowances must cover that of the bounds and of the fit."""
    problem = random_problem(seed, 9)
    distances = [problem.distance_in_exact_arithmetic(t) for t in range(problem.y.shape[1])]
    for kind, certificate in _all_kinds(problem).items():
        assert (np.array(distances) <= certificate.bound).all(), kind


@given(seed=st.integers(0, 10**9))
@settings(max_examples=100, deadline=None)
def test_the_distance_is_bounded_by_every_function_and_every_dual_point(seed):
    """`|d| <= (p + sqrt(p^2 + s |v|^2))/2` with `p = |r - v|`, and `|d| <= (|e| + sqrt(gap))/2`; f is arbitrary."""
    rng = np.random.default_rng(seed)
    n, s = 8, 10.0 ** rng.uniform(-6, 1)
    root = rng.normal(size=(n, n)) * 10.0 ** rng.uniform(-4, 0, size=n)
    f, v = rng.normal(size=(2, n)) @ root.T
    K, y, x = root @ root.T, rng.normal(size=n), rng.normal(size=n)
    distance = np.linalg.norm(K @ np.linalg.solve(K + s * np.eye(n), y) - f)
    norm = lambda values: float(np.sum(np.linalg.solve(root, values) ** 2))  # noqa: E731
    a = (y - f) / s
    part = np.linalg.norm(K @ a - f - v)
    assert distance <= (part + np.sqrt(part**2 + s * norm(v))) / 2 * (1 + 1e-6)
    assert distance <= np.sqrt(s * norm(K @ a - f)) / 2 * (1 + 1e-6)
    moved = y - f - s * x
    gap = np.sum(moved**2) + s * norm(K @ x - f)
    assert distance <= (np.linalg.norm(moved) + np.sqrt(gap)) / 2 * (1 + 1e-6)


def test_the_gap_bound_is_half_the_root_of_the_duality_gap():
    problem = _coherent(ridge=1e-3)
    K, _ = problem.operators()
    f, s = problem.predict(problem.X), problem.fit.scaled_ridge
    a = (problem.y - f) / s
    half = np.sqrt(s * (a * (K @ a - f)).sum(axis=0) / 400) / 2
    certificate = audit(problem.passes, problem.fit, rng=np.random.default_rng(0))
    assert problem.distance() <= certificate.bound <= half * (1 + 1e-5)
    assert certificate.inputs["gap_bound"][0] <= half * (1 + 1e-5)


def _coherent(n=400, p=60, ridge=1e-4, fit_intercept=False, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[: n // 40] *= 4
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    return Fitted(X, y, Gaussian(1.5), np.sort(rng.choice(n, p, replace=False)), ridge, None, fit_intercept, **options)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_risk_factors_hold_for_the_risk_itself(fit_intercept):
    problem = _coherent(200, 80, 1e-2, fit_intercept)
    K, L = problem.operators()
    certificates = (
        trace_certificate(problem.fit),
        operator_certificate(problem.passes, problem.fit, rng=np.random.default_rng(0), failure_probability=NEVER),
    )
    scaled_ridge = float(problem.fit.scaled_ridge[0])
    for signal in (*np.random.default_rng(1).normal(size=(20, 200)), *np.linalg.eigh(K - L)[1].T[-3:]):
        signal = signal - signal.mean() * fit_intercept
        ratio = exact.risk(L, signal, 0.1, scaled_ridge).total / exact.risk(K, signal, 0.1, scaled_ridge).total
        assert all(ratio <= c.risk_factor for c in certificates)
    assert certificates[1].risk_factor < certificates[0].risk_factor


@pytest.mark.parametrize(
    ("rho", "repeats"), [(0.05, 30), *(pytest.param(rho, 200, marks=pytest.mark.slow) for rho in (0.05, 0.3))]
)
def test_the_sampled_audit_fails_no_more_often_than_stated(rho, repeats):
    problem = _coherent()
    K, L = problem.operators()
    a = (problem.y - problem.predict(problem.X)) / problem.fit.scaled_ridge
    truth = np.sqrt(np.mean(((K - L) @ a) ** 2))
    rng, bounds = np.random.default_rng(2), []
    for _ in range(repeats):
        certificate = audit(problem.passes, problem.fit, rng=rng, kernel_entries=60 * 400, failure_probability=rho)
        bounds.append(certificate.inputs["energy_bound"][0])
        assert certificate.certainty == "probability"
        assert "rows" in certificate.claim
    assert np.sum(np.array(bounds) < truth) <= most_failures(repeats, rho)
    assert np.median(bounds) < 10 * truth


@pytest.mark.parametrize("rho", [0.05, 0.3])
def test_lanczos_fails_no_more_often_than_stated(rho):
    """A difficult spectrum: many eigenvalues just below the largest."""
    eigenvalues = 1.0 - np.linspace(0, 1, 500) ** 2 * 0.9
    steps, share = lanczos_steps(500, rho)
    rng, repeats = np.random.default_rng(0), 400
    found = [lanczos(lambda v: eigenvalues * v, 500, steps, rng) for _ in range(repeats)]
    assert max(found) <= 1 + 1e-12
    assert np.sum(np.array(found) / share < 1) <= most_failures(repeats, rho)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_lanczos_stops_at_an_invariant_subspace(rank):
    values = np.r_[np.arange(1.0, rank + 1), np.zeros(20 - rank)]
    assert lanczos(lambda v: values * v, 20, 12, np.random.default_rng(0)) == pytest.approx(rank)
    steps, share = lanczos_steps(4, 0.05)
    assert (steps, share) == (4, 1.0)


@given(seed=st.integers(0, 10**9), known=st.booleans())
@settings(max_examples=50, deadline=None)
def test_predictions_at_new_points_are_within_their_bounds(seed, known):
    problem = random_problem(seed, 50)
    rng = np.random.default_rng(seed)
    new = np.concatenate([problem.X[:5], rng.normal(size=(20, problem.X.shape[1])), 30 * problem.X[-2:]])
    indices = problem.indices if known else None
    certificate = audit(problem.passes, problem.fit, rng=rng, landmark_indices=indices)
    points = RowPasses(ArrayRows(new))
    bound = distance_at(points, problem.passes, problem.fit, certificate, indices)
    distance = np.abs(problem.predict(new) - problem.exact(new))
    allowance = np.sqrt(problem.kernel.diagonal(new) / problem.kernel.diagonal(problem.X).max() + 1)[:, None]
    assert (distance <= bound + 10 * np.sqrt(len(problem.X)) * allowance * problem.rounding()).all()


def test_bounds_at_new_points_are_within_100_times_the_distance():
    """They hold for all points at once, so they exceed the truth by a factor of about sqrt(n)."""
    problem = _coherent(600, 200, 1e-3, True)
    certificate = audit(problem.passes, problem.fit, rng=np.random.default_rng(0), landmark_indices=problem.indices)
    new = np.random.default_rng(5).normal(size=(300, 3))
    bound = distance_at(RowPasses(ArrayRows(new)), problem.passes, problem.fit, certificate, problem.indices)
    distance = np.abs(problem.predict(new) - problem.exact(new))
    assert np.sqrt(np.mean(bound**2)) < 100 * np.sqrt(np.mean(distance**2))


def test_a_row_far_from_all_landmarks_does_not_make_the_audit_loose():
    """Its duality gap alone may be arbitrarily large; the dual point is improved on such rows."""
    problem = _coherent(500, 100, 1e-5)
    far = problem.X.copy()
    missed = np.setdiff1d(np.arange(500), problem.indices)[:5]
    far[missed] += 30.0
    outlying = Fitted(far, problem.y, problem.kernel, problem.indices, 1e-5)
    certificate = audit(outlying.passes, outlying.fit, rng=np.random.default_rng(0), landmark_indices=outlying.indices)
    assert certificate.bound < 3 * outlying.distance()[0]


@pytest.mark.parametrize("name", ["elevators", "protein"])
@pytest.mark.slow
def test_the_audit_is_within_four_times_the_truth_on_real_data(name):
    """3,000 rows, lambda by leave-one-out, 2 and 4 leverage landmarks for every effective dimension."""
    data = real_data(name)
    order = np.random.default_rng(1).permutation(len(data["X"]))[:3000]
    X, y = standardised(data["X"][order].astype(float)), data["y"][order].astype(float)
    y = (y - y.mean()) / y.std()
    kernel = Gaussian(np.sqrt(2 * X.shape[1]))
    K = exact.kernel_matrix(X, kernel)
    spectrum = exact.spectrum(K)
    errors = {}
    for ridge in (1e-4, 1e-5, 1e-6):
        fitted, scores = exact.kernel_ridge(K, y, 3000 * ridge).fitted, exact.leverage_scores(spectrum, 3000 * ridge)
        errors[ridge] = np.mean(((y - fitted) / (1 - scores)) ** 2)
    ridge = min(errors, key=errors.get)
    dimension = exact.effective_dimension(spectrum, 3000 * ridge)
    for multiple in (2, 4):
        problem = Fitted(X, y, kernel, int(multiple * dimension), ridge, None, False, "leverage")
        certificate = audit(problem.passes, problem.fit, rng=np.random.default_rng(0), landmark_indices=problem.indices)
        truth = np.sqrt(np.mean((problem.predict(X)[:, 0] - exact.kernel_ridge(K, y, 3000 * ridge).fitted) ** 2))
        assert truth <= certificate.bound <= 4 * truth
        assert not certificate.vacuous
