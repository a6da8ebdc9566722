"""Kernel logistic regression from landmarks, as a scikit-learn classifier."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from ridgemark.certificates import Certificate
from ridgemark.errors import DataError
from ridgemark.estimators.class_labels import as_classes, conformal_sets, label_codes, labels_of, numbers_of, scores_of
from ridgemark.estimators.computing import FittedName, computing, lazy_on_dask
from ridgemark.estimators.hints import Absent, stores_parameters
from ridgemark.estimators.loss_model import LossModel
from ridgemark.fitted import Targets
from ridgemark.fitting.fit import fit
from ridgemark.fitting.stages import LeftOutPredictors
from ridgemark.losses import class_loss
from ridgemark.rows import RowSource
from ridgemark.rows.dask import mapped_rows
from ridgemark.rows.labels import Indicators
from ridgemark.rows.open import opened
from ridgemark.sampling import make_generator


class NystromClassifier(ClassifierMixin, LossModel):
    """Kernel logistic regression from landmarks.

    Minimises `sum_i w_i l(y_i, f(x_i)) + scaled_ridge/2 |f|^2` over functions of the landmarks, with the log loss l and
    `scaled_ridge = ridge * sum_i w_i`. Two classes have one function, the log-odds of the second; more have one each,
    which sum to zero, and probabilities by softmax. scikit-learn's `LogisticRegression(C=1/scaled_ridge)` on the
    features of the landmarks has the same solution. Kernel, bandwidth and landmarks are chosen as `NystromRidge`
    chooses them for the indicators of the classes.

    Parameters
    ----------
    kernel, bandwidth, n_landmarks, selection : see NystromRidge
        Tuning uses the squared error on the indicators of the classes.
    ridge : "loo", float or array of floats, default="loo"
        Regularisation lambda: a larger one gives a smoother fit. One number, a list to choose from, or "loo" to search
        ten decades, by the leave-one-out log loss in one Newton step.
    risk_tolerance, failure_probability : see NystromRidge
        Epsilon and rho.
    certify_with : {None, "audit"}, default=None
        "audit" turns `risk_tolerance` into a guarantee: the probabilities are within epsilon times the root mean square
        of their leave-one-out error. With `n_landmarks="auto"` landmarks are doubled until it is met, as `tolerance_`
        says.
    fit_intercept : bool, default=True
        Whether to fit unpenalised constants.
    class_weight : dict, "balanced" or None, default=None
        Factors of the rows' weights by label; "balanced" gives all classes the same total weight.
    effort, categorical_features, device, memory_budget, random_state, progress : see NystromRidge
        Columns of categories, where to compute, bytes for the blocks of a pass, seed of all draws, and whether to show
        progress.

    Attributes
    ----------
    classes_ : array of shape (K,)
        The labels, ascending, without labels whose rows all have weight zero.
    dual_coef_ : array of shape (p, 1) or (p, K)
        Coefficients of the landmarks' kernel values.
    intercept_ : array of shape (1,) or (K,)
        The constants.
    ridge_, scaled_ridge_ : float
        The ridge, and its product with the sum of weights.
    ridge_path_ : LossPath
        The leave-one-out losses of the ridges tried; absent if `ridge` is one number.
    effective_dimension_ : Bracket
        d_eff of the kernel weighted by the curvature of the loss at the solution.
    certificate_ : Certificate
        What `certify_with` measured, or None.
    calibration_ : ClassScores
        The scores from which `predict_set` takes its threshold; `calibration_.guaranteed` says whether coverage is
        proved.
    kernel_, bandwidth_, metric_, tuning_, landmarks_, landmark_indices_, landmark_count_, n_landmarks_, ...
        As for `NystromRidge`, also `feature_importances_`, `encoded_names_`, `tolerance_` and what counts the work.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgemark import NystromClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where((X**2).sum(axis=1) > 1.4, "outside", "inside")
    >>> model = NystromClassifier(bandwidth="median", n_landmarks=50, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.predict([[3.0, 0.0]]).tolist()
    (True, ['outside'])
    """

    _rescale = "rescale the columns, or choose a larger ridge"
    _linear_predictor = "the log-odds"
    to_onnx = Absent("graphs are of predictions of numbers")
    predict_interval = Absent("predict_set(X, coverage) gives the labels that a row may have")
    classes_ = FittedName(lambda model: model.classes.labels)
    calibration_ = FittedName(lambda model: model.classes.calibration)

    @stores_parameters
    def __init__(
        self,
        kernel="auto",
        *,
        bandwidth="auto",
        ridge="loo",
        n_landmarks="auto",
        selection="auto",
        risk_tolerance=0.1,
        failure_probability=0.05,
        certify_with=None,
        fit_intercept=True,
        class_weight=None,
        effort="default",
        categorical_features="from_dtype",
        device="cpu",
        memory_budget=None,
        random_state=None,
        progress=False,
    ):
        """Take the parameters; they are checked by `fit`."""

    @lazy_on_dask
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the log-odds of the second class, shape (n,); of more than two classes the functions, shape (n, K)."""
        return self._in_form(self._linear(X))

    @lazy_on_dask
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of `predict_proba`, exact where a probability is tiny."""
        values = self._linear(X)
        return class_loss(len(self.classes_)).log_probabilities(values)

    @lazy_on_dask
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of every class, shape (n, K), in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    @lazy_on_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of every row, shape (n,)."""
        return self._most_probable(self._linear(X))

    def _most_probable(self, values):
        """Return the labels for log-odds (n, 1), or functions (n, K)."""
        return self.classes_[(values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)]

    @lazy_on_dask
    def predict_set(self, X: Any, coverage: Any = 0.9) -> NDArray[Any]:
        """Return conformal sets of labels, a boolean array of shape (n, K), in the order of `classes_`.

        A set holds the labels whose probability reaches a threshold. A share `coverage` of the calibration rows, each
        left out of the fit, reaches this threshold with the probability of its own label. A set may be empty for a row
        between classes. `calibration_.guaranteed` says whether new rows are covered with this probability for every
        distribution; that needs calibration rows outside the fit (see `calibrate`), since leaving out is not exact for
        this loss.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        coverage : float, default=0.9
            Target share of new rows whose label is in their set.
        """
        return conformal_sets(self.predict_proba(X), self.calibration_, coverage)

    @computing
    def calibrate(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take the threshold of `predict_set` from these rows, which must have had no part in the fit.

        Where so many of them equal rows of the fit that they are not new, `calibration_.guaranteed` is false.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        self._require_fit()
        with self._changing():
            source, classes = self._open(X, y, sample_weight, reset=False)
            loss, values, passes = class_loss(len(classes.values)), self._linear(source), self._passes(source)
            scores = scores_of(loss, values, passes, classes.weights, not self._may_be_of_fit(passes))
            self._model = replace(self._model, classes=replace(classes, calibration=scores))
        return self

    @computing
    def certify(self, X: Any, y: Any = None, kind: str = "audit", sample_weight: Any = None) -> Certificate:
        """Measure how far the fit is from exact kernel logistic regression on its rows.

        The bound is always true up to about 90,000 rows, by one product with the kernel matrix. For more rows it is
        true with probability `1 - failure_probability`, from a sample of rows.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit, as for `fit`; other rows are refused.
        kind : {"audit"}, default="audit"
            The kind of certificate.

        Returns
        -------
        Certificate
            Its `bound` is on the root mean square distance of the probabilities: of the second of two classes, or of
            the vector of all classes; `inputs` has bounds on the log-odds.
        """
        return self._certified(X, y, kind, sample_weight)

    @computing
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of rows predicted right; a RowSource brings its own labels and weights."""
        X, y, sample_weight, _ = opened(X, y, sample_weight)
        rows, labels, weights = self._judged(X, y, sample_weight)
        if y is None and labels is not None:
            labels = labels_of(X, labels[:, 0])
        return super().score(rows, labels, weights)

    def _model_of(self, recipe, passes, classes, random_state):
        """Return the model of the rows of these passes."""
        loss = class_loss(len(classes.values))
        fitted = fit(passes, recipe, make_generator(random_state), loss)
        solved, left_out = fitted.solved, fitted.solved.left_out
        assert isinstance(left_out, LeftOutPredictors)
        model = self._without_residuals(
            fitted, self._form(passes.source, Targets(passes.source.n_targets, False, False))
        )
        scores = scores_of(loss, left_out.predictors, left_out.sample, classes.weights, False)
        self._warn_of_fit(model, solved, passes)
        return replace(model, loss=loss, classes=replace(classes, calibration=scores), cost=passes.cost)

    def _open(self, X, y, sample_weight, reset=True, keep_constant=False, groups=None):
        """Return training rows with indicators of the classes as targets, and the classes."""
        X, y, sample_weight, groups = opened(X, y, sample_weight, groups)
        known = None if reset else self._model.classes
        labels = None
        if not isinstance(X, RowSource) and y is not None:
            labels, y = label_codes(y, known)
        source, _ = super()._open(X, y, sample_weight, reset, keep_constant, groups)
        if source.n_targets != 1:
            raise DataError(f"the labels must be one column, got {source.n_targets} targets")
        if known is not None:
            numbers = numbers_of(known, source) if labels is None else np.arange(len(known.values), dtype=float)
            return mapped_rows(source, Indicators(numbers, known.weights)), known
        passes = self._passes(source)
        numbers, which = np.unique(passes.targets()[:, 0], return_inverse=True)
        totals = np.bincount(which, passes.row_counts(), len(numbers)).astype(float)
        classes = as_classes(labels_of(source, numbers) if labels is None else labels, totals, self.class_weight)
        return mapped_rows(source, Indicators(numbers[totals > 0], classes.weights)), classes

    def _in_form(self, values):
        """Return values of every function in the shape of the log-odds."""
        return values[..., 0] if values.shape[-1] == 1 else values

    def _names_of_functions(self):
        labels = self.classes_.tolist()
        return tuple(f"the log-odds of {label!r}" for label in (labels[1:] if len(labels) == 2 else labels))
