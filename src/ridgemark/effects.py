"""What the columns do to predictions: effects of each, their averages with errors, and shares of derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from ridgemark.backends import Array, Backend, Floats, backend_of
from ridgemark.errors import NumericalError, ParameterError
from ridgemark.intervals import Calibration, noise_terms
from ridgemark.intervals.quantiles import quantiles
from ridgemark.kernels import CrossKernel
from ridgemark.kernels.base import count_rows
from ridgemark.kernels.gradient import Gradient
from ridgemark.losses import Loss
from ridgemark.operators import CrossTask
from ridgemark.passes import RowPasses, Summed, Workspace
from ridgemark.rows import Block, dense, row_weights
from ridgemark.rows.places import as_written
from ridgemark.solvers import LandmarkFit
from ridgemark.tables.dates import ELAPSED
from ridgemark.tables.schema import CODE, MISSING, VALUE, Field, Schema

_MOST_ROWS = 2**16  # whose effects are kept for quartiles
_MOST_ENTRIES = 20_000_000  # of the gradients that are averaged


@dataclass(frozen=True)
class Effect:
    """The derivative by one column; or, with levels, what the prediction changes from one setting to another.

    Several columns that encode one category make one effect: `columns` are set to `before`, and then to `after`.
    """

    name: str
    columns: tuple[int, ...]
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    levels: tuple[str, ...] = ()  # words for both settings

    @property
    def unit(self) -> str:
        """What the effect is of: one unit of the column, or a change of level."""
        if not self.before:
            return "per unit"
        if self.levels:
            return " -> ".join(self.levels)
        return " -> ".join(" ".join(f"{value:g}" for value in side) for side in (self.before, self.after))


def effects_of_columns(names: Sequence[str], two_valued: Sequence[tuple[int, float, float]]) -> list[Effect]:
    """Return one effect for each column: the difference of a column of two values, the derivative of others."""
    levels = {column: ((low,), (high,)) for column, low, high in two_valued}
    return [Effect(name, (j,), *levels.get(j, ())) for j, name in enumerate(names)]


def effects_of_table(schema: Schema, two_valued: Sequence[tuple[int, float, float]]) -> list[Effect]:
    """Return the effects of the columns of a table.

    Of a number its derivative, or the difference between two values; of a boolean the difference; of a category the
    difference of each level from the first; of a date the trend, the derivative by elapsed time.
    """
    plain = effects_of_columns(schema.encoded_names, two_valued)
    effects, start = [], 0
    for field in schema.fields:
        of_field = plain[start : start + len(field.names)]
        if field.levels is not None and VALUE in field.parts:
            effects += [_without_gap(effect, field, start) for effect in _differences_of_levels(field, start)]
        elif field.kind == "boolean" and VALUE in field.parts:
            effects.append(_without_gap(Effect(field.name, (start,), (0.0,), (1.0,), ("False", "True")), field, start))
        elif field.kind == "date":
            effects += [effect for effect in of_field if effect.name == f"{field.name} {ELAPSED}"]
        elif VALUE in field.parts:
            effects.append(_without_gap(of_field[0], field, start))
        start += len(field.names)
    return effects


def _without_gap(effect: Effect, field: Field, start: int) -> Effect:
    """Return the effect with a difference between two settings where the value is not missing."""
    if not effect.before or MISSING not in field.parts:
        return effect
    levels = effect.levels or (f"{effect.before[0]:g}", f"{effect.after[0]:g}")
    columns = (*effect.columns, start + len(field.names) - 1)
    return Effect(effect.name, columns, (*effect.before, 0.0), (*effect.after, 0.0), levels)


def _differences_of_levels(field: Field, start: int) -> list[Effect]:
    """Return the effect of each level with a feature of its own in place of the first."""
    assert field.levels is not None
    settings = field.level_features(field.common)
    columns = tuple(range(start, start + settings.shape[1]))
    words = [str(level) for level in field.levels[field.common]]
    return [
        Effect(field.name, columns, tuple(settings[0]), tuple(settings[k]), (words[0], words[k]))
        for k in range(1, len(words))
    ]


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


@dataclass(frozen=True, eq=False)
class EffectsSummary:
    """Average effects of the columns; prints as a table.

    Attributes
    ----------
    effects : tuple of Effect
        Of each column: its derivative, or the difference between its two levels.
    average, standard_error, t_value : arrays of shape (effects, n_targets)
        The average over the rows, corrected for the bias of the ridge, its standard error, and their ratio. The error
        counts the noise of the targets, which may differ from row to row where the fit has calibration rows, and the
        choice of the rows. A fit of classes has the average alone: that of the effects on the log-odds, not corrected.
    quartiles : array of shape (3, effects, n_targets)
        Of the effects at the rows, which are not corrected; of more than 65,536 rows, at some evenly spaced ones.
    n_rows : int
        The number of rows.
    targets : tuple of str
        What the effects are on; empty for the targets of a regression.
    """

    effects: tuple[Effect, ...]
    average: Floats
    standard_error: Floats | None
    t_value: Floats | None
    quartiles: Floats
    n_rows: int
    targets: tuple[str, ...] = ()

    def to_record(self) -> list[dict[str, Any]]:
        """Return one dict for each effect and target."""
        numbers = ("average", "standard_error", "t_value")
        names = [name for name in numbers if getattr(self, name) is not None]
        return [
            {"column": effect.name, "unit": effect.unit, "target": self.targets[t] if self.targets else t}
            | {name: float(getattr(self, name)[k, t]) for name in names}
            | {"quartiles": [float(value) for value in self.quartiles[:, k, t]]}
            for t in range(self.average.shape[1])
            for k, effect in enumerate(self.effects)
        ]

    def __str__(self) -> str:
        titles = {"average": "average", "standard_error": "std. error", "t_value": "t value"}
        names = [name for name in titles if getattr(self, name) is not None]
        heads = ["column", "effect", *(titles[name] for name in names), "25%", "50%", "75%"]
        lines = []
        for t in range(self.average.shape[1]):
            several = self.average.shape[1] > 1
            of_target = f" on {_escaped(self.targets[t])}" if self.targets else f" on target {t}" if several else ""
            cells = [heads]
            for record in self.to_record()[t * len(self.effects) : (t + 1) * len(self.effects)]:
                words = [f"{record[name]:.2f}" if name == "t_value" else as_written(record[name]) for name in names]
                names_and_units = [_escaped(record["column"]), _escaped(record["unit"])]
                cells.append([*names_and_units, *words, *map(as_written, record["quartiles"])])
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            lines += [f"Average effects{of_target} over {self.n_rows:,} rows, and quartiles over the rows", ""]
            for row in cells:
                left = [cell.ljust(width) for cell, width in zip(row[:2], widths, strict=False)]
                right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
                lines.append("  ".join([*left, *right]).rstrip())
            lines.append("")
        return "\n".join(lines[:-1])


def _escaped(text: str) -> str:
    """Return text in one line, its control characters as escapes."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def effect_values(passes: RowPasses, cross_kernel: CrossKernel, dual_coef: Floats, effects: Sequence[Effect]) -> Floats:
    """Return the effects at every row, shape (n, effects, targets), in one pass."""
    return passes.map(EffectValues(cross_kernel, effects, dual_coef))


