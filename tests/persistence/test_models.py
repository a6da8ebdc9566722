"""A loaded model equals the saved one in every bit and attribute; equal fits give equal files."""

import itertools
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import ridgemark
from ridgemark import ExactKernelRidge, NystromRidge, kernels, selection
from ridgemark.errors import ParameterError
from ridgemark.kernels import ColumnMap, Custom, Gaussian, Kernel, Linear, Mixture
from ridgemark.persistence import OBJECTS
from ridgemark.selection import Selection
from tests.helpers import slowly
from tests.persistence.cases import (
    KERNEL_MATRIX,
    MIXTURE,
    MODELS,
    NEW,
    X,
    Y,
    changed,
    fit,
    fitted,
    parse,
    same,
    untimed,
)


def _square(X, Z, shift=1.0):
    return (X @ Z.T + shift) ** 2


def _diagonal(X):
    return ((X**2).sum(axis=1) + 1.0) ** 2


@pytest.mark.parametrize("dtype", [np.float32, *slowly(np.float64)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "matern32", "selection": "rpcholesky"},
        {"kernel": Gaussian(np.array([1.0, 2.0, 3.0])) + Linear() * 0.1, "ridge": 1e-3},
        {"kernel": "laplacian", "ridge": [1e-4, 1e-2], "selection": selection.Leverage(), "fit_intercept": False},
        {"kernel": "polynomial", "selection": np.eye(3)},
        {"kernel": MIXTURE, "ridge": 1e-3},
    ],
    ids=["default", "matern32", "algebra", "laplacian", "given points", "mixture"],
)
def test_a_loaded_model_predicts_the_same_bits(options, dtype, tmp_path):
    rows, new = X.astype(dtype), NEW.astype(dtype)
    for y in (rows[:, 0] ** 2, np.column_stack([rows[:, 0], rows[:, 1] ** 2])):
        model = fit(NystromRidge(**{"bandwidth": "median", "n_landmarks": 25} | options), rows, y)
        loaded = ridgemark.load(model.save(tmp_path / "m", sums=True))
        assert same(loaded.predict(new), model.predict(new))
        assert same(loaded.predict(new, return_std=True)[1], model.predict(new, return_std=True)[1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert same(loaded.partial_fit(rows, y).predict(new), model.partial_fit(rows, y).predict(new))


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_attribute_comes_back(make, tmp_path):
    model = make()
    all_sums = {} if isinstance(model, ExactKernelRidge) else {"sums": True}
    path = model.save(tmp_path / "m", **all_sums)
    loaded = ridgemark.load(path)
    new = KERNEL_MATRIX[:9] if model.kernel_.pairwise else NEW
    assert same(loaded.predict(new), model.predict(new))
    assert vars(loaded).keys() == vars(model).keys()
    whole = model._model
    if all_sums:
        solution = replace(whole.solution, certificate=whole.certificate)
        whole = replace(whole, calibration=whole.calibrated, solution=solution, drawn=None)
    assert same(untimed(loaded._model), untimed(whole))
    assert same(vars(loaded).get("feature_names_in_"), vars(model).get("feature_names_in_"))
    assert loaded.n_features_in_ == model.n_features_in_
    if hasattr(model, "calibration_"):
        assert same(loaded.predict_interval(new), model.predict_interval(new))
    if hasattr(model, "loo_residuals_"):
        assert str(loaded.diagnose()) == str(model.diagnose())
    before = path.read_bytes()
    assert loaded.save(path, **all_sums).read_bytes() == before


def test_a_path_of_which_some_ridges_were_tried_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr("ridgemark.fitting.stages._WHOLE_PATH", 20)
    model = MODELS["default"]()
    path = ridgemark.load(model.save(tmp_path / "m")).ridge_path_
    assert same(path, model.ridge_path_)
    assert len(path.ridges) < 20
    assert path.sample.sum() == len(path.ridges) - 1
    assert path.smallest < path.ridges.min() < path.ridges.max() < path.largest


@pytest.mark.parametrize("name", ["tuned", "gradient", "partial", "exact search", *slowly(*MODELS)])
def test_two_fits_with_one_seed_are_files_of_the_same_bytes(name, tmp_path, monkeypatch):
    make = MODELS[name]
    first = make().save(tmp_path / "first").read_bytes()
    monkeypatch.setattr("time.perf_counter", itertools.count(0.0, 123.0).__next__)  # a slower machine
    assert make().save(tmp_path / "second").read_bytes() == first


@pytest.mark.parametrize("make", [MODELS["default"], MODELS["exact"]])
def test_the_seed_is_in_the_file(make, tmp_path):
    assert ridgemark.load(make().set_params(random_state=7).save(tmp_path / "m")).random_state == 7


def test_a_certificate_comes_back_without_its_time(tmp_path):
    model, _ = fitted()
    loaded = ridgemark.load(model.save(tmp_path / "m"))
    assert set(loaded.certificate_.cost) == {"kernel_entries"}
    assert loaded.certificate_.claim == model.certificate_.claim
    assert "kernel entries)" in str(loaded.certificate_)
    assert loaded.certificate_.to_html()
    assert loaded.certificate_.vacuous == model.certificate_.vacuous


def test_named_features_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "é", "b c"])
    model = fit(NystromRidge(bandwidth="median", n_landmarks=25), frame, Y[:, 0])
    loaded = ridgemark.load(model.save(tmp_path / "m"))
    assert same(loaded.predict(frame), model.predict(frame))
    assert same(loaded.feature_names_in_, model.feature_names_in_)


