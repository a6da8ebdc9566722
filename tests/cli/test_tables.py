"""A messy Parquet file through the commands, without an option but the target."""

import numpy as np
import pytest

from ridgemark import load
from tests.tables.cases import fitted, messy, quietly

pytest.importorskip("pyarrow")


def test_a_messy_table_is_fitted_certified_and_predicted(ridgemark, tmp_path):
    table, y = messy()
    data, model, output = tmp_path / "t.parquet", tmp_path / "m.ridgemark", tmp_path / "p.npy"
    table.assign(y=y).to_parquet(data, row_group_size=100)
    code, _, said = ridgemark("fit", data, "--target", "y", "--output", model, "--test", data, "--bandwidth", "median")
    assert code == 0
    assert any("column 'id' numbers the rows" in line for line in said)
    assert ridgemark("certify", model, data)[0] == 0
    later = table.copy()
    later.loc[::3, "city, name"] = "Bonn"
    later.to_parquet(tmp_path / "later.parquet", row_group_size=70)
    code, _, said = ridgemark("predict", model, tmp_path / "later.parquet", "--output", output, "--interval", "0.9")
    assert code == 0
    assert sum("has 100 values not seen in the fit (such as 'Bonn')" in line for line in said) == 1
    python = fitted(table, y, kernel="auto", ridge="loo", n_landmarks="auto")
    assert np.load(output)[:, 0] == pytest.approx(quietly(python.predict, later), rel=1e-9, abs=1e-9)


def test_the_page_of_a_table_shows_effects_of_its_columns(ridgemark, tmp_path):
    pytest.importorskip("matplotlib")
    table, y = messy()
    data, page = tmp_path / "t.parquet", tmp_path / "m.html"
    table.assign(y=y).to_parquet(data)
    options = ("--target", "y", "--output", tmp_path / "m", "--bandwidth", "median", "--report", page)
    assert ridgemark("fit", data, *options)[0] == 0
    assert "Average effects" in page.read_text()
    assert ridgemark("report", tmp_path / "m", "--output", tmp_path / "again.html", "--test", data)[0] == 0


def test_options_of_columns_reach_the_schema(ridgemark, tmp_path):
    table, y = messy()
    data = tmp_path / "t.parquet"
    table.assign(y=y, zone=np.arange(len(y)) % 3).to_parquet(data)
    fit = ("fit", data, "--target", "y", "--bandwidth", "median", "--output")
    assert ridgemark(*fit, tmp_path / "m", "--drop", "id", "--categorical", "zone", "--unknown", "error")[0] == 0
    names = load(tmp_path / "m").encoded_names_
    assert {"zone=0", "zone=1", "zone=2"} <= set(names)
    assert "id" not in names
    table.assign(zone=7).to_parquet(tmp_path / "new.parquet")
    code, _, said = ridgemark("predict", tmp_path / "m", tmp_path / "new.parquet", "--output", tmp_path / "p.csv")
    assert code == 2
    assert "zone" in said[-1]
    code, _, said = ridgemark(*fit, tmp_path / "n", "--missing", "error")
    assert code == 2
    assert "missing" in said[-1]


def test_a_fit_with_a_checkpoint_is_the_same_and_removes_it(ridgemark, tmp_path):
    table, y = messy()
    data = tmp_path / "t.parquet"
    table.assign(y=y).to_parquet(data)
    fit = ("fit", data, "--target", "y", "--bandwidth", "median", "--output")
    assert ridgemark(*fit, tmp_path / "one")[0] == 0
    assert ridgemark(*fit, tmp_path / "other", "--checkpoint", tmp_path / "c")[0] == 0
    assert not (tmp_path / "c").exists()
    one, other = load(tmp_path / "one"), load(tmp_path / "other")
    assert np.array_equal(one.dual_coef_, other.dual_coef_)
