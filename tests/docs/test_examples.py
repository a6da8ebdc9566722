"""What the documentation shows is run: README and pages as written, docstrings as doctests."""

import doctest
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest
from tools.tutorial_pictures import python_code

import ridgemark

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(ridgemark.__path__, "ridgemark.") if not m.name.endswith("__main__")]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [page for page in (ROOT / "README.md", *DOCS) if "import" in python_code(page)]  # others show fragments
OPTIONAL = r"^(?:import|from) ((?:dask|distributed|polars|torch)[\w.]*)"


@pytest.mark.usefixtures("no_figures")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_shown_in_the_documentation_runs_and_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    tutorial = page.parent.name == "tutorials"
    if tutorial:
        pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    code = python_code(page)
    for name in re.findall(OPTIONAL, code, flags=re.MULTILINE):
        pytest.importorskip(name)
    exec(compile(code, page.name, "exec"), {})
    shown = [line.rsplit("# ", 1)[1] for line in code.splitlines() if line.startswith("print(")]
    assert capsys.readouterr().out.splitlines() == shown
    if tutorial:
        assert (tmp_path / f"{page.stem}.png").stat().st_size > 5000
        assert f"](../images/tutorials/{page.stem}.png)" in page.read_text(encoding="utf-8")
        sys.modules["matplotlib.pyplot"].close("all")


def test_code_in_the_readme_is_not_cut_at_the_width_of_a_page():
    blocks = re.findall(r"```\w+\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert max(len(line) for block in blocks for line in block.splitlines()) <= 92


def test_every_tutorial_links_the_glossary():
    for page in (ROOT / "docs/tutorials").glob("*.md"):  # docs/conf.py adds the link to other pages without it
        assert "](../glossary.md)" in page.read_text(encoding="utf-8"), page.name


def test_the_glossary_defines_every_term_that_a_tutorial_marks():
    glossary = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^([\w ,-]+)$", glossary, flags=re.MULTILINE)
    known = {term.rstrip("s") for term in terms} | {"leave-one-out residual"}
    for page in (ROOT / "docs/tutorials").glob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        marked = re.findall(r"(?<![*\w])\*([A-Za-z -]{3,40})\*(?![*\w])", text)
        assert {term.lower().rstrip("s") for term in marked} - {"italic"} <= known, page.name


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name):
    if name.endswith((".dask", ".torch")):
        pytest.importorskip(name.rsplit(".", 1)[1])
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_parameter_of_every_estimator_is_documented():
    from ridgemark.estimators import __all__ as estimators

    for name in estimators:
        estimator = getattr(ridgemark, name)
        for parameter in estimator().get_params(deep=False):
            text = inspect.cleandoc(estimator.__doc__)
            assert re.search(rf"^([\w, ]+, )?{parameter}\b.* : ", text, flags=re.MULTILINE), parameter


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *DOCS]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)[#)]", text) + re.findall(r' src(?:set)?="([^":]+)"', text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_tests_and_benchmarks_named_in_the_documentation_exist():
    sources = {
        path.relative_to(ROOT).as_posix(): path
        for folder in ("tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    }
    defined = "".join(path.read_text(encoding="utf-8") for path in sources.values())
    for page in [*ROOT.glob("*.md"), *DOCS]:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"\b(?:tests|benchmarks)/[\w/]+\.py", text)) <= set(sources), page.name
        for name in re.findall(r"`(test_\w+)`", text):
            assert f"def {name}(" in defined, f"{page.name}: {name}"


def test_every_make_target_named_in_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8"))) - {"sure"}:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
