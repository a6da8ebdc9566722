"""Whether two versions of the source give the same results: fits, certificates, intervals, classes, files.

    python benchmarks/equal.py BEFORE AFTER [--case NAME ...]

A commit is checked out into a temporary folder; `.` is the working tree. Every case runs in a process of its own for
each version, with one thread, and hands back arrays by name. The table has, for each case, how many arrays have the
same bits, and the largest difference of the others, relative to the largest entry. The exit code is 1 where a
difference exceeds 1e-9, or where the names differ.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from commits import checkout

_MOST = 1e-9  # of the largest entry

# Each case fills `found`: arrays by name. `model_facts` adds what a fitted regressor tells.
CASES = {
    "ridge given": """
model_facts(NystromRidge(bandwidth=3.0, ridge=1e-5, n_landmarks=150, random_state=0), *rows(1200, 5))
""",
    "leave-one-out, leverage, weights, two targets": """
X, y = rows(1500, 5)
model = NystromRidge(bandwidth=3.0, n_landmarks=150, selection="leverage", random_state=0)
model_facts(model, X, np.c_[y, y**2], np.random.default_rng(1).uniform(0.5, 2.0, len(X)))
""",
    "many features, ridge searched": """
model_facts(NystromRidge(bandwidth=2.0, n_landmarks=1200, selection="uniform", random_state=0), *rows(3000, 5))
""",
    "everything chosen": "model_facts(NystromRidge(random_state=0), *rows(900, 4))",
    "tuned, 3,000 rows": "model_facts(NystromRidge(random_state=1, n_landmarks=300), *rows(3000, 6))",
    "gradient solver": """
X, y = rows(2500, 4)
model = NystromRidge(bandwidth=3.0, ridge=1e-4, n_landmarks=1500, solver="gradient", random_state=0).fit(X, y)
found.update(predicted=model.predict(X), dual=model.dual_coef_)
""",
    "certificate asked for": """
model_facts(NystromRidge(bandwidth=3.0, certify_with="audit", random_state=0), *rows(900, 4))
""",
    "exact": """
X, y = rows(1200, 4)
model = ExactKernelRidge(bandwidth=2.0, ridge=1e-4, tol=1e-6, random_state=0).fit(X, y)
found.update(predicted=model.predict(X), dual=model.dual_coef_, ridge=np.array(model.ridge_))
""",
    "batches": """
X, y = rows(1500, 4)
model = NystromRidge(bandwidth=3.0, n_landmarks=100, random_state=0)
for part in np.array_split(np.arange(len(X)), 3):
    model.partial_fit(X[part], y[part])
found.update(predicted=model.predict(X), ridge=np.array(model.ridge_))
""",
    "two classes": """
X, y = rows(900, 4)
class_facts(NystromClassifier(bandwidth=2.0, n_landmarks=100, random_state=0), X, y > 0)
""",
    "three classes, tuned": """
X, y = rows(900, 4)
class_facts(NystromClassifier(random_state=0), X, np.digitize(y, (-0.5, 0.5)))
""",
    "a table with text, dates and gaps": """
import pandas as pd
X, y = rows(700, 3)
table = pd.DataFrame(X, columns=["a", "b", "c"])
table["text"] = np.array(["red", "green", "blue", "grey"])[np.random.default_rng(3).integers(4, size=len(X))]
table["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(X)), unit="D")
table.loc[::9, "b"] = np.nan
model = NystromRidge(random_state=0).fit(table, y)
found.update(predicted=model.predict(table), intervals=model.predict_interval(table))
""",
    "sparse rows": """
from scipy.sparse import csr_array
X, y = rows(800, 5)
X[np.abs(X) < 1.0] = 0.0
model = NystromRidge(n_landmarks=120, random_state=0).fit(csr_array(X), y)
found.update(predicted=model.predict(csr_array(X)), ridge=np.array(model.ridge_))
""",
    "files": """
X, y = rows(900, 4)
path = Path(folder, "rows.csv")
np.savetxt(path, np.c_[X, y], delimiter=",", fmt="%.17g", header="a,b,c,d,y", comments="")
model = NystromRidge(bandwidth=3.0, n_landmarks=100, random_state=0).fit(open_rows(path, target="y"))
model.save(Path(folder, "model"))
again = load(Path(folder, "model"))
found.update(predicted=model.predict(X), again=again.predict(X), intervals=again.predict_interval(X))
""",
    "beyond memory": """
X, y = rows(6000, 4)
np.savez(Path(folder, "rows.npz"), X=X, y=y)
model = NystromRidge(n_landmarks=100, memory_budget=2**21, random_state=0)
model.fit(open_rows(Path(folder, "rows.npz")))
found.update(predicted=model.predict(X), ridge=np.array(model.ridge_))
""",
    "scores": """
X, y = rows(1500, 5)
scores = leverage_scores(X, ridge=1e-5, bandwidth=3.0, n_landmarks=200, random_state=0)
found.update(lower=scores.lower, upper=scores.upper)
""",
    "features": """
X, y = rows(800, 5)
found.update(features=NystromFeatures(bandwidth=3.0, n_landmarks=60, random_state=0).fit_transform(X))
""",
}

_PROLOGUE = """
import sys, tempfile, warnings
from pathlib import Path
import numpy as np
from ridgemark import ExactKernelRidge, NystromClassifier, NystromFeatures, NystromRidge, leverage_scores, load
from ridgemark import open_rows
warnings.simplefilter("ignore")
found = {}
folder = tempfile.mkdtemp()

def rows(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0] * X[:, 1]) + X[:, 2] + 0.1 * rng.normal(size=n)

