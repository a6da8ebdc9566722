"""A model of a mixture, with a map of its columns, is saved and loaded."""

import numpy as np

from ridgemark import NystromRidge, load
from ridgemark.kernels import ColumnMap, Gaussian, Linear, Mixture


def test_a_mixture_with_a_map_of_its_columns_is_saved(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    columns = ColumnMap(np.full(2, -1.0), np.full(2, 1.5))
    kernel = Mixture([Gaussian(1.0)], [Linear()], [0.5, 0.5], bandwidth=np.array([1.0, 2.0]), columns=columns)
    model = NystromRidge(kernel=kernel, ridge=1e-2, n_landmarks=10, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").predict(X), model.predict(X))
