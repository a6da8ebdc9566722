"""A prediction of one row looks at every column of a table once, so that a table takes little longer than an array."""

import numpy as np
import pandas as pd
import pytest

from ridgemark import NystromRidge
from ridgemark.errors import ColumnWarning
from ridgemark.estimators import base
from ridgemark.rows.tables import PandasColumns

RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(60, 8)), columns=list("abcdefgh"))
COUNTS = NUMBERS.assign(a=RNG.integers(0, 9, 60), b=np.float32(0.5))
TEXT = NUMBERS.assign(town=RNG.choice(["Rome", "Oslo"], 60), since=pd.date_range("2020-01-01", periods=60))


def _fitted(table):
    return NystromRidge(bandwidth=3.0, ridge=1e-3, random_state=0).fit(table, NUMBERS["a"])


@pytest.fixture
def work(monkeypatch):
    """Count columns converted, looks at the types of all columns, and checks of the names."""
    done = {"columns": 0, "types": 0, "names": 0}

    def counted(name, function):
        def run(*args, **options):
            done[name] += 1
            return function(*args, **options)

        return run

    monkeypatch.setattr(PandasColumns, "column", counted("columns", PandasColumns.column))
    monkeypatch.setattr(pd.DataFrame, "dtypes", property(counted("types", pd.DataFrame.dtypes.fget)))
    monkeypatch.setattr(base, "validate_data", counted("names", base.validate_data))
    return done


@pytest.mark.parametrize(
    ("table", "most"), [(NUMBERS, 0), (COUNTS, 1), (TEXT, TEXT.shape[1])], ids=["numbers", "counts", "text"]
)
def test_a_row_of_a_table_is_converted_once(table, most, work):
    model = _fitted(table)
    expected = model.predict(table)
    work.update(dict.fromkeys(work, 0))
    assert model.predict(table[7:8]) == pytest.approx(expected[7:8], rel=1e-12)
    assert work["columns"] <= most
    assert work["types"] <= 6  # a few, not several for each column
    assert work["names"] == 0


def test_a_table_of_numbers_is_predicted_as_its_array_is():
    for table in (NUMBERS, COUNTS, NUMBERS.astype(np.float32), NUMBERS.astype(np.float16)):
        model = _fitted(table)
        values = table.to_numpy(dtype=np.float32 if table is not COUNTS and table["a"].dtype == np.float32 else float)
        plain = NystromRidge(bandwidth=3.0, ridge=1e-3, random_state=0).fit(values, NUMBERS["a"])
        found = model.predict(table)
        assert found.dtype == plain.predict(values).dtype
        assert found == pytest.approx(plain.predict(values), rel=1e-6)


def test_columns_of_other_names_or_in_another_order_are_still_refused():
    model = _fitted(NUMBERS)
    for wrong in (NUMBERS[list("hgfedcba")], NUMBERS.rename(columns={"a": "z"}), NUMBERS[list("abc")]):
        with pytest.raises(ValueError, match="feature names"):
            model.predict(wrong)
    large = NUMBERS.assign(a=2**60 + np.arange(60))
    with pytest.raises(ValueError, match="2\\*\\*53"):
        model.predict(large)
    with pytest.warns(ColumnWarning, match="missing, where the fit had none"):
        assert np.isfinite(model.predict(NUMBERS.mask(NUMBERS > 2.0))).all()


@pytest.mark.parametrize("table", [NUMBERS, COUNTS, TEXT], ids=["numbers", "counts", "text"])
def test_few_rows_are_predicted_as_they_are_among_many(table):
    model = _fitted(table)
    many = pd.concat([table] * 6)  # more rows than are read at once
    assert model.predict(table) == pytest.approx(model.predict(many)[: len(table)], rel=1e-12)
    if table is TEXT:
        with pytest.warns(ColumnWarning, match="not seen in the fit"):
            model.predict(table.assign(town="Bern")[:3])


def test_a_long_table_of_numbers_is_read_as_one_row_is(work):
    model, long = _fitted(NUMBERS), pd.concat([NUMBERS] * 6)
    work.update(dict.fromkeys(work, 0))
    model.predict(long)
    assert (work["columns"], work["names"]) == (0, 0)
