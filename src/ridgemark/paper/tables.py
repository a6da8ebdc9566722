"""The records of a run as one JSON file, and as flat tables, one CSV file each."""

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ridgemark.paper.claims import Claim, claims
from ridgemark.paper.printed import PrintedRow
from ridgemark.paper.reproduction import Reproduction, plain
from ridgemark.paper.table_1 import Ratio, Row
from ridgemark.report.tables import write_csv

RECORDS = "records.json"
Table = tuple[list[str], list[list[Any]]]


def write_records(run: Reproduction, folder: Path) -> None:
    """Write all records of a run, and its tables."""
    records = plain(run) | {"claims": plain(claims(run))}
    (folder / RECORDS).write_text(json.dumps(records, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    for name, (header, rows) in tables(run).items():
        write_csv(folder / f"{name}.csv", header, rows)


def is_reproduction(folder: Path) -> bool:
    """Return whether a folder holds the records of an earlier run of this command."""
    try:
        return {"claims", "settings"} <= json.loads((folder / RECORDS).read_bytes()).keys()
    except (OSError, ValueError, AttributeError):
        return False


def tables(run: Reproduction) -> dict[str, Table]:
    """Return header and rows of every table by its name."""
    figure = run.figure_1
    return {
        "claims": flat(claims(run), Claim),
        "table_1": _table_1(run.table_1),
        "table_1_ratios": _ratios(run.table_1),
        "cross_validation": flat(run.choices),
        "figure_1_scores": (
            ["x", "score"],
            [[float(x), float(score)] for x, score in zip(figure.scores.points, figure.scores.scores, strict=True)],
        ),
        "figure_1_risk": (
            ["method", "columns", "mean_risk", "low", "high", "exact_risk"],
            [
                [curve.method, p, mean, low, high, figure.exact_risk]
                for curve in figure.curves
                for p, mean, low, high in zip(curve.columns, curve.mean, curve.low, curve.high, strict=True)
            ],
        ),
        "comparison": flat(run.comparison.points),
        "theorem_3": flat(run.theorem_3),
        "open_question": flat(run.open_question),
        "theorem_4": (
            ["design", "n_draws", "mean_error", "largest_error", "above_exact", "bound"],
            [[t.design, e.n_draws, e.mean, e.largest, e.above_exact, e.bound] for t in run.theorem_4 for e in t.errors],
        ),
        "sketch_ridge": (
            ["tolerance", "columns", "mean_risk_ratio"],
            [[c.tolerance, p, m] for c in run.sketch_ridge for p, m in zip(c.columns, c.mean, strict=True)],
        ),
    }


def flat(records: Sequence[Any], kind: Any = None) -> Table:
    """Return records with plain fields as a table; `kind` gives the header if there are no records."""
    names = [f.name for f in fields(kind or records[0])] if kind or records else []
    return names, [[getattr(record, name) for name in names] for record in records]


_SAID = [f.name for f in fields(PrintedRow) if f.name not in ("file", "stand_in")]
_GOT = [f.name for f in fields(Row) if f.name not in ("printed", "ratios")]


def _table_1(rows: Sequence[Row]) -> Table:
    header = [f"printed_{name}" for name in _SAID] + _GOT
    return header, [[getattr(r.printed, name) for name in _SAID] + [getattr(r, name) for name in _GOT] for r in rows]


def _ratios(rows: Sequence[Row]) -> Table:
    names = [f.name for f in fields(Ratio)]
    return (
        ["kernel", "dataset", "source", "n_draws", "printed", *names, "difference"],
        [
            [r.printed.kernel, r.printed.dataset, r.source, r.n_draws, r.printed.risk_ratio]
            + [getattr(ratio, name) for name in names]
            + [ratio.mean - r.printed.risk_ratio]
            for r in rows
            for ratio in r.ratios
        ],
    )
