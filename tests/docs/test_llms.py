"""The list of pages for programs that read, written when the pages are built."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"

INDEX = """# ridgemark

What it is.

```{toctree}
:caption: How to
install
```
"""


def test_llms_txt_lists_every_page_of_the_menu_with_its_first_paragraph(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    source, built = tmp_path / "source", tmp_path / "built"
    source.mkdir()
    (source / "index.md").write_text(INDEX, encoding="utf-8")
    (source / "install.md").write_text("# Install\n\nOne\nline.\n\nMore.\n", encoding="utf-8")
    shutil.copy(DOCS / "conf.py", source)
    settings = ["-D", "html_theme=basic", "-D", "html_static_path=."]
    subprocess.run([sys.executable, "-m", "sphinx", "-q", *settings, source, built], check=True)
    expected = "# ridgemark\n\n> What it is.\n\n## How to\n\n- [Install](_sources/install.md.txt): One line.\n"
    assert (built / "llms.txt").read_text(encoding="utf-8") == expected
    assert (built / "_sources/install.md.txt").is_file()
