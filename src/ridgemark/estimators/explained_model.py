"""What is asked of any fitted model from landmarks about its predictions: what matters, curves, novelty."""

from typing import Any

import numpy as np

from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators.computing import FittedName, computing, in_range
from ridgemark.estimators.kernel_model import KernelModel
from ridgemark.estimators.notebook import summary_html
from ridgemark.estimators.plotting import Plots
from ridgemark.explaining import Contributions, Curve, Novelty, contributions_of, curve_of, novelty_of
from ridgemark.parameters import real_number

_BACKGROUND, _MOST_BACKGROUND = 100, 10_000  # rows that contributions compare with
_MATTERS = 0.01  # importance of a column whose range counts
_TOO_LONG = ": a precomputed kernel has no columns, and for very many columns it would take too long"


class ExplainedModel(KernelModel):
    """Explanations of the linear predictor: predictions of numbers, and log-odds of classes."""

    importance_ = FittedName(lambda model: model.importance, optional=True, reason=_TOO_LONG)
    feature_importances_ = FittedName(
        lambda model: model.importance and model.importance.normalised, optional=True, reason=_TOO_LONG
    )
    derivative_shares_ = FittedName(lambda model: model.derivative_shares, optional=True)

    @property
    def plot(self) -> Plots:
        """Plots on axes of matplotlib: `plot.importance()`, `.curve("area")`, `.contributions(X, row)`, and more."""
        self._require_fit()
        return Plots(self)

    @computing
    def curve(self, column: Any) -> Curve:
        """Return the prediction as a function of one column, the other columns as in rows of the fit.

        Parameters
        ----------
        column : str or int
            The name of the column, or its position.

        Returns
        -------
        Curve
            `grid`, `mean` over 200 rows of the fit, `rows`, and a band `low` to `high`, which shows how much the other
            columns change the prediction. For classes it is the log-odds.
        """
        background = self._background("curve")
        form = self._model.schema
        position = self._position_of(column)
        field = None if form.table is None else form.table.fields[position]
        features = np.flatnonzero(form.owners == position)
        flat = self._model.function.dual_coef.shape[1] == 1
        return curve_of(self._model.function.at, form.columns[position], field, features, background.rows, flat)

    @computing
    def contributions(self, X: Any, background: Any = None) -> Contributions:
        """Return what each column contributes to the prediction at each row; of classes, to the log-odds.

        The contributions of a row add up to its prediction minus the mean prediction over the background. They are
        interventional Shapley values for parts of the kernel that are products over columns (Gaussian and Laplacian
        kernels and their products) or linear, and path integrals from the background to the row for other parts.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        background : array, sparse matrix, DataFrame or RowSource, optional
            The rows to compare with, at most 10,000; a RowSource has its own weights. By default 100 rows of the fit,
            drawn by their weights.

        Returns
        -------
        Contributions
            `values`, `base`, `kind` and `error`; `to_shap()` gives an object of the package shap.
        """
        kept, function, form = self._background("contributions"), self._model.function, self._model.schema
        source = self._rows(X)
        rows, weights = kept.rows[:_BACKGROUND], np.ones(min(len(kept), _BACKGROUND))
        if background is not None:
            rows, weights = self._rows_to_compare(background)
        passes = self._passes(source)
        base = weights @ function.at(rows) / weights.sum()
        values, errors, kind = contributions_of(
            *(passes, function.kernel, function.points, function.dual_coef, rows, weights),
            *(form.owners, len(form.columns), function.values(passes) - base),
        )
        values = in_range(values, "a contribution", "rescale the columns or the targets")
        self._warn_of_unseen(source)
        flat = values.shape[2] == 1
        return Contributions(
            values[:, :, 0] if flat else values,
            float(base[0]) if flat else base,
            kind,
            errors[:, 0] if flat else errors,
            form.columns,
            np.asarray(X) if hasattr(X, "__array__") and np.ndim(X) == 2 else None,
        )

    def _rows_to_compare(self, background):
        """Return rows given as a background, as features, and their weights."""
        passes = self._passes(self._rows(background))
        n_rows = passes.source.n_rows
        if n_rows > _MOST_BACKGROUND:
            raise DataError(f"background must have at most {_MOST_BACKGROUND:,} rows, got {n_rows:,}; give a sample")
        weights = passes.row_counts()
        if not weights.any():
            raise DataError("background must have a row of positive weight; give other weights")
        return passes.take(np.arange(n_rows)).features, weights

    @computing
    def novelty(self, X: Any, level: float = 0.05) -> Novelty:
        """Return how far rows are from the rows of the fit.

        The measure is the posterior variance of the function at the row, in the distance of the kernel. It is shown as
        a rank: the share of the rows of the fit, each left out, that are at least as far. A row beyond the range of a
        column whose importance is at least 1% ranks before those within; columns in which a row lies beyond their
        range are named separately. What the kernel ignores, it cannot see: a column without influence makes no row
        novel.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or RowSource
            The rows.
        level : float, default=0.05
            The largest share at which a row is flagged; about this share of rows like those of the fit is flagged too.

        Returns
        -------
        Novelty
            `share`, `flag` and `beyond`.
        """
        if not 0.0 < real_number(level) < 1.0:
            raise ParameterError(f"level must be a number between 0 and 1, got {level!r}")
        background = self._background("novelty")
        sums, form, source = self._sums("novelty", compact=True), self._model.schema, self._rows(X)
        importance = self._model.importance
        matters = np.zeros(len(form.columns)) if importance is None else importance.normalised
        about_columns = form.columns, form.owners, matters >= _MATTERS
        novelty = novelty_of(self._passes(source), sums, background, *about_columns, float(level))
        self._warn_of_unseen(source)
        return novelty

    def _html_repr(self):
        """Return the diagram of scikit-learn, and of a fitted model what the fit found."""
        return super()._html_repr() + (summary_html(self) if hasattr(self, "_model") else "")

    def _background(self, what):
        """Return the rows of the fit that explanations compare with."""
        self._require_fit()
        background = self._model.background
        if background is None:
            raise DataError(f"{what} needs columns, which rows of a precomputed kernel do not have")
        return background

    def _position_of(self, column):
        """Return the position of a column that is given by its name or position."""
        names = self._model.schema.columns
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, int | np.integer) and not isinstance(column, bool) and 0 <= column < len(names):
            return int(column)
        shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        raise ParameterError(f"column must be one of {shown}, or a position from 0 to {len(names) - 1}, got {column!r}")
