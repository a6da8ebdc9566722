"""Effects at the rows of a block, and the sums of them that averages need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Array, Backend, Floats, backend_of
from ridgemark.effects.columns import Effect
from ridgemark.kernels.gradient import Gradient
from ridgemark.losses import Loss
from ridgemark.operators import CrossTask
from ridgemark.passes import Summed, Workspace
from ridgemark.rows import Block, dense, row_weights


class EffectTask(CrossTask):
    """A task on the changes of kernel values: `dk(x, z)/dx_j`, or `k(x after, z) - k(x before, z)`."""

    what: ClassVar[str] = "effects"
    arrays: ClassVar[int] = 3
    effects: Sequence[Effect]
    dual_coef: Floats  # (p, targets)

    @property
    def width(self) -> int:
        return super().width + len(self.effects) * self.dual_coef.shape[1]

    def changes(self, rows: Floats) -> tuple[Gradient, list[int], list[int], Iterator[tuple[int, Floats]]]:
        """Return the gradient, the effects that are derivatives and their columns; other effects with differences."""
        derivatives = [k for k, effect in enumerate(self.effects) if not effect.before]
        gradient = Gradient([])
        if derivatives:
            gradient = self.cross_kernel.kernel.gradient(rows, _dense(self.cross_kernel.landmarks))
        return gradient, derivatives, [self.effects[k].columns[0] for k in derivatives], self._differences(rows)

    def _differences(self, rows: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the number of each effect that is a difference, with the change of kernel values."""
        setting, first = None, np.empty(0)
        for k, effect in enumerate(self.effects):
            if effect.before:
                if setting != (effect.columns, effect.before):  # the same for all levels of a category
                    setting = effect.columns, effect.before
                    first = self._changed(rows, *setting)
                yield k, self._changed(rows, effect.columns, effect.after) - first

    def _changed(self, rows: Floats, columns: Sequence[int], levels: Sequence[float]) -> Floats:
        """Return the kernel values of the rows with some columns set to these levels."""
        backend = self.cross_kernel.backend
        changed = backend.xp.asarray(rows, copy=True)
        changed[:, list(columns)] = backend.from_host(np.array(levels))
        return backend.double(self.cross_kernel(changed))


class EffectValues(EffectTask):
    """Effects at the rows of a block, shape (rows, effects, targets)."""

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        return self.values_and_sums(_dense(block.features), row_weights(block), workspace.backend)[0]

    def values_and_sums(self, rows: Array, weights: Array, backend: Backend) -> tuple[Array, Array]:
        """Return the effects, and for every landmark z and effect `sum_i w_i` times the change of k(x_i, z)."""
        values = backend.empty((len(rows), len(self.effects), self.dual_coef.shape[1]))
        sums = backend.empty((len(self.dual_coef), len(self.effects)))
        gradient, derivatives, columns, differences = self.changes(rows)
        if derivatives:
            values[:, derivatives] = gradient.of_functions(self.dual_coef)[:, columns]
            sums[:, derivatives] = gradient.sums(weights)[:, columns]
        for k, difference in differences:
            values[:, k] = difference @ self.dual_coef
            sums[:, k] = weights @ difference
        return values, sums


class PredictedEffects(EffectTask):
    """Effects on `exp(f(x))`, or what else a loss predicts, at the rows of a block, shape (rows, effects, targets)."""

    loss: Loss
    intercept: Floats

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        backend, rows = workspace.backend, _dense(block.features)
        values = backend.empty((len(rows), len(self.effects), self.dual_coef.shape[1]))
        gradient, derivatives, columns, _ = self.changes(rows)
        if derivatives:
            predictor = backend.double(self.cross_kernel(rows)) @ self.dual_coef + self.intercept
            slope = backend.from_host(self.loss.predicted_slope(backend.to_host(predictor)))
            values[:, derivatives] = gradient.of_functions(self.dual_coef)[:, columns] * slope[:, None]
        for k, effect in enumerate(self.effects):
            if effect.before:
                after, before = (
                    self._predicted(self._changed(rows, effect.columns, levels), backend)
                    for levels in (effect.after, effect.before)
                )
                values[:, k] = after - before
        return values

    def _predicted(self, kernel_values: Array, backend: Backend) -> Array:
        predictor = backend.to_host(kernel_values @ self.dual_coef + self.intercept)
        return backend.from_host(self.loss.predicted(predictor))


class EffectTotals(EffectValues):
    """The sums that average effects need, with the effects at some rows."""

    stride: int  # rows from one that is kept to the next

    def __call__(self, block: Block, workspace: Workspace) -> Totals:  # type: ignore[override]
        weights, xp = row_weights(block), workspace.backend.xp
        values, changes = self.values_and_sums(_dense(block.features), weights, workspace.backend)
        kept = slice(-block.start % self.stride, None, self.stride)
        first, second = (xp.tensordot(weights, values**power, axes=1) for power in (1, 2))
        size, square = float(weights.sum()), float(weights @ weights)
        return Totals(size, square, changes, first, second, [xp.asarray(values[kept], copy=True)], [weights[kept]])


class EffectDeviations(EffectTask):
    """Standard errors of the effects on one target at the rows of a block, without bias, shape (rows, effects)."""

    root: Floats  # (p, k): R, with `R R'` the covariance of the coefficients of the landmarks' kernel values

    def __call__(self, block: Block, workspace: Workspace) -> Floats:
        rows = _dense(block.features)
        values = workspace.backend.empty((len(rows), len(self.effects)))
        gradient, derivatives, columns, differences = self.changes(rows)
        derived = ((k, gradient.column(j)) for k, j in zip(derivatives, columns, strict=True))
        for k, change in chain(derived, differences):
            values[:, k] = workspace.backend.xp.sqrt(workspace.backend.squared_norms(change @ self.root))
        return values


@dataclass(frozen=True, eq=False)
class Totals(Summed):
    """Weighted sums over blocks, and the effects at some rows."""

    weight: float
    square: float  # sum of squared weights
    changes: Floats  # (p, effects): of kernel values with the landmarks
    first: Floats  # (effects, targets): of effects, and of their squares
    second: Floats
    values: list[Floats]
    weights: list[Floats]


def _dense(rows: Any) -> Array:
    return backend_of(rows).double(dense(rows))
