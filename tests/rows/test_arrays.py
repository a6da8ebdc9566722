from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from ridgemark.errors import DataError
from ridgemark.rows import ArrayRows, open_rows
from tests.rows.cases import refusal, values

X = np.arange(12.0).reshape(4, 3)


def with_cell(value: float) -> np.ndarray:
    changed = X.copy()
    changed[2, 1] = value
    return changed


@given(
    array=hnp.arrays(
        st.sampled_from(["f2", "<f4", ">f4", "<f8", ">f8", "i1", "u2", ">i4", "?"]),
        st.tuples(st.integers(1, 20), st.integers(1, 4)),
        elements={"allow_nan": False, "allow_infinity": False},
    ),
    block_rows=st.integers(1, 25),
    order=st.sampled_from("CF"),
)
def test_every_numeric_type_keeps_its_values(array: np.ndarray, block_rows: int, order: Any) -> None:
    rows = open_rows(np.asarray(array, order=order))
    single = array.dtype.kind == "f" and array.dtype.itemsize < 8
    assert rows.dtype == (np.float32 if single else np.float64)
    assert np.array_equal(np.concatenate([block.features for block in rows.blocks(block_rows)]), array)


def test_floats_in_memory_are_not_copied() -> None:
    (block,) = open_rows(X).blocks(10)
    assert np.shares_memory(block.features, X)


def test_several_targets_are_columns_of_a_block() -> None:
    rows = open_rows(X[:, :1], target=X[:, 1:])
    assert rows.n_targets == 2
    assert rows.take([3]).targets.tolist() == [[10.0, 11.0]]


def test_columns_may_be_chosen_by_position_in_any_order() -> None:
    rows = open_rows(X, target=-1, columns=[1, 0])
    assert values(rows) == X[:, [1, 0]].tolist()
    assert rows.take([0]).targets.tolist() == [[2.0]]


def test_a_list_of_integers_is_positions_unless_there_is_one_for_each_row() -> None:
    assert open_rows(X, target=[2, 0]).take([1]).targets.tolist() == [[5.0, 3.0]]
    assert open_rows(X, target=[0, 1, 1, 0]).take([1]).targets.tolist() == [[1.0]]


def test_sparse_rows_come_as_csr_and_leave_the_given_matrix_alone() -> None:
    doubled = sparse.coo_matrix(([1, 2, 5], ([0, 0, 1], [1, 1, 0])), shape=(3, 2)).tocsr()
    unsorted = sparse.csr_matrix(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 2))
    assert next(open_rows(doubled).blocks(9)).features.toarray().tolist() == [[0, 3], [5, 0], [0, 0]]
    assert next(open_rows(unsorted).blocks(9)).features.nnz == 1
    assert unsorted.nnz == 2
    assert next(open_rows(doubled).blocks(9)).features.format == "csr"


