"""Contributions of columns: seconds of Shapley values and path integrals, and of `effects` on as many rows; and shap's.

100 rows, 100 background rows, 20 columns and 2,000 landmarks. Errors are relative to the largest contribution: for
the product kernel against 10 nodes in double precision, which are exact. `shap.KernelExplainer` has all subsets for 8
columns, and the samples it chooses itself for 20; `shap.PermutationExplainer` ten permutations of each row.

Run: pip install shap; python benchmarks/contributions.py
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from ridgemark import NystromRidge
from ridgemark.explaining import contributions as parts
from ridgemark.explaining.factors import column_sum
from ridgemark.explaining.shapley import Shapley
from ridgemark.kernels import Gaussian, Laplacian, Linear, Matern12, Matern52, Mixture

ROWS, BACKGROUND, LANDMARKS = 100, 100, 2000


def data(n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, n_columns))
    y = np.sin(X[:, 0] * X[:, 1]) + X[:, 2] ** 2 + X[:, 3] * X[:, 0] + X[:, 5:].sum(axis=1)
    return X, y + 0.1 * rng.normal(size=len(X))


def fitted(kernel: Any, n_columns: int, n_landmarks: int = LANDMARKS) -> tuple[Any, np.ndarray]:
    X, y = data(n_columns)
    model = NystromRidge(kernel, ridge=1e-4, n_landmarks=n_landmarks, selection="uniform", random_state=0)
    return model.fit(X, y), X


def timed(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the result, the seconds, and the seconds of all processors."""
    start, busy = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - start, time.process_time() - busy


def product_kernel() -> None:
    model, X = fitted(Gaussian(5.0), 20)
    found, seconds, busy = timed(lambda: model.contributions(X[:ROWS], X[-BACKGROUND:]))
    function = model._model.function
    terms, weights = column_sum(model.kernel_, 20), np.full(BACKGROUND, 1.0 / BACKGROUND)
    method = Shapley(terms, function.points, function.dual_coef, np.arange(20), X[-BACKGROUND:], weights)
    exact = method.values(X[:4], method.finest)[:, :, 0]
    error = abs(found.values[:4] - exact).max() / abs(exact).max()
    print(f"Gaussian: {seconds:.1f} s, {busy:.1f} s of processors, relative error {error:.1g}", flush=True)


def other_kernels() -> None:
    rng = np.random.default_rng(1)
    radial, metric = [Gaussian(1.0), Matern52(2.0), Matern12(8.0)], rng.normal(size=(20, 20)) / 20.0
    for name, others in (("radial parts", []), ("with a Laplacian and a linear part", [Laplacian(25.0), Linear()])):
        kernel = Mixture(radial, others, [0.5, 0.3, 0.2, 0.1, 0.1][: 3 + len(others)], metric=metric)
        model, X = fitted(kernel, 20)
        with patch.object(parts, "_accurate_rule", wraps=parts._accurate_rule) as chosen:
            call = partial(model.contributions, X[:ROWS], X[-BACKGROUND:])
            found, seconds, busy = timed(call)
        (rule, _), *_ = [parts._accurate_rule(*given.args) for given in chosen.call_args_list[-1:]]
        nodes = rule[1]
        many = rng.normal(size=(ROWS * BACKGROUND * nodes, 20))
        _, effects, effects_busy = timed(partial(model.effects, many))
        error = found.error.max() / abs(found.values).max()
        print(
            f"{name}, {nodes} nodes: {seconds:.1f} s, {busy:.1f} s of processors, stated error {error:.1g}; effects of "
            f"as many rows {effects:.1f} s, {effects_busy:.1f} s of processors: {busy / effects_busy:.2f} times",
            flush=True,
        )


def with_shap() -> None:
    import shap

    model, X = fitted(Gaussian(3.0), 8, 500)
    found = model.contributions(X[:5], X[-20:])
    explained = shap.KernelExplainer(model.predict, X[-20:]).shap_values(X[:5], nsamples=2**8, silent=True)
    gap = abs(found.values - explained).max() / abs(found.values).max()
    print(f"shap.KernelExplainer with all subsets of 8 columns: largest difference {gap:.1g}", flush=True)
    model, X = fitted(Gaussian(5.0), 20)
    few = 2
    found = model.contributions(X[:few], X[-BACKGROUND:])
    kernel = shap.KernelExplainer(model.predict, X[-BACKGROUND:])
    values, seconds, _ = timed(lambda: kernel.shap_values(X[:few], silent=True))
    gap = abs(found.values - values).max() / abs(found.values).max()
    print(f"shap.KernelExplainer: {seconds / few * ROWS:.0f} s for {ROWS} rows, relative error {gap:.1g}", flush=True)
    permutation = shap.PermutationExplainer(model.predict, X[-BACKGROUND:])
    values, seconds, _ = timed(lambda: permutation(X[:few], silent=True).values)
    gap = abs(found.values - values).max() / abs(found.values).max()
    print(f"shap.PermutationExplainer: {seconds / few * ROWS:.0f} s for {ROWS} rows, relative error {gap:.1g}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    product_kernel()
    other_kernels()
    with_shap()
