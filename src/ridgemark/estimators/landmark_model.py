"""Public names of a model fitted from landmarks, and how it is saved."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark.effects import effects_of_columns, effects_of_table
from ridgemark.errors import DataError
from ridgemark.estimators.calibration import repeats_and_columns
from ridgemark.estimators.cautions import warn_of_few_rows
from ridgemark.estimators.computing import FittedName, check_coefficients, in_form
from ridgemark.estimators.explained_model import ExplainedModel
from ridgemark.estimators.saving import save_model
from ridgemark.explaining import draw_background
from ridgemark.fitted import Choice, FittedModel, Function, RowFacts, Solution
from ridgemark.kernels import has_bandwidth
from ridgemark.rows import ArrayRows, share_in_common
from ridgemark.selection import Uniform, make_selection
from ridgemark.solvers import LandmarkFit
from ridgemark.transforms import transformed_rows
from ridgemark.tuning import Tuner

_BEYOND = ", as a fit of Dask rows beyond memory_budget does; a model saved without sums=True has none either"


class LandmarkModel(ExplainedModel):
    """What all models from landmarks have in common; its children say what the model of some rows is."""

    _rescale = "rescale the targets or choose a larger ridge"  # the remedy for numbers beyond range
    n_groups_ = FittedName(lambda model: model.rows.n_groups, optional=True, reason=": no groups were given")
    landmarks_ = FittedName(lambda model: model.function.points)
    landmark_indices_ = FittedName(lambda model: model.function.numbers)
    n_landmarks_ = FittedName(lambda model: model.function.n_points)
    landmark_count_ = FittedName(lambda model: model.choice.count)
    leverage_scores_ = FittedName(lambda model: model.choice.scores, optional=True, reason=_BEYOND)
    coherence_ = FittedName(lambda model: model.choice.scores and model.choice.scores.coherence, optional=True)
    ridge_ = FittedName(lambda model: _per_target(model, model.solution.ridge))
    scaled_ridge_ = FittedName(lambda model: _per_target(model, model.solution.scaled_ridge))
    ridge_path_ = FittedName(lambda model: model.solution.path, optional=True)
    solver_ = FittedName(lambda model: model.solution.solver)
    solver_bound_ = FittedName(lambda model: in_form(model, model.solution.solver_bound), optional=True)
    effective_dimension_ = FittedName(lambda model: model.solution.effective_dimension)
    certificate_ = FittedName(lambda model: model.certificate)
    tolerance_ = FittedName(lambda model: model.solution.tolerance, optional=True)
    loo_residuals_ = FittedName(
        lambda model: in_form(model, model.left_out and model.left_out.residuals), True, _BEYOND
    )
    target_transform_ = FittedName(lambda model: model.transform, optional=True)
    calibration_ = FittedName(lambda model: model.calibrated, optional=True)
    waiting_share_ = FittedName(lambda model: model.cost.waiting_share if model.cost.seconds else None, optional=True)

    def save(self, path: str | PathLike[str], overwrite: bool = True, sums: Any = "predict") -> Path:
        """Write the fitted model to one file, of arrays and JSON, whole or not at all; `ridgemark.load` reads it.

        A loaded model gives the same predictions bit for bit.

        Parameters
        ----------
        path : str or path
            The file; its folder must exist.
        overwrite : bool, default=True
            Whether an existing file is replaced.
        sums : {"predict", True, False}, default="predict"
            What to keep of the sums over rows. "predict", in 2 p^2 bytes, keeps what standard deviations, intervals and
            effects need, which then differ by less than 1e-4 of their size. True keeps all, in 24 p^2 bytes, and what
            is known of every row, also for `partial_fit`, `calibrate`, `certify`, `distance_to_exact` and `diagnose`.
            False keeps nothing but predictions and effects without standard errors.

        Returns
        -------
        path : Path
        """
        return save_model(self, path, overwrite, sums=sums)

    def _choice(self, fit):
        """Return how the landmarks were chosen."""
        warn_of_few_rows(self.n_landmarks, fit.count)
        landmarks, sums = fit.landmarks, fit.sums.moments.without_products()
        if (count := len(fit.solved.ridges)) > len(sums.target_sum):  # quantiles share one response
            shared = ("cross", "target_sum", "target_square")
            sums = replace(sums, **{name: np.repeat(getattr(sums, name), count, axis=-1) for name in shared})
        by_chance = isinstance(make_selection(self.selection), Uniform) and self.n_landmarks != "auto"
        return Choice(
            fit.count,
            None if fit.rows.are_sampled else landmarks.scores,
            sums,
            landmarks.scores is not None,
            by_chance and not (isinstance(self.bandwidth, str | Tuner) and has_bandwidth(self.kernel)),
        )

    def _function(self, kernel, points, numbers, solved):
        """Return the function of these points with the coefficients of a solution."""
        solution = solved.fit if solved.gradient is None else solved.gradient
        check_coefficients(solution.dual_coef, solution.intercept, self._rescale)
        return Function(kernel, points, numbers, solution.dual_coef, solution.intercept)

    def _solution(self, solved, targets, certificate=None, tolerance=None):
        """Return the ridge, and what chose it."""
        fit, gradient = solved.fit, solved.gradient
        return Solution(
            ridge=solved.ridges,
            scaled_ridge=fit.scaled_ridge * fit.weight_unit,
            effective_dimension=fit.effective_dimension,
            path=solved.path,
            ridge_per_target=bool(getattr(self, "ridge_per_target", False)) and not targets.flat,
            solver="direct" if gradient is None else "gradient",
            solver_bound=None if gradient is None else gradient.bound,
            certificate=certificate,
            tolerance=tolerance,
        )

    def _without_residuals(self, fit, form):
        """Return the model of a fit, without residuals of rows left out."""
        kernel, numbers = fit.sums.factor.cross_kernel.kernel, fit.rows.numbers_of(fit.landmarks.indices)
        function = self._function(kernel, fit.landmarks.points, numbers, fit.solved)
        total = float(fit.rows.summed.total_weight)
        return FittedModel(
            schema=form,
            function=function,
            choice=self._choice(fit),
            solution=self._solution(fit.solved, form.targets, fit.certificate, fit.tolerance),
            rows=row_facts(fit),
            sums=fit.solved.fit if fit.solved.gradient is None else None,
            tuning=fit.kernel.tuning,
            background=None if kernel.pairwise else draw_background(fit.rows.choosing, fit.landmarks.indices, total),
        )

    def _passes_of_fit(self, X, y, sample_weight, groups=None):
        """Return passes over rows of the fit, their weights in the unit of the fit."""
        source, _ = self._open(X, y, sample_weight, reset=False, groups=groups)
        if self._model.transform is not None:
            source = transformed_rows(source, self._model.transform)
        return self._passes(source, self._model.sums.weight_unit)

    def _may_be_of_fit(self, passes):
        """Tell whether so many of these rows equal rows of the fit that they are not new.

        A new row equals one of the fit about as often as rows of the fit equal each other: with a chance of at most
        twice the share of rows that repeat an earlier one.
        """
        model, distinct = self._model, passes.distinct_rows()
        repeats = model.rows.n_duplicates / model.choice.sums.n_rows
        return share_in_common(model.rows.hashes, distinct.smallest) > 2 * repeats

    def _sums(self, what, compact=False):
        """Return what answers `what`, or say why there is nothing; `compact` says whether the compact form does."""
        self._require_fit()
        model = self._model
        found = model.expanded if compact else model.sums
        if isinstance(found, LandmarkFit):
            return found
        if model.solution.solver == "gradient":
            why = (
                f"this fit of {model.function.n_points} landmarks was solved by gradients; fit with "
                'solver="direct" or fewer landmarks'
            )
        else:
            why = (
                "this model was saved without them; save it with sums=True (command line: fit --keep-sums), or fit it "
                "again"
            )
        raise DataError(f"{what} needs the sums that a direct solver keeps, and {why}")

    def _effect_rows(self, X):
        """Return passes over the rows, the function's kernel and coefficients, and the effects of the columns."""
        self._require_fit()
        model = self._model
        if X is None:
            known = model.calibrated
            if known is None:
                raise DataError("the model keeps no rows to take effects at; give the rows, as in effects(X)")
            source = ArrayRows(known.rows, None, known.weights)
        else:
            source = self._rows(X)
        table, names = model.schema.table, model.schema.feature_names
        if table is not None:
            effects = effects_of_table(table, model.rows.two_valued)
        else:
            names = [f"column {j}" for j in range(model.schema.n_features)] if names is None else list(map(str, names))
            effects = effects_of_columns(names, model.rows.two_valued)
        return self._passes(source), model.function.cross_kernel, model.function.dual_coef, effects


def row_facts(fit):
    """Return what is kept of the rows that chose the landmarks."""
    rows, distinct = fit.rows, fit.rows.choosing.distinct_rows()
    found = repeats_and_columns(rows.summed, distinct, fit.sums.factor.cross_kernel.kernel.pairwise)
    n_groups = len(rows.choosing.left_out()) if rows.choosing.has_groups else None
    return RowFacts(**found, hashes=distinct.smallest, sample=None, n_groups=n_groups)


def keep_certificate(estimator, certificate):
    """Make a certificate of the fit, from `certify`, its `certificate_`."""
    model = estimator._model
    estimator._model = replace(model, solution=replace(model.solution, certificate=certificate))


def _per_target(model, values):
    return values if model.solution.ridge_per_target else float(values[0])
