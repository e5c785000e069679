"""What the tests of several folders share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# a course of its own, which tests/e2e/test_second_course.py has built and graded
collect_ignore = ["second_course"]
InTwoProcesses = Callable[..., tuple[Path, subprocess.CompletedProcess[str]]]
LAUNCHERS = {
    "torchrun": "torch.distributed.run --standalone --nproc-per-node 2",
    # --multi_gpu: what two processes are called here, on a CPU too, where accelerate would ask for MPI otherwise
    "accelerate": "accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --main_process_port 0 "
    "--mixed_precision no --dynamo_backend no",
}


@pytest.fixture(scope="session")
def in_two_processes(tmp_path_factory: pytest.TempPathFactory) -> InTwoProcesses:
    """Runs Python in two processes that train together, in a new folder; the arguments may name the folder."""

    def run(
        arguments: Callable[[Path], list[object]], launcher: str = "torchrun"
    ) -> tuple[Path, subprocess.CompletedProcess[str]]:
        folder = tmp_path_factory.mktemp("together")
        done = subprocess.run(
            [sys.executable, "-m", *LAUNCHERS[launcher].split(), *map(str, arguments(folder))],
            cwd=folder,
            env=os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"},
            capture_output=True,
            text=True,
            check=False,
        )
        return folder, done

    return run
