"""Kernel ridge regression from landmarks, as a scikit-learn regressor."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin

from ridgemark.backends.threads import one_blas_thread
from ridgemark.certificates import trace_certificate
from ridgemark.errors import ConvergenceWarning, DataError, NumericalError, ParameterError, warn_user
from ridgemark.estimators.base import all_or_nothing
from ridgemark.estimators.landmark_model import LandmarkModel
from ridgemark.fitting import Recipe, fit_to_tolerance, prepare, scaled_ridges, solve_by_gradient, tune
from ridgemark.kernels import has_bandwidth
from ridgemark.kernels.base import count_rows
from ridgemark.losses import loss_sums
from ridgemark.rows import RowSource
from ridgemark.rows.distinct import count_distinct, merge_smallest
from ridgemark.sampling import make_generator
from ridgemark.selection import Uniform, make_selection
from ridgemark.tuning import keep_rows

# What a fit may leave or not, and so must not outlive it.
_OF_ONE_FIT = (
    *("_fit", "_left_out", "_landmark_rows"),
    *("ridge_path_", "loo_residuals_", "calibration_", "tolerance_", "solver_bound_"),
)


class NystromRidge(MultiOutputMixin, RegressorMixin, LandmarkModel):
    """Kernel ridge regression from landmarks.

    Minimises `sum_i w_i (y_i - f(x_i))^2 + scaled_ridge |f|^2` over functions `f(x) = sum_j c_j k(x, z_j)` of the
    landmarks z, with `scaled_ridge = ridge * sum_i w_i`: the paper's lambda is `ridge`, and scikit-learn's
    `KernelRidge(alpha=...)` is `scaled_ridge`.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        A name, a `ridgemark.kernels` object, a callable `(X, Z) -> block` or `(x, z) -> number`, or "precomputed".
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
        The kernel used, with its bandwidth; beside an intercept, a linear one with its origin.
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
            Relative weights: 2 counts a row twice, zero leaves it out, and a factor on all of them changes nothing.

        Returns
        -------
        self
        """
        recipe, rng = self._recipe(), make_generator(self.random_state)
        passes = self._training_passes(self._open(X, y, sample_weight))
        prepared = prepare(passes, recipe, rng)
        tuned = tune(passes, recipe, prepared.factor, prepared.moments, prepared.target_origin)
        certificate = tolerance = None
        if recipe.certify_with is not None:
            prepared, tuned, certificate, tolerance = fit_to_tolerance(recipe, prepared, tuned, rng)
        self._take_landmarks(prepared, passes)
        self._take_fit(tuned, solve_by_gradient(prepared, tuned.fit) if prepared.solver == "gradient" else None)
        if tolerance is not None:
            self.certificate_, self.tolerance_ = certificate, tolerance
        self._kept: Any = None
        if tuned.left_out is not None and prepared.solver == "direct":
            self._kept = None if self.kernel_.pairwise else keep_rows(passes)
            self._take_left_out(tuned.left_out, passes)
            self._take_calibration(passes, tuned.left_out, everything=True)
        self._warn_of_edge(tuned)
        self._warn_of_rounding(passes, tuned.fit)
        self.n_passes_, self.n_kernel_evaluations_ = passes.n_passes, passes.n_kernel_evaluations
        self.waiting_share_ = passes.waiting_share
        return self

    @all_or_nothing
    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add rows to the fit, whose landmarks stay; the first call, without a fit before, chooses them from its rows.

        Moments of disjoint rows add, so any number of calls gives the coefficients that `fit` on all their rows gives
        for the same kernel and landmarks. Earlier rows cannot be visited again: where the ridge is searched by
        leave-one-out, 2,048 distinct rows drawn from all batches are kept for it. Where an earlier call kept none,
        because its ridge was given, generalised cross-validation chooses, as `ridge_path_.criterion` says.
        `ridge_path_.on_edge` says whether the best lies at the edge of those searched, of which no warning is given
        while rows may still come. The solver is the direct one, and `certify_with` has to wait for `fit`.

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
        source = self._open(X, y, sample_weight, reset=first)
        if first:
            passes = self._training_passes(source)
            prepared = prepare(passes, recipe, make_generator(self.random_state))
            factor, moments, origin = prepared.factor, prepared.moments, prepared.target_origin
            self._take_landmarks(prepared, passes)
            self.n_passes_ = self.n_kernel_evaluations_ = 0
        else:
            passes = self._passes(source, self._fit.weight_unit)  # moments add in one unit
            factor, moments, origin = self._fit.factor, self._moments_with(passes, recipe), self._fit.target_origin
            self._hashes: Any = merge_smallest(self._hashes, passes.distinct_rows().smallest)
        self._kept = self._keep(passes, recipe, first)
        tuned = tune(passes, recipe, factor, moments, origin, count_distinct(self._hashes), self._kept)
        self._take_fit(tuned)
        self._warn_of_rounding(passes, tuned.fit)
        self.n_passes_ += passes.n_passes
        self.n_kernel_evaluations_ += passes.n_kernel_evaluations
        self.waiting_share_ = passes.waiting_share
        return self

    def score(self, X, y=None, sample_weight=None):
        """Return R^2 of the predictions; a RowSource brings its own targets and weights."""
        if isinstance(X, RowSource) and y is None:
            passes = self._passes(X)
            y, sample_weight = passes.targets(), passes.weights()
        return super().score(X, y, sample_weight)

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

    def _keep(self, passes, recipe, first):
        """Return a sample of the rows of all batches for leave-one-out; None where a batch gave none."""
        searched = recipe.criterion == "loo" and not recipe.one_ridge and not self.kernel_.pairwise
        if not searched or not (first or self._kept):
            return None
        return keep_rows(passes) if first else self._kept + keep_rows(passes)

    def _recipe(self):
        return Recipe(**{name: getattr(self, name) for name in Recipe.__dataclass_fields__})

    def _moments_with(self, passes, recipe):
        """Return the moments of the fit with those of further rows added."""
        fit, known = self._fit, self._fit.moments
        total = known.total_weight + float(passes.row_counts().sum())
        smallest = float(scaled_ridges(np.array(recipe.ridge), total)) if recipe.one_ridge else None
        return known + loss_sums(passes, fit.factor, fit.target_origin, smallest)

    def _take_landmarks(self, prepared, passes):
        """Keep what was drawn; what an earlier fit left behind goes."""
        self._warn_of_few_rows(prepared.count)
        landmarks, kernel = prepared.landmarks, prepared.factor.cross_kernel.kernel
        self.kernel_, self.bandwidth_ = kernel, getattr(kernel, "bandwidth", None)
        self.landmarks_, self.landmark_indices_ = landmarks.points, landmarks.indices
        self.n_landmarks_, self.landmark_count_ = count_rows(landmarks.points), prepared.count
        self._cross_kernel = kernel.against(landmarks.points, landmarks.indices)
        self.solver_ = prepared.solver
        self._choosing = prepared.moments.without_products()
        by_chance = isinstance(make_selection(self.selection), Uniform) and self.n_landmarks != "auto"
        self._chosen_blindly = by_chance and not (isinstance(self.bandwidth, str) and has_bandwidth(self.kernel))
        self._look_at_rows(passes, prepared.setting.distinct)
        self._hashes = prepared.setting.distinct.smallest
        for name in ("leverage_scores_", "coherence_"):
            self.__dict__.pop(name, None)
        if landmarks.scores is not None:
            self.leverage_scores_, self.coherence_ = landmarks.scores, landmarks.scores.coherence

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
        self.scaled_ridge_ = self.ridge_ * fit.moments.total_weight * fit.weight_unit
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
            warn_user(msg, ConvergenceWarning)
