"""Kernel ridge regression from landmarks, as a scikit-learn regressor."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ridgemark.backends.threads import one_blas_thread
from ridgemark.certificates import certify, distance_at, trace_certificate
from ridgemark.diagnostics import diagnose
from ridgemark.errors import ConvergenceWarning, DataError, NumericalError, ParameterError
from ridgemark.estimators.base import LandmarkEstimator, all_or_nothing
from ridgemark.estimators.saving import save_model
from ridgemark.fitting import Recipe, fit_to_tolerance, prepare, solve_by_gradient, tune
from ridgemark.intervals import Calibration, jackknife_intervals, sample_size, standard_deviations
from ridgemark.kernels import has_bandwidth
from ridgemark.kernels.base import count_rows
from ridgemark.passes import same_rows
from ridgemark.rows import RowSource
from ridgemark.sampling import make_generator
from ridgemark.selection import Uniform, make_selection
from ridgemark.tuning import leave_one_out

# What a fit may leave or not, and so must not outlive it.
_OF_ONE_FIT = (
    *("_fit", "_left_out", "_landmark_rows", "_absent"),
    *("ridge_path_", "loo_residuals_", "calibration_", "tolerance_", "solver_bound_"),
)


class NystromRidge(MultiOutputMixin, RegressorMixin, LandmarkEstimator):
    """Kernel ridge regression from landmarks.

    Minimises `sum_i w_i (y_i - f(x_i))^2 + scaled_ridge |f|^2` over functions `f(x) = sum_j c_j k(x, z_j)` of the
    landmarks z, with `scaled_ridge = ridge * sum_i w_i`: the paper's lambda is `ridge`, and scikit-learn's
    `KernelRidge(alpha=...)` is `scaled_ridge`.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A name, a `ridgemark.kernels` object, a callable `(X, Z) -> block`, or "precomputed".
    bandwidth : "median", float or array of shape (n_features,), default="median"
        For a kernel given by name: the kernel's bandwidth, or the median distance between distinct rows.
        A Kernel object carries its own.
    ridge : "loo", "gcv", float or array of floats, default="loo"
        The paper's lambda: one number, a list to choose from by leave-one-out, or "loo" or "gcv" to search ten decades
        by leave-one-out or generalised cross-validation.
    ridge_per_target : bool, default=False
        Whether every target gets a ridge of its own.
    n_landmarks : int or "auto", default="auto"
        "auto" takes all distinct rows when there are at most 500, and otherwise about two for every dimension of
        d_eff(lambda epsilon); see `ridgemark.selection.count_landmarks`.
    selection : str, Selection or array of points, default="leverage"
        How landmarks are chosen: "uniform", "diagonal", "leverage", "recursive", "bless", "rpcholesky", "kmeans",
        "rank_leverage", an object of `ridgemark.selection`, or the landmarks themselves.
    risk_tolerance : float, default=0.1
        The paper's epsilon: scores are taken at lambda epsilon. With `certify_with`, what the fit has to meet: a risk
        within `(1 + 2 epsilon)^2` of the exact one; for an audit, a distance of epsilon times the leave-one-out error.
    failure_probability : float, default=0.05
        The paper's rho.
    certify_with : {None, "audit", "operator", "trace"}, default=None
        A kind of certificate that makes `risk_tolerance` a promise: with `n_landmarks="auto"` landmarks are doubled
        until it is met or nothing is left to add, as `tolerance_` says.
    solver : {"auto", "direct", "gradient"}, default="auto"
        "direct" sums the products of features, "gradient" solves for many landmarks by conjugate gradients; "auto"
        takes the one of less work by `ridgemark.solvers.solver_cost`. Before a gradient, 2,000 of the landmarks choose
        the ridge.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised constant jointly.
    memory_budget : int, optional
        Bytes for the blocks of a pass; 1 GiB when not given.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all draws.
    progress : bool or callable, default=False
        Whether to tell the error stream how far each pass has come, or who to tell: called as
        `progress(what, rows_done, n_rows)`.

    Attributes
    ----------
    landmarks_ : array or sparse matrix of shape (p, n_features)
        The landmarks' rows.
    landmark_indices_ : array of shape (p,)
        Their row numbers in the training data; None where they are no training rows.
    dual_coef_ : array of shape (p,) or (p, n_targets)
        The c above.
    intercept_ : float or array of shape (n_targets,)
        The constant; zero without `fit_intercept`.
    kernel_ : Kernel
        The kernel used, with its bandwidth.
    bandwidth_ : float, array or None
        The kernel's bandwidth; None for a kernel without one.
    ridge_, scaled_ridge_ : float, or array of shape (n_targets,) with `ridge_per_target`
        The ridge, and its product with the sum of weights.
    ridge_path_ : RidgePath
        Errors and dimensions over the ridges searched; not with one number as `ridge`.
    loo_residuals_ : array of shape (n,) or (n, n_targets)
        Leave-one-out residuals for fixed landmarks and `scaled_ridge_`; where leave-one-out chose.
    calibration_ : Calibration
        Rows and leave-one-out residuals that intervals are made from; after a fit that leave-one-out chose, or
        `calibrate`. `calibration_.guaranteed` says what intervals promise.
    effective_dimension_ : Bracket
        d_eff of exact kernel ridge regression at `ridge_`, from both sides.
    certificate_ : Certificate
        How far the fit is from exact: by the trace of K - L, free, or what `certify_with` measured. None after a
        gradient, which sums no trace, and for targets so large that distances exceed the floating-point range.
    tolerance_ : Tolerance
        Whether `risk_tolerance` was met, with `certify_with`.
    solver_ : {"direct", "gradient"}
        What solved; after a gradient `solver_bound_` is the RMS distance of its fitted values from the direct
        solution's, at most.
    n_landmarks_ : int
        Number of landmarks, p.
    landmark_count_ : LandmarkCount
        Which rule decided their number, and what Theorem 3 would have asked.
    leverage_scores_ : ScoreBracket
        The scores at lambda epsilon, with `selection="leverage"`.
    coherence_ : Bracket
        `d_mof/d_eff` of those scores.
    whitened_ : {"before", "after"}
        Whether features were whitened before their products were summed, the reference, or after, faster and only
        where no digit is lost.
    n_passes_, n_kernel_evaluations_ : int
        Passes over the rows and kernel entries the fit took.
    waiting_share_ : float
        Share of the passes' time, in [0, 1], in which the processor waited for rows to be read; measured in the last
        `fit` or `partial_fit`, and not saved.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgemark import NystromRidge
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> model = NystromRidge(bandwidth=0.1, ridge=1e-4, n_landmarks=30, random_state=0)
    >>> bool(model.fit(x, np.sin(6 * x[:, 0])).score(x, np.sin(6 * x[:, 0])) > 0.999)
    True
    """

    def __init__(
        self,
        kernel="gaussian",
        *,
        bandwidth="median",
        ridge="loo",
        ridge_per_target=False,
        n_landmarks="auto",
        selection="leverage",
        risk_tolerance=0.1,
        failure_probability=0.05,
        certify_with=None,
        solver="auto",
        fit_intercept=True,
        memory_budget=None,
        random_state=None,
        progress=False,
    ):
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.ridge_per_target = ridge_per_target
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.risk_tolerance = risk_tolerance
        self.failure_probability = failure_probability
        self.certify_with = certify_with
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.memory_budget = memory_budget
        self.random_state = random_state
        self.progress = progress

    @all_or_nothing
    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")  # what exceeds the range is refused in words
    def fit(self, X, y=None, sample_weight=None):
        """Choose landmarks and fit their coefficients.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, n_features), or RowSource
            The rows; a RowSource brings its own targets and weights.
        y : array of shape (n,) or (n, n_targets)
            The targets.
        sample_weight : array of shape (n,), optional
            How many rows each row counts for; zero is absence.

        Returns
        -------
        self
        """
        recipe, rng = self._recipe(), make_generator(self.random_state)
        passes = self._passes(self._open(X, y, sample_weight))
        prepared = prepare(passes, recipe, rng)
        tuned = tune(passes, recipe, prepared.factor, prepared.moments, prepared.target_origin)
        certificate = tolerance = None
        if recipe.certify_with is not None:
            prepared, tuned, certificate, tolerance = fit_to_tolerance(recipe, prepared, tuned, rng)
        self._take_landmarks(prepared, passes)
        self._take_fit(tuned, solve_by_gradient(prepared, tuned.fit) if prepared.solver == "gradient" else None)
        if tolerance is not None:
            self.certificate_, self.tolerance_ = certificate, tolerance
        if tuned.left_out is not None and prepared.solver == "direct":
            self._take_left_out(tuned.left_out, passes)
            self._take_calibration(passes, tuned.left_out, everything=True)
        self._warn_of_edge(tuned)
        self.n_passes_, self.n_kernel_evaluations_ = passes.n_passes, passes.n_kernel_evaluations
        self.waiting_share_ = passes.waiting_share
        return self

    @all_or_nothing
    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add rows to the fit, whose landmarks stay; the first call, without a fit before, chooses them from its rows.

        Moments of disjoint rows add, so any number of calls gives the coefficients that `fit` on all their rows gives
        for the same kernel and landmarks. Earlier rows cannot be visited again: `ridge="loo"` and a list of ridges
        then choose by generalised cross-validation, as `ridge_path_.criterion` says; `ridge_path_.on_edge` says whether
        the best lies at the edge of those searched, of which no warning is given while rows may still come. The solver
        is the direct one, and `certify_with` has to wait for `fit`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        recipe, first = replace(self._recipe(), solver="direct"), not hasattr(self, "dual_coef_")
        if not first:
            self._check_more_rows()
        passes = self._passes(self._open(X, y, sample_weight, reset=first))
        if first:
            prepared = prepare(passes, recipe, make_generator(self.random_state))
            tuned = tune(None, recipe, prepared.factor, prepared.moments, prepared.target_origin)
            self._take_landmarks(prepared, passes)
            self.n_passes_ = self.n_kernel_evaluations_ = 0
        else:
            tuned = tune(None, recipe, self._fit.factor, self._moments_with(passes, recipe), self._fit.target_origin)
        self._take_fit(tuned)
        self.n_passes_ += passes.n_passes
        self.n_kernel_evaluations_ += passes.n_kernel_evaluations
        self.waiting_share_ = passes.waiting_share
        return self

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
        dual_coef = self.dual_coef_.reshape(self.n_landmarks_, -1)
        values = self._passes(source).cross_values(self._cross_kernel, dual_coef) + np.atleast_1d(self.intercept_)
        values = self._predictions(values, source)
        if not return_std:
            return values
        self._check_moments("a standard deviation")
        if self.kernel_.pairwise:
            msg = "a standard deviation needs k(x, x), which rows of a precomputed kernel do not hold"
            raise DataError(msg)
        spread = standard_deviations(self._passes(source), self._fit)
        return values, self._shaped(spread.astype(values.dtype, copy=False))

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
        passes = self._passes(self._open(X, y, sample_weight, reset=False))
        fit = self._fit
        given = passes.moments(fit.factor, fit.target_origin, float(fit.scaled_ridge.min()))
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
        passes = self._passes(self._open(X, y, sample_weight, reset=False))
        return certify(
            kind,
            passes,
            self._fit,
            landmark_indices=self._rows_among(passes),
            failure_probability=self.failure_probability,
            rng=make_generator(self.random_state),
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
        training = self._passes(self._open(X_fit, y_fit, sample_weight, reset=False))
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
            absent=self._absent,
            landmark_indices=self._landmark_rows,
            scores=getattr(self, "leverage_scores_", None),
            effective_dimension=self.effective_dimension_,
            n_duplicates=self._n_duplicates,
            constant_columns=tuple(str(j if names is None else names[j]) for j in self._constant_columns),
        )

    def score(self, X, y=None, sample_weight=None):
        """Return R^2 of the predictions; a RowSource brings its own targets and weights."""
        if isinstance(X, RowSource) and y is None:
            passes = self._passes(X)
            y, sample_weight = passes.targets(), passes.weights()
        return super().score(X, y, sample_weight)

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

    def _take_left_out(self, left_out, passes):
        """Keep the residuals of all rows."""
        self._left_out, self._landmark_rows = left_out, self._rows_among(passes)
        self._absent = np.flatnonzero(passes.row_counts() == 0)
        self.loo_residuals_ = self._shaped(left_out.residuals)

    def _take_calibration(self, passes, left_out, everything):
        """Keep a uniform sample of the rows with their residuals, and say what intervals from them promise."""
        weights = passes.row_counts()
        eligible = weights > 0
        guaranteed, reason = self._promise(everything, bool((weights == 1).all()), passes)
        if guaranteed and everything:
            eligible[self._rows_among(passes)] = False
        rows = np.flatnonzero(eligible)
        most = sample_size(self.memory_budget, self.n_landmarks_ + self.n_features_in_)
        sample = np.sort(make_generator(self.random_state).permutation(rows)[:most])
        self.calibration_ = Calibration(
            passes.take(sample).features, sample, left_out.residuals[sample], weights[sample], guaranteed, reason
        )

    def _promise(self, everything, unweighted, passes):
        """Return whether the calibration rows had no part in choosing the model, and why."""
        if not unweighted:
            return False, "rows with weights are not exchangeable"
        if not everything:
            if self._ridge_given:
                return True, "landmarks and bandwidth were chosen from earlier rows, and the ridge was given"
            return False, "the ridge was chosen from these rows"
        left = self._fit.moments.n_rows - self.n_landmarks_
        by_chance = self._chosen_blindly and self._ridge_given and not self._n_duplicates
        if by_chance and left > 0 and self._rows_among(passes) is not None:
            return True, "ridge and bandwidth were given, landmarks drawn uniformly, and none of them is among the rows"
        return False, "landmarks, bandwidth or ridge were chosen from these rows"

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

    def _check_more_rows(self):
        """Refuse to add rows where their sums would not be those of the fit."""
        self._check_moments("partial_fit")
        if self.kernel_.pairwise:
            msg = "further rows of a precomputed kernel do not hold their own k(x, x), which partial_fit needs; use fit"
            raise DataError(msg)
        if bool(self.fit_intercept) != self._fit.fit_intercept:
            msg = (
                f"fit_intercept was {self._fit.fit_intercept} for the rows so far and is {self.fit_intercept} now; "
                "partial_fit cannot change it, fit anew"
            )
            raise ParameterError(msg)

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

    def _recipe(self):
        return Recipe(**{name: getattr(self, name) for name in Recipe.__dataclass_fields__})

    def _moments_with(self, passes, recipe):
        """Return the moments of the fit with those of further rows added."""
        fit, known = self._fit, self._fit.moments
        total = known.total_weight + float(passes.row_counts().sum())
        smallest = float(recipe.ridge) * total if recipe.one_ridge else None
        return known + passes.moments(fit.factor, fit.target_origin, smallest)

    def _take_landmarks(self, prepared, passes):
        """Keep what was drawn; what an earlier fit left behind goes."""
        self._warn_of_few_rows(prepared.count)
        landmarks, kernel = prepared.landmarks, prepared.factor.cross_kernel.kernel
        self.kernel_, self.bandwidth_ = kernel, getattr(kernel, "bandwidth", None)
        self.landmarks_, self.landmark_indices_ = landmarks.points, landmarks.indices
        self.n_landmarks_, self.landmark_count_ = count_rows(landmarks.points), prepared.count
        self._cross_kernel = kernel.against(landmarks.points, landmarks.indices)
        self.whitened_, self.solver_ = prepared.whitened, prepared.solver
        self._choosing = prepared.moments.without_products()
        by_chance = isinstance(make_selection(self.selection), Uniform) and self.n_landmarks != "auto"
        self._chosen_blindly = by_chance and not (isinstance(self.bandwidth, str) and has_bandwidth(self.kernel))
        self._look_at_rows(passes, prepared.problem.distinct)
        for name in ("leverage_scores_", "coherence_"):
            self.__dict__.pop(name, None)
        if landmarks.scores is not None:
            self.leverage_scores_, self.coherence_ = landmarks.scores, landmarks.scores.coherence

    def _look_at_rows(self, passes, distinct):
        """Keep how many rows are equal, and which columns constant."""
        self._n_duplicates = int(np.count_nonzero(distinct.kind >= 0)) - len(distinct)
        self._constant_columns = () if self.kernel_.pairwise else passes.constant_columns(distinct.indices[:100])

    def _take_fit(self, tuned, gradient=None):
        """Keep the coefficients and what chose them; what an earlier fit left behind goes."""
        fit = tuned.fit
        solution = fit if gradient is None else gradient
        dual_coef, intercept = solution.dual_coef, solution.intercept
        if not (np.isfinite(dual_coef).all() and np.isfinite(intercept).all()):
            msg = "the coefficients exceed the floating-point range; rescale the targets or choose a larger ridge"
            raise NumericalError(msg)
        for name in _OF_ONE_FIT:
            self.__dict__.pop(name, None)
        self.dual_coef_, self.intercept_ = self._shaped(dual_coef), self._shaped(intercept)
        per_target = self.ridge_per_target and not self._flat_targets
        self.ridge_: Any = tuned.ridges if per_target else float(tuned.ridges[0])
        self.scaled_ridge_ = self.ridge_ * fit.moments.total_weight
        self.effective_dimension_ = fit.effective_dimension
        self._ridge_given = tuned.path is None
        if tuned.path is not None:
            self.ridge_path_ = tuned.path
        self.certificate_ = None
        if gradient is None:
            self._fit = fit
            with suppress(NumericalError):  # of targets so large that their distances exceed the range
                self.certificate_ = trace_certificate(fit)
        else:
            self.solver_bound_ = self._shaped(gradient.bound)
            self._warn_of_gradient(gradient)

    def _warn_of_gradient(self, gradient):
        """Say that the gradient ended short of its goal."""
        if any(outcome != "converged" for outcome in gradient.outcomes):
            msg = (
                f"the gradient ended after {int(gradient.n_products.max())} products, its fitted values within "
                f"{gradient.bound.max():.3g} (RMS) of the direct solution; take a larger ridge, or solver='direct'"
            )
            warnings.warn(msg, ConvergenceWarning, stacklevel=5)
