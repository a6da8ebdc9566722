"""The reference implementation against definitions with plain inverses, and against scikit-learn."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

from ridgemark import exact
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels import Bernoulli, Gaussian, Laplacian, Linear, Matern12, Polynomial, make_kernel


@pytest.fixture
def problem():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    return X, rng.normal(size=60), exact.kernel_matrix(X, Gaussian(1.5))


def test_scores_are_the_diagonal_of_the_hat_matrix(problem):
    _, _, K = problem
    hat = K @ np.linalg.inv(K + 0.06 * np.eye(60))
    assert exact.leverage_scores(K, 0.06) == pytest.approx(np.diagonal(hat), abs=1e-10)
    assert exact.effective_dimension(K, 0.06) == pytest.approx(np.trace(hat), rel=1e-10)
    assert exact.max_degrees_of_freedom(K, 0.06) == pytest.approx(60 * np.diagonal(hat).max())
    operator = exact.max_degrees_of_freedom(K, 0.06, form="operator")
    assert operator == pytest.approx(60 * np.linalg.norm(hat, 2))


def test_effective_dimension_lies_below_both_forms_of_d_mof(problem):
    _, _, K = problem
    for ridge in 10.0 ** np.arange(-8, 3):
        d_eff = exact.effective_dimension(K, ridge)
        d_mof = exact.max_degrees_of_freedom(K, ridge)
        assert d_eff <= d_mof <= exact.max_degrees_of_freedom(K, ridge, form="operator") <= 60 * (1 + 1e-12)


def test_a_smaller_tolerance_multiplies_d_eff_at_most_by_its_inverse(problem):
    _, _, K = problem
    for epsilon in (0.5, 0.1, 0.01):
        assert exact.effective_dimension(K, 0.1 * epsilon) <= exact.effective_dimension(K, 0.1) / epsilon


def test_a_spectrum_gives_the_same_results_as_its_matrix(problem):
    _, y, K = problem
    s = exact.spectrum(K)
    assert exact.spectrum(s) is s
    assert np.array_equal(exact.leverage_scores(s, 0.1), exact.leverage_scores(K, 0.1))
    assert exact.risk(s, y, 1.0, 0.1) == exact.risk(K, y, 1.0, 0.1)


def test_a_linear_kernel_keeps_small_directions_that_its_matrix_loses():
    """Singular values 1 and 1e-9: X X' holds the second as 1e-18, below rounding; X holds it accurately."""
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(40, 2)))
    X = basis * [1.0, 1e-9]
    s = exact.kernel_spectrum(X, "linear")
    assert s.eigenvalues == pytest.approx([1.0, 1e-18], rel=1e-6)
    assert exact.effective_dimension(s, 1e-20) == pytest.approx(2.0, abs=0.02)


@pytest.mark.parametrize("kernel", [Linear(), Polynomial(bandwidth=2.0), Gaussian(2.0)])
def test_rows_in_single_precision_have_the_kernel_of_the_same_rows_in_double(kernel):
    X = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    assert np.array_equal(exact.kernel_matrix(X, kernel), exact.kernel_matrix(X.astype(np.float64), kernel))
    one, two = (exact.effective_dimension(exact.kernel_spectrum(rows, kernel), 80e-8) for rows in (X, X.astype(float)))
    assert one == two


def test_a_linear_spectrum_gives_the_same_risk_as_its_matrix():
    rng = np.random.default_rng(1)
    X, signal = rng.normal(size=(50, 4)), rng.normal(size=50)
    by_values = exact.risk(exact.kernel_spectrum(X, Linear()), signal, 0.3, 2.0)
    by_matrix = exact.risk(X @ X.T, signal, 0.3, 2.0)
    assert by_values.squared_bias == pytest.approx(by_matrix.squared_bias, rel=1e-10)
    assert by_values.variance == pytest.approx(by_matrix.variance, rel=1e-10)


def test_rank_leverage_scores_sum_to_the_rank(problem):
    _, _, K = problem
    _, vectors = np.linalg.eigh(K)
    expected = (vectors[:, -7:] ** 2).sum(axis=1)
    assert exact.rank_leverage_scores(K, 7) == pytest.approx(expected, abs=1e-8)
    assert exact.rank_leverage_scores(K, 7).sum() == pytest.approx(7)


SHARED = {
    "gaussian": (Gaussian(1.4), {"kernel": "rbf", "gamma": 1 / (2 * 1.4**2)}),
    "laplacian": (Laplacian(2.0), {"kernel": "laplacian", "gamma": 0.5}),
    "linear": (Linear(), {"kernel": "linear"}),
    "polynomial": (
        Polynomial(3, offset=1.5, bandwidth=2.0),
        {"kernel": "poly", "degree": 3, "coef0": 1.5, "gamma": 0.25},
    ),
    "cosine": ("cosine", {"kernel": "cosine"}),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [1e-1, 1e-3, 1e-5])
