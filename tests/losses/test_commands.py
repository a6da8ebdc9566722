"""Losses on the command line: `fit --loss`, `predict` with an exposure, `certify`, `report --test`, and refusals."""

import json

import numpy as np
import pandas as pd
import pytest

from ridgemark import load, open_rows

OPTIONS = ["--kernel", "gaussian", "--bandwidth", "1", "--landmarks", "25"]
FITS = {
    "huber": ["-t", "y", "--loss", "huber"],
    "poisson": ["-t", "count", "--loss", "poisson"],
    "rates": ["-t", "claims", "--loss", "poisson", "--exposure", "years"],
    "gamma": ["-t", "cost", "--loss", "gamma"],
    "quantile": ["-t", "y", "--loss", "quantile", "--quantiles", "0.1,0.5,0.9"],
}


def write(path, n, seed):
    rng = np.random.default_rng(seed)
    X, years = rng.uniform(-2, 2, (n, 2)), rng.uniform(0.2, 3, n)
    mean = np.exp(np.sin(2 * X[:, 0]) + 0.5 * X[:, 1])
    table = pd.DataFrame(X, columns=["a", "b"]).assign(
        years=years,
        claims=rng.poisson(mean * years),
        count=rng.poisson(2 * mean),
        cost=mean * rng.gamma(2, 0.5, n),
        y=mean + rng.standard_t(2, n),
        kind=rng.choice(["u", "v"], n),
    )
    table.to_csv(path, index=False)
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("losses")
    write(made / "train.csv", 260, 0)
    write(made / "test.csv", 120, 1)
    return made


@pytest.fixture
def fit(folder, ridgemark):
    def run(name, *more, output="model"):
        columns = ["--columns", "a,b", "--output", folder / output, "--force"]
        return ridgemark("fit", folder / "train.csv", *FITS[name], *columns, *OPTIONS, *more)

    return run


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("huber", "share of the Huber loss explained"),
        ("poisson", "half the Poisson deviance"),
        ("rates", "(column 'years')"),
        ("gamma", "the mean amount"),
        ("quantile", "below the 0.9 quantile"),
    ],
)
def test_a_fit_speaks_in_the_words_of_its_loss(folder, fit, ridgemark, name, said):
    code, printed, errors = fit(name, "--test", folder / "test.csv")
    assert (code, errors) == (0, [])
    assert said in printed
    assert "of the gain over the best constant" in printed
    assert "RMS" not in printed
    code, lines, _ = ridgemark("info", folder / "model")
    assert code == 0
    assert said in lines


def test_the_record_of_a_fit_has_its_losses(folder, fit):
    code, printed, errors = fit("quantile", "--test", folder / "test.csv", "--json")
    assert code == 0, errors
    record = json.loads(printed)
    assert record["levels"] == [0.1, 0.5, 0.9]
    for rows in ("left_out", "held_out"):
        assert np.allclose(record[rows]["below"], record["levels"], atol=0.12)
        assert min(record[rows]["explained"]) > 0
    assert 0.7 < record["held_out"]["coverage"] <= 1
    assert record["held_out"]["n_rows"] == 120


def test_held_out_losses_are_those_of_score(folder, fit):
    for name in ("poisson", "rates"):
        _, printed, _ = fit(name, "--test", folder / "test.csv", "--json")
        exposure = {"exposure": "years"} if name == "rates" else {}
        rows = open_rows(folder / "test.csv", target=FITS[name][1], columns=["a", "b"], **exposure)
        expected = load(folder / "model").score(rows)
        assert json.loads(printed)["held_out"]["explained"] == pytest.approx([expected], rel=1e-9)


def test_predictions_are_multiplied_by_the_exposure_where_the_file_has_it(folder, fit, ridgemark):
    fit("rates")
    table = pd.read_csv(folder / "test.csv")
    table.drop(columns="years").to_csv(folder / "without.csv", index=False)
    written, said = [], []
    for name in ("test", "without"):
        out = folder / f"{name}.predicted.csv"
        code, _, errors = ridgemark("predict", folder / "model", folder / f"{name}.csv", "-o", out, "--force")
        assert code == 0, errors
        written.append(pd.read_csv(out)["prediction"].to_numpy())
        said.append(errors)
    assert np.allclose(written[0], written[1] * table["years"], rtol=1e-12)
    assert np.allclose(written[1], load(folder / "model").predict(table[["a", "b"]]), rtol=1e-12)
    assert said[0] == []
    assert said[1] == [
        f"ridgemark: '{folder / 'without.csv'}' has no column 'years': predictions are rates, for an exposure of 1"
    ]


