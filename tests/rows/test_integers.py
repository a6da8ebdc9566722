from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge, leverage_scores
from ridgemark.errors import DataError

LARGE = 2**53 + 1
Y = np.arange(30.0)


def with_large(value: int = LARGE, dtype: Any = np.int64) -> np.ndarray:
    X = np.random.default_rng(0).integers(0, 99, size=(30, 2)).astype(dtype)
    X[7, 1] = value
    return X


TABLES: dict[str, Any] = {
    "signed": with_large(),
    "negative": with_large(-LARGE),
    "unsigned": with_large(2**64 - 1, np.uint64),
    "objects": with_large(2**70, object),
    "list": with_large().tolist(),
    "sparse": sparse.csr_matrix(with_large()),
    "pandas": pd.DataFrame(with_large()).assign(text=0.5),
    "nullable": pd.DataFrame(with_large()).astype("Int64"),
    "polars": lambda: pytest.importorskip("polars").DataFrame({"a": with_large()[:, 1], "b": Y}),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "estimator",
    [NystromRidge(bandwidth="median", ridge=1e-3), ExactKernelRidge(bandwidth="median", ridge=1e-3), NystromFeatures()],
)
def test_estimators_refuse_integers_that_floats_cannot_hold(name: str, estimator: Any) -> None:
    table = TABLES[name]() if callable(TABLES[name]) else TABLES[name]
    with pytest.raises(DataError, match=r"is the integer -?\d+, beyond 2\*\*53"):
        estimator.fit(table, Y)


def test_large_integers_are_refused_in_targets_weights_and_rows_to_predict() -> None:
    X, large = np.arange(60.0).reshape(30, 2), np.arange(30) + 2**60
    model = NystromRidge(bandwidth="median", ridge=1e-3).fit(X, Y)
    for call in (
        lambda: model.fit(X, large),
        lambda: model.fit(X, large.tolist()),
        lambda: model.fit(X, pd.Series(large)),
        lambda: model.fit(X, Y, sample_weight=large),
        lambda: model.predict(with_large()),
        lambda: leverage_scores(X, ridge=1e-3, sample_weight=large),
    ):
        with pytest.raises(DataError, match=r"beyond 2\*\*53"):
            call()


def test_integers_that_floats_hold_are_fitted_as_floats() -> None:
    X = with_large(2**53)
    model = NystromRidge("linear", ridge=1e-3, n_landmarks=5, random_state=0)
    assert np.array_equal(model.fit(X, Y).predict(X), model.fit(X.astype(float), Y).predict(X.astype(float)))