def model_facts(model, X, y, weights=None):
    model.fit(X, y, sample_weight=weights)
    predicted, deviations = model.predict(X, return_std=True)
    audit = model.certify(X, y, sample_weight=weights)
    found.update(
        predicted=predicted, deviations=deviations, dual=model.dual_coef_, ridge=np.array(model.ridge_),
        dimension=np.array(model.effective_dimension_), importances=model.feature_importances_,
        effects=model.effects(X[:50]), bound=np.array(audit.bound), trace=np.array(model.certificate_.bound),
        landmarks=model.landmark_indices_,
    )
    if hasattr(model, "loo_residuals_"):
        found.update(residuals=model.loo_residuals_, path=model.ridge_path_.loo_error)
    if hasattr(model, "calibration_"):
        found.update(intervals=model.predict_interval(X[:200]))

def class_facts(model, X, y):
    model.fit(X, y)
    found.update(
        probabilities=model.predict_proba(X), dual=model.dual_coef_, ridge=np.array(model.ridge_),
        sets=model.predict_set(X[:200]), bound=np.array(model.certify(X, y).bound),
    )
"""
_EPILOGUE = """
np.savez(sys.argv[1], **{name: np.asarray(values) for name, values in found.items()})
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only these cases")
    options = parser.parse_args()
    print("| case | arrays | same bits | largest difference |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        trees = [
            _source(version, Path(folder, name)) for version, name in ((options.before, "a"), (options.after, "b"))
        ]
        worst = max(_compare(case, trees, Path(folder)) for case in options.case or CASES)
    print(f"\nlargest difference, relative to the largest entry: {worst:.2g}")
    sys.exit(worst > _MOST)


def _source(version: str, folder: Path) -> Path:
    """Return the folder with the source of a commit, or of a working tree."""
    return Path(version, "src").resolve() if Path(version).is_dir() else checkout(version, folder)


def _compare(case: str, trees: list[Path], folder: Path) -> float:
    """Print a line of the table; return the largest difference, infinite where arrays cannot be compared."""
    before, after = (_run(case, tree, folder / f"{number}.npz") for number, tree in enumerate(trees))
    differences = {name: _difference(before.get(name), after.get(name)) for name in before | after}
    same = sum(difference == 0.0 for difference in differences.values())
    name = max(differences, key=differences.__getitem__)
    worst = f"{differences[name]:.2g} ({name})" if differences[name] else ""
    print(f"| {case} | {len(differences)} | {same} | {worst} |", flush=True)
    return differences[name]


def _difference(one: np.ndarray | None, other: np.ndarray | None) -> float:
    if one is None or other is None or one.shape != other.shape:
        return float("inf")
    if np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
        return 0.0
    return float(np.abs(one.astype(float) - other).max() / max(np.abs(one).max(), 1e-300))


def _run(case: str, tree: Path, output: Path) -> dict[str, np.ndarray]:
    script = _PROLOGUE + CASES[case] + _EPILOGUE
    environment = {**os.environ, "PYTHONPATH": str(tree), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script, str(output)], env=environment)
    if done.returncode:
        sys.exit(f"case {case!r} failed with {tree}")
    with np.load(output) as arrays:
        return dict(arrays)


if __name__ == "__main__":
    main()
