"""Kernel ridge regression from landmarks, as a scikit-learn regressor."""

from dataclasses import replace
from typing import Any, Self

from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators.calibration import draw_rows, noise_before, still_two_valued, with_calibration
from ridgemark.estimators.cautions import (
    warn_of_constant,
    warn_of_edge,
    warn_of_gradient,
    warn_of_rounding,
    warn_of_scales,
)
from ridgemark.estimators.checkpoint import checkpointed
from ridgemark.estimators.computing import computing
from ridgemark.estimators.hints import stores_parameters
from ridgemark.estimators.regression_model import RegressionModel, Regressor
from ridgemark.estimators.target_choice import choose_transform, with_transform
from ridgemark.explaining import draw_background, merged_background
from ridgemark.fitted import FittedModel
from ridgemark.fitting import Sums, solve_squares
from ridgemark.fitting.fit import fit
from ridgemark.losses import loss_sums
from ridgemark.path import keep_rows, leave_one_out
from ridgemark.rows.distinct import count_distinct, merge_smallest
from ridgemark.sampling import make_generator
from ridgemark.transforms import transformed_rows


class NystromRidge(Regressor, RegressionModel):
    """Kernel ridge regression from landmarks.

    Minimises `sum_i w_i (y_i - f(x_i))^2 + scaled_ridge |f|^2` over functions `f(x) = sum_j c_j k(x, z_j)` of the
    landmarks z, with `scaled_ridge = ridge * sum_i w_i`, which scikit-learn's `KernelRidge` calls `alpha`. The
    documentation calls `ridge` lambda.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="auto"
        A name, a `ridgemark.kernels` object, a callable `(X, Z) -> block` or `(x, z) -> number`, or "precomputed".
        "auto" is a `Mixture` of radial parts, a Laplacian and a linear part, whose weights are tuned; without tuning it
        is "gaussian".
    bandwidth : str, Tuner, float or array of shape (n_features,), default="auto"
        For a kernel given by name. "auto" tunes the metric by leave-one-out: one bandwidth for all columns, one per
        feature, or a matrix, whichever is best on other rows; "shared", "per_feature" and "metric" ask for one of these
        levels, and a `ridgemark.tuning.Tuner` sets rows and evaluations too. "median" is the median distance between
        distinct rows. In all of these every column is measured in units of its standard deviation. A number or numbers
        are bandwidths of the columns as they are. A Kernel object has its own bandwidth, a polynomial kernel takes the
        median, and a kernel without a bandwidth (linear, cosine, a callable) takes the columns as they are.
    ridge : "loo", "gcv", float or array of floats, default="loo"
        Regularisation lambda: a larger one gives a smoother fit. One number, a list to choose from by leave-one-out,
        or "loo" or "gcv" to search fourteen decades by leave-one-out or generalised cross-validation. A tuned fit
        takes its first ridge, at which landmarks are drawn, from the tuner.
    ridge_per_target : bool, default=False
        Whether each target has its own ridge.
    n_landmarks : int or "auto", default="auto"
        "auto" takes all distinct rows when there are at most 500, and otherwise about two for every dimension of
        d_eff(lambda epsilon), within a limit on the work such as `n p^2 + 4 p^3 <= 2.75e11`; see
        `ridgemark.selection.count_landmarks`.
    selection : str, Selection or array of points, default="auto"
        How landmarks are chosen: "auto" (randomly pivoted Cholesky where its n x p factor fits into the memory budget,
        and otherwise leverage scores), "uniform", "diagonal", "leverage", "recursive", "bless", "rpcholesky", "kmeans",
        "rank_leverage", an object of `ridgemark.selection`, or the landmarks themselves.
    risk_tolerance : float, default=0.1
        The paper's epsilon: scores are computed at lambda epsilon. With `certify_with` the condition that the fit must
        meet: a risk of at most `(1 + 2 epsilon)^2` times the exact one; for an audit, a distance of at most epsilon
        times the leave-one-out error.
    failure_probability : float, default=0.05
        The paper's rho.
    certify_with : {None, "audit", "operator", "trace"}, default=None
        A kind of certificate that turns `risk_tolerance` into a guarantee: with `n_landmarks="auto"` landmarks are
        doubled until it is met or no rows are left to add. `tolerance_` says whether it was met.
    solver : {"auto", "direct", "gradient"}, default="auto"
        "direct" sums the products of features, "gradient" solves for many landmarks by conjugate gradients; "auto"
        takes the one with less work by `ridgemark.solvers.solver_cost`. Before the gradient solver runs, the ridge is
        chosen with 2,000 of the landmarks.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised constant jointly.
    target_transform : {None, "log", "sqrt", "yeo-johnson", "auto"}, default=None
        A map of one target, to which the model is fitted: for targets with a long tail, whose noise grows with their
        size. "auto" takes none, the root or the map of Yeo and Johnson, by leave-one-out in units of the target.
        Predictions are means, `alpha + beta g^-1(f)` with two coefficients from rows left out, and positive where all
        targets are. Intervals are quantiles, carried over as they are; a prediction may lie outside its interval. See
        the guide.
    effort : {"fast", "default", "high"}, default="default"
        How much work a fit does: "fast" tunes on at most 1,500 rows, and takes fewer landmarks of many rows, as the
        limit on their work is an eighth; "high" tunes longer, and takes up to three times as many landmarks. A `Tuner`,
        a kernel that is not tuned and `n_landmarks` win over it.
    categorical_features : "from_dtype", list of names or positions, mask, or None, default="from_dtype"
        Which columns of a table are categories. "from_dtype": those of text or of a categorical type. A list or mask:
        its columns too. None: no column, and text is refused. See the page on tables.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where blocks of rows and large matrices are computed: "cuda" on all GPUs with torch ("cuda:1" on one), "auto" on
        GPUs if torch finds any. If rows are torch tensors, computation is on their own device, and results are tensors.
    memory_budget : int, optional
        Bytes for the blocks of a pass; 1 GiB when not given.
    random_state : int, RandomState, Generator or None, default=None
        Seed of all draws.
    progress : bool or callable, default=False
        Whether to write progress to the error stream, or a callback that receives it:
        `progress(what, rows_done, n_rows)`.

    Attributes
    ----------
    landmarks_ : array or sparse matrix of shape (p, n_encoded)
        The landmarks' rows, in the features that the columns become.
    encoded_names_ : list of str
        Names of these features: those of the columns, where columns are numbers without gaps.
    landmark_indices_ : array of shape (p,)
        Their row numbers in the training data; None if they are not training rows.
    dual_coef_ : array of shape (p,) or (p, n_targets)
        The coefficients c above.
    intercept_ : float or array of shape (n_targets,)
        The constant; zero without `fit_intercept`.
    kernel_ : Kernel
        The kernel used, with its bandwidth; a linear kernel with an intercept also has its origin.
    bandwidth_ : float, array or None
        The kernel's bandwidth, of a mixture that of its radial parts, which multiply it by their lengths; None for a
        kernel without one, and where a matrix replaces it.
    metric_ : array of shape (n_encoded, r) or None
        The matrix P of a kernel of `|P'(x - z)|`; None for a kernel without one.
    tuning_ : TuningResult
        Levels, trajectories, how each level was judged and what was chosen; exists if the bandwidth was tuned.
    feature_importances_ : array of shape (n_features,)
        How much the prediction changes when a column takes its value from another row of the fit, as shares with the
        sum one; computed when it is first read. Exists for every kernel of columns, unless columns are very many.
    importance_ : Importance
        The same as shares of the variance of the prediction, with their standard errors.
    derivative_shares_ : array of shape (n_features,)
        Each column's share of the mean squared gradient of the prediction times the column's variance; exists for every
        kernel with known derivatives, if `(landmarks + 1000) * columns` is at most 2e7. For a column of more than 100
        levels half the mean squared difference from predictions with another row's level is taken.
    ridge_, scaled_ridge_ : float, or array of shape (n_targets,) with `ridge_per_target`
        The ridge, and its product with the sum of weights.
    ridge_path_ : RidgePath
        Errors and dimensions over the ridges searched; absent if `ridge` is one number. With "loo" and more than 1,000
        features it has the ridges tried, whose errors are of a sample of 2,048 rows, as `ridge_path_.sample` says; the
        error at `ridge_` is of all rows.
    loo_residuals_ : array of shape (n,) or (n, n_targets)
        Leave-one-out residuals of all rows, for fixed landmarks and `scaled_ridge_`; exist if the ridge was chosen by
        leave-one-out, or the fit had groups, with which each row leaves.
    n_groups_ : int
        Number of groups that left together; exists after a fit with groups.
    target_transform_ : TargetTransform
        The map of the target, with `target_transform`. In units of the target are predictions, intervals,
        `loo_residuals_` and effects; `dual_coef_`, `ridge_path_`, `calibration_`, `diagnose`, certificates and
        `distance_to_exact` speak of the mapped target.
    calibration_ : Calibration
        Rows and leave-one-out residuals from which intervals are computed; exists after a fit, unless the ridge was
        chosen by generalised cross-validation, and after `calibrate`. `calibration_.guaranteed` says whether coverage
        is proved.
    effective_dimension_ : Bracket
        Lower and upper bound of d_eff of exact kernel ridge regression at `ridge_`; with an intercept that of the
        centred kernel, without the constant.
    certificate_ : Certificate
        How far the fit is from exact: from the trace of K - L, at no extra cost, or as measured by `certify_with`. None
        after the gradient solver, which sums no trace, and for targets so large that distances exceed the
        floating-point range.
    tolerance_ : Tolerance
        Whether `risk_tolerance` was met, with `certify_with`.
    solver_ : {"direct", "gradient"}
        The solver used; after "gradient" `solver_bound_` is an upper bound on the RMS distance of the fitted values
        from those of the direct solution.
    n_landmarks_ : int
        Number of landmarks, p.
    landmark_count_ : LandmarkCount
        Which rule decided their number, and how many draws Theorem 3 requires.
    leverage_scores_ : ScoreBracket
        The scores by which landmarks were drawn, with their ridge; exist if landmarks were drawn by leverage scores.
    coherence_ : Bracket
        `d_mof/d_eff` of those scores.
    n_passes_, n_kernel_evaluations_ : int
        Passes over the rows and kernel entries the fit took.
    waiting_share_ : float
        Share of the passes' time, in [0, 1], spent waiting for rows to be read; measured in the last `fit` or
        `partial_fit`, and not saved.

    Examples
    --------
    >>> import numpy as np
    >>> from ridgemark import NystromRidge
    >>> x = np.linspace(0, 1, 200)[:, None]
    >>> model = NystromRidge(bandwidth=0.1, ridge=1e-4, n_landmarks=30, random_state=0)
    >>> bool(model.fit(x, np.sin(6 * x[:, 0])).score(x, np.sin(6 * x[:, 0])) > 0.999)
    True
    """

    @stores_parameters
    def __init__(
        self,
        kernel="auto",
        *,
        bandwidth="auto",
        ridge="loo",
        ridge_per_target=False,
        n_landmarks="auto",
        selection="auto",
        risk_tolerance=0.1,
        failure_probability=0.05,
        certify_with=None,
        solver="auto",
        fit_intercept=True,
        target_transform=None,
        effort="default",
        categorical_features="from_dtype",
        device="cpu",
        memory_budget=None,
        random_state=None,
        progress=False,
    ):
        """Take the parameters; they are checked by `fit`."""

    @computing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the fit, whose landmarks stay; the first call, without a fit before, chooses them from its rows.

        Moments of disjoint rows add, so any number of calls gives the coefficients that `fit` on all their rows gives
        for the same kernel and landmarks. Earlier rows cannot be visited again: where the ridge is searched by
        leave-one-out, 2,048 distinct rows drawn from all batches are kept for it. If an earlier call kept no rows,
        because its ridge was given, the ridge is chosen by generalised cross-validation, as `ridge_path_.criterion`
        says. `ridge_path_.on_edge` says whether the best ridge lies at the edge of those searched; `partial_fit` gives
        no warning about this, since more rows may come. The solver is the direct one, and `certify_with` applies to
        `fit` only.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`; rows with groups are refused, as a group may have rows in several calls.

        Returns
        -------
        self
        """
        with self._changing():
            self._model = self._fitted_with(X, y, sample_weight)
        return self

    def _fitted(self, X, y, sample_weight, checkpoint, groups):
        """Return the model of these rows, fitted to the transformed target."""
        if self.target_transform is None:
            return super()._fitted(X, y, sample_weight, checkpoint, groups)
        if groups is not None or getattr(X, "has_groups", False):
            raise ParameterError("target_transform takes no groups; give mapped targets, for example numpy.log(y)")
        recipe = self._recipe()
        source, form = self._open(X, y, sample_weight)
        transform = choose_transform(self, recipe, source)
        with checkpointed(self, checkpoint, source) as (journal, random_state):
            passes = self._training_passes(transformed_rows(source, transform), journal)
            model = self._model_of(recipe, passes, form, random_state)
        return with_transform(model, transform, passes)

    def _model_of(self, recipe, passes, form, random_state, may_grow=False):
        """Return the model of the rows of these passes; `may_grow` says whether further rows may be added."""
        fitted = fit(passes, recipe, make_generator(random_state))
        solved, choosing = fitted.solved, fitted.rows.choosing
        model = self._without_residuals(fitted, form)
        if solved.left_out is not None or may_grow:
            model = replace(model, rows=replace(model.rows, sample=fitted.kept))
        model = self._with_residuals(model, fitted, random_state)
        if solved.gradient is not None:
            warn_of_gradient(solved.gradient)
        warn_of_scales(model.function.kernel, passes)
        warn_of_constant(solved.fit, passes.source.target_names)
        if not may_grow and (solved.fit.centred.target_variance > 0).any():
            warn_of_edge(solved.path)
        warn_of_rounding(choosing, solved.fit, model.function)
        return replace(model, cost=passes.cost)

    def _with_residuals(self, model, fitted, random_state):
        """Return the model with its leave-one-out residuals, and intervals from them; a given ridge has them later."""
        solved, choosing = fitted.solved, fitted.rows.choosing
        if solved.left_out is not None:
            model = self._with_left_out(model, choosing, solved.left_out)
            return with_calibration(model, choosing, solved.left_out, True, random_state)
        if fitted.rows.are_sampled and solved.path is not None and solved.path.criterion == "loo":
            left_out = leave_one_out(choosing, solved.fit)
            return with_calibration(model, choosing, left_out, True, random_state)
        if model.sums is not None and solved.path is None and choosing.leaves_groups:
            left_out = leave_one_out(choosing, solved.fit)
            model = self._with_left_out(model, choosing, left_out)
            return with_calibration(model, choosing, left_out, True, random_state)
        if model.sums is not None and solved.path is None:
            return replace(model, drawn=draw_rows(model, choosing, True, random_state))
        return model

    def _fitted_with(self, X, y, sample_weight):
        """Return the model with these rows added."""
        recipe, known = replace(self._recipe(), solver="direct", certify_with=None), getattr(self, "_model", None)
        if self.target_transform is not None or getattr(known, "transform", None) is not None:
            raise ParameterError(
                "partial_fit does not transform targets; call fit with all rows, or give partial_fit mapped targets"
            )
        if getattr(X, "has_groups", False):
            raise ParameterError("partial_fit takes no groups, as a group may have rows in several calls; use fit")
        if known is None:
            source, form = self._open(X, y, sample_weight, keep_constant=True)
            return self._model_of(recipe, self._training_passes(source), form, self.random_state, may_grow=True)
        self._check_more_rows(known)
        source, _ = self._open(X, y, sample_weight, reset=False)
        passes, sums = self._passes(source, known.sums.weight_unit), known.sums  # sums add in one unit of weights
        rows = replace(
            known.rows,
            hashes=merge_smallest(known.rows.hashes, passes.distinct_rows().smallest),
            two_valued=still_two_valued(known.rows.two_valued, passes.columns()),
            sample=_sample(known, passes, recipe),
        )
        total = Sums(sums.factor, _sums_with(known, passes, recipe), sums.fit_intercept, sums.target_origin)
        sample = None if rows.sample is None else rows.sample.passes(passes.memory_budget)
        solved = solve_squares(passes, total, recipe, sample, n_distinct=count_distinct(rows.hashes))
        function = self._function(known.function.kernel, known.function.points, known.function.numbers, solved)
        model = FittedModel(
            schema=known.schema,
            function=function,
            choice=known.choice,
            solution=self._solution(solved, known.schema.targets),
            rows=rows,
            cost=known.cost,
            sums=solved.fit,
            tuning=known.tuning,
            background=merged_background(known.background, draw_background(passes, None, passes.total_weight)),
            noise=noise_before(known),
        )
        warn_of_rounding(passes, solved.fit, function)
        self._warn_of_unseen(source)
        return replace(model, cost=known.cost + passes.cost)

    def _check_more_rows(self, known):
        """Refuse to add rows where their sums would not be those of the fit."""
        if known.rows.n_groups is not None:
            raise ParameterError(
                "this model was fitted with groups of rows; fit it to all rows again, with their groups"
            )
        sums = self._sums("partial_fit")
        if known.function.kernel.pairwise:
            raise DataError(
                "further rows of a precomputed kernel do not hold their own k(x, x), which partial_fit needs; use fit"
            )
        if bool(self.fit_intercept) != sums.fit_intercept:
            raise ParameterError(
                f"fit_intercept was {sums.fit_intercept} for the rows so far and is {self.fit_intercept} now; "
                "partial_fit cannot change it, fit anew"
            )


def _sample(known, passes, recipe):
    """Return a sample of the rows of all batches for leave-one-out; None where a batch gave none."""
    searched = recipe.criterion == "loo" and not recipe.one_ridge
    return known.rows.sample + keep_rows(passes) if searched and known.rows.sample is not None else None


def _sums_with(known, passes, recipe):
    """Return the sums of the fit with those of further rows added."""
    fit, moments = known.sums, known.sums.moments
    total = moments.total_weight + float(passes.row_counts().sum())
    smallest = recipe.smallest_ridge(total) if recipe.one_ridge else None
    return moments + loss_sums(passes, fit.factor, fit.target_origin, smallest)
