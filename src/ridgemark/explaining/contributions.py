"""What each column contributes to a prediction, in comparison with rows of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Floats, Indices
from ridgemark.errors import require
from ridgemark.explaining.factors import column_sum, mapped
from ridgemark.explaining.path import PathIntegrals
from ridgemark.explaining.shapley import Rule, Shapley
from ridgemark.kernels import Kernel
from ridgemark.passes import RowPasses, Task, Workspace
from ridgemark.rows import Block, dense

_PILOT = 4, 12  # rows and background rows on which the number of nodes is chosen
_ROUNDING = 1e-13  # of sums in double precision, as a share
_SAFETY = 3.0  # factor from the error on the pilot to the one stated
Method = Shapley | PathIntegrals


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each column contributes to the predictions at some rows, of classes to the log-odds.

    Attributes
    ----------
    values : array of shape (n, n_features) or (n, n_features, n_outputs)
        The contributions; those of a row add up to its prediction minus `base`.
    base : float or array of shape (n_outputs,)
        The mean prediction over the background.
    kind : {"shapley", "path"}
        Interventional Shapley values, where the kernel is a sum of products over columns. With "path", parts of the
        kernel that are not such products have path integrals (Aumann-Shapley values), along straight lines between
        the features that the kernel sees.
    error : array of shape (n,) or (n, n_outputs)
        An estimate of the largest error of a contribution in each row, of the quadrature and of rounding.
    column_names : tuple of str
        The names of the columns.
    data : array or None
        The rows, where they were given as an array or a table.
    """

    values: Floats
    base: Any
    kind: str
    error: Floats
    column_names: tuple[str, ...]
    data: Any = None

    def largest(self, row: int, most: int = 10) -> list[tuple[str, Any]]:
        """Return the columns with the largest contributions to one row, by their sizes over the outputs."""
        values = self.values[row]
        sizes = abs(values) if values.ndim == 1 else abs(values).max(axis=1)
        return [(self.column_names[j], values[j]) for j in np.argsort(-sizes, kind="stable")[:most]]

    def to_shap(self) -> Any:
        """Return a `shap.Explanation` of these values, for the plots of the package shap."""
        shap = require("shap", "An explanation of shap", "shap")
        base = np.broadcast_to(self.base, (len(self.values), *np.shape(self.base)))
        return shap.Explanation(
            values=self.values, base_values=np.array(base), data=self.data, feature_names=list(self.column_names)
        )


class ContributionTask(Task):
    """Contributions at the rows of a block, and their errors, shape (rows, columns + 1, outputs)."""

    what: ClassVar[str] = "contributions"
    on_device: ClassVar[bool] = False
    kernel: Kernel
    methods: Sequence[tuple[Method, Rule, float]]  # each with its error, as a share of the sum of sizes

    @property
    def width(self) -> int:
        """Numbers for each row: kernel values at all background rows."""
        method, *_ = self.methods[0]
        return len(method.rows) * len(method.points)

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        """Return the contributions, and below them their errors."""
        rows = _seen(self.kernel, block.features)
        parts = [(method.values(rows, rule), share) for method, rule, share in self.methods]
        error = sum(share * abs(values).sum(axis=1, keepdims=True) for values, share in parts)
        return np.concatenate([sum(values for values, _ in parts), error], axis=1)


def contributions_of(
    passes: RowPasses,
    kernel: Kernel,
    points: Any,
    dual_coef: Floats,
    background: Any,
    weights: Floats,
    owners: Indices,
    n_columns: int,
    gaps: Floats,
) -> tuple[Floats, Floats, str]:
    """Return contributions (n, columns, outputs), errors (n, outputs), and their kind.

    `owners` has the column of each feature, ascending. `gaps` are the predictions minus their mean over the background,
    (n, outputs), to which the contributions of a row add up: what the quadrature leaves of it is spread over the
    columns in proportion to the sizes of their contributions, and counts as error.
    """
    used, starts = np.unique(owners, return_index=True)
    parts = column_sum(mapped(kernel, points)[0], len(owners))
    seen = _seen(kernel, points), dual_coef, starts, _seen(kernel, background), weights / weights.sum()
    methods: list[Method] = [Shapley(parts, *seen)] if parts.products or parts.linear else []
    methods += [PathIntegrals(parts.others, *seen)] if parts.others else []
    pilot = _seen(kernel, passes.take(_some(passes.source.n_rows, _PILOT[0])).features)
    computed = passes.map(ContributionTask(kernel, [(method, *_accurate_rule(method, pilot)) for method in methods]))
    values, errors = computed[:, :-1], computed[:, -1]
    missing, sizes = gaps - values.sum(axis=1), abs(values)
    total = sizes.sum(axis=1)[:, None]
    values += np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0.0) * missing[:, None]
    every = np.zeros((len(values), n_columns, values.shape[2]))
    every[:, used] = values
    return every, errors + abs(missing), "path" if parts.others else "shapley"


def _accurate_rule(method: Method, rows: Floats) -> tuple[Rule, float]:
    """Return the fastest accurate rule on some rows, and its error as a share of the sum of a row's contributions."""
    some = _some(len(method.rows), _PILOT[1])
    pilot = replace(method, rows=method.rows[some], weights=np.full(len(some), 1.0 / len(some)))
    expected = pilot.values(rows, method.finest)
    size = abs(expected).sum(axis=1)
    for rule in method.rules:
        error = abs(pilot.values(rows, rule) - expected).max(axis=1)
        share = float(np.max(error / np.where(size > 0.0, size, 1.0), initial=0.0))
        if share <= method.accurate:
            break
    return rule, max(_ROUNDING, _SAFETY * share)


def _some(count: int, most: int) -> Indices:
    """Return at most so many positions, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.intp))


def _seen(kernel: Kernel, rows: Any) -> Floats:
    """Return dense rows as the kernel sees them, after the map of its columns."""
    return np.asarray(mapped(kernel, dense(rows))[1], dtype=np.float64)
