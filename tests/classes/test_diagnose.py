"""Diagnosis and effects of a fit of classes."""

import numpy as np
import pytest

from ridgemark import NystromClassifier, load
from ridgemark.errors import DataError
from ridgemark.losses import class_loss
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.solvers import Newton
from tests.classes.problems import indicators, labelled

PLAIN = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 40, "random_state": 0}
WORDS = np.array(["fig", "pear", "plum"])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_are_left_out_as_in_the_fit(n_classes, tmp_path):
    X, codes = labelled(200, n_classes)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, WORDS[codes])
    found = load(model.save(tmp_path / "model", sums=True)).diagnose(X, WORDS[codes])
    own = found.log_probabilities[np.arange(200), codes[found.rows]]
    assert np.sort(-np.expm1(own)) == pytest.approx(model.calibration_.scores, abs=1e-9)
    assert ((found.leverage >= 0) & (found.leverage < 1)).all()
    assert found.landmarks.sum() == 40


@pytest.mark.parametrize("budget", [2**30, 4 * 3 * 41**2])
def test_a_diagnosis_may_have_one_system_for_all_classes(monkeypatch, budget):
    """One for all where memory is short, otherwise one for each class."""
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    X, codes = labelled(200, 3)
    model = NystromClassifier(**PLAIN, ridge=1e-2, memory_budget=2**30).fit(X, codes)
    of_all = property(lambda _: budget, lambda *_: None)
    monkeypatch.setattr("ridgemark.passes.RowPasses.budget", of_all, raising=False)
    found = model.diagnose(X, codes)
    own = found.log_probabilities[np.arange(200), codes[found.rows]]
    assert np.sort(-np.expm1(own)) == pytest.approx(model.calibration_.scores, abs=0.05)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_far_rows_and_wrong_labels_come_first(n_classes):
    X, codes = labelled(300, n_classes)
    X[7] = [12.0, -12.0]
    p = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, codes).predict_proba(X)
    p[7] = 1.0
    sure = int(p.min(axis=1).argmin())
    codes[sure] = p[sure].argmin()
    found = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, WORDS[codes]).diagnose(X, WORDS[codes])
    by_row = {one.row: one for one in found.top(6)}
    assert by_row[7].why == "far from other rows"
    assert by_row[sure].why == "unexpected label"
    assert by_row[sure].label == WORDS[codes[sure]]
    assert "The rows that drive the fit" in str(found)
    assert found.to_record(2)["top"][1]["row"] == found.top(2)[1].row


def test_influence_is_how_far_a_refit_moves():
    X, codes = labelled(150, 2)
    model = NystromClassifier(**PLAIN, ridge=0.05).fit(X, codes)
    found, fit, loss = model.diagnose(X, codes), model._model.sums, class_loss(2)
    Z = np.column_stack([fit.factor.features(X), np.ones(150)])
    whole = np.append(fit.solution.coefficients[:, 0], fit.solution.intercept)
    scaled = float(fit.scaled_ridge[0])
    H = Z.T @ (Z * loss.curvature(Z[:, :1], (Z @ whole)[:, None])[:, None]) + scaled * np.diag(
        np.append(np.ones(Z.shape[1] - 1), 0)
    )
    for place in found.order[:5].tolist():
        rest = np.arange(150) != found.rows[place]
        passes = RowPasses(ArrayRows(X[rest], indicators(codes[rest], 2)))
        without = Newton(passes, fit.factor, loss, True).solve(scaled, fit.solution).solution
        moved = np.append(without.coefficients[:, 0], without.intercept) - whole
        expected = moved @ H @ moved / max(fit.effective_dimension[0], 1.0)
        assert found.cook_distance[place] == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_a_diagnosis_count_as_repeated_rows(n_classes):
    X, codes = labelled(150, n_classes)
    weights = np.random.default_rng(0).integers(1, 6, 150)
    rows = np.repeat(np.arange(150), weights)
    model = NystromClassifier(**PLAIN, ridge=1e-2)
    found = model.fit(X, codes, weights).diagnose(X, codes, weights)
    repeated = model.fit(X[rows], codes[rows]).diagnose(X[rows], codes[rows])
    order, other = np.argsort(found.rows), np.argsort(repeated.rows)
    assert np.array_equal(found.weights[order], weights)
    assert np.array_equal(repeated.weights[other], weights)
    assert repeated.cook_distance[other] == pytest.approx(found.cook_distance[order], rel=1e-6)


def test_rows_that_are_not_those_of_the_fit_are_not_diagnosed():
    X, codes = labelled(100, 2)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, codes, sample_weight=np.arange(100) % 3)
    with pytest.raises(DataError, match="it was fitted on 66 rows, got 50"):
        model.diagnose(X[:50], codes[:50])
    assert len(model.diagnose(X, codes, np.arange(100) % 3).rows) == 66


def test_a_model_without_sums_is_not_diagnosed(tmp_path):
    X, codes = labelled(100, 2)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, codes)
    with pytest.raises(DataError, match="diagnose needs the sums"):
        load(model.save(tmp_path / "model", sums=False)).diagnose(X, codes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_summary_averages_the_effects_on_the_log_odds(n_classes):
    X, codes = labelled(200, n_classes)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, WORDS[codes])
    summary, effects = model.effects_summary(X), model.effects(X).reshape(200, 2, -1)
    assert summary.average == pytest.approx(effects.mean(axis=0))
    assert summary.quartiles[1] == pytest.approx(np.median(effects, axis=0), abs=0.1 * np.abs(effects).max())
    assert summary.standard_error is None
    assert "Average effects on the log-odds of 'pear' over 200 rows" in str(summary)
    assert {one["target"] for one in summary.to_record()} == set(summary.targets)
