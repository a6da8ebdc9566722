"""A model file is refused if any byte has changed."""

import io
import json
import os
import pickle
import re
import struct
import time

import numpy as np
import pytest
from safetensors import safe_open

import ridgemark
from ridgemark.errors import ModelFileError
from ridgemark.kernels import Gaussian
from ridgemark.persistence import read_model, write_model
from ridgemark.persistence.container import FORMAT
from ridgemark.rows.files import MAX_LOADED_BYTES
from tests.persistence.cases import fitted, forge, parse, place_of, same


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    model, new = fitted()
    path = tmp_path_factory.mktemp("whole") / "whole.model"
    return model.save(path).read_bytes(), model.predict(new), new


def test_the_file_is_laid_out_as_documented(model_file, tmp_path):
    """Read with safetensors, JSON and SHA-256 only."""
    data, _, _ = model_file
    header, arrays = parse(data)
    assert header["format"] == FORMAT
    assert list(header["model"]["Contents"]["estimator"]) == ["NystromRidge"]
    form, name = place_of(header, "model.fitted.schema.n_features")
    assert form[name] == 3
    assert arrays["model.fitted.function.points"].shape == (20, 3)
    (tmp_path / "m").write_bytes(data)
    with safe_open(tmp_path / "m", "np") as file:
        assert list(file.metadata()) == ["ridgemark"]
        assert same(file.get_tensor("model.fitted.sums.root"), arrays["model.fitted.sums.root"])


def test_arrays_of_every_type_come_back(tmp_path):
    types = ["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
    arrays = {name: np.arange(6).reshape(2, 3).astype(name) for name in types}
    arrays |= {"scalar": np.array(3.5), "none": np.empty((0, 4)), "wide": np.ones((1, 7))}
    write_model(tmp_path / "m", {"é": ["\udcff"]}, arrays, True)
    header, found = read_model(tmp_path / "m")
    assert header == {"format": FORMAT, "é": ["\udcff"]}
    assert same(found, arrays)


def _corruption(data, rng):
    """One random corruption: a flipped bit, a truncation, a hole, an insertion, swapped or overwritten sections."""
    start, stop = np.sort(rng.integers(0, len(data), 2))
    block = 64 * int(rng.integers(1, 9))
    here, there = np.sort(64 * rng.choice(len(data) // 64, 2, replace=False))
    block = min(block, there - here, len(data) - there)
    kind = rng.choice(["flip", "cut", "delete", "insert", "swap", "zero", "repeat"])
    if kind == "flip":
        return bytes([*data[:start], data[start] ^ (1 << rng.integers(8)), *data[start + 1 :]])
    if kind == "cut":
        return data[:start]
    if kind == "delete":
        return data[:start] + data[stop + 1 :]
    if kind == "insert":
        return data[:start] + rng.bytes(int(rng.integers(1, 100))) + data[start:]
    if kind == "swap":
        first, second = data[here : here + block], data[there : there + block]
        return data[:here] + second + data[here + block : there] + first + data[there + block :]
    if kind == "zero":
        return data[:start] + bytes(stop - start) + data[stop:]
    return data[:start] + data[start:stop] + data[start:]


@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.slow)])
def test_every_corruption_is_refused_or_predicts_the_same_bits(count, model_file, tmp_path):
    data, predictions, new = model_file
    rng, path, unharmed = np.random.default_rng(count), tmp_path / "m", 0
    for _ in range(count):
        corrupted = _corruption(data, rng)
        path.write_bytes(corrupted)
        try:
            loaded = ridgemark.load(path)
        except ModelFileError:
            assert corrupted != data
        else:
            unharmed += 1
            assert same(loaded.predict(new), predictions)
    assert unharmed < count / 10  # only swaps of equal bytes, or empty ones


def test_the_error_of_a_truncated_file_states_both_sizes(model_file, tmp_path):
    data, path = model_file[0], tmp_path / "m"
    path.write_bytes(data[:-100])
    with pytest.raises(ModelFileError, match=f"it has {len(data) - 100} bytes and should have {len(data)};"):
        ridgemark.load(path)


def test_every_byte_is_covered_by_the_checksum(tmp_path):
    path = tmp_path / "m"
    write_model(path, {"text": "some", "number": 2.5}, {"x": np.arange(3.0), "y": np.ones((1, 2), np.float32)}, True)
    data = path.read_bytes()
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :])
        with pytest.raises(ModelFileError):
            read_model(path)
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            read_model(path)


def _earlier(number):
    return struct.pack("<8sQQQ", b"\x93RIDGMRK", number, 2, 66) + b"{}" + bytes(32)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"is damaged: it is empty \(0 bytes\)"),
        (b"hello, world\n" * 10, r"is not a model file of this ridgemark: it begins with b'hello, w'"),
        (b"a", "is not a model file of this ridgemark"),
        (pickle.dumps({"a": 1}), "is not a model file of this ridgemark: it is a pickle, which is never loaded"),
        (_earlier(1), "is of format 1 or 2, which an earlier ridgemark wrote; fit and save the model again"),
        (_earlier(2), "is of format 1 or 2, which an earlier ridgemark wrote; fit and save the model again"),
        (forge({}, number=FORMAT + 1), f"has format {FORMAT + 1}, and this ridgemark .* install a newer ridgemark"),
        (forge({}, number=FORMAT - 1), f"has format {FORMAT - 1}, and this ridgemark .* fit and save the model again"),
        (forge({}, number=0), "is damaged"),
        (forge({}, number=True), "is damaged"),
        (forge({}, number="3"), "is damaged"),
        (b"\x02" + bytes(7) + b"{}", "is a safetensors file, but not a ridgemark model file"),
    ],
    ids=["empty", "text", "letter", "pickle", "1", "2", "newer", "older", "0", "flag", "word", "other safetensors"],
)
def test_the_error_names_the_kind_of_a_foreign_file(content, message, tmp_path):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        ridgemark.load(tmp_path / "m")


