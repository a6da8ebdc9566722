"""Building blocks of a self-contained page: each takes plain text, escapes it and returns HTML."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import Literal


class Html(str):
    """Text that is already HTML; a plain string is escaped when shown."""

    __slots__ = ()


Tone = Literal["good", "bad", "open"]


@dataclass(frozen=True)
class Answer:
    """A question, the section that answers it at length, a short answer, a sentence, and the tone of the answer."""

    question: str
    anchor: str
    short: str
    sentence: str
    tone: Tone | None


Section = tuple[str, str, Sequence[Html | None]]
"""Title, anchor and contents."""

# The frame of a page, whose policy allows no requests and no scripts, but inline styles: matplotlib writes them into
# figures; and the style sheet.
_FOLDER = files("ridgemark.report")


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, and whether it holds numbers, which are right-aligned."""

    heading: str
    numeric: bool = False


def number_columns(*headings: str) -> list[Column]:
    """Return columns of numbers."""
    return [Column(heading, numeric=True) for heading in headings]


def page(title: str, blocks: Sequence[Html]) -> str:
    """Return the whole document."""
    frame = Template((_FOLDER / "page.html").read_text(encoding="utf-8"))
    return frame.substitute(title=escape(title), style=style(), body="\n".join(blocks))


def style() -> str:
    """Return the style sheet: light, dark, phone and print."""
    return (_FOLDER / "style.css").read_text(encoding="utf-8")


def section(title: str, anchor: str, blocks: Sequence[Html | None]) -> Html:
    """Return a section of the page with a heading; links reach it by the anchor. Blocks that are None are left out."""
    inner = "\n".join(filter(None, blocks))
    return Html(f'<section id="{escape(anchor)}">\n<h2>{escape(title)}</h2>\n{inner}\n</section>')


def folded(title: str, anchor: str, blocks: Sequence[Html | None], level: Literal["h2", "h3"] = "h2") -> Html:
    """Return contents that are hidden until their heading is opened, or a link to the anchor followed."""
    inner = "\n".join(filter(None, blocks))
    return Html(
        f"<details>\n<summary><{level}>{escape(title)}</{level}></summary>\n"
        f'<div id="{escape(anchor)}">\n{inner}\n</div>\n</details>'
    )


def contents(entries: Sequence[tuple[str, str]]) -> Html:
    """Return links to sections, given as pairs of title and anchor."""
    links = "".join(f'<li><a href="#{escape(anchor)}">{escape(title)}</a></li>' for title, anchor in entries)
    return Html(f'<nav aria-label="Contents"><ul>{links}</ul></nav>')


def heading(text: str) -> Html:
    """Return a heading inside a section."""
    return Html(f"<h3>{escape(text)}</h3>")


def paragraph(text: str) -> Html:
    """Return a paragraph."""
    return Html(f"<p>{escape(text)}</p>")


def bullets(entries: Sequence[str]) -> Html:
    """Return a list of sentences."""
    return Html("<ul>" + "".join(f"<li>{escape(entry)}</li>" for entry in entries) + "</ul>")


def labelled(entries: Sequence[tuple[str, str]]) -> Html:
    """Return a list of sentences, each after its label."""
    lines = (f"<li><strong>{escape(label)}</strong>: {escape(sentence)}</li>" for label, sentence in entries)
    return Html("<ul>" + "".join(lines) + "</ul>")


def note(text: str) -> Html:
    """Return a highlighted note."""
    return Html(f'<p class="note">{escape(text)}</p>')


def badge(text: str, tone: Tone) -> Html:
    """Return a short verdict; the colour only repeats what the words say."""
    return Html(f'<span class="badge {tone}">{escape(text)}</span>')


def key_numbers(entries: Sequence[tuple[str, str]]) -> Html:
    """Return a row of large numbers, given as pairs of label and value."""
    cells = "".join(f"<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd></div>" for label, value in entries)
    return Html(f'<dl class="numbers">{cells}</dl>')


def answers(entries: Sequence[Answer]) -> Html:
    """Return questions with their answers as cards; each links to its section."""
    cards = "".join(
        f'<div><h2><a href="#{escape(answer.anchor)}">{escape(answer.question)}</a></h2>'
        f'<p class="short{f" {answer.tone}" if answer.tone else ""}">{escape(answer.short)}</p>'
        f"<p>{escape(answer.sentence)}</p></div>"
        for answer in entries
    )
    return Html(f'<div class="answers">{cards}</div>')


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[str]], stacked: bool = False) -> Html:
    """Return a table; the first column heads the rows.

    On a narrow page the table scrolls by itself or, if `stacked`, shows each row as a card.
    """
    head = "".join(f'<th scope="col"{_align(column)}>{escape(column.heading)}</th>' for column in columns)
    body = "\n".join(_row(columns, row) for row in rows)
    look = ' class="stacked"' if stacked else ""
    return Html(
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0">\n'
        f"<table{look}><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table>\n"
        "</div>"
    )


def figure(svg: str, alt: str, caption: str) -> Html:
    """Return a figure; the alternative text describes what it shows."""
    return Html(
        f'<figure><div class="plot" role="img" aria-label="{escape(alt)}">{svg}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def lead(text: str) -> Html:
    """Return the paragraph below the title."""
    return Html(f'<p class="lead">{escape(text)}</p>')


def side_by_side(figures: Sequence[Html | None]) -> Html:
    """Return figures in a row, or below each other on a narrow page; nothing where there is none."""
    drawn = "\n".join(filter(None, figures))
    return Html(f'<div class="figures">{drawn}</div>' if drawn else "")


def _row(columns: Sequence[Column], cells: Sequence[str]) -> str:
    (first, head), *rest = zip(columns, cells, strict=True)
    others = "".join(f"<td{_align(column)}{_headed(column)}>{_shown(cell)}</td>" for column, cell in rest)
    named = _headed(first) if first.numeric else ""  # a number needs its heading
    return f'<tr><th scope="row"{_align(first)}{named}>{_shown(head)}</th>{others}</tr>'


def _headed(column: Column) -> str:
    return f' data-heading="{escape(column.heading)}"'


def _align(column: Column) -> str:
    return ' class="number"' if column.numeric else ""


def _shown(cell: str) -> str:
    return cell if isinstance(cell, Html) else escape(cell)
