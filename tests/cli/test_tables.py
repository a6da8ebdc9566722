"""A messy Parquet file through the commands, without an option but the target."""

import numpy as np
import pytest

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
