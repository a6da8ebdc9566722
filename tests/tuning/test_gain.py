"""How much smaller the errors of one kernel are than those of another."""

import numpy as np
import pytest

from ridgemark.tuning.descent import Gain


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_equal_errors_are_no_gain_in_either_precision(precision):
    errors = np.array([0.3, 0.5, 0.2], dtype=precision)
    gain = Gain.of(errors, errors.copy())
    assert (gain.share, gain.standard_errors) == (0.0, 0.0)
    assert not gain.exceeds(0.0)
