"""`fit --target-transform`: errors, predictions and the hint are in units of the target."""

import json

import pandas as pd

from tests.estimators.test_target_transform import skewed


def test_the_command_line_fits_reports_and_predicts_in_units_of_the_target(tmp_path, ridgemark):
    X, y = skewed(300)
    pd.DataFrame(X, columns=["a", "b"]).assign(y=1000 * y).to_csv(tmp_path / "y.csv", index=False)
    command = ["fit", tmp_path / "y.csv", "-t", "y", "-o", tmp_path / "m", "--kernel", "gaussian", "--bandwidth", "1"]
    code, printed, errors = ridgemark(*command)
    assert code == 0, errors
    assert "--target-transform auto" in printed  # a hint
    code, printed, errors = ridgemark(*command, "--force", "--target-transform", "log", "--json")
    assert code == 0, errors
    record = json.loads(printed)
    assert record["target_transform"]["kind"] == "log"
    assert 200 < record["loo_rms"][0] < 5000
    code, printed, errors = ridgemark("predict", tmp_path / "m", tmp_path / "y.csv", "-o", tmp_path / "p.csv")
    assert code == 0, errors
    assert pd.read_csv(tmp_path / "p.csv")["prediction"].min() > 0
