"""Run the tutorials and keep their pictures in docs/images: `python tools/tutorial_pictures.py [NAME ...]`."""

import os
import re
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))


def python_code(page: Path) -> str:
    """Return the Python that a page shows, as one program."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL))


def main() -> None:
    os.environ["MPLBACKEND"] = "Agg"
    pictures = DOCS / "images" / "tutorials"
    pictures.mkdir(exist_ok=True)
    for page in TUTORIALS:
        if sys.argv[1:] and page.stem not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            exec(compile(python_code(page), page.name, "exec"), {})
            for picture in Path().glob("*.png"):
                (pictures / picture.name).write_bytes(picture.read_bytes())
                print(f"docs/images/tutorials/{picture.name}")
            os.chdir(DOCS)


if __name__ == "__main__":
    main()