def test_kernel_ridge_agrees_with_scikit_learn(name, weighted, ridge):
    kernel, options = SHARED[name]
    rng = np.random.default_rng(3)
    X, Z, Y = rng.normal(size=(80, 4)), rng.normal(size=(20, 4)), rng.normal(size=(80, 2))
    weights = rng.uniform(0.1, 3.0, 80) if weighted else None
    scaled_ridge = ridge * (80 if weights is None else weights.sum())
    peer = KernelRidge(alpha=scaled_ridge, **options).fit(X, Y, sample_weight=weights)
    fit = exact.kernel_ridge(exact.kernel_matrix(X, kernel), Y, scaled_ridge, weights)
    assert fit.predict(make_kernel(kernel)(Z, X)) == pytest.approx(peer.predict(Z), abs=1e-8)
    assert fit.fitted == pytest.approx(peer.predict(X), abs=1e-8)


@pytest.mark.parametrize("kernel", [Matern12(1.0), Gaussian(0.7) + Linear(), Bernoulli(1)], ids=repr)
def test_kernel_ridge_agrees_with_scikit_learn_on_precomputed_kernels(kernel):
    rng = np.random.default_rng(4)
    X, y, weights = rng.random((70, 1)), rng.normal(size=70), rng.uniform(0.1, 3.0, 70)
    K = exact.kernel_matrix(X, kernel)
    peer = KernelRidge(alpha=1e-3 * weights.sum(), kernel="precomputed").fit(K, y, sample_weight=weights)
    fit = exact.kernel_ridge(K, y, 1e-3 * weights.sum(), weights)
    assert fit.fitted == pytest.approx(peer.predict(K), abs=1e-8)
    assert fit.dual_coef == pytest.approx(peer.dual_coef_, rel=1e-8, abs=1e-8 * abs(peer.dual_coef_).max())


def test_an_integer_weight_is_a_repeated_row(problem):
    _, y, K = problem
    weights = np.random.default_rng(2).integers(0, 4, 60).astype(float)
    repeated = np.repeat(np.arange(60), weights.astype(int))
    for intercept in (False, True):
        weighted = exact.kernel_ridge(K, y, 0.1, weights, fit_intercept=intercept)
        plain = exact.kernel_ridge(K[np.ix_(repeated, repeated)], y[repeated], 0.1, fit_intercept=intercept)
        assert weighted.fitted == pytest.approx(plain.predict(K[:, repeated]), abs=1e-9)


def test_the_intercept_minimises_the_objective_jointly(problem):
    _, y, K = problem
    fit = exact.kernel_ridge(K, y + 100.0, 0.5, fit_intercept=True)

    def objective(dual_coef, intercept):
        residual = y + 100.0 - K @ dual_coef - intercept
        return residual @ residual + 0.5 * dual_coef @ K @ dual_coef

    best = objective(fit.dual_coef, fit.intercept)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert objective(fit.dual_coef + 1e-3 * rng.normal(size=60), fit.intercept + 1e-3 * rng.normal()) >= best
    assert fit.dual_coef.sum() == pytest.approx(0.0, abs=1e-9)


def test_fitted_values_are_targets_minus_the_scaled_dual_coefficients(problem):
    _, y, K = problem
    fit = exact.kernel_ridge(K, y, 0.2)
    assert fit.fitted == pytest.approx(y - 0.2 * fit.dual_coef, abs=1e-10)


def test_the_approximation_is_the_pseudo_inverse_formula(problem):
    _, _, K = problem
    S = exact.gaussian_sketch(60, 12, np.random.default_rng(0))
    expected = K @ S @ np.linalg.inv(S.T @ K @ S + 0.3 * np.eye(12)) @ S.T @ K
    assert exact.nystrom_approximation(K, S, 0.3) == pytest.approx(expected, abs=1e-10)
    unregularised = K @ S @ np.linalg.pinv(S.T @ K @ S) @ S.T @ K
    assert exact.nystrom_approximation(K, S) == pytest.approx(unregularised, abs=1e-8)


def test_repeated_draws_change_the_weights_but_not_the_approximation(problem):
    _, _, K = problem
    uniform = np.full(60, 1 / 60)
    once = exact.column_sketch([3, 8, 20], uniform)
    repeated = exact.column_sketch([3, 8, 20, 8, 8, 3], uniform)
    assert exact.nystrom_approximation(K, once) == pytest.approx(exact.nystrom_approximation(K, repeated), abs=1e-10)
    distinct = K[:, [3, 8, 20]]
    plain = distinct @ np.linalg.inv(K[np.ix_([3, 8, 20], [3, 8, 20])]) @ distinct.T
    assert exact.nystrom_approximation(K, once) == pytest.approx(plain, abs=1e-10)


def test_a_regularised_column_sketch_is_the_weighted_form_over_distinct_rows(problem):
    """`L_gamma = C (W + n gamma D^-1)^-1 C'` with D = diag(multiplicity/(p p_i))."""
    _, _, K = problem
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(60))
    draws = rng.choice(60, 15, p=probabilities)
    distinct, counts = np.unique(draws, return_counts=True)
    D = counts / (15 * probabilities[distinct])
    C, W = K[:, distinct], K[np.ix_(distinct, distinct)]
    expected = C @ np.linalg.inv(W + 0.2 * np.diag(1 / D)) @ C.T
    got = exact.nystrom_approximation(K, exact.column_sketch(draws, probabilities), 0.2)
    assert got == pytest.approx(expected, abs=1e-10)


