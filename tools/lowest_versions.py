"""Print the lowest versions that pyproject.toml declares, as pip requirements: the core, the extras, the test tools."""

import re
import tomllib
from pathlib import Path

EXTRAS = ("arrow", "dask", "report")
TEST_TOOLS = ("cloudpickle", "pytest", "hypothesis", "mpmath", "pandas", "polars", "pytest-timeout", "pytest-xdist")


def main() -> None:
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    project, optional = declared["project"], declared["project"]["optional-dependencies"]
    tools = [line for line in declared["dependency-groups"]["test"] if re.match(r"[\w-]+", line)[0] in TEST_TOOLS]
    for line in [*project["dependencies"], *(d for extra in EXTRAS for d in optional[extra]), *tools]:
        print(line.replace(">=", "=="))


if __name__ == "__main__":
    main()
