"""Public names of every model that predicts with a kernel, and its predictions."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.estimators.base import LandmarkEstimator
from ridgemark.estimators.computing import FittedName, in_form, in_range
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

    def report(self, path: str | PathLike[str], X: Any = None, y: Any = None, *, overwrite: bool = False) -> Path:
        """Write an HTML page about the fit, the one of `ridgemark fit --report`; needs the extra `report`.

        The page has one file, which fetches nothing and runs nothing: how good the fit is and beside what, what to
        mistrust, what matters, intervals, rows, and how it was fitted. What the model does not know is left out: a
        loaded one has no leave-one-out residuals of all rows (unless saved with `sums=True`) and no times, a fit of
        classes no errors of single classes without rows, and `ExactKernelRidge` only errors on rows that are given.

        Parameters
        ----------
        path : str or path
            The file; its folder must exist.
        X : array, sparse matrix, DataFrame or RowSource, optional
            Rows to measure errors on: others than those of the fit, or all rows of the fit, of which each is then left
            out. A RowSource has its target, and exposures.
        y : array of shape (n,) or (n, n_targets), optional
            Their targets or labels.
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Returns
        -------
        path : Path
        """
        from ridgemark.estimators.measuring.reporting import write_report  # which imports the estimators

        self._require_fit()
        return write_report(self, path, X, y, overwrite)

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
