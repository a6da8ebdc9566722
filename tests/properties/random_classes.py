"""Random fits of labels, each from one seed: as `random_fits`, for `NystromClassifier`.

`python -m tests.properties.random_classes FIRST LAST` runs a range of seeds.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from ridgemark import NystromClassifier, load
from tests.properties import random_fits
from tests.properties.random_fits import check_finite
from tests.properties.random_problems import one_of, perhaps


def labels_of(rng: np.random.Generator, y):
    """Labels for targets of any kind: some shares of their order; what is no array of numbers stays."""
    values = np.asarray(y)
    if values.dtype.kind not in "fiu" or values.ndim not in (1, 2) or not values.size:
        return y
    values = values if values.ndim == 1 else values[:, 0]
    n_classes = int(one_of(rng, 1, 2, 2, 2, 3, 5, 20))
    codes = (np.argsort(np.argsort(values)) * n_classes) // len(values)
    names = one_of(rng, np.arange(n_classes), np.array([f"class {k}" for k in range(n_classes)]), -5 * np.arange(20))
    return names[codes] if perhaps(rng, 0.9) else rng.choice(names, len(values))


def ask_classes(rng: np.random.Generator, X, y, weights, options: dict) -> None:
    y = labels_of(rng, y)
    options |= {
        "fit_intercept": perhaps(rng, 0.7),
        "class_weight": one_of(rng, None, None, "balanced", {0: 2.0}),
        "certify_with": one_of(rng, None, None, None, "audit"),
    }
    model = NystromClassifier(**options).fit(X, y, sample_weight=weights)
    check_finite("the model", model.dual_coef_, model.intercept_, model.ridge_, model.effective_dimension_)
    p = model.predict_proba(X)
    check_finite("probabilities", p, model.predict_log_proba(X), model.decision_function(X))
    assert (np.abs(p.sum(axis=1) - 1.0) < 1e-9).all(), "probabilities do not sum to one"
    assert set(model.predict(X).tolist()) <= set(model.classes_.tolist()), "a label that is no class"
    question = one_of(rng, "nothing", "certify", "set", "calibrate", "save")
    if question == "certify":
        check_finite("certify", model.certify(X, y, sample_weight=weights).bound)
    elif question == "set":
        assert model.predict_set(X, one_of(rng, 0.5, 0.9, 0.999)).shape == p.shape
    elif question == "calibrate":
        model.calibrate(X, y, sample_weight=weights).predict_set(X)
    elif question == "save":
        with tempfile.TemporaryDirectory() as folder:
            loaded = load(model.save(Path(folder) / "model"), kernel=model.kernel_)
        assert np.array_equal(loaded.predict_proba(X), p), "a loaded model predicts something else"


def run_fit(seed: int) -> str:
    """Run the fit of this seed; see the module's docstring."""
    return random_fits.run_fit(seed, ask_classes)


if __name__ == "__main__":
    random_fits.main(run_fit)
