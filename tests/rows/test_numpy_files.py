from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgemark.rows import open_rows
from tests.rows.cases import refusal, values

X = np.arange(12.0).reshape(4, 3)
OBJECTS = X.astype(object)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def write(name: str, content: bytes) -> str:
    Path(name).write_bytes(content)
    return name


def test_an_npy_file_is_not_mapped() -> None:
    path = write("x.npy", npy(X))
    (block,) = open_rows(path).blocks(10)
    base = block.features
    while base is not None:
        assert not isinstance(base, np.memmap)
        base = base.base


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "'x.npy' is empty (0 bytes)"),
        (b"a,b\n1,2\n3,4\n", "'x.npy' cannot be read as a NumPy array file (.npy): the magic string"),
        (npy(X)[:-5], "an array of shape (4, 3) needs 224 bytes and the file has 219; it may be truncated"),
        (npy(X)[:40], "'x.npy' cannot be read as a NumPy array file (.npy)"),
        (npy(X)[:4], "'x.npy' cannot be read as a NumPy array file (.npy)"),
        (npy(X)[:10] + b"\xff" * 20 + npy(X)[30:], "'x.npy' cannot be read as a NumPy array file (.npy)"),
        (npy(X).replace(b"shape", b"shope"), "'x.npy' cannot be read as a NumPy array file (.npy)"),
        (npy(X)[:6] + b"\x03\x00" + npy(X)[8:], "its format version is 3.0, which does not hold plain numbers"),
        (npy(OBJECTS), "'x.npy' holds pickled Python objects, never loaded"),
        (npy(np.zeros(3, [("a", float)])), "'x.npy' holds structured records"),
        (npy(X[0]), "'x.npy' must be two-dimensional"),
        (npy(X[:0]), "'x.npy' must have at least one row and one column; got 0 rows and 3 columns"),
        (npy(X.astype("U3")), "'x.npy' holds text (type <U3)"),
    ],
)
def test_a_bad_npy_file_is_refused_with_its_name(content: bytes, expected: str) -> None:
    assert expected in refusal(write("x.npy", content))


def test_the_second_version_of_the_format_is_read_too() -> None:
    with Path("x.npy").open("wb") as file:
        np.lib.format.write_array(file, X, version=(2, 0))
    assert values(open_rows("x.npy")) == X.tolist()


def test_targets_of_an_npy_file_may_be_values_or_columns() -> None:
    path = write("x.npy", npy(X))
    assert open_rows(path, target=[9.0, 8.0, 7.0, 6.0]).take([1]).targets.tolist() == [[8.0]]
    assert open_rows(path, target=2).n_features == 2


def test_an_archive_has_features_in_x_targets_in_y_and_names_beside() -> None:
    path = write("d.npz", npz(X=X, y=X[:, 0], feature_names=np.array(["a", "b", "c"])))
    rows = open_rows(path)
    assert rows.feature_names == ("a", "b", "c")
    assert rows.n_targets == 1
    assert values(rows) == X.tolist()
    assert open_rows(write("d.npz", npz(X=X))).n_targets == 0


def test_a_target_names_an_array_of_the_archive_or_a_column_of_x() -> None:
    path = write("d.npz", npz(X=X, y=X[:, 0], u=X[:, 1], v=X[:, 2], feature_names=np.array(["a", "b", "c"])))
    assert open_rows(path, target="u").take([0]).targets.tolist() == [[1.0]]
    assert open_rows(path, target=["v", "u"]).take([0]).targets.tolist() == [[2.0, 1.0]]
    assert open_rows(path, target="b").feature_names == ("a", "c")
    assert open_rows(path, columns=["c", "a"], weight="u").feature_names == ("c", "a")
    assert open_rows(path, target=0).feature_names == ("b", "c")
    assert open_rows(path, target=np.ones(4)).n_targets == 1


@pytest.mark.parametrize(
    ("content", "choice", "expected"),
    [
        (b"abc", {}, "'d.npz' cannot be read as a NumPy archive (.npz): File is not a zip file"),
        (npy(X), {}, "'d.npz' cannot be read as a NumPy archive (.npz)"),
        (npz(X=X)[:200], {}, "'d.npz' cannot be read as a NumPy archive (.npz)"),
        (npz(X=X)[:80] + b"\xff" * 20 + npz(X=X)[100:], {}, "'d.npz' cannot be read as a NumPy archive (.npz)"),
        (npz(a=X, b=X), {}, "'d.npz' has no array 'X', which must hold the features; it has 'a', 'b'"),
        (npz(X=OBJECTS), {}, "'d.npz' holds pickled Python objects, never loaded"),
        (npz(X=X, y=OBJECTS[:, 0]), {}, "'d.npz' holds pickled Python objects, never loaded"),
        (npz(X=X, y=X[:, 0]), {"target": "z"}, "target: 'd.npz' has no array 'z'; it has 'y'"),
        (npz(X=X, y=X[:, 0]), {"target": "X"}, "target: 'd.npz' has no array 'X'; it has 'y'"),
        (npz(X=X), {"weight": "w"}, "weight: 'd.npz' has no array 'w'; it has only X"),
        (npz(X=X, y=X[:2, 0]), {}, "array 'y' of 'd.npz' must have one row for each of the 4 rows"),
        (npz(X=X, u=X[:, 0], v=X), {"target": ["u", "v"]}, "several targets must each have shape (4,)"),
        (npz(X=X, w=-X[:, 1]), {"weight": "w"}, "row 0 of array 'w' of 'd.npz' is -1.0; a weight must be"),
        (npz(X=X, feature_names=np.array(["a"])), {}, "one name for each of the 3 columns of X; got shape (1,)"),
        (npz(X=X[0]), {}, "array 'X' of 'd.npz' must be two-dimensional"),
        (npz(X=np.where(X == 7, np.nan, X)), {}, "row 2, column 1 of array 'X' of 'd.npz' is NaN"),
    ],
)
def test_a_bad_archive_is_refused_with_its_name(content: bytes, choice: Any, expected: str) -> None:
    assert expected in refusal(write("d.npz", content), **choice)


def test_a_named_column_of_an_archive_is_named_in_errors() -> None:
    content = npz(X=np.where(X == 7, np.nan, X), feature_names=np.array(["a", "b", "c"]))
    assert "row 2, column 'b' of array 'X' of 'd.npz' is NaN" in refusal(write("d.npz", content))
    assert "it has only X, and X has the columns 'a', 'b', 'c'" in refusal("d.npz", target="q")


def test_a_member_that_is_not_an_array_is_refused() -> None:
    with zipfile.ZipFile("d.npz", "w") as archive:
        archive.writestr("X.npy", b"junk")
    assert "'d.npz' cannot be read as a NumPy archive (.npz)" in refusal("d.npz")
