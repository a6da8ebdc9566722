"""`--group`: fits, pages and later files with a column of groups."""

import json

import numpy as np
import pytest

from tests.groups.problems import patients

pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")


@pytest.mark.usefixtures("no_figures")
def test_a_fit_with_groups_says_what_is_left_out(ridgemark, tmp_path):
    X, y, groups = patients(30, 6)
    table = pd.DataFrame(X, columns=["age", "bmi", "dose"]).assign(patient=[f"p{k}" for k in groups], y=y)
    rows, model, page = tmp_path / "rows.csv", tmp_path / "m.ridgemark", tmp_path / "page.html"
    table.to_csv(rows, index=False)
    fit = ("fit", rows, "--target", "y", "--group", "patient", "--bandwidth", "median", "--output", model)
    code, out, _ = ridgemark(*fit, "--test", rows, "--report", page, "--json")
    assert code == 0
    assert json.loads(out)["n_groups"] == 30
    assert json.loads(out)["n_features"] == 3
    shown = ridgemark("info", model)[1]
    assert "each row predicted from rows of other groups" in shown
    assert "leave-one-group-out" in shown
    text = page.read_text(encoding="utf-8")
    assert "observations of new groups" in text
    assert "leave-one-group-out RMS" in text
    assert ridgemark("predict", model, rows, "--output", tmp_path / "p.npy")[0] == 0
    assert np.isfinite(np.load(tmp_path / "p.npy")).all()
    asked = ridgemark(*fit, "--force", "--columns", "dose,patient", "--json")[1]
    assert json.loads(asked)["n_features"] == 2


def test_groups_of_a_file_without_names_are_found_again(ridgemark, tmp_path):
    X, y, groups = patients(30, 6)
    np.save(tmp_path / "rows.npy", np.c_[X, groups, y])
    model = tmp_path / "m"
    fit = ("fit", tmp_path / "rows.npy", "--target", "4", "--group", "3", "--bandwidth", "median", "--output", model)
    code, out, errors = ridgemark(*fit, "--test", tmp_path / "rows.npy", "--json")
    assert code == 0, errors
    assert json.loads(out)["n_features"] == 3
