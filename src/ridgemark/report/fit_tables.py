"""The tables of the page of a fit that numbers and classes share."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ridgemark.report import page as html
from ridgemark.report.fit_words import printable, shortened
from ridgemark.report.page import Column, Html

_MOST_EFFECTS = 40  # lines of the table of effects


def pairs(caption: str, entries: Sequence[tuple[str, str | None]]) -> Html:
    """Return a table of labels and values; what is None is left out."""
    rows = [[printable(what), printable(value)] for what, value in entries if value is not None]
    return html.table(caption, [Column("what"), Column("value")], rows)


def influential_rows(caption: str, numbers: Mapping[str, tuple[str, str]], top: Sequence[Any]) -> Html | None:
    """Return influential rows; `numbers` has the name in the record and the format of every heading."""
    texts = ["label"] * ("label" in top[0]) if top else []
    rows = [
        [format(row[name], form) for name, form in numbers.values()]
        + [*(printable(str(row[name])) for name in texts), "yes" if row["landmark"] else "no", str(row["why"])]
        for row in top
    ]
    columns = [*html.number_columns(*numbers), *map(Column, (*texts, "landmark", "why"))]
    return html.table(caption, columns, rows, stacked=True) if rows else None


def effects_table(effects: Sequence[Any], over: str) -> Html:
    """Return average effects, with standard errors where they are known, and quartiles."""
    several = any(effect["target"] != effects[0]["target"] for effect in effects)
    headings = {"average": "average", "standard_error": "std. error", "t_value": "t value"}
    names = [name for name in headings if name in effects[0]]
    sizes = [-abs(effect[names[-1]]) for effect in effects]
    shown = np.sort(np.argsort(sizes, kind="stable")[:_MOST_EFFECTS])
    rows = [
        [shortened(printable(effect["column"])), effect["unit"], *[printable(str(effect["target"]))] * several]
        + [f"{value:.4g}" for value in (*(effect[name] for name in names), *effect["quartiles"])]
        for effect in (effects[k] for k in shown)
    ]
    columns = [Column("column"), Column("effect"), *[Column("target")] * several]
    numbers = html.number_columns(*(headings[name] for name in names), "25%", "50%", "75%")
    caption = f"Average effects {over}, and quartiles over the rows"
    if len(shown) < len(effects):
        caption += f"; the {len(shown)} of {len(effects)} with the largest {headings[names[-1]]}"
    return html.table(caption, [*columns, *numbers], rows)
