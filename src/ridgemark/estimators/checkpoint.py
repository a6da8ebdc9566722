"""The checkpoint of a fit: whose it is, and the journal in it."""

import hashlib
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgemark.backends.threads import worker_threads
from ridgemark.errors import ParameterError
from ridgemark.passes import BlockFunction, Journal, RowPasses, open_journal
from ridgemark.rows import Block, DaskRows, RowSource, row_hashes, row_weights
from ridgemark.rows.files import file_state

_SHOWN = 60  # characters of a parameter in a message
_ROWS_AT_ONCE = 4096


@contextmanager
def checkpointed(estimator: Any, checkpoint: Any, source: RowSource) -> Iterator[tuple[Journal | None, Any]]:
    """Yield the journal of a fit, None without a checkpoint, and the `random_state` to use.

    With `random_state=None` a seed is drawn once and kept, so that the fit goes on with it.
    """
    if checkpoint is None:
        yield None, estimator.random_state
        return
    seed = estimator.random_state
    if not (seed is None or isinstance(seed, Integral)):
        raise ParameterError(
            f"a fit with a checkpoint needs random_state to be None or an integer, which a later run can repeat, got "
            f"{seed!r}"
        )
    begun = {"seed": int(np.random.default_rng().integers(2**31)) if seed is None else seed}
    with open_journal(checkpoint, _facts(estimator, source), begun) as (journal, kept):
        yield journal, kept["seed"]


def _facts(estimator: Any, source: RowSource) -> dict[str, str]:
    """Return what must be the same for a fit to go on."""
    parameters = {
        name: described(value) for name, value in estimator.get_params(deep=False).items() if name != "progress"
    }
    packages = ("ridgemark", "numpy", "scipy", "scikit-learn")
    return {
        "the estimator": type(estimator).__name__,
        **parameters,
        **{f"the version of {name}": _version(name) for name in packages},
        "the number of threads": str(worker_threads()),
        "the data": identity(source),
    }


def described(value: Any) -> str:
    """Return a parameter in words, with a digest where the words do not say all."""
    words = repr(value)
    if value is None or isinstance(value, str | bool | int | float):
        return words
    try:
        content = pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError):  # such as a local function
        content = words.encode()
    return f"{' '.join(words.split())[:_SHOWN]} ({hashlib.blake2b(content, digest_size=4).hexdigest()})"


def identity(source: RowSource) -> str:
    """Return a name of the rows: of files by inode, size and time of change; of others by a digest of all rows."""
    digest = hashlib.blake2b(digest_size=8)
    names = (source.n_rows, source.n_features, source.n_targets, source.has_weights, source.feature_names)
    digest.update(repr(names).encode())
    paths = getattr(source, "paths", ())
    digest.update(repr([file_state(path) for path in paths]).encode())
    if isinstance(source, DaskRows):
        marks = iter([RowPasses(source).map(BlockFunction("identity", _marks))])
    else:  # of files the first rows say which columns were chosen
        marks = map(_marks, islice(source.blocks(_ROWS_AT_ONCE), 1 if paths else None))
    for some in marks:
        digest.update(some.tobytes())
    return f"{source.n_rows:,} rows of {source.n_features} columns ({digest.hexdigest()})"


def _marks(block: Block) -> NDArray[np.uint64]:
    """Return a hash of each row with its targets and weight."""
    targets = np.empty((block.n_rows, 0)) if block.targets is None else block.targets
    parts = block.features.astype(np.float64, copy=False), np.column_stack([targets, row_weights(block)])
    rows, more = (row_hashes(Block(0, part)) for part in parts)
    marks = rows ^ (more << np.uint64(1))
    return marks if block.groups is None else marks ^ block.groups


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # used from a folder
        return "unknown"
