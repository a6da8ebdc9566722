"""What a notebook shows of a fitted model, below the diagram of scikit-learn."""

from html import escape
from typing import Any

from ridgemark.fitted import RunRecord
from ridgemark.report import fit_words as words
from ridgemark.report import promises, quality

_STYLE = 'style="text-align: left; padding: 0.1em 1em 0.1em 0; vertical-align: top"'


def summary_html(model: Any) -> str:
    """Return a table of what the fit is: error, lambda, landmarks, columns that matter, distance to exact."""
    names = words.target_names(model, RunRecord())
    lines = [
        *quality.quality_lines(model, names),
        *words.tuning_lines(model),
        ("exact", promises.distance_words(model)),
    ]
    cells = [
        f"<tr><th {_STYLE}>{escape(name)}</th><td {_STYLE}>{escape(text)}</td></tr>" for name, text in lines if text
    ]
    return f"<table>{''.join(cells)}</table>"
