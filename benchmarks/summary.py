"""The tables of README.md, or with --all those of docs/accuracy.md, from the records of fits in benchmarks/measured.

A test compares them with the pages. Run: python benchmarks/summary.py [--all]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import in_use
import numpy as np
from peers import METHODS
from records import Record, by_seed, median, read

import losses
import tables

MEASURED = Path(__file__).parent / "measured"
FILES = ("accuracy", "tables", "classes", "losses", "in_use", "effort")
SHOWN = ("default", "many", "lightgbm", "catboost", "boosting")
NUMBERS = {
    "cal-housing": "California housing",
    "elevators": "elevators",
    "kin40k": "kin40k",
    "protein": "protein structure",
    "pumadyn-32nm": "pumadyn-32nm",
}
"""The sets of more than 5,000 rows of numbers to which all peers were fitted, and their names."""


def bold(values: Sequence[float | None], form: str = ".4f") -> list[str]:
    """Return cells of a table, empty where nothing was measured, the smallest value bold."""
    smallest = min(value for value in values if value is not None)
    texts = ["" if value is None else format(value, form) for value in values]
    return [f"**{text}**" if value == smallest else text for value, text in zip(values, texts, strict=True)]


def head(*cells: str) -> str:
    """Return the two lines that begin a table."""
    return f"| {' | '.join(cells)} |\n{'|---' * len(cells)}|"


def numbers(records: list[Record]) -> Iterator[str]:
    """Yield errors of split 0, to which all peers were fitted."""
    yield head("data", "rows", *(METHODS[method].heading for method in SHOWN[:-1]), "scikit-learn's boosting")
    for name, what in NUMBERS.items():
        fits = [by_seed(records, name, method)[0] for method in SHOWN]
        yield f"| {what} | {fits[0]['rows']:,} | {' | '.join(bold([fit['rmse'] for fit in fits]))} |"


def medians(records: list[Record]) -> Iterator[str]:
    """Yield errors of all sets of numbers, medians over splits, with the number of splits where it is not three."""
    methods = (*SHOWN, "realmlp")
    yield head("set", "rows", "columns", *(METHODS[method].heading for method in methods), "fit, s")
    for name in sorted({record["set"] for record in records}):
        fits = [by_seed(records, name, method) for method in methods]
        cells = bold([median(some, "rmse") if some else None for some in fits])
        cells = [
            f"{cell} ({len(some)})" if some and len(some) < 3 else cell for cell, some in zip(cells, fits, strict=True)
        ]
        first = next(iter(fits[0].values()))
        cells = [name, f"{first['rows']:,}", str(first["features"]), *cells, f"{median(fits[0], 'seconds'):.0f}"]
        yield f"| {' | '.join(cells)} |"


def beside_boosting(records: list[Record], names: Sequence[str], field: str) -> Iterator[str]:
    """Yield errors of the defaults and of boosting on tables of mixed columns, with the seconds of the defaults."""
    yield head("table", "rows", "columns", "defaults", "scikit-learn's boosting", "ratio", "fit, s")
    for name in names:
        fits = [by_seed(records, name, method).get(0) for method in ("default", "boosting")]
        if all(fits):
            ours, peer = (fit[field] for fit in fits)
            cells = [name, f"{fits[0]['rows']:,}", str(fits[0]["columns"]), *bold([ours, peer])]
            yield f"| {' | '.join(cells)} | {ours / peer:.3f} | {fits[0]['seconds']:.0f} |"


def deviances(records: list[Record]) -> Iterator[str]:
    """Yield deviances of counts and amounts and errors of robust fits, beside both kinds of boosting."""
    yield head("target", "set", "`NystromRegressor`", "scikit-learn's boosting", "LightGBM", "fit, s")
    for loss, kind in (("poisson", "counts"), ("gamma", "amounts"), ("huber", "with outliers")):
        for name in losses.SETS[loss]:
            fits = [by_seed(records, f"{loss}/{name}", method)[0] for method in ("ridgemark", "boosting", "lightgbm")]
            cells = bold([fit["error"] for fit in fits], ".4g")
            yield f"| {kind} | {name} | {' | '.join(cells)} | {fits[0]['seconds']:.0f} |"


def ratios(records: list[Record], ours: str, peer: str, field: str) -> dict[str, float]:
    """Return, of every set that both were fitted to, the ratio of errors, the median over common splits."""
    found = {}
    for name in sorted({record["set"] for record in records}):
        one, two = by_seed(records, name, ours), by_seed(records, name, peer)
        if common := one.keys() & two.keys():
            found[name] = float(np.median([one[seed][field] / two[seed][field] for seed in common]))
    return found


def questions() -> Iterator[str]:
    """Yield on how many tables of each kind the error of the defaults is the smaller one."""
    fits = {name: read(MEASURED / f"{name}.jsonl") for name in FILES}
    mixed = {kind: [one for one in fits["tables"] if one["set"] in tables.GROUPS[kind]] for kind in ("tried", "unseen")}
    by_loss = {loss: [one for one in fits["losses"] if one["set"].startswith(loss)] for loss in losses.SETS}
    rows = (
        ("numbers (RMSE)", fits["accuracy"], "default", "rmse"),
        ("mixed, first group (RMSE)", mixed["tried"], "default", "rmse"),
        ("mixed, second group (RMSE)", mixed["unseen"], "default", "rmse"),
        ("labels (log loss)", fits["classes"], "default", "log_loss"),
        ("counts (deviance)", by_loss["poisson"], "ridgemark", "error"),
        ("amounts (deviance)", by_loss["gamma"], "ridgemark", "error"),
        ("outliers in training targets (RMSE)", by_loss["huber"], "ridgemark", "error"),
    )
    yield head("tables", "ahead of scikit-learn's boosting", "median ratio", "largest ratio", "ahead of LightGBM")
    for kind, records, ours, field in rows:
        found, light = (ratios(records, ours, peer, field) for peer in ("boosting", "lightgbm"))
        ahead, worst = sum(ratio < 1 for ratio in found.values()), max(found, key=lambda name: found[name])
        cells = [f"{ahead} of {len(found)}", f"{np.median([*found.values()]):.3f}"]
        cells += [f"{found[worst]:.2f} ({worst.rsplit('/')[-1]})"]
        cells += [f"{sum(ratio < 1 for ratio in light.values())} of {len(light)}" if light else "not fitted"]
        yield f"| {kind} | {' | '.join(cells)} |"


def efforts(records: list[Record]) -> Iterator[str]:
    """Yield errors with every effort, and the processor time over that of the default."""
    yield head("data", "fast", "default", "high", "landmarks", "time, fast", "time, high")
    for name in dict.fromkeys(record["set"] for record in records):
        fits = [by_seed(records, name, effort).get(0) for effort in ("fast", "default", "high")]
        errors = ["" if fit is None else f"{fit['error']:.4f}" for fit in fits]
        counts = " / ".join("-" if fit is None else f"{fit['landmarks']:,}" for fit in fits)
        times = ["" if fit is None else f"{fit['cpu'] / fits[1]['cpu']:.2f}" for fit in fits[::2]]
        yield f"| {name} | {' | '.join(errors)} | {counts} | {' | '.join(times)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="the tables of docs/accuracy.md")
    options = parser.parse_args()
    fits = {name: read(MEASURED / f"{name}.jsonl") for name in FILES}
    if not options.all:
        print(*numbers(fits["accuracy"]), "", *questions(), "", in_use.show(fits["in_use"]), sep="\n")
        return
    print(*questions(), "", *medians(fits["accuracy"]), "", sep="\n")
    for kind in ("tried", "unseen"):
        print(*beside_boosting(fits["tables"], list(tables.GROUPS[kind]), "rmse"), "", sep="\n")
    print(
        *beside_boosting(fits["classes"], list(tables.CLASSES), "log_loss"),
        "",
        *deviances(fits["losses"]),
        "",
        sep="\n",
    )
    print(*efforts(fits["effort"]), sep="\n")


if __name__ == "__main__":
    main()
