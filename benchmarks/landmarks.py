"""Does it matter how landmarks are chosen? Every selection at equal p, on every data set at hand and two designs.

For each set: 2,000 training rows, Gaussian kernel with the median bandwidth, lambda by exact leave-one-out, and twice
as many landmarks as the effective dimension at that lambda, between 100 and a third of the rows. Measured over seeds:
seconds to choose, tr(K - L)/tr K, RMS distance of the fitted values to exact kernel ridge regression and test RMSE,
both in standard deviations of y. "uniform rows" draws rows as they come; "uniform" draws distinct rows, so that the
gain from leaving out repeats shows apart from the gain from scores.

Run: python benchmarks/landmarks.py --data FOLDER [--output docs/landmarks.md]
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ridgemark import NystromRidge, exact, leverage_scores
from ridgemark.kernels import Gaussian
from ridgemark.losses import loss_sums
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows
from ridgemark.selection import Given, Problem, make_selection
from ridgemark.tuning import median_distance

SAMPLERS = [
    "uniform rows",
    "uniform",
    "diagonal",
    "leverage",
    "recursive",
    "bless",
    "rpcholesky",
    "kmeans",
    "rank_leverage",
]
RIDGES = 10.0 ** -np.arange(2, 10)
MEASURES = ["seconds", "trace", "distance", "rmse"]


@dataclass
class Case:
    """One data set, split and standardised, with its exact solution."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    kernel: Gaussian
    ridge: float
    fitted: np.ndarray
    coherence: float
    effective_dimension: float
    repeated: float
    verdict: str


