"""Errors of boosting are those of scikit-learn by cross-validation."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

from ridgemark.errors import DataError
from ridgemark.evaluate import boosting


def table(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


def test_the_error_is_that_of_cross_validation():
    X, y = table()
    splits = KFold(5, shuffle=True, random_state=0)
    predicted = cross_val_predict(HistGradientBoostingRegressor(random_state=0), X, y, cv=splits)
    assert boosting(X, y).rms == pytest.approx(np.sqrt(np.mean((y - predicted) ** 2)), rel=1e-12)


def test_text_gaps_and_labels_are_taken():
    X, y = table()
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] ** 2 > 0.5, "far", "near")})
    frame.loc[:20, "a"] = np.nan
    errors = boosting(frame, np.where(y > 1, "high", "low"), n_splits=3)
    assert errors.accuracy > 0.7 and errors.rms is None
    assert "right" in str(errors)


def test_rows_of_a_group_stay_together():
    rng = np.random.default_rng(1)
    who = rng.integers(20, size=400)
    y = rng.normal(size=20)[who]
    X = who[:, None] + rng.normal(0, 0.01, size=(400, 1))
    assert boosting(X, y, groups=who).explained < 0 < boosting(X, y).explained


def test_a_target_and_some_rows_are_needed():
    X, y = table(10)
    with pytest.raises(DataError, match="needs a target"):
        boosting(X)
    with pytest.raises(DataError, match="20 rows or more"):
        boosting(X, y)
