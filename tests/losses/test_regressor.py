"""`NystromRegressor`: what is fitted, predicted, refused and kept."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.metrics import d2_pinball_score, d2_tweedie_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from ridgemark import NystromRegressor, NystromRidge, load, open_rows
from ridgemark.errors import DataError, ParameterError
from ridgemark.evaluate import forward
from ridgemark.fitting import losses
from ridgemark.kernels import Gaussian
from ridgemark.losses import Huber, Quantile
from tests.helpers import pass_scikit_learn, slowly

LOSSES = ["huber", "poisson", "gamma", "quantile"]
QUICK = {"bandwidth": "median", "n_landmarks": 40, "random_state": 0}


def made(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    targets = {
        "huber": f + 0.3 * rng.standard_t(2, n),
        "poisson": rng.poisson(np.exp(f + 0.5)).astype(float),
        "gamma": np.exp(f) * rng.gamma(3.0, 1 / 3, n),
        "quantile": f + 0.3 * rng.normal(size=n) * np.exp(0.5 * X[:, 1]),
    }
    return X, f, targets


@pytest.mark.parametrize("loss", ["gamma", *slowly("huber", "poisson", "quantile")])
def test_no_check_of_scikit_learn_fails(loss):
    options = {"loss": loss, "bandwidth": "median", "n_landmarks": 20, "ridge": 1e-4}
    pass_scikit_learn(NystromRegressor(**options))


def test_outliers_hardly_move_a_robust_fit():
    X, f, _ = made(600)
    rng = np.random.default_rng(1)
    y = f + 0.2 * rng.normal(size=600)
    spoilt = y + np.where(rng.random(600) < 0.1, 20 * rng.normal(size=600), 0.0)

    def error(model, targets):
        return float(np.sqrt(np.mean((model.fit(X, targets).predict(X) - f) ** 2)))

    robust = NystromRegressor(**QUICK)
    assert error(robust, spoilt) < 1.5 * error(robust, y)
    assert error(robust, spoilt) < 0.25 * error(NystromRidge(**QUICK), spoilt)


def test_delta_follows_the_noise():
    X, f, _ = made(600)
    y = f + 0.2 * np.random.default_rng(1).normal(size=600)
    assert NystromRegressor(**QUICK).fit(X, y).loss_.delta == pytest.approx(1.35 * 0.2, rel=0.15)
    assert NystromRegressor(Huber(delta=0.7), **QUICK).fit(X, y).loss_.delta == 0.7


def test_quantiles_never_cross_and_hold_their_shares():
    X, _, targets = made(4000)
    model = NystromRegressor("quantile", quantiles=[0.1, 0.5, 0.9], **QUICK).fit(X[:2000], targets["quantile"][:2000])
    predicted = model.predict(np.random.default_rng(2).normal(scale=5, size=(100_000, 2)))
    assert (np.diff(predicted, axis=1) >= 0).all()
    below = (targets["quantile"][2000:, None] < model.predict(X[2000:])).mean(axis=0)
    assert below == pytest.approx([0.1, 0.5, 0.9], abs=0.03)


def test_of_many_features_the_middle_level_chooses_the_ridge(monkeypatch):
    X, _, targets = made(2000)
    solved = []
    monkeypatch.setattr("ridgemark.fitting.losses._MANY", 0)
    search = losses.LossSearch
    monkeypatch.setattr(losses, "LossSearch", lambda newtons, *given: solved.append(newtons) or search(newtons, *given))
    model = NystromRegressor("quantile", quantiles=[0.1, 0.5, 0.9], **QUICK).fit(X[:1000], targets["quantile"][:1000])
    assert [[newton.loss.levels for newton in newtons] for newtons in solved] == [[(0.5,)]]
    below = (targets["quantile"][1000:, None] < model.predict(X[1000:])).mean(axis=0)
    assert below == pytest.approx([0.1, 0.5, 0.9], abs=0.04)


def test_one_median_is_flat_and_a_list_has_a_column_for_each_level():
    X, _, targets = made()
    assert NystromRegressor("quantile", **QUICK).fit(X, targets["quantile"]).predict(X).shape == (400,)
    assert NystromRegressor("quantile", quantiles=[0.5], **QUICK).fit(X, targets["quantile"]).predict(X).shape == (
        400,
        1,
    )


def test_scores_are_those_of_scikit_learn():
    X, _, targets = made()
    for loss, power in (("poisson", 1), ("gamma", 2)):
        model = NystromRegressor(loss, **QUICK).fit(X, targets[loss])
        reference = d2_tweedie_score(targets[loss], model.predict(X), power=power)
        assert model.score(X, targets[loss]) == pytest.approx(reference, abs=1e-9)
    model = NystromRegressor(Quantile((0.3,)), **QUICK).fit(X, targets["quantile"])
    reference = d2_pinball_score(targets["quantile"], model.predict(X), alpha=0.3)
    assert model.score(X, targets["quantile"]) == pytest.approx(reference, abs=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_weight_two_is_a_row_written_twice(loss):
    X, _, targets = made(150)
    twice = np.arange(150) % 3 == 0
    options = {"kernel": Gaussian(1.0), "selection": X[:30], "ridge": 1e-3}
    own = {"huber": Huber(delta=0.5), "quantile": Quantile((0.4,), 0.05)}.get(loss, loss)
    weighted = NystromRegressor(own, **options).fit(X, targets[loss], 1.0 + twice)
    written = NystromRegressor(own, **options).fit(
        np.vstack([X, X[twice]]), np.append(targets[loss], targets[loss][twice])
    )
    scale = np.abs(written.dual_coef_).max()
    assert weighted.dual_coef_ == pytest.approx(written.dual_coef_, abs=1e-6 * scale)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_saved_model_predicts_the_same_bits(loss, tmp_path):
    X, _, targets = made()
    model = NystromRegressor(loss, **QUICK).fit(X, targets[loss])
    for sums in ("predict", True, False):
        again = load(model.save(tmp_path / "m.ridgemark", sums=sums))
        assert np.array_equal(again.predict(X), model.predict(X))
        assert again.loss_ == model.loss_
    whole = load(model.save(tmp_path / "m.ridgemark", sums=True))
    assert whole.certify(X, targets[loss]).bound == pytest.approx(model.certify(X, targets[loss]).bound)


def test_exposure_is_a_column_an_array_or_a_keyword(tmp_path):
    X, f, _ = made()
    rng = np.random.default_rng(3)
    years = rng.uniform(0.5, 4.0, 400)
    claims = rng.poisson(years * np.exp(f)).astype(float)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "years": years, "claims": claims})
    frame.to_csv(tmp_path / "claims.csv", index=False)
    arrays = NystromRegressor("poisson", **QUICK).fit(X, claims, exposure=years)
    for source in (frame, tmp_path / "claims.csv"):
        rows = open_rows(source, target="claims", exposure="years")
        assert rows.n_features == 2
        model = NystromRegressor("poisson", **QUICK).fit(rows)
        assert model.predict(rows) == pytest.approx(arrays.predict(X, years), rel=1e-6)
        assert model.score(rows) == pytest.approx(arrays.score(X, claims, exposure=years), rel=1e-6)
        assert model.certify(rows).bound == pytest.approx(arrays.certify(X, claims, exposure=years).bound, rel=1e-3)
    with pytest.raises(DataError, match="exposure must be positive, got 0 in row 7"):
        NystromRegressor("poisson", **QUICK).fit(X, claims, exposure=np.where(np.arange(400) == 7, 0.0, years))
    with pytest.raises(DataError, match=r"exposure: there is no column 'age' in .*; its columns are"):
        open_rows(source, target="claims", exposure="age")
    with pytest.raises(ParameterError, match="'claims' is both in target and in exposure"):
        open_rows(source, target="claims", exposure="claims")
    with pytest.raises(ParameterError, match="exposure is for counts and amounts"):
        NystromRegressor("huber", **QUICK).fit(X, claims, exposure=years)
    with pytest.raises(DataError, match="has an exposure"):
        NystromRidge(**QUICK).fit(rows)


def test_exposure_is_routed_by_scikit_learn():
    X, f, _ = made()
    years = np.random.default_rng(3).uniform(0.5, 4.0, 400)
    claims = np.random.default_rng(4).poisson(years * np.exp(f)).astype(float)
    with config_context(enable_metadata_routing=True):
        model = NystromRegressor("poisson", **QUICK).set_fit_request(exposure=True).set_score_request(exposure=True)
        scores = cross_val_score(model, X, claims, cv=3, params={"exposure": years})
        assert (scores > 0.3).all()
        search = GridSearchCV(model, {"ridge": [1e-3, 1e3]}, cv=2).fit(X, claims, exposure=years)
    assert search.best_params_ == {"ridge": 1e-3}


@pytest.mark.parametrize(
    ("loss", "y", "said"),
    [
        ("poisson", [1.0, -1.0, 2.0, 3.0], "must not be negative, got -1 in row 1"),
        ("poisson", [0.0] * 4, "all zero"),
        ("gamma", [1.0, 2.0, 0.0, -3.0], "must be positive, got 0 in row 2 and in 1 more"),
    ],
)
def test_targets_outside_the_domain_are_refused_in_one_line(loss, y, said):
    with pytest.raises(DataError, match=said):
        NystromRegressor(loss, **QUICK).fit(np.arange(8.0).reshape(4, 2), y)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loss": "squared"}, "loss must be one of"),
        ({"loss": "huber", "quantiles": [0.5]}, "quantiles are for"),
        ({"loss": "quantile", "quantiles": [0.9, 0.1]}, "ascending levels"),
        ({"loss": "quantile", "quantiles": 0.5}, "list of levels"),
        ({"loss": Huber, "quantiles": None}, "loss must be one of"),
        ({"ridge": "gcv"}, "squared errors"),
        ({"certify_with": "trace"}, "certify_with must be None"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_in_one_line(options, said):
    X, _, targets = made(50)
    with pytest.raises(ParameterError, match=said):
        NystromRegressor(**options).fit(X, targets["huber"])


@pytest.mark.parametrize(
    ("name", "said"), [("partial_fit", "change with the coefficients"), ("distance_to_exact", "certify")]
)
def test_methods_of_squared_errors_are_absent_and_the_error_says_why(name, said):
    assert not hasattr(NystromRegressor(), name)
    with pytest.raises(AttributeError, match=f"NystromRegressor has no {name}: .*{said}"):
        getattr(NystromRegressor(), name)


def test_rolling_evaluation_refuses_what_a_loss_does_not_have():
    X, _, targets = made(120)
    with pytest.raises(ParameterError, match="NystromRegressor does not have"):
        forward(NystromRegressor(**QUICK), X, targets["huber"], time=np.arange(120), n_splits=2, refit=False)
    levels = NystromRegressor("quantile", quantiles=[0.2, 0.8], **QUICK)
    with pytest.raises(DataError, match="one prediction for each target, got 2 for 1"):
        forward(levels, X, targets["huber"], time=np.arange(120), n_splits=2)


def test_as_many_rows_left_out_lie_below_a_quantile_as_its_level_says():
    rng, levels = np.random.default_rng(0), [0.1, 0.5, 0.9]
    X, new = rng.uniform(-2, 2, size=(300, 2)), rng.uniform(-2, 2, size=(4000, 2))
    y, of_new = (np.sin(5 * rows[:, 0]) + 0.1 * rng.normal(size=len(rows)) for rows in (X, new))
    fixed = {"quantiles": levels, "kernel": "gaussian", "bandwidth": 0.7, "n_landmarks": 80, "ridge": 1e-5}
    model = NystromRegressor("quantile", **fixed, random_state=0).fit(X, y)
    assert model.calibration_.below == pytest.approx(levels, abs=0.01)
    solved = model.predict(new) - model.intercept_ + model._model.sums.intercept
    off, off_before = (np.abs((of_new[:, None] < p).mean(axis=0) - levels).max() for p in (model.predict(new), solved))
    assert off < 0.03 < 0.1 < off_before
    plain = NystromRegressor("quantile", **fixed, fit_intercept=False, random_state=0).fit(X, y)
    assert not plain.intercept_.any()


def test_several_targets_are_refused():
    X, _, targets = made(50)
    with pytest.raises(DataError, match="one target"):
        NystromRegressor(**QUICK).fit(X, np.column_stack([targets["huber"]] * 2))


def test_tables_with_text_and_gaps_are_fitted():
    X, f, _ = made()
    rng = np.random.default_rng(5)
    kind = rng.choice(["red", "blue"], 400)
    frame = pd.DataFrame({"a": np.where(rng.random(400) < 0.1, np.nan, X[:, 0]), "b": X[:, 1], "kind": kind})
    counts = rng.poisson(np.exp(f + (kind == "red")))
    model = NystromRegressor("poisson", **QUICK).fit(frame, counts)
    effects = model.effects(frame)
    assert effects.shape == (400, 3)
    other = frame.assign(kind=np.where(kind == "red", "blue", "red"))
    first, second = (model.predict(one) for one in (frame.assign(kind="blue"), frame.assign(kind="red")))
    assert effects[:, 2] == pytest.approx(second - first)
    assert model.predict(other).shape == (400,)
    assert "kind" in str(model.effects_summary(frame))


def test_effects_of_counts_are_derivatives_of_the_mean():
    X, _, targets = made()
    model = NystromRegressor("poisson", **QUICK).fit(X, targets["poisson"])
    step = np.array([1e-5, 0.0])
    slope = (model.predict(X + step) - model.predict(X - step)) / 2e-5
    assert model.effects(X)[:, 0] == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_intervals_cover_as_asked(loss):
    X, _, targets = made(3000)
    options = {"quantiles": [0.05, 0.95], "ridge": 1e-3} if loss == "quantile" else {}  # its path takes most time
    y = targets[loss]
    model = NystromRegressor(loss, **options, **QUICK).fit(X[:1000], y[:1000])
    assert not model.calibration_.guaranteed
    ends = model.predict_interval(X[2000:], 0.9)
    assert 0.85 <= np.mean((ends[:, 0] <= y[2000:]) & (y[2000:] <= ends[:, 1])) <= 0.95
    assert model.calibrate(X[1000:2000], y[1000:2000]).calibration_.guaranteed
    ends = model.predict_interval(X[2000:], 0.9)
    assert 0.86 <= np.mean((ends[:, 0] <= y[2000:]) & (y[2000:] <= ends[:, 1])) <= 0.94


def test_an_interval_of_quantiles_needs_two_levels():
    X, _, targets = made()
    with pytest.raises(ParameterError, match="needs two fitted levels"):
        NystromRegressor("quantile", **QUICK).fit(X, targets["quantile"]).predict_interval(X)


def test_landmarks_are_doubled_until_the_share_is_met():
    X, _, targets = made(900)
    options = {"bandwidth": "median", "random_state": 0, "certify_with": "audit", "risk_tolerance": 0.02}
    model = NystromRegressor("poisson", **options).fit(X, targets["poisson"])
    assert model.tolerance_.met
    assert model.certificate_.bound <= 0.02


def test_rows_that_drive_a_fit_are_found():
    X, _, targets = made()
    y = targets["huber"].copy()
    y[17] = 1e4
    top = NystromRegressor(**QUICK).fit(X, y).diagnose(X, y).top(2)
    assert 17 in [row.row for row in top]


def test_features_held_give_the_same_fit(monkeypatch):
    """With many features, products use features in single precision; the solution does not."""
    X, _, targets = made(600)
    plain = {loss: NystromRegressor(loss, ridge=1e-3, **QUICK).fit(X, targets[loss]) for loss in LOSSES}
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_FEATURES", 1)
    for loss, model in plain.items():
        held = NystromRegressor(model.loss_, ridge=1e-3, **QUICK).fit(X, targets[loss])
        assert held.predict(X) == pytest.approx(model.predict(X), rel=1e-5, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_random_fits_end_with_numbers_or_one_clear_error(loss):
    from tests.losses.random_fits import fit_at_random

    for seed in range(250):
        fit_at_random(loss, seed)


def test_scores_refuse_targets_outside_the_domain():
    X, _, targets = made()
    model = NystromRegressor("gamma", **QUICK).fit(X, targets["gamma"])
    with pytest.raises(DataError, match="must be positive, got 0 in row 0"):
        model.score(X, targets["gamma"] * (np.arange(400) > 0))


def test_counts_with_exposures_have_no_intervals():
    X, f, _ = made()
    years = np.random.default_rng(3).uniform(0.5, 4.0, 400)
    claims = np.random.default_rng(4).poisson(years * np.exp(f)).astype(float)
    model = NystromRegressor("poisson", **QUICK).fit(X, claims, exposure=years)
    with pytest.raises(DataError, match="no intervals of counts with exposures"):
        model.predict_interval(X)
