"""With `--json` the standard output holds only JSON, also for fits with very few features."""

import json
import subprocess
import sys

import numpy as np

# One process runs all commands: LAPACK writes to the file descriptor directly, perhaps only when its buffer is flushed
# at the end of the process.
_RUN = """
import json, sys
from ridgemark.cli import main
for arguments in json.loads(sys.stdin.read()):
    sys.argv = ["ridgemark", *arguments]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, arguments
"""
_UNIX_TIMES, _TWO_COLUMNS = "times.csv", "two.csv"
_FITS = [
    (_UNIX_TIMES, "linear", "auto", "1e-3"),
    (_UNIX_TIMES, "polynomial", "auto", "1e-3"),
    (_UNIX_TIMES, "linear", "auto", "loo"),
    (_UNIX_TIMES, "gaussian", "1", "1e-8"),
    (_TWO_COLUMNS, "gaussian", "2", "1e-8"),
    (_TWO_COLUMNS, "linear", "1", "1e-8"),
    (_TWO_COLUMNS, "linear", "auto", "1e-8"),
    (_TWO_COLUMNS, "cosine", "2", "1e-8"),
    (_TWO_COLUMNS, "cosine", "auto", "1e-8"),
]


def write_csv(path, names, columns):
    np.savetxt(path, np.column_stack(columns), delimiter=",", header=names, comments="", fmt="%.17g")


def test_json_of_fits_with_few_features_parses(tmp_path):
    rng = np.random.default_rng(0)
    seconds = 1.7e9 + 60.0 * np.arange(300)
    write_csv(tmp_path / _UNIX_TIMES, "t,y", [seconds, np.sin(seconds / 5000)])
    a, b = rng.normal(size=(2, 200))
    write_csv(tmp_path / _TWO_COLUMNS, "a,b,y", [a, b, a + 0.1 * rng.normal(size=200)])
    fits = [
        ["fit", data, "--target", "y", "--kernel", kernel, "--landmarks", landmarks, "--ridge", ridge,
         "--output", f"m{number}", "--json", *(() if kernel in ("linear", "cosine") else ("--bandwidth", "median"))]
        for number, (data, kernel, landmarks, ridge) in enumerate(_FITS)
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", _RUN], input=json.dumps(fits), capture_output=True, text=True, check=True, cwd=tmp_path
    )
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["model"] for record in records] == [f"m{number}" for number in range(len(fits))]
