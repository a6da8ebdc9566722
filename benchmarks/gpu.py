"""Fits on a GPU: seconds, test error, and the share of the device's own float64 matrix rate that they reach.

Made-up rows of 20 features in float32 in host memory (Gaussian kernel of bandwidth 4.5, lambda 1e-7) and uniform
landmarks; an audit certificate; average effects; two and ten classes; a tuned fit of kin40k where the data are, else of
a simulated robot arm of as many rows; and exact kernel ridge regression. Every part is printed when it is done.

Run: python benchmarks/gpu.py [--device cuda] [--data FOLDER] [--parts rate,2000,audit,...] [--profile]
     python benchmarks/gpu.py --small   (few rows, on torch tensors in host memory: a check without a GPU)
"""

from __future__ import annotations

import argparse
import cProfile
import io
import os
import pstats
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ridgemark import ExactKernelRidge, NystromClassifier, NystromRidge
from ridgemark.cli.robot_arm import arm_rows

WIDTH, RIDGE, FEATURES, NOISE = 4.5, 1e-7, 20, 0.1


class Bench:
    """The rows, and the parts of the benchmark; each returns a line to be printed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.small, self.folder, self.device = options.small, options.data, options.device
        self.n_rows = 4_000 if self.small else 1_000_000
        self.rate = float("nan")
        self.model: Any = None
        rng = np.random.default_rng(0)
        self.X, self.y = made_up(self.n_rows, rng)
        self.X_test, self.y_test = made_up(2_000 if self.small else 20_000, rng)

    def given(self, rows: np.ndarray) -> Any:
        """Return rows as they are given to an estimator: tensors where there is no GPU to test."""
        return torch.from_numpy(rows) if self.small else rows

    def options(self, **more: Any) -> dict[str, Any]:
        """Return parameters that all estimators have."""
        return {"device": "cpu" if self.small else self.device, "random_state": 0, **more}

    def landmarks(self, count: int) -> int:
        """Return the number of landmarks to take."""
        return max(50, count // 50) if self.small else count

    def matrix_rate(self) -> str:
        """Measure products of square matrices."""
        size, device = (512, "cpu") if self.small else (8192, self.device)
        rates = []
        for dtype in (torch.float64, torch.float32):
            a = torch.randn(size, size, dtype=dtype, device=device)
            for repeat in (2, 5):
                synchronise()
                begin = time.perf_counter()
                for _ in range(repeat):
                    a @ a
                synchronise()
                seconds = (time.perf_counter() - begin) / repeat
            rates.append(2 * size**3 / seconds)
        self.rate = rates[0]
        name = "host" if self.small else torch.cuda.get_device_name(device)
        return f"{name}: products in float64 {rates[0] / 1e12:.3g} TFLOP/s, in float32 {rates[1] / 1e12:.3g} TFLOP/s"

    def fit(self, count: int, solver: str = "direct") -> str:
        """Fit with one ridge, several times: the first fit also loads the device's libraries."""
        p, X, y = self.landmarks(count), self.given(self.X), self.y
        model = NystromRidge(
            "gaussian",
            bandwidth=WIDTH,
            ridge=RIDGE,
            n_landmarks=p,
            selection="uniform",
            solver=solver,
            **self.options(),
        )
        seconds = []
        for _ in range(14 if count <= 2_000 and not self.small else 2 if count <= 10_000 else 1):
            synchronise()
            begin = time.perf_counter()
            model.fit(X, y)
            synchronise()
            seconds.append(time.perf_counter() - begin)
        if count == 2000:
            self.model = model
        begin = time.perf_counter()
        error = rms(self.y_test - np.asarray(model.predict(self.given(self.X_test))))
        predicted = time.perf_counter() - begin
        later = seconds[1:] or seconds
        middle = float(np.median(later))
        share = self.n_rows * p**2 / middle / self.rate
        work = f"n p^2 operations at {share:.0%} of the matrix rate" if solver == "direct" else "no sums of products"
        return (
            f"fit, n = {self.n_rows:,}, p = {p:,}, {solver}: {middle:.2f} s (median of {len(later)}, "
            f"{min(later):.2f} to {max(later):.2f}; first {seconds[0]:.2f}), test RMSE {error:.5f} (noise {NOISE}), "
            f"{work}; prediction of {len(self.X_test):,} rows {predicted:.2f} s; {peak()}"
        )

    def audit(self) -> str:
        """Measure the distance from exact of the fit with 2,000 landmarks."""
        begin = time.perf_counter()
        certificate = self.model.certify(self.given(self.X), self.y)
        return f"audit, n = {self.n_rows:,}: {time.perf_counter() - begin:.2f} s; {certificate.claim}"

    def effects(self) -> str:
        """Measure the average effects of the columns on the fit with 2,000 landmarks."""
        begin = time.perf_counter()
        largest = float(np.abs(self.model.effects_summary(self.given(self.X)).average).max())
        return f"effects, n = {self.n_rows:,}: {time.perf_counter() - begin:.2f} s; largest average {largest:.3f}"

    def classes(self, count: int) -> str:
        """Fit as many classes, cut from the targets at quantiles, with one ridge."""
        cuts, p = np.quantile(self.y, np.arange(1, count) / count), self.landmarks(2000)
        labels, expected = np.digitize(self.y, cuts), np.digitize(self.y_test, cuts)
        model = NystromClassifier(
            "gaussian", bandwidth=WIDTH, ridge=1e-6, n_landmarks=p, selection="uniform", **self.options()
        )
        begin = time.perf_counter()
        model.fit(self.given(self.X), labels)
        seconds = time.perf_counter() - begin
        wrong = float(np.mean(np.asarray(model.predict(self.given(self.X_test))) != expected))
        return (
            f"{count} classes, n = {self.n_rows:,}, p = {p:,}: {seconds:.2f} s in {model.n_passes_} passes, test error "
            f"{wrong:.4f}; {peak()}"
        )

    def tuned(self) -> str:
        """Fit with all defaults but the number of landmarks."""
        name, X, y = kin40k(self.folder)
        if self.small:
            X, y = X[:900], y[:900]
        split = 9 * len(X) // 10
        begin = time.perf_counter()
        model = NystromRidge(**self.options(n_landmarks=self.landmarks(5000))).fit(self.given(X[:split]), y[:split])
        seconds = time.perf_counter() - begin
        error = rms(y[split:] - np.asarray(model.predict(self.given(X[split:]))))
        return f"tuned fit, {name}, {split:,} rows, p = {model.n_landmarks_:,}: {seconds:.1f} s, test RMSE {error:.4f}"

    def exact(self) -> str:
        """Refine a landmark model on half of the rows."""
        n = min(len(self.X), 500_000)
        model = ExactKernelRidge(
            "gaussian",
            bandwidth=WIDTH,
            ridge=1e-6,
            n_landmarks=self.landmarks(5000),
            selection="uniform",
            tol=1e-3,
            max_iter=12,
            **self.options(),
        )
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.given(self.X[:n]), self.y[:n])
        seconds = time.perf_counter() - begin
        steps = ", ".join(f"{step.returned[0]:.2g}" for step in model.history_)
        error = rms(self.y_test - np.asarray(model.predict(self.given(self.X_test))))
        return (
            f"exact, n = {n:,}, {model.n_landmarks_:,} landmarks: {seconds:.1f} s, {model.n_iter_} products with K, "
            f"certified distances {steps}; test RMSE {error:.5f}"
        )

    def parts(self) -> dict[str, Callable[[], str]]:
        """Return the parts by their names, in the order in which they run."""
        return {
            "rate": self.matrix_rate,
            "2000": lambda: self.fit(2_000),
            "audit": self.audit,
            "effects": self.effects,
            "classes-2": lambda: self.classes(2),
            "classes-10": lambda: self.classes(10),
            "10000": lambda: self.fit(10_000),
            "10000-gradient": lambda: self.fit(10_000, "gradient"),
            "tuned": self.tuned,
            "30000": lambda: self.fit(30_000, "gradient"),
            "exact": self.exact,
        }


