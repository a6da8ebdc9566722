"""A fit of rows that are never held: peak resident memory, time, and the share of it spent waiting for rows.

Writes random float32 rows to a temporary file, as a memory map (.npy) or Parquet, fits them in a fresh process, and
prints its peak resident memory before and after (VmHWM: what it allocated and the pages of files mapped into it), the
seconds, and how long the processor waited for rows.
Run: python benchmarks/memory.py --rows 10000000 --landmarks 500 --ridge 1e-6 --source parquet
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

FIT = """
import json, sys, time
import numpy as np
from ridgemark import NystromRidge, open_rows

def peak():  # of this process alone: what its parent held before counts in ru_maxrss
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**10

path, landmarks, ridge, selection, drop = sys.argv[1:]
rows = open_rows(np.load(path, mmap_mode="r") if path.endswith(".npy") else path, target=-1)
if drop == "cold":  # out of the system's cache, so that every pass reads the disk at first
    import os
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
before, start = peak(), time.perf_counter()
ridge = ridge if ridge in ("loo", "gcv") else float(ridge)
options = {"bandwidth": "median", "ridge": ridge, "selection": selection, "random_state": 0}
model = NystromRidge(n_landmarks=int(landmarks), **options).fit(rows)
seconds = time.perf_counter() - start
print(json.dumps({"before": before, "after": peak(), "seconds": seconds, "passes": model.n_passes_,
                  "waiting": model.waiting_share_}))
"""
PART = 100_000


def parts(rows: int, features: int) -> Iterator[tuple[int, np.ndarray]]:
    """Make the rows, the target in the last column."""
    for start in range(0, rows, PART):
        x = np.random.default_rng(start).normal(size=(min(PART, rows - start), features))
        yield start, np.column_stack([x, np.sin(x[:, 0]) + x[:, 1] * x[:, 2]]).astype(np.float32)


def write_map(path: Path, rows: int, features: int) -> None:
    table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, features + 1))
    for start, part in parts(rows, features):
        table[start : start + len(part)] = part


def write_parquet(path: Path, rows: int, features: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [*(f"x{j}" for j in range(features)), "y"]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float32()) for name in names])) as writer:
        for _, part in parts(rows, features):
            writer.write_table(pa.table(dict(zip(names, part.T, strict=True))))


SOURCES = {"memmap": ("rows.npy", write_map), "parquet": ("rows.parquet", write_parquet)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--landmarks", type=int, default=1000)
    parser.add_argument("--ridge", default="loo", help="a number, loo or gcv")
    parser.add_argument("--selection", nargs="+", default=["leverage"])
    parser.add_argument("--source", nargs="+", choices=SOURCES, default=["memmap"])
    parser.add_argument("--cold", action="store_true", help="drop the file from the system's cache before the fit")
    options = parser.parse_args()
    print(f"{options.rows:,} x {options.features} float32 rows, {options.landmarks} landmarks, ridge {options.ridge}")
    for source in options.source:
        name, write = SOURCES[source]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            write(path, options.rows, options.features)
            for selection in options.selection:
                given = [str(path), str(options.landmarks), options.ridge, selection, "cold" if options.cold else ""]
                run = subprocess.run([sys.executable, "-c", FIT, *given], check=True, stdout=subprocess.PIPE, text=True)
                done = json.loads(run.stdout)
                print(
                    f"{source}, {selection}: peak resident memory {done['after']:.0f} MiB ({done['before']:.0f} before "
                    f"the fit), {done['seconds']:.1f} s, {done['passes']} passes, "
                    f"{done['waiting']:.1%} of them waiting for rows",
                    flush=True,
                )


if __name__ == "__main__":
    main()