@pytest.mark.parametrize(
    ("array", "what"),
    [
        (X + 1j, "complex numbers"),
        (X.astype("U5"), "text"),
        (X.astype("S5"), "text"),
        (X.astype("M8[s]"), "dates or times"),
        (X.astype("m8[s]"), "time spans"),
        (np.zeros(3, [("a", float), ("b", int)]), "structured records"),
    ],
)
def test_an_array_without_numbers_is_refused_by_what_it_holds(array: np.ndarray, what: str) -> None:
    message = refusal(array)
    assert f"the feature array holds {what}" in message
    assert "every value must be a number" in message
    assert "the target array holds" in refusal(np.ones((len(array), 1)), target=array)


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix, np.float32])
@pytest.mark.parametrize(("bad", "said"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_a_number_that_is_not_finite_is_named_by_row_and_column(kind: Any, bad: float, said: str) -> None:
    message = refusal(kind(with_cell(bad)))
    assert f"row 2, column 1 of the feature array is {said}" in message
    assert "fill it in or drop the row" in message


def test_an_array_of_objects_is_read_as_the_numbers_it_holds() -> None:
    assert values(open_rows(X.astype(object))) == X.tolist()


def test_large_finite_numbers_are_accepted() -> None:
    large = np.full((8, 2), 3e38, dtype=np.float32)
    assert open_rows(large).n_rows == 8
    assert open_rows(np.full((8, 2), 1.7e308)).n_rows == 8


def test_a_chosen_column_is_named_by_its_place_in_the_whole_array() -> None:
    assert "row 2, column 1 of the feature array is NaN" in refusal(with_cell(np.nan), target=1)
    assert "row 2, column 1 of the feature array is NaN" in refusal(with_cell(np.nan), columns=[2, 1])


@pytest.mark.parametrize("integer", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_an_integer_that_would_lose_digits_is_refused(integer: int) -> None:
    message = refusal(np.array([[1, 2], [3, integer]]))
    assert f"row 1, column 1 of the feature array is the integer {integer}, beyond 2**53" in message
    assert "subtract an offset" in message
    assert values(open_rows(np.array([[2**53, -(2**53)]]))) == [[2.0**53, -(2.0**53)]]
    assert "18446744073709551615" in refusal(np.array([[2**64 - 1]], dtype=np.uint64))


def test_one_dimension_is_refused_with_the_reshape_that_helps() -> None:
    for source in (X[0], [1.0, 2.0, 3.0]):
        message = refusal(source)
        assert "must be two-dimensional" in message
        assert "one dimension of length 3; use X.reshape(-1, 1)" in message
    with pytest.raises(DataError, match="reshape"):
        open_rows(X[0], target=np.ones(3))


@pytest.mark.parametrize("shape", [(2, 2, 2), ()])
def test_another_number_of_dimensions_is_refused_with_the_shape(shape: tuple[int, ...]) -> None:
    assert f"must be two-dimensional, one row for each observation; got shape {shape}" in refusal(np.ones(shape))


def test_a_sparse_vector_is_refused() -> None:
    vector = sparse.coo_array(np.ones(3))
    if vector.ndim == 1:  # older scipy makes it a row
        assert "must be two-dimensional, one row for each observation; got shape (3,)" in refusal(vector)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_no_rows_or_no_columns_are_refused(shape: tuple[int, int]) -> None:
    expected = f"at least one row and one column; got {shape[0]} rows and {shape[1]} columns"
    assert expected in refusal(np.ones(shape))


def test_targets_and_weights_must_match_the_rows() -> None:
    expected = "must have one row for each of the 4 rows of the features; got 3"
    assert f"the target array {expected}" in refusal(X, target=np.ones(3))
    assert f"the weight array {expected}" in refusal(X, weight=np.ones(3))
    assert "must have one number for each row; got 3 columns" in refusal(X, weight=X)
    assert "has no column; omit target" in refusal(X, target=np.ones((4, 0)))


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        ([1, 2, -0.5, 1], "row 2 of the weight array is -0.5; a weight must be 0 or more"),
        ([1, 2, np.nan, 1], "row 2 of the weight array is NaN"),
        ([1, 2, np.inf, 1], "row 2 of the weight array is inf"),
        ([0.0, 0, 0, 0], "all weights are zero; give at least one row a positive weight"),
    ],
)
def test_bad_weights_are_refused_on_opening(weight: list[float], expected: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    for source in (X, tmp_path / "x.npy"):
        with pytest.raises(DataError) as caught:
            open_rows(source, weight=weight)
        assert expected in str(caught.value)


def test_weights_in_a_file_that_are_all_zero_are_refused_at_the_end_of_a_pass(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.column_stack([X, np.zeros(4)]))
    blocks = open_rows(tmp_path / "x.npy", weight=3).blocks(4)
    next(blocks)
    with pytest.raises(DataError, match="all weights are zero"):
        next(blocks)


def test_masked_values_are_refused_and_an_empty_mask_is_accepted() -> None:
    assert "row 1 has a masked value" in refusal(np.ma.masked_equal(X, 5.0))
    assert open_rows(np.ma.masked_equal(X, 99.0)).n_rows == 4


def test_rows_of_unequal_length_are_refused() -> None:
    assert "give rows of equal length" in refusal([[1, 2], [3]])


def test_a_target_of_a_strange_type_is_refused() -> None:
    for target in (True, {1}, {"a": 1}):
        assert "must be column names, positions or an array; got a" in refusal(X, target=target)


def test_a_memory_map_is_checked_when_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", with_cell(np.nan))
    blocks = open_rows(tmp_path / "x.npy").blocks(2)
    next(blocks)
    with pytest.raises(DataError, match=r"row 2, column 1 of .*x\.npy' is NaN"):
        next(blocks)
    with pytest.raises(DataError, match="row 2, column 1"):
        open_rows(tmp_path / "x.npy").take([0, 2])


def test_finite_numbers_in_memory_take_the_short_way_and_all_else_the_way_of_columns(tmp_path: Path) -> None:
    mapped = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", float, X.shape)
    target = np.arange(4)
    for plain in (X, X.astype(np.float32), X.astype(int), X > 3, X[::2, ::-1].copy(), X[:, :2]):
        assert isinstance(open_rows(plain, target=target[: len(plain)], weight=np.ones(len(plain))), ArrayRows)
    for other in (with_cell(np.nan), X.astype(np.float16), np.asarray(mapped)[:], sparse.csr_array(X), X.tolist()):
        assert not isinstance(open_rows(other, target=target), ArrayRows)
    assert not isinstance(open_rows(X, target=target > 2), ArrayRows)  # labels
    assert not isinstance(open_rows(X, target=2), ArrayRows)