def rare_cluster(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """97% of the rows in one dense ball, 3% spread over a region where the signal varies as much."""
    far = rng.random(n) < 0.03
    X = np.where(far[:, None], rng.uniform(-6, 6, (n, 3)), 0.3 * rng.normal(size=(n, 3)))
    return X, np.sin(X[:, 0]) + np.cos(X[:, 1]) * X[:, 2] + 0.05 * rng.normal(size=n)


def rare_regimes(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Eight regimes of an operating point, each half as frequent as the one before, in six inputs."""
    centres = 4 * np.random.default_rng(5).normal(size=(8, 6))
    shares = 2.0 ** -np.arange(8)
    X = centres[rng.choice(8, n, p=shares / shares.sum())] + 0.4 * rng.normal(size=(n, 6))
    return X, np.sin(X).sum(axis=1) + 0.05 * rng.normal(size=n)


def load(folder: Path | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    sets = {"rare-cluster (design)": rare_cluster(4000, rng), "rare-regimes (design)": rare_regimes(4000, rng)}
    for path in sorted(folder.glob("*.npz")) if folder else []:
        with np.load(path) as archive:
            sets[path.stem] = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
    return sets


def prepare(name: str, X: np.ndarray, y: np.ndarray, n_train: int) -> Case:
    order = np.random.default_rng(1).permutation(len(X))
    train = order[: min(n_train, len(X) * 2 // 3)]
    test = order[len(train) : len(train) + 2000]
    mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
    varies = scale > 1e-10 * np.abs(X[train]).max(axis=0)
    A, B = ((X[rows][:, varies] - mean[varies]) / scale[varies] for rows in (train, test))
    targets = (y - y[train].mean()) / y[train].std()
    kernel = Gaussian(median_distance(np.unique(A[:1000], axis=0)))
    K = exact.kernel_matrix(A, kernel)
    spectrum = exact.spectrum(K)
    n = len(A)
    fits = {r: exact.kernel_ridge(K, targets[train], n * r).fitted for r in RIDGES}
    errors = {
        r: np.mean(((targets[train] - f) / (1 - exact.leverage_scores(spectrum, n * r))) ** 2) for r, f in fits.items()
    }
    ridge = min(errors, key=errors.__getitem__)
    scores = exact.leverage_scores(spectrum, n * ridge)
    return Case(
        name,
        A,
        targets[train],
        B,
        targets[test],
        kernel,
        float(ridge),
        fits[ridge],
        n * scores.max() / scores.sum(),
        scores.sum(),
        1 - len(np.unique(A, axis=0)) / n,
        leverage_scores(A, kernel=kernel, ridge=ridge, refine=1, random_state=0).verdict(),
    )


def measure(case: Case, sampler: str, p: int, seed: int) -> list[float]:
    n = len(case.X)
    rng = np.random.default_rng(seed)
    passes = RowPasses(ArrayRows(case.X))
    problem = Problem(passes, passes.distinct_rows(), case.kernel, n * case.ridge)
    rows = Given(indices=rng.choice(n, p, replace=False)) if sampler == "uniform rows" else make_selection(sampler)
    start = time.perf_counter()
    chosen = rows.choose(problem, p, rng)
    taken = time.perf_counter() - start
    model = NystromRidge(
        case.kernel, ridge=case.ridge, selection=Given(points=chosen.points), fit_intercept=False, random_state=seed
    ).fit(case.X, case.y)
    moments = loss_sums(passes, model._factor)
    distance = np.sqrt(np.mean((model.predict(case.X) - case.fitted) ** 2))
    rmse = np.sqrt(np.mean((model.predict(case.X_test) - case.y_test) ** 2))
    return [taken, moments.trace_residual / moments.trace_kernel, distance, rmse]


def run(case: Case, p: int, seeds: int) -> dict[str, np.ndarray]:
    return {s: np.array([measure(case, s, p, seed) for seed in range(seeds)]) for s in SAMPLERS}


def table(case: Case, p: int, results: dict[str, np.ndarray]) -> list[str]:
    lines = [
        f"### {case.name}",
        "",
        f"{len(case.X)} rows, {case.X.shape[1]} features, lambda {case.ridge:g}, d_eff {case.effective_dimension:.0f}, "
        f"coherence {case.coherence:.1f}, repeated rows {case.repeated:.0%}, p = {p}. Verdict: {case.verdict}.",
        "",
        "| selection | seconds | tr(K-L)/tr K: median, worst | distance to exact: median, worst | "
        "test RMSE: median, worst |",
        "|---|---|---|---|---|",
    ]
    for sampler, values in results.items():
        middle, worst = np.median(values, axis=0), values.max(axis=0)
        cells = [f"{middle[k]:.3g}, {worst[k]:.3g}" for k in (1, 2, 3)]
        lines.append(f"| {sampler} | {middle[0]:.3f} | {' | '.join(cells)} |")
    return [*lines, ""]


def outcome(ratio: float) -> str:
    return "wins" if ratio < 0.8 else "loses" if ratio > 1.25 else "ties"


def summary(cases: list[tuple[Case, dict[str, np.ndarray]]]) -> list[str]:
    lines = [
        "## Leverage against uniform landmarks",
        "",
        "Ratios of medians over seeds, leverage over uniform (distinct rows); below 1 leverage is better. It wins "
        "below 0.8 and loses above 1.25. Foretold: the verdict of `leverage_scores` said the same before any fit.",
        "",
        "| data | coherence | distance ratio | outcome | RMSE ratio | uniform rows / distinct | predicted |",
        "|---|---|---|---|---|---|---|",
    ]
    right = 0
    for case, results in sorted(cases, key=lambda pair: -pair[0].coherence):
        middle = {s: np.median(v, axis=0) for s, v in results.items()}
        distance = middle["leverage"][2] / middle["uniform"][2]
        rmse = middle["leverage"][3] / middle["uniform"][3]
        control = middle["uniform rows"][2] / middle["uniform"][2]
        expected = "ties" if "even" in case.verdict else "wins" if "carr" in case.verdict else "open"
        agrees = expected == outcome(distance)
        right += agrees
        lines.append(
            f"| {case.name} | {case.coherence:.1f} | {distance:.2f} | {outcome(distance)} | {rmse:.3f} | "
            f"{control:.2f} | {'yes' if agrees else 'no, said ' + expected} |"
        )
    return [*lines, "", f"Predicted correctly on {right} of {len(cases)} sets.", ""]


def fewer_landmarks(cases: list[Case], p: int, seeds: int) -> list[str]:
    """Say what the designs give with fewer landmarks: the outcome depends on p, not on the data alone."""
    parts = []
    for case in cases:
        middle = {
            s: np.median([measure(case, s, p, seed)[2] for seed in range(seeds)]) for s in ("leverage", "uniform")
        }
        ratio = middle["leverage"] / middle["uniform"]
        parts.append(f"{case.name} {ratio:.2f} ({outcome(ratio)})")
    return [f"The outcome depends on p: with {p} landmarks the designs' distance ratios are {', '.join(parts)}.", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RIDGEMARK_DATA") or None)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--landmarks", type=int, help="p for every set, instead of twice the effective dimension")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", type=Path, help="write the tables here as Markdown")
    options = parser.parse_args()
    folder = Path(options.data) if options.data else None
    if folder is None:
        print("no --data and no RIDGEMARK_DATA: only the two designs are run (see docs/data.md)")
    done, pages = [], []
    for name, (X, y) in load(folder).items():
        case = prepare(name, X, y, options.rows)
        p = options.landmarks or int(np.clip(round(2 * case.effective_dimension), 100, len(case.X) // 3))
        results = run(case, p, options.seeds)
        done.append((case, results))
        pages += table(case, p, results)
        print("\n".join(table(case, p, results)), flush=True)
    designs = [case for case, _ in done if case.name.endswith("(design)")]
    lines = [*summary(done), *fewer_landmarks(designs, 200, options.seeds)]
    print("\n".join(lines))
    if options.output:
        head = [
            "# Choosing landmarks: what it changes",
            "",
            f"Produced by `python benchmarks/landmarks.py`, {options.seeds} seeds.",
            "",
        ]
        options.output.write_text("\n".join([*head, *lines, "## All selections", "", *pages]), encoding="utf-8")


if __name__ == "__main__":
    main()
