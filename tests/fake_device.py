"""A device without hardware: tensors in host memory that may not meet tensors or arrays of the host.

On a GPU such a meeting is an error, and in host memory it is not noticed. While a `FakeDevice` is entered, tensors that
`TorchBackend.from_host` made, and those computed from them or made with `device=`, are on the device.
"""

from contextlib import contextmanager

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from ridgemark.backends.torch import TorchBackend

_TO_HOST = ("numpy", "__array__", "tolist", "__dlpack__")
_ARRAYS = (torch.Tensor, np.ndarray)


class FakeDevice(TorchFunctionMode):
    """Follows where every tensor is."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        given = list(_arrays((args, kwargs)))
        here = [one for one in given if _is_here(one)]
        if here and name != "__get__":
            if name in _TO_HOST:
                raise TypeError(f"{name} of a tensor that is on the device")
            # Indices may be on the host, and so may single numbers.
            others = [
                one for one in given if not _is_here(one) and one.ndim and one.dtype not in (np.intp, torch.int64)
            ]
            if others:
                raise RuntimeError(f"{name} of what is on the device with a {type(others[0]).__name__} of the host")
        found = function(*args, **kwargs)
        if name == "cpu":
            return _marked(found.clone() if found is args[0] else found, False)
        if here or kwargs.get("device") is not None:
            for one in _arrays(found):
                _marked(one, True)
        return found


def _arrays(value):
    """Yield the tensors and arrays in nested tuples, lists and dictionaries; torch's own walk is much slower."""
    if isinstance(value, _ARRAYS):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _arrays(one)
    elif isinstance(value, dict):
        yield from _arrays(list(value.values()))


def _is_here(value):
    return getattr(value, "is_on_fake_device", False)


def _marked(value, here):
    if isinstance(value, torch.Tensor):
        value.is_on_fake_device = here
    return value


@contextmanager
def fake_device(monkeypatch):
    """Enter a fake device in everything that estimators compute on tensors."""
    from ridgemark.estimators import computing

    plain, from_host = computing.on_device, TorchBackend.from_host

    def sent(backend, values, like=None):
        with torch._C.DisableTorchFunction():
            found = from_host(backend, values, like)
        return _marked(found, True) if isinstance(values, np.ndarray) else found

    @contextmanager
    def on_device(device, tensors):
        with plain(device, tensors), FakeDevice():
            yield

    monkeypatch.setattr(TorchBackend, "from_host", sent)
    for place in ("estimators.computing", "functions"):
        monkeypatch.setattr(f"ridgemark.{place}.on_device", on_device)
    yield
