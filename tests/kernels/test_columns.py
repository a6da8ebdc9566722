"""The map of columns: the identity in its range, bounded outside it, soft where asked, the same in every block."""

import numpy as np
import pytest

from ridgemark.errors import ParameterError
from ridgemark.kernels import ColumnMap

LOW, HIGH = np.array([-1.0, 0.0, -np.inf]), np.array([2.0, 0.0, np.inf])
SOFT = ColumnMap([-50.0, -1.0, -np.inf], [80.0, 1.0, np.inf], centre=[1.0, 0.0, 3.0], width=[0.5, 0.0, 2.0])
MAPS = {"bounds": ColumnMap(LOW, HIGH), "soft": SOFT}


def _rows(n=60):
    return np.random.default_rng(0).standard_t(1.0, size=(n, 3)) * [3.0, 1.0, 10.0]


def test_a_row_inside_the_range_is_left_as_it_is():
    rows = np.column_stack([np.linspace(-1.0, 2.0, 9), np.zeros(9), np.geomspace(1e-300, 1e300, 9)])
    assert np.array_equal(MAPS["bounds"].apply(rows), rows)
    single = ColumnMap([0.1], [0.7])  # which single precision does not hold
    inside = np.nextafter(np.float32([[0.1], [0.7]]), np.float32(0.5))
    assert np.array_equal(single.apply(inside), inside)
    assert single.apply(inside).dtype == np.float32


def test_a_row_outside_the_range_is_moved_to_its_end():
    assert MAPS["bounds"].apply(np.array([[-9.0, 5.0, 7.0], [3.0, -5.0, -7.0]])).tolist() == [[-1, 0, 7], [2, 0, -7]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_soft_column_rises_to_four_widths_from_its_centre(dtype):
    largest = np.finfo(dtype).max
    x = np.concatenate([[-largest], -np.geomspace(largest / 10, 1e-9, 400), np.geomspace(1e-9, largest / 10, 400)])
    mapped = SOFT.apply(np.column_stack([np.zeros_like(x), np.zeros_like(x), x]).astype(dtype))[:, 2].astype(float)
    rounding = 16 * np.finfo(dtype).eps
    assert (np.diff(mapped) >= -rounding).all()
    assert np.abs(mapped - 3.0).max() <= 8.0 + rounding
    assert mapped[[0, -1]] == pytest.approx([-5.0, 11.0])
    assert SOFT.soft.tolist() == [True, False, True]


@pytest.mark.parametrize("name", MAPS)
def test_the_map_of_a_row_does_not_depend_on_its_block(name):
    rows = _rows()
    whole = MAPS[name].apply(rows)
    for size in (1, 7):
        blocks = [MAPS[name].apply(rows[i : i + size]) for i in range(0, len(rows), size)]
        assert np.array_equal(np.concatenate(blocks), whole)


@pytest.mark.parametrize("name", MAPS)
def test_slopes_are_finite_differences(name):
    rows, step = _rows() / 10.0, 1e-6
    expected = (MAPS[name].apply(rows + step) - MAPS[name].apply(rows - step)) / (2 * step)
    assert MAPS[name].slopes(rows) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (ColumnMap([0.0, 0.0], [1.0, 1.0]), r"low must hold one number for each of the 3 columns, got shape \(2,\)"),
        (ColumnMap(np.zeros(3), "far"), "high must hold one number for each of the 3 columns"),
        (ColumnMap(np.zeros(3), -np.ones(3)), "low must be at most high"),
        (ColumnMap(np.full(3, np.nan), np.ones(3)), "low must be at most high"),
        (ColumnMap(np.zeros(3), np.ones(3), width=np.ones(3)), "centre and width must be given together"),
        (ColumnMap(np.zeros(3), np.ones(3), np.zeros(3), -np.ones(3)), "width must be finite and at least 0"),
        (ColumnMap(np.zeros(3), np.ones(3), np.full(3, np.nan), np.ones(3)), "centre must be finite"),
    ],
)
def test_a_map_that_cannot_be_applied_is_refused_in_words(columns, words):
    for method in (columns.apply, columns.slopes):
        with pytest.raises(ParameterError, match=words):
            method(_rows())
