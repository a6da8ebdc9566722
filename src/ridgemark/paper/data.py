"""The paper's data sets: their names here, their origin, and their preparation."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ridgemark.backends import Floats
from ridgemark.errors import DataError
from ridgemark.rows import open_rows


@dataclass(frozen=True, eq=False)
class DataSet:
    """Raw columns and one target of every row."""

    X: Floats  # (n, d)
    y: Floats  # (n,)


Sets = Mapping[str, DataSet]
"""Data sets by name; experiments report and skip missing ones."""

_GAS = (
    "UCI, Gas Sensor Array Drift at Different Concentrations: batch{}.dat, the 128 raw columns as X, the gas "
    "concentration as y"
)
_PUMADYN = "Delve, pumadyn family, {}: the 32 raw columns as X, thetadd6 as y"

ORIGINS: Mapping[str, str] = {
    "gas-batch2": _GAS.format(2),
    "gas-batch3": _GAS.format(3),
    "pumadyn-32nm": _PUMADYN.format("pumadyn-32nm (often distributed as puma32H)"),
    "pumadyn-32fm": _PUMADYN.format("pumadyn-32fm"),
    "pumadyn-32fh": _PUMADYN.format("pumadyn-32fh"),
    "pumadyn-32nh": _PUMADYN.format("pumadyn-32nh"),
    "pumadyn-32fm-fann1024": "pumadyn-32fm, the 1,024 rows shipped as a benchmark with the library FANN",
}
"""Where each file comes from."""


def how_to_get(name: str) -> str:
    """Return which file is missing and how to make it."""
    return (
        f"{name}.npz is not in the data folder. Source: {ORIGINS[name]}. Save it with "
        f'numpy.savez_compressed("{name}.npz", X=X, y=y) and give the folder with --data.'
    )


def read_sets(folder: Path | None) -> Sets:
    """Read the existing sets; a file that exists and cannot be used is an error."""
    if folder is None:
        return {}
    paths = {name: folder / f"{name}.npz" for name in ORIGINS}
    return {name: _read_set(path) for name, path in paths.items() if path.exists()}


def _read_set(path: Path) -> DataSet:
    source = open_rows(path)
    if source.n_targets != 1:
        raise DataError(f"{path}: one target is needed, in the array y; got {source.n_targets}")
    block = source.take(np.arange(source.n_rows))
    assert block.targets is not None
    X, y = np.asarray(block.features, dtype=np.float64), np.asarray(block.targets[:, 0], dtype=np.float64)
    if np.ptp(y) == 0 or not np.ptp(X, axis=0).any():
        raise DataError(f"{path}: all rows have the same {'y' if np.ptp(y) == 0 else 'X'}, so there is nothing to fit")
    return DataSet(X, y)


def standardised(X: Floats) -> Floats:
    """Return columns of mean 0 and standard deviation 1 (ddof 0); columns constant up to rounding are dropped."""
    X = X[:, X.std(axis=0) > 1e-10 * np.abs(X).max(axis=0)]
    return (X - X.mean(axis=0)) / X.std(axis=0)
