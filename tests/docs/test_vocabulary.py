"""Plain English: no idioms that readers had to decode in documentation, comments, docstrings, help and messages."""

import ast
import functools
import re
import tokenize
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
MODULES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tools").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]

BANNED = {  # a pattern, and what to write in its place
    r"(?<!there )\b(?:is|are|was|were) no (?!longer|more|less|fewer|other|better|worse|larger|smaller)": "is not a",
    r"\b(?:who|nobody|everyone) is (?:told|promised)": "the callback; is not guaranteed",
    r"\bforetold\b|\bforetells?\b": "predicted",
    r"nothing to do has nothing": "became idle",
    r"for who has room": "the caller checks memory",
    r"too long that still count": "largest relative error at which a feature is used",
    r"of which \S+ shows nothing": "independent of",
    r"\bmay leave or not\b": "optional",
    r"\bis nothing beside\b": "is negligible relative to",
    r"how many rows each row counts for": "a weight of 2 counts the row twice",
    r"of the distances of rows": "median distance",
    r"\bare to hold\b": "target coverage",
    r"\bnext to nothing\b|\bsays? nothing\b": "is not informative",
    r"\bserves? all\b": "all ... share one",
    r"\b(?:tell|tells|told)[ _](?:them )?apart\b": "distinguish",
    r"\bsee[ _-]through\b|\baslant\b|\bspared\b": "a usual term",
    r"\bnobody\b|\bwhoever\b": "name the person or the program",
    r"\bcosts? nothing\b|\bpromises? nothing\b": "takes no time; gives no guarantee",
    r"(?:refused?|refuses|error|said|says) in words": "an error message",
    r"\bthe paper's lambda\b": "the definition of ridge",
    r"\btold of\b|\bof now\b|\b(?:and|or) some more\b|\bruns? away\b": "called at; present; a number; grows",
    r"up to 1 times": "a number only where it says something",
}
PAPER = ("theory.md", "reproduce.md", "/paper/")  # here lambda is the paper's


@functools.cache
def texts(path: Path) -> list[tuple[int, str]]:
    """Return the text of a page by line, or what a module says: comments, docstrings, help and messages."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [(1, " ".join(source.split()))]
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant) and type(node.value) is str]
    comments = (
        token for token in tokenize.generate_tokens(StringIO(source).readline) if token.type == tokenize.COMMENT
    )
    said = [(node.lineno, node.value) for node in nodes if " " in node.value]
    said += [(token.start[0], token.string) for token in comments]
    return [(line, " ".join(text.split())) for line, text in said]


def found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text, flags=re.IGNORECASE)
    return match and match[0]


@pytest.mark.parametrize("pattern", BANNED)
def test_no_page_comment_docstring_help_or_message_has_the_idiom(pattern):
    hits = []
    for path in [*PAGES, *MODULES]:
        if "lambda" in pattern and any(part in path.as_posix() for part in PAPER):
            continue
        hits += [f"{path.relative_to(ROOT)}:{line}" for line, text in texts(path) if found(pattern, text)]
    assert not hits, f"write instead: {BANNED[pattern]}"


@pytest.mark.parametrize(
    ("text", "idiom"),
    [
        ("rows that are no landmarks", True),
        ("there are no landmarks", False),
        ("rows are no longer held", False),
        ("Return who is told how far a pass has come", True),
    ],
)
def test_the_patterns_find_idioms_and_pass_plain_english(text, idiom):
    assert any(found(pattern, text) for pattern in BANNED) == idiom


BLAND = ("one", "found", "known", "given", "few")
MOST_BLAND = 139


def bindings() -> list[str]:
    """Return where the package binds a variable to a name that does not say what it holds."""
    hits = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
            name = node.arg if isinstance(node, ast.arg) else name
            if name in BLAND:
                hits.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return hits


def test_no_more_variables_have_names_that_say_nothing_of_their_value():
    assert len(bindings()) <= MOST_BLAND, "name what the variable holds; where the count falls, lower MOST_BLAND"
