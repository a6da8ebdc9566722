"""Kernel ridge regression from landmarks, as a scikit-learn regressor."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ridgemark.backends.threads import one_blas_thread
from ridgemark.errors import (
    DataError,
    DataTypeError,
    LandmarkCountWarning,
    NumericalError,
    ParameterError,
    RidgeEdgeWarning,
)
from ridgemark.kernels import make_kernel
from ridgemark.kernels.base import count_rows
from ridgemark.leverage import Bracket
from ridgemark.linalg import check_range
from ridgemark.nystrom import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows, RowSource
from ridgemark.sampling import make_generator
from ridgemark.selection import Problem, count_landmarks, make_selection
from ridgemark.solvers import SpectralSolver
from ridgemark.tuning import choose_kernel, choose_ridge, default_ridges

_PILOT_ROWS = 4000  # sampled to find a first ridge
_PILOT_LANDMARKS = 500


class NystromRidge(MultiOutputMixin, RegressorMixin, BaseEstimator):
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
        self._check_options()
        rng = make_generator(self.random_state)
        passes = RowPasses(self._open(X, y, sample_weight), self.memory_budget)
        problem = self._pose(passes, rng)
        self._fit_landmarks(problem, rng)
        if self._moved(problem.scaled_ridge):
            # The scores were taken at a ridge an order of magnitude off: draw once more, at the one found.
            problem = replace(problem, scaled_ridge=float(np.min(self.scaled_ridge_)), pilot={})
            self._fit_landmarks(problem, rng)
        if hasattr(self, "ridge_path_") and self.ridge_path_.on_edge and (self._target_variance > 0).any():
            warnings.warn(_edge_message(self.ridge_path_), RidgeEdgeWarning, stacklevel=4)
        self.n_passes_, self.n_kernel_evaluations_ = passes.n_passes, passes.n_kernel_evaluations
        return self

    @one_blas_thread()
    @np.errstate(over="ignore", invalid="ignore")
    def predict(self, X):
        """Return the fitted function at new rows, shape (n,) or (n, n_targets)."""
        check_is_fitted(self)
        if isinstance(X, RowSource):
            self._check_features(X)
            source = X
        else:
            source = ArrayRows(self._validate(X, reset=False))
        dual_coef = self.dual_coef_.reshape(self.n_landmarks_, -1)
        values = RowPasses(source, self.memory_budget).predict(self._factor, dual_coef, np.atleast_1d(self.intercept_))
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            msg = f"the prediction for row {row} exceeds the floating-point range; rescale the columns"
            raise NumericalError(msg)
        if self._single and source.dtype == np.float32:
            values = values.astype(np.float32)
        return values[:, 0] if self._flat_targets else values

    def _open(self, X, y, sample_weight):
        """Return the training rows as a RowSource, checked."""
        if isinstance(X, RowSource):
            if y is not None or sample_weight is not None:
                msg = "a RowSource brings its own targets and weights; give target and weight to open_rows instead"
                raise ParameterError(msg)
            if X.n_targets == 0:
                msg = "the RowSource has no targets to fit; name them when opening it: open_rows(..., target=...)"
                raise DataError(msg)
            self._take_names(X)
            self._flat_targets, self._single = X.n_targets == 1, False
            return X
        if isinstance(X, str | Path):
            msg = f"fit takes arrays, DataFrames or a RowSource; for a file use open_rows({str(X)!r}, target=...)"
            raise DataTypeError(msg)
        X, y = self._validate(X, y, reset=True)
        if make_kernel(self.kernel).pairwise and X.shape[0] != X.shape[1]:
            msg = f"a precomputed kernel of the training rows must be square, got shape {X.shape}"
            raise DataError(msg)
        self._flat_targets, self._single = y.ndim == 1, X.dtype == y.dtype == np.float32
        if sample_weight is not None:
            sample_weight = np.asarray(sample_weight, dtype=np.float64)
        return ArrayRows(X, y, sample_weight)

    def _take_names(self, source):
        """Remember the features of a RowSource as scikit-learn does those of a DataFrame."""
        self.n_features_in_ = source.n_features
        self.__dict__.pop("feature_names_in_", None)
        if source.feature_names is not None:
            self.feature_names_in_ = np.array(source.feature_names, dtype=object)

    def _check_features(self, source):
        """Refuse a RowSource whose features are not those of the fit."""
        if source.n_features != self.n_features_in_:
            msg = f"the model was fitted on {self.n_features_in_} features, got rows of {source.n_features}"
            raise DataError(msg)
        fitted = getattr(self, "feature_names_in_", None)
        if fitted is not None and source.feature_names is not None and list(fitted) != list(source.feature_names):
            msg = (
                f"the model was fitted on the features {', '.join(map(str, fitted))}, in this order, got "
                f"{', '.join(source.feature_names)}; choose them with open_rows(..., columns=[...])"
            )
            raise DataError(msg)

    def _validate(self, X, y="no_validation", *, reset):
        for name, values in (("X", X), ("y", y)):
            if np.ma.is_masked(values):
                msg = f"{name} has masked values, which hold no number; fill them in or drop the rows"
                raise DataError(msg)
        options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "reset": reset}
        if isinstance(y, str):
            return validate_data(self, X, **options)
        return validate_data(self, X, y, multi_output=True, y_numeric=True, **options)

    def _check_options(self):
        _check_ridge(self.ridge)
        for name, largest in (("risk_tolerance", math.inf), ("failure_probability", 0.5)):
            value = getattr(self, name)
            if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < largest:
                msg = f"{name} must be a number between 0 and {largest:g}, got {value!r}"
                raise ParameterError(msg)

    def _pose(self, passes, rng):
        """Settle the kernel and a first ridge, and state the problem that landmarks are wanted for."""
        distinct = passes.distinct_rows()
        total_weight = float(passes.row_counts().sum())
        self.kernel_ = choose_kernel(self.kernel, self.bandwidth, passes.source, distinct, rng)
        self.bandwidth_ = getattr(self.kernel_, "bandwidth", None)
        ridge = float(self.ridge) if isinstance(self.ridge, Real) else self._pilot_ridge(passes, distinct, rng)
        if not ridge * total_weight > 1e-300:
            msg = f"ridge {ridge:g} times the sum of weights {total_weight:g} vanishes; rescale the weights"
            raise NumericalError(msg)
        return Problem(
            passes, distinct, self.kernel_, ridge * total_weight, self.risk_tolerance, self.failure_probability
        )

    def _pilot_ridge(self, passes, distinct, rng):
        """Return the ridge that uniform landmarks find best on a sample of the rows."""
        counts = distinct.totals(passes.row_counts())
        sample = np.sort(rng.choice(len(distinct), min(_PILOT_ROWS, len(distinct)), replace=False))
        rows = passes.take(distinct.indices[sample])
        landmarks = np.sort(rng.choice(rows.n_rows, min(_PILOT_LANDMARKS, rows.n_rows), replace=False))
        pilot = RowPasses(ArrayRows(rows.features, rows.targets, counts[sample]), self.memory_budget)
        indices = rows.indices[landmarks] if self.kernel_.pairwise else landmarks
        factor = nystrom_factor(self.kernel_, rows.features[landmarks], indices)
        origin = rows.targets.mean(axis=0) if self.fit_intercept else np.zeros(rows.targets.shape[1])
        solver = SpectralSolver(pilot.moments(factor, origin), self.fit_intercept)
        path, _ = choose_ridge(pilot, factor, solver, self._ridges(pilot), origin, self._criterion)
        return float(path.ridges[path.chosen[0]])

    def _fit_landmarks(self, problem, rng):
        """Choose landmarks for the problem's ridge, and fit; with a path of ridges, choose among them."""
        self._choose_landmarks(problem, rng)
        passes = problem.passes
        self._factor = nystrom_factor(self.kernel_, self.landmarks_, self.landmark_indices_)
        origin = self._target_origin(problem)
        one = isinstance(self.ridge, Real)
        smallest = problem.scaled_ridge if one else None
        moments = passes.moments(self._factor, origin, smallest)
        solver = SpectralSolver(moments, self.fit_intercept)
        self.whitened_, self._target_variance = passes.whitened, solver.target_variance
        if one:
            self.ridge_: Any = float(self.ridge)
        else:
            self.ridge_path_, residuals = choose_ridge(
                passes, self._factor, solver, self._ridges(passes), origin, self._criterion, self.ridge_per_target
            )
            ridges = self.ridge_path_.ridges[self.ridge_path_.chosen]
            self.ridge_ = ridges if self.ridge_per_target and not self._flat_targets else float(ridges[0])
            if residuals is not None:
                self.loo_residuals_ = residuals[:, 0] if self._flat_targets else residuals
        self.scaled_ridge_ = self.ridge_ * moments.total_weight
        self._keep(solver.solution(self.scaled_ridge_), origin)
        self.effective_dimension_ = _dimension(solver, moments, float(np.min(self.scaled_ridge_)))

    def _keep(self, solution, origin):
        dual_coef, intercept = self._factor.whitener @ solution.coefficients, solution.intercept + origin
        if not (np.isfinite(dual_coef).all() and np.isfinite(intercept).all()):
            msg = "the coefficients exceed the floating-point range; rescale the targets or choose a larger ridge"
            raise NumericalError(msg)
        self.dual_coef_ = dual_coef[:, 0] if self._flat_targets else dual_coef
        self.intercept_ = float(intercept[0]) if self._flat_targets else intercept

    def _moved(self, scaled_ridge):
        """Tell whether scores taken at this ridge were taken more than tenfold off the one chosen."""
        ratio = float(np.min(self.scaled_ridge_)) / scaled_ridge
        return hasattr(self, "leverage_scores_") and not 0.1 <= ratio <= 10.0

    @property
    def _criterion(self):
        return "gcv" if isinstance(self.ridge, str) and self.ridge == "gcv" else "loo"

    def _ridges(self, passes):
        if not isinstance(self.ridge, str):
            return np.asarray(self.ridge, dtype=np.float64)
        mean_diagonal = float(check_range(passes.diagonal(self.kernel_)).sum() / passes.row_counts().sum())
        return default_ridges(mean_diagonal if mean_diagonal > 0 else 1.0)

    def _choose_landmarks(self, problem, rng):
        selection = make_selection(self.selection)
        self.landmark_count_ = count_landmarks(self.n_landmarks, problem, rng, selection)
        chosen = selection.choose(problem, self.landmark_count_.n_landmarks, rng)
        available = len(problem.distinct)
        if self.landmark_count_.rule == "given" and self.n_landmarks > available:
            msg = f"n_landmarks={self.n_landmarks} exceeds the {available} distinct rows; all of them are used"
            warnings.warn(msg, LandmarkCountWarning, stacklevel=6)
        self.landmarks_, self.landmark_indices_ = chosen.points, chosen.indices
        self.n_landmarks_ = count_rows(chosen.points)
        for name in ("leverage_scores_", "coherence_", "ridge_path_", "loo_residuals_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if chosen.scores is not None:
            self.leverage_scores_, self.coherence_ = chosen.scores, chosen.scores.coherence

    def _target_origin(self, problem):
        """Return a constant near the targets, from a few rows; zero when there is no intercept to hold it."""
        if not self.fit_intercept:
            return np.zeros(problem.passes.source.n_targets)
        return problem.passes.source.take(problem.distinct.indices[:1000]).targets.mean(axis=0)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        try:
            made = make_kernel(self.kernel)
        except ParameterError:  # fit says what is wrong with it
            return tags
        tags.input_tags.pairwise, tags.input_tags.sparse = made.pairwise, made.accepts_sparse
        return tags


def _check_ridge(ridge):
    if isinstance(ridge, str) and ridge in ("loo", "gcv"):
        return
    try:
        values = np.asarray(ridge, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    usable = values.ndim <= 1 and values.size and np.isfinite(values).all() and (values > 0).all()
    if not usable or isinstance(ridge, str | bool):
        msg = (
            f'ridge must be a positive finite number (the paper\'s lambda), a list of them to search, "loo" or "gcv", '
            f"got {ridge!r}"
        )
        raise ParameterError(msg)


def _edge_message(path):
    least, most = path.ridges[-1], path.ridges[0]
    return (
        f"the best ridge lies at the edge of the {len(path.ridges)} searched, {least:.3g} to {most:.3g}; "
        "give a wider list of ridges, or check whether the targets are noise or free of it"
    )


def _dimension(solver, moments, scaled_ridge):
    """Return d_eff of the exact kernel at the ridge: at least that of L, at most tr(K - L)/(n lambda) more."""
    lower = solver.effective_dimension(scaled_ridge)
    return Bracket(lower, min(float(moments.n_rows), lower + moments.trace_residual / scaled_ridge))
