"""Imports, version, docstrings and extras of the package."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ridgemark

HEAVY = ("torch", "dask", "pyarrow", "matplotlib", "pandas", "polars", "click", "rich")


def _run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def imported():
    """What a process that imports ridgemark finds: one process for all questions."""
    code = f"""
import json, sys, ridgemark
found = {{"numpy at once": "numpy" in sys.modules, "all listed": {{*ridgemark.__all__}} <= {{*dir(ridgemark)}}}}
import numpy, scipy, sklearn.base, sklearn.utils.validation
before = set(sys.modules)
found["names"] = [ridgemark.tuning.Tuner.__name__, ridgemark.errors.__name__]
from ridgemark import *
found["same"] = NystromRidge is ridgemark.NystromRidge is ridgemark.estimators.NystromRidge
found["same"] &= bounds is ridgemark.bounds
found["heavy"] = [name for name in {HEAVY!r} if name in set(sys.modules) - before]
print(json.dumps(found))
"""
    return json.loads(_run(code))


def test_importing_ridgemark_loads_nothing_heavier_than_scikit_learn(imported):
    """scikit-learn itself imports pandas if installed, so only the modules that ridgemark adds are checked."""
    assert imported["heavy"] == []


def test_importing_ridgemark_imports_no_numpy_until_a_name_is_used(imported):
    assert not imported["numpy at once"]


def test_public_names_and_modules_are_found_and_listed(imported):
    assert imported["all listed"]
    assert imported["names"] == ["Tuner", "ridgemark.errors"]
    assert imported["same"]


def test_importing_ridgemark_needs_none_of_the_optional_packages():
    code = f"""
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hide())
import ridgemark
from ridgemark import *
print(ridgemark.__version__)
"""
    assert _run(code) == ridgemark.__version__


def test_a_name_that_is_not_there_is_an_attribute_error():
    for name in ("NystromRigde", "_HOMES_", "__wrapped__"):
        with pytest.raises(AttributeError, match=f"module 'ridgemark' has no attribute '{name}'"):
            getattr(ridgemark, name)


def test_a_missing_dependency_is_named_and_not_an_attribute_error():
    code = """
import sys
sys.modules["sklearn.base"] = None
import ridgemark
try:
    ridgemark.NystromRidge
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert _run(code).startswith("sklearn")


def test_the_version_is_a_version_and_heads_the_changelog():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", ridgemark.__version__)
    changelog = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
    assert ridgemark.__version__.removesuffix(".dev0") in changelog


def test_everything_public_has_a_docstring():
    for name in ridgemark.__all__:
        thing = getattr(ridgemark, name)
        assert isinstance(thing, str) or (thing.__doc__ or "").strip(), name


def test_every_extra_but_those_that_only_convert_is_part_of_all():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - {"all", "onnx", "shap"}  # the last two only convert
    named = re.search(r"\[(.*)\]", project["optional-dependencies"]["all"][0])
    assert named is not None
    assert extras == set(named[1].split(",")) == {"arrow", "dask", "report", "torch"}


def test_the_conda_recipe_has_the_version_and_the_lowest_versions_of_pyproject():
    root = Path(__file__).parents[1]
    recipe = (root / "conda/recipe.yaml").read_text(encoding="utf-8")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = {"matplotlib": "matplotlib-base"}  # without a toolkit for windows
    required = [
        re.match(r"([\w-]+)>=(.*)", line) for line in project["dependencies"] + extras["arrow"] + extras["report"]
    ]
    expected = {f"{names.get(found[1], found[1])} >={found[2]}" for found in required if found}
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    assert set(re.findall(r"- (.*)", run)) == expected | {f"python {project['requires-python']}"}
    assert f'version: "{ridgemark.__version__}"' in recipe
