"""The record of a fit: frozen, whole, and the only thing that answers depend on."""

import dataclasses
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import ridgemark
from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge, open_rows
from ridgemark.errors import DataError
from tests.persistence.cases import same

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(80, 3)), RNG.normal(size=(20, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=80)
KINDS = [NystromRidge, ExactKernelRidge, NystromFeatures]


def _fitted(kind=NystromRidge, **options):
    return kind(**{"ridge": 1e-3, "n_landmarks": 15, "bandwidth": 1.5, "random_state": 0} | options).fit(X, Y)


def _arrays(record):
    """Yield every dense array in a record and in the records in it."""
    for one in dataclasses.fields(record):
        value = getattr(record, one.name)
        if isinstance(value, np.ndarray):
            yield value
        elif dataclasses.is_dataclass(value) and not one.name.endswith("_kernel"):
            yield from _arrays(value)


@pytest.mark.parametrize("make", [_fitted, lambda: _fitted(ridge="loo"), lambda: _fitted(ExactKernelRidge)])
def test_a_record_cannot_be_changed(make):
    model = make()
    for record in (model._model, pickle.loads(pickle.dumps(model))._model):
        found = list(_arrays(record))
        assert len(found) > 3
        assert not any(array.flags.writeable for array in found)
        with pytest.raises(dataclasses.FrozenInstanceError):
            record.cost = None
    with pytest.raises(ValueError, match="read-only"):
        model.dual_coef_[0] = 1.0


def test_the_users_arrays_stay_writeable():
    points, weights, rows = X[:9].copy(), np.ones(80), X.copy()
    NystromRidge(bandwidth="median", ridge=1e-3, selection=points).fit(open_rows(rows, target=Y, weight=weights))
    assert points.flags.writeable
    assert weights.flags.writeable
    assert rows.flags.writeable


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimator_holds_its_parameters_its_columns_and_one_record(kind):
    model = kind()
    assert vars(model).keys() == model.get_params().keys()
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    names = [name for name in dir(kind) if name.endswith("_") and not name.startswith("_")]
    assert "n_passes_" in names
    assert not any(hasattr(model, name) for name in names)
    model = _fitted(kind)
    check_is_fitted(model)
    assert vars(model).keys() - model.get_params().keys() == {"_model", "n_features_in_"}
    assert any(hasattr(model, name) for name in names)
    with pytest.raises(AttributeError):
        model.n_passes_ = 3
    assert not hasattr(clone(model), "n_passes_")


def test_a_refit_leaves_the_earlier_record_as_it_was():
    model = _fitted(ridge="loo")
    before, predicted = model._model, model.predict(NEW)
    coefficients = before.function.dual_coef.copy()
    model.partial_fit(X + 3.0, Y)
    assert model._model is not before
    assert not hasattr(model, "calibration_")
    assert before.calibration is not None
    assert np.array_equal(before.function.dual_coef, coefficients)
    model._model = before
    assert np.array_equal(model.predict(NEW), predicted)


@pytest.mark.parametrize("options", [{"ridge": 1e-10}, {"ridge": "loo"}, {"ridge": [1e-10]}], ids=str)
def test_no_answer_depends_on_what_was_asked_before(options):
    first, second = (_fitted(**options) for _ in range(2))
    second.predict(NEW, return_std=True)
    second.calibrate(X, Y)
    second.diagnose()
    one, other = (model.certify(X, Y) for model in (first, second))
    assert same(one.inputs, other.inputs)
    assert same(first._model.sums.solution, second._model.sums.solution)
    assert np.array_equal(first.distance_to_exact(NEW, one, X, Y), second.distance_to_exact(NEW, one, X, Y))


@pytest.mark.parametrize("ridge", [1e-8, 1e-9, 1e-10, 1e-11, 1e-12])
@pytest.mark.parametrize("searched", [False, True])
def test_a_loaded_model_knows_its_own_audit_after_a_standard_deviation(ridge, searched, tmp_path):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 3))
    y = np.sin(rows[:, 0]) + 0.1 * rng.normal(size=300)
    model = NystromRidge(bandwidth=3.0, ridge=[ridge] if searched else ridge, n_landmarks=100, random_state=0)
    audit = model.fit(rows, y).certify(rows, y)
    path = model.save(tmp_path / "m", sums=True)
    for before in ("nothing", "deviation"):
        loaded = ridgemark.load(path)
        if before == "deviation":
            loaded.predict(NEW, return_std=True)
        assert np.isfinite(loaded.distance_to_exact(NEW, audit, rows, y)).all()
        assert np.isfinite(loaded.distance_to_exact(NEW, loaded.certify(rows, y), rows, y)).all()


@pytest.mark.parametrize("rows", [X, sparse.csr_array(X)], ids=["dense", "sparse"])
def test_a_model_saved_without_sums_predicts_and_says_what_it_cannot(rows, tmp_path):
    model = NystromRidge(bandwidth="median", n_landmarks=40, random_state=0).fit(rows, Y)
    whole = model.save(tmp_path / "whole", sums=True).stat().st_size
    loaded = ridgemark.load(model.save(tmp_path / "m", sums=False))
    assert (tmp_path / "m").stat().st_size < whole - 3 * 8 * 40**2 // 2
    assert np.array_equal(loaded.predict(NEW), model.predict(NEW))
    assert loaded.calibration_.n_distinct == model.calibration_.n_distinct
    asked = {
        "a standard deviation": lambda: loaded.predict(NEW, return_std=True),
        "predict_interval": lambda: loaded.predict_interval(NEW),
        "partial_fit": lambda: loaded.partial_fit(rows, Y),
        "calibrate": lambda: loaded.calibrate(rows, Y),
        "certify": lambda: loaded.certify(rows, Y),
        "distance_to_exact": lambda: loaded.distance_to_exact(NEW, model.certify(rows, Y), rows, Y),
        "diagnose": loaded.diagnose,
    }
    for what, ask in asked.items():
        with pytest.raises(DataError, match=f"{what} needs the sums .* saved without them; save it with sums=True"):
            ask()
    assert np.array_equal(loaded.predict(NEW), model.predict(NEW))
    assert ridgemark.load(loaded.save(tmp_path / "again"))._model.sums is None
