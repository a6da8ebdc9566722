"""Random fits, each from one seed: data, options, misuse, and every question a fitted model can be asked.

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
from ridgemark import kernels as k
from ridgemark import selection as s
from ridgemark.errors import RidgemarkError, RidgemarkWarning

NAMES = ["gaussian", "laplacian", "matern12", "matern32", "matern52", "linear", "polynomial", "cosine"]
SELECTIONS = ["uniform", "diagonal", "leverage", "recursive", "bless", "rpcholesky", "kmeans", "rank_leverage"]
SCALES = [1e-300, 1e-150, 1e-30, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e30, 1e150, 1e300]
KINDS = ["audit", "operator", "trace"]


def one_of(rng: np.random.Generator, *choices):
    """One of the values, untouched: `rng.choice` would make arrays of them."""
    return choices[rng.integers(len(choices))]


def perhaps(rng: np.random.Generator, probability: float) -> bool:
    return bool(rng.random() < probability)


# --- Data ----------------------------------------------------------------------------------------------------


def make_rows(rng: np.random.Generator, n: int, d: int):
    """Columns that are normal, heavy-tailed, whole, constant, nearly equal, tiny or huge; perhaps repeated rows."""
    X = np.empty((n, d))
    for j in range(d):
        kind = rng.integers(8)
        column = rng.standard_t(1.0, n) if kind == 0 else rng.normal(size=n)
        if kind == 1:
            column = rng.integers(-3, 4, n).astype(float)
        elif kind == 2:
            column = np.full(n, rng.normal())
        elif kind == 3 and j:
            column = X[:, j - 1] * (1 + 1e-12 * column)
        elif kind == 4:
            column = 1.6e9 + column
        elif kind == 5:
            column = column * one_of(rng, *SCALES)
        X[:, j] = column
    if n and perhaps(rng, 0.3):
        X = X[rng.integers(0, n, n)]
    if n and perhaps(rng, 0.2):
        X = X[np.sort(rng.integers(0, n, n))] * (1 + 1e-14 * rng.normal(size=(n, 1)))
    if perhaps(rng, 0.1):
        with np.errstate(over="ignore"):
            X = X * one_of(rng, *SCALES)
    X = np.clip(X, -1e305, 1e305)
    return one_of(
        rng,
        *[lambda: X] * 5,
        lambda: np.clip(X, -3e38, 3e38).astype(np.float32),
        lambda: np.clip(X, -1e9, 1e9).astype(np.int64),
        lambda: np.asfortranarray(X),
        lambda: X[::-1, ::-1],
        lambda: sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0)),
        lambda: X.tolist(),
    )()


def make_targets(rng: np.random.Generator, n: int):
    y = rng.normal(size=one_of(rng, n, n, (n, 1), (n, 2)))
    kind = rng.integers(8)
    if kind == 0:
        return np.full_like(y, one_of(rng, 0.0, 1.0, 1e9, 1e150))
    if kind == 1:
        return y * one_of(rng, *SCALES)
    if kind == 2:
        return 1e12 + y
    if kind == 3:
        return np.round(y).astype(int)
    return y.astype(np.float32) if kind == 4 else y


def make_weights(rng: np.random.Generator, n: int):
    return one_of(
        rng,
        *[lambda: None] * 4,
        lambda: rng.integers(0, 3, n),
        lambda: rng.uniform(0, 1, n),
        lambda: rng.uniform(0, 1, n) * one_of(rng, *SCALES),
        lambda: 10.0 ** rng.uniform(-12, 12, n),
        lambda: np.where(perhaps(rng, 0.3), 0.0, rng.integers(0, 2, n)),
    )()


# --- Options -------------------------------------------------------------------------------------------------


def make_kernel(rng: np.random.Generator, d: int):
    if perhaps(rng, 0.6):
        return one_of(rng, *NAMES)
    width = one_of(rng, 1.0, 0.1, 1e-12, 1e12, np.full(d, 2.0))
    return one_of(
        rng,
        k.Gaussian(width),
        k.Matern32(width),
        k.Laplacian(width) + k.Linear(),
        k.Gaussian(width) * k.Polynomial(2),
        k.Polynomial(one_of(rng, 1, 3, 5)),
        k.Scaled(k.Gaussian(width), one_of(rng, 1e-100, 1e-3, 1e100)),
        k.Bernoulli(2) if d == 1 else k.Matern12(width),
        k.Custom(product_kernel),
        product_kernel,
    )


def product_kernel(X, Z):
    """A callable kernel: `1 + tanh(x) . tanh(z)`, which no column can overflow."""
    X, Z = (np.tanh(rows.toarray() if sparse.issparse(rows) else rows) for rows in (X, Z))
    return 1.0 + X @ Z.T


def make_ridge(rng: np.random.Generator):
    return one_of(
        rng,
        *["loo"] * 3,
        "gcv",
        *[10.0 ** rng.uniform(-20, 5)] * 4,
        (10.0 ** rng.uniform(-12, 2, 4)).tolist(),
        one_of(rng, 1e-300, 1e300),
    )


def make_options(rng: np.random.Generator, X, n: int, d: int) -> dict:
    kernel = make_kernel(rng, d)
    options = {
        "kernel": kernel,
        "ridge": make_ridge(rng),
        "n_landmarks": one_of(rng, "auto", 1, 2, 7, 30, 500),
        "selection": one_of(
            rng,
            *SELECTIONS,
            *SELECTIONS,
            s.Leverage(n_pilot=5, refine=1),
            s.Leverage(replace=True),
            s.Given(indices=[0, n - 1, 0]),
            np.zeros((1, d)),
            X[: max(1, n // 2)],
        ),
        "random_state": int(rng.integers(10)),
        "memory_budget": one_of(rng, None, None, 10**6, 10**5),
    }
    if isinstance(kernel, str) and kernel not in ("linear", "polynomial", "cosine") and perhaps(rng, 0.3):
        options["bandwidth"] = one_of(rng, "median", 1.0, 1e-9, 1e9, np.full(d, 0.5))
    return options


def spoil(rng: np.random.Generator, X, y, weights, options: dict):
    """Return the problem with one thing in it that cannot be used."""
    what = rng.integers(4)
    if what == 0:
        X = one_of(
            rng, None, "rows", np.ones(3), 3, [], [[]], [["a", "b"]], {"a": 1}, np.ones((2, 2, 2)),
            [[1.0, np.nan]], [[np.inf, 1.0]], np.array([[1 + 2j]]), [[1, 2], [3]], np.array([["1", "x"]], dtype=object),
        )  # fmt: skip
    elif what == 1:
        y = one_of(
            rng, None, "targets", [], 3.0, np.ones((2, 2, 2)), ["a"] * 3, np.full(np.shape(y), np.nan), [None], {},
            np.ones(np.shape(y)[0] + 1), np.full(np.shape(y), 1j), np.full(np.shape(y), np.inf),
        )  # fmt: skip
    elif what == 2:
        n = np.shape(y)[0]
        weights = one_of(
            rng, "weights", 1.0, -np.ones(n), np.full(n, np.nan), np.full(n, np.inf), np.ones(n + 1), np.ones((n, 1)),
            ["a"] * n, np.full(n, 1j), [], {},
        )  # fmt: skip
    else:
        name, value = one_of(rng, *MISUSE)
        options = options | {name: value}
    return X, y, weights, options


MISUSE = [
    (name, value)
    for name, values in {
        "kernel": ["rbf", None, 3, k.Gaussian, k.Gaussian("wide"), k.Gaussian([1.0] * 9), k.Sum("gaussian", "linear"),
                   k.Custom(None), k.Product(k.Linear(), None), k.Scaled("linear", 2.0), k.Scaled(k.Linear(), -1.0),
                   k.Polynomial(-1), k.Polynomial("2"), k.Bernoulli(0), lambda X, Z: None, lambda X, Z: -X @ Z.T],
        "bandwidth": [None, "mean", 0.0, 10**400, -1.0, np.nan, [1.0] * 9, "1", [["a"]], True, [0.0]],
        "ridge": [None, "cv", 0.0, -1.0, np.nan, np.inf, [], [[1.0]], [1.0, -1.0], True, "1e-3", {}, 10**400],
        "n_landmarks": [None, 0, -3, 10**400, 2.5, "many", True, [3], np.nan],
        "selection": [None, "random", 3, s.Leverage, s.Given(), s.Given(points=5), s.Given(points=[1.0]), [1, 2],
                      s.Given(indices=[-1]), s.Given(indices=5), s.Given(indices="a"), s.Given(indices=[0.5]),
                      s.Given(points=[[np.nan]]), s.Leverage(n_pilot=0), s.Leverage(refine=-1), s.KMeans(0),
                      s.Bless(oversampling=-1.0), s.Bless(factor=0.5), s.RankLeverage("k"), object()],
        "memory_budget": [0, -1, 1, 10**400, 1.5, "1GB", True],
        "random_state": ["seed", -1, 1.5, [], object()],
    }.items()
    for value in values
]  # fmt: skip


# --- What is asked of a fit ----------------------------------------------------------------------------------


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
    if model.solver_ == "gradient" and perhaps(rng, 0.9):  # most questions need what a direct solver keeps
        question = one_of(rng, "nothing", "save", "misuse")
    try:
        check_predictions(model, X, y)
        ask(rng, question, model, X, y, weights)
    except AssertionError as error:
        raise AssertionError(f"{question}: {error}") from error


def part(values, rows: slice):
    """Some rows of the values; all of what has no rows."""
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
    # A bound may be infinite, where rounding leaves nothing to certify; it is never NaN.
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


# --- One fit -------------------------------------------------------------------------------------------------


def run_fit(seed: int) -> str:
    """Run the fit of this seed; see the module."""
    rng = np.random.default_rng(seed)
    n = one_of(rng, 0, 1, 1, 2, 2, 3, 4, *[int(10 ** rng.uniform(0.5, 2.3))] * 25)
    d = int(rng.integers(0, 7)) if perhaps(rng, 0.2) else int(rng.integers(1, 4))
    X, y, weights = make_rows(rng, n, d), make_targets(rng, n), make_weights(rng, n)
    options = make_options(rng, X, n, d)
    ask_estimator = one_of(rng, *[ask_ridge] * 6, ask_exact, ask_features, ask_scores)
    if perhaps(rng, 0.15):
        X, y, weights, options = spoil(rng, X, y, weights, options)
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


def main() -> None:
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
