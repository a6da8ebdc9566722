"""Draw the picture of the README and of the first page of the documentation: `python tools/readme_picture.py`.

The rows are those of `ridgemark demo`: states of a simulated robot arm, of whose 32 inputs five have an effect. Left,
the error on new states against the number of rows. Right, the distance to exact kernel ridge regression against the
number of landmarks, with what is proved. It takes some minutes.
"""

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from ridgemark import NystromRidge, exact
from ridgemark.cli.robot_arm import ArmRows, arm_rows
from ridgemark.report.page import style
from ridgemark.report.plots import Chart, Series, draw
from ridgemark.tuning import Tuner

FOLDER = Path(__file__).parents[1] / "docs" / "images"
ROWS, LANDMARKS = (250, 500, 1000, 2000), 400  # of the fits on the left
TUNER = Tuner(rows=1500, judging_rows=500, landmarks=150)  # a quarter of the usual work, as in the demo
FITTED, COUNTS = 3000, (50, 100, 200, 400, 800)  # rows and landmarks on the right
NEW, SEEDS, DRAWS = 2000, 1, 3
TITLES = ("A tuned metric predicts", "A certificate proves how close to exact")


def contenders(seed: int, n_rows: int) -> dict[str, Any]:
    """Return the models on the left."""
    count = min(n_rows, LANDMARKS)
    return {
        "kernel, one bandwidth": NystromRidge(bandwidth="median", n_landmarks=count, random_state=seed),
        "gradient boosting": HistGradientBoostingRegressor(random_state=seed),
        "ridgemark, tuned": NystromRidge(bandwidth=TUNER, n_landmarks=count, random_state=seed),
    }


def rmse(model: Any, new: ArmRows) -> float:
    return float(np.sqrt(np.mean((model.predict(new.inputs) - new.signal) ** 2)))


def predictions() -> Chart:
    """Return the error on new states against the number of rows, medians over seeds."""
    errors = {name: np.empty((SEEDS, len(ROWS))) for name in contenders(0, 1)}
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        seen, new = arm_rows(max(ROWS), rng), arm_rows(NEW, rng)
        for k, n_rows in enumerate(ROWS):
            for name, model in contenders(seed, n_rows).items():
                errors[name][seed, k] = rmse(model.fit(seen.inputs[:n_rows], seen.measured[:n_rows]), new)
    colours = {"ridgemark, tuned": 0, "gradient boosting": 2, "kernel, one bandwidth": 7}
    series = [Series(name, ROWS, np.median(errors[name], axis=0), colour=k) for name, k in colours.items()]
    for one in series:
        print(f"{one.label}: " + ", ".join(f"{n} rows {error:.3f}" for n, error in zip(ROWS, one.y, strict=True)))
    return Chart("rows", "error on new rows (RMSE)", series, log_x=True, log_y=True)


def distances() -> Chart:
    """Return true and proved distances to exact against the number of landmarks, medians over draws."""
    rows = arm_rows(FITTED, np.random.default_rng(0))
    X, y = rows.inputs, rows.measured
    tuned = NystromRidge(bandwidth=TUNER, n_landmarks=LANDMARKS, random_state=0).fit(X, y)
    kernel, ridge = tuned.kernel_, tuned.ridge_
    twin = exact.kernel_ridge(exact.kernel_matrix(X, kernel), y, FITTED * ridge, fit_intercept=True)
    series = []
    for selection, label, colour in (("auto", "chosen", 0), ("uniform", "uniform", 1)):
        found = []
        for count in COUNTS:
            options = {"ridge": ridge, "n_landmarks": count, "selection": selection}
            models = [NystromRidge(kernel, random_state=seed, **options).fit(X, y) for seed in range(DRAWS)]
            true = [np.sqrt(np.mean((model.predict(X) - twin.fitted) ** 2)) for model in models]
            found.append([np.median(true), np.median([model.certify(X, y).bound for model in models])])
        distance, bound = np.array(found).T
        print(f"{label}: true {distance}, proved {bound}")
        series += [
            Series(f"{label}: proved", COUNTS, bound, kind="dashed", colour=colour),
            Series(f"{label}: true", COUNTS, distance, colour=colour),
        ]
    return Chart("landmarks", "distance to exact (RMS)", series, log_x=True, log_y=True)


def colours(dark: bool) -> dict[str, str]:
    """Return the page's colours by name."""
    light, rest = style().split("@media (prefers-color-scheme: dark)", 1)
    return dict(re.findall(r"--([\w-]+): (#\w+);", rest.split("* {", 1)[0] if dark else light))


def picture(drawings: list[str], dark: bool, narrow: bool) -> str:
    """Return the drawings under their titles, in the colours of one theme; side by side, or `narrow`: one by one."""
    width, height, head = 430, 330, 24
    step = (0, height + head) if narrow else (width, 0)
    parts = [
        f'<text x="{k * step[0] + width / 2}" y="{k * step[1] + 17}" text-anchor="middle" font-size="15" '
        f'font-weight="600" fill="var(--ink)">{title}</text>\n'
        + svg.replace("<svg", f'<svg x="{k * step[0]}" y="{k * step[1] + head}" width="{width}" height="{height}"', 1)
        for k, (title, svg) in enumerate(zip(TITLES, drawings, strict=True))
    ]
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width + step[0]} {height + head + step[1]}" '
        'font-family="system-ui, Segoe UI, Roboto, sans-serif">\n' + "\n".join(parts) + "\n</svg>\n"
    )
    of_theme = colours(dark)
    text = re.sub(r"var\(--([\w-]+)\)", lambda name: of_theme[name[1]], text)
    text = re.sub(r"\n\s+", "\n", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{2,}", _short, tag[0]), text)


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}"


def main() -> None:
    drawings = [draw(predictions(), "predictions"), draw(distances(), "distances")]
    FOLDER.mkdir(exist_ok=True)
    for dark, narrow in product((False, True), repeat=2):
        path = FOLDER / f"readme-{'dark' if dark else 'light'}{'-narrow' if narrow else ''}.svg"
        path.write_text(picture(drawings, dark, narrow), encoding="utf-8")
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    main()
