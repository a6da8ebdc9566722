"""Parameters of other packages are answered with the equivalent; scikit-learn's contract still holds."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from ridgemark import ExactKernelRidge, NystromClassifier, NystromFeatures, NystromRidge
from ridgemark.errors import ParameterError, UnknownParameterError

ESTIMATORS = [NystromRidge, NystromClassifier, ExactKernelRidge, NystromFeatures]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("foreign", "hint"),
    [
        ({"alpha": 1.0}, r"ridge = alpha/n"),
        ({"gamma": 2.0}, r"bandwidth = 1/sqrt\(2 gamma\) for a Gaussian kernel: bandwidth=0\.5$"),
        ({"gamma": "scale"}, r"for a Gaussian kernel$"),
        ({"n_components": 30}, r"n_landmarks=30"),
        ({"length_scale": 2.0}, r"bandwidth=2\.0"),
    ],
)
def test_a_parameter_of_another_package_is_answered_with_the_equivalent(estimator, foreign, hint):
    for use in (lambda: estimator(**foreign), lambda: estimator().set_params(**foreign)):
        with pytest.raises(UnknownParameterError, match=hint) as error:
            use()
        assert isinstance(error.value, ParameterError)
        assert isinstance(error.value, TypeError)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_other_unknown_parameters_are_python_s_and_scikit_learn_s_own_errors(estimator):
    with pytest.raises(TypeError, match="unexpected keyword argument 'nothing'"):
        estimator(nothing=1)
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        estimator().set_params(nothing=1)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_signature_is_that_of_the_parameters(estimator):
    shown = inspect.signature(estimator).parameters
    assert sorted(shown) == sorted(estimator().get_params(deep=False))
    assert all(one.kind is not inspect.Parameter.VAR_KEYWORD for one in shown.values())
    made = estimator(bandwidth=3.0)
    assert clone(made).bandwidth == pickle.loads(pickle.dumps(made)).bandwidth == 3.0


def test_the_equivalents_are_equivalent():
    """The formulas of the hints: `ridge = alpha/n` and `bandwidth = 1/sqrt(2 gamma)`."""
    alpha, gamma = 0.3, 0.7
    theirs = KernelRidge(kernel="rbf", alpha=alpha, gamma=gamma).fit(X, Y)
    options = {"kernel": "rbf", "bandwidth": (2 * gamma) ** -0.5, "ridge": alpha / len(X), "fit_intercept": False}
    ours = NystromRidge(**options, n_landmarks=len(X), random_state=0).fit(X, Y)
    assert ours.predict(X) == pytest.approx(theirs.predict(X), rel=1e-8, abs=1e-10)


def test_a_search_over_alpha_is_told_of_ridge():
    search = GridSearchCV(NystromRidge(), {"alpha": [1.0]}, error_score="raise")
    with pytest.raises(UnknownParameterError, match="ridge = alpha/n"):
        search.fit(X, Y)


@pytest.mark.parametrize("bandwidth", ["median", 1.5, "shared"])
def test_rbf_is_another_name_of_gaussian(bandwidth):
    one, other = (
        NystromRidge(kernel, bandwidth=bandwidth, ridge=1e-3, n_landmarks=20, random_state=0).fit(X, Y)
        for kernel in ("rbf", "gaussian")
    )
    assert np.array_equal(one.predict(X), other.predict(X))
    assert one.kernel_ == other.kernel_
