"""Certificates beside the truth: how close they come, what they cost, what leverage landmarks change.

For each data set: 3,000 rows, Gaussian kernel with the median bandwidth, lambda by exact leave-one-out, landmarks 2 and
4 times the effective dimension, by leverage scores and uniformly. Distances are RMS in standard deviations of y. Then a
sampled audit on many rows of one long set, beside what it estimates without a guarantee.

Run: python benchmarks/certificates.py --data FOLDER [--output docs/certificates-measured.md]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from ridgemark import exact
from ridgemark.certificates import audit, operator_certificate, theorem_3_promise, trace_certificate
from ridgemark.kernels import Gaussian
from ridgemark.losses import loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.selection import Problem, make_selection
from ridgemark.solvers import solve_landmarks
from ridgemark.tuning import median_distance

RIDGES = 10.0 ** -np.arange(2, 9)


def standardised(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    X, y = X.astype(np.float64), y.astype(np.float64)
    varies = X.std(axis=0) > 1e-10 * np.abs(X).max(axis=0)
    return (X[:, varies] - X[:, varies].mean(axis=0)) / X[:, varies].std(axis=0), (y - y.mean()) / y.std()


def load(folder: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {path.stem: dict(np.load(path)) for path in sorted(folder.glob("*.npz"))}


def fit(X: np.ndarray, y: np.ndarray, kernel: Gaussian, ridge: float, selection: str, p: int):
    """Return the passes, the fit, the landmarks' rows and the seconds the fit took."""
    start = time.perf_counter()
    passes, scaled_ridge = RowPasses(ArrayRows(X, y)), len(X) * ridge
    problem = Problem(passes, passes.distinct_rows(), kernel, scaled_ridge)
    chosen = make_selection(selection).choose(problem, p, np.random.default_rng(0))
    factor = nystrom_factor(kernel, chosen.points, chosen.indices)
    moments = loss_sums(passes, factor, np.zeros(1), scaled_ridge)
    made = solve_landmarks(factor, moments, True, np.array([scaled_ridge]), np.zeros(1))
    made.solution  # noqa: B018 computed once, here
    return passes, made, chosen.indices, time.perf_counter() - start


