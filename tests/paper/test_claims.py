"""Verdicts state what is not reproduced; records become plain data."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from ridgemark.paper.claims import _dimension, _max_degrees_of_freedom, _prints_as, _risk_ratio
from ridgemark.paper.printed import TABLE_1
from ridgemark.paper.reproduction import Settings, plain
from ridgemark.paper.table_1 import Ratio, Row


def _ratio(mean):
    return Ratio("prior", mean, 0.0, mean, mean, 0.9, 1.2)


def _row(position, **numbers):
    return Row(TABLE_1[position], TABLE_1[position].file or "synthetic", **numbers)


@pytest.mark.parametrize(
    ("value", "whole", "same"), [(1450.9, 1450, True), (746.7, 747, True), (31.9996, 31, False), (31.4, 32, False)]
)
def test_a_whole_number_may_be_rounded_or_truncated(value, whole, same):
    assert _prints_as(value, whole) is same


def test_a_dimension_that_is_not_the_printed_one_is_said_to_differ():
    members = [_row(k, effective_dimension=32.0) for k in (3, 4, 5)]
    claim = _dimension("Linear Pum", members)
    assert (claim.paper, claim.measured, claim.same) == ("31, 31, 32", "32.0, 32.0, 32.0", "in part")
    assert _dimension("Linear Pum", members[:2]).same == "no"
    assert _dimension("Linear Pum", [_row(3)]).same == "not run"


def test_a_stand_in_is_named_where_its_numbers_are_shown():
    row = replace(_row(3, effective_dimension=32.0), source="pumadyn-32nm")
    assert "inputs of pumadyn-32nm" in _dimension("Linear Pum", [row]).measured


def test_the_printed_d_mof_is_never_called_the_definition():
    row = _row(8, max_degrees_of_freedom=168.3, max_degrees_of_freedom_operator=1897.2)
    claim = _max_degrees_of_freedom([row])
    assert claim.same == "in part"
    assert "By the paper's definition, n max l_i: 168.3" in claim.measured


@pytest.mark.parametrize(
    ("position", "name", "means", "same"),
    [
        (0, "Bern Synth", (0.998, 1.004), "yes"),
        (1, "Linear Gas", (1.0,), "no"),
        (3, "Linear Pum", (1.0,), "no"),  # 0.99 is printed: with L = K a ratio below one is impossible
        (6, "RBF Gas", (1.1, 1.9), "in part"),
        (6, "RBF Gas", (1.1, 1.3), "no"),
    ],
)
def test_risk_ratios_are_judged_over_the_protocols(position, name, means, same):
    claim = _risk_ratio(name, [_row(position, ratios=tuple(_ratio(mean) for mean in means))])
    assert claim.same == same
    assert _risk_ratio(name, [_row(position)]).same == "not run"


def test_records_become_plain_data_without_nan_and_infinities():
    record = {"a": np.float64(1.5), "b": (np.arange(2), math.nan, math.inf), "c": Settings(), "d": None}
    expected = {"a": 1.5, "b": [[0, 1], None, None], "c": {"seed": 0, "repeats": 10, "quick": False}, "d": None}
    assert json.loads(json.dumps(plain(record), allow_nan=False)) == expected
