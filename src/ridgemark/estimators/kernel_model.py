"""Public names of every model that predicts with a kernel, and its predictions."""

from typing import Any

import numpy as np

from ridgemark.estimators.answers import FittedName, in_form, in_range
from ridgemark.estimators.base import LandmarkEstimator
from ridgemark.estimators.onnx_graph import onnx_model
from ridgemark.kernels import Mixture


class KernelModel(LandmarkEstimator):
    """What models of functions `f(x) = k(x) dual_coef + intercept` have in common."""

    kernel_ = FittedName(lambda model: model.function.kernel)
    bandwidth_ = FittedName(lambda model: bandwidth_of(model.function.kernel))
    metric_ = FittedName(lambda model: getattr(model.function.kernel, "metric", None))
    tuning_ = FittedName(lambda model: model.tuning, optional=True)
    dual_coef_ = FittedName(lambda model: in_form(model, model.function.dual_coef))
    intercept_ = FittedName(lambda model: in_form(model, model.function.intercept))

    def to_onnx(self) -> Any:
        """Return `predict` as an ONNX model in double precision, for runtimes without Python (extra `onnx`).

        Its input "X" has shape (n, d), its output "prediction" that of `predict`. It is for fits to arrays of numbers
        with Gaussian, Matern, Laplacian or linear kernels, and mixtures, sums, products and multiples of them, such as
        the default kernel; other fits are refused. Predictions agree up to rounding, about 1e-16 times
        `abs(dual_coef_).sum()`.
        """
        self._require_fit()
        return onnx_model(self)

    def _values(self, source):
        """Return the fitted function at rows of features, `f(x) = k(x) dual_coef + intercept`."""
        return self._model.function.values(self._passes(source))

    def _predictions(self, values, source):
        """Return predictions in the shape and precision of the targets, or say which exceeds the range."""
        self._warn_of_unseen(source)
        if self._model.schema.targets.single and source.dtype == np.float32:
            values = values.astype(np.float32)
        return in_form(self._model, in_range(values, "the prediction", "rescale the columns or the targets"))


def bandwidth_of(kernel):
    """Return the kernel's bandwidth, of a mixture that of its radial parts; None for one without, or with a metric."""
    if getattr(kernel, "metric", None) is not None or (isinstance(kernel, Mixture) and not len(kernel.radial)):
        return None
    return getattr(kernel, "bandwidth", None)
