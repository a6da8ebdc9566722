"""The types of a record say how it is saved and loaded."""

import json
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from ridgemark.persistence import Decoder, Encoder, Rule
from tests.persistence.cases import same


@dataclass(frozen=True)
class Level:
    name: Literal["shared", "metric"]
    values: NDArray[np.float64]
    bounds: tuple[float, float]
    seconds: float | None = field(default=None, compare=False, metadata={"saved": False})


@dataclass(frozen=True)
class Search:
    levels: tuple[Level, ...]
    chosen: int
    names: list[str] | None
    matrix: NDArray[np.float64] | None
    score: float | NDArray[np.float64]
    costs: dict[str, tuple[float, ...]]


SEARCH = Search(
    (Level("shared", np.ones(2), (0.0, 1.0), 3.0), Level("metric", np.eye(2), (1.0, 2.0))),
    chosen=1,
    names=["a"],
    matrix=None,
    score=np.zeros(3),
    costs={"seconds": (1.0, 2.5)},
)


def _encoded(value):
    encoder = Encoder([])
    return json.loads(json.dumps(encoder.encode(value, "search"))), encoder.arrays


def _decode(node, arrays, rule=lambda kind, name: Rule()):
    return Decoder(dict(arrays), {}, [], rule).decode(Search, node, "search")


def test_a_nested_record_comes_back():
    assert same(_decode(*_encoded(SEARCH)), SEARCH)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("chosen",), -1, r"search\.chosen must be an integer in its range"),
        (("chosen",), 1.0, "must be an integer"),
        (("names",), [3], r"search\.names\.0 must be str"),
        (("score",), "high", "must be an array"),
        (("costs",), {"dict": {"seconds": 3.0}}, r"search\.costs\.seconds must be a list"),
        (("levels", "tuple", 0, "name"), "other", r"search\.levels\.0\.name must be one of"),
        (("levels", "tuple", 0, "bounds"), {"tuple": [1.0]}, "has 1 entries; 2 are required"),
        (("levels", "tuple", 0, "bounds"), {"tuple": [1.0, np.nan]}, r"bounds\.1 must be a number"),
        (("levels", "tuple", 1, "values"), None, "must be an array"),
        (("levels", "tuple", 1, "seconds"), 1.0, "has the unknown fields 'seconds'"),
    ],
)
def test_a_value_of_another_type_is_refused_at_its_place(path, value, message):
    node, arrays = _encoded(SEARCH)
    *outer, last = path
    inner = node
    for key in outer:
        inner = inner[key]
    inner[last] = value
    with pytest.raises(ValueError, match=message):
        _decode(node, arrays)


@pytest.mark.parametrize(
    ("field", "rule", "message"),
    [
        ("values", Rule(sides="aa"), r"levels\.0\.values must be float64 of 2 dimensions"),
        ("values", Rule(lowest=0.5), r"levels\.1\.values has a value outside its range"),
        ("levels", Rule(sides="c"), r"search\.chosen has 1 entries; c = 2 are required"),
    ],
)
def test_a_rule_adds_shapes_and_ranges(field, rule, message):
    rules = {field: rule, "chosen": Rule(sides="c")}
    with pytest.raises(ValueError, match=message):
        _decode(*_encoded(SEARCH), lambda kind, name: rules.get(name, Rule()))
