"""A page in a real browser: what it complains of, and whether it is wider than the window."""

from __future__ import annotations

import functools
import http.server
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

_WRAPPER = """<!DOCTYPE html><title>waiting</title><body style="margin:0">
<iframe src="{page}" style="border:0;width:{width}px;height:900px"></iframe>
<script>
const frame = document.querySelector("iframe");
frame.addEventListener("load", () => {{
  const root = frame.contentDocument.documentElement;
  const text = [...frame.contentDocument.querySelectorAll("svg text")].map(t => t.getBoundingClientRect().height);
  document.body.dataset.result = [root.scrollWidth, text.length, Math.min(...text)].join(" ");
}});
</script>"""


def browser() -> str:
    """The path of a Chromium; skips where none is installed."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed, so no page can be looked at in a browser")
    return found


def look(page: Path, width: int, scratch: Path) -> tuple[int, int, float, list[str]]:
    """Open a page at a width; return its scroll width, its words in figures, the smallest, and console messages."""
    program = browser()
    site = scratch / f"site-{width}"
    site.mkdir()
    shutil.copy(page, site / "page.html")
    (site / "index.html").write_text(_WRAPPER.format(page="page.html", width=width))
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", f"--user-data-dir={scratch / 'profile'}",
            "--enable-logging=stderr", "--virtual-time-budget=4000", "--dump-dom",
            f"http://127.0.0.1:{server.server_port}/index.html",
        ]  # fmt: skip
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        server.shutdown()
    found = re.search(r'data-result="(\d+) (\d+) ([\d.]+)"', result.stdout)
    assert found, result.stderr
    messages = [line for line in result.stderr.splitlines() if "CONSOLE" in line and "favicon" not in line]
    return int(found[1]), int(found[2]), float(found[3]), messages


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass
