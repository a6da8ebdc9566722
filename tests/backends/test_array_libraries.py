"""Kernels and features on other array libraries give NumPy's values."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from ridgemark.backends import NUMPY, Backend, backend_of
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
from ridgemark.operators import nystrom_factor

array_api_strict = pytest.importorskip("array_api_strict")

WIDTHS = np.array([0.8, 1.5, 1.1, 2.0, 0.7])
METRIC = np.random.default_rng(5).normal(size=(5, 3)) / 2

COLUMNS = ColumnMap(np.full(5, -2.0), np.full(5, 1.5), np.full(5, 0.1), np.array([0.0, 0.7, 1.0, 0.0, 2.0]))
RADIAL = [Gaussian(2.0), Matern32(0.7), Matern52(1.3), Matern12(3.0), PowerExponential(1.7, 1.4)]
OTHERS = [Laplacian(1.3), Linear(0.1, 1.9)]
MIXTURES = [
    Mixture(RADIAL, OTHERS, np.linspace(0.1, 1.0, 7), WIDTHS, columns=COLUMNS),
    Mixture(RADIAL[:3], OTHERS, np.linspace(0.1, 1.0, 5), metric=METRIC),
    Mixture([], OTHERS, [0.5, 0.2]),
]

KERNELS = [
    *[family(width) for family in (Gaussian, Laplacian, Matern12, Matern32, Matern52) for width in (1.7, WIDTHS)],
    *[family(metric=METRIC) for family in (Gaussian, Matern12, Matern32, Matern52)],
    PowerExponential(1.7, 1.4),
    PowerExponential(WIDTHS, 0.6),
    PowerExponential(exponent=1.2, metric=METRIC),
    Linear(),
    Polynomial(3, 0.7, 1.9),
    Polynomial(2, 0.7, WIDTHS),
    Cosine(),
    Bernoulli(2),
    0.5 * Gaussian(1.3) + Linear() * Cosine(),
    *MIXTURES,
]


def _torch():
    pytest.importorskip("torch")
    from ridgemark.backends.torch import TorchBackend

    return TorchBackend("cpu")


BACKENDS = {
    "strict": lambda: Backend("array_api_strict", array_api_strict.Device("CPU_DEVICE")),
    "strict on a device": lambda: Backend("array_api_strict", array_api_strict.Device("device1")),
    "torch": _torch,
}


@pytest.fixture(params=BACKENDS)
def backend(request):
    return BACKENDS[request.param]()


def _name(kernel):
    shape = {np.ndim(kernel.get_params().get(name)): name for name in ("bandwidth", "metric")}
    return repr(kernel)[:40] if max(shape) == 0 else f"{type(kernel).__name__} by {shape[max(shape)]}s"


def _rows(kernel, n_features=5):
    """Rows around two distant centres, with equal and nearly equal pairs, so that every form of distance is used."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 1 if isinstance(kernel, Bernoulli) else n_features))
    if not isinstance(kernel, Polynomial | Linear | Bernoulli | Mixture) and not hasattr(kernel, "left"):
        rows[30:] += 1e3
    rows[5] = rows[6] + 1e-7
    return rows, np.concatenate([rows[3:15:2], rows[28:34]])


def _largest(values):
    return max(1.0, float(np.abs(values).max()))


@pytest.mark.parametrize("kernel", KERNELS, ids=_name)
def test_kernel_values_equal_those_of_numpy(kernel, backend):
    rows, landmarks = _rows(kernel)
    expected = kernel.bind(landmarks)(rows)
    bound = kernel.bind(backend.from_host(landmarks))
    block = bound(backend.from_host(rows))
    assert backend_of(block) == bound.backend == backend
    assert np.abs(backend.to_host(block) - expected).max() <= 1e-12 * _largest(expected)


@pytest.mark.parametrize("kernel", [one for one in KERNELS if " by " not in _name(one)], ids=_name)
def test_few_features_and_single_precision_equal_numpy(kernel, backend):
    for n_features in (1, 2):
        rows, landmarks = _rows(kernel, n_features)
        for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-4)):
            x, z = rows.astype(dtype), landmarks.astype(dtype)
            expected = kernel.bind(z)(x)
            block = backend.to_host(kernel.bind(backend.from_host(z))(backend.from_host(x)))
            assert block.dtype == dtype
            assert np.abs(block - expected).max() <= tolerance * _largest(expected)