class _OwnKernel(Gaussian):
    """A user's own kernel."""


@pytest.mark.parametrize(
    ("kernel", "names"),
    [
        (_square, "_square"),
        (partial(_square, shift=2.0), "partial"),
        (Custom(_square, _diagonal), "'_square', '_diagonal'"),
        (Gaussian(2.0) + Custom(_square) * 0.5, "_square"),
        (Custom(_square) + Custom(partial(_square, shift=2.0)) * Linear(), "'_square', 'partial'"),
        (_OwnKernel(2.0), "_OwnKernel"),
    ],
    ids=["function", "partial", "two functions", "in a sum", "two in a sum", "own class"],
)
def test_code_is_not_in_the_file_and_must_be_given_again(kernel, names, tmp_path):
    model, new = fitted(kernel=kernel, ridge=1e-3)
    path = model.save(tmp_path / "m")
    loaded = ridgemark.load(path, kernel=kernel)
    assert same(loaded.predict(new), model.predict(new))
    for wrong in (None, "gaussian", Gaussian(), Custom(_square, _diagonal) + Custom(len), object):
        with pytest.raises(ParameterError, match=rf"(?s)made with .*{names}.* load it with kernel="):
            ridgemark.load(path, kernel=wrong)


def test_a_kernel_argument_is_refused_if_the_file_holds_the_kernel(tmp_path):
    path = fitted()[0].save(tmp_path / "m")
    with pytest.raises(ParameterError, match="holds its kernel; leave kernel="):
        ridgemark.load(path, kernel=_square)


@pytest.mark.parametrize("kind", OBJECTS.values(), ids=OBJECTS)
def test_every_kernel_and_selection_is_saved_as_a_parameter(kind, tmp_path):
    parts = {"left": Linear(), "right": Gaussian(), "kernel": Linear(), "factor": 2.0, "function": abs}
    parts |= {"radial": [Gaussian()], "weights": [2.0], "low": [0.0] * 3, "high": [1.0] * 3}
    made = kind(**{name: part for name, part in parts.items() if name in kind._get_param_names()})
    made = Mixture([Gaussian()], weights=[1.0], columns=made) if isinstance(made, ColumnMap) else made
    name = "kernel" if isinstance(made, Kernel) else "selection"
    path = (
        fitted(kernel=Custom(_square) if kind is Custom else "gaussian")[0]
        .set_params(**{name: made})
        .save(tmp_path / "m")
    )
    loaded = ridgemark.load(path, kernel=made if kind is Custom else None)
    assert getattr(loaded, name) == made


