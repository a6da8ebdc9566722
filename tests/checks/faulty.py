"""Three tables as people have them, and faults planted into them."""

import numpy as np
import pandas as pd

ZIPS, AGENTS = 70, 150


def houses(seed=0, n=1500):
    rng = np.random.default_rng(seed)
    area, lot = np.exp(rng.normal(7.5, 0.4, n)).round(), np.exp(rng.normal(9, 0.9, n)).round()
    built, state = rng.integers(1900, 2015, n), rng.integers(1, 6, n)
    log_price = 12 + 0.8 * np.log(area) + 0.002 * (built - 1950) + 0.05 * state + rng.normal(0, 0.3, n)
    table = {"area": area, "lot": lot, "built": built, "state": state, "view": rng.choice(["none", "lake"], n)}
    return pd.DataFrame(table), np.exp(log_price)


def patients(seed=1, n=1500):
    rng = np.random.default_rng(seed)
    age, weight, dose = rng.integers(20, 90, n), rng.normal(75, 12, n).round(1), rng.choice([5.0, 10.0, 20.0], n)
    sex, heart = rng.choice(["f", "m"], n), rng.normal(70, 9, n).round(2)
    pressure = 100 + 0.4 * age + 0.2 * weight - 0.3 * dose + 0.1 * heart + 4 * (sex == "m") + rng.normal(0, 6, n)
    return pd.DataFrame({"age": age, "weight": weight, "dose": dose, "sex": sex, "heart": heart}), pressure


def rides(seed=2, n=1500):
    rng = np.random.default_rng(seed)
    hour, warmth, wind = rng.integers(0, 24, n), rng.normal(15, 8, n).round(2), rng.gamma(2, 5, n).round(2)
    holiday = rng.choice(["yes", "no"], n, p=[0.1, 0.9])
    mean = np.exp(
        3 + 1.2 * np.sin((hour - 6) / 24 * 2 * np.pi) + 0.03 * warmth - 0.01 * wind - 0.3 * (holiday == "yes")
    )
    return pd.DataFrame({"hour": hour, "warmth": warmth, "wind": wind, "holiday": holiday}), rng.poisson(mean) + 0.0


def plant(table, y, seed=3):
    """Return a table and its target with every fault that applies; the target is changed where a fault needs it."""
    rng, n, spread = np.random.default_rng(seed), len(y), y.std()
    zips = np.sort(rng.choice(np.arange(98001, 98199), ZIPS, replace=False))
    zip_of, agent_of = rng.integers(ZIPS, size=n), rng.integers(AGENTS, size=n)
    y = y + 0.5 * spread * (rng.normal(size=ZIPS)[zip_of] + 1.2 * rng.normal(size=AGENTS)[agent_of])
    y = y - min(0.0, 1.1 * y.min())
    other = table.select_dtypes(float).columns[0]
    table = table.assign(
        number=rng.permutation(10 * n)[:n] + 10**6,
        label=[f"{value:08x}" for value in rng.integers(16**8, size=n)],
        country="US",
        pool=(np.arange(n) % (n // 3) == 5).astype(int),
        zip=zips[zip_of],
        agent=[f"A{k}" for k in agent_of],
        tax=[f"${value:,.2f}" for value in rng.gamma(3, 800, n)],
        discount=[f"{value:.1f}%" for value in rng.uniform(0, 9, n)],
        valued=y * np.exp(rng.normal(0, 0.01, n)),
    )
    table.loc[rng.choice(n, 4, replace=False), other] = 9.99e9
    table["y"] = y
    near = table.iloc[rng.choice(n, 30, replace=False)].copy()
    near["y"] += 2 * spread
    near["number"] += 1
    near["valued"] = near["y"]
    table = pd.concat([table, table.iloc[rng.choice(n, 40, replace=False)], near])
    table = table.sample(frac=1.0, random_state=seed).reset_index(drop=True)
    table["row"] = np.arange(len(table))
    return table.drop(columns="y"), table["y"].to_numpy()


PLANTED = {
    "identifier": {"number", "label"},
    "row number": {"row"},
    "constant": {"country"},
    "nearly constant": {"pool"},
    "codes": {"zip"},
    "leak": {"valued"},
}