@pytest.mark.parametrize("kernel", KERNELS, ids=_name)
def test_diagonals_and_rounding_bounds_equal_those_of_numpy(kernel, backend):
    rows, landmarks = _rows(kernel)
    on_device = backend.from_host(rows)
    diagonal = kernel.diagonal(rows)
    assert np.abs(backend.to_host(kernel.diagonal(on_device)) - diagonal).max() <= 1e-12 * _largest(diagonal)
    allowed = kernel.bind(backend.from_host(landmarks)).entry_error(on_device)
    assert backend.holds(allowed)
    assert backend.to_host(allowed) == pytest.approx(kernel.bind(landmarks).entry_error(rows), rel=1e-9)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.7), Matern32(WIDTHS), Matern12(metric=METRIC), Laplacian(1.7)], ids=_name
)
def test_features_of_a_factor_equal_those_of_numpy(kernel, backend):
    rows = np.random.default_rng(1).normal(size=(60, 5))
    factor = nystrom_factor(kernel, rows[:12])
    expected = factor.features(rows)
    block = kernel.bind(backend.from_host(rows[:12]))(backend.from_host(rows))
    features = backend.matmul(block, backend.from_host(factor.whitener))
    assert np.abs(backend.to_host(features) - expected).max() <= 1e-12
    kept = kernel.bind(backend.from_host(rows[:12][factor.kept]))(backend.from_host(rows))
    features = backend.times_triangle_(kept, backend.from_host(factor.triangle))
    assert np.abs(backend.to_host(features) - expected).max() <= 1e-12
    elsewhere = replace(factor, cross_kernel=kernel.bind(backend.from_host(rows[:12])))
    for given in (rows, backend.from_host(rows)):
        assert np.abs(backend.to_host(elsewhere.features(given)) - expected).max() <= 1e-12


@pytest.mark.parametrize("family", [Gaussian, Matern12, Matern32, Matern52, PowerExponential])
def test_derivatives_equal_those_of_numpy(family, backend):
    rho = np.concatenate([[0.0], np.geomspace(1e-9, 1e4, 30)])
    theirs, ours = (family().value_and_derivative(values) for values in (backend.from_host(rho), rho))
    for one, other in zip(theirs, ours, strict=True):
        assert backend.to_host(one) == pytest.approx(other, rel=1e-12, abs=1e-300)


def test_operations_equal_those_of_numpy(backend):
    rng = np.random.default_rng(2)
    A, B, T = rng.normal(size=(9, 4)), rng.normal(size=(4, 7)), np.triu(rng.normal(size=(4, 4)))

    def both(operation):
        """Return what an operation gives on this backend, as host arrays, and on NumPy."""
        theirs, ours = (operation(one, *(one.from_host(m.copy()) for m in (A, B, T))) for one in (backend, NUMPY))
        return backend.to_host(theirs), ours

    operations = [
        lambda b, A, B, T: b.matmul(A, B),
        lambda b, A, B, T: b.matmul(A, B, out=b.empty((9, 7), like=A)),
        lambda b, A, B, T: b.times_triangle_(A, T),
        lambda b, A, B, T: b.times_triangle_(b.copy(A), T, transposed=True) + A,
        lambda b, A, B, T: b.inverse_triangle(T),
        lambda b, A, B, T: b.subtract_product_(b.zeros((9, 7)), A, B),
        lambda b, A, B, T: b.median(A),
        lambda b, A, B, T: b.median(B),
        lambda b, A, B, T: b.median(A[:0, :]),
        lambda b, A, B, T: b.clip_(A, -0.5, 0.25),
        lambda b, A, B, T: b.xp.take(A, b.nonzero(A > 0.5)[0], axis=0),
        lambda b, A, B, T: b.eigh(T.T @ T)[0],
    ]
    for operation in operations:
        theirs, ours = both(operation)
        assert theirs == pytest.approx(ours, abs=1e-12)
    theirs, ours = both(lambda b, A, B, T: b.gram(A))
    assert np.triu(theirs) == pytest.approx(np.triu(ours), abs=1e-12)
    assert np.median(A, axis=0) == pytest.approx(NUMPY.median(A))


def test_a_backend_survives_pickling(backend):
    for one in (backend, NUMPY):
        assert pickle.loads(pickle.dumps(one)) == one
    bound = Gaussian(metric=METRIC).bind(np.eye(5))
    assert np.array_equal(pickle.loads(pickle.dumps(bound))(np.eye(5)), bound(np.eye(5)))


def test_host_arrays_have_the_numpy_backend():
    for values in (np.eye(2), [1.0], "word"):
        assert backend_of(values) is NUMPY
