"""No bound on the distance from exact kernel logistic regression is below the truth."""

import warnings

import mpmath
import numpy as np
import pytest

from ridgemark import NystromClassifier, load
from ridgemark.certificates import audit_classes
from ridgemark.errors import ConvergenceWarning, DataError
from ridgemark.kernels import Gaussian, Laplacian, Linear, Matern32, Scaled
from ridgemark.leverage import Bracket
from ridgemark.losses import RidgeSolution, class_loss
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers import LandmarkFit, Newton
from tests.classes.problems import indicators, labelled
from tests.helpers import slowly


def exact_predictor(K, Y, weights, scaled_ridge, n_classes, fit_intercept):
    """Log-odds of kernel logistic regression on the rows of K, by dense Newton steps in the eigenvectors of K."""
    values, vectors = np.linalg.eigh(K)
    Z = vectors * np.sqrt(np.maximum(values, 0.0))
    Z = np.c_[Z, np.full(len(K), float(fit_intercept))]
    loss, t, m = class_loss(n_classes), Y.shape[1], Z.shape[1]
    penalty = np.append(np.full(m - 1, scaled_ridge), 1e-9 if fit_intercept else 1.0)
    x = np.zeros((m, t))

    def objective(x):
        return weights @ loss.values(Y, Z @ x) + (penalty @ x**2).sum() / 2

    for _ in range(200):
        eta = Z @ x
        gradient = Z.T @ (weights[:, None] * loss.slopes(Y, eta)) + penalty[:, None] * x
        columns = [weights[:, None] * loss.curvature_product(Y, eta, np.tile(unit, (len(Y), 1))) for unit in np.eye(t)]
        H = np.block([[Z.T @ (columns[k][:, [j]] * Z) for k in range(t)] for j in range(t)])
        step = np.linalg.solve(H + np.diag(np.tile(penalty, t)), gradient.T.ravel()).reshape(t, m).T
        share = 1.0
        while share > 1e-8 and objective(x - share * step) > objective(x) + 1e-13 * abs(objective(x)):
            share /= 2
        x = x - share * step
        if np.abs(Z @ step).max() <= 1e-11 * max(1.0, np.abs(eta).max()):
            break
    return Z @ x


def random_fit(seed):
    """A random problem of labels: kernel, classes, weights, intercept, ridge, landmarks."""
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(20, 80)), int(rng.choice([2, 2, 3, 4]))
    X, labels = labelled(n, n_classes, seed, sharpness=10 ** rng.uniform(-1, 1))
    labels[:n_classes] = np.arange(n_classes)
    weights = np.ones(n) if rng.random() < 0.5 else rng.uniform(0.1, 3.0, n)
    kernel = [Gaussian(1.0), Gaussian(3.0), Laplacian(1.0), Matern32(0.5), Linear()][rng.integers(5)]
    fit_intercept, scaled_ridge = bool(rng.random() < 0.5), float(10 ** rng.uniform(-5, 0) * weights.sum())
    points = np.sort(rng.choice(n, int(rng.integers(1, n)), replace=False))
    Y, loss = indicators(labels, n_classes), class_loss(n_classes)
    passes = RowPasses(ArrayRows(X, Y, weights))
    newton = Newton(passes, nystrom_factor(kernel, X[points], points), loss, fit_intercept)
    t = Y.shape[1]
    found = newton.solve(scaled_ridge, RidgeSolution(np.zeros((newton.factor.rank, t)), np.zeros(t)))
    fit = LandmarkFit(
        *(newton.factor, newton.sums(found.solution, scaled_ridge), fit_intercept, np.full(t, scaled_ridge)),
        *(np.zeros(t), 1.0, found.solution, np.zeros(t), Bracket(1.0, float(n))),
    )
    exact = exact_predictor(kernel(X, X), Y, weights, scaled_ridge, n_classes, fit_intercept)
    return passes, fit, loss, weights, exact


def probabilities(loss, predictor):
    p = np.exp(loss.log_probabilities(predictor))
    return p[:, 1:] if loss.scalar else p


def check_bounds(seed):
    passes, fit, loss, weights, exact = random_fit(seed)
    certificate = audit_classes(passes, fit, loss, rng=np.random.default_rng(0))
    eta = fit.factor.cross_kernel(passes.take(np.arange(len(weights))).features) @ fit.dual_coef + fit.intercept
    p, p_exact = probabilities(loss, eta), probabilities(loss, exact)
    truth = np.sqrt(weights @ ((p - p_exact) ** 2).sum(axis=1) / weights.sum())
    rounding = 1e-9  # of the exact solution
    assert truth <= certificate.bound + rounding, seed
    apart = eta - exact - (0.0 if loss.scalar else (eta - exact).mean(axis=1, keepdims=True))
    assert np.sqrt((apart**2).sum(axis=1)).max() <= certificate.inputs["log_odds"] + 1e-6, seed
    if loss.scalar:
        curved = np.sqrt(weights @ (p * (1 - p) * apart**2)[:, 0] / weights.sum())
        assert curved <= certificate.inputs["curvature_weighted"] + 1e-6, seed
    return certificate.bound / max(truth, 1e-12)


def test_no_bound_is_below_the_truth():
    for seed in range(8):
        check_bounds(seed)


@pytest.mark.slow
def test_no_bound_is_below_the_truth_in_300_problems():
    for seed in range(300):
        check_bounds(1000 + seed)


