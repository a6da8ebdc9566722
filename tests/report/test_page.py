"""The blocks of a page: text is escaped, nothing is loaded, tables and figures are accessible."""

import re
from html.parser import HTMLParser

import pytest

from ridgemark.report import page as html
from ridgemark.report.page import Column, Html

EVIL = "<script>alert('x')</script>\"&'"


class Parsed(HTMLParser):
    """The tags of a document; fails if a tag is closed that was not opened."""

    VOID = ("meta", "br", "img", "use", "path")

    def __init__(self, document):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(document)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


BLOCKS = [
    lambda text: html.paragraph(text),
    lambda text: html.heading(text),
    lambda text: html.note(text),
    lambda text: html.bullets([text]),
    lambda text: html.lead(text),
    lambda text: html.labelled([(text, text)]),
    lambda text: html.folded(text, text, [html.paragraph(text)], "h3"),
    lambda text: html.badge(text, "good"),
    lambda text: html.key_numbers([(text, text)]),
    lambda text: html.contents([(text, text)]),
    lambda text: html.section(text, text, []),
    lambda text: html.table(text, [Column(text), Column(text, numeric=True)], [[text, text]], stacked=True),
    lambda text: html.figure("<svg></svg>", text, text),
]


@pytest.mark.parametrize("block", BLOCKS)
def test_text_is_escaped_in_every_block_and_every_attribute(block):
    made = html.page(EVIL, [block(EVIL)])
    assert "<script" not in made
    assert not any(tag == "script" for tag, _ in Parsed(made).tags)


def test_a_plain_cell_that_looks_like_a_badge_is_still_escaped():
    forged = '<span class="badge good"><img src=x></span>'
    assert "<img" not in html.table("t", [Column("a"), Column("b")], [["x", forged]])
    assert '<span class="badge good">yes</span>' in html.table(
        "t", [Column("a"), Column("b")], [["x", html.badge("yes", "good")]]
    )


def test_a_page_loads_nothing_and_runs_no_script():
    made = html.page("title", [html.paragraph("text")])
    tags = Parsed(made).tags
    policies = [attrs["content"] for tag, attrs in tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'")
    assert "script-src" not in policies[0]
    assert not re.search(r"(src|href)=\"(?!#)", made)
    assert "url(" not in made
    assert "@import" not in made


def test_a_page_says_its_language_title_and_width():
    tags = Parsed(html.page("A title", [])).tags
    assert ("html", {"lang": "en"}) in tags
    assert any(attrs.get("name") == "viewport" for _, attrs in tags)
    assert [tag for tag, _ in tags].count("h1") == 1


def test_tables_have_row_and_column_headers_and_scroll_by_keyboard():
    tags = Parsed(html.table("numbers", [Column("row"), Column("n", numeric=True)], [["a", "1"], ["b", "2"]])).tags
    assert [attrs["scope"] for tag, attrs in tags if tag == "th"] == ["col", "col", "row", "row"]
    region = next(attrs for tag, attrs in tags if attrs.get("role") == "region")
    assert region["tabindex"] == "0"
    assert region["aria-label"] == "numbers"
    assert any(tag == "caption" for tag, _ in tags)


def test_folded_contents_are_reached_by_their_anchor_and_open_in_print():
    tags = Parsed(html.page("title", [html.folded("More", "more", [html.paragraph("hidden")])])).tags
    names = [tag for tag, _ in tags]
    assert names.index("details") < names.index("summary") < names.index("h2")
    assert ("div", {"id": "more"}) in tags  # inside the details: a browser opens them for a link to it
    printed = html.style().split("@media print")[1]
    assert "details::details-content" in printed


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="zip"):
        html.table("t", [Column("a"), Column("b")], [["only one"]])


def test_a_figure_has_alternative_text():
    made = html.figure("<svg></svg>", "risk falls with p", "caption")
    assert any(
        attrs.get("role") == "img" and attrs["aria-label"] == "risk falls with p" for _, attrs in Parsed(made).tags
    )
    assert isinstance(made, Html)
