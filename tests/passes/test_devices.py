"""Several devices share the blocks of a pass, and give what one processor gives."""

import numpy as np
import pytest

from ridgemark import ExactKernelRidge, NystromClassifier, NystromRidge, leverage_scores
from ridgemark.backends import Backend
from ridgemark.backends.devices import computing_on
from ridgemark.kernels import Gaussian
from ridgemark.kernels.base import CrossKernel
from ridgemark.operators import Cross
from ridgemark.operators.row_matrix import MatrixEntries
from ridgemark.passes import RowPasses, Task
from ridgemark.rows import ArrayRows

array_api_strict = pytest.importorskip("array_api_strict")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(530, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.normal(size=len(X))
BLOCK = 60


class StrictDevice(Backend):
    """A device of a library that refuses operands of two devices."""

    def __init__(self, *names):
        super().__init__("array_api_strict", array_api_strict.Device(names[0]))
        object.__setattr__(self, "names", names)

    def others(self):
        return tuple(StrictDevice(name) for name in self.names[1:])

    def free_bytes(self):
        return 2**30


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    monkeypatch.setattr("ridgemark.passes.device._MOST_ROWS", BLOCK)


@pytest.fixture
def seen(monkeypatch):
    """Backend, device and first row of every block."""
    found, plain = [], RowPasses._sent

    def watched(passes, block, backend):
        found.append((type(backend).__name__, backend.device, block.start))
        return plain(passes, block, backend)

    monkeypatch.setattr(RowPasses, "_sent", watched)
    return found


def test_devices_take_turns_and_results_are_in_row_order(seen):
    kernel, rows = Gaussian(1.5).bind(X[:40]), ArrayRows(X, Y)
    expected = kernel(X)
    first, second = StrictDevice("device1", "device2"), StrictDevice("device2")
    with computing_on(first):
        passes = RowPasses(rows)
        matrix = Cross(passes, kernel)
        found = passes.map(MatrixEntries(matrix.evaluate, matrix.n_columns))
    assert np.abs(found - expected).max() <= 1e-12
    turns = [first.device, second.device]
    expected = [("StrictDevice", turns[k % 2], start) for k, start in enumerate(range(0, len(X), BLOCK))]
    assert sorted(seen, key=lambda one: one[-1]) == expected


class Product(Task):
    """`C'y` of a block, from arrays that must be where the block is."""

    cross_kernel: CrossKernel

    def __call__(self, block, workspace):
        assert self.cross_kernel.backend == workspace.backend
        return self.cross_kernel(block.features).T @ (block.targets - block.along[0])


def test_sums_of_devices_meet_on_the_first():
    kernel, rows, mean = Gaussian(1.5).bind(X[:40]), ArrayRows(X, Y), np.full((len(X), 1), Y.mean())
    expected = kernel(X).T @ (Y[:, None] - Y.mean())
    first = StrictDevice("device1", "device2", "CPU_DEVICE")
    with computing_on(first):
        total = RowPasses(rows).reduce(Product(kernel), along=(mean,), stays=True)
    assert total.device == first.device
    assert np.abs(first.to_host(total) - expected).max() <= 1e-10


@pytest.fixture
def tensors(monkeypatch):
    """Let estimators compute on two devices of torch, here both in host memory."""
    pytest.importorskip("torch")
    from ridgemark.backends.torch import TorchBackend

    class Second(TorchBackend):
        pass

    monkeypatch.setattr(TorchBackend, "others", lambda backend: () if isinstance(backend, Second) else (Second("cpu"),))
    return lambda: monkeypatch.setattr("ridgemark.estimators.computing.device_backend", lambda _: TorchBackend("cpu"))


OPTIONS = {"kernel": Gaussian(2.0), "random_state": 0}
ESTIMATORS = {
    "regression": lambda: NystromRidge(n_landmarks=80, ridge="loo", **OPTIONS),
    "gradient": lambda: NystromRidge(n_landmarks=80, ridge=1e-4, solver="gradient", **OPTIONS),
    "exact": lambda: ExactKernelRidge(ridge=1e-4, n_landmarks=80, **OPTIONS),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_fits_on_two_devices_agree(name, tensors, seen):
    expected = ESTIMATORS[name]().fit(X, Y).predict(X)
    tensors()
    assert np.abs(ESTIMATORS[name]().fit(X, Y).predict(X) - expected).max() <= 1e-9 * Y.std()
    assert {kind for kind, _, _ in seen} >= {"TorchBackend", "Second"}


def test_certificates_of_two_devices_agree(tensors):
    model = ESTIMATORS["regression"]().fit(X, Y)
    expected = model.certify(X, Y).bound
    tensors()
    assert model.certify(X, Y).bound == pytest.approx(expected, rel=1e-6)


def test_scores_of_two_devices_agree(tensors):
    expected = leverage_scores(X, ridge=1e-4, kernel=Gaussian(2.0), n_landmarks=80, random_state=0).lower
    tensors()
    found = leverage_scores(X, ridge=1e-4, kernel=Gaussian(2.0), n_landmarks=80, random_state=0, device="cuda").lower
    assert found == pytest.approx(expected, rel=1e-6)


def test_classes_on_two_devices_agree(tensors):
    labels = np.digitize(Y, [0.5, 1.5])
    model = NystromClassifier(n_landmarks=60, ridge=1e-4, **OPTIONS)
    expected = model.fit(X, labels).predict_proba(X)
    tensors()
    assert np.abs(model.fit(X, labels).predict_proba(X) - expected).max() <= 1e-6


def test_a_full_memory_of_one_device_gives_smaller_blocks(tensors, monkeypatch):
    import torch

    from ridgemark.losses.sums import LossSums

    model = NystromRidge(n_landmarks=80, ridge=1e-4, selection="uniform", **OPTIONS)
    expected, plain, rows = model.fit(X, Y).predict(X), LossSums.__call__, []

    def limited(task, block, workspace):
        if type(workspace.backend).__name__ == "Second" and block.n_rows > 40:
            raise torch.OutOfMemoryError("no memory")
        rows.append(block.n_rows)
        return plain(task, block, workspace)

    monkeypatch.setattr(LossSums, "__call__", limited)
    tensors()
    assert np.abs(model.fit(X, Y).predict(X) - expected).max() <= 1e-9 * Y.std()
    assert sum(rows) == len(X)
    assert max(rows) == BLOCK
    assert min(rows) <= BLOCK // 2
