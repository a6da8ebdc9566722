"""Time and memory of two commits beside each other: the same cases, interleaved, medians of several repeats.

    python benchmarks/commits.py BEFORE AFTER [--repeats 5] [--case NAME ...]

Each commit is checked out into a temporary folder and run in a process of its own with this Python, so both see the
same packages. A case runs in one process per repeat; BEFORE and AFTER take turns. The last line has the geometric mean
of the ratios and the worst one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

# Each case prepares its data, then runs the last expression `work()`, whose time and memory are measured.
CASES = {
    "fit, ridge given": """
X, y = rows(150_000, 10)
work = lambda: NystromRidge(bandwidth=3.0, ridge=1e-6, n_landmarks=1000, selection="uniform", random_state=0).fit(X, y)
""",
    "fit, leave-one-out": """
X, y = rows(60_000, 10)
work = lambda: NystromRidge(bandwidth=3.0, n_landmarks=800, selection="leverage", random_state=0).fit(X, y)
""",
    "fit, two targets and weights": """
X, y = rows(60_000, 10)
w = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
model = NystromRidge(bandwidth=3.0, ridge=[1e-6, 1e-4], n_landmarks=600, selection="uniform", random_state=0)
work = lambda: model.fit(X, np.c_[y, y**2], w)
""",
    "fit, randomly pivoted": """
X, y = rows(40_000, 10)
model = NystromRidge(bandwidth=3.0, ridge=1e-6, n_landmarks=600, selection="rpcholesky", random_state=0)
work = lambda: model.fit(X, y)
""",
    "fit by gradients": """
X, y = rows(30_000, 10)
options = {"bandwidth": 3.0, "n_landmarks": 3000, "selection": "uniform", "solver": "gradient", "random_state": 0}
model = NystromRidge(ridge=1e-5, **options)
work = lambda: model.fit(X, y)
""",
    "predict": """
X, y = rows(400_000, 10)
model = NystromRidge(bandwidth=3.0, ridge=1e-6, n_landmarks=800, selection="uniform", random_state=0)
model.fit(X[:5000], y[:5000])
work = lambda: model.predict(X)
""",
    "intervals": """
X, y = rows(30_000, 10)
model = NystromRidge(bandwidth=3.0, n_landmarks=400, selection="uniform", random_state=0).fit(X, y)
work = lambda: model.predict_interval(X[:6000])
""",
    "scores": """
X, y = rows(150_000, 10)
work = lambda: leverage_scores(X, ridge=1e-6, bandwidth=3.0, n_landmarks=600, random_state=0)
""",
    "audit": """
X, y = rows(20_000, 10)
model = NystromRidge(bandwidth=3.0, ridge=1e-6, n_landmarks=500, selection="uniform", random_state=0).fit(X, y)
work = lambda: model.certify(X, y)
""",
    "exact": """
X, y = rows(8_000, 10)
model = ExactKernelRidge(bandwidth=3.0, ridge=1e-5, n_landmarks=800, selection="uniform", tol=1e-4, random_state=0)
work = lambda: model.fit(X, y)
""",
    "csv": """
X, y = rows(200_000, 8)
path = Path(folder, "rows.csv")
np.savetxt(path, np.c_[X, y], delimiter=",", fmt="%.6g", header="a,b,c,d,e,f,g,h,y", comments="")
model = NystromRidge(bandwidth=3.0, ridge=1e-5, n_landmarks=300, selection="uniform", random_state=0)
work = lambda: model.fit(open_rows(path, target="y"))
""",
}

_PROLOGUE = """
import json, resource, sys, tempfile, time, warnings
from pathlib import Path
import numpy as np
from ridgemark import ExactKernelRidge, NystromRidge, leverage_scores, open_rows
warnings.simplefilter("ignore")

def rows(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0] * X[:, 1]) + X[:, 2] + 0.1 * rng.normal(size=n)

folder = tempfile.mkdtemp()
"""
_EPILOGUE = """
begin = time.perf_counter()
work()
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only these cases")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trees = [checkout(commit, Path(folder, name)) for commit, name in ((options.before, "a"), (options.after, "b"))]
        print("| case | before s | after s | ratio | before MB | after MB |\n|---|---|---|---|---|---|")
        ratios = [_compare(case, trees, options.repeats) for case in options.case or CASES]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"\nafter over before: geometric mean {mean:.3f}, worst {max(ratios):.3f}")


def checkout(commit: str, folder: Path) -> Path:
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit, "src"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder / "src"


def _compare(case: str, trees: list[Path], repeats: int) -> float:
    runs: list[list[dict[str, float]]] = [[], []]
    for repeat in range(repeats):
        for which in (0, 1) if repeat % 2 == 0 else (1, 0):
            runs[which].append(_run(case, trees[which]))
    seconds = [statistics.median(run["seconds"] for run in some) for some in runs]
    peaks = [max(run["peak"] for run in some) / 1e6 for some in runs]
    ratio = seconds[1] / seconds[0]
    print(
        f"| {case} | {seconds[0]:.2f} | {seconds[1]:.2f} | {ratio:.3f} | {peaks[0]:.0f} | {peaks[1]:.0f} |", flush=True
    )
    return ratio


def _run(case: str, tree: Path) -> dict[str, float]:
    script = _PROLOGUE + CASES[case] + _EPILOGUE
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(tree)},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
