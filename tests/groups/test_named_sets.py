"""Coverage within named sets of rows, and under a shift with known density ratios."""

import numpy as np
import pytest

from ridgemark import NystromRidge, load
from ridgemark.errors import CoverageWarning, DataError, ParameterError
from tests.groups.problems import patients
from tests.helpers import slowly

pd = pytest.importorskip("pandas")
FIXED = {"kernel": "gaussian", "bandwidth": 0.5, "n_landmarks": 30, "random_state": 0}


def regions(n_rows, seed):
    """Return rows, targets whose noise depends on the region, and the region of each row, which is not a column."""
    rng = np.random.default_rng(seed)
    region, x = rng.integers(0, 5, n_rows), rng.uniform(size=(n_rows, 1))
    return x, np.sin(6 * x[:, 0]) + (0.1 + 0.25 * region) * rng.normal(size=n_rows), region


def inside(ends, y):
    return (ends[:, 0] <= y) & (y <= ends[:, 1])


@pytest.mark.parametrize("seeds", [6, *slowly(24)])
def test_each_named_set_is_covered_where_plain_intervals_are_off_by_ten_points(seeds):
    shares = {True: [], False: [], None: []}
    for seed in range(seeds):
        X, y, region = regions(1200, seed)
        Z, z, other = regions(2000, 1000 + seed)
        model = NystromRidge(**FIXED).fit(X, y)
        plain = inside(model.predict_interval(Z, adaptive=False), z)
        model.calibrate(X, y, by=region)
        for adaptive in (True, False):
            held = inside(model.predict_interval(Z, adaptive=adaptive, by=other), z)
            shares[adaptive].append([held[other == k].mean() for k in range(5)])
        shares[None].append([plain[other == k].mean() for k in range(5)])
    assert abs(np.mean(shares[True], axis=0) - 0.9).max() < 0.02
    assert abs(np.mean(shares[False], axis=0) - 0.9).max() < 0.02
    assert abs(np.mean(shares[None], axis=0) - 0.9).max() > 0.1


@pytest.mark.parametrize("seeds", [10, *slowly(40)])
def test_known_density_ratios_restore_coverage_under_a_shift(seeds):
    def ratio(x):  # of Beta(2, 1) to Beta(1, 2)
        return x[:, 0] / (1.0 - x[:, 0])

    shares = {"weighted": [], "one width": [], "plain": []}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, Z = rng.beta(1, 2, size=(600, 1)), rng.beta(2, 1, size=(400, 1))
        y, z = (np.sin(6 * R[:, 0]) + (0.1 + 0.8 * R[:, 0] ** 2) * rng.normal(size=len(R)) for R in (X, Z))
        model = NystromRidge(**FIXED).fit(X, y)
        shares["plain"].append(inside(model.predict_interval(Z, adaptive=False), z).mean())
        model.calibrate(X, y, density_ratio=ratio(X))
        shares["weighted"].append(inside(model.predict_interval(Z, density_ratio=ratio(Z)), z).mean())
        ends = model.predict_interval(Z, adaptive=False, density_ratio=ratio(Z))
        shares["one width"].append(inside(ends, z).mean())
    assert 0.87 < np.mean(shares["weighted"]) < 0.93
    assert 0.87 < np.mean(shares["one width"]) < 0.93
    assert np.mean(shares["plain"]) < 0.85


def test_equal_ratios_change_nothing_but_a_large_one_gives_infinite_ends():
    X, y, _ = regions(300, 0)
    model = NystromRidge(**FIXED).fit(X, y)
    plain = [model.predict_interval(X, adaptive=adaptive) for adaptive in (True, False)]
    model.calibrate(X, y, density_ratio=np.full(300, 2.0))
    for adaptive, ends in zip((True, False), plain, strict=True):
        assert model.predict_interval(X, adaptive=adaptive, density_ratio=np.full(300, 2.0)) == pytest.approx(ends)
        wide = model.predict_interval(X[:2], adaptive=adaptive, density_ratio=[1e6, 2.0])
        assert np.isinf(wide[0]).all()
        assert np.isfinite(wide[1]).all()


def test_one_set_of_all_rows_is_no_set():
    X, y, _ = regions(300, 0)
    model = NystromRidge(**FIXED).fit(X, y)
    plain = model.predict_interval(X)
    assert model.calibrate(X, y, by=["all"] * 300).predict_interval(X, by=["all"] * 300) == pytest.approx(plain)


def test_a_small_or_unknown_set_gets_the_interval_of_all_rows_with_a_warning():
    X, y, region = regions(300, 0)
    region[:5] = 77
    model = NystromRidge(**FIXED).fit(X, y).calibrate(X, y, by=region)
    pooled = model.predict_interval(X[:3])
    with pytest.warns(CoverageWarning, match="3 of 3 rows are in 2 sets with fewer than 9 distinct"):
        assert model.predict_interval(X[:3], by=[77, 77, 1234]) == pytest.approx(pooled)


def test_a_set_is_named_by_a_column_that_may_be_no_feature(tmp_path):
    X, y, region = regions(400, 0)
    table = pd.DataFrame(X, columns=["x"]).assign(region=[f"r{k}" for k in region])
    model = NystromRidge(**FIXED).fit(table[["x"]], y).calibrate(table, y, by="region")
    expected = model.predict_interval(table[["x"]], by=table["region"])
    assert model.predict_interval(table, by="region") == pytest.approx(expected)
    loaded = load(model.save(tmp_path / "m"))
    assert loaded.predict_interval(table, by="region") == pytest.approx(expected, rel=1e-3)


def test_sets_and_groups_together_count_groups():
    X, y, groups = patients(80, 4)
    site = groups % 2
    model = NystromRidge(**FIXED | {"bandwidth": 2.0}).fit(X, y, groups=groups).calibrate(X, y, groups=groups, by=site)
    assert model.calibration_.of_set(0).n_distinct == 40
    assert np.isfinite(model.predict_interval(X, by=site)).all()


def test_wrong_labels_and_ratios_are_named():
    X, y, region = regions(300, 0)
    model = NystromRidge(**FIXED).fit(X, y)
    with pytest.raises(ParameterError, match="by needs calibration rows with labels"):
        model.predict_interval(X, by=region)
    with pytest.raises(ParameterError, match="density_ratio must be given for the calibration rows"):
        model.predict_interval(X, density_ratio=np.ones(300))
    with pytest.raises(DataError, match="by must have one label for each of the 300 rows"):
        model.calibrate(X, y, by=region[:5])
    with pytest.raises(DataError, match="density_ratio of row 4 is -1"):
        model.calibrate(X, y, density_ratio=np.where(np.arange(300) == 4, -1.0, 1.0))
    with pytest.raises(ParameterError, match="must be a column of X"):
        model.calibrate(X, y, by="region")
    model.calibrate(X, y, density_ratio=np.ones(300))
    with pytest.raises(ParameterError, match="give it to predict_interval too"):
        model.predict_interval(X)
