"""Standard errors of effects hold as often as they say, also where the noise differs from row to row."""

import runpy
from pathlib import Path

import numpy as np
import pytest

STUDY = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "effects.py"))
REPEATS = 500
ALLOWANCE = 3.0 * np.sqrt(0.95 * 0.05 / REPEATS)


@pytest.mark.slow
@pytest.mark.parametrize("design", STUDY["DESIGNS"])
def test_averages_and_points_are_within_their_errors_in_five_hundred_repeats(design):
    for kind, found in STUDY["measured"](design, REPEATS).items():
        coverage = np.array(found["coverage"])
        assert (coverage >= 0.92 - ALLOWANCE).all(), (kind, found)
        assert (coverage <= 0.98 + ALLOWANCE).all(), (kind, found)


@pytest.mark.parametrize("design", [name for name in STUDY["DESIGNS"] if name.startswith("noise")])
def test_averages_are_within_their_errors_where_noise_differs(design):
    # Of 12 with a probability of 0.92 fewer than 7 have a probability of 2e-4.
    assert (np.array(STUDY["of_averages"](STUDY["DESIGNS"][design], 12)["coverage"]) >= 7 / 12).all()