def test_all_kernels_and_selections_may_be_in_a_file():
    subclasses = list(itertools.chain(Kernel.__subclasses__(), Selection.__subclasses__()))
    public = [one for one in subclasses if one.__module__.startswith("ridgemark.") and not one.__name__.startswith("_")]
    assert {one for one in public if not one.__abstractmethods__} <= set(OBJECTS.values())
    named = {name for module in (kernels, selection) for name in module.__all__ if name in OBJECTS}
    assert set(OBJECTS) == named | {"Tuner"}


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("selection", np.random.default_rng(), "selection is a value of type Generator"),
        ("ridge", {(1, 2): 3}, "ridge is a value of type dict"),
        ("ridge", np.array([1, None]), "ridge is an array of object"),
        ("ridge", np.zeros(2, dtype="M8[D]"), "ridge is an array of datetime64"),
        ("ridge", np.longdouble(1), "ridge is a value of type longdouble"),
        ("ridge", np.ma.masked_array([1.0]), "ridge is an array of float64"),
        ("ridge", -1.0, "cannot be saved, as it could not be loaded again: ridge must be"),
        ("bandwidth", 1j, "bandwidth is a value of type complex"),
        ("solver", "magic", "cannot be saved.*solver must be one of"),
        ("memory_budget", 3, "cannot be saved.*memory_budget must hold at least one row"),
        ("kernel", Gaussian(b"wide"), r"kernel\.bandwidth is a value of type bytes"),
    ],
)
def test_a_parameter_that_a_file_does_not_hold_is_refused_by_name(name, value, place, tmp_path):
    model = fitted()[0].set_params(**{name: value})
    with pytest.raises(ParameterError, match=place):
        model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("function.dual_coef", np.full((20, 1), np.nan)),
        ("function.intercept", np.zeros(2)),
        ("function.dual_coef", np.full((20, 1), 1e308)),
        ("function.points", np.zeros((20, 2))),
        ("function.kernel", "gaussian"),
    ],
)
def test_a_record_changed_by_hand_is_refused(name, value, tmp_path):
    model = fitted()[0]
    model._model = changed(model._model, name, value)
    with pytest.raises(ParameterError, match=r"finite|beyond the|range|kernel|entries"):
        model.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_an_attribute_of_the_users_is_refused(tmp_path):
    model = fitted()[0]
    model.note = "mine"
    with pytest.raises(ParameterError, match="note"):
        model.save(tmp_path / "m")
    with pytest.raises(AttributeError, match="no setter"):
        model.dual_coef_ = model.dual_coef_


def test_a_subclass_is_not_saved(tmp_path):
    class Own(NystromRidge):
        pass

    model = fit(Own(bandwidth=1.0, n_landmarks=10, ridge=1e-3), X, Y)
    with pytest.raises(ParameterError, match="got a Own"):
        model.save(tmp_path / "m")


def test_values_nested_too_deep_are_refused(tmp_path):
    deep = fits = Linear()
    for _ in range(200):
        deep = deep + Linear()
    for _ in range(90):
        fits = fits + Linear()
    model = fitted()[0]
    with pytest.raises(ParameterError, match="nested deeper than 100 levels"):
        model.set_params(kernel=deep, bandwidth=None).save(tmp_path / "m")
    assert ridgemark.load(model.set_params(kernel=fits).save(tmp_path / "m")).kernel == fits


def test_strided_arrays_are_saved_whole(tmp_path):
    model, new = fitted(ridge=1e-3)
    model._model = changed(
        model._model, "function.dual_coef", np.repeat(model._model.function.dual_coef, 2, axis=0)[::2]
    )
    model._model = changed(model._model, "function.points", np.asfortranarray(model.landmarks_))
    loaded = ridgemark.load(model.save(tmp_path / "m"))
    assert np.allclose(loaded.predict(new), model.predict(new), rtol=1e-12)
    assert loaded.landmarks_.flags.f_contiguous


def test_settings_of_scikit_learn_do_not_prevent_saving(tmp_path):
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        model, new = fitted()
        path = model.set_fit_request(sample_weight=True).save(tmp_path / "m")
    assert same(ridgemark.load(path).predict(new), model.predict(new))


def test_a_file_holds_no_time(tmp_path):
    header, _ = parse(fitted()[0].save(tmp_path / "m").read_bytes())
    assert "seconds" not in str(header)
    assert "waiting" not in str(header)
