"""What is asked of a fit by a loss, of classes and of numbers: certificates, effects, and which rows drive it."""

from typing import Any

from numpy.typing import NDArray

from ridgemark.certificates import Certificate, audit_loss
from ridgemark.effects import EffectsSummary, average_effects, predicted_effects
from ridgemark.errors import ConvergenceWarning, ParameterError, warn_user
from ridgemark.estimators.cautions import warn_of_edge, warn_of_scales
from ridgemark.estimators.computing import computing, in_range, lazy_on_dask
from ridgemark.estimators.hints import Absent
from ridgemark.estimators.landmark_model import LandmarkModel
from ridgemark.loss_diagnostics import ClassDiagnosis, LossDiagnosis, diagnose_loss
from ridgemark.sampling import separate_generator


class LossModel(LandmarkModel):
    """A model fitted by another loss than squared errors, with Newton's method."""

    _linear_predictor = "the fitted function"  # what messages call the functions at a row
    partial_fit = Absent(
        "the sums of this loss change with the coefficients, so that rows cannot be added; fit all rows again, from a "
        "file where they exceed memory"
    )
    distance_to_exact = Absent("certify(X, y) bounds the distance of this fit from exact")

    @computing
    def diagnose(self, X: Any, y: Any = None, sample_weight: Any = None) -> ClassDiagnosis | LossDiagnosis:
        """Say which rows drive the fit: those far from others, and those whose target or label is unexpected.

        Prints as a table; `.top(k)` gives the k most influential rows, `.to_record()` them for a machine. At most 8,192
        distinct rows are examined, each left out in one Newton step. Leverage and influence of more than two classes
        are those of their mean curvature.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit, as for `fit`.

        Returns
        -------
        ClassDiagnosis, LossDiagnosis
            Of a classifier, and of a regressor.
        """
        sums, model = self._sums("diagnose"), self._model
        labels = None if model.classes is None else model.classes.labels
        passes = self._passes_of_fit(X, y, sample_weight)
        return diagnose_loss(passes, sums, model.loss, model.function.numbers, labels)

    @lazy_on_dask
    def effects(self, X: Any) -> NDArray[Any]:
        """Return what each column does to the prediction at each row, shape (n, d), or (n, d, t) for t functions.

        The effect is the derivative of the prediction with respect to the column; for a column of two values the
        difference between the predictions at these; for a category the difference from its first level. Of classes the
        prediction is `decision_function`, the log-odds; of counts and amounts the mean for an exposure of 1.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        """
        passes, cross_kernel, dual_coef, columns = self._effect_rows(X)
        predicted = self._model.loss, self._model.function.intercept
        values = predicted_effects(passes, cross_kernel, dual_coef, columns, *predicted)
        values = in_range(values, "the effect", self._rescale)
        self._warn_of_unseen(passes.source)
        return self._in_form(values)

    @computing
    def effects_summary(self, X: Any) -> EffectsSummary:
        """Return the average effect of each column on the prediction over rows, with quartiles; prints as a table.

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
        predicted = self._model.loss, self._model.function.intercept
        summary = average_effects(passes, cross_kernel, dual_coef, columns, self._names_of_functions(), predicted)
        self._warn_of_unseen(passes.source)
        return summary

    def _certified(self, X: Any, y: Any, kind: str, sample_weight: Any) -> Certificate:
        """Return the audit of the fit on its rows."""
        sums = self._sums("certify")
        if kind != "audit":
            raise ParameterError(f'the kind of a certificate of {type(self).__name__} must be "audit", got {kind!r}')
        passes, rng = self._passes_of_fit(X, y, sample_weight), separate_generator(self.random_state)
        return audit_loss(passes, sums, self._model.loss, rng=rng, failure_probability=self.failure_probability)

    def _recipe(self):
        recipe = super()._recipe()
        if recipe.criterion == "gcv":
            raise ParameterError('ridge="gcv" is for squared errors; for other losses choose "loo", a number or a list')
        if recipe.certify_with not in (None, "audit"):
            name = type(self).__name__
            raise ParameterError(f'certify_with must be None or "audit" for {name}, got {self.certify_with!r}')
        return recipe

    def _warn_of_fit(self, model, solved, passes):
        """Warn of scales of the columns, of a ridge at the end of its path, and of a descent that was cut short."""
        warn_of_scales(model.function.kernel, passes)
        warn_of_edge(solved.path)
        if not solved.converged:
            warn_user(f"Newton's method ended before it converged; {self._rescale}", ConvergenceWarning)

    def _check_targets(self, targets):
        """Accept any number of targets: it is checked when the loss has them."""

    def _linear(self, X):
        """Return the functions at new rows, on the scale of the loss, shape (n, t)."""
        self._require_fit()
        source = self._rows(X)
        values = in_range(self._values(source), self._linear_predictor, self._rescale)
        self._warn_of_unseen(source)
        return values
