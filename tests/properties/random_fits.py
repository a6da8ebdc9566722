"""Random fits, each from one seed: data, options, misuse, and calls of all methods of a fitted model.

`run_fit(seed)` returns "answered", or "refused" where an error meant for the user ended the fit; it raises
AssertionError for anything else: an exception of another type, a warning that is not ridgemark's, an answer that is
not finite, or a line on the standard output. `python -m tests.properties.random_fits FIRST LAST` runs a range of seeds.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from scipy import sparse

from ridgemark import ExactKernelRidge, NystromFeatures, NystromRidge, effective_dimension, leverage_scores, load
from ridgemark.errors import RidgemarkError, RidgemarkWarning
from tests.properties.random_problems import make_invalid, make_problem, one_of, perhaps

KINDS = ["audit", "operator", "trace"]


# --- Calls on a fit ---


def check_finite(what: str, *values) -> None:
    for value in values:
        numbers = value.data if sparse.issparse(value) else np.asarray(value, dtype=np.float64)
        assert np.isfinite(numbers).all(), f"{what} holds {numbers[~np.isfinite(numbers)][:3]}"


def check_predictions(model, X, y) -> None:
    values = model.predict(X)
    check_finite("predict", values)
    assert values.shape == np.shape(y), f"predictions have shape {values.shape}, the targets {np.shape(y)}"


def ask_ridge(rng: np.random.Generator, X, y, weights, options: dict) -> None:
    options |= {
        "fit_intercept": perhaps(rng, 0.7),
        "solver": one_of(rng, "auto", "auto", "direct", "gradient"),
        "certify_with": one_of(rng, None, None, None, *KINDS),
        "risk_tolerance": one_of(rng, 0.1, 0.1, 1e-300, 1e-3, 1e3, 1e300),
        "failure_probability": one_of(rng, 0.05, 0.05, 1e-300, 0.49),
        "ridge_per_target": perhaps(rng, 0.2),
    }
    if options["solver"] == "gradient":
        options["certify_with"] = None
    model = NystromRidge(**options)
    if perhaps(rng, 0.02):
        model.predict(X)  # not fitted
    if perhaps(rng, 0.15):
        options["certify_with"] = model.certify_with = None
        half = max(1, len(y) // 2) if np.ndim(y) else 1
        for rows in (slice(None, half), slice(half, None)):
            model.partial_fit(*(part(values, rows) for values in (X, y, weights)))
    else:
        model.fit(X, y, sample_weight=weights)
    check_finite("the model", model.dual_coef_, model.intercept_, model.ridge_, model.effective_dimension_)
    question = one_of(rng, "nothing", "std", "interval", "diagnose", "certify", "distance", "save", "again", "misuse")
    if model.solver_ == "gradient" and perhaps(rng, 0.9):  # most methods need the sums of the direct solver
        question = one_of(rng, "nothing", "save", "misuse")
    try:
        check_predictions(model, X, y)
        ask(rng, question, model, X, y, weights)
    except AssertionError as error:
        raise AssertionError(f"{question}: {error}") from error


def part(values, rows: slice):
    """Some rows of the values; the value itself where it has no rows."""
    return values[rows] if isinstance(values, np.ndarray | list) or sparse.issparse(values) else values


def ask(rng: np.random.Generator, question: str, model, X, y, weights) -> None:
    if question == "std":
        check_finite("the standard deviation", *model.predict(X, return_std=True))
    elif question in ("interval", "diagnose"):
        model.calibrate(X, y, sample_weight=weights)
        if question == "interval":
            ends = model.predict_interval(X, coverage=one_of(rng, 0.5, 0.9, 0.99))
            check_finite("predict_interval", ends)
            assert (ends[:, 0] <= ends[:, 1]).all(), "an interval ends before it begins"
        else:
            found = model.diagnose()
            check_finite("diagnose", found.leverage, found.studentised, found.cook_distance, found.condition)
            assert str(found)
            assert found.to_record()
    elif question == "certify":
        certificate = model.certify(X, y, kind=one_of(rng, *KINDS), sample_weight=weights)
        check_finite("certify", certificate.bound)
        assert str(certificate)
        assert certificate.to_json()
    elif question == "distance":
        certificate = model.certify(X, y, sample_weight=weights)
        check_finite("distance_to_exact", model.distance_to_exact(X, certificate, X, y, sample_weight=weights))
    elif question == "save":
        with tempfile.TemporaryDirectory() as folder:
            path = model.save(Path(folder) / "model")
            loaded = load(path, kernel=model.kernel_)
        assert np.array_equal(loaded.predict(X), model.predict(X)), "a loaded model predicts something else"
    elif question == "again":
        model.partial_fit(X, y, sample_weight=weights)
        check_finite("partial_fit", model.predict(X))
    elif question == "misuse":
        misuse_model(rng, model, X, y)


def misuse_model(rng: np.random.Generator, model, X, y) -> None:
    one_of(
        rng,
        lambda: model.predict(np.ones((3, model.n_features_in_ + 1))),
        lambda: model.predict(np.full((3, model.n_features_in_), np.nan)),
        lambda: model.predict(None),
        lambda: model.predict(np.ones((0, model.n_features_in_))),
        lambda: model.predict_interval(X, coverage=one_of(rng, 0.0, 1.0, -1, "much", None, 1 - 1e-15)),
        lambda: model.certify(X, y, kind=one_of(rng, "proof", None, 3)),
        lambda: model.certify(X[:1], y[:1]),
        lambda: model.calibrate(X[:1], y[:1]),
        lambda: model.distance_to_exact(X, None, X, y),
        lambda: model.partial_fit(X, y[:, None, None] if np.ndim(y) == 1 else y[:, 0]),
        lambda: model.score(X, None),
        lambda: model.save("/nowhere/at/all"),
        lambda: model.set_params(nothing=1),
        lambda: load("/nowhere"),
    )()


def ask_exact(rng: np.random.Generator, X, y, weights, options: dict) -> None:
    model = ExactKernelRidge(**options, fit_intercept=perhaps(rng, 0.7), tol=one_of(rng, 1e-6, 1e-3), max_iter=30)
    model.fit(X, y, sample_weight=weights)
    check_predictions(model, X, y)
    check_finite("the model", model.dual_coef_, model.intercept_, model.ridge_)
    # A bound may be infinite where rounding prevents any bound; it is never NaN.
    assert not any(np.isnan(step.returned).any() for step in model.history_), "history_ holds NaN"


def ask_features(rng: np.random.Generator, X, y, weights, options: dict) -> None:
    options = {name: value for name, value in options.items() if name != "ridge"}
    features = NystromFeatures(**options, ridge=10.0 ** rng.uniform(-20, 5)).fit(X, sample_weight=weights)
    check_finite("transform", features.transform(X))


def ask_scores(rng: np.random.Generator, X, y, weights, options: dict) -> None:
    wanted = {name: options[name] for name in ("kernel", "bandwidth", "random_state") if name in options}
    wanted |= {"method": one_of(rng, "approximate", "approximate", "exact"), "refine": int(rng.integers(2))}
    wanted |= {"n_landmarks": one_of(rng, None, 1, 5), "ridge": 10.0 ** rng.uniform(-20, 5), "sample_weight": weights}
    if perhaps(rng, 0.3):
        check_finite("effective_dimension", effective_dimension(X, **wanted))
        return
    scores = leverage_scores(X, **wanted)
    check_finite("leverage_scores", scores.lower, scores.upper, scores.effective_dimension, scores.coherence)
    assert (scores.lower <= scores.upper).all(), "a score's lower side is above its upper side"
    assert scores.verdict()
    assert scores.theorem_4()


# --- One fit ---


def run_fit(seed: int, ask_estimator=None) -> str:
    """Run the fit of this seed; see the module's docstring."""
    rng = np.random.default_rng(seed)
    X, y, weights, options = make_problem(rng)
    ask_estimator = ask_estimator or one_of(rng, *[ask_ridge] * 6, ask_exact, ask_features, ask_scores)
    if perhaps(rng, 0.15):
        X, y, weights, options = make_invalid(rng, X, y, weights, options)
    try:
        with silent(), only_own_warnings():
            ask_estimator(rng, X, y, weights, options)
    except Exception as error:
        if is_meant_for_users(error):
            return "refused"
        msg = (
            f"seed {seed}: {ask_estimator.__name__}, X {type(X).__name__} {np.shape(X)}, y {np.shape(y)}, "
            f"weights {'none' if weights is None else 'given'}, {options}"
        )
        raise AssertionError(f"{type(error).__name__}: {error}\n{msg}") from error
    return "answered"


