"""Draw the picture of the README and of the first page of the documentation: `python tools/readme_picture.py`.

The rows are those of California housing, from the folder that RIDGEMARK_DATA names. Left, the error on held-out rows
against the number of training rows, beside LightGBM, which must be installed. Right, the distance to exact kernel ridge
regression against the number of landmarks, with what is proved. It takes some minutes.
"""

import os
import re
import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np

from ridgemark import NystromRidge, exact
from ridgemark.backends import Floats
from ridgemark.report.page import style
from ridgemark.report.plots import Chart, Series, draw

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
from accuracy import regression_sets, split  # noqa: E402
from peers import METHODS  # noqa: E402

FOLDER, SET = ROOT / "docs" / "images", "cal-housing"
ROWS = (500, 1000, 2000, 4000, 8000, 18_576)  # of the fits on the left
FITTED, COUNTS = 3000, (100, 200, 400, 800, 1600, 2400)  # rows and landmarks on the right
SEEDS, DRAWS = 3, 3
TITLES = ("Errors beside boosting", "A certificate proves how close to exact")
CONTENDERS = {
    "kernel, one bandwidth": ("median", 7),
    "LightGBM, early stopping": ("lightgbm", 2),
    "NystromRidge()": ("default", 0),
}


def predictions(X: Floats, y: Floats) -> Chart:
    """Return the error on held-out rows against the number of rows, medians over splits."""
    errors = {name: np.empty((SEEDS, len(ROWS))) for name in CONTENDERS}
    for seed, (k, n_rows) in product(range(SEEDS), enumerate(ROWS)):
        X_train, y_train, X_test, y_test = split(X, y, seed, n_rows)
        for name, (method, _) in CONTENDERS.items():
            model = METHODS[method].make(seed, X_train, y_train)
            model.fit(X_train, y_train)
            errors[name][seed, k] = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / y.std()
    series = [
        Series(name, ROWS, np.median(errors[name], axis=0), colour=colour) for name, (_, colour) in CONTENDERS.items()
    ]
    for one in series:
        print(f"{one.label}: " + ", ".join(f"{n} rows {error:.3f}" for n, error in zip(ROWS, one.y, strict=True)))
    return Chart("training rows", "error on held-out rows (sd)", series, log_x=True, log_y=True)


def distances(X: Floats, y: Floats) -> Chart:
    """Return true and proved distances to exact against the number of landmarks, medians over draws."""
    X, y, *_ = split(X, y, 0, FITTED)
    tuned = NystromRidge(random_state=0).fit(X, y)
    kernel, ridge = tuned.kernel_, tuned.ridge_
    twin = exact.kernel_ridge(exact.kernel_matrix(X, kernel), y, FITTED * ridge, fit_intercept=True)
    found = []
    for count in COUNTS:
        models = [NystromRidge(kernel, ridge=ridge, n_landmarks=count, random_state=k).fit(X, y) for k in range(DRAWS)]
        true = [np.sqrt(np.mean((model.predict(X) - twin.fitted) ** 2)) for model in models]
        found.append([np.median(true), np.median([model.certify(X, y).bound for model in models])])
    distance, bound = np.array(found).T / y.std()
    print(f"distance to exact: true {distance}, proved {bound}")
    series = [
        Series("proved", COUNTS, bound, kind="dashed", colour=0),
        Series("true", COUNTS, distance, colour=0),
    ]
    return Chart("landmarks", "distance to exact (sd)", series, log_x=True, log_y=True)


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
    folder = os.environ.get("RIDGEMARK_DATA") or sys.exit(
        "RIDGEMARK_DATA names the folder of real data; see docs/data.md"
    )
    X, y = regression_sets(Path(folder))[SET]()
    warnings.simplefilter("ignore")
    drawings = [draw(predictions(X, y), "predictions"), draw(distances(X, y), "distances")]
    FOLDER.mkdir(exist_ok=True)
    for dark, narrow in product((False, True), repeat=2):
        path = FOLDER / f"readme-{'dark' if dark else 'light'}{'-narrow' if narrow else ''}.svg"
        path.write_text(picture(drawings, dark, narrow), encoding="utf-8")
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    main()
