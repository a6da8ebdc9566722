"""What a model fitted from landmarks answers: predictions, intervals, how far it is from exact, which rows drive it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ridgemark.backends.threads import one_blas_thread
from ridgemark.certificates import certify, distance_at
from ridgemark.diagnostics import diagnose
from ridgemark.errors import DataError
from ridgemark.estimators.base import LandmarkEstimator, all_or_nothing, in_range
from ridgemark.estimators.saving import save_model
from ridgemark.intervals import Calibration, jackknife_intervals, sample_size, standard_deviations
from ridgemark.losses import loss_sums, same_rows
from ridgemark.operators import Cross
from ridgemark.sampling import make_generator, separate_generator
from ridgemark.tuning import leave_one_out

_RESCALE = "rescale the kernel, the weights or the targets, or choose a larger ridge"


class LandmarkModel(LandmarkEstimator):
    """The questions a fit can be asked; `fit` and `partial_fit` are its children's."""

    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def predict(self, X, return_std=False):
        """Return the fitted function at new rows, shape (n,) or (n, n_targets).

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        return_std : bool, default=False
            Whether to return, second, the standard deviation of the function at each row, in the same shape: an
            approximation that grows with the distance from landmarks and rows. A new observation scatters by the noise
            more; `predict_interval` covers that.
        """
        check_is_fitted(self, "dual_coef_")
        source = self._rows(X)
        cross_kernel, dual_coef, intercept = self._function()
        values = self._predictions(Cross(self._passes(source), cross_kernel) @ dual_coef + intercept, source)
        if not return_std:
            return values
        self._check_moments("a standard deviation")
        if self.kernel_.pairwise:
            msg = "a standard deviation needs k(x, x), which rows of a precomputed kernel do not hold"
            raise DataError(msg)
        spread = standard_deviations(self._passes(source), self._fit).astype(values.dtype, copy=False)
        return values, self._shaped(in_range(spread, "the standard deviation", _RESCALE))

    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def predict_interval(self, X, coverage=0.9):
        """Return intervals for new observations by the jackknife+, shape (n, 2) or (n, 2, n_targets): lower, upper.

        From the leave-one-out residuals of at most 4,096 calibration rows, without a refit. `calibration_.guaranteed`
        says whether coverage of at least `1 - 2 (1 - coverage)` is proved for them (see the guide for a way to have
        that); in practice coverage is near what was asked either way.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        coverage : float, default=0.9
            Share of new observations the intervals are to hold.
        """
        check_is_fitted(self, "dual_coef_")
        self._check_moments("predict_interval")
        if not hasattr(self, "calibration_"):
            msg = "there are no leave-one-out residuals to make intervals from; call calibrate(X, y) with training rows"
            raise DataError(msg)
        ends = jackknife_intervals(self._passes(self._rows(X)), self._fit, self.calibration_, coverage)
        in_range(ends, "the interval", _RESCALE)
        return ends[:, :, 0] if self._flat_targets else ends

    @all_or_nothing
    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def calibrate(self, X, y=None, sample_weight=None):
        """Compute leave-one-out residuals for intervals and `diagnose`, in two passes over the rows of the fit.

        For a fit that has none: one with a given ridge, after `partial_fit`, or loaded. The rows are all of the fit's,
        or all that `partial_fit` added to those that chose the landmarks; other rows are refused. In the second case
        the rows had no part in any choice, and `calibration_.guaranteed` is true.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "dual_coef_")
        self._check_moments("calibrate")
        passes = self._passes_of_fit(X, y, sample_weight)
        fit = self._fit
        given = loss_sums(passes, fit.factor, fit.target_origin, float(fit.scaled_ridge.min()))
        everything = same_rows(given, fit.moments)
        if not everything and not same_rows((given + self._choosing_rows(given)), fit.moments):
            msg = (
                "these are not the rows the model was fitted on, nor those added after its landmarks were chosen; "
                "leave-one-out residuals need the rows and targets of the fit, with their weights"
            )
            raise DataError(msg)
        if self.kernel_.pairwise and self._rows_among(passes) is None:
            msg = "rows of a precomputed kernel must come in the order of the fit, where they hold their own k(x, x)"
            raise DataError(msg)
        left_out = leave_one_out(passes, fit.factor, fit.solver, fit.scaled_ridge, fit.target_origin)
        if everything:
            self._take_left_out(left_out, passes)
            self._look_at_rows(passes, passes.distinct_rows())
        self._take_calibration(passes, left_out, everything)
        return self

    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def certify(self, X, y=None, kind="audit", sample_weight=None):
        """Measure how far the fit is from exact kernel ridge regression on its rows.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit, as for `fit`; other rows are refused.
        kind : {"audit", "operator", "trace"}, default="audit"
            "audit" bounds the distance for these targets: always true up to some 90,000 rows, by one product with the
            kernel matrix, and with probability `1 - failure_probability` on a sample of rows beyond. "operator" holds
            for every signal and gives a factor on the risk, with that probability. "trace" is `certificate_`, free, and
            looks at no rows.

        Returns
        -------
        Certificate
            `claim` in one sentence, `bound` in units of y, `certainty`, `risk_factor`, `inputs`, `cost`.
        """
        check_is_fitted(self, "dual_coef_")
        self._check_moments("certify")
        passes = self._passes_of_fit(X, y, sample_weight)
        return certify(
            kind,
            passes,
            self._fit,
            landmark_indices=self._rows_among(passes),
            failure_probability=self.failure_probability,
            rng=separate_generator(self.random_state),
        )

    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def distance_to_exact(self, X, certificate, X_fit, y_fit=None, sample_weight=None):
        """Bound the distance of predictions at new rows from those of exact kernel ridge regression.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            Where.
        certificate : Certificate
            The fit's audit, from `certify`; the bounds are as certain as it is.
        X_fit, y_fit, sample_weight
            The rows of the fit.

        Returns
        -------
        bounds : array of shape (n,) or (n, n_targets)
            In units of y.
        """
        check_is_fitted(self, "dual_coef_")
        self._check_moments("distance_to_exact")
        points = self._passes(self._rows(X))
        training = self._passes_of_fit(X_fit, y_fit, sample_weight)
        return self._shaped(distance_at(points, training, self._fit, certificate, self._rows_among(training)))

    @np.errstate(over="ignore", invalid="ignore")
    def diagnose(self):
        """Say what state the fit is in and which rows drive it.

        Prints as a table; `.top(k)` gives the k most influential rows, `.to_record()` all numbers for a machine.

        Returns
        -------
        Diagnosis
        """
        check_is_fitted(self, "dual_coef_")
        self._check_moments("diagnose")
        if not hasattr(self, "_left_out"):
            msg = "there are no leave-one-out residuals to diagnose; call calibrate(X, y) with the rows of the fit"
            raise DataError(msg)
        names = getattr(self, "feature_names_in_", None)
        return diagnose(
            self._fit,
            self._left_out,
            landmark_indices=self._landmark_rows,
            scores=getattr(self, "leverage_scores_", None),
            effective_dimension=self.effective_dimension_,
            n_duplicates=self._n_duplicates,
            constant_columns=tuple(str(j if names is None else names[j]) for j in self._constant_columns),
        )

    def save(self, path, overwrite=True):
        """Write the fitted model to one file, of arrays and JSON, whole or not at all; `ridgemark.load` reads it.

        A loaded model predicts the same bits, and goes on with `partial_fit` and `calibrate`.

        Parameters
        ----------
        path : str or path
            The file; its folder must exist.
        overwrite : bool, default=True
            Whether an existing file is replaced.

        Returns
        -------
        path : Path
        """
        return save_model(self, path, overwrite)

    def _function(self):
        """Return kernel, coefficients and constant of `f(x) = k(x) dual_coef + intercept`."""
        return self._cross_kernel, self.dual_coef_.reshape(self.n_landmarks_, -1), np.atleast_1d(self.intercept_)

    def _take_left_out(self, left_out, passes):
        """Keep the residuals of all rows."""
        in_range(left_out.residuals, "the leave-one-out residual", _RESCALE)
        self._left_out, self._landmark_rows = left_out, self._rows_among(passes)
        self.loo_residuals_ = self._shaped(left_out.residuals)

    def _take_calibration(self, passes, left_out, everything):
        """Keep a uniform sample of the rows with their residuals, and say what intervals from them promise."""
        weights, distinct, residuals = passes.row_counts(), passes.distinct_rows(), left_out.residuals
        eligible = weights > 0
        guaranteed, reason = self._promise(everything, passes)
        if guaranteed and everything:
            eligible[self._rows_among(passes)] = False
        rows = np.flatnonzero(eligible)
        most = sample_size(self.memory_budget, self.n_landmarks_ + self.n_features_in_)
        sample = np.sort(make_generator(self.random_state).permutation(rows)[:most])
        shifts = np.stack([distinct.of_rows(distinct.totals(weights * r))[sample] for r in residuals.T], axis=1)
        self.calibration_ = Calibration(
            passes.take(sample).features,
            sample,
            residuals[sample],
            weights[sample],
            shifts,
            len(np.unique(distinct.kind[sample])),
            guaranteed,
            reason,
        )

    def _promise(self, everything, passes):
        """Return whether coverage of new rows is proved for the calibration rows, and why."""
        weights = passes.row_counts()
        if np.ptp(weights[weights > 0]) > 0:
            return False, "rows of unequal weights are not exchangeable"
        if not everything:
            if self._ridge_given:
                reason = "landmarks and bandwidth were chosen from earlier rows, and the ridge was given"
                if passes.distinct_rows().has_repeats:
                    reason += "; as some rows are equal, only for new rows that equal none of them"
                return True, reason
            return False, "the ridge was chosen from these rows"
        left = self._fit.moments.n_rows - self.n_landmarks_
        by_chance = self._chosen_blindly and self._ridge_given and not passes.distinct_rows().has_repeats
        if by_chance and left > 0 and self._rows_among(passes) is not None:
            return True, "ridge and bandwidth were given, landmarks drawn uniformly, and none of them is among the rows"
        return False, "landmarks, bandwidth or ridge were chosen from these rows"

    def _passes_of_fit(self, X, y, sample_weight):
        """Return passes over rows of the fit, their weights in the unit of the fit."""
        return self._passes(self._open(X, y, sample_weight, reset=False), self._fit.weight_unit)

    def _rows_among(self, passes):
        """Return the landmarks' row numbers where these rows begin as those did that the landmarks were drawn from."""
        indices = self.landmark_indices_
        if indices is None or indices.max(initial=0) >= passes.source.n_rows:
            return None
        if self.kernel_.pairwise:  # one row cannot be told from another by its features alone, but by its own column
            rows = passes.take(indices).features
            known = self._fit.factor.landmark_kernel
            return indices if np.allclose(rows[:, indices], known, rtol=1e-6, atol=1e-6 * abs(known).max()) else None
        difference = abs(passes.take(indices).features - self.landmarks_)
        return indices if difference.max() <= 1e-6 * abs(self.landmarks_).max() else None

    def _check_moments(self, what):
        if not hasattr(self, "_fit"):
            msg = (
                f"{what} needs the sums that a direct solver keeps, and this fit of {self.n_landmarks_} landmarks was "
                'solved by gradients; fit with solver="direct" or fewer landmarks'
            )
            raise DataError(msg)

    def _choosing_rows(self, like):
        """Return the sums of the rows that chose the landmarks, ready to be added."""
        return replace(self._choosing, gram=np.zeros_like(like.gram))

    def _look_at_rows(self, passes, distinct):
        """Keep how many rows are equal, and which columns constant."""
        self._n_duplicates = int(np.count_nonzero(distinct.kind >= 0)) - len(distinct)
        columns = np.empty(0, int) if self.kernel_.pairwise else passes.constant_columns(distinct.indices[:100])
        self._constant_columns = tuple(map(int, columns))
