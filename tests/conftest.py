"""What the tests of several folders share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

InTwoProcesses = Callable[[Callable[[Path], list[object]]], tuple[Path, subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="session")
def in_two_processes(tmp_path_factory: pytest.TempPathFactory) -> InTwoProcesses:
    """Runs Python in two processes that train together, in a new folder; the arguments may name the folder."""

    def run(arguments: Callable[[Path], list[object]]) -> tuple[Path, subprocess.CompletedProcess[str]]:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        folder = tmp_path_factory.mktemp("together")
        done = subprocess.run(
            [*launcher, *map(str, arguments(folder))],
            cwd=folder,
            env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )
        return folder, done

    return run
