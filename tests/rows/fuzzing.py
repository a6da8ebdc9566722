"""Damage small data files and fit to each: a process of its own, which a crash may end.

`python -m tests.rows.fuzzing FIRST LAST KIND ...` prints the number of each damaged file before it is read, and what
went wrong: anything but a fit or an error of the package.
"""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ridgemark import NystromRidge, open_rows
from ridgemark.errors import RidgemarkError, RidgemarkWarning

N_ROWS = 40


def _numbers() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N_ROWS, 4)).round(3)


def _table() -> Any:
    import pyarrow as pa

    a, b, c, y = _numbers().T
    view = getattr(pa, "string_view", pa.large_string)()  # older versions have no such type
    words = np.array(["red", "green", "blue"])[np.arange(N_ROWS) % 3]
    columns = {
        "a": pa.array(a, mask=a > 1.5),
        "b": pa.array((1000 * b).astype(int)),
        "c": pa.array(c > 0),
        "text": pa.array(words.tolist()),
        "category": pa.array(words).dictionary_encode(),
        "date": pa.array((1000 * a).astype("datetime64[D]")),
        "time": pa.array((np.abs(c) * 10**9).astype(np.int64), pa.time64("ns")),
        "large": pa.array(words.tolist(), pa.large_string()),
        "view": pa.array([f"{word} and beyond twelve" for word in words], view),
        "y": pa.array(y),
    }
    return pa.table(columns)


def _csv() -> bytes:
    table = _table().to_pydict()
    rows = zip(*table.values(), strict=True)
    lines = [",".join(table), *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
    return "\n".join(lines).encode() + b"\n"


def _parquet() -> bytes:
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(_table(), file, row_group_size=16)
    return file.getvalue()


def _feather(compression: str | None) -> bytes:
    from pyarrow import ipc

    file = io.BytesIO()
    table = _table()
    with ipc.new_file(file, table.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, max_chunksize=16)
    return file.getvalue()


def _stream() -> bytes:
    from pyarrow import ipc

    file = io.BytesIO()
    table = _table()
    with ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=16)
    return file.getvalue()


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, _numbers())
    return file.getvalue()


def _npz(save: Callable[..., None]) -> bytes:
    file = io.BytesIO()
    X = _numbers()
    save(file, X=X[:, :3], y=X[:, 3], w=np.ones(N_ROWS), feature_names=np.array(["a", "b", "c"]))
    return file.getvalue()


KINDS: dict[str, Callable[[], bytes]] = {
    "csv": _csv,
    "parquet": _parquet,
    "feather": lambda: _feather("lz4"),
    "plain.feather": lambda: _feather(None),
    "stream.arrow": _stream,
    "npy": _npy,
    "npz": lambda: _npz(np.savez),
    "compressed.npz": lambda: _npz(np.savez_compressed),
}


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes with one or a few of them changed, removed or added."""
    changed = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        at = int(rng.integers(len(changed)))
        match rng.choice(["any", "bit", "extreme", "remove", "add", "cut"], p=[0.3, 0.3, 0.25, 0.05, 0.05, 0.05]):
            case "any":
                changed[at] = rng.integers(256)
            case "bit":
                changed[at] ^= 1 << int(rng.integers(8))
            case "extreme":
                changed[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
            case "remove":
                del changed[at]
            case "add":
                changed.insert(at, int(rng.integers(256)))
            case _:
                del changed[max(1, at) :]
    return bytes(changed)


def _fit(path: Path) -> None:
    target = {".npy": 3, ".npz": None}.get(path.suffix, "y")
    model = NystromRidge("gaussian", bandwidth=1.0, ridge=1e-2, n_landmarks=10, selection="uniform", random_state=0)
    model.fit(open_rows(path, target=target, weight="w" if path.suffix == ".npz" else None))


def main(first: int, last: int, *kinds: str) -> None:
    """Fit to damaged files of some kinds, and print what went wrong."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RidgemarkWarning)
        for kind in kinds:
            content, path = KINDS[kind](), Path(folder) / f"rows.{kind}"
            for number in range(first, last):
                print("reading", kind, number, flush=True)
                path.write_bytes(damaged(content, np.random.default_rng(number)))
                try:
                    _fit(path)
                except RidgemarkError as error:
                    if "\n" in str(error):
                        print("wrong: several lines:", repr(error), flush=True)
                except BaseException as error:
                    print("wrong:", repr(error), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
