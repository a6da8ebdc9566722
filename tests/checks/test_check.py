"""`ridgemark.check` names what is planted, says little else, and changes nothing."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import ridgemark
from ridgemark.cli.check import command
from ridgemark.errors import DataError, ParameterError
from tests.checks.faulty import PLANTED, houses, patients, plant, rides

TABLES = {"houses": houses, "patients": patients, "rides": rides}


@pytest.fixture(scope="module", params=TABLES)
def faulty(request):
    return plant(*TABLES[request.param]())


@pytest.fixture(scope="module")
def checked(faulty):
    return ridgemark.check(*faulty)


def columns(checked, fault):
    return {name for finding in checked.about(fault) for name in finding.columns}


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_columns_are_named_and_no_others(checked, fault):
    assert columns(checked, fault) == PLANTED[fault]


def test_money_and_per_cent_are_named_as_such(checked):
    said = {finding.columns: finding.seen for finding in checked.about("text")}
    assert "money" in said["tax",]
    assert "per cent" in said["discount",]


def test_far_values_are_counted(checked):
    (finding,) = [finding for finding in checked.about("far values") if finding.columns]
    assert finding.numbers["n_far"] == [4]


def test_repeated_rows_are_counted_whatever_identifies_them(checked):
    (finding,) = checked.about("repeated rows")
    assert finding.numbers["n_repeated"] == 40


def test_equal_features_with_another_target_are_named(checked):
    (finding,) = checked.about("contradictions")
    assert 25 <= finding.numbers["n_pairs"] <= 35


def test_groups_are_found_by_leaving_their_values_out(checked):
    assert "agent" in columns(checked, "groups")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_without_faults_has_no_line_but_that_of_its_skewed_target(name):
    faults = {finding.fault for finding in ridgemark.check(*TABLES[name]()).findings}
    assert faults == ({"skewed target"} if name in ("houses", "rides") else set())


def test_rare_labels_are_named_with_the_share_of_the_most_frequent_one():
    table, y = patients()
    (finding,) = ridgemark.check(table, np.where(y > np.quantile(y, 0.95), "high", "usual")).findings
    assert finding.fault == "rare class"
    assert finding.numbers == {"n_rows": 75, "majority": 0.95}
    assert "class_weight" in finding.remedy


def test_labels_of_fewer_than_ten_rows_are_named():
    table, y = patients()
    labels = np.where(y > np.sort(y)[-6], "high", "usual")
    (finding,) = ridgemark.check(table, labels).about("rare class")
    assert finding.numbers["labels"] == ["high"]


def test_a_column_that_gives_labels_away_is_named():
    table, y = patients()
    high = y > np.median(y)
    checked = ridgemark.check(table.assign(ward=np.where(high, "A", "B")), high)
    assert columns(checked, "leak") == {"ward"}


def test_the_parts_of_a_sum_are_named():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.poisson(20, (300, 4)), columns=["casual", "members", "wind", "warmth"])
    checked = ridgemark.check(table, table.casual + table.members)
    assert columns(checked, "leak") == {"casual", "members"}


def test_unseen_levels_drift_and_missing_columns_of_a_second_table_are_named():
    table, y = houses()
    new = houses(5)[0].query("area > 1800").drop(columns="lot")
    new["view"] = new["view"].where(np.arange(len(new)) % 4 > 0, "hills")
    new.loc[new.index[:20], "built"] = np.nan
    checked = ridgemark.check(table, y, new=new)
    assert columns(checked, "missing columns") == {"lot"}
    assert columns(checked, "missing values") == {"built"}
    assert columns(checked, "unseen levels") == {"view"}
    assert {"area", "view"} <= columns(checked, "drift") <= {"area", "view", "state"}


def test_a_table_of_the_same_kind_has_not_drifted():
    assert not ridgemark.check(*houses(), new=houses(5)[0]).about("drift")


def test_groups_that_are_given_are_answered_whether_they_matter_or_not():
    table, y = patients()
    rng = np.random.default_rng(0)
    who = rng.integers(100, size=len(y))
    (harmless,) = ridgemark.check(table, y, groups=who).about("groups")
    assert harmless.remedy == "no option is needed"
    alike = y + 15 * rng.normal(size=100)[who]
    (serious,) = ridgemark.check(table, alike, groups=who).about("groups")
    assert serious.numbers["error_new"] > 1.3 * serious.numbers["error_known"]
    named = ridgemark.check(table.assign(who=who), alike, groups="who").about("groups")
    assert named[0].columns == ("who",)


def test_nothing_is_changed(faulty):
    table, y = faulty[0].copy(), faulty[1].copy()
    ridgemark.check(table, y, new=table)
    pd.testing.assert_frame_equal(table, faulty[0])
    np.testing.assert_array_equal(y, faulty[1])


def test_every_kind_of_table_gives_the_same_findings(tmp_path):
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    table, y = plant(*houses())
    whole = table.assign(price=y)
    whole.to_csv(tmp_path / "houses.csv", index=False)
    arrow = pyarrow.Table.from_pandas(whole)
    sources = [polars.from_pandas(whole), arrow, arrow.to_reader(), tmp_path / "houses.csv"]
    expected = [(finding.fault, finding.columns) for finding in ridgemark.check(table, y).findings]
    for source in sources:
        assert [(finding.fault, finding.columns) for finding in ridgemark.check(source, "price").findings] == expected
    opened = ridgemark.open_rows(tmp_path / "houses.csv", target="price")
    assert [(finding.fault, finding.columns) for finding in ridgemark.check(opened).findings] == expected


def test_arrays_and_sparse_rows_are_read():
    sparse = pytest.importorskip("scipy.sparse")
    table, y = patients()
    X = table[["age", "weight"]].to_numpy(dtype=float)
    X = np.column_stack([X, np.full(len(X), 3.0)])
    assert columns(ridgemark.check(X, y), "constant") == {"x2"}
    assert columns(ridgemark.check(sparse.csr_array(X), y), "constant") == {"x2"}


def test_of_a_large_table_stretches_of_rows_are_read():
    rng = np.random.default_rng(0)
    checked = ridgemark.check(rng.normal(size=(210_000, 2)))
    assert 100_000 <= checked.n_looked_at <= 200_000
    assert "were looked at" in str(checked)


def test_rows_without_a_target_are_counted():
    table, y = patients()
    y[:30] = np.nan
    (finding,) = ridgemark.check(table, y).findings
    assert finding.numbers == {"n_skipped": 30}


def test_a_few_rows_give_no_findings():
    assert not ridgemark.check(pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}), [1.0, 2.0, 4.0]).findings


def test_wrong_arguments_are_refused():
    table, y = patients()
    with pytest.raises(ParameterError, match="brings its own target"):
        ridgemark.check(ridgemark.open_rows(table, target=y), y)
    with pytest.raises(DataError, match="no column 'who'"):
        ridgemark.check(table, y, groups="who")
    with pytest.raises(DataError, match="one label for each of 1,500 rows"):
        ridgemark.check(table, y, groups=[1, 2])
    with pytest.raises(DataError, match="takes one target"):
        ridgemark.check(table, np.stack([y, y], axis=1))


def test_the_command_prints_the_findings(tmp_path):
    table, y = plant(*houses())
    table.assign(price=y).to_csv(tmp_path / "houses.csv", index=False)
    answer = CliRunner().invoke(command, [str(tmp_path / "houses.csv"), "--target", "price", "--json"])
    record = json.loads(answer.stdout)
    assert answer.exit_code == 0
    assert record["n_rows"] == len(y)
    assert {"identifier", "leak", "codes"} <= {finding["fault"] for finding in record["findings"]}
    text = CliRunner().invoke(command, [str(tmp_path / "houses.csv"), "--target", "price", "--drop", "valued"]).stdout
    assert "row number" in text and "leak" not in text


def _followed(table):
    """Return the table as the lines of `check` ask for it, but the column that knows the target."""
    table = table.drop(columns=["number", "label", "row", "country", "pool"])
    numbers = table.select_dtypes(float)
    table[numbers.columns] = numbers.mask(numbers > 1e9)
    tax, discount = table["tax"].str.replace("[$,]", "", regex=True), table["discount"].str.rstrip("%")
    return table.assign(tax=tax.astype(float), discount=discount.astype(float))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ridgemark.errors.RidgemarkWarning")
@pytest.mark.parametrize("name", TABLES)
def test_a_fit_that_follows_the_lines_has_a_lower_error(name):
    table, y = plant(*TABLES[name](n=3000))
    table, train, test = table.drop(columns="valued"), slice(2000), slice(2000, None)
    errors = []
    for rows, options in ((table, {}), (_followed(table), {"categorical_features": ["zip"]})):
        model = ridgemark.NystromRidge(effort="fast", random_state=0, **options).fit(rows[train], y[train])
        errors.append(np.sqrt(np.mean((model.predict(rows[test]) - y[test]) ** 2)))
    assert errors[1] < 0.9 * errors[0]
