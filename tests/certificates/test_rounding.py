"""Certificates hold for the floating-point numbers returned, compared with kernel ridge regression in 50 digits."""

import warnings

import mpmath
import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.certificates import audit, distance_at, operator_certificate, trace_certificate
from ridgemark.kernels import Gaussian, Linear, Matern12, Matern32, Matern52, Polynomial
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from tests.certificates.problems import Fitted
from tests.exact_digits import DIGITS, kernel_ridge
from tests.helpers import slowly

NEVER = 1e-9  # a failure probability so small that no test should see a failure
YEAR = 365 * 86400.0


def _far_clusters(seed, n):
    """Clusters 1e5 to 1e8 bandwidths apart, rows in them a bandwidth or less; or times of one year in seconds."""
    rng = np.random.default_rng(seed)
    n_features, n_clusters = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    make = (Gaussian, Gaussian, Matern12, Matern32, Matern52)[seed % 5]
    if seed % 3 == 0:
        n_features, bandwidth = 1, 60.0
        centres = rng.uniform(1.6e9, 1.6e9 + YEAR, size=(n_clusters, 1))
    else:
        bandwidth = 10.0 ** rng.uniform(-2, 2) * (1.0 if rng.random() < 0.5 else rng.uniform(0.5, 2, size=n_features))
        centres = rng.normal(size=(n_clusters, n_features)) * 10.0 ** rng.uniform(5, 8) * bandwidth
    within = 10.0 ** rng.uniform(-1.5, 0.7) * np.broadcast_to(bandwidth, n_features)
    X = centres[rng.integers(n_clusters, size=n)] + rng.normal(size=(n, n_features)) * within
    y = 10.0 ** rng.uniform(-2, 3) * (rng.normal(size=n) + 3 * rng.normal())
    weights = rng.choice([0.5, 1.0, 3.0], size=n) if rng.random() < 0.3 else None
    # With all rows as landmarks the distance to exact is rounding error only.
    landmarks = np.sort(rng.choice(n, n if rng.random() < 0.6 else int(rng.integers(4, n)), replace=False))
    return Fitted(X, y, make(bandwidth), landmarks, 10.0 ** rng.uniform(-10, -1), weights, bool(rng.integers(2)))


def _certificates(problem):
    passes, fit, n, rng = problem.passes, problem.fit, len(problem.X), np.random.default_rng(0)
    return {
        "audit": audit(passes, fit, rng=rng),
        "audit with the landmarks' rows": audit(passes, fit, rng=rng, landmark_indices=problem.indices),
        "sampled audit": audit(passes, fit, rng=rng, kernel_entries=n * n // 3, failure_probability=NEVER),
        "operator": operator_certificate(passes, fit, rng=rng, failure_probability=NEVER),
        "trace": trace_certificate(fit),
    }


def _check(seed, n=36):
    problem = _far_clusters(seed, n)
    fit, weights = problem.fit, problem.weights
    certificates = _certificates(problem)
    new = problem.X[:3] + np.array([[0.0], [0.3], [3.0]]) * problem.kernel.bandwidth
    bounds = distance_at(
        RowPasses(ArrayRows(new)), problem.passes, fit, certificates["audit with the landmarks' rows"], problem.indices
    )[:, 0]
    everywhere = np.concatenate([problem.X, new])
    predicted = problem.predict(everywhere)[:, 0]
    with mpmath.workdps(DIGITS):
        exact = kernel_ridge(
            problem.kernel, problem.X, problem.y[:, 0], fit.scaled_ridge[0], weights, fit.fit_intercept, everywhere
        )
        off = np.array([float(abs(value - mpmath.mpf(float(f)))) for value, f in zip(exact, predicted, strict=True)])
    distance = np.sqrt(np.average(off[: len(problem.X)] ** 2, weights=weights))
    for kind, certificate in certificates.items():
        assert distance <= certificate.bound, (seed, kind, distance, certificate.bound)
    assert (off[len(problem.X) :] <= bounds).all(), (seed, off[len(problem.X) :], bounds)


@pytest.mark.parametrize("seed", [*range(5), *slowly(*range(5, 10))])
def test_no_certificate_of_far_clusters_is_below_the_truth_or_refused(seed):
    _check(seed, 24)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 20))
def test_no_certificate_of_many_far_clusters_is_below_the_truth_or_refused(first):
    for seed in range(first, first + 20):
        _check(seed)