def made_up(n_rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n_rows, FEATURES), dtype=np.float32)
    signal = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + np.cos(X[:, 3] + X[:, 4])
    return X, (signal + NOISE * rng.standard_normal(n_rows)).astype(np.float64)


def kin40k(folder: str | None) -> tuple[str, np.ndarray, np.ndarray]:
    path = Path(folder) / "kin40k.npz" if folder else None
    if path is None or not path.exists():
        arm = arm_rows(40_000, np.random.default_rng(0))
        return "robot arm", arm.inputs[:, [6, 7, 14, 15, 22, 23, 30, 31]], arm.measured
    with np.load(path) as archive:
        return "kin40k", archive["X"].astype(np.float64), archive["y"].astype(np.float64).ravel()


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def synchronise() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def peak() -> str:
    if not torch.cuda.is_available():
        return "no GPU"
    used = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return f"{used:.1f} GiB of the device"


def report(profiler: cProfile.Profile) -> str:
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(18)
    lines = [line[:150] for line in text.getvalue().splitlines() if line.strip()]
    return "\n".join(f"    {line}" for line in lines[4:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with kin40k.npz")
    parser.add_argument("--parts", help="names of parts, with commas; all when not given")
    parser.add_argument("--profile", action="store_true", help="print where the host's time went")
    parser.add_argument("--small", action="store_true", help="few rows, in host memory")
    options = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}, NumPy {np.__version__}", flush=True)
    parts = Bench(options).parts()
    for name in options.parts.split(",") if options.parts else parts:
        profiler, begin = cProfile.Profile(), time.perf_counter()
        try:
            with profiler if options.profile else nullcontext():
                line = parts[name]()
            print(f"{line}  [{time.perf_counter() - begin:.1f} s]", flush=True)
        except Exception:
            print(f"{name} failed after {time.perf_counter() - begin:.1f} s", flush=True)
            traceback.print_exc()
        if options.profile:
            print(report(profiler), flush=True)


if __name__ == "__main__":
    main()
