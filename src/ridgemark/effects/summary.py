"""Average effects as a record and as a printed table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ridgemark.backends import Floats
from ridgemark.effects.columns import Effect
from ridgemark.rows.places import as_written


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
