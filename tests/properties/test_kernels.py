"""Every kernel is positive semidefinite and symmetric on the rows that hypothesis generates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ridgemark.kernels import (
    Bernoulli,
    ColumnMap,
    Cosine,
    Gaussian,
    Laplacian,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Mixture,
    Polynomial,
    PowerExponential,
)

numbers = st.floats(-1e3, 1e3, allow_subnormal=False).map(lambda x: 0.0 if abs(x) < 1e-100 else x)
matrices = arrays(np.float64, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=numbers)
widths = st.floats(1e-2, 1e3)
EXAMPLES = settings().max_examples // 4  # of each kernel

FAMILIES = {
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "power exponential": lambda b: PowerExponential(b, exponent=1.4),
    "rough power exponential": lambda b: PowerExponential(b, exponent=0.5),
    "linear": lambda b: Linear(),
    "polynomial": lambda b: Polynomial(degree=2, offset=b, bandwidth=b),
    "cosine": lambda b: Cosine(),
    "sum": lambda b: Gaussian(b) + Linear() * 0.5,
    "mixture": lambda b: _mixture(b),
    "product": lambda b: Matern32(b) * (Cosine() + Gaussian(2 * b)),
}


def _mixture(width):
    return Mixture(
        [Gaussian(1.0), Matern32(0.3), PowerExponential(5.0, exponent=0.5)],
        [Laplacian(width), Linear(widths=width)],
        weights=[0.5, 0.3, 0.1, 0.4, 0.2],
        bandwidth=width,
    )


def _check_semidefinite(block):
    assert np.array_equal(block, block.T)
    assert np.isfinite(block).all()
    eigenvalues = np.linalg.eigvalsh(block)
    assert eigenvalues[0] >= -1e-9 * max(1.0, abs(eigenvalues[-1]))


@pytest.mark.parametrize("family", FAMILIES)
@given(rows=matrices, width=widths)
@settings(max_examples=EXAMPLES, deadline=None)
def test_kernels_are_positive_semidefinite(family, rows, width):
    _check_semidefinite(FAMILIES[family](width)(rows))


@given(rows=matrices, width=widths, centre=numbers)
@settings(max_examples=EXAMPLES, deadline=None)
def test_a_kernel_of_mapped_columns_is_positive_semidefinite(rows, width, centre):
    low, ones = np.full(rows.shape[1], -500.0), np.ones(rows.shape[1])
    columns = ColumnMap(low, centre * centre * ones, centre * ones, width * ones)
    _check_semidefinite(_mixture(width).set_params(columns=columns)(rows))


@given(rows=arrays(np.float64, st.tuples(st.integers(1, 15), st.just(1)), elements=numbers), order=st.integers(1, 8))
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_bernoulli_kernel_is_positive_semidefinite(rows, order):
    _check_semidefinite(Bernoulli(order)(rows) / Bernoulli(order).diagonal(rows)[0])


@pytest.mark.parametrize("family", ["gaussian", "laplacian", "matern12", "matern32", "matern52"])
@given(rows=matrices, width=widths, shift=st.floats(-1e6, 1e6))
@settings(max_examples=EXAMPLES, deadline=None)
def test_stationary_kernels_are_invariant_to_translation(family, rows, width, shift):
    kernel = FAMILIES[family](width)
    error = 1e-9 + 8e-16 * (abs(shift) + 1e3) * rows.shape[1] / width
    assert np.abs(kernel(rows + shift) - kernel(rows)).max() <= error


@pytest.mark.parametrize("family", FAMILIES)
@given(rows=matrices, width=widths)
@settings(max_examples=EXAMPLES, deadline=None)
def test_cauchy_and_schwarz_hold(family, rows, width):
    kernel = FAMILIES[family](width)
    diagonal = kernel.diagonal(rows)
    bound = np.sqrt(np.outer(diagonal, diagonal))
    assert (np.abs(kernel(rows, rows.copy())) <= bound * (1 + 1e-9) + 1e-12 * diagonal.max(initial=1.0)).all()
