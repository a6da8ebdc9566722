"""The names `bandwidth_` and `metric_` of a fit by a mixture are those of its radial parts."""

import numpy as np
import pytest

from ridgemark import NystromRidge
from ridgemark.kernels import Gaussian, Laplacian, Linear, Matern12, Mixture

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 2)), RNG.normal(size=40)
RADIAL, OTHERS = [Gaussian(1.0), Matern12(4.0)], [Laplacian([3.0, 5.0]), Linear()]


@pytest.mark.parametrize(
    ("kernel", "bandwidth", "metric"),
    [
        (Mixture(RADIAL, OTHERS, np.full(4, 0.25), bandwidth=np.array([2.0, 7.0])), [2.0, 7.0], None),
        (Mixture(RADIAL, OTHERS, np.full(4, 0.25), metric=np.diag([2.0, 7.0])), None, [[2.0, 0.0], [0.0, 7.0]]),
        (Mixture([], OTHERS, [0.5, 0.5]), None, None),
    ],
)
def test_a_mixture_has_the_bandwidth_and_metric_of_its_radial_parts(kernel, bandwidth, metric):
    model = NystromRidge(kernel=kernel, ridge=1e-2, n_landmarks=10, random_state=0).fit(X, Y)
    for found, expected in ((model.bandwidth_, bandwidth), (model.metric_, metric)):
        assert found is None if expected is None else np.array_equal(found, expected)
