"""What a model costs in use: the fit, predictions, the file, and how far it is proved to be from exact.

The rows are those of split 0 of benchmarks/accuracy.py. There is one thread, and times are those of the processor, so
that other programs on the machine hardly change them. Predictions are those of the test rows, the shortest time of
five. The file is that of `save`, of LightGBM the text of its trees, of scikit-learn a pickle. Every model is one line
of JSON in the output; models that are there already are not fitted again, and --show prints the table.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/in_use.py --data FOLDER (or set RIDGEMARK_DATA) --output FILE; then
--output FILE --show.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import missing_packages, regression_sets, split
from peers import METHODS
from records import Record, append, machine, read, told
from threadpoolctl import threadpool_limits

from ridgemark import NystromRidge
from ridgemark.errors import RidgemarkWarning

SETS, SHOWN = ("cal-housing", "kin40k", "protein"), ("default", "boosting", "lightgbm")


def size(model: Any) -> int:
    """Return the bytes of the model in a file."""
    if isinstance(model, NystromRidge):
        with tempfile.TemporaryDirectory() as folder:
            return model.save(Path(folder) / "model.ridgemark").stat().st_size
    return len(model.booster_.model_to_string()) if hasattr(model, "booster_") else len(pickle.dumps(model))


def measure(method: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Record:
    """Fit, predict, save and certify; return what it took."""
    model, times = METHODS[method].make(0, X, y), []
    if method == "lightgbm":
        model.set_params(n_jobs=1)
    begin = time.process_time()
    model.fit(X, y)
    record: Record = {"cpu_seconds": time.process_time() - begin}
    for _ in range(5):
        begin = time.process_time()
        predicted = model.predict(X_test)
        times.append(time.process_time() - begin)
    error = float(np.sqrt(np.mean((y_test - predicted) ** 2)) / y.std())
    record |= {"rmse": error, "predict_ms": 1e6 * min(times) / len(X_test), "megabytes": size(model) / 1e6}
    if isinstance(model, NystromRidge):
        begin = time.process_time()
        record["proved"] = float(model.certify(X, y).bound / y.std())
        record["certify_cpu_seconds"] = time.process_time() - begin
    return record | told(model, y)


def show(records: list[Record]) -> str:
    """Return the table: of every set and method the times and the size of the file, and what is proved."""
    head = ["data", *(METHODS[method].heading for method in SHOWN), "proved distance to exact"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in SETS:
        found = {one["method"]: one for one in records if one["set"] == name}
        cells = [
            f"{one['cpu_seconds']:.1f} s, {one['predict_ms']:.0f} ms, {one['megabytes']:.1f} MB"
            if (one := found.get(method))
            else ""
            for method in SHOWN
        ]
        proved = f"{found['default']['proved']:.2g} sd" if "default" in found else ""
        lines.append(f"| {name} | {' | '.join(cells)} | {proved} |")
    return "\n".join([*lines, "", *(f"Measured on: {one}" for one in sorted({one["machine"] for one in records}))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--methods", nargs="+", choices=SHOWN, default=SHOWN)
    parser.add_argument("--output", type=Path, help="add a line of JSON for every model to this file")
    parser.add_argument("--show", action="store_true", help="print the table of the output, without a fit")
    options = parser.parse_args()
    records = read(options.output)
    done = {(one["set"], one["method"]) for one in records}
    if absent := missing_packages(options.methods):
        print(f"left out, since not installed: {', '.join(absent)}", file=sys.stderr)
    sets = {} if options.show else regression_sets(Path(options.data) if options.data else None)
    warnings.simplefilter("ignore", RidgemarkWarning)
    for name in options.sets if sets else ():
        parts = split(*sets[name](), 0, None)
        for method in options.methods:
            if (name, method) in done or METHODS[method].package in absent:
                continue
            with threadpool_limits(1):
                about = {"set": name, "seed": 0, "method": method, "rows": len(parts[0])}
                records.append({**about, **measure(method, *parts), "machine": machine()})
            append(options.output, records[-1])
            print(records[-1], file=sys.stderr)
    print(show(records))


if __name__ == "__main__":
    main()
