"""What notebooks show of a model."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone

from ridgemark import NystromClassifier, NystromRidge
from ridgemark.kernels import Gaussian


@pytest.mark.parametrize("kind", [NystromRidge, NystromClassifier])
def test_a_fitted_model_shows_what_its_fit_found(kind):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 2)), columns=["a<b", "c"])
    model = kind(Gaussian(2.0), n_landmarks=20, random_state=0).fit(X, X["c"] > 0)
    shown = model._repr_mimebundle_()["text/html"]
    assert "sk-top-container" in shown
    for words in ("<th", "lambda", "20 by ", "&#x27;c&#x27; "):
        assert words in shown
    assert "a<b" not in shown[shown.index("<table><tr>") :]
    assert "20 by " not in clone(model)._repr_mimebundle_()["text/html"]
    with sklearn.config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()
