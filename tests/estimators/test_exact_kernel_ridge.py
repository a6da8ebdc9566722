"""ExactKernelRidge is scikit-learn's KernelRidge within its tolerance, and says when it is not."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

import ridgemark
from ridgemark import ExactKernelRidge, NystromRidge, exact, open_rows
from ridgemark.errors import ConvergenceWarning, ParameterError
from ridgemark.fitting import stages
from ridgemark.kernels import Gaussian
from tests.helpers import pass_scikit_learn


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 3))
    return X, 5 + np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=700)


@pytest.mark.parametrize(
    "estimator",
    [
        ExactKernelRidge(bandwidth="median", ridge=1e-3, n_landmarks=20),
        pytest.param(ExactKernelRidge(bandwidth="median", ridge=1e-3), marks=pytest.mark.slow),
        pytest.param(ExactKernelRidge(bandwidth="median"), marks=pytest.mark.slow),
        pytest.param(ExactKernelRidge("matern32", bandwidth=2.0, ridge=1e-3, n_landmarks=20), marks=pytest.mark.slow),
        pytest.param(ExactKernelRidge("linear", fit_intercept=False, ridge=1e-3), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_no_check_of_scikit_learn_fails(estimator):
    pass_scikit_learn(estimator)


@pytest.mark.parametrize("memory_budget", [None, 3_000_000], ids=["held", "streamed"])
def test_it_is_kernel_ridge_of_scikit_learn(data, memory_budget):
    X, y = data
    model = ExactKernelRidge(
        bandwidth=1.0, ridge=1e-4, n_landmarks=100, fit_intercept=False, memory_budget=memory_budget, random_state=0
    ).fit(X, y)
    reference = KernelRidge(alpha=700 * 1e-4, kernel="rbf", gamma=0.5).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - reference.predict(X)) ** 2)) <= 1e-6
    new = np.random.default_rng(1).normal(size=(50, 3))
    assert np.abs(model.predict(new) - reference.predict(new)).max() <= model.history_[-1].norm[0]


def test_the_intercept_is_fitted_jointly_and_weights_count_rows(data):
    X, y = data
    w = np.random.default_rng(2).integers(0, 3, 700).astype(float)
    model = ExactKernelRidge(bandwidth=1.0, ridge=1e-4, n_landmarks=100, random_state=0).fit(X, y, w)
    reference = exact.kernel_ridge(exact.kernel_matrix(X, Gaussian(1.0)), y, w.sum() * 1e-4, w, True)
    assert model.predict(X)[w > 0] == pytest.approx(reference.fitted[w > 0], abs=1e-4)
    assert model.intercept_ == pytest.approx(float(reference.intercept), abs=1e-4)
    assert model.X_fit_.shape == (np.count_nonzero(w), 3)
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-6)


def test_history_counts_products_and_ends_within_tol(data):
    X, y = data
    model = ExactKernelRidge(bandwidth=1.0, ridge=1e-4, n_landmarks=60, random_state=0).fit(X, y)
    assert [step.n_products for step in model.history_] == list(range(model.n_iter_ + 1))
    assert model.history_[-1].returned[0] <= 1e-6 < model.history_[-2].returned[0]


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_distance_is_in_proportion_to_targets_of_any_unit(data, unit):
    X, y = data
    kernel = {"bandwidth": 1.0, "ridge": 1e-5, "n_landmarks": 60, "random_state": 0}
    model, other = (ExactKernelRidge(**kernel).fit(X, factor * y) for factor in (1.0, unit))
    assert np.sqrt(np.mean((other.predict(X) / unit - model.predict(X)) ** 2)) <= 2e-6 * y.std()
    assert (other.history_[-1].returned <= 1e-6 * unit * y.std()).all()


@pytest.mark.filterwarnings("ignore:target . is . in all rows")
def test_each_target_is_within_its_own_distance(data):
    X, y = data
    targets = np.column_stack([y, 1e6 * y, np.full(len(y), 3.0), np.zeros(len(y))])
    model = ExactKernelRidge(bandwidth=1.0, ridge=1e-5, n_landmarks=60, random_state=0).fit(X, targets)
    assert (model.history_[-1].returned <= 1e-6 * np.array([y.std(), 1e6 * y.std(), 3.0, 1.0])).all()


def test_more_landmarks_take_fewer_products(data):
    X, y = data
    few, many = (
        ExactKernelRidge(bandwidth=1.0, ridge=1e-4, n_landmarks=p, random_state=0).fit(X, y).n_iter_ for p in (30, 300)
    )
    assert many < few


def test_what_is_short_of_tol_is_said_with_the_distance_reached(data):
    X, y = data
    with pytest.warns(ConvergenceWarning, match=r"after 2 products .* raise max_iter"):
        model = ExactKernelRidge(bandwidth=1.0, ridge=1e-6, n_landmarks=30, max_iter=2, random_state=0).fit(X, y)
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="stagnated"):
        ExactKernelRidge(bandwidth=1.0, ridge=1e-9, n_landmarks=500, tol=1e-12, random_state=0).fit(X, y)


def test_the_ridge_is_the_one_leave_one_out_finds(data):
    X, y = data
    model = ExactKernelRidge(bandwidth=1.0, n_landmarks=100, selection="uniform", random_state=0).fit(X, y)
    everyone = NystromRidge(bandwidth=1.0, n_landmarks=len(X), selection="uniform", random_state=0).fit(X, y)
    assert model.ridge_ == pytest.approx(everyone.ridge_)
    assert model.ridge_path_.loo_error == pytest.approx(everyone.ridge_path_.loo_error)
    assert not hasattr(clone(model).set_params(ridge=1e-3).fit(X, y), "ridge_path_")


def test_the_kernel_is_tuned_for_all_rows_as_landmarks(data, monkeypatch):
    asked, choose = [], stages.choose_kernel
    monkeypatch.setattr(stages, "choose_kernel", lambda *given: asked.append(given[-2]) or choose(*given))
    X, y = data
    ExactKernelRidge(bandwidth=1.0, ridge=1e-2, n_landmarks=20).fit(X, y)
    assert asked[0] == len(X)


def test_several_targets_sparse_rows_files_and_precomputed_kernels(data):
    X, y = data
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    options = {"ridge": 1e-3, "n_landmarks": 100, "random_state": 0}
    plain = ExactKernelRidge(bandwidth=1.0, **options).fit(X, np.c_[y, -y])
    assert plain.predict(X).shape == (700, 2)
    alone = plain.predict(X)[:, 0]
    thin = ExactKernelRidge(bandwidth=1.0, **options).fit(sparse.csr_array(X), y)
    assert thin.predict(sparse.csr_array(X)) == pytest.approx(alone, abs=1e-4)
    rows = open_rows(X, target=y)
    assert ExactKernelRidge(bandwidth=1.0, **options).fit(rows).predict(rows) == pytest.approx(alone, abs=1e-4)
    K = Gaussian(1.0)(X)
    given = ExactKernelRidge("precomputed", **options).fit(K, y)
    assert given.predict(K) == pytest.approx(alone, abs=1e-4)


@pytest.mark.parametrize(("name", "value"), [("tol", 0.0), ("tol", "small"), ("max_iter", 0), ("max_iter", 1.5)])
def test_options_out_of_range_are_refused_by_name(data, name, value):
    with pytest.raises(ParameterError, match=f"{name} must be"):
        ExactKernelRidge(**{name: value}).fit(*data)


@pytest.mark.parametrize("targets", [1, 2])
def test_a_saved_model_predicts_the_same_bits(targets, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    Y = np.sin(X[:, :targets]) + 0.1 * rng.normal(size=(200, targets))
    model = ExactKernelRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(X, Y if targets > 1 else Y[:, 0])
    loaded = ridgemark.load(model.save(tmp_path / "m"))
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.history_[-1].returned.tolist() == model.history_[-1].returned.tolist()
