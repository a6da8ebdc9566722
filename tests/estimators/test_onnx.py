"""Predictions as ONNX graphs: the numbers of `predict`, and what has no graph."""

import numpy as np
import pandas as pd
import pytest

from ridgemark import ExactKernelRidge, NystromClassifier, NystromRegressor, NystromRidge
from ridgemark.errors import ParameterError
from ridgemark.kernels import ColumnMap, Cosine, Gaussian, Laplacian, Linear, Matern12, Matern32, Matern52, Mixture

FIXED = {"n_landmarks": 60, "ridge": 1e-4, "random_state": 0}
SOFT = ColumnMap(low=[-2.0] * 3, high=[2.0] * 3, centre=[0.1] * 3, width=[0.0, 1.0, 0.5])
METRIC = np.array([[1.0, 0.3], [0.0, 0.7], [0.2, 0.1]])
KERNELS = {
    "gaussian": Gaussian(1.5),
    "widths": Gaussian([1.0, 2.0, 3.0]),
    "metric": Gaussian(metric=METRIC),
    "matern12": Matern12(2.0),
    "matern32": Matern32(2.0),
    "matern52": Matern52(metric=METRIC),
    "laplacian": Laplacian([3.0, 4.0, 5.0]),
    "composed": 0.3 * Linear(widths=2.7) + Gaussian(1.0) * Matern32(3.0),
    "mixture": Mixture(
        [Gaussian(1.0), Matern52(3.0)], [Laplacian(4.0), Linear()], [0.7, 0.3, 0.2, 0.1], metric=METRIC, columns=SOFT
    ),
}


def rows(n=200, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3)) * 1.5
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2]


def ran(graph, X):
    """Run a graph: by onnxruntime where it is installed, as it rewrites graphs, and otherwise by its definition."""
    try:
        from onnxruntime import InferenceSession
    except ImportError:
        reference = pytest.importorskip("onnx.reference")
        return reference.ReferenceEvaluator(graph).run(None, {"X": X})[0]
    return InferenceSession(graph.SerializeToString()).run(None, {"X": X})[0]


def assert_same(model, X):
    pytest.importorskip("onnx")
    values = ran(model.to_onnx(), X)
    expected = model.predict(X)
    assert values.dtype == np.float64
    assert values.shape == expected.shape
    assert values == pytest.approx(expected, rel=0, abs=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_graph_of_a_kernel_predicts_what_the_model_predicts(kernel):
    X, y = rows()
    assert_same(NystromRidge(KERNELS[kernel], **FIXED).fit(X, y), rows(50, 1)[0])


def test_columns_far_from_zero_lose_no_digits():
    X, y = rows()
    assert_same(NystromRidge(Gaussian(1.5), **FIXED).fit(X + 1e6, y), rows(50, 1)[0] + 1e6)


@pytest.mark.parametrize("loss", ["huber", "poisson", "quantile", "levels"])
def test_losses_predict_on_their_own_scale(loss):
    X, y = rows()
    levels = {"quantiles": [0.9], "loss": "quantile"} if loss == "quantile" else {"loss": loss}
    levels = {"quantiles": [0.2, 0.5, 0.8], "loss": "quantile"} if loss == "levels" else levels
    assert_same(NystromRegressor(**levels, kernel=Gaussian(1.5), **FIXED).fit(X, np.exp(y)), rows(50, 1)[0])


def test_several_targets_and_exact_fits_have_graphs():
    X, y = rows()
    assert_same(NystromRidge(Gaussian(1.5), **FIXED).fit(X, np.column_stack([y, y**2])), X[:20])
    assert_same(ExactKernelRidge(Gaussian(1.5), ridge=1e-4).fit(X, y), X[:20])


@pytest.mark.parametrize(
    ("options", "frame", "said"),
    [
        ({"kernel": Cosine()}, False, "graphs of Gaussian, Matern"),
        ({"kernel": "precomputed"}, False, "graphs of Gaussian, Matern"),
        ({"kernel": Gaussian(1.0), "target_transform": "log"}, False, "target_transform"),
        ({"kernel": Gaussian(1.0)}, True, "columns of a table"),
    ],
)
def test_other_fits_have_no_graph_and_say_why(options, frame, said):
    pytest.importorskip("onnx")
    X, y = rows()
    X = X @ X.T + np.eye(len(X)) if options["kernel"] == "precomputed" else X
    table = pd.DataFrame(X).astype({0: str}).rename(columns=str) if frame else X
    table = table.assign(kind=np.where(y > 0, "u", "v")) if frame else table
    model = NystromRidge(**options, **FIXED).fit(table, np.exp(y))
    with pytest.raises(ParameterError, match=said):
        model.to_onnx()


def test_classes_have_no_graph():
    assert not hasattr(NystromClassifier(), "to_onnx")
