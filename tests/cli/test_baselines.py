"""What `fit` prints beside the errors of the model: simpler models, boosting, and a threshold."""

import json

import numpy as np
import pandas as pd
import pytest

from ridgemark import load
from ridgemark.evaluate import choose_threshold

OPTIONS = ["--kernel", "gaussian", "--bandwidth", "1", "--landmarks", "20"]


@pytest.fixture
def rare(tmp_path):
    """A file of rows of which an eighth are of the second class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    ill = X[:, 0] + 0.7 * rng.normal(size=240) > 1.4
    pd.DataFrame(X, columns=["a", "b"]).assign(y=np.where(ill, "sick", "healthy")).to_csv(
        tmp_path / "y.csv", index=False
    )
    return tmp_path / "y.csv"


@pytest.fixture
def fit(rare, ridgemark):
    def run(*more):
        output = rare.with_suffix(".ridgemark")
        code, printed, errors = ridgemark("fit", rare, "-t", "y", "-o", output, "--force", *OPTIONS, *more)
        assert code == 0, errors
        return printed

    return run


def test_the_share_of_right_labels_stands_beside_that_of_the_most_frequent_one(fit):
    printed = fit()
    assert "always the most frequent label: 8" in printed
    assert "average precision of 'sick'" in printed


def test_a_threshold_of_least_cost_is_printed_and_predicted_with(fit, rare, ridgemark):
    chosen = json.loads(fit("--cost", "1,6", "--json"))["threshold"]
    assert chosen["threshold"] < 0.5 < chosen["recall"]
    assert chosen["reason"] == "least cost, 1 for a false alarm and 6 for a miss"
    model, table = load(rare.with_suffix(".ridgemark")), pd.read_csv(rare)
    code, _, errors = ridgemark(
        *("predict", rare.with_suffix(".ridgemark"), rare, "-o", rare.with_name("p.csv")),
        *("--threshold", chosen["threshold"]),
    )
    assert code == 0, errors
    second = model.predict_proba(table[["a", "b"]])[:, 1] >= chosen["threshold"]
    predicted = pd.read_csv(rare.with_name("p.csv"))["prediction"]
    np.testing.assert_array_equal(predicted, np.where(second, "sick", "healthy"))


def test_the_threshold_is_chosen_on_rows_left_out(fit, rare):
    chosen = json.loads(fit("--rate", "0.2", "--keep-sums", "--json"))["threshold"]
    model, table = load(rare.with_suffix(".ridgemark")), pd.read_csv(rare)
    diagnosis = model.diagnose(table[["a", "b"]], table["y"])
    expected = choose_threshold(np.exp(diagnosis.log_probabilities[:, 1]), diagnosis.shares[:, 1], rate=0.2)
    assert chosen["threshold"] == pytest.approx(expected.threshold, rel=1e-9)
    assert abs(chosen["rate"] - 0.2) < 0.01


def test_balanced_classes_are_judged_with_the_weights_of_the_rows(fit, rare):
    plain, balanced = (json.loads(fit("--class-weight", weight, "--json")) for weight in ("none", "balanced"))
    shares = [np.sum(record["left_out"]["confusion"], axis=1) for record in (plain, balanced)]
    np.testing.assert_allclose(*shares)
    assert load(rare.with_suffix(".ridgemark")).class_weight == "balanced"
    sick = [np.array(record["left_out"]["confusion"])[1, 1] for record in (plain, balanced)]
    assert sick[1] > sick[0]


def test_boosting_is_fitted_where_it_is_asked_for(fit):
    record = json.loads(fit("--baseline", "boosting", "--json"))
    assert record["boosting"]["n_rows"] == 240
    assert 0.8 < record["boosting"]["accuracy"] <= 1.0


def test_a_tuned_fit_prints_linear_regression_and_the_mean_beside_its_error(tmp_path, ridgemark):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(140, 2))
    table = pd.DataFrame(X, columns=["a", "b"]).assign(y=X[:, 0] ** 2 + 0.1 * rng.normal(size=140))
    table.to_csv(tmp_path / "y.csv", index=False)
    command = ["fit", tmp_path / "y.csv", "-t", "y", "-o", tmp_path / "m", "--force", "--kernel", "gaussian"]
    code, printed, errors = ridgemark(*command, "--bandwidth", "shared")
    assert code == 0, errors
    assert "linear ridge regression" in printed
    assert "optimistic" in printed
    code, printed, _ = ridgemark(*command, "--bandwidth", "shared", "--json")
    baselines = json.loads(printed)["tuning"]["baselines"]
    assert baselines["model"] < 0.5 * baselines["linear"]


@pytest.mark.parametrize("wrong", [["--cost", "1"], ["--cost", "1,-2"], ["--rate", "1.5"]])
def test_wrong_costs_and_rates_are_refused_in_one_line(rare, ridgemark, wrong):
    code, _, errors = ridgemark("fit", rare, "-t", "y", "-o", rare.with_suffix(".ridgemark"), *OPTIONS, *wrong)
    assert code == 2
    assert len(errors) <= 2
    assert not rare.with_suffix(".ridgemark").exists()


def test_a_threshold_needs_two_classes(tmp_path, ridgemark):
    pd.DataFrame({"a": np.arange(60.0), "y": list("uvw") * 20}).to_csv(tmp_path / "y.csv", index=False)
    code, _, errors = ridgemark("fit", tmp_path / "y.csv", "-t", "y", "-o", tmp_path / "m", *OPTIONS, "--cost", "1,2")
    assert code == 2
    assert "between two classes; the target has 3" in errors[-1]


def test_options_of_classes_are_refused_for_numbers(tmp_path, ridgemark):
    pd.DataFrame({"a": np.arange(60.0), "y": np.arange(60.0) ** 2}).to_csv(tmp_path / "y.csv", index=False)
    command = ["fit", tmp_path / "y.csv", "-t", "y", "-o", tmp_path / "m", *OPTIONS]
    code, _, errors = ridgemark(*command, "--class-weight", "balanced")
    assert code == 2
    assert "--class-weight is for labels of classes" in errors[-1]
    assert not (tmp_path / "m").exists()
