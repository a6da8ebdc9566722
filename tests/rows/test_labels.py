"""Labels of files and tables as numbers, and as indicators of classes."""

import numpy as np
import pandas as pd
import pytest

from ridgemark.errors import DataError
from ridgemark.rows import ArrayRows, open_rows
from ridgemark.rows.labels import MOST_LABELS, Indicators
from ridgemark.rows.mapped import MappedRows

X = np.arange(12.0).reshape(6, 2)
LABELS = np.array([3.0, 5.0, 3.0, 9.0, 5.0, 5.0])


def test_several_classes_have_one_column_each():
    rows = MappedRows(ArrayRows(X, LABELS), Indicators(np.array([3.0, 5.0, 9.0])))
    expected = LABELS[:, None] == [3.0, 5.0, 9.0]
    assert rows.n_targets == 3
    assert np.array_equal(np.concatenate([block.targets for block in rows.blocks(4)]), expected)
    assert np.array_equal(rows.take([3, 0]).targets, expected[[3, 0]])
    assert rows.take([0]).weights is None


def test_two_classes_have_the_indicator_of_the_second():
    rows = MappedRows(ArrayRows(X, LABELS > 4), Indicators(np.array([0.0, 1.0])))
    assert np.array_equal(next(rows.blocks(6)).targets[:, 0], LABELS > 4)


def test_weights_of_classes_multiply_those_of_rows():
    weights = np.array([1.0, 2.0, 0.0, 1.0, 1.0, 3.0])
    rows = MappedRows(ArrayRows(X, LABELS, weights), Indicators(np.array([3.0, 5.0, 9.0]), np.array([10.0, 1.0, 0.5])))
    assert next(rows.blocks(6)).weights.tolist() == [10.0, 2.0, 0.0, 0.5, 1.0, 3.0]


def test_a_label_that_is_no_class_is_refused_unless_its_weight_is_zero():
    with pytest.raises(DataError, match="the label of row 3 is none of the 2 classes"):
        list(MappedRows(ArrayRows(X, LABELS), Indicators(np.array([3.0, 5.0]))).blocks(2))
    weights = (LABELS != 9).astype(float)
    targets = next(MappedRows(ArrayRows(X, LABELS, weights), Indicators(np.array([3.0, 5.0]))).blocks(6)).targets
    assert targets[:, 0].tolist() == [0.0, 1.0, 0.0, 0.0, 1.0, 1.0]


WORDS = ["pear", "apple", "pear", None, "fig", "apple"]


def numbers_of(rows, block=2):
    return np.concatenate([part.targets[:, 0] for part in rows.blocks(block)])


@pytest.mark.parametrize("form", ["csv", "parquet", "feather", "frame", "category", "dict", "npz"])
def test_text_targets_are_positions_among_the_labels(form, tmp_path):
    pytest.importorskip("pyarrow")
    table, target = pd.DataFrame({"a": np.arange(6.0), "y": WORDS}), "y"
    source = tmp_path / f"rows.{form}"
    if form == "csv":
        table.to_csv(source, index=False)
    elif form in ("parquet", "feather"):
        getattr(table, f"to_{form}")(source)
    elif form == "npz":
        np.savez(source, X=table[["a"]].to_numpy()[[0, 1, 2, 4, 5]], y=np.array([w for w in WORDS if w]))
    elif form == "dict":
        source, target = {"a": np.arange(6.0)}, np.array(WORDS, dtype=object)
    else:
        source = table if form == "frame" else table.astype({"y": "category"})
    rows = open_rows(source, target=target, missing_target="skip")
    assert rows.labels == ("apple", "fig", "pear")
    assert numbers_of(rows).tolist() == [2.0, 0.0, 2.0, 1.0, 0.0]
    assert rows.take([3, 0]).targets[:, 0].tolist() == [1.0, 2.0]
    assert rows.n_skipped == (form != "npz")


def test_a_missing_label_is_refused_unless_it_is_skipped(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"a": np.arange(6.0), "y": WORDS}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(DataError, match=r"row 3 \(line 5\), column 'y' of .* is missing; every row needs its target"):
        list(open_rows(tmp_path / "d.csv", target="y").blocks(10))


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["true", "False", "TRUE"], (False, True)),
        (["true", "false", "unknown"], ("false", "true", "unknown")),
        (["1", "0", "1"], None),
        (["NA", "", "b"], ("b",)),
    ],
    ids=str,
)
def test_cells_of_a_csv_file_are_booleans_numbers_or_labels(cells, labels, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "d.csv").write_text("a,y\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)))
    rows = open_rows(tmp_path / "d.csv", target="y", missing_target="skip")
    assert rows.labels == labels
    assert len(numbers_of(rows)) == sum(cell not in ("NA", "") for cell in cells)


def test_numbers_and_text_in_one_target_are_refused(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "d.csv").write_text("a,y\n1,2.5\n2,abc\n")
    with pytest.raises(DataError, match=r"row 1 \(line 3\), .* holds text, 'abc'; a target must hold numbers only, or"):
        open_rows(tmp_path / "d.csv", target="y")


def test_later_text_that_looks_like_a_number_is_a_label(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", 16)
    (tmp_path / "d.csv").write_text("a,y\n" + "1,one\n2,two\n" * 4 + "3,3\n" * 8)
    rows = open_rows(tmp_path / "d.csv", target="y")
    assert rows.labels == ("3", "one", "two")
    assert numbers_of(rows).tolist() == [1.0, 2.0] * 4 + [0.0] * 8


def test_a_target_of_very_many_texts_is_refused():
    names = pd.DataFrame({"a": np.arange(MOST_LABELS + 1.0), "y": [f"name {k}" for k in range(MOST_LABELS + 1)]})
    with pytest.raises(DataError, match="column 'y' of the DataFrame holds more than 1,000 different texts"):
        open_rows(names, target="y")
    assert len(open_rows(names[1:], target="y").labels) == MOST_LABELS


def test_booleans_in_memory_are_labels_and_numbers():
    rows = open_rows(X, target=LABELS > 4)
    assert rows.labels == (False, True)
    assert numbers_of(rows).tolist() == [0.0, 1.0, 0.0, 1.0, 1.0, 1.0]
