"""Groups and weights as metadata of scikit-learn: pipelines, searches and cross-validation."""

import numpy as np
import pytest
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ridgemark import NystromRidge
from tests.groups.problems import patients

X, Y, GROUPS = patients(30, 6)
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))
FIXED = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 30, "random_state": 0}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def asked():
    return NystromRidge(**FIXED).set_fit_request(groups=True, sample_weight=True)


@pytest.mark.usefixtures("routing")
def test_a_pipeline_passes_groups_and_weights_on():
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, asked()).fit(X, Y, groups=GROUPS, sample_weight=WEIGHTS)
    alone = NystromRidge(**FIXED).fit(StandardScaler().fit_transform(X), Y, WEIGHTS, groups=GROUPS)
    assert pipeline[-1].n_groups_ == 30
    assert pipeline.predict(X) == pytest.approx(alone.predict(StandardScaler().fit_transform(X)))


@pytest.mark.usefixtures("routing")
def test_a_search_passes_groups_to_the_splitter_and_to_the_fit():
    grid = {"bandwidth": [0.5, 2.0]}
    search = GridSearchCV(asked().set_score_request(sample_weight=True), grid, cv=GroupKFold(3))
    search.fit(X, Y, groups=GROUPS, sample_weight=WEIGHTS)
    assert search.best_estimator_.n_groups_ == 30
    assert set(search.cv_results_["param_bandwidth"]) == {0.5, 2.0}


@pytest.mark.usefixtures("routing")
def test_cross_validation_passes_groups_and_weights_to_every_fit():
    given = {"groups": GROUPS, "sample_weight": WEIGHTS}
    model = asked().set_score_request(sample_weight=False)
    found = cross_validate(model, X, Y, params=given, cv=GroupKFold(3), return_estimator=True)
    assert [fitted.n_groups_ for fitted in found["estimator"]] == [20, 20, 20]


def test_without_the_request_the_splitter_alone_gets_the_groups():
    found = cross_validate(NystromRidge(**FIXED), X, Y, groups=GROUPS, cv=GroupKFold(3), return_estimator=True)
    assert not any(hasattr(fitted, "n_groups_") for fitted in found["estimator"])
    search = GridSearchCV(NystromRidge(**FIXED), {"bandwidth": [0.5]}, cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    assert not hasattr(search.best_estimator_, "n_groups_")


def test_a_wrapper_passes_groups_as_a_parameter_of_fit():
    wrapped = TransformedTargetRegressor(NystromRidge(**FIXED), func=np.cbrt, inverse_func=lambda y: y**3)
    assert wrapped.fit(X, Y, groups=GROUPS).regressor_.n_groups_ == 30
