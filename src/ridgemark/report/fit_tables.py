"""The tables of the page of a fit that numbers and classes share."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ridgemark.errors import ParameterError
from ridgemark.report import fit_words as words
from ridgemark.report import page as html
from ridgemark.report import quality
from ridgemark.report.fit_words import important_columns
from ridgemark.report.page import Column, Html
from ridgemark.report.writing import printable, shortened
from ridgemark.rows import ArrayRows
from ridgemark.rows.places import as_written

_FORMS: dict[str, Callable[[Any], str]] = {"row": str, "leverage": "{:.3f}".format, "studentised": "{:.2f}".format}
_FORMS |= dict.fromkeys(("target", "predicted", "loss", "loo_residual"), as_written)
_FORMS |= dict.fromkeys(("probability", "cook_distance"), partial(as_written, digits=2))
_HEADINGS = {"loo_residual": "leave-one-out residual", "probability": "probability of its label"}
_HEADINGS |= {"cook_distance": "Cook's distance", "standard_error": "std. error", "t_value": "t value"}
_MOST_EFFECTS = 40  # lines of the table of effects
_MOST_COLUMNS = 500  # that are listed
_LONGEST = 80  # letters of a name in the table of all columns
_FEW = 3  # columns whose effects on several functions are shown


def pairs(caption: str, entries: Sequence[tuple[str, str | None]]) -> Html:
    """Return a table of labels and values; what is None is left out."""
    rows = [[printable(what), printable(value)] for what, value in entries if value is not None]
    return html.table(caption, [Column("what"), Column("value")], rows)


def columns_table(model: Any) -> Html | None:
    """Return how every column was read, the most important first, and why some were left out."""
    if not hasattr(model, "feature_importances_") and model.kernel_.pairwise:  # which has no columns
        return None
    read = words.columns_read(model)
    shares = getattr(model, "feature_importances_", None)
    order = range(len(read)) if shares is None else np.argsort(-shares, kind="stable").tolist()
    left_out = set(words.unused_names(model))

    def importance(position: int) -> str:
        return "-" if shares is None or read[position][0] in left_out else f"{shares[position]:.1%}"

    rows = [[shortened(printable(read[j][0]), _LONGEST), read[j][1], importance(j)] for j in order[:_MOST_COLUMNS]]
    rest = len(read) - len(rows)
    caption = "Every column" if not rest else f"The {len(rows)} most important of {len(read):,} columns"
    return html.table(caption, [Column("column"), Column("read as"), *html.number_columns("importance")], rows, True)


def baselines_table(model: Any, run: Any) -> list[Html | None]:
    """Return the errors beside those of simpler models; None where they are not known."""
    compared = quality.baselines(model)
    boosting = quality.boosting_words(run)
    beside = html.paragraph(f"Gradient boosting of scikit-learn with its defaults: {boosting}.") if boosting else None
    if not compared:
        return [beside]
    with_left_out = any(entry.left_out is not None for entry in compared[:1])
    rows = [
        [entry.name, f"{entry.judged:.3g}", f"{1 - (entry.judged / compared[-1].judged) ** 2:.1%}"]
        + ["-" if entry.left_out is None else f"{entry.left_out:.3g}"] * with_left_out
        for entry in compared
    ]
    headings = ["error", "explained", *["leave-one-out"] * with_left_out]
    n_rows, n_fitted = model.tuning_.n_judging, model.tuning_.baselines.n_rows
    caption = f"Beside simpler models: RMS in {quality.unit_words(model)}, on {n_rows:,} rows kept apart"
    note = (
        f"All were fitted to the same {n_fitted:,} other rows, this kernel with fewer landmarks than the final model. "
        "The rows kept apart also chose among kernels, so that the error of this kernel on them is a little too small."
    )
    if with_left_out:
        note += (
            " Its leave-one-out error is too small as well, since some of the rows tuned the kernel; those of the "
            "simpler models hardly are."
        )
    columns = [Column("model"), *html.number_columns(*headings)]
    return [html.table(caption, columns, rows, stacked=True), html.paragraph(note), beside]


def influential_rows(caption: str, top: Sequence[Any]) -> Html | None:
    """Return influential rows with what is known of them; None where there are none."""
    if not top:
        return None
    forms, texts = ([name for name in names if name in top[0]] for names in (_FORMS, ("label", "landmark", "why")))
    rows = [
        [_FORMS[name](row[name]) for name in forms]
        + [("yes" if row[name] else "no") if name == "landmark" else printable(str(row[name])) for name in texts]
        for row in top
    ]
    columns = [*html.number_columns(*(_HEADINGS.get(name, name) for name in forms)), *map(Column, texts)]
    terms = (
        "Leverage, from 0 to 1, is the weight of a row in its own prediction. Cook's distance says how far all "
        "predictions move when the row is left out."
    )
    return Html(html.table(caption, columns, rows, stacked=True) + html.paragraph(terms))


def rows_of_run(fit: Any, what: str) -> list[Html | None]:
    """Return the most influential rows that a run found, with what is shown of them from the other rows."""
    caption = f"The most influential rows, numbered from 0; {what} are those of a fit to the other rows"
    unknown = "The rows of the fit are not known; `diagnose(X, y)` in Python finds the influential ones."
    return [influential_rows(caption, (fit.run.sample or {}).get("top", ())) or html.note(unknown)]


def most_effects(fit: Any, over: str) -> Html | None:
    """Return the average effects that a run measured; on several functions those of the most important columns."""
    table = (fit.run.sample or {}).get("effects") or _effects_of_kept(fit.model)
    if table and any(effect["target"] != table[0]["target"] for effect in table):
        most = {name for name, _ in important_columns(fit.model, _FEW)}
        table = [effect for effect in table if effect["column"] in most]
    return effects_table(table, over) if table else None


def _effects_of_kept(model: Any) -> list[Any] | None:
    """Return the average effects over the rows that the model keeps; None without such rows."""
    background = model._model.background
    if background is None:
        return None
    rows = ArrayRows(background.rows)
    rows.encoded = True  # these are features, not the columns of a table
    try:
        table = model.effects_summary(rows).to_record()
    except ParameterError:  # a kernel without derivatives
        return None
    return [effect | {"target": str(effect["target"])} for effect in table]


def effects_table(effects: Sequence[Any], over: str) -> Html:
    """Return average effects, with standard errors where they are known, and quartiles."""
    several = any(effect["target"] != effects[0]["target"] for effect in effects)
    names = [name for name in ("average", "standard_error", "t_value") if name in effects[0]]
    sizes = [-abs(effect[names[-1]]) for effect in effects]
    shown = np.sort(np.argsort(sizes, kind="stable")[:_MOST_EFFECTS])
    rows = [
        [shortened(printable(effect["column"])), effect["unit"], *[printable(str(effect["target"]))] * several]
        + [f"{effect[name]:.2f}" if name == "t_value" else as_written(effect[name]) for name in names]
        + [as_written(value) for value in effect["quartiles"]]
        for effect in (effects[k] for k in shown)
    ]
    columns = [Column("column"), Column("effect"), *[Column("target")] * several]
    numbers = html.number_columns(*(_HEADINGS.get(name, name) for name in names), "25%", "50%", "75%")
    caption = f"Average effects {over}, and quartiles over the rows"
    if len(shown) < len(effects):
        caption += f"; the {len(shown)} of {len(effects)} with the largest {_HEADINGS.get(names[-1], names[-1])}"
    return html.table(caption, [*columns, *numbers], rows, stacked=True)
