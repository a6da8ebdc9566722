"""Labels as indicators of classes."""

import numpy as np
import pytest

from ridgemark.errors import DataError
from ridgemark.rows import ArrayRows
from ridgemark.rows.labels import LabelRows

X = np.arange(12.0).reshape(6, 2)
LABELS = np.array([3.0, 5.0, 3.0, 9.0, 5.0, 5.0])


def test_several_classes_have_one_column_each():
    rows = LabelRows(ArrayRows(X, LABELS), np.array([3.0, 5.0, 9.0]))
    expected = LABELS[:, None] == [3.0, 5.0, 9.0]
    assert rows.n_targets == 3
    assert np.array_equal(np.concatenate([block.targets for block in rows.blocks(4)]), expected)
    assert np.array_equal(rows.take([3, 0]).targets, expected[[3, 0]])
    assert rows.take([0]).weights is None


def test_two_classes_have_the_indicator_of_the_second():
    rows = LabelRows(ArrayRows(X, LABELS > 4), np.array([0.0, 1.0]))
    assert np.array_equal(next(rows.blocks(6)).targets[:, 0], LABELS > 4)


def test_weights_of_classes_multiply_those_of_rows():
    weights = np.array([1.0, 2.0, 0.0, 1.0, 1.0, 3.0])
    rows = LabelRows(ArrayRows(X, LABELS, weights), np.array([3.0, 5.0, 9.0]), np.array([10.0, 1.0, 0.5]))
    assert next(rows.blocks(6)).weights.tolist() == [10.0, 2.0, 0.0, 0.5, 1.0, 3.0]


def test_a_label_that_is_no_class_is_refused_unless_its_weight_is_zero():
    with pytest.raises(DataError, match="the label of row 3 is none of the 2 classes"):
        list(LabelRows(ArrayRows(X, LABELS), np.array([3.0, 5.0])).blocks(2))
    weights = (LABELS != 9).astype(float)
    targets = next(LabelRows(ArrayRows(X, LABELS, weights), np.array([3.0, 5.0])).blocks(6)).targets
    assert targets[:, 0].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0, 1.0]
