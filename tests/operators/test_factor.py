"""The factor's features reproduce the Nystrom approximation, without directions that are rounding error."""

import numpy as np
import pytest

from ridgemark import exact
from ridgemark.errors import DataError, NumericalError
from ridgemark.kernels import Custom, Gaussian, Polynomial
from ridgemark.losses import loss_sums
from ridgemark.operators import nystrom_factor
from ridgemark.passes import RowPasses
from ridgemark.rows import ArrayRows


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(200, 3))


def test_products_of_features_are_the_nystrom_approximation(rows):
    factor = nystrom_factor(Gaussian(1.0), rows[:30], np.arange(30))
    B = factor.features(rows)
    L = exact.nystrom_approximation(Gaussian(1.0)(rows), np.eye(200)[:, :30])
    assert factor.rank == factor.cross_kernel.n_landmarks
    assert B @ B.T == pytest.approx(L, abs=1e-8)


def test_repeated_landmarks_are_dropped_without_an_error(rows):
    twice = np.concatenate([rows[:30], rows[:30], rows[:5] + 1e-12])
    factor = nystrom_factor(Gaussian(1.0), twice, np.arange(65))
    assert 30 <= factor.rank <= 33  # rounding may keep a few by chance
    once = nystrom_factor(Gaussian(1.0), rows[:30], np.arange(30))
    assert factor.features(rows) @ factor.features(rows).T == pytest.approx(
        once.features(rows) @ once.features(rows).T, abs=1e-6
    )


def test_single_precision_landmarks_drop_more(rows):
    wide = nystrom_factor(Gaussian(4.0), rows[:100], np.arange(100))
    narrow = nystrom_factor(Gaussian(4.0), rows[:100].astype(np.float32), np.arange(100))
    assert narrow.features(rows.astype(np.float32)).dtype == np.float32
    assert narrow.rank < wide.rank


def test_a_kernel_that_is_not_symmetric_is_refused(rows):
    lopsided = Custom(lambda A, B: A[:, :1] + 2 * B[:, :1].T)
    with pytest.raises(DataError, match="must be symmetric; k\\(x, z\\) and k\\(z, x\\) differ by up to"):
        nystrom_factor(lopsided, rows[:10], np.arange(10))


def test_kernel_values_beyond_the_floating_point_range_are_refused(rows):
    with pytest.raises(NumericalError, match="standardise"):
        nystrom_factor(Polynomial(degree=300), rows[:10] * 1e6, np.arange(10))


def test_leading_features_are_the_first_ones(rows):
    factor = nystrom_factor(Gaussian(1.0), rows[:30], np.arange(30))
    first = factor.leading(12)
    assert (first.rank, first.cross_kernel.n_landmarks) == (12, 12)
    assert first.features(rows) == pytest.approx(factor.features(rows)[:, :12], rel=1e-10, abs=1e-10)
    assert first.landmark_kernel == pytest.approx(Gaussian(1.0)(first.cross_kernel.landmarks), abs=1e-12)
    assert factor.leading(30) is factor
    sums = [loss_sums(RowPasses(ArrayRows(rows, rows[:, :2])), one) for one in (factor, first)]
    for name in ("gram", "cross", "feature_sum", "target_square"):
        assert getattr(sums[1], name) == pytest.approx(getattr(sums[0].leading(12), name), rel=1e-8, abs=1e-8)