def choose_ridge(K: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """Return lambda by exact leave-one-out, its effective dimension and the RMS leave-one-out residual."""
    n, spectrum = len(K), exact.spectrum(K)
    rotated = spectrum.eigenvectors.T @ y

    def loo(ridge: float) -> float:
        kept = spectrum.eigenvalues / (spectrum.eigenvalues + n * ridge)
        left = y - spectrum.eigenvectors @ (kept * rotated)
        return float(np.sqrt(np.mean((left / (1 - exact.leverage_scores(spectrum, n * ridge))) ** 2)))

    errors = {ridge: loo(ridge) for ridge in RIDGES}
    best = min(errors, key=errors.__getitem__)
    return float(best), exact.effective_dimension(spectrum, n * best), errors[best]


def small(name: str, data: dict[str, np.ndarray], rows: int, audits_only: bool) -> list[str]:
    order = np.random.default_rng(1).permutation(len(data["X"]))[:rows]
    X, y = standardised(data["X"][order], data["y"][order])
    n, kernel = len(X), Gaussian(median_distance(np.unique(X[:1000], axis=0)))
    K = exact.kernel_matrix(X, kernel)
    ridge, dimension, loo = choose_ridge(K, y)
    fitted = exact.kernel_ridge(K, y, n * ridge, fit_intercept=True).fitted
    lines = [
        f"### {name}",
        "",
        f"{n} rows, {X.shape[1]} features, lambda {ridge:g}, d_eff {dimension:.0f}, RMS leave-one-out residual "
        f"{loo:.3g}.",
        "",
        "| landmarks | p | d_eff between | true distance | audit | audit/true | operator | risk factor | trace | "
        "seconds: fit, audit, operator |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for multiple in (2, 4):
        p = min(int(multiple * dimension), 4 * n // 5)
        for selection in ("leverage", "uniform"):
            passes, made, indices, seconds = fit(X, y, kernel, ridge, selection, p)
            rng = np.random.default_rng(0)
            measured = audit(passes, made, rng=rng, landmark_indices=indices)
            every = None if audits_only else operator_certificate(passes, made, rng=rng)
            of_every = ("-", "-", 0.0) if every is None else (every.bound, every.risk_factor, every.cost["seconds"])
            operator, factor, taken = (value if isinstance(value, str) else f"{value:.3g}" for value in of_every)
            free = trace_certificate(made)
            values = made.factor.cross_kernel(X) @ made.dual_coef + made.intercept
            truth = float(np.sqrt(np.mean((values[:, 0] - fitted) ** 2)))
            low, high = measured.inputs["effective_dimension"]
            lines.append(
                f"| {selection} | {p} | {low:.0f} and {high:.0f} | {truth:.3g} | {measured.bound:.3g} | "
                f"{measured.bound / truth:.2f} | {operator} | {factor} | {free.bound:.3g} | "
                f"{seconds:.2f}, {measured.cost['seconds']:.2f}, {taken} |"
            )
    return [*lines, "", theorem_3_promise(made) or "Theorem 3 gives no guarantee for any number of draws.", ""]


def large(name: str, data: dict[str, np.ndarray], rows: int, ridge: float, p: int, entries: list[float]) -> list[str]:
    order = np.random.default_rng(1).permutation(len(data["X"]))[:rows]
    X, y = standardised(data["X"][order], data["y"][order])
    kernel = Gaussian(median_distance(np.unique(X[:1000], axis=0)))
    lines = [
        f"### {name}, sampled",
        "",
        f"{len(X)} rows, lambda {ridge:g}, {p} landmarks; with probability 0.95.",
        "",
        "| landmarks | rows sampled | audit | estimate of the energy | unmeasured | RMS residual | "
        "seconds: fit, audit |",
        "|---|---|---|---|---|---|---|",
    ]
    for selection in ("leverage", "uniform"):
        passes, made, _, seconds = fit(X, y, kernel, ridge, selection, p)
        for budget in entries:
            measured = audit(passes, made, rng=np.random.default_rng(0), kernel_entries=int(budget))
            inputs = measured.inputs
            lines.append(
                f"| {selection} | {inputs['sampled_rows']} | {measured.bound:.3g} | "
                f"{inputs['energy_estimate'][0]:.3g} | {inputs['unmeasured'][0]:.3g} | {inputs['rms_left'][0]:.3g} | "
                f"{seconds:.0f}, {measured.cost['seconds']:.0f} |"
            )
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RIDGEMARK_DATA"), required=False)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--sets", nargs="+", help="only these data sets")
    parser.add_argument("--audits-only", action="store_true", help="leave out operator certificates, most of the time")
    parser.add_argument("--large", default="ocean-temp", help="the long set for the sampled audit")
    parser.add_argument("--large-rows", type=int, default=300_000)
    parser.add_argument("--large-ridge", type=float, default=1e-6)
    parser.add_argument("--large-landmarks", type=int, default=1000)
    parser.add_argument("--kernel-entries", type=float, nargs="+", default=[1e9, 4e9])
    parser.add_argument("--output", type=Path, help="write the tables here as Markdown")
    options = parser.parse_args()
    if options.data is None:
        parser.error("give --data FOLDER or set RIDGEMARK_DATA (see docs/data.md)")
    sets = load(Path(options.data))
    pages = []
    for name in options.sets or sets:
        pages += small(name, sets[name], options.rows, options.audits_only)
        print("\n".join(pages[-10:]), flush=True)
    if options.large in sets:
        settings = options.large_rows, options.large_ridge, options.large_landmarks, options.kernel_entries
        lines = large(options.large, sets[options.large], *settings)
        print("\n".join(lines), flush=True)
        pages += lines
    if options.output:
        head = ["# Certificates, measured", "", "Produced by `python benchmarks/certificates.py`.", ""]
        options.output.write_text("\n".join([*head, *pages]), encoding="utf-8")


if __name__ == "__main__":
    main()
