"""What is asked of a fit of numbers: predictions, intervals, how far it is from exact, effects, which rows drive it."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin

from ridgemark.certificates import Certificate, certify, distance_at
from ridgemark.diagnostics import Diagnosis, diagnose
from ridgemark.effects import EffectsSummary, effect_deviations, effect_values, summarise_effects, summary_of
from ridgemark.errors import DataError
from ridgemark.estimators.calibration import repeats_and_columns, rows_among, with_calibration
from ridgemark.estimators.computing import computing, in_form, in_range, lazy_on_dask
from ridgemark.estimators.landmark_model import LandmarkModel
from ridgemark.estimators.named_sets import column_of, labels_of_sets, ratios_of
from ridgemark.estimators.own_units import effects_in_own_units
from ridgemark.fitted import LeftOutRows
from ridgemark.intervals import interval_ends, standard_deviations
from ridgemark.losses import loss_sums, same_rows
from ridgemark.path import leave_one_out
from ridgemark.sampling import separate_generator

_RESCALE = "rescale the kernel, the weights or the targets, or choose a larger ridge"


class Regressor(MultiOutputMixin, RegressorMixin):
    """scikit-learn's part of a regressor, to stand before a `LandmarkEstimator` among its bases."""

    @computing
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions; a RowSource brings its own targets and weights."""
        return super().score(*self._judged(X, y, sample_weight))


class RegressionModel(LandmarkModel):
    """What is asked of a fit of numbers."""

    @lazy_on_dask
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the fitted function at new rows, shape (n,) or (n, n_targets).

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        return_std : bool, default=False
            Whether to return, second, the standard deviation of the function at each row, in the same shape: an
            approximation that grows with the distance from landmarks and rows. It does not include the noise of a new
            observation; `predict_interval` does.
        """
        self._require_fit()
        source = self._rows(X)
        mapped, transform = self._values(source), self._model.transform
        values = self._predictions(mapped if transform is None else transform.predicted(mapped), source)
        if not return_std:
            return values
        sums = self._sums("a standard deviation", compact=True)
        if self.kernel_.pairwise:
            raise DataError("a standard deviation needs k(x, x), which rows of a precomputed kernel do not hold")
        spread = standard_deviations(self._passes(source), sums)
        spread = (spread if transform is None else transform.slope(mapped) * spread).astype(values.dtype, copy=False)
        return values, in_form(self._model, in_range(spread, "the standard deviation", _RESCALE))

    @lazy_on_dask
    def predict_interval(
        self, X: Any, coverage: Any = 0.9, adaptive: bool = True, *, by: Any = None, density_ratio: Any = None
    ) -> NDArray[Any]:
        """Return intervals for new observations by the jackknife+, shape (n, 2) or (n, 2, n_targets): lower, upper.

        Intervals are computed from the leave-one-out residuals of at most 4,096 calibration rows, without a refit.
        Where the ridge was given, the first call computes these residuals. After a fit with groups they are intervals
        for rows of new groups: residuals are those of rows left out with their group, and every group counts equally.
        `calibration_.guaranteed` says whether coverage of at least `1 - 2 (1 - coverage)` is proved (the guide shows
        how to get this guarantee); in practice coverage is near the target in both cases.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        coverage : float or list of k floats, default=0.9
            Target coverage: the share of new observations inside. A list gives an array of shape (n, 2, k), or
            (n, 2, k, n_targets).
        adaptive : bool, default=True
            Whether the width follows the noise, estimated as a function of x from the same residuals, and grows away
            from the rows (not with a precomputed kernel, whose rows do not hold k(x, x)); otherwise intervals have
            about the same width everywhere, and take several times longer.
        by : array of shape (n,), or str, optional
            The label of each row's set, or the name of a column of X: coverage then holds within each named set of rows
            (Mondrian). `calibrate` must have had labels too. A set with too few calibration rows for the coverage, or
            none, gets the interval of all rows, with a warning.
        density_ratio : array of shape (n,), optional
            Density of the new rows over that of the calibration rows, at each row, in the unit of the ratios given to
            `calibrate`: for rows from another population. An end is infinite where the ratios give no finite one.
        """
        sums, known = self._sums("predict_interval", compact=True), self._model.calibrated
        if known is None:
            raise DataError(
                "there are no leave-one-out residuals to make intervals from; call calibrate(X, y) with training rows"
            )
        several = isinstance(coverage, list | tuple | np.ndarray) and np.ndim(coverage) == 1 and len(coverage)
        X, by = column_of(X, by, getattr(self, "feature_names_in_", None))
        source, asked = self._rows(X), coverage if several else [coverage]
        labels, ratios = labels_of_sets(by, source.n_rows), ratios_of(density_ratio, source.n_rows)
        ends = interval_ends(self._passes(source), sums, known, asked, adaptive, labels, ratios)
        ends = ends if ratios is not None else in_range(ends, "the interval", _RESCALE)
        self._warn_of_unseen(source)
        ends = ends if self._model.transform is None else self._model.transform.inverse(ends)
        return in_form(self._model, ends if several else ends[:, :, 0])

    @computing
    def calibrate(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        by: Any = None,
        density_ratio: Any = None,
    ) -> Self:
        """Compute leave-one-out residuals for intervals and `diagnose`, in two passes over the rows of the fit.

        A fit with a given ridge has residuals of its calibration rows only, and a model after `partial_fit` has none.
        Give all rows of the fit, or all rows that `partial_fit` added to those from which the landmarks were chosen;
        other rows are refused. In the second case, if the ridge was given, the rows had no part in any choice,
        and `calibration_.guaranteed` is true.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for `fit`. Groups may be given where the fit had none, but not the other way round.
        by : array of shape (n,), or str, optional
            The label of each row's set, or the name of a column of X, which need not be a feature, for coverage within
            each set; see `predict_interval`.
        density_ratio : array of shape (n,), optional
            Density of the rows to be predicted over that of these rows, at each of these; see `predict_interval`.
            Sample weights are not used for it.

        Returns
        -------
        self
        """
        self._require_fit()
        with self._changing():
            X, by = column_of(X, by, getattr(self, "feature_names_in_", None))
            self._model = self._calibrated(X, y, sample_weight, groups, by, density_ratio)
        return self

    @computing
    def certify(self, X: Any, y: Any = None, kind: str = "audit", sample_weight: Any = None) -> Certificate:
        """Measure how far the fit is from exact kernel ridge regression on its rows.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit, as for `fit`; other rows are refused.
        kind : {"audit", "operator", "trace"}, default="audit"
            "audit" bounds the distance for these targets: always true up to about 90,000 rows, by one product with the
            kernel matrix; for more rows true with probability `1 - failure_probability`, from a sample of rows.
            "operator" holds for every signal and bounds a factor on the risk, with the same probability. "trace" is
            `certificate_`; it has no extra cost and reads no rows.

        Returns
        -------
        Certificate
            `claim` in one sentence, `bound` in units of y, `certainty`, `risk_factor`, `inputs`, `cost`.
        """
        sums = self._sums("certify")
        passes = self._passes_of_fit(X, y, sample_weight)
        landmarks, rng = rows_among(self._model, passes), separate_generator(self.random_state)
        return certify(kind, passes, sums, landmarks, self.failure_probability, rng)

    @computing
    def distance_to_exact(
        self, X: Any, certificate: Certificate, X_fit: Any, y_fit: Any = None, sample_weight: Any = None
    ) -> NDArray[Any]:
        """Bound the distance of predictions at new rows from those of exact kernel ridge regression.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows at which to bound the distance.
        certificate : Certificate
            The fit's audit, from `certify`; the bounds are as certain as this audit.
        X_fit, y_fit, sample_weight
            The rows of the fit.

        Returns
        -------
        bounds : array of shape (n,) or (n, n_targets)
            In units of y.
        """
        sums = self._sums("distance_to_exact")
        points = self._passes(self._rows(X))
        training = self._passes_of_fit(X_fit, y_fit, sample_weight)
        bounds = distance_at(points, training, sums, certificate, rows_among(self._model, training))
        self._warn_of_unseen(points.source)
        return in_form(self._model, bounds)

    @lazy_on_dask
    def effects(self, X: Any = None, return_std: bool = False) -> Any:
        """Return what each column does to the prediction at each row, shape (n, d) or (n, d, n_targets).

        The effect is the derivative of the prediction with respect to the column, in units of y per unit of the column;
        for a column of two values the prediction at the higher value minus that at the lower. For a category there is
        one effect for each level but the first, the difference from it; for a date the derivative by elapsed time. A
        column of a table that became no feature has no effect. `effects_summary` names the effects, in the same order.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource, optional
            The rows; by default the calibration rows, `calibration_.rows`: all rows of the fit up to 4,096.
        return_std : bool, default=False
            Whether to return, second, standard errors without bias: how much the noise of the targets moves the effect,
            but not how much the ridge shrinks it. The noise may differ from row to row: its size is that of the
            leave-one-out residuals of the calibration rows; without these it is assumed to be the same everywhere. The
            standard errors take as long as d times `predict(return_std=True)`.
        """
        passes, cross_kernel, dual_coef, columns = self._effect_rows(X)
        values = self._effects_at(passes, cross_kernel, dual_coef, columns)
        values = in_form(self._model, in_range(values, "the effect", _RESCALE))
        self._warn_of_unseen(passes.source)
        if not return_std:
            return values
        sums, known = self._sums("a standard error of effects", compact=True), self._model.calibrated
        errors = effect_deviations(passes, sums, known, columns)
        if self._model.transform is not None:
            errors = errors * self._model.transform.slope(self._values(passes.source))[:, None]
        return values, in_form(self._model, in_range(errors, "the standard error", _RESCALE))

    @computing
    def effects_summary(self, X: Any = None) -> EffectsSummary:
        """Return the average effect of each column over rows, with standard errors and quartiles; prints as a table.

        Averages are corrected for the bias of the ridge, and their standard errors hold for the population that the
        rows are a sample of; after `target_transform` they are plain ones. See `effects` for the effect of a column.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource, optional
            The rows; by default the calibration rows. The weights of a RowSource count.

        Returns
        -------
        EffectsSummary
        """
        passes, cross_kernel, dual_coef, columns = self._effect_rows(X)
        if self._model.transform is not None:
            values = self._effects_at(passes, cross_kernel, dual_coef, columns)
            return summary_of(values, passes.row_counts(), columns)
        sums = self._sums("effects_summary", compact=True)
        summary = summarise_effects(passes, sums, self._model.calibrated, columns)
        self._warn_of_unseen(passes.source)
        return summary

    @np.errstate(over="ignore", invalid="ignore")
    def diagnose(self) -> Diagnosis:
        """Say what state the fit is in and which rows drive it.

        Prints as a table; `.top(k)` gives the k most influential rows, `.to_record()` all numbers for a machine.

        Returns
        -------
        Diagnosis
        """
        sums, model = self._sums("diagnose"), self._model
        if model.left_out is None:
            raise DataError(
                "there are no leave-one-out residuals to diagnose; call calibrate(X, y) with the rows of the fit"
            )
        names, left_out = model.schema.encoded_names, model.left_out
        constant = tuple(names[j] for j in model.rows.constant_columns)
        scores, n_duplicates = model.choice.scores, model.rows.n_duplicates
        return diagnose(sums, left_out.values, left_out.landmark_rows, scores, n_duplicates, constant)

    def _effects_at(self, passes, cross_kernel, dual_coef, columns):
        """Return the effects at every row in units of the target, (n, effects, targets)."""
        values, transform = effect_values(passes, cross_kernel, dual_coef, columns), self._model.transform
        if transform is None:
            return values
        return effects_in_own_units(
            values, self._values(passes.source), transform, columns, self._values, passes.source
        )

    def _calibrated(self, X, y, sample_weight, groups, by, density_ratio):
        """Return the model with leave-one-out residuals."""
        model, fit = self._model, self._sums("calibrate")
        passes = self._passes_of_fit(X, y, sample_weight, groups)
        if model.rows.n_groups is not None and not passes.has_groups:
            raise DataError(
                "the model was fitted with groups of rows; give their labels here too: calibrate(..., groups=)"
            )
        given = loss_sums(passes, fit.factor, fit.target_origin, float(fit.scaled_ridge.min()))
        everything = same_rows(given, fit.moments)
        choosing = replace(model.choice.sums, gram=np.zeros_like(given.gram))
        if not everything and not same_rows((given + choosing), fit.moments):
            raise DataError(
                "these are not the rows the model was fitted on, nor those added after its landmarks were chosen; "
                "leave-one-out residuals need the rows and targets of the fit, with their weights"
            )
        pairwise = model.function.kernel.pairwise
        if pairwise and rows_among(model, passes) is None:
            raise DataError(
                "rows of a precomputed kernel must come in the order of the fit, where they hold their own k(x, x)"
            )
        left_out = leave_one_out(passes, fit)
        if everything:
            model = self._with_left_out(model, passes, left_out)
            found = repeats_and_columns(passes, passes.distinct_rows(), pairwise)
            n_groups = len(passes.left_out()) if passes.has_groups else None
            model = replace(model, rows=replace(model.rows, **found, n_groups=n_groups))
        about = labels_of_sets(by, passes.source.n_rows), ratios_of(density_ratio, passes.source.n_rows)
        return with_calibration(model, passes, left_out, everything, self.random_state, *about)

    def _with_left_out(self, model, passes, left_out):
        """Return the model with the residuals of all its rows."""
        in_range(left_out.residuals, "the leave-one-out residual", _RESCALE)
        return replace(model, left_out=LeftOutRows(replace(left_out, pulls=None), rows_among(model, passes)))
