"""Peak memory of a fit from a memory map: the rows are never held, only blocks and the landmarks' sums.

Writes random float32 rows to a temporary file, fits them in a fresh process, and prints its peak resident memory before
and after, and the seconds. Run: python benchmarks/memory.py --rows 1000000 --landmarks 1000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FIT = """
import json, resource, sys, time
import numpy as np
from ridgemark import NystromRidge

def peak():  # of this process alone: what its parent held before counts in ru_maxrss
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**10

folder, landmarks, ridge = sys.argv[1], int(sys.argv[2]), sys.argv[3]
X, y = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "Xy")
before, start = peak(), time.perf_counter()
model = NystromRidge(n_landmarks=landmarks, random_state=0, ridge=ridge if ridge == "loo" else float(ridge)).fit(X, y)
seconds = time.perf_counter() - start
print(json.dumps({"before": before, "after": peak(), "seconds": seconds, "passes": model.n_passes_}))
"""


def write(folder: Path, rows: int, features: int) -> None:
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=(rows, features))
    y = np.lib.format.open_memmap(folder / "y.npy", mode="w+", dtype=np.float32, shape=(rows,))
    for start in range(0, rows, 100_000):
        part = np.random.default_rng(start).normal(size=(min(100_000, rows - start), features))
        X[start : start + 100_000] = part
        y[start : start + 100_000] = np.sin(part[:, 0]) + part[:, 1] * part[:, 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--ridge", default="loo")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.rows, options.features)
        command = [sys.executable, "-c", FIT, folder, str(options.landmarks), options.ridge]
        done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"{options.rows:,} x {options.features} float32 rows, {options.landmarks} landmarks, ridge {options.ridge}")
    print(f"peak resident memory {done['after']:.0f} MB ({done['before']:.0f} MB before the fit)")
    print(f"{done['seconds']:.1f} s, {done['passes']} passes")


if __name__ == "__main__":
    main()
