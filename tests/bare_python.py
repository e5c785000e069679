"""A Python that has all that this one has but the course, to install it into: as Colab's, or a student's."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

# no index and no cache: whatever is installed comes from a file
OFFLINE = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
OFFLINE |= {"PIP_FIND_LINKS": "", "https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}


def make_bare_python(folder: Path) -> Path:
    """A new environment's Python. It reads this one's packages, but not the .pth file that leads to a clone."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    (Path(found.stdout.strip()) / "ours.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return python


def isolate_environment(environment: dict[str, str]) -> dict[str, str]:
    """Variables of the environment for such a Python: nothing of ours, and no network."""
    return {name: value for name, value in environment.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")} | OFFLINE
