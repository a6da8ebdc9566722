"""Take pictures of pages in a browser, to look at: `python tools/page_pictures.py FOLDER PAGE ...`.

Every page (.html, or .md, rendered in a plain style) is taken as wide as a desk and a phone, light and dark, from top
to bottom; long pictures are cut, and the pieces stand side by side. Needs Chromium and Pillow, which matplotlib brings.
"""

import html
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
from markdown_it import MarkdownIt
from PIL import Image

TALLEST, PIECE, EMPTY = 12_000, 1500, 150  # pixels of a page, a piece of it, and of what may be empty in it
WRAPPER = """<!DOCTYPE html><html style="color-scheme:{scheme}"><body style="margin:0">
<iframe src="{page}" style="border:0;width:{width}px;height:{height}px;color-scheme:{scheme}"></iframe>"""
PLAIN = """<!DOCTYPE html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>
:root {{ color-scheme: light dark }} body {{ font: 16px/1.5 sans-serif; max-width: 900px; margin: auto; padding: 16px }}
table {{ display: block; overflow: auto; border-collapse: collapse }}
td, th {{ border: 1px solid gray; padding: 4px 12px }}
pre {{ overflow: auto; padding: 12px; background: #8882 }} img {{ max-width: 100% }}</style>{body}"""


def as_html(page: Path) -> Path:
    """Return the page, rendered beside itself if it is Markdown, so that its pictures are found."""
    if page.suffix != ".md":
        return page
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(page.read_text(encoding="utf-8"))
    made = page.with_suffix(".rendered.html")
    made.write_text(PLAIN.format(body=body), encoding="utf-8")
    return made


def take(page: Path, width: int, scheme: str, picture: Path) -> None:
    """Write the picture of a page."""
    with tempfile.TemporaryDirectory() as scratch:
        wrapper = Path(scratch) / "wrapper.html"
        source = html.escape(page.resolve().as_uri())
        wrapper.write_text(WRAPPER.format(page=source, width=width, height=TALLEST, scheme=scheme), encoding="utf-8")
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        # 0 is dark and 1 light. A window is never narrower than 500 pixels: the frame is.
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--allow-file-access-from-files",
            f"--blink-settings=preferredColorScheme={int(scheme == 'light')}", f"--user-data-dir={scratch}/profile",
            f"--window-size={max(width, 500)},{TALLEST}", "--virtual-time-budget=4000", f"--screenshot={picture}",
            wrapper.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=180, check=True)
    with Image.open(picture) as whole:
        cut(whole.convert("RGB").crop((0, 0, width, TALLEST))).save(picture)


def cut(whole: Image.Image) -> Image.Image:
    """Return the pieces of the picture side by side, without long empty stretches."""
    rows = np.asarray(whole)
    repeated = np.r_[False, (rows[1:] == rows[:-1]).all(axis=(1, 2))]
    runs = np.arange(len(rows)) - np.maximum.accumulate(np.where(repeated, 0, np.arange(len(rows))))
    filled = Image.fromarray(rows[runs < EMPTY])
    tops = range(0, filled.height, PIECE)
    board = Image.new("RGB", (len(tops) * (whole.width + 10), PIECE), "gray")
    for number, top in enumerate(tops):
        piece = filled.crop((0, top, whole.width, min(top + PIECE, filled.height)))
        board.paste(piece, (number * (whole.width + 10), 0))
    return board


def main() -> None:
    folder, *pages = map(Path, sys.argv[1:])
    folder.mkdir(exist_ok=True)
    for page, width, scheme in product(pages, (1200, 390), ("light", "dark")):
        picture = folder.resolve() / f"{page.parent.name}-{page.stem}-{width}-{scheme}.png"
        made = as_html(page)
        take(made, width, scheme, picture)
        if made != page:
            made.unlink()
        print(picture)


if __name__ == "__main__":
    main()
