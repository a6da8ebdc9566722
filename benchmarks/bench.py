"""The short form of the speed benchmarks, in a few minutes: writes docs/speed-measured.md and docs/images/speed.svg.

Run: make bench. The long forms are benchmarks/fit.py and benchmarks/scaling.py; docs/speed.md and docs/scale.md
say what they gave.
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path
from typing import Any

import fit
import matplotlib.pyplot as plt
import numpy as np
import scaling
import scipy
import sklearn
from threadpoolctl import threadpool_info

import ridgemark

DOCS = Path(__file__).parent.parent / "docs"


def table(fits: dict[str, Any], against: list[dict[str, Any]]) -> str:
    """Return all that was measured as Markdown."""
    threads = max(library["num_threads"] for library in threadpool_info())
    lines = [
        "# Speed, measured",
        "",
        f"Written by `make bench` ({platform.machine()}, {threads} threads, Python {platform.python_version()}, numpy "
        f"{np.__version__}, scipy {scipy.__version__}, scikit-learn {sklearn.__version__}, ridgemark "
        f"{ridgemark.__version__}): the short form, on fewer rows than [the one described](speed.md). Run it to have "
        "your machine's. Terms are in the [glossary](glossary.md).",
        "",
        "![Seconds of one fit, and seconds against rows and landmarks](images/speed.svg)",
        "",
        fit.FIT_HEAD,
        *(fit.fit_row(found) for found in fits["fit"]),
    ]
    for kind in ("predict", "default"):
        lines += ["", fit.BARE_HEAD.format(kind), *(fit.bare_row(found) for found in fits[kind])]
    lines += ["", "| against | seconds | exponent |", "|---|---|---|"]
    for found in against:
        points = ", ".join(f"{n:,}: {s:.2f} s" for n, s in zip(found["sizes"], found["seconds"], strict=True))
        lines.append(f"| {found['against']} | {points} | {found['exponent']:.2f} |")
    return "\n".join([*lines, ""])


def plot(fits: dict[str, Any], against: list[dict[str, Any]]) -> None:
    """Draw the contenders' seconds, and ours against rows and landmarks."""
    plt.rcParams.update({"svg.hashsalt": "ridgemark", "font.size": 9})
    figure, (left, *right) = plt.subplots(1, 3, figsize=(10, 3.4), width_ratios=(2, 1, 1), layout="constrained")
    labels = [f"{found['set'].replace(', ', chr(10))}\np = {found['p']}" for found in fits["fit"]]
    contenders = {"bare": "bare arithmetic", "ridgemark": "ridgemark", "scikit_learn": "scikit-learn"}
    for number, (name, label) in enumerate(contenders.items()):
        heights = [found[f"{name}_seconds"] for found in fits["fit"]]
        left.bar(np.arange(len(labels)) + 0.27 * (number - 1), heights, 0.25, label=label)
    left.set_xticks(range(len(labels)), labels, fontsize=6)
    left.set_ylabel("seconds of one fit")
    left.legend(frameon=False, fontsize=7)
    for axes, found in zip(right, against, strict=False):
        axes.loglog(found["sizes"], found["seconds"], "o-")
        axes.set_xlabel(found["against"].split(" (")[0])
        axes.set_ylabel("seconds")
        axes.set_xticks(found["sizes"], [f"{size:,}" for size in found["sizes"]])
        axes.set_yticks(found["seconds"], [f"{seconds:.2f}" for seconds in found["seconds"]])
        axes.minorticks_off()
        axes.set_title(f"exponent {found['exponent']:.2f}", fontsize=9)
    (DOCS / "images").mkdir(exist_ok=True)
    figure.savefig(DOCS / "images" / "speed.svg", metadata={"Date": None})


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    fits = fit.main(["--rows", "50000", "--landmarks", "500", "1000", "--repeats", "3", "--no-others"])
    print()
    sizes = [
        "--rows",
        "30000",
        "100000",
        "300000",
        "--landmarks",
        "500",
        "1000",
        "2000",
        "--rows-for-landmarks",
        "30000",
    ]
    against = scaling.main([*sizes, "--repeats", "3"])
    plot(fits, against)
    (DOCS / "speed-measured.md").write_text(table(fits, against), encoding="utf-8")
    print(f"\n{DOCS / 'speed-measured.md'}")


if __name__ == "__main__":
    main()
