"""Exact kernel ridge regression, reached from landmarks, as a scikit-learn regressor."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.errors import ConvergenceWarning, DataError, ParameterError, warn_user
from ridgemark.estimators.cautions import (
    warn_of_constant,
    warn_of_edge,
    warn_of_few_rows,
    warn_of_rounding,
    warn_of_scales,
)
from ridgemark.estimators.computing import FittedName, check_coefficients, lazy_on_dask
from ridgemark.estimators.hints import stores_parameters
from ridgemark.estimators.kernel_model import KernelModel
from ridgemark.estimators.regression_model import Regressor
from ridgemark.estimators.saving import save_model
from ridgemark.fitted import FittedExact, Function
from ridgemark.fitting import rows_of_fit, settle_kernel
from ridgemark.fitting.exact import search_on_sample
from ridgemark.fitting.fit import fit
from ridgemark.kernels.base import count_rows
from ridgemark.parameters import positive_count, real_number
from ridgemark.passes import Cost
from ridgemark.path import LossPath
from ridgemark.rows.base import stack_rows
from ridgemark.sampling import make_generator
from ridgemark.solvers import refine

_TOL = 1e-6  # in units of y; also the largest in standard deviations of y
_LEAST_TOL = 1e-7  # the smallest in standard deviations of y


class ExactKernelRidge(Regressor, KernelModel):
    """Kernel ridge regression on all rows, to a tolerance that is certified.

    Minimises `sum_i w_i (y_i - f(x_i))^2 + scaled_ridge |f|^2` over all functions f of the kernel's space, with
    `scaled_ridge = ridge * sum_i w_i`. Equal rows are merged first. A landmark model, as `NystromRidge` fits it, is
    then refined by conjugate gradients. Each step takes one product with the n x n kernel matrix, which is held only
    where the memory budget allows. Where all distinct rows are landmarks, the matrix is factorised instead. `history_`
    bounds, after every step, the distance of the function from the exact one, rounding included.

    Parameters
    ----------
    kernel, bandwidth : as for `NystromRidge`
        By default the kernel is tuned.
    ridge : "loo", "gcv", float or array of floats, default="loo"
        Regularisation lambda, as for `NystromRidge`. It is searched by exact leave-one-out on at most 2,500 rows, and
        the `scaled_ridge` that is best for these is used for all rows.
    n_landmarks : int or "auto", default="auto"
        Number of landmarks: with more landmarks fewer steps are needed.
    selection : str, Selection or array of points, default="auto"
        How landmarks are chosen; leverage scores are computed at lambda itself.
    tol : float or "auto", default="auto"
        Largest RMS distance of predictions from the exact solution, over the training rows and in units of y; "auto" is
        1e-6, but at least 1e-7 and at most 1e-6 standard deviations of each target.
    max_iter : int, default=200
        Largest number of products with the kernel matrix. If they do not suffice, or `tol` is below rounding, a warning
        gives the distance that was reached, and the landmark model is kept unless the refined one is closer to the
        exact solution.
    fit_intercept, effort, categorical_features, device, memory_budget, random_state : as for `NystromRidge`
        The features of all rows, and then the kernel matrix, are held where the memory budget has room for them.

    Attributes
    ----------
    X_fit_ : array or sparse matrix of shape (m, n_encoded)
        The distinct training rows of positive weight; the landmarks if the landmark model is kept; both if it is kept
        for some targets only. For a precomputed kernel their row numbers.
    dual_coef_ : array of shape (m,) or (m, n_targets)
        The coefficients: `f(x) = k(x, X_fit_) dual_coef_ + intercept_`.
    intercept_ : float or array of shape (n_targets,)
        The constant; zero without `fit_intercept`.
    history_ : tuple of RefinementStep
        For every number of products with the kernel matrix, bounds on the RMS distance from the exact solution of what
        `predict` returns (`returned`) and of the fitted values `y - scaled_ridge_ dual_coef_/w` (`fitted`), where y and
        w are the mean target and the weight of equal rows, and on the distance of the functions (`norm`). `rounding` is
        the part of `returned` that allows for rounding. Each has one entry per target. The last step is that of the
        model kept.
    n_iter_ : int
        Products with the kernel matrix.
    kernel_, bandwidth_, metric_, tuning_, ridge_, scaled_ridge_, n_landmarks_, landmark_indices_
        As for `NystromRidge`, of the landmark model.
    encoded_names_ : list of str
        Names of the features that the columns become.
    ridge_path_ : RidgePath
        The ridges searched; absent if `ridge` is one number.
    n_passes_, n_kernel_evaluations_ : int
        Passes over the rows and kernel entries the fit took.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgemark import ExactKernelRidge
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> model = ExactKernelRidge(bandwidth=0.1, ridge=1e-4, n_landmarks=30, random_state=0)
    >>> model = model.fit(x, np.sin(6 * x[:, 0]))
    >>> bool(model.history_[-1].returned[0] <= 1e-6)
    True
    """

    X_fit_ = FittedName(
        lambda model: model.function.numbers if model.function.points is None else model.function.points
    )
    ridge_ = FittedName(lambda model: model.ridge)
    scaled_ridge_ = FittedName(lambda model: model.scaled_ridge)
    ridge_path_ = FittedName(lambda model: model.path, optional=True)
    landmark_indices_ = FittedName(lambda model: model.landmark_indices)
    n_landmarks_ = FittedName(lambda model: model.n_landmarks)
    history_ = FittedName(lambda model: model.history)
    n_iter_ = FittedName(lambda model: model.n_iter)

    @stores_parameters
    def __init__(
        self,
        kernel="auto",
        *,
        bandwidth="auto",
        ridge="loo",
        n_landmarks="auto",
        selection="auto",
        tol="auto",
        max_iter=200,
        fit_intercept=True,
        effort="default",
        categorical_features="from_dtype",
        device="cpu",
        memory_budget=None,
        random_state=None,
    ):
        """Take the parameters; they are checked by `fit`."""

    @lazy_on_dask
    def predict(self, X: Any) -> Any:
        """Return the fitted function at new rows, shape (n,) or (n, n_targets)."""
        self._require_fit()
        source = self._rows(X)
        return self._predictions(self._values(source), source)

    def save(self, path: str | PathLike[str], overwrite: bool = True) -> Path:
        """Write the fitted model to one file, as `NystromRidge.save` does; `ridgemark.load` reads it."""
        return save_model(self, path, overwrite)

    def _model_of(self, recipe, passes, form, random_state):
        """Return the model of the rows of these passes."""
        if passes.remote:
            raise DataError(
                "ExactKernelRidge visits rows many times and takes none of Dask; give an array or a file, or use "
                "NystromRidge"
            )
        rng, rows = make_generator(random_state), rows_of_fit(passes, recipe)
        # The exact solution has all rows as landmarks: a metric tuned for fewer is too smooth.
        chosen = settle_kernel(rows, replace(recipe, n_landmarks=len(rows.choosing.distinct_rows())), rng)
        recipe = replace(recipe.after(chosen.tuning), kernel=chosen.kernel, bandwidth="median")
        searched = None
        if not recipe.one_ridge and not chosen.kernel.pairwise:
            recipe, searched = search_on_sample(rows, recipe, rng)
        fitted = fit(passes, recipe, rng)
        solved, landmarks = fitted.solved, fitted.landmarks
        searched = solved if searched is None else searched
        assert not isinstance(searched.path, LossPath)
        warn_of_few_rows(self.n_landmarks, fitted.count)
        warn_of_constant(solved.fit, passes.source.target_names)
        if (searched.fit.centred.target_variance > 0).any():
            warn_of_edge(searched.path)
        kernel = fitted.sums.factor.cross_kernel.kernel
        tol = _tolerance(solved.fit) if self.tol == "auto" else self.tol
        refined = refine(passes, kernel, solved.fit, tol, self.max_iter)
        ridge = float(solved.ridges[0])
        model = FittedExact(
            schema=form,
            function=_function(refined, kernel, landmarks),
            ridge=ridge,
            scaled_ridge=float(solved.fit.scaled_ridge[0]) * passes.weight_unit,
            path=searched.path,
            landmark_indices=landmarks.indices,
            n_landmarks=count_rows(landmarks.points),
            history=refined.history,
            n_iter=refined.reached.n_products,
            cost=Cost(),
            tuning=chosen.tuning,
        )
        warn_of_scales(kernel, passes)
        varies = solved.fit.centred.target_variance > 0
        _warn_of_distance(refined, np.broadcast_to(tol, varies.shape), varies)
        passes.cost = refined.rows.passes.cost  # the passes over merged rows count on from these
        warn_of_rounding(passes, solved.fit, model.function)
        return replace(model, cost=passes.cost)

    def _recipe(self):
        auto = isinstance(self.tol, str) and self.tol == "auto"
        if not auto and not 0 < real_number(self.tol) < np.inf:
            raise ParameterError(
                f'tol must be "auto" or a positive number, an RMS distance in units of y, got {self.tol!r}'
            )
        positive_count(self.max_iter, "max_iter", ", the most products with the kernel matrix")
        # Scores at lambda itself: the landmarks are to leave little of K + n lambda, not to bound a risk.
        return replace(super()._recipe(), risk_tolerance=1.0)


def _warn_of_distance(refined, tol, varies):
    """Warn where the distance asked for was not reached, or the bound is not informative."""
    missed = [k for k, outcome in enumerate(refined.outcomes) if outcome != "converged"]
    first, reached = refined.history[0], refined.reached
    constant = varies & (reached.returned >= first.returned) & (first.returned > first.rounding)
    if not missed and not constant.any():
        return
    worst = max(missed or range(len(tol)), key=lambda k: reached.returned[k] / tol[k])
    within = f"{reached.returned[worst]:.3g} of exact (RMS over the training rows)"
    if not missed:
        said = f"predictions are certified to within {within}, but so is a constant; choose a smaller tol"
    elif refined.void.any():
        said = (
            f"rounding may be larger than what the fit leaves of the targets: the bound is void, {within}; "
            "choose a larger ridge"
        )
    else:
        outcome = refined.outcomes[worst]
        said = f"predictions are certified to within {within}, not the tol={tol[worst]:.3g} asked for ({outcome}); "
        said += (
            "the ridge is too small for these landmarks or for double precision; take more landmarks or a larger "
            "ridge, or accept this distance as tol"
            if outcome == "stagnated"
            else "raise max_iter or take more landmarks, or accept this distance as tol"
        )
    if refined.landmark_coef.any():
        said += "; the landmark model is returned, as the refined one is not known to be closer to exact"
    warn_user(f"after {reached.n_products} products with the kernel matrix {said}", ConvergenceWarning)


def _tolerance(fit):
    """Return the distance that "auto" asks of each target; a constant target has its size in place of the deviation."""
    deviation, size = np.sqrt(fit.centred.target_variance), np.abs(fit.target_origin)
    unit = np.where(deviation > 0, deviation, np.where(size > 0, size, 1.0))
    return np.clip(_TOL, _LEAST_TOL * unit, _TOL * unit)


def _function(refined, kernel, landmarks):
    """Return the function with the points that have coefficients."""
    rows, dual_coef = refined.rows, [refined.dual_coef, refined.landmark_coef]
    check_coefficients(np.concatenate(dual_coef), refined.intercept)
    present = np.flatnonzero(rows.passes.row_counts())
    dual_coef[0] = dual_coef[0][present]
    used = [k for k in (0, 1) if dual_coef[k].any()] or [0]
    coefficients = np.concatenate([dual_coef[k] for k in used])
    if kernel.pairwise:
        numbers = [rows.numbers[present], landmarks.indices]
        return Function(kernel, None, np.concatenate([numbers[k] for k in used]), coefficients, refined.intercept)
    points = [rows.passes.take(present).features, landmarks.points]
    return Function(kernel, stack_rows([points[k] for k in used]), None, coefficients, refined.intercept)