@pytest.mark.parametrize("seed", [344, 397, 495])
def test_no_audit_with_an_intercept_is_below_the_truth_where_the_kernel_diagonal_spans_decades(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 2))
    X[::2] += 1e5  # k(x, x) is 1e20 there and 1 elsewhere, so that the mean of the defects exceeds most of them
    y, weights, kernel = rng.normal(size=24), 10.0 ** rng.uniform(-10, 10, 24), Matern32(5.0) * Polynomial(2)
    ridge = 10.0 ** rng.uniform(-6, -2)
    model = NystromRidge(kernel, ridge=ridge, n_landmarks=12, selection="rpcholesky", random_state=0)
    model.fit(X, y, sample_weight=weights)
    with mpmath.workdps(DIGITS):
        exact = kernel_ridge(kernel, X, y, model.scaled_ridge_, weights, fit_intercept=True)
        off = np.array([float(value - f) for value, f in zip(exact, model.predict(X).tolist(), strict=True)])
    bound = model.certify(X, y, sample_weight=weights).bound
    assert np.sqrt(np.average(off**2, weights=weights)) <= bound


@pytest.mark.parametrize("n_sites", [2, 5, 20])
@pytest.mark.parametrize("seconds", [1.0, 30.0, 300.0])
def test_times_in_seconds_over_a_year_have_tight_audits(n_sites, seconds):
    for seed, fit_intercept in ((0, True), (1, False), (2, True)):
        rng = np.random.default_rng(seed)
        sites = rng.uniform(1.6e9, 1.6e9 + YEAR, size=n_sites)
        X = (rng.choice(sites, 400) + rng.uniform(-seconds, seconds, size=400))[:, None]
        y = np.sin(X[:, 0] / 3000) + 0.1 * rng.normal(size=400)
        model = NystromRidge(
            kernel=Gaussian(60.0), ridge=1e-4, n_landmarks=60, fit_intercept=fit_intercept, random_state=seed
        ).fit(X, y)
        assert max(model.certify(X, y).inputs["rounding"]) < 1e-7


@pytest.mark.filterwarnings("ignore::ridgemark.errors.ColumnWarning")  # the target is constant
def test_a_trace_counts_the_rounding_of_the_point_that_targets_are_measured_from():
    for seed in range(20):  # one row has all the weight, so that the exact solution has its target there
        rng = np.random.default_rng(seed)
        X, y, weights = rng.normal(size=(8, 1)), 3 * rng.normal(size=8), np.r_[1.0, np.full(7, 1e-40)]
        y[0] /= 300
        model = NystromRidge("gaussian", bandwidth=1.0, ridge=10.0, random_state=0).fit(X, y, sample_weight=weights)
        assert abs(model.predict(X)[0] - y[0]) <= model.certificate_.bound, seed


def test_an_audit_holds_for_targets_whose_rounding_errors_have_squares_below_the_range():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(12, 1)), 1e-150 * rng.normal(size=12)
        model = NystromRidge(Matern12(1.0), ridge=1e3, random_state=0).fit(X, y)
        audit = model.certify(X, y)
        distances = model.distance_to_exact(X, audit, X, y)
        with mpmath.workdps(DIGITS):
            exact = kernel_ridge(Matern12(1.0), X, y, 12 * mpmath.mpf(1e3), None, True)
            off = [abs(value - mpmath.mpf(float(f))) for value, f in zip(exact, model.predict(X), strict=True)]
            assert mpmath.sqrt(mpmath.fsum(value**2 for value in off) / 12) <= audit.bound, seed
            assert all(value <= bound for value, bound in zip(off, distances, strict=True)), seed


def test_distances_at_points_hold_where_gap_times_variance_is_below_the_range():
    rng = np.random.default_rng(0)
    X, y = 1e-60 * rng.normal(size=(8, 3)), 1e-130 * rng.normal(size=8)
    model = NystromRidge(Linear(), ridge=1.0, n_landmarks=1, fit_intercept=False, random_state=0).fit(X, y)
    distances = model.distance_to_exact(X, model.certify(X, y), X, y)
    with mpmath.workdps(400):
        exact = kernel_ridge(Linear(), X, y, mpmath.mpf(8))
        off = [abs(value - mpmath.mpf(float(f))) for value, f in zip(exact, model.predict(X), strict=True)]
        assert all(value <= bound for value, bound in zip(off, distances, strict=True))


def test_a_trace_counts_the_rounding_of_centring_features_far_from_zero():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = 1e6 + 1e-4 * rng.normal(size=(6, 2)), rng.normal(size=6)
        model = NystromRidge(Linear(origin=0.0), ridge=1e-12, n_landmarks=1, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rounding
            predicted = model.fit(X, y).predict(X)
        with mpmath.workdps(DIGITS):
            exact = kernel_ridge(Linear(), X, y, 6 * mpmath.mpf(1e-12), None, True)
            off = np.array([float(value - mpmath.mpf(float(f))) for value, f in zip(exact, predicted, strict=True)])
        assert np.sqrt(np.mean(off**2)) <= model.certificate_.bound, seed
