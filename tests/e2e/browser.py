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

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)"
)
# set to a folder to keep what the browser showed
SCREENSHOTS = os.environ.get("VIT_COURSE_SCREENSHOTS")


@contextmanager
def jupyter_lab(folder: Path, settings: Path) -> Iterator[str]:
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
            _wait_for(address, server, log_file)
            yield address
        finally:
            server.terminate()
            server.wait(30)


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        assert server.poll() is None, f"JupyterLab stopped: {log.read_text()[-2000:]}"
        try:
            with urllib.request.urlopen(f"{address}/api/status", timeout=2):
                return
        except OSError:
            time.sleep(0.25)
    raise AssertionError(f"JupyterLab did not answer: {log.read_text()[-2000:]}")
