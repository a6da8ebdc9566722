"""Measures of probabilities are those of scikit-learn, and a threshold has the least cost."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from ridgemark import NystromClassifier
from ridgemark.errors import DataError, ParameterError
from ridgemark.evaluate import choose_threshold, ranking


@pytest.fixture
def two():
    rng = np.random.default_rng(0)
    second = rng.random(300) < 0.2
    p = np.clip(0.3 * second + 0.7 * rng.random(300).round(1), 0, 1)
    return p, second, rng.integers(0, 3, 300).astype(float)


def test_two_classes_are_ranked_as_by_scikit_learn(two):
    p, second, weights = two
    measured = ranking(np.stack([1 - p, p], axis=1), np.eye(2)[second.astype(int)], weights)
    assert measured["auc"] == pytest.approx(roc_auc_score(second, p, sample_weight=weights), rel=1e-12)
    expected = average_precision_score(second, p, sample_weight=weights)
    assert measured["average_precision"] == pytest.approx(expected, rel=1e-12)


def test_several_classes_are_ranked_each_against_the_others():
    rng = np.random.default_rng(1)
    p, labels = rng.dirichlet(np.ones(3), 200), rng.integers(3, size=200)
    measured, shares = ranking(p, np.eye(3)[labels]), np.eye(3)[labels]
    assert measured["auc"] == pytest.approx(roc_auc_score(labels, p, multi_class="ovr"), rel=1e-12)
    assert measured["average_precision"] == pytest.approx(average_precision_score(shares, p), rel=1e-12)


def test_equal_rows_of_both_classes_count_as_the_single_rows(two):
    p, second, _ = two
    levels, position, counts = np.unique(p, return_inverse=True, return_counts=True)
    share = np.bincount(position, second) / counts
    merged = ranking(np.stack([1 - levels, levels], axis=1), np.stack([1 - share, share], axis=1), counts)
    single = ranking(np.stack([1 - p, p], axis=1), np.eye(2)[second.astype(int)])
    assert merged == pytest.approx(single, rel=1e-12)


def test_a_class_without_rows_has_no_measures():
    assert ranking(np.full((5, 2), 0.5), np.eye(2)[np.zeros(5, int)]) == {"auc": None, "average_precision": None}


@pytest.mark.parametrize("cost", [(1, 1), (1, 7), (9, 1)])
def test_no_threshold_costs_less_than_the_one_chosen(two, cost):
    p, second, weights = two

    def total(threshold):
        assigned = p >= threshold
        return cost[0] * weights[assigned & ~second].sum() + cost[1] * weights[~assigned & second].sum()

    chosen = choose_threshold(p, second, cost=cost, sample_weight=weights)
    assert total(chosen.threshold) == min(map(total, [*np.unique(p), 2.0]))
    (_, false), (missed, _) = chosen.confusion
    assert total(chosen.threshold) == cost[0] * false + cost[1] * missed


def test_a_rate_is_met_as_nearly_as_equal_probabilities_allow(two):
    p, second, _ = two
    chosen = choose_threshold(p, second, rate=0.3)
    rates = [np.mean(p >= level) for level in np.unique(p)]
    assert abs(chosen.rate - 0.3) == min(abs(rate - 0.3) for rate in rates)


def test_precision_and_recall_follow_from_the_confusion(two):
    p, second, _ = two
    chosen = choose_threshold(p, second, threshold=0.5)
    assert chosen.precision == pytest.approx(np.mean(second[p >= 0.5]))
    assert chosen.recall == pytest.approx(np.mean(p[second] >= 0.5))


def test_scikit_learn_predicts_at_the_threshold():
    model_selection = pytest.importorskip("sklearn.model_selection")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200) > 1
    model = NystromClassifier(kernel="gaussian", bandwidth=1.0, ridge=1e-2, n_landmarks=20, random_state=0).fit(X, y)
    chosen = choose_threshold(model.predict_proba(X)[:, 1], y, cost=(1, 4))
    fixed = model_selection.FixedThresholdClassifier(model, threshold=chosen.threshold).fit(X, y)
    np.testing.assert_array_equal(fixed.predict(X), model.predict_proba(X)[:, 1] >= chosen.threshold)
    assert np.mean(fixed.predict(X)) == pytest.approx(chosen.rate)


@pytest.mark.parametrize("wrong", [{}, {"cost": (1, 2), "rate": 0.1}, {"cost": (1, -1)}, {"rate": 2.0}])
def test_wrong_wishes_are_refused(two, wrong):
    with pytest.raises(ParameterError):
        choose_threshold(*two[:2], **wrong)


def test_lengths_must_agree(two):
    with pytest.raises(DataError, match="one length"):
        choose_threshold(two[0], two[1][:-1], rate=0.1)
