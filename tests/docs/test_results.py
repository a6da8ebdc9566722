"""Every table of results in the README and on the page about accuracy is what the records of fits say."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "options"), [("README.md", []), ("docs/accuracy.md", ["--all"])])
def test_tables_of_results_are_those_of_the_records(page, options, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.setattr(sys, "argv", ["summary.py", *options])
    import_module("summary").main()
    printed = re.findall(r"(?:^\|.*\n)+", capsys.readouterr().out, flags=re.MULTILINE)
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(printed) >= 3
    for table in printed:
        assert table in text, f"{page} lacks a table as python benchmarks/summary.py prints it: {table[:200]}"
