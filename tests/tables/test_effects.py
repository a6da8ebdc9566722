"""Effects of the columns of a table."""

import numpy as np
import pytest

from ridgemark import NystromRidge

pd = pytest.importorskip("pandas")


def _fitted():
    rng = np.random.default_rng(0)
    n = 800
    city = rng.choice(["Bonn", "Oslo", "Rome"], n)
    X = pd.DataFrame({"x": rng.normal(size=n), "city": city, "late": rng.random(n) < 0.5})
    y = 2.0 * X["x"] + np.select([city == "Oslo", city == "Rome"], [1.0, -3.0], 0.0) + 0.5 * X["late"]
    y += 0.1 * rng.normal(size=n)
    return NystromRidge(bandwidth="median", random_state=0).fit(X, y.to_numpy()), X


def test_a_category_has_the_difference_of_each_level_from_the_first():
    model, X = _fitted()
    summary = model.effects_summary(X)
    assert [(one.name, one.unit) for one in summary.effects] == [
        ("x", "per unit"),
        ("city", "Bonn -> Oslo"),
        ("city", "Bonn -> Rome"),
        ("late", "False -> True"),
    ]
    assert np.allclose(summary.average[:, 0], [2.0, 1.0, -3.0, 0.5], atol=0.05)


def test_effects_are_those_of_changed_tables():
    model, X = _fitted()
    effects = model.effects(X)
    for column, (level, first), position in (("city", ("Rome", "Bonn"), 2), ("late", (True, False), 3)):
        changed = [model.predict(X.assign(**{column: value})) for value in (level, first)]
        assert effects[:, position] == pytest.approx(changed[0] - changed[1], abs=1e-10)
    step = 1e-5  # rounding of predictions over it is some 1e-6
    slope = (model.predict(X.assign(x=X["x"] + step)) - model.predict(X.assign(x=X["x"] - step))) / (2 * step)
    assert effects[:, 0] == pytest.approx(slope, abs=1e-5)


def test_names_and_levels_with_line_breaks_stay_in_one_line_of_the_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a\nb": rng.normal(size=60), "town": ["Bonn\ncity", "Rome\x1b[31m"] * 30})
    model = NystromRidge(bandwidth="median", random_state=0).fit(X, X["a\nb"].to_numpy() + rng.normal(size=60))
    *_, first, second = str(model.effects_summary()).splitlines()
    assert first.startswith(r"a\nb    per unit")
    assert second.startswith(r"town    Bonn\ncity -> Rome\x1b[31m  ")
