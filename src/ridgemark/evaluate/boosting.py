"""Gradient boosting of scikit-learn by cross-validation, to compare a fit with."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ridgemark.checks.table import Table, read_table
from ridgemark.errors import DataError
from ridgemark.rows.places import as_written

_MOST_LEVELS = 250  # of a category of boosting; more are numbers
_FEWEST = 20  # rows


@dataclass(frozen=True)
class BoostingErrors:
    """Errors of boosting on rows left out by cross-validation.

    Attributes
    ----------
    n_rows, n_splits : int
        Rows, and parts that were left out one after the other.
    rms, explained : float or None
        Of numbers: the error in units of the target, and `1 - (rms/sd)^2`.
    log_loss, accuracy : float or None
        Of labels.
    """

    n_rows: int
    n_splits: int
    rms: float | None = None
    explained: float | None = None
    log_loss: float | None = None
    accuracy: float | None = None

    def __str__(self) -> str:
        where = f"on {self.n_rows:,} rows by cross-validation in {self.n_splits} parts"
        if self.rms is not None:
            return f"RMS {as_written(self.rms)}, {self.explained:.1%} explained, {where}"
        return f"{self.accuracy:.1%} right, log loss {self.log_loss:.4g}, {where}"


def boosting(
    X: Any, y: Any = None, *, n_splits: int = 5, groups: Any = None, classes: bool | None = None, random_state: Any = 0
) -> BoostingErrors:
    """Return the errors of scikit-learn's gradient boosting with its defaults, by cross-validation.

    Text and categories are categories of boosting, and gaps stay gaps. Of a very large table stretches of rows are
    read, as by `ridgemark.check`.

    Parameters
    ----------
    X, y
        The table and its target, as for `ridgemark.check`.
    n_splits : int, default=5
        Parts of the rows, each predicted from the others.
    groups : array of shape (n,), optional
        Rows of one group stay in one part.
    classes : bool, optional
        Whether the target holds labels; by default text and booleans do.
    random_state : int, default=0
        Seed of the parts and of boosting.

    Returns
    -------
    BoostingErrors
    """
    table = read_table(X, np.asarray(y) if isinstance(y, list | tuple) else y)
    target = table.target
    if target is None:
        raise DataError("boosting needs a target; give y, or the name of its column")
    labelled = (target.has_levels or target.kind == "boolean") if classes is None else classes
    if table.n_looked_at < max(_FEWEST, n_splits):
        raise DataError(f"boosting by cross-validation needs {_FEWEST} rows or more, got {table.n_looked_at}")
    features, categorical = _features(table)
    labels = None if groups is None else np.asarray(groups)[table.rows]
    observed = target.codes if labelled else target.values
    predicted = _left_out(features, categorical, observed, labelled, n_splits, labels, random_state)
    if labelled:
        chances = np.clip(predicted[np.arange(len(observed)), observed], 1e-15, 1.0)
        right = float(np.mean(predicted.argmax(axis=1) == observed))
        return BoostingErrors(len(observed), n_splits, log_loss=float(-np.log(chances).mean()), accuracy=right)
    squares, spread = float(np.mean((observed - predicted) ** 2)), float(np.var(observed))
    explained = 1 - squares / spread if spread > 0 else 0.0
    return BoostingErrors(len(observed), n_splits, rms=float(np.sqrt(squares)), explained=explained)


def _features(table: Table) -> tuple[Any, Any]:
    """Return the columns as numbers with gaps, and which of them are categories."""
    columns = [column for column in table.columns if column.n_different > 0] or list(table.columns)
    as_categories = [column.has_levels and column.n_different <= _MOST_LEVELS for column in columns]
    return np.stack([column.values for column in columns], axis=1), np.array(as_categories)


def _left_out(
    features: Any, categorical: Any, y: Any, labelled: bool, n_splits: int, groups: Any, random_state: Any
) -> Any:
    """Return the predictions of rows left out: numbers, or probabilities (n, K)."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    rare = labelled and np.bincount(y).min() < n_splits
    splits: Any = (
        GroupKFold(n_splits)
        if groups is not None
        else ((KFold if rare or not labelled else StratifiedKFold)(n_splits, shuffle=True, random_state=random_state))
    )
    make: Any = HistGradientBoostingClassifier if labelled else HistGradientBoostingRegressor
    predicted = np.zeros((len(y), int(y.max()) + 1) if labelled else len(y))
    for train, test in splits.split(features, y, groups):
        model = make(categorical_features=categorical, random_state=random_state).fit(features[train], y[train])
        if labelled:
            predicted[np.ix_(test, model.classes_)] = model.predict_proba(features[test])
        else:
            predicted[test] = model.predict(features[test])
    return predicted
