"""Draw the picture at the head of the README, for light and dark pages: `python tools/readme_picture.py`.

The rows are the paper's synthetic points, which avoid the middle of the unit interval, with a sine and noise as target.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ridgemark import NystromRidge, exact
from ridgemark.kernels import Gaussian
from ridgemark.paper.synthetic import synthetic_points
from ridgemark.report.page import style
from ridgemark.report.plots import Chart, Series, draw

FOLDER = Path(__file__).parents[1] / "docs" / "images"
KERNEL, RIDGE, NOISE = Gaussian(0.1), 1e-4, 0.1
SHOWN = 24  # landmarks of the fits on the left
COUNTS = (6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28)
SEEDS = 11
COLOURS = {"leverage": 0, "uniform": 1}
TITLES = (f"500 rows, {SHOWN} of them landmarks", "How far from exact, and what is proved")


def rows() -> tuple[np.ndarray, np.ndarray]:
    x = synthetic_points()
    return x, np.sin(4 * np.pi * x) + NOISE * np.random.default_rng(0).normal(size=len(x))


def fitted(selection: str, n_landmarks: int, seed: int) -> NystromRidge:
    x, y = rows()
    model = NystromRidge(KERNEL, ridge=RIDGE, n_landmarks=n_landmarks, selection=selection, random_state=seed)
    return model.fit(x[:, None], y)


def fits() -> Chart:
    x, y = rows()
    grid = np.linspace(0, 1, 201)
    twin = exact.kernel_ridge(exact.kernel_matrix(x[:, None], KERNEL), y, len(x) * RIDGE, fit_intercept=True)
    exactly = KERNEL(grid[:, None], x[:, None]) @ twin.dual_coef + twin.intercept
    series = [Series("rows", x, y, kind="points", colour=7)]
    for place, (selection, colour) in enumerate(COLOURS.items()):
        model = fitted(selection, SHOWN, 0)
        where = np.sort(model.landmarks_[:, 0])
        series += [
            Series(f"{selection} landmarks", grid, model.predict(grid[:, None]), colour=colour, marked=False),
            Series("", where, np.full(len(where), -1.6 - 0.2 * place), kind="points", colour=colour),
        ]
    series.append(Series("exact", grid, exactly, kind="dashed", colour=6, marked=False))
    return Chart("x", "y", series)


def distances() -> Chart:
    x, y = rows()
    twin = exact.kernel_ridge(exact.kernel_matrix(x[:, None], KERNEL), y, len(x) * RIDGE, fit_intercept=True)
    series = []
    for selection, colour in COLOURS.items():
        found = []
        for count in COUNTS:
            models = [fitted(selection, count, seed) for seed in range(SEEDS)]
            true = [np.sqrt(np.mean((model.predict(x[:, None]) - twin.fitted) ** 2)) for model in models]
            proved = [model.certify(x[:, None], y).bound for model in models]
            found.append([np.median(true), np.median(proved)])
        distance, bound = np.array(found).T
        series += [
            Series(f"{selection}: true distance", COUNTS, distance, colour=colour),
            Series(f"{selection}: certified", COUNTS, bound, kind="dashed", colour=colour),
        ]
    return Chart("landmarks", "RMS distance, units of y", series, log_y=True)


def colours(dark: bool) -> dict[str, str]:
    """Return the page's colours by name."""
    light, rest = style().split("@media (prefers-color-scheme: dark)", 1)
    return dict(re.findall(r"--([\w-]+): (#\w+);", rest.split("* {", 1)[0] if dark else light))


def picture(drawings: list[str], dark: bool) -> str:
    """Return the drawings side by side under their titles, in the colours of one theme."""
    width, height, head = 430, 330, 24
    parts = [
        f'<text x="{k * width + width / 2}" y="17" text-anchor="middle" font-size="15" font-weight="600" '
        f'fill="var(--ink)">{title}</text>\n'
        + svg.replace("<svg", f'<svg x="{k * width}" y="{head}" width="{width}" height="{height}"', 1)
        for k, (title, svg) in enumerate(zip(TITLES, drawings, strict=True))
    ]
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {2 * width} {height + head}" font-family="system-ui, Segoe UI, Roboto, sans-serif">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )
    of_theme = colours(dark)
    text = re.sub(r"var\(--([\w-]+)\)", lambda name: of_theme[name[1]], text)
    text = re.sub(r"\n\s+", "\n", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{2,}", _short, tag[0]), text)


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}"


def main() -> None:
    drawings = [draw(fits(), "fits"), draw(distances(), "distances")]
    FOLDER.mkdir(exist_ok=True)
    for dark in (False, True):
        path = FOLDER / f"readme-{'dark' if dark else 'light'}.svg"
        path.write_text(picture(drawings, dark), encoding="utf-8")
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    main()