@pytest.mark.parametrize("weights", [(7.0, 3.0), *slowly((1.0, 1.0, 5.0)), (1.0, 1e-35, 1e-22)])
def test_bounds_on_the_log_odds_count_rounding_and_constants_that_are_not_solved(weights):
    X, n_classes = np.random.default_rng(0).normal(size=(9, 2)), len(weights)
    labels = np.arange(9) % n_classes
    model = NystromClassifier(Scaled(Gaussian(1.0), 1e-20), ridge=1.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, labels, sample_weight=np.array(weights)[labels])
    certificate = model.certify(X, labels, sample_weight=np.array(weights)[labels])
    with mpmath.workdps(50):  # the function is zero to 1e-19, and the constants are the logarithms of the shares
        totals = [mpmath.mpf(weight) * int((labels == k).sum()) for k, weight in enumerate(weights)]
        logs = np.array([mpmath.log(total) for total in totals], dtype=object)
        exact = logs[1:] - logs[0] if n_classes == 2 else logs - logs.mean()
        apart = (np.atleast_2d(model.decision_function(X).T).T.astype(object) - exact).astype(float)
    assert np.linalg.norm(apart, axis=1).max() <= certificate.inputs["log_odds"]


def test_a_certificate_of_classes_does_not_speak_of_the_risk_of_squared_errors():
    X, labels = labelled(300, 2)
    model = NystromClassifier("gaussian", bandwidth=3.0, ridge=1.0, n_landmarks=200, random_state=0).fit(X, labels)
    certificate = model.certify(X, labels)
    assert certificate.inputs["theorem_3"] is None
    assert "Theorem 3" not in str(certificate)


def test_the_bound_is_within_ten_times_the_truth_for_enough_landmarks():
    X, labels = labelled(400, 2)
    model = NystromClassifier("gaussian", bandwidth=1.0, ridge=1e-3, n_landmarks=25, random_state=0).fit(X, labels)
    certificate = model.certify(X, labels)
    exact = exact_predictor(model.kernel_(X, X), indicators(labels, 2), np.ones(400), 0.4, 2, True)
    truth = np.sqrt(np.mean((model.predict_proba(X)[:, 1] - 1 / (1 + np.exp(-exact[:, 0]))) ** 2))
    assert truth < certificate.bound < 10 * truth
    assert certificate.certainty == "deterministic"
    assert "of exact kernel logistic regression on these rows" in certificate.claim
    assert not certificate.vacuous


def test_all_rows_as_landmarks_are_certified_as_exact():
    X, labels = labelled(150, 3)
    model = NystromClassifier("gaussian", bandwidth=1.0, ridge=1e-3, n_landmarks=150, random_state=0).fit(X, labels)
    assert model.certify(X, labels).bound < 1e-5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_sampled_bound_holds_too(n_classes):
    X, labels = labelled(100, n_classes)
    model = NystromClassifier("gaussian", bandwidth=1.0, ridge=1e-3, n_landmarks=30, random_state=0).fit(X, labels)
    loss, passes = class_loss(n_classes), model._passes_of_fit(X, labels, None)
    exact = exact_predictor(model.kernel_(X, X), indicators(labels, n_classes), np.ones(100), 0.1, n_classes, True)
    p = model.predict_proba(X)[:, 1:] if n_classes == 2 else model.predict_proba(X)
    truth = np.sqrt(np.mean(((p - probabilities(loss, exact)) ** 2).sum(axis=1)))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        certificate = audit_classes(passes, model._model.sums, loss, rng=rng, kernel_entries=40 * 100)
        assert certificate.certainty == "probability"
        assert truth <= certificate.bound


def test_other_rows_and_labels_are_refused():
    X, labels = labelled(200, 2)
    model = NystromClassifier("gaussian", bandwidth=1.0, ridge=1e-3, n_landmarks=30, random_state=0).fit(X, labels)
    assert model.certify(X, labels).bound > 0
    for rows, y in ((X[:100], labels[:100]), (X, 1 - labels), (X[::-1], labels), (2 * X, labels)):
        with pytest.raises(DataError, match="not the rows the model was fitted on"):
            model.certify(rows, y)


def test_a_loaded_model_is_certified_as_the_saved_one(tmp_path):
    X, labels = labelled(200, 3)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 200)
    model = NystromClassifier(
        "gaussian", bandwidth=1.0, ridge=1e-3, n_landmarks=30, random_state=0, class_weight="balanced"
    ).fit(X, labels, sample_weight=weights)
    again = load(model.save(tmp_path / "model", sums=True))
    one, other = (each.certify(X, labels, sample_weight=weights) for each in (model, again))
    assert one.bound == other.bound


def test_landmarks_are_doubled_until_the_tolerance_is_met():
    X, labels = labelled(700, 2)
    model = NystromClassifier(
        "gaussian",
        bandwidth=1.0,
        ridge=1e-3,
        certify_with="audit",
        risk_tolerance=1e-5,
        selection="uniform",
        random_state=0,
    ).fit(X, labels)
    assert model.tolerance_.met
    assert len(model.tolerance_.bounds) > 1
    assert model.certificate_.bound == model.tolerance_.bounds[-1] < model.tolerance_.bounds[0]
    assert model.certify(X, labels).bound == pytest.approx(model.certificate_.bound)
