"""Run all experiments, and convert their records to plain data."""

import math
import platform
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy
import sklearn

from ridgemark.backends.threads import one_blas_thread
from ridgemark.paper import comparison as introduction
from ridgemark.paper import cross_validation, sketch_ridge, theorem_3, theorem_4
from ridgemark.paper import figure_1 as figure
from ridgemark.paper.comparison import Comparison
from ridgemark.paper.cross_validation import ChosenRidge
from ridgemark.paper.data import Sets
from ridgemark.paper.designs import Designs
from ridgemark.paper.figure_1 import Figure1
from ridgemark.paper.printed import PART_OF_32FM, TABLE_1, PrintedRow
from ridgemark.paper.sketch_ridge import SketchRidgeCurve
from ridgemark.paper.table_1 import Row, measure_row
from ridgemark.paper.theorem_3 import Counts, Needed
from ridgemark.paper.theorem_4 import Theorem4

Progress = Callable[[str], None]
"""Called with the name of each step when it begins."""


@dataclass(frozen=True)
class Settings:
    """Settings of a run, besides the data.

    `repeats` is for Table 1 and the comparison; cheap experiments take four times as many, and those that search for
    the number of columns a third. `quick` shrinks grids and designs: a preview, not a reproduction.
    """

    seed: int = 0
    repeats: int = 10
    quick: bool = False


@dataclass(frozen=True)
class Reproduction:
    """The records of one run."""

    settings: Settings
    versions: dict[str, str]
    sets: tuple[str, ...]
    table_1: tuple[Row, ...]
    choices: tuple[ChosenRidge, ...]
    figure_1: Figure1
    comparison: Comparison
    theorem_3: tuple[Counts, ...]
    open_question: tuple[Needed, ...]
    theorem_4: tuple[Theorem4, ...]
    sketch_ridge: tuple[SketchRidgeCurve, ...]


@one_blas_thread()  # many small matrices: BLAS threads would mostly wait for each other
def reproduce(sets: Sets, settings: Settings, version: str, progress: Progress = lambda _: None) -> Reproduction:
    """Run every experiment; `version` is the version of the package, for the record."""
    seed, quick, repeats = settings.seed, settings.quick, settings.repeats
    more, fewer = 4 * repeats, max(1, repeats // 3)  # repeats of cheap experiments, and of searches
    designs = Designs(sets, seed)
    rows = (*TABLE_1, PART_OF_32FM) if PART_OF_32FM.file in sets else TABLE_1

    def thin(grid: tuple[Any, ...]) -> tuple[Any, ...]:
        return grid[1::3] if quick else grid

    def step(what: str, run: Callable[[], Any]) -> Any:
        progress(what)
        return run()

    def each(what: str, printed_rows: tuple[PrintedRow, ...], run: Callable[[PrintedRow], Any]) -> tuple[Any, ...]:
        records = [step(f"{what}, {row.name}", partial(run, row)) for row in printed_rows]
        return tuple(record for record in records if record is not None)

    def tune(row: PrintedRow) -> ChosenRidge | None:
        return cross_validation.cross_validate(designs, row, thin(cross_validation.BANDWIDTHS))

    n_compared, n_asked = (300, 100) if quick else (introduction.N_ROWS, theorem_3.N_ASKED)
    return Reproduction(
        settings,
        _versions(version),
        tuple(sorted(sets)),
        each("Table 1", rows, lambda row: measure_row(designs, row, repeats)),
        each("Cross validation", _tunable(rows, sets), tune),
        step("Figure 1", lambda: figure.figure_1(seed, more, thin(figure.COLUMNS))),
        step("Comparison", lambda: introduction.comparison(seed, repeats, n_compared)),
        each("Theorem 3", TABLE_1, lambda row: theorem_3.theorem_3_counts(designs, row, fewer)),
        step("The open question", lambda: theorem_3.open_question(designs, fewer, thin(theorem_3.RIDGES), n_asked)),
        step("Theorem 4", lambda: theorem_4.theorem_4(seed, repeats, thin(theorem_4.DRAWS))),
        step("L_gamma", lambda: sketch_ridge.sketch_ridge(seed, more, thin(sketch_ridge.COLUMNS))),
    )


def plain(record: Any) -> Any:
    """Return a record as dicts, lists, strings and numbers; NaN and infinities become None."""
    if is_dataclass(record) and not isinstance(record, type):
        return {f.name: plain(getattr(record, f.name)) for f in fields(record)}
    if isinstance(record, dict):
        return {str(key): plain(value) for key, value in record.items()}
    if isinstance(record, tuple | list | np.ndarray):
        return [plain(value) for value in record]
    if isinstance(record, np.generic):
        return plain(record.item())
    return None if isinstance(record, float) and not math.isfinite(record) else record


def _tunable(rows: tuple[PrintedRow, ...], sets: Sets) -> tuple[PrintedRow, ...]:
    """Return the rows with their own targets, and the complete Pumadyn set if available, which is not in the paper."""
    own = tuple(row for row in rows if row.file is None or row.file in sets)
    if "pumadyn-32nm" not in sets:
        return own
    others = (row for row in TABLE_1 if row.dataset == "Pum-32nh")
    return own + tuple(replace(row, dataset="Pum-32nm", file="pumadyn-32nm", in_paper=False) for row in others)


def _versions(version: str) -> dict[str, str]:
    return {
        "ridgemark": version,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
