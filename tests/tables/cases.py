"""One messy table with every kind of column, in every form."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from ridgemark import NystromRidge, open_rows
from ridgemark.errors import ColumnWarning
from ridgemark.tables import learn_schema

pd = pytest.importorskip("pandas")

N_ROWS = 300
QUICK = {"bandwidth": "median", "kernel": "gaussian", "ridge": 1e-3, "n_landmarks": 60, "random_state": 0}


def messy(n_rows=N_ROWS, seed=0):
    """Return a pandas frame of text, categories, booleans, dates, gaps and an id, and a target."""
    rng = np.random.default_rng(seed)

    def gaps(share):
        return rng.random(n_rows) < share

    moments = pd.Timestamp("2019-11-03") + pd.to_timedelta(rng.integers(0, 900 * 86400, n_rows), unit="s")
    table = pd.DataFrame(
        {
            "id": np.arange(n_rows) + 7,
            "höhe": np.where(gaps(0.1), np.nan, rng.normal(size=n_rows)),
            "rooms": pd.Series(rng.integers(1, 9, n_rows), dtype="Int64").mask(gaps(0.05)),
            "city, name": pd.Series(rng.choice(["Oslo", "Rome", "São, Paulo"], n_rows)).mask(gaps(0.1)),
            "grade": pd.Categorical(rng.choice(["b", "a", "c"], n_rows)),
            "tail": [f"N{int(value)}" for value in rng.exponential(70, n_rows)],
            "open": pd.Series(rng.random(n_rows) < 0.4, dtype="boolean").mask(gaps(0.05)),
            "when": pd.Series(moments.astype("datetime64[us]")).mask(gaps(0.1)),
            "lasted": pd.to_timedelta(rng.integers(60, 9000, n_rows), unit="s").astype("timedelta64[us]"),
            "unit": "metre",
        }
    )
    height = table["höhe"].fillna(0.0).to_numpy()
    y = np.sin(2 * height) + (table["city, name"] == "Rome") + 0.1 * table["rooms"].fillna(4).to_numpy(float)
    return table, np.asarray(y, float) + 0.05 * rng.normal(size=n_rows)


def forms(table, y, folder: Path):
    """Return the table with its target in every form, as arguments of `fit`, and without it, for `predict`."""
    pl, pq = pytest.importorskip("polars"), pytest.importorskip("pyarrow.parquet")
    whole = table.assign(y=y)
    names, parts = list(table.columns), folder / "parts"
    whole.to_parquet(folder / "t.parquet", row_group_size=70)
    parts.mkdir(exist_ok=True)
    for number, rows in enumerate((slice(0, 100), slice(100, None))):
        whole.iloc[rows].to_parquet(parts / f"{number}.parquet")
    as_text = whole.assign(lasted=whole["lasted"] / pd.Timedelta(days=1))  # CSV has no time spans
    (folder / "t.csv").write_bytes(b"\xef\xbb\xbf" + as_text.to_csv(index=False, lineterminator="\r\n").encode())
    polars = pl.read_parquet(folder / "t.parquet")
    arrow = pq.read_table(folder / "t.parquet")
    return {
        "pandas": ((table, y), table),
        "pandas rows": ((open_rows(whole, target="y"),), open_rows(table)),
        "polars": ((polars.drop("y"), polars["y"]), polars.drop("y")),
        "arrow": ((arrow.drop(["y"]), y), arrow.drop(["y"])),
        "parquet": ((open_rows(folder / "t.parquet", target="y"),), open_rows(folder / "t.parquet", columns=names)),
        "csv": ((open_rows(folder / "t.csv", target="y"),), open_rows(folder / "t.csv", columns=names)),
        "folder": ((open_rows(parts, target="y"),), open_rows(parts, columns=names)),
    }


def quietly(call, *arguments, **options):
    """Call without warnings about columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)
        return call(*arguments, **options)


def fitted(*rows, **options):
    return quietly(NystromRidge(**QUICK | options).fit, *rows)


def schema(columns, **options):
    """Return the schema of a dict of columns, or of a frame."""
    return quietly(learn_schema, open_rows(columns), **options)


def encoded(columns, later=None, **options):
    """Return the features of rows, by name, with the schema of the first table."""
    from ridgemark.tables import SchemaEncoder

    found = schema(columns, **options)
    source = open_rows(columns if later is None else later).encoded_by(SchemaEncoder(found))
    features = source.take(np.arange(source.n_rows)).features
    return dict(zip(found.encoded_names, features.T.tolist(), strict=True))
