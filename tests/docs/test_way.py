"""What CONTRIBUTING.md says of the way of a fit."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "way_of_a_fit.py"


@pytest.mark.skipif(sys.platform != "linux", reason="which BLAS there is decides some functions")
def test_the_table_of_functions_entered_is_true():
    spec = importlib.util.spec_from_file_location("way_of_a_fit", SCRIPT)
    way = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(way)
    assert way.shown() == way.table(), "run python tools/way_of_a_fit.py --write"
