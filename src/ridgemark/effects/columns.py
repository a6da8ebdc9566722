"""Which effects a table's columns have: derivatives of numbers, differences between levels."""

from collections.abc import Sequence
from dataclasses import dataclass

from ridgemark.tables.dates import ELAPSED
from ridgemark.tables.schema import MISSING, VALUE, Field, Schema


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
