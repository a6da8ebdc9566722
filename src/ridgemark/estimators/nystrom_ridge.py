"""Kernel ridge regression from landmarks, as a scikit-learn regressor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ridgemark.backends.threads import one_blas_thread
from ridgemark.errors import NumericalError, RidgeEdgeWarning
from ridgemark.estimators.base import LandmarkEstimator
from ridgemark.fitting import Recipe, prepare, tune
from ridgemark.kernels.base import count_rows
from ridgemark.leverage import Bracket
from ridgemark.sampling import make_generator


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
        The paper's epsilon: scores are taken at lambda epsilon.
    failure_probability : float, default=0.05
        The paper's rho.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised constant jointly.
    memory_budget : int, optional
        Bytes for the blocks of a pass; 1 GiB when not given.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all draws.

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
    effective_dimension_ : Bracket
        d_eff of exact kernel ridge regression at `ridge_`, from both sides.
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
        fit_intercept=True,
        memory_budget=None,
        random_state=None,
    ):
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.ridge = ridge
        self.ridge_per_target = ridge_per_target
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.risk_tolerance = risk_tolerance
        self.failure_probability = failure_probability
        self.fit_intercept = fit_intercept
        self.memory_budget = memory_budget
        self.random_state = random_state

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
        recipe = self._recipe()
        passes = self._passes(self._open(X, y, sample_weight))
        prepared = prepare(passes, recipe, make_generator(self.random_state))
        tuned = tune(passes, recipe, prepared.factor, prepared.moments, prepared.target_origin)
        self._take_landmarks(prepared)
        self._take_fit(tuned)
        if tuned.path is not None and tuned.path.on_edge and (tuned.fit.solver.target_variance > 0).any():
            warnings.warn(_edge_message(tuned.path), RidgeEdgeWarning, stacklevel=4)
        self.n_passes_, self.n_kernel_evaluations_ = passes.n_passes, passes.n_kernel_evaluations
        return self

    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def partial_fit(self, X, y=None, sample_weight=None):
        """Add rows to the fit, whose landmarks stay; the first call, without a fit before, chooses them from its rows.

        Moments of disjoint rows add, so any number of calls gives the coefficients that `fit` on all their rows gives
        for the same kernel and landmarks. Earlier rows cannot be visited again: `ridge="loo"` and a list of ridges
        then choose by generalised cross-validation, as `ridge_path_.criterion` says; `ridge_path_.on_edge` says whether
        the best lies at the edge of those searched, of which no warning is given while rows may still come.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        self
        """
        recipe, first = self._recipe(), not hasattr(self, "_fit")
        passes = self._passes(self._open(X, y, sample_weight, reset=first))
        if first:
            prepared = prepare(passes, recipe, make_generator(self.random_state))
            tuned = tune(None, recipe, prepared.factor, prepared.moments, prepared.target_origin)
            self._take_landmarks(prepared)
            self.n_passes_ = self.n_kernel_evaluations_ = 0
        else:
            tuned = tune(None, recipe, self._fit.factor, self._moments_with(passes, recipe), self._fit.target_origin)
        self._take_fit(tuned)
        self.n_passes_ += passes.n_passes
        self.n_kernel_evaluations_ += passes.n_kernel_evaluations
        return self

    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def predict(self, X):
        """Return the fitted function at new rows, shape (n,) or (n, n_targets)."""
        check_is_fitted(self)
        source = self._rows(X)
        dual_coef = self.dual_coef_.reshape(self.n_landmarks_, -1)
        values = self._passes(source).predict(self._fit.factor, dual_coef, np.atleast_1d(self.intercept_))
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            msg = f"the prediction for row {row} exceeds the floating-point range; rescale the columns"
            raise NumericalError(msg)
        if self._single and source.dtype == np.float32:
            values = values.astype(np.float32)
        return self._shaped(values)

    def _recipe(self):
        return Recipe(**{name: getattr(self, name) for name in Recipe.__dataclass_fields__})

    def _moments_with(self, passes, recipe):
        """Return the moments of the fit with those of further rows added."""
        fit, known = self._fit, self._fit.moments
        total = known.total_weight + float(passes.row_counts().sum())
        smallest = float(recipe.ridge) * total if recipe.one_ridge else None
        return known + passes.moments(fit.factor, fit.target_origin, smallest)

    def _take_landmarks(self, prepared):
        """Keep what was drawn; what an earlier fit left behind goes."""
        self._warn_of_few_rows(prepared.count)
        landmarks, kernel = prepared.landmarks, prepared.factor.cross_kernel.kernel
        self.kernel_, self.bandwidth_ = kernel, getattr(kernel, "bandwidth", None)
        self.landmarks_, self.landmark_indices_ = landmarks.points, landmarks.indices
        self.n_landmarks_, self.landmark_count_ = count_rows(landmarks.points), prepared.count
        self.whitened_ = prepared.whitened
        for name in ("leverage_scores_", "coherence_"):
            self.__dict__.pop(name, None)
        if landmarks.scores is not None:
            self.leverage_scores_, self.coherence_ = landmarks.scores, landmarks.scores.coherence

    def _take_fit(self, tuned):
        """Keep the coefficients and what chose them."""
        fit = tuned.fit
        dual_coef, intercept = fit.dual_coef, fit.intercept
        if not (np.isfinite(dual_coef).all() and np.isfinite(intercept).all()):
            msg = "the coefficients exceed the floating-point range; rescale the targets or choose a larger ridge"
            raise NumericalError(msg)
        self._fit = fit
        self.dual_coef_, self.intercept_ = self._shaped(dual_coef), self._shaped(intercept)
        per_target = self.ridge_per_target and not self._flat_targets
        self.ridge_: Any = tuned.ridges if per_target else float(tuned.ridges[0])
        self.scaled_ridge_ = self.ridge_ * fit.moments.total_weight
        self.effective_dimension_ = _dimension(fit)
        for name in ("ridge_path_", "loo_residuals_"):
            self.__dict__.pop(name, None)
        if tuned.path is not None:
            self.ridge_path_ = tuned.path
        if tuned.left_out is not None:
            self.loo_residuals_ = self._shaped(tuned.left_out.residuals)

    def _shaped(self, values):
        """Return what has one column, or one entry, per target in the shape of the targets given."""
        if not self._flat_targets:
            return values
        return float(values[0]) if values.ndim == 1 else values[:, 0]


def _edge_message(path):
    least, most = path.ridges[-1], path.ridges[0]
    return (
        f"the best ridge lies at the edge of the {len(path.ridges)} searched, {least:.3g} to {most:.3g}; "
        "give a wider list of ridges, or check whether the targets are noise or free of it"
    )


def _dimension(fit):
    """Return d_eff of the exact kernel at the ridge: at least that of L, at most tr(K - L)/(n lambda) more."""
    scaled_ridge = float(fit.scaled_ridge.min())
    lower = fit.solver.effective_dimension(scaled_ridge)
    return Bracket(lower, min(float(fit.moments.n_rows), lower + fit.moments.trace_residual / scaled_ridge))
