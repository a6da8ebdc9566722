"""A page in a real browser: what it complains of, and whether it is wider than the window."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
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
        shown, told = _printed(command)
        server.shutdown()
    found = re.search(r'data-result="(\d+) (\d+) ([\d.]+)"', shown)
    assert found, told
    messages = [line for line in told.splitlines() if "CONSOLE" in line and "favicon" not in line]
    return int(found[1]), int(found[2]), float(found[3]), messages


def _printed(command: list[str], attempts: int = 3) -> tuple[str, str]:
    """Run a browser; return its standard output and error.

    A browser sometimes hangs. It is then killed with all its processes and started again. It writes to files: a process
    that survived would keep a pipe open, and reading it would never end.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors, start_new_session=True)
        try:
            code = process.wait(60)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code is None and attempts > 1:
            return _printed(command, attempts - 1)
        out.seek(0), errors.seek(0)
        shown, told = out.read(), errors.read()
    assert code == 0, f"the browser ended with {code}: {told}"
    return shown, told


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass
