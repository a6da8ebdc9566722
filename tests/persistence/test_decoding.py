"""The annotations of a record say how it is saved and loaded."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from ridgemark.backends import Floats, Indices, Rows
from ridgemark.errors import ParameterError
from ridgemark.persistence import Checker, Decoder, Encoder
from ridgemark.persistence.schema import records_in
from tests.persistence.cases import place_of, same


class Ends(NamedTuple):
    lower: float
    upper: Annotated[float, "any"]


class Known(TypedDict):
    errors: Annotated[list[float], "(b)"]
    note: NotRequired[str]


@dataclass(frozen=True)
class Level:
    name: Literal["shared", "metric"]
    values: Annotated[NDArray[np.float64], "(a, a)", ">= 0"]
    bounds: tuple[float, float]
    seconds: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Search:
    levels: Annotated[tuple[Level, ...], "(b)"]
    chosen: Annotated[int, "< b"]
    names: list[str] | None
    matrix: Floats | None
    score: float | Annotated[Floats, "(_)"]
    costs: dict[str, tuple[float, ...]]
    order: Annotated[Indices, "(c)", "different", "< b"]
    c: Annotated[int, "(c)"]
    ends: Ends
    rows: Annotated[Any, Rows, "(_, 2)"]
    words: NDArray[Any]
    known: Annotated[Mapping[str, Any], Known]
    engine: object = field(compare=False)


SEARCH = Search(
    (Level("shared", np.ones((2, 2)), (0.0, 1.0), 3.0), Level("metric", np.eye(2), (1.0, 2.0))),
    chosen=1,
    names=["a"],
    matrix=None,
    score=np.zeros(3),
    costs={"entries": (1.0, 2.5)},
    order=np.array([1, 0]),
    c=2,
    ends=Ends(-1.0, np.inf),
    rows=sparse.csr_array(np.eye(2)),
    words=np.array(["a", "b"], dtype=object),
    known={"errors": [1.0, 2.0], "method": "loo", "tries": [1, 2]},
    engine="is made again",
)
SCHEMA = records_in(Search)


def _encoded(value=SEARCH):
    encoder = Encoder(SCHEMA.values())
    return json.loads(json.dumps(encoder.encode(value, "search"))), encoder.arrays


def _decode(node, arrays):
    return Decoder(dict(arrays), SCHEMA, []).read(Search, node, "search")


def test_a_nested_record_comes_back_without_what_does_not_compare():
    found = _decode(*_encoded())
    assert same(found, SEARCH)
    assert found.engine is found.levels[0].seconds is None
    assert set(SCHEMA) == {"Search", "Level", "Ends"}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("chosen", -1, r"search\.chosen has a value outside its range"),
        ("chosen", 2, r"search\.chosen must be below b = 2"),
        ("chosen", 1.0, "must be int"),
        ("chosen", True, "must be int"),
        ("chosen", 10**30, "outside its range"),
        ("names", [3], r"search\.names\.0 must be str"),
        ("names", "abc", r"search\.names must be a list"),
        ("names", {"tuple": "abc"}, "has the tag 'tuple', which is not allowed"),
        ("score", "high", r"search\.score must be an array of float64, got 'high'"),
        ("score", float("inf"), "must be an array of float64"),
        ("costs", {"dict": [["seconds", 3.0]]}, r"search\.costs\.seconds must be a tuple"),
        ("costs", {"dict": [[3, {"tuple": [1.0]}]]}, "text as keys"),
        ("levels.0.name", "other", r"search\.levels\.0\.name must be one of shared, metric"),
        ("levels.0.bounds", {"tuple": [1.0]}, "must be a tuple of its length"),
        ("levels.0.bounds", {"tuple": [1.0, np.nan]}, r"bounds\.1 has a value outside its range"),
        ("levels.1.values", None, "must be an array of float64"),
        ("levels.1.seconds", 1.0, "must have the fields 'name', 'values', 'bounds', got .*'seconds'"),
        ("levels", {"tuple": []}, r"must be below b = 0|b = 0 are required"),
        ("ends.lower", -np.inf, "outside its range"),
        ("ends.upper", np.nan, "outside its range"),
        ("ends", {"tuple": [0.0, 1.0]}, "must be Ends"),
        ("ends", {"Level": {}}, "must have the fields"),
        ("ends", {"os.system": {}}, "has the tag 'os.system', which is not allowed"),
        ("ends", {"Ends": {}, "Level": {}}, "must have one tag"),
        ("c", 3, "c = 2 are required|c = 3 are required"),
        ("known", {"dict": []}, r"search\.known lacks errors"),
        ("known.errors", [1.0], "b = 2 are required"),
        ("known.method", {"array": False}, r"search\.known\.method"),
    ],
)
def test_a_value_of_another_type_is_refused_at_its_place(path, value, message):
    node, arrays = _encoded()
    if path.startswith("known."):
        container, key = place_of(node, "known")
        next(pair for pair in container[key]["dict"] if pair[0] == path.removeprefix("known."))[1] = value
        arrays |= {f"search.{path}": np.zeros(2)}
    else:
        container, key = place_of(node, path)
        container[key] = value
    arrays = {name: array for name, array in arrays.items() if name != "search.score" or path != "score"}
    with pytest.raises((ValueError, KeyError), match=message):
        _decode(node, arrays)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("levels.0.values", np.ones((2, 3)), "3 entries; a = 2 are required"),
        ("levels.0.values", np.ones(2), "must have the sides a, a"),
        ("levels.0.values", np.ones((2, 2), np.float32), "must be an array of float64, got 'float32'"),
        ("levels.0.values", -np.ones((2, 2)), "outside its range"),
        ("levels.0.values", np.full((2, 2), np.inf), "outside its range"),
        ("levels.1.values", np.ones((3, 3)), "a = 2 are required"),
        ("order", np.array([1, 1]), "outside its range"),
        ("order", np.array([2, 1]), "must be below b = 2"),
        ("order", np.array([-1, 0]), "outside its range"),
        ("order", np.array([1]), "c = 2 are required|c = 1 are required"),
        ("rows.data", np.array([np.nan, 1.0]), "must hold finite numbers"),
        ("rows.data", np.array([1, 1]), "must hold finite numbers"),
        ("rows.indices", np.array([0, 2]), "(indices|index values) must be"),
        ("more", np.zeros(1), "is an array that no model has"),
    ],
)
def test_an_array_of_another_shape_or_range_is_refused_at_its_place(name, value, message):
    node, arrays = _encoded()
    with pytest.raises(ValueError, match=message):
        _decode(node, arrays | {f"search.{name}": value})


def test_rows_are_dense_or_sparse_and_finite():
    checker = Checker()
    for rows in (np.eye(3), np.eye(3, dtype=np.float32), sparse.csr_matrix(np.eye(3)), sparse.csr_array(np.eye(3))):
        checker.check(rows, Annotated[Any, Rows], "rows")
    for wrong in (np.full((3, 2), np.nan), np.ones((3, 2), int), [[1.0]], None, sparse.csc_array(np.eye(3))):
        with pytest.raises(ValueError, match="rows"):
            checker.check(wrong, Annotated[Any, Rows], "rows")


def test_a_class_outside_the_schema_is_not_written():
    with pytest.raises(ParameterError, match=r"search\.ends is a value of type Ends"):
        Encoder([Search, Level]).encode(SEARCH, "search")


def test_a_new_field_is_saved_by_its_annotation_alone():
    @dataclass(frozen=True)
    class Added(Level):
        more: Annotated[Floats | None, "(a)"] = None

    added = Added("shared", np.ones((2, 2)), (0.0, 1.0), more=np.arange(2.0))
    encoder = Encoder([Added])
    node = encoder.encode(added, "level")
    assert same(Decoder(dict(encoder.arrays), {"Added": Added}, []).read(Added, node, "level"), added)
    with pytest.raises(ValueError, match="a = 2 are required"):
        Decoder(encoder.arrays | {"level.more": np.arange(3.0)}, {"Added": Added}, []).read(Added, node, "level")