def test_quantiles_and_their_interval_are_columns(folder, fit, ridgemark):
    fit("quantile")
    out = folder / "quantiles.csv"
    code, _, errors = ridgemark(
        "predict", folder / "model", folder / "test.csv", "-o", out, "--coverage", "0.8,0.9", "--force"
    )
    assert code == 0, errors
    table, rows = pd.read_csv(out), pd.read_csv(folder / "test.csv")[["a", "b"]]
    levels = [f"prediction_{level}" for level in (0.1, 0.5, 0.9)]
    assert table.columns.tolist() == [*levels, "lower_0.8", "upper_0.8", "lower_0.9", "upper_0.9"]
    model = load(folder / "model")
    assert np.allclose(table[levels], model.predict(rows), rtol=1e-12)
    assert np.allclose(table[["lower_0.9", "upper_0.9"]], model.predict_interval(rows, 0.9), rtol=1e-12)


def test_a_model_of_rates_is_certified_on_its_rows(folder, fit, ridgemark):
    fit("rates", "--keep-sums")
    code, printed, errors = ridgemark("certify", folder / "model", folder / "train.csv", "--json")
    assert code == 0, errors
    record = json.loads(printed)
    assert 0 < record["bound"] < 1
    assert "the fit loses at most" in record["claim"].lower()
    code, _, errors = ridgemark("certify", folder / "model", folder / "train.csv", "--kind", "trace")
    assert code == 2
    assert "audit" in errors[-1]


def test_effects_of_quantiles_are_columns_of_each_level(folder, fit, ridgemark):
    fit("quantile")
    code, printed, errors = ridgemark(
        "effects", folder / "model", folder / "test.csv", "-o", folder / "effects.csv", "--force"
    )
    assert code == 0, errors
    assert "the 0.9 quantile" in printed
    names = pd.read_csv(folder / "effects.csv", nrows=1).columns.tolist()
    assert names == [f"{name}_{level}" for level in (0.1, 0.5, 0.9) for name in "ab"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("-t y --loss huber --classify", "leave one of them out"),
        ("-t y --quantiles 0.1,0.9", "--quantiles needs --loss"),
        ("-t y --loss huber --quantiles 0.1,0.9", "quantiles are for"),
        ("-t y --loss quantile --quantiles 0.9,0.1", "ascending"),
        ("-t y --exposure years", "--exposure needs --loss"),
        ("-t y --loss huber --exposure years", "has no rate"),
        ("-t y --loss huber --certify trace", "--certify must be audit"),
        ("-t y --loss huber --ridge gcv", "gcv"),
        ("-t kind --loss huber", "holds text"),
        ("-t y,cost --loss huber", "fits one target, got 2"),
        ("-t y --loss poisson", "must not be negative"),
        ("-t count --loss gamma", "must be positive"),
        ("-t claims,count --loss poisson --exposure years", "--exposure is for one target"),
        ("-t claims --loss poisson --exposure b", "the exposure must be positive"),
    ],
)
def test_options_that_do_not_go_together_get_one_line(folder, ridgemark, options, said):
    code, printed, errors = ridgemark(
        "fit", folder / "train.csv", *options.split(), "--columns", "a", *OPTIONS, "-o", folder / "none", "--force"
    )
    assert (code, printed, len(errors)) == (2, "", 1)
    assert said in errors[0]
    assert not (folder / "none").exists()


def test_test_rows_outside_the_domain_are_refused_before_the_fit(folder, ridgemark, fit):
    table = pd.read_csv(folder / "test.csv")
    table.assign(count=-table["count"]).to_csv(folder / "negative.csv", index=False)
    code, printed, errors = fit("poisson", "--test", folder / "negative.csv", output="none")
    assert (code, printed, len(errors)) == (2, "", 1)
    assert "negative.csv" in errors[0]
    assert "must not be negative" in errors[0]
    assert not (folder / "none").exists()


def test_a_standard_deviation_is_refused(folder, fit, ridgemark):
    fit("huber")
    code, _, errors = ridgemark("predict", folder / "model", folder / "test.csv", "-o", folder / "std.csv", "--std")
    assert code == 2
    assert "--coverage gives intervals" in errors[0]


def test_one_quantile_has_no_interval_and_says_why(folder, ridgemark):
    arguments = ["-t", "y", "--loss", "quantile", "--columns", "a,b", *OPTIONS, "-o", folder / "median", "--force"]
    code, printed, errors = ridgemark("fit", folder / "train.csv", *arguments)
    assert (code, errors) == (0, [])
    assert "not made: an interval of quantiles needs two fitted levels" in printed


def test_scores_by_a_model_of_a_loss_need_a_lambda_of_squared_errors(folder, fit, ridgemark):
    fit("poisson")
    asked = ("scores", folder / "test.csv", "--model", folder / "model")
    code, printed, errors = ridgemark(*asked)
    assert (code, printed, len(errors)) == (2, "", 1)
    assert "half the Poisson deviance" in errors[0]
    assert "give --ridge too" in errors[0]
    code, printed, errors = ridgemark(*asked, "--ridge", "1e-3", "--json")
    assert (code, errors, json.loads(printed)["ridge"]) == (0, [], 1e-3)
