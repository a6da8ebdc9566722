"""Random data, options and misuse for `tests.properties.random_fits`."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ridgemark import kernels as k
from ridgemark import selection as s
from ridgemark.tuning import Tuner

NAMES = ["gaussian", "laplacian", "matern12", "matern32", "matern52", "linear", "polynomial", "cosine"]
SELECTIONS = ["auto", "uniform", "diagonal", "leverage", "recursive", "bless", "rpcholesky", "kmeans", "rank_leverage"]
SCALES = [1e-300, 1e-150, 1e-30, 1e-3, 1.0, 1.0, 1.0, 1e3, 1e30, 1e150, 1e300]

FEW = Tuner(rows=60, judging_rows=30, landmarks=20, evaluations=4, kernels=("gaussian", "matern12"))


def one_of(rng: np.random.Generator, *choices):
    """One of the values, unchanged: `rng.choice` would convert them to arrays."""
    return choices[rng.integers(len(choices))]


def perhaps(rng: np.random.Generator, probability: float) -> bool:
    return bool(rng.random() < probability)


# --- Data ---


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


# --- Options ---


def make_kernel(rng: np.random.Generator, d: int):
    if perhaps(rng, 0.6):
        return one_of(rng, *NAMES)
    width = one_of(rng, 1.0, 0.1, 1e-12, 1e12, np.full(d, 2.0))
    return one_of(
        rng,
        k.Gaussian(width),
        k.Matern32(width),
        one_of(rng, k.Gaussian, k.Matern12)(metric=rng.normal(size=(d, 1 + d // 2))),
        k.Laplacian(width) + k.Linear(),
        k.Gaussian(width) * k.Polynomial(2),
        k.Polynomial(one_of(rng, 1, 3, 5)),
        k.Scaled(k.Gaussian(width), one_of(rng, 1e-100, 1e-3, 1e100)),
        k.Bernoulli(2) if d == 1 else k.Matern12(width),
        make_mixture(rng, d, width),
        make_mixture(rng, d, width),
        k.Custom(product_kernel),
        product_kernel,
    )


def make_mixture(rng: np.random.Generator, d: int, width):
    """A mixture with any kind of metric, other parts or none, and perhaps a map of the columns."""
    radial = [k.Gaussian(2.0), k.Matern12(0.1), k.PowerExponential(30.0, exponent=0.5), k.Matern52()]
    radial = radial[: rng.integers(0, 5)]
    others = [k.Linear(widths=width), k.Laplacian(width)][: rng.integers(0 if radial else 1, 3)]
    metric = {"metric": rng.normal(size=(d, 1 + d // 2))} if perhaps(rng, 0.3) else {"bandwidth": width}
    ends = np.sort(one_of(rng, *SCALES) * rng.normal(size=(2, d)), axis=0)
    soft = (ends.mean(axis=0), rng.exponential(size=d) * (rng.random(d) < 0.5)) if perhaps(rng, 0.5) else ()
    columns = k.ColumnMap(*ends, *soft) if perhaps(rng, 0.4) else None
    weights = rng.exponential(size=len(radial) + len(others)) + 1e-3
    return k.Mixture(radial, others, weights * one_of(rng, 1.0, 1.0, 1e-100, 1e100), **metric, columns=columns)


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


def make_problem(rng: np.random.Generator):
    """Return rows, targets, weights and the options that all estimators share."""
    n = one_of(rng, 0, 1, 1, 2, 2, 3, 4, *[int(10 ** rng.uniform(0.5, 2.3))] * 25)
    d = int(rng.integers(0, 7)) if perhaps(rng, 0.2) else int(rng.integers(1, 4))
    X, y, weights = make_rows(rng, n, d), make_targets(rng, n), make_weights(rng, n)
    options = make_options(rng, X, n, d)
    if perhaps(rng, 0.05):
        X = product_kernel(*(rows.toarray() if sparse.issparse(rows) else np.asarray(rows) for rows in (X, X)))
        options |= {"kernel": "precomputed", "selection": one_of(rng, *SELECTIONS)}
        options.pop("bandwidth", None)
    return X, y, weights, options


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
            s.Leverage(match_ridge=False, certain_rows=False),
            s.Given(indices=[0, n - 1, 0]),
            np.zeros((1, d)),
            X[: max(1, n // 2)],
        ),
        "random_state": int(rng.integers(10)),
        "memory_budget": one_of(rng, None, None, 10**6, 10**5),
    }
    if isinstance(kernel, str) and kernel not in ("linear", "polynomial", "cosine") and perhaps(rng, 0.3):
        options["bandwidth"] = one_of(rng, "median", 1.0, 1e-9, 1e9, np.full(d, 0.5), FEW, FEW)
    return options


def make_invalid(rng: np.random.Generator, X, y, weights, options: dict):
    """Return the problem with one invalid part."""
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
                   k.Mixture(), k.Mixture([k.Gaussian()], weights=[-1.0]), k.Mixture("gaussian", weights=[1.0]),
                   k.Mixture([k.Gaussian()], weights=[1.0], columns=k.ColumnMap([0.0] * 9, None)),
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