def test_the_error_names_the_kind_of_a_numpy_file(tmp_path):
    for save, message in ((np.savez, "npz or zip archive"), (np.save, r"NumPy \.npy array")):
        buffer = io.BytesIO()
        save(buffer, np.eye(3))
        (tmp_path / "m").write_bytes(buffer.getvalue())
        with pytest.raises(ModelFileError, match=message):
            ridgemark.load(tmp_path / "m")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"format":' * 50_000,
        "[]",
        "{}",
        "null",
        "1" * 9999,
        "",
        "x",
        f'{{"format": {FORMAT}}}',
        '{"format": NaN}',
    ],
)
def test_an_invalid_header_is_refused(text, tmp_path):
    (tmp_path / "m").write_bytes(forge(text))
    with pytest.raises(ModelFileError):
        ridgemark.load(tmp_path / "m")


HUGE = 1 << 45


@pytest.mark.parametrize(
    "form",
    [
        {"dtype": "F64", "shape": [HUGE], "data_offsets": [0, 8 * HUGE]},
        {"dtype": "F64", "shape": [HUGE, HUGE], "data_offsets": [0, 16]},
        {"dtype": "F64", "shape": [-1], "data_offsets": [0, 16]},
        {"dtype": "F64", "shape": [2], "data_offsets": [16, 0]},
        {"dtype": "F64", "shape": [True], "data_offsets": [0, 16]},
        {"dtype": "O", "shape": [2], "data_offsets": [0, 16]},
        {"dtype": "BF16", "shape": [8], "data_offsets": [0, 16]},
        {"dtype": "F64", "shape": [2], "data_offsets": [0]},
        {"dtype": "F64", "shape": [2]},
        {"dtype": "F64", "shape": 2, "data_offsets": [0, 16]},
        {"dtype": "F64", "shape": [0] * 100, "data_offsets": [0, 0]},
        [],
        None,
    ],
)
def test_a_missing_array_is_refused_before_memory_is_allocated(form, tmp_path):
    text = json.dumps({"__metadata__": {"ridgemark": "0" * 64 + f'{{"format": {FORMAT}}}'}, "x": form}).encode()
    (tmp_path / "m").write_bytes(len(text).to_bytes(8, "little") + text + bytes(16))
    with pytest.raises(ModelFileError, match="is damaged"):
        ridgemark.load(tmp_path / "m")


def _sparse_file(path, size, beginning=b""):
    path.write_bytes(beginning)
    os.truncate(path, size)


def test_a_sparse_file_of_40_gigabytes_is_refused_at_once(tmp_path):
    size, path = 40 * 10**9, tmp_path / "m"
    header = {"__metadata__": {"ridgemark": "0" * 64 + f'{{"format": {FORMAT}}}'}}
    form = {"dtype": "F64", "shape": [size // 8], "data_offsets": [0, size]}
    honest, silent = (json.dumps(header | more).encode() for more in ({"x": form}, {}))
    begin = time.perf_counter()
    for text, whole, message in (
        (b"", size, "is not a model file of this ridgemark"),
        (silent, size, "and should have"),
        (honest, 8 + len(honest) + size, re.escape(MAX_LOADED_BYTES.name)),
    ):
        _sparse_file(path, whole, len(text).to_bytes(8, "little") + text)
        with pytest.raises(ModelFileError, match=message):
            ridgemark.load(path)
    assert time.perf_counter() - begin < 2.0


def test_the_limit_on_the_size_can_be_raised(tmp_path, monkeypatch):
    model, new = fitted()
    path = model.save(tmp_path / "m")
    monkeypatch.setenv(MAX_LOADED_BYTES.name, str(path.stat().st_size - 1))
    with pytest.raises(ModelFileError, match=MAX_LOADED_BYTES.name):
        ridgemark.load(path)
    monkeypatch.setenv(MAX_LOADED_BYTES.name, str(path.stat().st_size))
    assert same(ridgemark.load(path).predict(new), model.predict(new))


def test_a_lack_of_memory_is_a_clear_error(tmp_path, monkeypatch):
    path = fitted()[0].save(tmp_path / "m")

    def fail(data):
        raise MemoryError

    monkeypatch.setattr("safetensors.numpy.load", fail)
    with pytest.raises(ModelFileError, match="needs more memory than is available"):
        ridgemark.load(path)


def test_a_missing_file_a_directory_and_a_pipe_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, message in (
        ("missing", "there is no file"),
        ("x" * 300, "cannot be read: File name too long"),
        ("missing/model", "there is no file"),
        (".", "is a directory"),
        ("pipe", "is not a regular file"),
        ("a\0b", "null"),
    ):
        with pytest.raises(ModelFileError, match=message) as caught:
            ridgemark.load(tmp_path / name)
        assert isinstance(caught.value, OSError)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("path", [None, 3, b"model", "", ["model"], Gaussian()], ids=repr)
def test_an_invalid_path_is_refused(path):
    for use in (fitted()[0].save, ridgemark.load):
        with pytest.raises(ridgemark.errors.ParameterError, match="path must be the name of a model file"):
            use(path)
