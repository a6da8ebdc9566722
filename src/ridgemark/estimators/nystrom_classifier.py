"""Kernel logistic regression from landmarks, as a scikit-learn classifier."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from ridgemark.certificates import Certificate, audit_classes
from ridgemark.effects import EffectsSummary, average_effects, effect_values
from ridgemark.errors import ConvergenceWarning, DataError, ParameterError, warn_user
from ridgemark.estimators.base import FittedName, in_range
from ridgemark.estimators.cautions import warn_of_edge, warn_of_scales
from ridgemark.estimators.class_labels import as_classes, conformal_sets, label_codes, labels_of, numbers_of, scores_of
from ridgemark.estimators.computing import computing
from ridgemark.estimators.hints import stores_parameters
from ridgemark.estimators.landmark_model import LandmarkModel
from ridgemark.estimators.lazy import lazy_on_dask
from ridgemark.fitted import Targets
from ridgemark.fitting.fit import fit
from ridgemark.fitting.squares import LeftOutPredictors
from ridgemark.loss_diagnostics import ClassDiagnosis, diagnose_classes
from ridgemark.losses import class_loss
from ridgemark.rows import RowSource
from ridgemark.rows.dask import mapped_rows
from ridgemark.rows.labels import Indicators
from ridgemark.rows.open import opened
from ridgemark.sampling import make_generator, separate_generator

_RESCALE = "rescale the columns, or choose a larger ridge"


class NystromClassifier(ClassifierMixin, LandmarkModel):
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

    _smaller_coefficients = "choose a larger ridge"
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
        values = self._log_odds(X)
        return values[:, 0] if values.shape[1] == 1 else values

    @lazy_on_dask
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Return the logarithms of `predict_proba`, exact where a probability is tiny."""
        values = self._log_odds(X)
        return class_loss(len(self.classes_)).log_probabilities(values)

    @lazy_on_dask
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of every class, shape (n, K), in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    @lazy_on_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of every row, shape (n,)."""
        return self._most_probable(self._log_odds(X))

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
            loss, values, passes = class_loss(len(classes.values)), self._log_odds(source), self._passes(source)
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
        sums = self._sums("certify")
        if kind != "audit":
            raise ParameterError(f'the kind of a certificate of classes must be "audit", got {kind!r}')
        passes, loss = self._passes_of_fit(X, y, sample_weight), class_loss(len(self.classes_))
        rng = separate_generator(self.random_state)
        return audit_classes(passes, sums, loss, rng=rng, failure_probability=self.failure_probability)

    @computing
    def diagnose(self, X: Any, y: Any = None, sample_weight: Any = None) -> ClassDiagnosis:
        """Say which rows drive the fit: those far from others, and those whose label is unexpected.

        Prints as a table; `.top(k)` gives the k most influential rows, `.to_record()` them for a machine. At most 8,192
        distinct rows are examined, each left out in one Newton step. Leverage and influence of more than two classes
        are those of their mean curvature.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit, as for `fit`.

        Returns
        -------
        ClassDiagnosis
        """
        sums = self._sums("diagnose")
        passes, loss = self._passes_of_fit(X, y, sample_weight), class_loss(len(self.classes_))
        return diagnose_classes(passes, sums, loss, self.classes_, self._model.function.numbers)

    @lazy_on_dask
    def effects(self, X: Any) -> NDArray[Any]:
        """Return what each column does to the log-odds at each row, shape (n, d), or (n, d, K) for K > 2 classes.

        The effect is the derivative of `decision_function` with respect to the column; for a column of two values the
        difference between the function at these values; for a category the difference from its first level.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        """
        passes, *function = self._effect_rows(X)
        values = in_range(effect_values(passes, *function), "the effect", _RESCALE)
        self._warn_of_unseen(passes.source)
        return values[:, :, 0] if values.shape[2] == 1 else values

    @computing
    def effects_summary(self, X: Any) -> EffectsSummary:
        """Return the average effect of each column on the log-odds over rows, with quartiles; prints as a table.

        Averages are plain ones, without correction for the ridge and without standard errors; see `effects`.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows. The weights of a RowSource count.

        Returns
        -------
        EffectsSummary
        """
        passes, cross_kernel, dual_coef, columns = self._effect_rows(X)
        labels = self.classes_.tolist()[-dual_coef.shape[1] :]  # of two classes the second
        targets = tuple(f"the log-odds of {label!r}" for label in labels)
        summary = average_effects(passes, cross_kernel, dual_coef, columns, targets)
        self._warn_of_unseen(passes.source)
        return summary

    @computing
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of rows predicted right; a RowSource brings its own labels and weights."""
        X, y, sample_weight, _ = opened(X, y, sample_weight)
        rows, labels, weights = self._judged(X, y, sample_weight)
        if y is None and labels is not None:
            labels = labels_of(X, labels[:, 0])
        return super().score(rows, labels, weights)

    def _recipe(self):
        recipe = super()._recipe()
        if recipe.criterion == "gcv":
            raise ParameterError('ridge="gcv" is for squared errors; for classes choose "loo", a number or a list')
        if recipe.certify_with not in (None, "audit"):
            raise ParameterError(f'certify_with must be None or "audit" for classes, got {self.certify_with!r}')
        return recipe

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
        warn_of_scales(model.function.kernel, passes)
        warn_of_edge(solved.path)
        if not solved.converged:
            msg = "Newton's method ended before it converged; choose a larger ridge, or standardise the columns"
            warn_user(msg, ConvergenceWarning)
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

    def _check_targets(self, targets, reset):
        return targets

    def _log_odds(self, X):
        """Return the functions at new rows, shape (n, 1) or (n, K)."""
        self._require_fit()
        source = self._rows(X)
        values = in_range(self._values(source), "the log-odds", _RESCALE)
        self._warn_of_unseen(source)
        return values
