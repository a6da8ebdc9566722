"""What is measured of a fit on its own rows or on others, as plain values for pages and printed lines."""

import sys
from contextlib import suppress
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from ridgemark.estimators.measuring import classes, losses, numbers
from ridgemark.estimators.table_reader import encoded_source
from ridgemark.fitted import RunRecord
from ridgemark.report.fit_words import predicts
from ridgemark.rows import RowSource
from ridgemark.rows.distinct import count_distinct, row_hashes, share_in_common

_KINDS = {"numbers": numbers, "classes": classes, "losses": losses}
_HASHED = 65536  # rows hashed at a time
_DIFFERENT = 0.9  # share of distinct rows from which on the features of a row identify it


def kind_of(model: Any) -> ModuleType:
    """Return the functions for what a model predicts."""
    return _KINDS[predicts(model)]


def measure(model: Any, about: RunRecord, source: RowSource, kind: str | None = None) -> RunRecord:
    """Calibrate and certify a fitted model; return the record with its errors, memory and waiting."""
    kind_of(model).certify(model, source, kind)
    return replace(
        about,
        n_rows=source.n_rows,
        sample=kind_of(model).sample(model, source),
        peak_bytes=_peak_memory(),
        waiting_share=model.waiting_share_,
    )


def held_out(model: Any, source: RowSource) -> dict[str, Any]:
    """Return the errors on rows that are not those of the fit, and how many have features of these."""
    repeated = round(repeated_share(model, encoded_source(model, source)) * source.n_rows)
    return {"n_rows": source.n_rows, "repeated": repeated} | kind_of(model).held_out(model, source)


def repeated_share(model: Any, source: RowSource) -> float:
    """Return the share of rows whose features are those of a training row, by the smallest hashes of these.

    An estimate for more than 2,048 training rows. Zero where many training rows have equal features, so that equal
    features do not tell the same row; and for a fit of all rows, which keeps no hashes.
    """
    facts = getattr(model._model, "rows", None)
    if facts is None or count_distinct(facts.hashes) < _DIFFERENT * model._model.choice.sums.n_rows:
        return 0.0
    return share_in_common(facts.hashes, _hashes(source))


def are_those_of_fit(model: Any, source: RowSource) -> bool:
    """Return whether these are the rows of the fit: as many, and with the same smallest hashes of their features."""
    facts = getattr(model._model, "rows", None)
    if facts is None or source.n_rows != model._model.choice.sums.n_rows:
        return False
    smallest = np.unique(_hashes(encoded_source(model, source)))[: len(facts.hashes)]
    return np.array_equal(smallest, facts.hashes)


def _hashes(source: RowSource) -> Any:
    return np.concatenate([row_hashes(block) for block in source.blocks(_HASHED)])


def _peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None where the system does not report it."""
    with suppress(ImportError):
        import resource  # not on Windows

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return int(peak if sys.platform == "darwin" else peak * 1024)
    return None
