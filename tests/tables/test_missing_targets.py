"""Rows whose target is missing: refused, or left out as if they were not there."""

import numpy as np
import pytest

from ridgemark import open_rows
from ridgemark.errors import DataError, ParameterError
from tests.helpers import slowly
from tests.tables.cases import fitted, messy

pd = pytest.importorskip("pandas")

GAPS = [0, 3, 4, 70, *range(140, 215), 299]  # with the size of row groups below, one group has no row left
FORMS = ["csv", "parquet", "folder", "arrow", "frame", "npy", "npz"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The messy table, and its numbers, with gaps in the target, in every form; and the same without these rows."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("gaps")
    table, y = messy()
    whole = table.drop(columns="lasted").assign(y=y, w=np.arange(len(y)) + 1.0)
    whole.loc[GAPS, "y"] = np.nan
    whole.loc[GAPS[1:3], "grade"] = "c"
    whole.to_parquet(folder / "parquet.parquet", row_group_size=70)
    whole.to_feather(folder / "arrow.feather", chunksize=70)
    (folder / "folder").mkdir()
    for k, rows in enumerate((slice(0, 150), slice(150, None))):
        whole.iloc[rows].to_parquet(folder / "folder" / f"{k}.parquet")
    text = whole.to_csv(index=False, na_rep="NA").splitlines()
    text[1 + GAPS[1]] = text[1 + GAPS[1]].replace(",NA,4.0", ', "n/A" ,4.0').replace(', "n/A" ,', ',"  n/A ",')
    (folder / "csv.csv").write_text("\n\n".join(text))
    numbers = np.column_stack([np.arange(300.0)[::-1], whole["y"], whole["w"]])
    np.save(folder / "npy.npy", numbers)
    np.savez(folder / "npz.npz", X=numbers[:, [0, 2]], y=numbers[:, 1])
    return folder, whole, numbers


def opened(files, form, **options):
    """Return the rows of a form, and the same rows of what is left when gaps are dropped by hand."""
    folder, whole, numbers = files
    kept = np.delete(np.arange(300), GAPS)
    if form == "npy":
        roles = {"target": 1, "weight": 2}
        return open_rows(folder / "npy.npy", **roles, **options), open_rows(numbers[kept], **roles)
    if form == "npz":
        return open_rows(folder / "npz.npz", **options), open_rows(numbers[kept][:, [0, 2]], numbers[kept, 1])
    roles = {"target": "y", "weight": "w"}
    data = {"frame": whole, "folder": folder / "folder"}.get(form, next(folder.glob(f"{form}.*"), None))
    return open_rows(data, **roles, **options), open_rows(whole.iloc[kept].reset_index(drop=True), **roles)


@pytest.mark.parametrize("form", FORMS)
def test_rows_without_a_target_are_refused_by_default(form, files):
    with pytest.raises(DataError, match=r"row 0\b"):
        rows, _ = opened(files, form)
        fitted(rows)


@pytest.mark.parametrize("form", ["csv", "parquet", "frame", "npy", *slowly("folder", "arrow", "npz")])
def test_rows_without_a_target_are_left_out_as_if_they_were_not_there(form, files, monkeypatch):
    monkeypatch.setattr("ridgemark.rows.csv_scan.CHUNK_BYTES", 2000)
    rows, expected = opened(files, form, missing_target="skip")
    assert (rows.n_rows, rows.n_skipped) == (expected.n_rows, len(GAPS))
    assert np.array_equal(rows.kept, np.delete(np.arange(300), GAPS))
    model, other = fitted(rows), fitted(expected)
    assert model.encoded_names_ == other.encoded_names_
    assert model.dual_coef_ == pytest.approx(other.dual_coef_, rel=1e-9, abs=1e-9)
    encoded, same = (one._rows(source) for one, source in ((model, rows), (other, expected)))
    for block_rows in (1, 40, 300):
        blocks = zip(encoded.blocks(block_rows), same.blocks(block_rows), strict=True)
        assert all(np.array_equal(a.targets, b.targets) and a.start == b.start for a, b in blocks)
    some = np.array([219, 0, 3, 3, 150])
    for name in ("features", "targets", "weights"):
        assert np.array_equal(getattr(encoded.take(some), name), getattr(same.take(some), name))


@pytest.mark.parametrize("form", FORMS)
def test_a_file_without_a_single_target_is_refused(form, tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"a": [1.0, 2.0], "y": [np.nan, np.nan]})
    (tmp_path / "folder").mkdir()
    table.to_csv(tmp_path / "csv.csv", index=False)
    for name in ("parquet.parquet", "folder/1.parquet"):
        table.to_parquet(tmp_path / name)
    table.to_feather(tmp_path / "arrow.feather")
    np.save(tmp_path / "npy.npy", table.to_numpy())
    np.savez(tmp_path / "npz.npz", X=table[["a"]].to_numpy(), y=table["y"].to_numpy())
    data = {"frame": table, "folder": tmp_path / "folder"}.get(form, next(tmp_path.glob(f"{form}.*"), None))
    target = {"npy": 1, "npz": None}.get(form, "y")
    with pytest.raises(DataError, match="missing in all rows"):
        open_rows(data, target=target, missing_target="skip")


def test_the_refusal_of_a_missing_target_names_the_remedy(files):
    folder, _, _ = files
    for name in ("csv.csv", "parquet.parquet"):
        with pytest.raises(DataError, match=r'missing_target="skip"'):
            next(open_rows(folder / name, target="y", columns=["w"]).blocks(300))


def test_an_error_names_the_row_of_the_file_also_after_rows_left_out(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.csv").write_text("a,y\n1,\n2,NaN\nx,3\n4,5\n")
    rows = open_rows(tmp_path / "t.csv", target="y", missing_target="skip")
    with pytest.raises(DataError, match=r"row 2 \(line 4\), column 'a'"):
        next(rows.blocks(2))


def test_a_wrong_word_for_missing_targets_is_refused():
    with pytest.raises(ParameterError, match='missing_target must be "error" or "skip"'):
        open_rows(np.ones((3, 2)), target=1, missing_target="drop")


@pytest.mark.parametrize("skip", ["error", "skip"])
def test_an_infinite_target_is_not_missing_and_its_remedy_does_not_say_so(skip, tmp_path):
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n2,inf\n3,4\n")
    with pytest.raises(DataError, match=r"is inf \(infinity\).* fill it in or drop the row") as caught:
        list(open_rows(tmp_path / "rows.csv", target="y", missing_target=skip).blocks(10))
    assert "missing_target" not in str(caught.value)