def predicted_effects(
    passes: RowPasses,
    cross_kernel: CrossKernel,
    dual_coef: Floats,
    effects: Sequence[Effect],
    loss: Loss,
    intercept: Floats,
) -> Floats:
    """Return the effects on what a loss predicts at every row, shape (n, effects, targets), in one pass."""
    if not loss.positive:
        return effect_values(passes, cross_kernel, dual_coef, effects)
    return passes.map(PredictedEffects(cross_kernel, effects, dual_coef, loss, intercept))


def effect_deviations(
    passes: RowPasses, fit: LandmarkFit, calibration: Calibration | None, effects: Sequence[Effect]
) -> Floats:
    """Return the standard errors of the effects at every row, without bias, shape (n, effects, targets).

    The effect at x is `g(x)'c`, g the change of the features, and its variance due to the noise of the targets
    `g'F^-1 M F^-1 g`, `F = B'WB + n lambda` and M the covariance of B'Wy by `noise_terms`. One pass for each target.
    """
    features, sizes = noise_terms(fit, calibration)
    errors = []
    for t, size in enumerate(sizes.T):
        terms = features * size[:, None]
        if len(terms) > fit.factor.rank:
            terms = np.triu(np.linalg.qr(terms, mode="raw")[0].T)[: fit.factor.rank]  # of the same covariance
        root = fit.factor.combine(fit.inverse.of_target(t).solve(terms.T))
        errors.append(passes.map(EffectDeviations(fit.factor.cross_kernel, effects, fit.dual_coef, root)))
    return np.stack(errors, axis=2)


def summarise_effects(
    passes: RowPasses, fit: LandmarkFit, calibration: Calibration | None, effects: Sequence[Effect]
) -> EffectsSummary:
    """Return average effects with standard errors, and quartiles of the effects at the rows, in one pass.

    With g the mean change of the features over the rows, `F = B'WB + s`, `s = n lambda` and coefficients c, the average
    effect is `g'(I + s F^-1)c`: the ridge shrinks c by about `s F^-1 c`, which is added. Its variance is
    `g'(I + s F^-1) F^-1 M F^-1 (I + s F^-1) g`, M the covariance of B'Wy by `noise_terms`, and over n rows that are a
    sample `var_i(effect_i)/n` more.
    """
    totals, quartiles = _totals(passes, fit.factor.cross_kernel, fit.dual_coef, effects)
    change = fit.factor.whitener.T @ (totals.changes / totals.weight)
    corrected = []
    for t, ridge in enumerate(fit.scaled_ridge):
        inverse = fit.inverse.of_target(t)
        once = inverse.solve(change)
        corrected.append(once + ridge * inverse.solve(once))
    average = np.stack([direction.T @ fit.centred.cross[:, t] for t, direction in enumerate(corrected)], axis=1)
    features, sizes = noise_terms(fit, calibration)
    influences = [features @ direction for direction in corrected]
    noise = np.stack([size**2 @ influence**2 for influence, size in zip(influences, sizes.T, strict=True)], axis=1)
    spread = np.maximum(totals.second / totals.weight - (totals.first / totals.weight) ** 2, 0.0)
    error = np.sqrt(noise + spread * totals.square / totals.weight**2)
    if not np.isfinite(error).all():
        raise NumericalError("squares of effects exceed the floating-point range; rescale the columns or the targets")
    ratio = np.divide(average, error, out=np.zeros_like(average), where=error > 0)
    return EffectsSummary(tuple(effects), average, error, ratio, quartiles, passes.source.n_rows)