def is_meant_for_users(error: Exception) -> bool:
    """Whether the error is ridgemark's own, or comes from scikit-learn's checks of arguments."""
    if isinstance(error, RidgemarkError):
        return True
    checked = any(
        frame.filename.endswith(("sklearn/utils/validation.py", "sklearn/base.py", "sklearn/metrics/_regression.py"))
        for frame in traceback.extract_tb(error.__traceback__)
    )
    return checked and isinstance(error, ValueError | TypeError)


@contextmanager
def only_own_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RidgemarkWarning)
        yield


_LIBC = ctypes.CDLL(None)


@contextmanager
def silent():
    """Fail where anything writes to file descriptor 1, as LAPACK does; C's buffer is flushed before it is read."""
    sys.stdout.flush()
    _LIBC.fflush(None)
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            sys.stdout.flush()
            _LIBC.fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        written = file.read()
    assert not written, f"written to the standard output: {written[:200]!r}"


def main(run_fit=run_fit) -> None:
    first, last = map(int, sys.argv[1:3])
    found: Counter = Counter()
    for seed in range(first, last):
        try:
            found[run_fit(seed)] += 1
        except AssertionError as error:
            where = traceback.extract_tb((error.__cause__ or error).__traceback__)
            inner = [frame for frame in where if "ridgemark/" in frame.filename][-1:]
            place = ", ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in inner)
            found[f"{place} {str(error).splitlines()[0][:150]}"] += 1
            print(f"{place} {error}\n", flush=True)
    for what, count in found.most_common():
        print(count, what)


if __name__ == "__main__":
    main()
