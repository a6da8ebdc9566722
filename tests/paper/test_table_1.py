"""Table 1's d_eff and d_mof columns, with the conventions that reproduce them."""

import numpy as np
import pytest

from ridgemark import exact
from ridgemark.kernels import Gaussian
from ridgemark.paper.synthetic import synthetic_points, synthetic_scores
from tests.helpers import real_data, standardised

EPSILON = 0.01


def _dimensions(spectrum, ridge):
    scaled_ridge = spectrum.n_rows * ridge * EPSILON
    return (
        exact.effective_dimension(spectrum, scaled_ridge),
        exact.max_degrees_of_freedom(spectrum, scaled_ridge),
        exact.max_degrees_of_freedom(spectrum, scaled_ridge, form="operator"),
    )


def _gaussian_spectrum(X, paper_bandwidth):
    """The paper's RBF kernel is exp(-|x - z|^2/b^2): our bandwidth is b/sqrt(2)."""
    return exact.kernel_spectrum(standardised(X), Gaussian(paper_bandwidth / np.sqrt(2)))


@pytest.mark.parametrize(
    ("name", "ridge", "effective", "operator"),
    [("gas-batch2", 4.5e-4, 1135.2, 1244.0), ("gas-batch3", 5e-4, 1450.9, 1586.0)],
)
def test_gas_rbf_rows_are_reproduced(name, ridge, effective, operator):
    d_eff, d_mof, d_mof_operator = _dimensions(_gaussian_spectrum(real_data(name)["X"], 1.0), ridge)
    assert d_eff == pytest.approx(effective, abs=0.1)
    assert d_mof_operator == pytest.approx(operator, abs=0.5)  # the table prints whole numbers
    assert d_eff < d_mof < d_mof_operator


@pytest.mark.slow
def test_pumadyn_rbf_rows_are_reproduced():
    spectrum = _gaussian_spectrum(real_data("pumadyn-32nm")["X"][:2000], 5.0)
    for ridge, effective, operator in [(1.3e-2, 1336.7, 1997.2), (5e-2, 746.6, 1989.2), (0.5, 142.2, 1897.2)]:
        d_eff, d_mof, d_mof_operator = _dimensions(spectrum, ridge)
        assert d_eff == pytest.approx(effective, abs=0.11)
        assert d_mof_operator == pytest.approx(operator, abs=0.11)
        assert d_eff < d_mof < d_mof_operator


@pytest.mark.parametrize(
    ("name", "rows", "effective", "definition"),
    [
        ("gas-batch2", None, 125.9, 1244.0),
        ("gas-batch3", None, 125.0, None),
        ("pumadyn-32nm", 2000, 32.0, 51.2),
    ],
)
def test_linear_rows_are_reproduced_from_raw_columns(name, rows, effective, definition):
    X = real_data(name)["X"][:rows]
    d_eff, d_mof, d_mof_operator = _dimensions(exact.kernel_spectrum(X, "linear"), 1e-3)
    assert d_eff == pytest.approx(effective, abs=0.1)
    assert d_mof_operator == pytest.approx(len(X), abs=0.1)
    if definition is not None:
        assert d_mof == pytest.approx(definition, abs=0.1)


def test_synthetic_row_is_reproduced_at_the_published_seed():
    result = synthetic_scores()
    assert result.effective_dimension == pytest.approx(24, abs=1.0)
    assert result.max_degrees_of_freedom_operator == pytest.approx(500, abs=0.1)
    assert 379 - 3 * 61 < result.max_degrees_of_freedom < 500


def test_synthetic_points_follow_their_density():
    points = synthetic_points(200_000, seed=1)
    assert (points > 0).all()
    assert (points < 1).all()
    for x in (0.05, 0.2, 0.5, 0.9):
        assert (points <= x).mean() == pytest.approx((1 + (2 * x - 1) ** 5) / 2, abs=0.005)