def average_effects(
    passes: RowPasses,
    kernel: CrossKernel,
    dual_coef: Floats,
    effects: Sequence[Effect],
    targets: tuple[str, ...],
    predicted: tuple[Loss, Floats] | None = None,
) -> EffectsSummary:
    """Return averages and quartiles of the effects at the rows, in one pass; of what a loss predicts, where given."""
    if predicted is not None and predicted[0].positive:
        values = predicted_effects(passes, kernel, dual_coef, effects, *predicted)
        weights = passes.row_counts()
        average = np.tensordot(weights, values, axes=1) / weights.sum()
        quartiles = quantiles(values.reshape(len(values), -1).T, weights, (0.25, 0.5, 0.75))
        spread = quartiles.T.reshape(3, *values.shape[1:])
        return EffectsSummary(tuple(effects), average, None, None, spread, len(values), targets)
    totals, quartiles = _totals(passes, kernel, dual_coef, effects)
    average = totals.first / totals.weight
    return EffectsSummary(tuple(effects), average, None, None, quartiles, passes.source.n_rows, targets)


def summary_of(values: Floats, weights: Floats, effects: Sequence[Effect]) -> EffectsSummary:
    """Return averages and quartiles of effects at rows (n, effects, targets) with weights."""
    average = np.average(values, axis=0, weights=weights)
    quartiles = quantiles(values.reshape(len(values), -1).T, weights, (0.25, 0.5, 0.75))
    return EffectsSummary(tuple(effects), average, None, None, quartiles.T.reshape(3, *values.shape[1:]), len(values))


def _totals(
    passes: RowPasses, kernel: CrossKernel, dual_coef: Floats, effects: Sequence[Effect]
) -> tuple[Totals, Floats]:
    """Return the sums over the rows, and the quartiles of the effects, shape (3, effects, targets), by weight."""
    totals = passes.reduce(EffectTotals(kernel, effects, dual_coef, -(-passes.source.n_rows // _MOST_ROWS)))
    values, weights = np.concatenate(totals.values), np.concatenate(totals.weights)
    quartiles = quantiles(values.reshape(len(values), -1).T, weights, (0.25, 0.5, 0.75))
    return totals, quartiles.T.reshape(3, *values.shape[1:])


@np.errstate(over="ignore", invalid="ignore")
def derivative_shares(rows: Any, table: Schema | None, kernel: Any, landmarks: Any, dual_coef: Floats) -> Floats | None:
    """Return each column's share of `mean_i (df/dx_j)^2 var(x_j)`, over some rows.

    Features of one column of a table are added up. Codes of levels are not quantities: a column with codes has
    `mean_i (f(x_i) - f(x_i'))^2/2`, where x_i' has the level of another row; for a linear f this is the same.

    With several targets each is counted in units of the total over its columns. None for a kernel whose gradient is
    not known, and for very many columns; zero for every column if the fit is constant.
    """
    if kernel.stays_on_host or (count_rows(landmarks) + count_rows(rows)) * rows.shape[1] > _MOST_ENTRIES:
        return None  # a function or values given by the user have no gradient
    rows, points = _dense(rows), _dense(landmarks)
    try:
        gradients = kernel.gradient(rows, points).of_functions(dual_coef)
    except ParameterError:  # a class of the user's without a gradient
        return None
    # The product first: a gradient is small where the column's unit is large.
    by_target = ((gradients * rows.std(axis=0)[:, None]) ** 2).mean(axis=0)
    if table is not None:
        by_target = np.stack([table.by_column(of_target) for of_target in by_target.T], axis=1)
        for j in (j for j, field in enumerate(table.fields) if CODE in field.parts):
            other = rows.copy()
            other[:, table.owners == j] = np.roll(rows, len(rows) // 2, axis=0)[:, table.owners == j]
            changes = kernel.bind(points)(other) - kernel.bind(points)(rows)
            by_target[j] = ((changes @ dual_coef) ** 2).mean(axis=0) / 2.0
    totals = by_target.sum(axis=0)
    shares = (by_target / np.where(totals > 0.0, totals, 1.0)).sum(axis=1)
    total = float(shares.sum())
    return shares / total if 0.0 < total < np.inf else np.zeros(len(shares))


def _dense(rows: Any) -> Array:
    return backend_of(rows).double(dense(rows))
