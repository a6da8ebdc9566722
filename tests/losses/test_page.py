"""The page of a fit by a loss, and a loss of one's own: one class, and all that an estimator does with it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ridgemark
from ridgemark import NystromRegressor, open_rows
from ridgemark.cli.measures import fit_and_measure, held_out, kind_of, summary
from ridgemark.errors import ParameterError
from ridgemark.losses import Loss, Quantile
from ridgemark.report.fit_page import fit_page
from tests.helpers import slowly
from tests.losses.log_cosh import LogCosh

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (300, 2))
MEAN = np.exp(np.sin(2 * X[:, 0]) + 0.5 * X[:, 1])
TARGETS = {
    "huber": MEAN + RNG.standard_t(2, 300),
    "poisson": RNG.poisson(2 * MEAN).astype(float),
    "gamma": MEAN * RNG.gamma(2, 0.5, 300),
}
TRAIN, TEST = slice(0, 200), slice(200, 300)
OPTIONS = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 25, "random_state": 0}


def measured(loss, y, **more):
    """Return a model with its measurements, and its page."""
    model = NystromRegressor(loss, **OPTIONS, **more)
    run = fit_and_measure(model, open_rows(X[TRAIN], y[TRAIN]))
    run = replace(run, held_out=held_out(model, open_rows(X[TEST], y[TEST]), Path("others.csv")))
    return model, run, fit_page(model, run, "1.0")


@pytest.fixture(autouse=True)
def matplotlib():
    pytest.importorskip("matplotlib")


def test_a_loss_of_ones_own_is_fitted_certified_saved_printed_and_drawn(tmp_path):
    y = TARGETS["huber"]
    model, run, page = measured(LogCosh(), y)
    loss, eta = model.loss_, model.predict(X[TRAIN])[:, None]
    assert model.ridge_path_.loo_loss[model.ridge_path_.chosen] == model.ridge_path_.loo_loss.min()
    assert model.score(X[TEST], y[TEST]) > 0.2
    certificate = model.certificate_
    assert 0 < certificate.bound < 0.5
    assert certificate.inputs["objective"][0] >= 200 * loss.values(y[TRAIN, None], eta).mean() - 1e-6
    path = model.save(tmp_path / "model")
    with pytest.raises(ParameterError, match="loss=LogCosh"):
        ridgemark.load(path)
    for given in (LogCosh, LogCosh()):
        assert np.array_equal(ridgemark.load(path, loss=given).predict(X), model.predict(X))
    printed = " ".join(f"{label} {value}" for label, value in kind_of(model).lines(model, run))
    for said in ("log-cosh regression", "the centre of y", "share of the log-cosh loss explained", "loses at most"):
        assert said in printed
    assert summary(model, run)["loss"] == "log-cosh"
    assert "log-cosh loss, held out" in page
    assert page.count("<figure") >= 3


def test_a_loss_without_a_conjugate_says_that_it_has_no_certificate():
    class Plain(LogCosh):
        conjugate = Loss.conjugate

    model = NystromRegressor(Plain(), **OPTIONS, ridge=1e-3).fit(X[TRAIN], TARGETS["huber"][TRAIN])
    with pytest.raises(ParameterError, match="has no method conjugate"):
        model.certify(X[TRAIN], TARGETS["huber"][TRAIN])


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_means_are_compared_with_what_is_observed(loss):
    model, run, page = measured(loss, TARGETS[loss])
    groups = np.array(run.held_out["calibration"])
    predicted, observed = model.predict(X[TEST]), TARGETS[loss][TEST]
    order = np.argsort(predicted, kind="stable")
    assert np.allclose(groups[:, 0], [predicted[part].mean() for part in np.array_split(order, 10)])
    assert np.allclose(groups[:, 1], [observed[part].mean() for part in np.array_split(order, 10)])
    assert "predictions are what is observed on average" in page
    assert "RMS)" not in page.split("How the kernel was tuned")[0].split("Which rows matter?")[0].split("Inputs")[0]


@pytest.mark.usefixtures("no_figures")
def test_shares_below_are_compared_with_levels():
    levels = [0.1, 0.5, 0.9]
    model, run, page = measured("quantile", TARGETS["huber"], quantiles=levels)
    below = (TARGETS["huber"][TEST, None] < model.predict(X[TEST])).mean(axis=0)
    assert np.allclose(run.held_out["below"], below)
    assert np.allclose(run.held_out["below_error"], np.sqrt(np.multiply(levels, 1 - np.array(levels)) / 100))
    assert np.allclose(np.array(run.held_out["calibration"])[:, 1:4].mean(axis=0), below)
    assert "as many lie below as the level says" in page
    ends = model.predict_interval(X[TEST], 0.9)
    inside = (ends[:, 0] <= TARGETS["huber"][TEST]) & (TARGETS["huber"][TEST] <= ends[:, 1])
    assert run.held_out["coverage"] == pytest.approx(inside.mean())


@pytest.mark.usefixtures("no_figures")
def test_one_quantile_has_a_page_without_intervals():
    page = measured(Quantile((0.3,)), TARGETS["huber"])[2]
    assert "Intervals are not made" in page
    assert "below the 0.3 quantile" in page


@pytest.mark.usefixtures("no_figures")
def test_rates_are_compared_by_exposure():
    years = RNG.uniform(0.5, 3, 300)
    claims = RNG.poisson(MEAN * years).astype(float)
    model = NystromRegressor("poisson", **OPTIONS)
    train = open_rows(X[TRAIN], claims[TRAIN], exposure=years[TRAIN])
    run = fit_and_measure(model, train)
    run = replace(run, held_out=held_out(model, open_rows(X[TEST], claims[TEST], exposure=years[TEST]), Path("o")))
    groups = np.array_split(np.argsort(model.predict(X[TEST]), kind="stable"), 10)
    rates = [claims[TEST][part].sum() / years[TEST][part].sum() for part in groups]
    assert np.allclose(np.array(run.held_out["calibration"])[:, 1], rates)
    assert run.held_out["coverage"] is None
    assert "lower" not in run.sample
    assert fit_page(model, run, "1.0")


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("loss", ["huber", "gamma", "quantile", *slowly("poisson")])
def test_equal_targets_have_a_page(loss):
    model = NystromRegressor(loss, **OPTIONS)
    run = fit_and_measure(model, open_rows(X[TRAIN], np.full(200, 3.0)))
    assert "0.0% explained" in fit_page(model, run, "1.0")
