"""By default a model file holds a compact form of the sums, from which the uncertainty of predictions is computed."""

from dataclasses import replace

import numpy as np
import pytest

from ridgemark import NystromClassifier, NystromRidge, load
from ridgemark.errors import DataError, ParameterError
from ridgemark.kernels import Gaussian, Laplacian
from ridgemark.solvers import compact_fit
from tests.helpers import slowly

N, P = 1200, 300


def _fit(kernel=None, ridge=1e-10, columns=2, noise=0.1, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, columns))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=N)
    model = NystromRidge(kernel or Gaussian(1.0), ridge=ridge, n_landmarks=P, random_state=0, **options).fit(X, y)
    return model, X, y, np.vstack([X[:100], rng.normal(size=(100, columns)), 3 * rng.normal(size=(50, columns))])


EXACT = {"effects": 5e-3, "error": 5e-3}  # relative; standard errors of effects add up many rounded residuals


def _answers(model, new):
    summary = model.effects_summary()
    return {
        "deviation": model.predict(new, return_std=True)[1],
        "interval": model.predict_interval(new, [0.5, 0.9]),
        "effects": model.effects(new, return_std=True)[1],
        "average": summary.average,
        "error": summary.standard_error,
    }


@pytest.mark.parametrize("ridge", [*slowly(1e-3, 1e-6), 1e-10])
@pytest.mark.parametrize(
    ("kernel", "columns", "noise"),
    [(Gaussian(1.0), 2, 0.1), (Gaussian(3.0), 2, 0.0), (Gaussian(10.0), 5, 0.1), (Laplacian(3.0), 8, 0.1)],
    ids=str,
)
def test_a_loaded_model_is_as_sure_as_the_fitted_one(kernel, columns, noise, ridge, tmp_path):
    """Also where the landmark kernel is of numerical rank far below its size, and the ridge near its rounding."""
    model, _, _, new = _fit(kernel, ridge, columns, noise)
    loaded = load(model.save(tmp_path / "m"))
    assert np.array_equal(loaded.predict(new), model.predict(new))
    expected = _answers(model, new)
    for name, found in _answers(loaded, new).items():
        np.testing.assert_allclose(found, expected[name], rtol=EXACT.get(name, 1e-4), err_msg=name)
    np.testing.assert_allclose(
        loaded.predict_interval(new[:200], adaptive=False), model.predict_interval(new[:200], adaptive=False), rtol=1e-4
    )


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")
@pytest.mark.filterwarnings("ignore::ridgemark.errors.ColumnWarning")  # one target is constant
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"selection": "uniform"}], ids=str)
def test_a_loaded_model_of_several_targets_is_as_sure_as_the_fitted_one(options, tmp_path):
    _, X, y, new = _fit(ridge=1e-3)
    options = {"bandwidth": 1.0, "ridge": np.logspace(-8, -1, 8), "ridge_per_target": True, **options}
    model = NystromRidge(n_landmarks=100, random_state=0, **options).fit(X, np.c_[y, X[:, 1], 0 * y], np.arange(N) % 3)
    expected = _answers(model, new)
    for name, found in _answers(load(model.save(tmp_path / "m")), new).items():
        np.testing.assert_allclose(found, expected[name], rtol=EXACT.get(name, 1e-4), atol=1e-12, err_msg=name)


def _background(model):
    """Return the arrays of the rows that explanations compare with."""
    background = model._model.background
    return background.rows, background.weights, background.landmarks


def test_a_file_has_at_most_three_bytes_for_every_pair_of_landmarks(tmp_path):
    model, *_ = _fit(Laplacian(3.0), [1e-6, 1e-4, 1e-2], columns=8)
    known = model.calibration_
    rows = [model.landmarks_, *(getattr(known, name) for name in ("rows", "indices", "residuals", "weights"))]
    rows += [known.shifts, known.scores, known.reaches, *_background(model)]
    size = model.save(tmp_path / "m").stat().st_size - sum(one.nbytes for one in rows)
    assert size <= 3 * P**2
    assert size < model.save(tmp_path / "whole", sums=True).stat().st_size / 6


def test_a_landmark_kernel_that_is_rounded_otherwise_gives_nearly_the_same(tmp_path, monkeypatch):
    """Its pivots then come in another order, and the last of them may be lost."""
    factored = compact_fit.nystrom_factor
    model, _, _, new = _fit(ridge=1e-6)
    path = model.save(tmp_path / "m")

    def otherwise(*landmarks):
        found = factored(*landmarks)
        return replace(found, kept=found.kept[::-1])

    monkeypatch.setattr(compact_fit, "nystrom_factor", otherwise)
    expected, near = _answers(model, new[:200]), _answers(load(path), new[:200])
    for name, found in near.items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-3, err_msg=name)


@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgeEdgeWarning")
def test_what_needs_all_sums_says_how_to_keep_them(tmp_path):
    model, X, y, _ = _fit(ridge=[1e-6, 1e-4])
    loaded = load(model.save(tmp_path / "m"))
    asked = {
        "partial_fit": lambda: loaded.partial_fit(X, y),
        "calibrate": lambda: loaded.calibrate(X, y),
        "certify": lambda: loaded.certify(X, y),
        "diagnose": loaded.diagnose,
    }
    for what, ask in asked.items():
        with pytest.raises(DataError, match=f"{what} needs the sums .* save it with sums=True .*--keep-sums"):
            ask()
    with pytest.raises(ParameterError, match="was loaded without the sums that sums=True keeps"):
        loaded.save(tmp_path / "again", sums=True)
    assert loaded.save(tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    with pytest.raises(ParameterError, match="sums must be \"predict\", True or False, got 'all'"):
        model.save(tmp_path / "again", sums="all")


def test_a_loaded_fit_of_classes_has_its_probabilities_and_sets(tmp_path):
    _, X, y, new = _fit(ridge=1e-3)
    model = NystromClassifier(bandwidth=1.0, ridge=1e-3, n_landmarks=200, random_state=0).fit(X, y > 0)
    path = model.save(tmp_path / "m")
    loaded = load(path)
    assert np.array_equal(loaded.predict_proba(new), model.predict_proba(new))
    assert np.array_equal(loaded.predict_set(new), model.predict_set(new))
    assert np.array_equal(loaded.effects(new), model.effects(new))
    kept = sum(one.nbytes for one in (*_background(model), model.calibration_.scores, model.calibration_.weights))
    assert path.stat().st_size - kept < 3 * 200**2 + 200 * 8 * 8
    with pytest.raises(DataError, match="certify needs the sums"):
        loaded.certify(X, y > 0)


def test_the_whitener_is_computed_again_when_it_is_needed(tmp_path, monkeypatch):
    model, _, _, new = _fit(ridge=1e-3)
    path, computed = model.save(tmp_path / "m"), []
    factored = compact_fit.nystrom_factor
    monkeypatch.setattr(compact_fit, "nystrom_factor", lambda *given: computed.append(given) or factored(*given))
    loaded = load(path)
    loaded.predict(new)
    assert not computed
    loaded.predict_interval(new)
    loaded.predict(new, return_std=True)
    assert len(computed) == 1
