"""The functions of the package that a plain fit and a prediction enter, counted by room, as CONTRIBUTING.md shows them.

A plain fit has an array, and its kernel, bandwidth and lambda are given. A second fit and prediction are traced, in a
process with one thread, so that what is made once and what depends on the machine does not count.

    python tools/way_of_a_fit.py            # the table
    python tools/way_of_a_fit.py --names    # the functions of each file
    python tools/way_of_a_fit.py --write    # the table into CONTRIBUTING.md
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

Entered = dict[str, dict[str, None]]  # functions by file, in the order in which they are entered


PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
HEADING = "| room | functions of a fit | files | functions of a prediction | files |"


def shown() -> str:
    """Return the table that CONTRIBUTING.md has."""
    page = PAGE.read_text(encoding="utf-8")
    return page[page.index(HEADING) :].partition("\n\n")[0]


def table() -> str:
    """Return functions and files by room, as Markdown."""
    ways = _ways()
    rooms = sorted({_room(file) for way in ways.values() for file in way})
    lines = [HEADING, "|---|---|---|---|---|"]
    for room in rooms:
        lines.append(f"| {room} | {' | '.join(_cells(way, room) for way in ways.values())} |")
    lines.append(f"| all | {' | '.join(_cells(way) for way in ways.values())} |")
    return "\n".join(lines)


def _cells(way: Entered, room: str | None = None) -> str:
    inside = {file: names for file, names in way.items() if room in (None, _room(file))}
    return f"{sum(map(len, inside.values())) or ''} | {len(inside) or ''}"


def _room(file: str) -> str:
    return file.partition("/")[0] if "/" in file else "files beside the rooms"


def _ways() -> dict[str, Entered]:
    """Return what each method enters, traced in a process of one thread."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, __file__, "--trace"], env=environment, check=True, capture_output=True)
    ways: dict[str, Entered] = json.loads(done.stdout)
    return ways


def _traced() -> dict[str, Entered]:
    import numpy as np

    from ridgemark import NystromRidge

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    model = NystromRidge(kernel="gaussian", bandwidth=2.0, ridge=1e-3, n_landmarks=200, random_state=0)
    model.fit(X, y).predict(X)
    return {"fit": _entered(lambda: model.fit(X, y)), "predict": _entered(lambda: model.predict(X))}


def _entered(call: Callable[[], Any]) -> Entered:
    import ridgemark

    root, entered = f"{Path(ridgemark.__file__).parent}{os.sep}", defaultdict(dict)

    def profile(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root) and not code.co_name.startswith("<"):
            entered[Path(code.co_filename[len(root) :]).as_posix()][code.co_qualname] = None

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return dict(sorted(entered.items()))


def main() -> None:
    if "--trace" in sys.argv:
        print(json.dumps(_traced()))
    elif "--write" in sys.argv:
        PAGE.write_text(PAGE.read_text(encoding="utf-8").replace(shown(), table()), encoding="utf-8")
    elif "--names" in sys.argv:
        for way, files in _ways().items():
            print(way, *(f"  {file}: {', '.join(names)}" for file, names in files.items()), sep="\n")
    else:
        print(table())


if __name__ == "__main__":
    main()
