"""Labels of any type, weights of classes, and conformal sets of labels."""

import math
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d

from ridgemark.backends import Floats
from ridgemark.errors import DataError, ParameterError
from ridgemark.estimators.judged import promise_of
from ridgemark.fitted import Classes, ClassScores
from ridgemark.intervals.quantiles import check_coverage
from ridgemark.losses import ClassLoss
from ridgemark.parameters import real_number
from ridgemark.passes import RowPasses
from ridgemark.rows import RowSource, computed, is_dask, text_labels
from ridgemark.rows.cells import is_missing
from ridgemark.rows.columns import as_array
from ridgemark.rows.tables import check_no_gaps

_LABELS = (str, bool, np.bool_, Integral, float, np.floating)


def as_classes(labels: NDArray[Any], totals: Floats, class_weight: Any) -> Classes:
    """Return the classes of positive weight, two at least, from the weights of all labels."""
    values = labels[totals > 0].tolist()
    if len(values) < 2:
        raise DataError(
            f"at least two classes are needed, got one class: {values[0]!r}; labels of zero weight are left out"
        )
    weights = _factors(class_weight, values, totals[totals > 0])
    return Classes(tuple(values), "str" if labels.dtype.kind in "UT" else str(labels.dtype), weights)


def label_codes(y: Any, known: Classes | None) -> tuple[NDArray[Any], Floats]:
    """Return the labels, ascending, and for every row the position of its label among them, or among those known.

    Unknown labels have a position behind the last.
    """
    y = _one_column(y)
    _check_whole(y)
    try:
        labels, which = np.unique(y, return_inverse=True)
    except TypeError:
        raise DataError("labels must be of one type, all text or all numbers, to be ordered") from None
    if known is None:
        return labels, which.astype(float)
    places = {label: place for place, label in enumerate(known.values)}
    return known.labels, np.array([places.get(label, len(places)) for label in labels.tolist()], float)[which]


def _check_whole(y: NDArray[Any]) -> None:
    """Refuse labels that are numbers with fractions."""
    if y.dtype.kind == "f" and not (np.isfinite(y) & (y == np.round(y))).all():
        raise DataError(
            f"Unknown label type: continuous; labels must be text, booleans or whole numbers, got {y.dtype}; for "
            "numbers use NystromRidge, and leave out --classify on the command line"
        )


def _one_column(y: Any) -> NDArray[Any]:
    """Return labels as an array (n,); refuse missing ones, and count them."""
    y = computed([y])[0] if is_dask(y) else y
    given = as_array(y, "y") if hasattr(y, "__array__") else y  # nullable types of pandas stay
    given = check_array(given, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
    labels = column_or_1d(given, warn=True)
    values = np.array(y, dtype=object).ravel() if isinstance(y, list | tuple) else labels  # NumPy makes text of NaN
    gaps = np.array([is_missing(value) for value in values]) if values.dtype.kind == "O" else values != values
    check_no_gaps(gaps, "the label")
    kinds = {type(value) for value in values.tolist()} if values.dtype.kind not in "biufUT" else set()
    if bytes in kinds:
        raise DataError(
            "labels must be text, booleans or whole numbers, got bytes; decode them first: "
            "numpy.char.decode(numpy.asarray(y, dtype=bytes))"
        )
    if kinds & {list, tuple, np.ndarray}:
        raise DataError("labels must be text, booleans or whole numbers, one for each row; got several values in a row")
    others = [kind.__name__ for kind in kinds if not issubclass(kind, _LABELS)]
    if others := [values.dtype.name] if values.dtype.kind in "Mm" else others:
        raise DataError(
            f"labels must be text, booleans or whole numbers, got {others[0]}; convert them, as by "
            "[str(label) for label in y]"
        )
    return labels


def labels_of(source: RowSource, numbers: Floats) -> NDArray[Any]:
    """Return the labels that numbers of a source stand for; whole numbers as integers, where these can hold them."""
    labels = getattr(source, "labels", None)
    if labels is not None:
        return np.array(labels)[numbers.astype(int)]
    _check_whole(numbers)
    return numbers.astype(np.int64) if abs(numbers).max() < 2**53 else numbers


def numbers_of(classes: Classes, source: RowSource) -> Floats:
    """Return the numbers, ascending, that stand for the classes in a source; none of its numbers for an absent one."""
    labels, texts = np.array(classes.values), text_labels(source)
    if (labels.dtype.kind == "U") != (texts is not None):
        kinds = ("text", "numbers") if texts is None else ("numbers", "text")
        remedy = "convert them" + (', or open a CSV file with open_rows(..., labels="text")' if texts is None else "")
        raise DataError(
            f"the labels of the fit are {kinds[0]} ({classes.values[0]!r}), and those of the rows {kinds[1]}; {remedy}"
        )
    if texts is None:
        return labels.astype(float)
    return np.searchsorted(texts, labels).astype(float) - np.where(np.isin(labels, texts), 0.0, 0.5)


def _factors(given: Any, labels: list[Any], totals: Floats) -> Floats | None:
    """Return the factor of every class: those given by label, or `sum w/(K W_k)` for "balanced"; None for none."""
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        return totals.sum() / (len(totals) * totals)
    if not isinstance(given, dict):
        raise ParameterError(f'class_weight must be None, "balanced" or a dict of labels and weights, got {given!r}')
    # A part of the rows may lack some labels, so labels that no row has are accepted where all others are given.
    unknown = sorted(map(repr, set(given) - set(labels))) if set(labels) - set(given) else []
    factors = np.array([real_number(given.get(label, 1)) for label in labels])
    if unknown or not ((factors > 0) & (factors < np.inf)).all():
        raise ParameterError(
            f"class_weight must give labels of the fit positive numbers, got {given!r}"
            + (f"; no row has the label {', '.join(unknown)}" if unknown else "")
        )
    return factors


def scores_of(
    loss: ClassLoss, predictor: Floats, rows: RowPasses, class_weights: Floats | None, outside: bool
) -> ClassScores:
    """Return the scores `1 - p` of rows, from their predictor, without the weights of their classes.

    `outside` says whether the rows had no part in the fit. A row may have shares of several labels.
    """
    shares = rows.row_counts()[:, None] * loss.indicators(rows.targets())
    if class_weights is not None:
        shares /= class_weights
    n_groups = None
    if rows.leaves_groups:
        kind = rows.left_out().kind
        n_groups, shares = len(rows.left_out()), shares / np.bincount(kind[kind >= 0])[kind][:, None]
    row, label = np.nonzero(shares > 0)
    scores, weights = -np.expm1(loss.log_probabilities(predictor)[row, label]), shares[row, label]
    order = np.argsort(scores, kind="stable")
    return ClassScores(scores[order], weights[order], *promise_of(weights, outside, "the log loss"), n_groups)


def conformal_sets(probabilities: Floats, calibration: ClassScores, coverage: Any) -> NDArray[np.bool_]:
    """Return the labels whose score is at most the `ceil(coverage (m + 1))`-th of m calibration scores, by weight.

    All labels where there are too few rows for this coverage.
    """
    check_coverage(coverage)
    m = len(calibration.scores) if calibration.n_groups is None else calibration.n_groups
    wanted = math.ceil(coverage * (m + 1) - 1e-9)
    if wanted > m:
        return np.ones(probabilities.shape, dtype=bool)
    reached = np.cumsum(calibration.weights) >= (wanted / m - 1e-9) * calibration.weights.sum()
    return 1.0 - probabilities <= calibration.scores[int(reached.argmax())] + 1e-12
