"""Records of fits, one line of JSON each, and what every record says of the fit and of the computer."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from threadpoolctl import threadpool_info

import ridgemark

Record = dict[str, Any]


def read(path: Path | None) -> list[Record]:
    """Return the records of a file, none where there is no file; of equal set, seed and method the last one."""
    records = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            records[record["set"], record["seed"], record["method"]] = record
        except (ValueError, TypeError, KeyError):
            message = (
                f"line {number} of {path} is not a record of a fit; give a new file, or one that this script wrote"
            )
            raise SystemExit(message) from None
    return list(records.values())


def append(path: Path | None, record: Record) -> None:
    """Add a record to a file, if there is one."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def by_seed(records: Sequence[Record], name: str, method: str) -> dict[int, Record]:
    """Return the records of a set and a method."""
    return {record["seed"]: record for record in records if (record["set"], record["method"]) == (name, method)}


def median(records: dict[int, Record], field: str) -> float:
    """Return the median of a number over the seeds."""
    return float(np.median([record[field] for record in records.values()]))


def told(model: Any, y: np.ndarray) -> Record:
    """Return what a fit of ridgemark says of itself."""
    record: Record = {}
    if hasattr(model, "n_landmarks_"):
        record["landmarks"] = int(model.n_landmarks_)
    if hasattr(model, "tuning_"):
        tuning = model.tuning_
        record |= {"level": tuning.level, "kernel": tuning.kernel, "tuning_seconds": tuning.seconds}
    if hasattr(model, "history_"):
        record |= {"bound": float(model.history_[-1].returned[0] / y.std()), "products": int(model.n_iter_)}
    return record


def machine(device: str = "cpu") -> str:
    """Return the processor, the threads and the versions, and where ridgemark computes unless on the CPU."""
    threads = max(library["num_threads"] for library in threadpool_info())
    computer = (
        f"{platform.machine()}, {threads} threads, numpy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"ridgemark {ridgemark.__version__}"
    )
    return computer if device == "cpu" else f"{computer}, ridgemark on {device}"
