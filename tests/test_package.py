"""Imports, version, docstrings and extras of the package."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import ridgemark

HEAVY = ("torch", "dask", "pyarrow", "matplotlib", "pandas", "polars", "click", "rich")


def _run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_importing_ridgemark_loads_nothing_heavier_than_scikit_learn():
    """scikit-learn itself imports pandas if installed, so only the modules that ridgemark adds are checked."""
    before = "import sys, numpy, scipy, sklearn.base, sklearn.utils.validation; before = set(sys.modules)"
    assert _run(f"{before}; import ridgemark; print([m for m in {HEAVY!r} if m in set(sys.modules) - before])") == "[]"


def test_importing_ridgemark_needs_none_of_the_optional_packages():
    code = f"""
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hide())
import ridgemark
print(ridgemark.__version__)
"""
    assert _run(code) == ridgemark.__version__


def test_the_version_is_a_version_and_heads_the_changelog():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", ridgemark.__version__)
    changelog = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
    assert ridgemark.__version__.removesuffix(".dev0") in changelog


def test_everything_public_has_a_docstring():
    for name in ridgemark.__all__:
        thing = getattr(ridgemark, name)
        assert isinstance(thing, str) or (thing.__doc__ or "").strip(), name


def test_every_extra_is_part_of_all():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"all", "dev"}
    named = re.search(r"\[(.*)\]", project["optional-dependencies"]["all"][0])
    assert named is not None
    assert extras == set(named[1].split(",")) == {"arrow", "report"}
