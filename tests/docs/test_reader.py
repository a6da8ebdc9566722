"""A reader who knows scikit-learn, but not the paper, gets by with the README and the first tutorial alone."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
READ = [ROOT / "README.md", ROOT / "docs" / "tutorials" / "first-table.md"]

SCRIPT = """
import pandas as pd
from ridgemark import NystromRidge

table = pd.read_csv("cars.csv")  # raw: text, gaps, columns in different units
rows, consumption = table.drop(columns="consumption"), table["consumption"]
seen, new = slice(0, 110), slice(110, None)

model = NystromRidge(random_state=0)
model.fit(rows[seen], consumption[seen])

judged = model.score(rows[new], consumption[new])

lower, upper = model.predict_interval(rows[new], coverage=0.9).T
covered = ((lower <= consumption[new]) & (consumption[new] <= upper)).mean()

importance = pd.Series(model.feature_importances_, model.feature_names_in_)
why = model.contributions(rows[new][:1])
explained = pd.Series(why.values[0], rows.columns)
prediction = why.base + explained.sum()
distance = model.certify(rows[seen], consumption[seen]).bound
"""


@pytest.fixture
def cars(tmp_path, monkeypatch):
    """A CSV file of cars: heavier ones with a petrol engine consume more, the colour does not matter."""
    rng = np.random.default_rng(3)
    weight, petrol = rng.uniform(800, 2500, 180), rng.random(180) < 0.5
    used = 2 + 3e-3 * weight + 1.5 * petrol + 0.3 * rng.normal(size=180)
    colours = rng.choice(["red", "blue", ""], 180)
    lines = [
        f"{w:.0f},{'petrol' if p else 'diesel'},{c},{u:.2f}"
        for w, p, c, u in zip(weight, petrol, colours, used, strict=True)
    ]
    (tmp_path / "cars.csv").write_text("\n".join(["weight,engine,colour,consumption", *lines]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_a_reader_fits_judges_and_explains_a_raw_file(cars):
    found = {}
    exec(SCRIPT, found)
    assert found["judged"] > 0.9
    assert 0.8 < found["covered"] <= 1.0
    assert found["importance"].idxmax() == "weight"
    car, base = found["rows"][110:111], found["rows"][:110]
    expected = 3e-3 * (float(car["weight"].iloc[0]) - base["weight"].mean())
    assert found["explained"]["weight"] == pytest.approx(expected, abs=0.4)
    petrol = float(car["engine"].iloc[0] == "petrol") - (base["engine"] == "petrol").mean()
    assert found["explained"]["engine"] == pytest.approx(1.5 * petrol, abs=0.4)
    assert found["prediction"] == pytest.approx(found["model"].predict(car)[0])
    assert found["distance"] < 0.1


def test_the_script_uses_only_what_the_two_pages_show():
    shown = "".join(page.read_text(encoding="utf-8") for page in READ)
    used = set(re.findall(r"model\.(\w+)", SCRIPT)) | {"NystromRidge", "random_state", "coverage"}
    assert not {name for name in used if name not in shown}