SKETCHES = [exact.gaussian_sketch, exact.rademacher_sketch, exact.cosine_sketch, exact.hadamard_sketch]


@pytest.mark.parametrize("make", SKETCHES)
def test_every_random_projection_is_the_identity_on_average(make):
    rng = np.random.default_rng(0)
    n, p, repeats = 12, 4, 4000
    mean = sum(S @ S.T for S in (make(n, p, rng) for _ in range(repeats))) / repeats
    assert mean == pytest.approx(np.eye(n), abs=6 * np.sqrt(2 * n / p / repeats))


@pytest.mark.parametrize("make", [exact.cosine_sketch, exact.hadamard_sketch])
def test_a_transform_with_all_its_columns_is_orthogonal(make):
    S = make(16, 16, np.random.default_rng(0))
    assert S @ S.T == pytest.approx(np.eye(16), abs=1e-12)


def test_spectral_error_is_theorem_1s_largest_eigenvalue(problem):
    _, _, K = problem
    S = exact.gaussian_sketch(60, 9, np.random.default_rng(1))
    values, U = np.linalg.eigh(K)
    root = np.sqrt(np.clip(values, 0, None) / (np.clip(values, 0, None) + 0.4))
    D = np.diag(root**2) - root[:, None] * (U.T @ S @ S.T @ U) * root
    assert exact.spectral_error(K, S, 0.4) == pytest.approx(np.linalg.eigvalsh(D)[-1], abs=1e-10)


def test_columns_of_psi_have_the_scores_as_squared_lengths(problem):
    _, _, K = problem
    assert (exact.psi(K, 0.3) ** 2).sum(axis=0) == pytest.approx(exact.leverage_scores(K, 0.3))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda K: exact.leverage_scores(K, 0.0),
            ParameterError,
            "scaled_ridge .* must be positive and finite, got 0.0",
        ),
        (lambda K: exact.leverage_scores(K[:, :5], 1.0), DataError, r"square and not empty, got shape \(60, 5\)"),
        (lambda K: exact.leverage_scores(K + np.triu(K), 1.0), DataError, "differs from its transpose by"),
        (lambda K: exact.leverage_scores(K * np.nan, 1.0), DataError, "finite and symmetric"),
        (lambda K: exact.risk(K, np.ones(3), 1.0, 1.0), DataError, r"for each of the 60 rows, got shape \(3,\)"),
        (lambda K: exact.risk(K, np.ones(60), -1.0, 1.0), ParameterError, "noise_variance must be at least 0"),
        (lambda K: exact.kernel_ridge(K, np.ones(3), 1.0), DataError, "one finite entry for each of the 60 rows"),
        (lambda K: exact.rank_leverage_scores(K, 61), ParameterError, "between 1 and the number of rows, 60, got 61"),
        (lambda K: exact.nystrom_approximation(K, np.ones((3, 2))), DataError, r"shape \(60, p\), got \(3, 2\)"),
        (lambda K: exact.nystrom_approximation(K, np.ones((60, 2)), -1.0), ParameterError, "at least 0, got -1.0"),
        (lambda K: exact.max_degrees_of_freedom(K, 1.0, "norm"), ParameterError, "got 'norm'"),
        (lambda K: exact.column_sketch([0], [0.5, 0.6]), ParameterError, "sum to one, got a sum of 1.1"),
        (lambda K: exact.column_sketch([0], [0.0, 1.0]), ParameterError, "probability zero"),
        (
            lambda K: exact.hadamard_sketch(5, 9, np.random.default_rng(0)),
            ParameterError,
            "at most 8",
        ),
        (lambda K: exact.kernel_matrix(np.zeros((20_001, 1))), ParameterError, "at most 20000 rows; use NystromRidge"),
    ],
)
def test_invalid_arguments_are_refused(call, error, words, problem):
    with pytest.raises(error, match=words):
        call(problem[2])


@pytest.mark.parametrize("scaled_sketch_ridge", [0.0, 0.3])
def test_the_spectrum_of_an_approximation_is_that_of_its_matrix(scaled_sketch_ridge):
    rng = np.random.default_rng(5)
    K = exact.kernel_matrix(rng.normal(size=(60, 2)), "gaussian", 1.0)
    S = exact.gaussian_sketch(60, 12, rng)
    got = exact.nystrom_spectrum(K, S, scaled_sketch_ridge)
    L = exact.nystrom_approximation(K, S, scaled_sketch_ridge)
    assert (got.eigenvectors * got.eigenvalues) @ got.eigenvectors.T == pytest.approx(L, abs=1e-12)
    assert got.eigenvalues == pytest.approx(np.linalg.eigvalsh(L)[::-1][:12], abs=1e-12)
    signal = rng.normal(size=60)
    assert exact.risk(got, signal, 0.1, 0.5).total == pytest.approx(exact.risk(L, signal, 0.1, 0.5).total)
