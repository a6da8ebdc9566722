"""The classifier: labels of any type, weights, refusals, sets of labels, and files."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from ridgemark import NystromClassifier, NystromRidge, load, open_rows
from ridgemark.errors import DataError, LandmarkCountWarning, ParameterError, RidgeEdgeWarning
from ridgemark.operators import nystrom_factor
from ridgemark.solvers import Newton
from tests.classes.problems import labelled
from tests.helpers import pass_scikit_learn

PLAIN = {"kernel": "gaussian", "bandwidth": 1.0, "n_landmarks": 40, "random_state": 0}


@pytest.mark.parametrize(
    "estimator",
    [
        NystromClassifier("gaussian", bandwidth="median", ridge=1e-3, n_landmarks=20),
        pytest.param(NystromClassifier("gaussian", bandwidth="median", ridge=1e-3), marks=pytest.mark.slow),
        pytest.param(NystromClassifier(), marks=pytest.mark.slow),
        pytest.param(NystromClassifier("linear", ridge=1e-2), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_no_check_of_scikit_learn_fails(estimator):
    pass_scikit_learn(estimator)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_model_is_logistic_regression_on_the_features(n_classes):
    X, labels = labelled(600, n_classes)
    weights = np.random.default_rng(1).uniform(0.1, 2.0, 600)
    factors = dict(enumerate(np.linspace(0.5, 2.0, n_classes)))
    model = NystromClassifier(**PLAIN, ridge=1e-3, class_weight=factors).fit(X, labels, sample_weight=weights)
    B = nystrom_factor(model.kernel_, model.landmarks_).features(X)
    total = weights @ np.array([factors[label] for label in labels])
    reference = LogisticRegression(
        C=1 / (1e-3 * total), class_weight=factors, solver="newton-cholesky", tol=1e-10, max_iter=500
    ).fit(B, labels, sample_weight=weights)
    assert model.scaled_ridge_ == pytest.approx(1e-3 * total)
    assert model.predict_proba(X) == pytest.approx(reference.predict_proba(B), abs=1e-7)
    assert np.array_equal(model.predict(X), reference.predict(B))


def test_balanced_classes_weigh_the_same():
    X, labels = labelled(600, 2)
    keep = (labels == 1) | (np.arange(600) % 5 == 0)
    X, labels = X[keep], labels[keep]
    counts = np.bincount(labels)
    balanced = NystromClassifier(**PLAIN, ridge=1e-3, class_weight="balanced").fit(X, labels)
    given = dict(enumerate(len(labels) / (2 * counts)))
    same = NystromClassifier(**PLAIN, ridge=1e-3, class_weight=given).fit(X, labels)
    assert balanced.predict_proba(X) == pytest.approx(same.predict_proba(X), abs=1e-12)
    p = balanced.predict_proba(X)[:, 1]
    assert (p - labels) @ (len(labels) / (2 * counts))[labels] == pytest.approx(0.0, abs=1e-6)  # by the intercept


@pytest.mark.parametrize(
    "names",
    [
        ["no", "yes"],
        [False, True],
        [-3, 7],
        np.array([1.0, 2.0]),
        np.array([3, 9], np.uint8),
        ["a", "b", "c"],
        [5, 2, 9],
    ],
    ids=str,
)
def test_labels_of_any_type_are_predicted_and_saved(names, tmp_path):
    X, codes = labelled(300, len(names))
    y = np.array(names)[codes]
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, y)
    assert model.classes_.dtype == y.dtype
    assert model.predict(X).dtype == y.dtype
    assert np.array_equal(model.classes_, np.unique(y))
    assert model.score(X, y) > 0.5
    again = load(model.save(tmp_path / "model"))
    assert again.classes_.dtype == y.dtype
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(again.predict_set(X), model.predict_set(X))


def test_labels_of_a_table_are_objects():
    X, codes = labelled(300, 2)
    frame, y = pd.DataFrame(X, columns=["a", "b"]), pd.Series(np.array(["no", "yes"], dtype=object)[codes])
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(frame, y)
    assert set(model.predict(frame)) == {"no", "yes"}
    assert model.feature_names_in_.tolist() == ["a", "b"]


def test_labels_of_a_table_answer_as_those_of_an_array():
    X, codes = labelled(100, 2)
    y = np.array(["no", "yes"])[codes]
    objects = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, y.astype(object))
    texts, rows = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, y), open_rows(X, target=y)
    assert objects.certify(rows).bound == texts.certify(rows).bound
    assert objects.diagnose(rows).top() == texts.diagnose(rows).top()


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "category"])
def test_labels_of_a_column_keep_their_type(dtype):
    X, codes = labelled(100, 2)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, pd.Series(codes).astype(dtype))
    assert model.classes_.dtype == (bool if dtype == "boolean" else np.int64)


@pytest.mark.parametrize("form", [list, np.array, pd.Series, lambda y: pd.Series(y, dtype="string")])
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_labels_are_refused_and_counted(form, missing):
    X, codes = labelled(100, 2)
    y = np.array(["no", "yes"], dtype=object)[codes]
    y[[3, 50]] = missing
    y = y if form is np.array else form(y.tolist())
    with pytest.raises(DataError, match=r"the label is missing .* in 2 of 100 rows, first in row 3"):
        NystromClassifier(**PLAIN).fit(X, y)


def test_masked_labels_are_refused():
    X, codes = labelled(100, 3)
    with pytest.raises(DataError, match="y is a masked array"):
        NystromClassifier(**PLAIN).fit(X, np.ma.masked_equal(codes, 1))


@pytest.mark.parametrize("weight", [{0: 2.0, 1: 1.0}, {"no": 2.0, "yes": 1.0}], ids=str)
def test_weights_of_classes_are_saved(weight, tmp_path):
    X, codes = labelled(300, 2)
    y = np.array(list(weight))[codes]
    model = NystromClassifier(**PLAIN, ridge=1e-3, class_weight=weight).fit(X, y)
    assert load(model.save(tmp_path / "model")).class_weight == weight


def test_rows_from_a_file_hold_labels_as_numbers(tmp_path):
    X, labels = labelled(400, 3)
    np.savetxt(tmp_path / "rows.csv", np.c_[X, labels + 1], delimiter=",", header="a,b,y", comments="", fmt="%.17g")
    rows = open_rows(tmp_path / "rows.csv", target="y")
    streamed = NystromClassifier(**PLAIN, ridge=1e-3, memory_budget=2**20).fit(rows)
    held = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, labels + 1)
    assert streamed.classes_.tolist() == [1, 2, 3]
    assert streamed.predict_proba(rows) == pytest.approx(held.predict_proba(X), abs=1e-8)
    assert streamed.score(rows) == held.score(X, labels + 1)


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], ["a", "b", "c"]], ids=str)
@pytest.mark.parametrize("form", ["csv", "parquet", "npz"])
def test_labels_of_files_are_those_of_arrays(names, form, tmp_path):
    pytest.importorskip("pyarrow")
    X, codes = labelled(300, len(names))
    frame, y = pd.DataFrame(X, columns=["a", "b"]), np.array(names)[codes]
    path = tmp_path / f"rows.{form}"
    if form == "npz":
        np.savez(path, X=X, y=y)
    else:
        getattr(frame.assign(y=y), f"to_{form}")(path, index=False)
    rows = open_rows(path, target=None if form == "npz" else "y")
    model = NystromClassifier(**PLAIN, ridge=1e-3, memory_budget=2**20).fit(rows)
    held = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, y)
    assert np.array_equal(model.classes_, held.classes_)
    assert model.classes_.dtype == held.classes_.dtype
    assert model.predict_proba(rows) == pytest.approx(held.predict_proba(X), abs=1e-8)
    assert model.score(rows) == held.score(X, y)
    assert model.certify(rows).bound == pytest.approx(held.certify(X, y).bound, rel=1e-3)


def test_other_files_may_lack_a_label_or_have_an_unknown_one():
    X, codes = labelled(300, 3)
    y = np.array(["b", "d", "f"])[codes]
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, y)
    some = open_rows(X[codes != 1], target=y[codes != 1])
    expected = model.score(X[codes != 1], y[codes != 1])
    assert model.score(some) == expected
    assert len(model.calibrate(some).calibration_.scores) == np.count_nonzero(codes != 1)
    first = int(np.flatnonzero(codes == 1)[0])
    with pytest.raises(DataError, match=f"the label of row {first} is none of the 3 classes"):
        model.calibrate(open_rows(X, target=np.where(codes == 1, "e", y)))


def test_text_is_no_target_of_regression():
    X, codes = labelled(50, 2)
    with pytest.raises(DataError, match=r"the target holds text, such as 'no'; .* fit a NystromClassifier"):
        NystromRidge().fit(open_rows(X, target=np.array(["no", "yes"])[codes]))


def test_sparse_rows_fit_as_dense_ones_do():
    X, labels = labelled(300, 2)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, labels)
    thin = NystromClassifier(**PLAIN, ridge=1e-3).fit(sparse.csr_matrix(X), labels)
    assert thin.predict_proba(sparse.csr_matrix(X)) == pytest.approx(dense.predict_proba(X), abs=1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_two_is_a_row_written_twice(n_classes):
    X, labels = labelled(200, n_classes)
    counts = np.random.default_rng(2).integers(0, 3, 200)
    weighted = NystromClassifier(**PLAIN).fit(X, labels, sample_weight=counts)
    repeated = NystromClassifier(**PLAIN).fit(np.repeat(X, counts, axis=0), np.repeat(labels, counts))
    assert weighted.ridge_ == pytest.approx(repeated.ridge_)
    assert weighted.predict_proba(X) == pytest.approx(repeated.predict_proba(X), abs=1e-5)


def test_a_factor_on_all_weights_changes_nothing():
    X, labels = labelled(200, 2)
    one = NystromClassifier(**PLAIN).fit(X, labels)
    other = NystromClassifier(**PLAIN).fit(X, labels, sample_weight=np.full(200, 1024.0))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_labels_of_zero_weight_are_no_classes():
    X, labels = labelled(200, 3)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, labels, sample_weight=(labels != 1).astype(float))
    assert model.classes_.tolist() == [0, 2]


def test_one_class_is_refused():
    X, labels = labelled(50, 2)
    for weights in (None, (labels == 1).astype(float)):
        with pytest.raises(DataError, match=r"at least two classes .* got one class: 1"):
            NystromClassifier(**PLAIN).fit(X, np.ones(50) if weights is None else labels, sample_weight=weights)


def test_a_class_with_one_member_is_fitted():
    X, labels = labelled(200, 2)
    labels[0] = 2
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, labels)
    p = model.predict_proba(X)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert p[:, 2].sum() == pytest.approx(1.0, abs=1e-4)  # by the intercept


def test_a_hundred_classes_are_fitted():
    rng = np.random.default_rng(0)
    centres = 10.0 * rng.normal(size=(100, 2))
    labels = np.repeat(np.arange(100), 4)
    X = centres[labels] + 0.3 * rng.normal(size=(400, 2))
    model = NystromClassifier("gaussian", bandwidth=1.0, n_landmarks=100, ridge=1e-4, random_state=0).fit(X, labels)
    assert model.predict_proba(X).shape == (400, 100)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(400))
    assert model.score(X, labels) > 0.8


def test_separable_classes_are_fitted_by_default():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 2)) + 8.0 * labels[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RidgeEdgeWarning)
        model = NystromClassifier(random_state=0).fit(X, labels)
    assert model.score(X, labels) == 1.0
    assert log_loss(labels, model.predict_proba(X)) < 0.02


def test_probabilities_are_those_of_the_log_odds():
    X, labels = labelled(300, 3)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, labels)
    eta = model.decision_function(X)
    assert eta.shape == (300, 3)
    assert eta.sum(axis=1) == pytest.approx(np.zeros(300), abs=1e-6)
    assert model.predict_proba(X) == pytest.approx(np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True))
    two = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, labels == 2)
    assert two.predict_proba(X)[:, 1] == pytest.approx(1 / (1 + np.exp(-two.decision_function(X))))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ridge": "gcv"}, 'ridge="gcv" is for squared errors'),
        ({"class_weight": "equal"}, "class_weight must be None"),
        ({"class_weight": {0: 1.0, 5: 1.0}}, "no row has the label 5"),
        ({"class_weight": {0: -1.0}}, "positive numbers"),
    ],
)
def test_wrong_options_are_refused(options, words):
    X, labels = labelled(100, 2)
    with pytest.raises(ParameterError, match=words):
        NystromClassifier(**PLAIN | options).fit(X, labels)


def test_unknown_labels_are_refused_in_calibration():
    X, labels = labelled(100, 2)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, np.array(["no", "yes"])[labels])
    with pytest.raises(DataError, match="the label of row 2 is none of the 2 classes of the fit; correct it, or drop"):
        model.calibrate(X[:3], ["yes", "no", "perhaps"])


def test_labels_that_cannot_be_ordered_or_compared_are_refused():
    X, labels = labelled(100, 2)
    mixed = np.array(["no", 1], dtype=object)[labels]
    with pytest.raises(DataError, match="labels must be of one type"):
        NystromClassifier(**PLAIN).fit(X, mixed)
    pairs = np.empty(100, dtype=object)
    pairs[:] = [("no", 0) if label else ("yes", 1) for label in labels]
    with pytest.raises(DataError, match="got several values in a row"):
        NystromClassifier(**PLAIN).fit(X, pairs)
    with pytest.raises(DataError, match="Unknown label type: continuous"):
        NystromClassifier(**PLAIN).fit(X, labels + 0.5)
    with pytest.raises(DataError, match="Unknown label type: continuous"):
        NystromClassifier(**PLAIN).fit(open_rows(X, target=labels + 0.5))
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, np.array(["no", "yes"])[labels])
    with pytest.raises(DataError, match="the labels of the fit are text"):
        model.calibrate(open_rows(X, target=labels))
    for kind in (bytes, object):
        with pytest.raises(DataError, match="got bytes; decode them first"):
            NystromClassifier(**PLAIN).fit(X, np.array([b"no", b"yes"], dtype=kind)[labels])
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[us]")
    for others, name in ((days, "datetime64"), (days - days[0], "timedelta64"), (days.astype(object), "datetime")):
        with pytest.raises(DataError, match=rf"got {name}.*; convert them, as by \[str\(label\) for label in y\]"):
            NystromClassifier(**PLAIN).fit(X, others[labels])


@pytest.mark.parametrize("n_classes", [2, 4])
def test_sets_cover_new_rows_as_often_as_asked(n_classes):
    covered, promised = [], []
    for seed in range(6):
        X, labels = labelled(1200, n_classes, seed)
        model = NystromClassifier(**PLAIN).fit(X[:600], labels[:600])
        own = np.arange(600), labels[600:]
        assert not model.calibration_.guaranteed
        covered.append(model.predict_set(X[600:], 0.9)[own].mean())
        model.calibrate(X[600:900], labels[600:900])
        assert model.calibration_.guaranteed
        promised.append(model.predict_set(X[900:], 0.9)[np.arange(300), labels[900:]].mean())
    assert 0.88 <= np.mean(covered) <= 0.93
    assert 0.88 <= np.mean(promised) <= 0.93


def test_calibration_by_rows_of_the_fit_promises_nothing():
    X, labels = labelled(600, 2)
    model = NystromClassifier(**PLAIN).fit(X[:400], labels[:400])
    assert not model.calibrate(X[300:], labels[300:]).calibration_.guaranteed
    assert model.calibrate(X[400:], labels[400:]).calibration_.guaranteed


def test_new_rows_may_equal_rows_of_the_fit_where_these_repeat_each_other():
    X = np.random.default_rng(0).integers(0, 3, size=(800, 4)).astype(float)
    labels = (X.sum(axis=1) + np.random.default_rng(1).normal(size=800) > 4).astype(int)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X[:400], labels[:400])
    assert model.calibrate(X[400:], labels[400:]).calibration_.guaranteed


def test_a_label_that_no_row_has_may_have_a_weight():
    X, labels = labelled(100, 2)
    given = NystromClassifier(**PLAIN | {"ridge": 1e-3, "class_weight": {0: 1.0, 1: 2.0, 2: 5.0}}).fit(X, labels)
    same = NystromClassifier(**PLAIN | {"ridge": 1e-3, "class_weight": {1: 2.0}}).fit(X, labels)
    assert np.array_equal(given.predict_proba(X), same.predict_proba(X))


def test_few_calibration_rows_give_sets_of_all_labels():
    X, labels = labelled(100, 2)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, labels).calibrate(X[:5], labels[:5])
    assert model.predict_set(X, 0.9).all()
    with pytest.raises(ParameterError, match="coverage must be a number between 0 and 1"):
        model.predict_set(X, 1.0)


def test_more_landmarks_than_rows_are_all_rows():
    X, labels = labelled(30, 2)
    with pytest.warns(LandmarkCountWarning):
        assert NystromClassifier(**PLAIN | {"ridge": 1e-2}).fit(X, labels).n_landmarks_ == 30


def test_a_constant_column_of_noise_gives_the_shares_of_the_classes():
    X, labels = np.ones((100, 1)), np.arange(100) % 4 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NystromClassifier("gaussian", bandwidth=1.0, ridge=1e-3).fit(X, labels)
    assert model.predict_proba(X)[0, 1] == pytest.approx(0.25)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_features_choose_the_same_model(monkeypatch, n_classes):
    X, labels = labelled(500, n_classes)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_UNKNOWNS", 0)
    with monkeypatch.context() as here:
        here.setattr(Newton, "hold", lambda newton: newton)
        streamed = NystromClassifier(**PLAIN).fit(X, labels)
    monkeypatch.setattr("ridgemark.solvers.newton._FEW_FEATURES", 0)
    held = NystromClassifier(**PLAIN).fit(X, labels)
    assert held.ridge_ == streamed.ridge_
    assert held.predict_proba(X) == pytest.approx(streamed.predict_proba(X), abs=1e-6)
    assert held.effective_dimension_.lower == pytest.approx(streamed.effective_dimension_.lower, rel=1e-4)
    assert np.mean(held.predict_set(X) == streamed.predict_set(X)) > 0.99


@pytest.mark.parametrize("n_classes", [2, 3])
def test_effects_are_derivatives_of_the_log_odds(n_classes):
    X, labels = labelled(300, n_classes)
    model = NystromClassifier(**PLAIN, ridge=1e-3).fit(X, labels)
    effects, step = model.effects(X[:20]), np.array([0.0, 1e-5])
    change = (model.decision_function(X[:20] + step) - model.decision_function(X[:20] - step)) / 2e-5
    assert effects.shape == (20, 2) if n_classes == 2 else (20, 2, 3)
    assert effects[:, 1] == pytest.approx(change, rel=1e-5, abs=1e-6)
    with pytest.raises(DataError, match=r"give the rows, as in effects\(X\)"):
        model.effects(None)
