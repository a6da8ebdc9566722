from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ridgemark.errors import RidgemarkError
from ridgemark.rows import open_rows
from ridgemark.rows.places import listed, shown
from tests.rows.cases import refusal

TABLE = {"age": [1.0, 2.0], "income": [3.0, 4.0], "height": [5.0, 6.0], "w": [1.0, 1.0]}


def test_features_are_all_columns_without_another_role() -> None:
    rows = open_rows(TABLE, target="income", weight="w")
    assert rows.feature_names == ("age", "height")
    assert rows.target_names == ("income",)


def test_features_come_in_the_order_asked() -> None:
    rows = open_rows(TABLE, target=["w", "age"], columns=["height", "income"])
    assert rows.feature_names == ("height", "income")
    assert rows.target_names == ("w", "age")
    assert rows.take([1]).features.tolist() == [[6.0, 4.0]]
    assert rows.take([1]).targets.tolist() == [[1.0, 2.0]]


def test_names_take_precedence_over_positions() -> None:
    assert open_rows(TABLE, target=-1).target_names == ("w",)
    assert open_rows({5: [1.0], 0: [2.0], "y": [3.0]}, target=0).target_names == ("0",)
    assert open_rows({5: [1.0], 0: [2.0], "y": [3.0]}, target=2).target_names == ("y",)
    assert open_rows(TABLE, columns=range(2)).feature_names == ("age", "income")
    assert open_rows(TABLE, columns=np.array(["w"])).feature_names == ("w",)


def test_the_error_of_a_missing_column_lists_the_columns() -> None:
    message = refusal(TABLE, target="incone")
    assert "target: there is no column 'incone' in the dict of columns; did you mean 'income'?" in message
    assert "its columns are 'age', 'income', 'height', 'w'" in message
    assert "did you mean" not in refusal(TABLE, columns=["zzz"])
    assert "weight: there is no column 'v'" in refusal(TABLE, weight="v")
    assert "there is no column 4 in" in refusal(TABLE, target=4)


def test_an_array_has_positions_only() -> None:
    expected = "its columns have no names, only the positions 0 to 2"
    for target in ("y", 3, -4):
        assert expected in refusal(np.ones((2, 3)), target=target)


def test_a_column_with_two_roles_is_refused() -> None:
    both = "a column has one role: remove it from one"
    assert f"column 'age' is both in columns and in target; {both}" in refusal(TABLE, target="age", columns=["age"])
    assert "column 'w' is both in columns and in weight" in refusal(TABLE, weight="w", columns=["w", "age"])
    assert "column 'w' is both in target and in weight" in refusal(TABLE, weight="w", target="w")
    assert "columns has column 'w' more than once" in refusal(TABLE, columns=["w", 3])
    assert "column 1 is both in columns and in target" in refusal(np.ones((2, 3)), target=1, columns=[1])


def test_a_choice_without_features_is_refused() -> None:
    assert "no column left for the features" in refusal(TABLE, target=list(TABLE))


def test_only_names_and_positions_choose_columns() -> None:
    for columns in (1.5, [True], [None], [["a"]], np.array([True, False])):
        assert "columns must be column names or positions; got" in refusal(TABLE, columns=columns)
    assert "columns must name at least one column; got []; leave it out" in refusal(TABLE, columns=[])
    assert "weight must be one column; got 2" in refusal(TABLE, weight=["age", "w"])


def test_duplicate_column_names_are_refused() -> None:
    assert "more than one column named '1'; names must differ: rename" in refusal({"1": [1.0], 1: [2.0]})


def test_an_unnamed_column_may_exist_but_not_be_used() -> None:
    table = {"": [0.0, 1.0], **TABLE}
    message = refusal(table)
    assert "column 0 of the dict of columns has no name" in message
    assert "leave it out with columns=[...]" in message
    assert open_rows(table, columns=["age"]).n_features == 1


@given(st.text())
def test_a_name_is_shown_on_one_line_short_and_without_control_characters(name: str) -> None:
    text = shown(name)
    assert text.isprintable()
    with pytest.raises(RidgemarkError) as caught:
        open_rows({"a": [1.0], f"b{name}": [2.0]}, target=f"c{name}")
    assert str(caught.value).isprintable()


def test_a_long_list_of_names_is_shortened_and_counted() -> None:
    assert listed(range(14)).endswith("'11' and 2 more")
    assert len(shown("x" * 500)) < 70
