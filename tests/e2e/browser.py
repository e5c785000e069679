"""JupyterLab on a free port, for tests that look at it with a browser."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import GIVE_UP

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)"
)
# set to a folder to keep what the browser showed
SCREENSHOTS = os.environ.get("VIT_COURSE_SCREENSHOTS")
PHONES = (320, 390)  # pixels
_TOO_WIDE = """() => {
  document.querySelectorAll("details").forEach(each => { each.open = true })
  const boxes = [document.documentElement, ...document.querySelectorAll(".scroll, pre, table, svg")]
  const words = [...document.querySelectorAll("svg text")]
  const leaves = text => {
    const [own, picture] = [text, text.ownerSVGElement].map(each => each.getBoundingClientRect())
    return own.left < picture.left - 1 || own.right > picture.right + 1
  }
  const found = [...boxes.filter(each => each.scrollWidth > each.clientWidth), ...words.filter(leaves)]
  return found.map(each => `${each.scrollWidth} > ${each.clientWidth}: ${each.outerHTML.slice(0, 300)}`)
}"""


@contextmanager
def open_browser() -> Iterator[Any]:
    """A browser (playwright's), closed afterward."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with (
        playwright.sync_playwright() as driver,
        driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as browser,
    ):
        yield browser


def open_page(browser: Any, **options: Any) -> Any:
    """A page that waits as long as our tests do."""
    page = browser.new_page(**options)
    page.set_default_timeout(1000 * GIVE_UP)
    return page


def take_screenshot(page: Any, name: str, at: Any = None, **options: Any) -> None:
    """A picture of a page, at a place on it, where pictures are asked for."""
    if SCREENSHOTS:
        if at:
            at.first.scroll_into_view_if_needed()
        page.wait_for_timeout(1500)  # until what moves has come to rest
        page.screenshot(path=Path(SCREENSHOTS) / f"{name}.png", **options)


def find_cut_on_phones(*pages: Path) -> list[str]:
    """Return what is wider than its place on files' pages, on narrow screens, with everything unfolded."""
    found: list[str] = []
    with open_browser() as browser:
        opened = open_page(browser)
        for width in PHONES:
            opened.set_viewport_size({"width": width, "height": 900})
            for page in pages:
                opened.goto(page.as_uri())
                found += [f"{page.name} at {width} pixels, {each}" for each in opened.evaluate(_TOO_WIDE)]
                take_screenshot(opened, f"{page.stem}-{width}", full_page=True)
    return found


@contextmanager
def serve_jupyter_lab(folder: Path, settings: Path) -> Iterator[str]:
    """The address of a JupyterLab that serves ``folder`` and keeps its own settings in ``settings``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser"]
    options = ["--ip=127.0.0.1", f"--port={port}", "--IdentityProvider.token=", f"--ServerApp.root_dir={folder}"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "JUPYTERLAB_SETTINGS_DIR": str(settings)}
    tracker = settings / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    tracker.parent.mkdir(parents=True)
    tracker.write_text('{"windowingMode": "none"}')  # else cells out of view come and go while a test reads them
    log_file = settings / "lab.log"
    with log_file.open("w") as log:
        server = subprocess.Popen([*command, *options], env=environment, cwd=folder, stdout=log, stderr=log)
        address = f"http://127.0.0.1:{port}"
        try:
            _wait_for_server(address, server, log_file)
            yield address
        finally:
            server.terminate()
            server.wait(GIVE_UP)


def _wait_for_server(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + GIVE_UP
    while time.monotonic() < end:
        assert server.poll() is None, f"JupyterLab stopped: {log.read_text()[-2000:]}"
        try:
            with urllib.request.urlopen(f"{address}/api/status", timeout=GIVE_UP):
                return
        except OSError:
            time.sleep(0.25)
    raise AssertionError(f"JupyterLab did not answer: {log.read_text()[-2000:]}")
