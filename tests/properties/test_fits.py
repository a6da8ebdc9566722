"""Any fit ends in a finite model or in an error meant for the user."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ridgemark import NystromRidge
from ridgemark.errors import RidgemarkError, RidgemarkWarning

KERNELS = ["gaussian", "laplacian", "matern12", "matern32", "matern52", "linear", "polynomial", "cosine", "bernoulli"]
SELECTIONS = ["uniform", "diagonal", "leverage", "recursive", "bless", "rpcholesky", "kmeans", "rank_leverage"]

scales = st.sampled_from([1e-150, 1e-30, 1e-3, 1.0, 1e3, 1e30, 1e150])


@st.composite
def problems(draw):
    """Rows with repeats, constant columns and any scale; targets of any scale, perhaps constant; perhaps weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kernel = draw(st.sampled_from(KERNELS))
    n, d = draw(st.integers(1, 60)), 1 if kernel == "bernoulli" else draw(st.integers(1, 4))
    X = rng.standard_t(draw(st.sampled_from([1.0, 30.0])), size=(n, d))
    if draw(st.booleans()):
        X = X[rng.integers(0, n, n)]
    if draw(st.booleans()):
        X[:, rng.integers(d)] = rng.normal()
    if draw(st.booleans()):
        X += 1e-9 * rng.normal(size=(n, d))
    X = X * draw(scales) if draw(st.booleans()) else X * np.array([draw(scales) for _ in range(d)])
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    X = np.clip(X, -1e38, 1e38).astype(dtype) if dtype == np.float32 else X
    y = rng.normal(size=n if draw(st.booleans()) else (n, 2)) * draw(scales)
    y = np.full_like(y, y.flat[0]) if draw(st.integers(0, 5)) == 0 else y
    weights = draw(st.sampled_from([None, rng.integers(0, 3, n).astype(float), rng.uniform(0, 1, n)]))
    options = {
        "kernel": kernel,
        "selection": draw(st.sampled_from(SELECTIONS)),
        "ridge": draw(st.sampled_from(["loo", "gcv", 1e-14, 1e-8, 1e-3, 10.0])),
        "n_landmarks": draw(st.sampled_from(["auto", 1, 5, 30])),
        "fit_intercept": draw(st.booleans()),
    }
    return X, y, weights, options


def _check(problem):
    X, y, weights, options = problem
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RidgemarkWarning)
        try:
            model = NystromRidge(**options, random_state=0).fit(X, y, sample_weight=weights)
            predictions = model.predict(X)
        except RidgemarkError:
            return
    assert np.isfinite(predictions).all()
    assert predictions.shape == y.shape


@given(problems())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_fit_ends_in_finite_predictions_or_words(problem):
    _check(problem)


@pytest.mark.slow
@given(problems())
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
def test_two_thousand_fits_end_in_finite_predictions_or_words(problem):
    _check(problem)
