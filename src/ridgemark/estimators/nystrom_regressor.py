"""Kernel regression from landmarks by other losses than squared errors, as a scikit-learn regressor."""

from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d

from ridgemark.certificates import Certificate
from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators.computing import FittedName, computing, in_form, in_range, lazy_on_dask
from ridgemark.estimators.hints import stores_parameters
from ridgemark.estimators.judged import exposed, judged_rows, losses_of
from ridgemark.estimators.loss_model import LossModel
from ridgemark.fitted import Targets
from ridgemark.fitting.fit import fit
from ridgemark.fitting.stages import LeftOutPredictors
from ridgemark.intervals.of_loss import loss_intervals
from ridgemark.loss_diagnostics import LossDiagnosis
from ridgemark.losses import make_loss
from ridgemark.rows import is_dask
from ridgemark.rows.dask import mapped_rows
from ridgemark.rows.rates import Rates
from ridgemark.sampling import make_generator


class NystromRegressor(RegressorMixin, LossModel):
    """Kernel regression from landmarks by a loss: robust, for counts, for positive amounts, or for quantiles.

    Minimises `sum_i w_i l(y_i, f(x_i)) + scaled_ridge/2 |f|^2` over functions of the landmarks, with
    `scaled_ridge = ridge * sum_i w_i`. Kernel, bandwidth and landmarks are chosen as `NystromRidge` chooses them for
    the response of the loss: `log(y + 1/2)` for counts, `log y` for amounts, and otherwise y, with targets far from a
    first fit drawn nearer.

    Parameters
    ----------
    loss : {"huber", "poisson", "gamma", "quantile"} or Loss, default="huber"
        "huber" for targets with outliers, "poisson" for counts and "gamma" for positive amounts (both with a
        logarithmic link), "quantile" for the median or other quantiles; or an object of `ridgemark.losses`.
    quantiles : list of float, optional
        Levels of loss="quantile", ascending; without them one median is fitted, and predictions have the shape (n,).
    kernel, bandwidth, n_landmarks, selection : see NystromRidge
        Tuning uses the squared error on the response of the loss.
    ridge : "loo", float or array of floats, default="loo"
        Regularisation lambda: a larger one gives a smoother fit. One number, a list to choose from, or "loo" to search
        ten decades, by the loss of rows left out in one Newton step. Its unit is that of the loss over that of `f^2`.
    risk_tolerance, failure_probability : see NystromRidge
        Epsilon and rho.
    certify_with : {None, "audit"}, default=None
        "audit" turns `risk_tolerance` into a guarantee: the fit loses at most this share of what the exact one gains.
        With `n_landmarks="auto"` landmarks are doubled until it is met, as `tolerance_` says.
    fit_intercept : bool, default=True
        Whether to fit unpenalised constants.
    effort, categorical_features, device, memory_budget, random_state, progress : see NystromRidge
        Columns of categories, where to compute, bytes for the blocks of a pass, seed of all draws, and whether to show
        progress.

    Attributes
    ----------
    loss_ : Loss
        The loss with what the targets decided: `delta` of "huber", `width` and `levels` of "quantile".
    dual_coef_ : array of shape (p,) or (p, n_quantiles)
        Coefficients of the landmarks' kernel values.
    intercept_ : float or array of shape (n_quantiles,)
        The constants.
    ridge_, scaled_ridge_ : float
        The ridge, and its product with the sum of weights.
    ridge_path_ : LossPath
        The losses of rows left out at the ridges tried; absent if `ridge` is one number.
    effective_dimension_ : Bracket
        d_eff of the kernel weighted by the curvature of the loss at the solution.
    certificate_ : Certificate
        What `certify_with` measured, or None.
    calibration_ : LeftOutTargets
        Rows predicted without them, from which intervals are made, and their losses.
    kernel_, bandwidth_, metric_, tuning_, landmarks_, landmark_indices_, landmark_count_, n_landmarks_, ...
        As for `NystromRidge`, also `feature_importances_`, `encoded_names_`, `tolerance_` and what counts the work.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgemark import NystromRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 1))
    >>> counts = rng.poisson(np.exp(np.sin(2 * X[:, 0]) + 1))
    >>> model = NystromRegressor("poisson", bandwidth="median", n_landmarks=40, random_state=0).fit(X, counts)
    >>> bool(model.score(X, counts) > 0.4), bool((model.predict(X) > 0).all())
    (True, True)
    """

    _rescale = "rescale the columns or the targets, or choose a larger ridge"
    _takes_exposure = True
    loss_ = FittedName(lambda model: model.loss)
    calibration_ = FittedName(lambda model: model.judged, optional=True)

    @stores_parameters
    def __init__(
        self,
        loss="huber",
        *,
        quantiles=None,
        kernel="auto",
        bandwidth="auto",
        ridge="loo",
        n_landmarks="auto",
        selection="auto",
        risk_tolerance=0.1,
        failure_probability=0.05,
        certify_with=None,
        fit_intercept=True,
        effort="default",
        categorical_features="from_dtype",
        device="cpu",
        memory_budget=None,
        random_state=None,
        progress=False,
    ):
        """Take the parameters; they are checked by `fit`."""

    @computing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        checkpoint: Any = None,
        *,
        exposure: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the model to rows and their targets.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, n_features), Arrow stream, or RowSource
            The rows, also Dask collections. A RowSource has its own weights, targets and exposure.
        y : array of shape (n,), or str
            The targets: not negative for "poisson", positive for "gamma".
        sample_weight : array of shape (n,), optional
            Relative weights: a weight of 2 counts the row twice, a weight of zero leaves it out.
        checkpoint : path, optional
            File that keeps what the fit has computed; see `NystromRidge.fit`.
        exposure : array of shape (n,), optional
            Of counts and amounts: how long or how much each row was exposed. The mean is the exposure times
            `exp(f(x))`. Counts are fitted as rates y/exposure with the exposure as weight.
        groups : array of shape (n,), optional
            The label of each row's group, whose rows leave together; see `NystromRidge.fit`.

        Returns
        -------
        self
        """
        if exposure is not None:
            X, y, sample_weight, groups = *exposed(X, y, sample_weight, exposure, groups), None
        return super().fit(X, y, sample_weight, checkpoint, groups=groups)

    @lazy_on_dask
    def predict(self, X: Any, exposure: Any = None) -> NDArray[Any]:
        """Return predictions, shape (n,), or (n, n_quantiles) where `quantiles` was a list: columns never cross.

        Means for counts and amounts, times the exposure where it is given or the rows of a source have one.
        """
        values = self._model_loss().predicted(self._linear(X))
        if (factor := self._exposure_of(X, exposure)) is not None:
            values = values * factor[:, None]
        return self._in_form(in_range(values, "the prediction", self._rescale))

    @lazy_on_dask
    def predict_interval(self, X: Any, coverage: float = 0.9, exposure: Any = None) -> NDArray[Any]:
        """Return conformal intervals for new observations, shape (n, 2): lower and upper ends.

        Quantiles: the two fitted levels nearest the coverage, moved by the distance that covers the calibration rows.
        Other losses: the prediction plus quantiles of residuals, in units of the spread that the loss implies.
        Residuals are those of rows left out in one Newton step, so `calibration_.guaranteed` is false until `calibrate`
        is given rows that had no part in the fit.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        coverage : float, default=0.9
            Target share of new observations inside.
        exposure : array of shape (n,), optional
            Of amounts; after a fit of counts with exposures there is no interval.
        """
        self._require_fit()
        loss, judged = self._model_loss(), self._model.judged
        if judged is None:
            raise DataError("there are no rows to make intervals from; call calibrate(X, y)")
        if judged.of_rates and loss.weighs_exposure:
            raise DataError(
                "there are no intervals of counts with exposures; calibrate(X, y) with rows of equal exposure"
            )
        factor = self._exposure_of(X, exposure)
        predictor = self._linear(X)
        about = judged.targets, judged.weights, judged.predictors
        ends = loss_intervals(loss, predictor, *about, coverage, judged.n_groups)
        return in_range(ends if factor is None else ends * factor[:, None], "the interval", self._rescale)

    @computing
    def calibrate(self, X: Any, y: Any = None, sample_weight: Any = None, *, exposure: Any = None) -> Self:
        """Take the residuals of intervals from these rows, which must have had no part in the fit.

        Parameters
        ----------
        X, y, sample_weight, exposure
            As for `fit`.

        Returns
        -------
        self
        """
        self._require_fit()
        with self._changing():
            source, _ = self._open(*exposed(X, y, sample_weight, exposure), reset=False)
            passes = self._passes(source)
            new = not self._may_be_of_fit(passes)
            everything = np.arange(source.n_rows)
            judged = judged_rows(self._model_loss(), self._values(source), passes, everything, new, self.random_state)
            self._model = replace(self._model, judged=judged)
        return self

    @computing
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, *, exposure: Any = None) -> float:
        """Return the share of the loss of the best constant that the predictions save: D^2; the mean over quantiles.

        For counts and amounts this is the deviance explained, as scikit-learn's `d2_tweedie_score` has it, for
        quantiles its `d2_pinball_score`.
        """
        self._require_fit()
        source, _ = self._open(*exposed(X, y, sample_weight, exposure), reset=False)
        passes, loss = self._passes(source), self._model_loss()
        targets, weights = passes.targets(), passes.row_counts()
        lost, null = losses_of(loss, targets, weights, self._values(source))
        return float(np.mean(np.where(null > 0, 1.0 - lost / np.where(null > 0, null, 1.0), 0.0)))

    @computing
    def certify(
        self, X: Any, y: Any = None, kind: str = "audit", sample_weight: Any = None, *, exposure: Any = None
    ) -> Certificate:
        """Bound how much of the achievable gain the fit loses to exact kernel regression by its loss, on its rows.

        Always true up to about 90,000 rows, by one product with the kernel matrix for each function; for more rows with
        probability `1 - failure_probability`, from a sample of rows.

        Parameters
        ----------
        X, y, sample_weight, exposure
            The rows of the fit, as for `fit`; other rows are refused.
        kind : {"audit"}, default="audit"
            The kind of certificate.

        Returns
        -------
        Certificate
            Its `bound` is the share of the gain over the best constant that is lost at most; `inputs` has the duality
            gap and bounds on distances.
        """
        X, y, sample_weight = exposed(X, y, sample_weight, exposure)
        return self._certified(X, y, kind, sample_weight)

    @computing
    def diagnose(self, X: Any, y: Any = None, sample_weight: Any = None, *, exposure: Any = None) -> LossDiagnosis:
        """Say which rows drive the fit, as `NystromClassifier.diagnose` does; `exposure` is as for `fit`."""
        diagnosis: Any = super().diagnose(*exposed(X, y, sample_weight, exposure))
        return diagnosis

    def _recipe(self):
        recipe = super()._recipe()
        make_loss(self.loss, self.quantiles)
        return recipe

    def _model_of(self, recipe, passes, form, random_state):
        """Return the model of the rows of these passes."""
        passes.require_memory()
        loss = make_loss(self.loss, self.quantiles).bound(passes.targets(), passes.row_counts())
        fitted = fit(passes, recipe, make_generator(random_state), loss)
        solved, left_out = fitted.solved, fitted.solved.left_out
        assert isinstance(left_out, LeftOutPredictors)
        model = self._without_residuals(fitted, form)
        rows, function = left_out.predictors[left_out.group], model.function
        if recipe.fit_intercept:
            targets, weights = passes.targets()[left_out.rows], passes.row_counts()[left_out.rows]
            shift = solved.loss.shift(targets, weights, rows)
            model = replace(model, function=replace(function, intercept=function.intercept + shift))
            rows = rows + shift
        judged = judged_rows(solved.loss, rows, passes, left_out.rows, False, random_state)
        if judged.null_loss.max() > 0:
            self._warn_of_fit(model, solved, passes)
        return replace(model, loss=solved.loss, judged=judged, cost=fitted.rows.cost)

    def _open(self, X, y, sample_weight, reset=True, keep_constant=False, groups=None):
        """Return training rows with one target, a rate where there are exposures, and their form."""
        if getattr(y, "ndim", 1) == 2 and not is_dask(y):
            if y.shape[1] != 1:
                raise self._several(y.shape[1])
            y = column_or_1d(y, warn=True)
        source, form = super()._open(X, y, sample_weight, reset, keep_constant, groups)
        loss = make_loss(self.loss, self.quantiles) if reset else self._model_loss()
        if getattr(source, "has_exposure", False):
            source = mapped_rows(source, Rates(loss))
            source.of_rates = True
        if source.n_targets != 1:
            raise self._several(source.n_targets)
        several = self.quantiles is not None if reset else not self._model.schema.targets.flat
        targets = Targets(len(loss.parts()), not several, form.targets.single)
        return source, replace(form, targets=targets)

    def _several(self, count):
        """Return the error for several targets."""
        return DataError(f"{type(self).__name__} fits one target, got {count}; fit one model for each")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        with suppress(ParameterError):  # fit says what is wrong with the loss
            tags.target_tags.positive_only = make_loss(self.loss).positive
        return tags

    def _model_loss(self):
        """Return the loss of the fit."""
        self._require_fit()
        return self._model.loss

    def _in_form(self, values):
        """Return values of every function in the shape of a prediction."""
        return in_form(self._model, values)

    def _names_of_functions(self):
        levels = self._model.loss.levels
        return tuple(f"the {level:g} quantile" for level in levels) if len(levels) > 1 else ()

    def _exposure_of(self, X, exposure):
        """Return the exposure of every row, given or of a source; None where there is none."""
        if exposure is None and getattr(X, "has_exposure", False):
            exposure = self._passes(X).targets()[:, -1]
        if exposure is None:
            return None
        values = np.asarray(exposure, dtype=float)
        self._model_loss().with_exposure(np.ones((1, 1)), np.ones(1), np.ones(1))  # refused where there is no rate
        if values.ndim != 1 or not ((values > 0) & np.isfinite(values)).all():
            raise DataError("exposure must be an array of one positive number for each row")
        return values
