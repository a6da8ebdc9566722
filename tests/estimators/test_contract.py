"""scikit-learn's own checks, and the habits its users rely on."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ridgemark import NystromFeatures, NystromRidge, tuning
from ridgemark.kernels import Gaussian, Linear
from tests.helpers import pass_scikit_learn, slowly

FEW = {"rows": 100, "judging_rows": 40, "landmarks": 20, "evaluations": 2, "kernels": ["gaussian"]}


@pytest.mark.parametrize(
    "estimator",
    [
        NystromRidge(bandwidth=tuning.Tuner(**FEW, levels=["shared"]), n_landmarks=20, ridge=1e-3),
        pytest.param(NystromRidge(bandwidth=tuning.Tuner(**FEW)), marks=pytest.mark.slow),
        pytest.param(NystromRidge(), marks=pytest.mark.slow),
        pytest.param(NystromRidge("matern32", bandwidth=2.0, ridge=1e-3), marks=pytest.mark.slow),
        pytest.param(
            NystromRidge(kernel=Gaussian(1.0) + Linear(), fit_intercept=False, ridge=1e-2), marks=pytest.mark.slow
        ),
        pytest.param(NystromRidge("linear", fit_intercept=False, ridge=1e-3), marks=pytest.mark.slow),
        NystromFeatures(n_landmarks=10),
        pytest.param(NystromFeatures("laplacian", n_landmarks="auto", selection="rpcholesky"), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_no_check_of_scikit_learn_fails(estimator):
    pass_scikit_learn(estimator)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=300)


def test_a_grid_search_sets_the_kernels_bandwidth(data):
    search = GridSearchCV(NystromRidge(kernel=Gaussian(), ridge=1e-4), {"kernel__bandwidth": [0.01, 2.0]}, cv=3).fit(
        *data
    )
    assert search.best_params_ == {"kernel__bandwidth": 2.0}


def test_it_works_in_a_pipeline_and_is_cloned_unfitted(data):
    pipeline = make_pipeline(StandardScaler(), NystromRidge(bandwidth="median", random_state=0)).fit(*data)
    assert pipeline.score(*data) > 0.9
    assert not hasattr(clone(pipeline[-1]), "dual_coef_")


def test_a_data_frame_gives_its_column_names(data):
    X, y = data
    model = NystromRidge(bandwidth="median", random_state=0).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(
        model.predict(pd.DataFrame(X, columns=["a", "b", "c"])), model.predict(pd.DataFrame(X, columns=["a", "b", "c"]))
    )


def test_sparse_rows_fit_as_dense_ones_do(data):
    X, y = data
    X = np.where(np.abs(X) < 1, 0, X)
    dense = NystromRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(X, y)
    thin = NystromRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(sparse.csr_matrix(X), y)
    assert thin.predict(sparse.csr_matrix(X)) == pytest.approx(dense.predict(X), abs=1e-8)


def test_sparse_rows_are_not_blamed_for_other_faults(data):
    X, y = sparse.csr_matrix(data[0]), data[1]
    model = NystromRidge(bandwidth="median", ridge=1e-3)
    with pytest.raises(ValueError, match=r"^Found input variables with inconsistent numbers of samples"):
        model.fit(X, y[1:])
    with pytest.raises(ValueError, match=r"^X has 2 features, but NystromRidge is expecting 3"):
        model.fit(X, y).predict(X[:, :2])


def test_predictions_are_in_single_precision_where_rows_and_targets_are(data):
    X, y = data
    single, wide = X.astype(np.float32), NystromRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(X, y)
    model = NystromRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(single, y.astype(np.float32))
    assert model.predict(single).dtype == np.float32
    assert model.predict(X).dtype == np.float64
    assert model.predict(single) == pytest.approx(wide.predict(X), abs=1e-3)
    assert NystromRidge(bandwidth="median", ridge=1e-3).fit(single, y).predict(single).dtype == np.float64


@pytest.mark.parametrize("kernel", ["linear", *slowly("polynomial", "gaussian")])
def test_rows_stored_in_single_precision_lose_no_direction(kernel):
    """Years beside a standardised column: the kernel matrix has eigenvalues 1e-7 of the largest, and they matter."""
    rng = np.random.default_rng(1)
    X = np.c_[rng.integers(1990, 2024, 600), rng.normal(size=600)].astype(np.float32)
    y = 1e8 + 0.1 * X[:, 0] + X[:, 1].astype(float)
    model = NystromRidge(kernel, ridge=1e-6, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    wide = NystromRidge(kernel, ridge=1e-6, random_state=0).fit(X.astype(float), y)
    assert np.array_equal(model.predict(X), wide.predict(X.astype(float)))


def test_several_targets_are_fitted_as_if_one_by_one(data):
    X, y = data
    both = NystromRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(X, np.c_[y, -2 * y + 1])
    alone = NystromRidge(bandwidth="median", ridge=1e-3, random_state=0).fit(X, y)
    assert both.predict(X).shape == (300, 2)
    assert both.predict(X)[:, 0] == pytest.approx(alone.predict(X), abs=1e-10)
    assert both.predict(X)[:, 1] == pytest.approx(1 - 2 * alone.predict(X), abs=1e-9)


@pytest.mark.parametrize("backend", ["threading", *slowly("loky")])
def test_a_grid_search_in_parallel_finds_what_one_alone_finds(data, backend):
    grid = {"ridge": [1e-1, 1e-4], "n_landmarks": [10, 40]}
    searches = []
    for jobs in (1, 2):
        with joblib.parallel_backend(backend, n_jobs=jobs):
            searches.append(
                GridSearchCV(NystromRidge(bandwidth="median", random_state=0), grid, cv=3, n_jobs=jobs).fit(*data)
            )
    alone, together = searches
    assert alone.best_params_ == together.best_params_
    assert alone.cv_results_["mean_test_score"] == pytest.approx(together.cv_results_["mean_test_score"], abs=1e-9)


def test_weights_are_routed_through_a_pipeline_and_a_search(data):
    X, y = data
    y = y.copy()
    y[::3] += 50.0
    w = (np.arange(300) % 3 > 0).astype(float)
    with config_context(enable_metadata_routing=True):
        model = NystromRidge(bandwidth="median", random_state=0, ridge=1e-3)
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"n_landmarks": [30]}, cv=3).fit(X, y, sample_weight=w)
        assert search.best_score_ > 0.8
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), model)
        assert pipeline.fit(X, y, sample_weight=w).score(X[w > 0], y[w > 0], sample_weight=w[w > 0]) > 0.8
        assert model.set_partial_fit_request(sample_weight=True) is model


def test_features_name_themselves_in_a_pipeline(data):
    X, y = data
    pipeline = make_pipeline(NystromFeatures(n_landmarks=7, random_state=0), LinearRegression())
    pipeline.set_output(transform="pandas").fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert pipeline[-1].feature_names_in_.tolist() == [f"nystromfeatures{i}" for i in range(7)]


def test_a_notebook_shows_the_parameters(data):
    model = NystromRidge(bandwidth=2.0, kernel="matern52").fit(*data)
    assert "matern52" in model._repr_html_()
    assert "NystromRidge" in make_pipeline(StandardScaler(), model)._repr_html_()


def test_pickle_and_joblib_give_the_model_back(data, tmp_path):
    X, y = data
    model = NystromRidge(bandwidth="median", random_state=0).fit(X, y)
    joblib.dump(model, tmp_path / "m.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "m.joblib")):
        assert np.array_equal(copy.predict(X), model.predict(X))
        assert np.array_equal(copy.predict_interval(X), model.predict_interval(X))
        assert copy.partial_fit(X, y).predict(X) == pytest.approx(model.predict(X), abs=0.2)


def test_progress_goes_to_the_error_stream_or_to_who_asks(data, capsys):
    NystromRidge(bandwidth="median", ridge=1e-3, progress=True, random_state=0).fit(*data)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "moments: 300 of 300 " in captured.err
    seen = []
    NystromRidge(bandwidth="median", ridge=1e-3, progress=lambda *told: seen.append(told), random_state=0).fit(*data)
    assert ("moments", 300, 300) in seen
