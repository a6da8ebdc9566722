"""What the documentation shows is run: README and pages as written, docstrings as doctests."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import ridgemark

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(ridgemark.__path__, "ridgemark.") if not m.name.endswith("__main__")]


PAGES = ("guide", "tables", "dask", "effects", "classification", "peers")


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in PAGES)])
def test_python_shown_in_the_documentation_runs_and_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if page == "docs/dask.md":
        pytest.importorskip("dask.array")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    assert blocks
    code = "\n".join(blocks)
    exec(compile(code, page, "exec"), {})
    shown = [line.rsplit("# ", 1)[1] for line in code.splitlines() if line.startswith("print(")]
    assert capsys.readouterr().out.splitlines() == shown


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_parameter_of_every_estimator_is_documented():
    from ridgemark.estimators import __all__ as estimators

    for name in estimators:
        estimator = getattr(ridgemark, name)
        for parameter in estimator().get_params(deep=False):
            assert re.search(rf"^    ([\w, ]+, )?{parameter}\b.* : ", estimator.__doc__, flags=re.MULTILINE), parameter


def test_links_between_pages_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
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
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"\b(?:tests|benchmarks)/[\w/]+\.py", text)) <= set(sources), page.name
        for name in re.findall(r"`(test_\w+)`", text):
            assert f"def {name}(" in defined, f"{page.name}: {name}"


def test_every_make_target_named_in_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8"))) - {"sure"}:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
