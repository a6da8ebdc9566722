"""Plots of a fitted model on axes of matplotlib: the drawings of the page of a fit."""

from typing import Any

import numpy as np

from ridgemark.errors import DataError
from ridgemark.report import charts
from ridgemark.report.fit_words import predictor_name
from ridgemark.report.plots import draw_on
from ridgemark.rows import ArrayRows, RowSource, open_rows


class Plots:
    """Plots of a fitted model; each takes axes, or None for new ones, and returns the axes.

    Needs the extra `report`.
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    def importance(self, *, ax: Any = None) -> Any:
        """Draw the importances of the columns as bars."""
        return self._drawn(ax, charts.importance_chart(self._model), "importances of several columns")

    def curve(self, column: Any, *, output: int = 0, ax: Any = None) -> Any:
        """Draw the prediction along a column, with its band and three single rows."""
        return self._drawn(ax, charts.curve_chart(self._model.curve(column), output, predictor_name(self._model)))

    def contributions(self, X: Any, row: int = 0, *, output: int = 0, ax: Any = None) -> Any:
        """Draw how the columns lead from the mean prediction to that of a row of X."""
        model = self._model
        rows = model._passes(model._rows(X)).take(np.array([row])).features
        source = ArrayRows(rows)
        source.encoded = True  # these are features, not the columns of a table
        words, name = charts.words_of(model._model.schema, rows), predictor_name(model)
        return self._drawn(ax, charts.waterfall_chart(model.contributions(source), 0, words[0], output, name))

    def residuals(self, X: Any = None, y: Any = None, *, target: int = 0, ax: Any = None) -> Any:
        """Draw residuals against predictions: of X and y, or of calibration rows left out."""
        model = self._model
        if X is not None:
            predicted = np.asarray(model.predict(X), dtype=float).reshape(len(y), -1)[:, target]
            residuals = np.asarray(y, dtype=float).reshape(len(y), -1)[:, target] - predicted
        elif hasattr(model, "calibration_") and hasattr(model.calibration_, "residuals"):
            source = ArrayRows(model.calibration_.rows)
            source.encoded = True
            residuals = model.calibration_.residuals[:, target]
            predicted = np.asarray(model.predict(source)).reshape(len(residuals), -1)[:, target]
        else:
            raise DataError("the model has no leave-one-out residuals; give rows, as in plot.residuals(X, y)")
        return self._drawn(ax, charts.residual_chart(predicted.tolist(), residuals.tolist()))

    def calibration(self, X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
        """Draw what is observed in groups of rows against what is predicted: of classes, counts, amounts and quantiles.

        Rows are X and y, or a RowSource with its target; without any, those that a fit of counts, amounts or quantiles
        keeps, each predicted without itself.
        """
        from ridgemark.estimators.measuring import kind_of  # which imports the estimators

        model = self._model
        if X is None:
            rows = kind_of(model).kept(model) if hasattr(model, "loss_") else None
        else:
            rows = kind_of(model).held_out(model, X if isinstance(X, RowSource) else open_rows(X, y))
        if rows is None and hasattr(model, "classes_"):
            raise DataError("a calibration plot of classes needs rows: plot.calibration(X, y)")
        groups = (rows or {}).get("calibration") or [[0.0]]
        chart = charts.calibration_chart(model, rows) if len(groups[0]) > 1 else None
        return self._drawn(ax, chart, "calibration of means, shares or probabilities")

    def tuning(self, *, ax: Any = None) -> Any:
        """Draw the errors of the judging rows in the course of tuning."""
        tuning = getattr(self._model, "tuning_", None)
        return self._drawn(ax, None if tuning is None else charts.tuning_chart(tuning), "course of tuning")

    def _drawn(self, ax: Any, chart: Any, what: str = "") -> Any:
        if chart is None:
            raise DataError(f"this model has no {what} that could be drawn")
        return draw_on(ax, chart)
