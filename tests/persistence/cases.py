"""Parse model files, and build files with a valid checksum and arbitrary contents."""

import dataclasses
import hashlib
import json
import struct
import warnings
from functools import partial

import numpy as np
from safetensors.numpy import load, save
from scipy import sparse

from ridgemark import ExactKernelRidge, NystromRidge
from ridgemark.kernels import ColumnMap, Gaussian, Laplacian, Linear, Matern12, Matern32, Mixture
from ridgemark.persistence.container import FORMAT
from ridgemark.tuning import Tuner


def same(one, other):
    """Return whether two values are equal in type, bits and memory order."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        form = one.dtype == other.dtype and one.shape == other.shape and one.flags.fnc == other.flags.fnc
        return form and (one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes())
    if isinstance(one, float):
        return struct.pack("<d", one) == struct.pack("<d", other)
    if sparse.issparse(one):
        parts = ("data", "indices", "indptr")
        return one.shape == other.shape and all(same(getattr(one, part), getattr(other, part)) for part in parts)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if dataclasses.is_dataclass(one):
        kept = [f.name for f in dataclasses.fields(one) if f.compare]
        return all(same(getattr(one, name), getattr(other, name)) for name in kept)
    return one == other


def changed(fitted, name, value):
    """Return a record with one entry, `part.field`, changed."""
    part, field = name.split(".")
    return dataclasses.replace(fitted, **{part: dataclasses.replace(getattr(fitted, part), **{field: value})})


def untimed(fitted):
    """Return the record without the time its certificate took."""
    if getattr(fitted, "solution", None) is None or fitted.solution.certificate is None:
        return fitted
    old = fitted.solution.certificate
    cost = {name: value for name, value in old.cost.items() if name != "seconds"}
    new = dataclasses.replace(old, inputs=dict(old.inputs), cost=cost)
    return changed(fitted, "solution.certificate", new)


def fitted(n=150, **options):
    """Return a small model and new rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    return NystromRidge(**{"bandwidth": "median", "n_landmarks": 20, "random_state": 0} | options).fit(
        X, y
    ), rng.normal(size=(40, 3))


def parse(data):
    """Return the header and the arrays of a model file, without code of the package."""
    length = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + length])["__metadata__"]["ridgemark"]
    arrays = {name: array.copy() for name, array in load(data).items()}
    assert entry[:64] == checksum(entry[64:], arrays)
    return json.loads(entry[64:]), arrays


def place_of(header, path):
    """Return the container of an entry `model.part.field`, and its key there; tags are no part of the path."""
    container, key = {"header": header}, "header"
    for name in path.split("."):
        container = container[key]
        if isinstance(container, dict) and name not in container:
            [container] = container.values()
        key = int(name) if isinstance(container, list) else name
    return container, key


def checksum(text, arrays):
    """Return the SHA-256 of the JSON and of every array's name, type, shape and bytes."""
    data = text.encode()
    for name in sorted(arrays):
        data += f"\n{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode() + arrays[name].tobytes()
    return hashlib.sha256(data).hexdigest()


def forge(header, arrays=None, number=FORMAT):
    """Return a file with a valid checksum and these contents."""
    text = header if isinstance(header, str) else json.dumps({"format": number} | header)
    arrays = {name: np.ascontiguousarray(array) for name, array in (arrays or {"x": np.zeros(1)}).items()}
    return save(arrays, {"ridgemark": checksum(text, arrays) + text})


_RNG = np.random.default_rng(1)
X, NEW = _RNG.normal(size=(300, 3)), _RNG.normal(size=(50, 3))
Y = np.column_stack([X[:, 0] ** 2, X[:, 1] + 0.1 * _RNG.normal(size=300)])


def fit(model, X, y, sample_weight=None):
    """Fit without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, sample_weight)


ridge, exact = (
    partial(kind, bandwidth="median", n_landmarks=25, random_state=0) for kind in (NystromRidge, ExactKernelRidge)
)
FEW = Tuner(rows=100, judging_rows=50, landmarks=20, evaluations=4, kernels=("gaussian",))
KERNEL_MATRIX = Gaussian(2.0)(X)
MIXTURE = Mixture(
    [Gaussian(2.0), Matern12(4.0), Matern32(0.7)],
    [Laplacian(np.array([1.0, 2.0, 3.0])), Linear(widths=2.0)],
    weights=np.array([0.4, 0.1, 0.2, 0.3, 0.05]),
    metric=np.array([[1.0, 0.2], [0.0, 0.5], [-0.3, 0.1]]),
    columns=ColumnMap(np.full(3, -2.0), np.full(3, 1.5), np.zeros(3), np.array([0.0, 1.0, 0.0])),
)
MODELS = {
    "default": lambda: fit(ridge(), X, Y[:, 0]),
    "tuned": lambda: fit(ridge(bandwidth=FEW, ridge=1e-3), X, Y[:, 0]),
    "exact tuned": lambda: fit(exact(bandwidth=FEW, ridge=1e-2), X, Y[:, 0]),
    "mixture": lambda: fit(ridge(kernel=MIXTURE), X, Y[:, 0]),
    "exact mixture": lambda: fit(exact(kernel=MIXTURE, ridge=1e-3), X, Y),
    "two targets": lambda: fit(ridge(ridge_per_target=True), X, Y),
    "one column": lambda: fit(ridge(ridge=1e-3), X, Y[:, :1]),
    "gradient": lambda: fit(ridge(ridge=1e-2, solver="gradient"), X, Y),
    "uniform": lambda: fit(ridge(selection="uniform", bandwidth=1.0, ridge=1e-3), X, Y[:, 0]),
    "to tolerance": lambda: fit(ridge(certify_with="audit", risk_tolerance=0.5), X, Y[:, 0]),
    "partial": lambda: ridge().partial_fit(X, Y).partial_fit(X, Y),
    "calibrated": lambda: fit(ridge(ridge=1e-3), X, Y).calibrate(X, Y),
    "weighted": lambda: fit(ridge(), X, Y[:, 0], np.arange(300) % 3),
    "sparse": lambda: fit(ridge(ridge=1e-3), sparse.csr_matrix(X), Y[:, 0]),
    "sparse array": lambda: fit(ridge(), sparse.csr_array(X), Y[:, 0]),
    "precomputed": lambda: fit(ridge(kernel="precomputed"), KERNEL_MATRIX, Y[:, 0]),
    "exact": lambda: fit(exact(ridge=1e-3), X, Y),
    "exact search": lambda: fit(exact(), X, Y[:, 0]),
    "exact sparse": lambda: fit(exact(ridge=1e-3), sparse.csr_array(X), Y[:, 0]),
    "exact precomputed": lambda: fit(exact(kernel="precomputed", ridge=1e-3), KERNEL_MATRIX, Y[:, 0]),
}
