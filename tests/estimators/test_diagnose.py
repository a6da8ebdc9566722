"""Which rows drive a fit."""

import numpy as np
import pandas as pd
import pytest

from ridgemark import NystromRidge
from ridgemark.errors import DataError
from tests.helpers import real_data, slowly, standardised


def _planted(X, y, rng, far=6.0):
    """Twenty rows moved in x, twenty in y; returns which."""
    X, y = X.copy(), y.copy()
    moved = rng.permutation(len(X))[:40]
    X[moved[:20]] += far * rng.choice([-1.0, 1.0], size=(20, X.shape[1]))
    y[moved[20:]] += 6 * y.std() * rng.choice([-1.0, 1.0], 20)
    return X, y, moved


@pytest.mark.parametrize(
    "name",
    ["made up", *slowly("elevators", "kin40k", "protein", "cal-housing")],
)
def test_planted_outliers_are_among_the_first(name):
    rng = np.random.default_rng(0)
    if name == "made up":
        X = rng.normal(size=(5000, 5))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=5000)
    else:
        data = real_data(name)
        chosen = rng.permutation(len(data["X"]))[:5000]
        X, y = standardised(data["X"][chosen].astype(float)), data["y"][chosen].astype(float)
    X, y, moved = _planted(X, y, rng)
    diagnosis = NystromRidge(bandwidth="median", n_landmarks=500, random_state=0).fit(X, y).diagnose()
    found = np.isin(moved, [one.row for one in diagnosis.top(60)])
    assert found.sum() >= 36
    assert found[:20].sum() >= 16
    assert found[20:].sum() >= 16


def test_it_prints_as_a_table_and_gives_a_record():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    X["c"] = 5.0
    X.loc[7] = X.loc[3]
    y = X["a"].to_numpy() + 0.1 * rng.normal(size=300)
    y[11] += 9
    model = NystromRidge(bandwidth="median", n_landmarks=100, random_state=0).fit(X, y)
    diagnosis = model.diagnose()
    text = str(diagnosis)
    assert "300 (1 equal to an earlier one)" in text
    assert "constant columns     c" in text
    assert diagnosis.top(2)[0].row == 11 or diagnosis.top(2)[1].row == 11
    assert "unexpected target" in text
    record = diagnosis.to_record(3)
    assert record["constant_columns"] == ["c"]
    assert len(record["top"]) == 3
    assert record["top"][0]["row"] == diagnosis.order[0]
    assert set(record) >= {"noise", "effective_dimension", "coherence", "verdict", "condition", "n_dropped"}


def test_studentised_residuals_and_cooks_distance_are_the_classical_ones():
    """With all rows of a linear kernel as landmarks and hardly a ridge it is least squares."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, 2.0, -1.0] + rng.normal(size=80)
    model = NystromRidge("linear", ridge=1e-9, n_landmarks=80).fit(X, y).calibrate(X, y)
    diagnosis = model.diagnose()
    A = np.c_[X, np.ones(80)]
    hat = A @ np.linalg.pinv(A)
    h, e = np.diag(hat), y - hat @ y
    s = np.sqrt(e @ e / 76)
    assert diagnosis.leverage == pytest.approx(h, abs=1e-4)
    assert diagnosis.studentised[:, 0] == pytest.approx(e / (s * np.sqrt(1 - h)), rel=1e-3)
    assert diagnosis.cook_distance == pytest.approx(e**2 * h / (4 * s**2 * (1 - h) ** 2), rel=1e-2)
    assert diagnosis.noise == pytest.approx([s], rel=1e-3)


def test_rows_of_weight_zero_drive_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y, w = X[:, 0].copy(), np.ones(200)
    y[:5], w[:5], X[5:8], w[5:8] = 1e6, 0.0, 100.0, 0.0
    y += 0.1 * rng.normal(size=200)
    diagnosis = NystromRidge(bandwidth="median", random_state=0).fit(X, y, w).diagnose()
    assert not set(range(8)) & {one.row for one in diagnosis.top(50)}


def test_without_leave_one_out_it_says_how_to_get_there():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    model = NystromRidge(bandwidth="median", ridge=1e-3).fit(X, X[:, 0])
    with pytest.raises(DataError, match=r"call calibrate\(X, y\) with the rows of the fit"):
        model.diagnose()
    assert len(model.calibrate(X, X[:, 0]).diagnose().leverage) == 100
