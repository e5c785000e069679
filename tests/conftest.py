"""What the tests of several folders share."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# lessons that a test runs in a kernel leave no student's log behind
os.environ["VIT_COURSE_PROGRESS"] = "off"
# these compute what every answer to an exercise does, and keep it: an exercise's tests run in one process
OF_EXERCISES = ("test_checks", "test_hidden_checks", "test_distinguished", "test_simulated_cells", "test_hunts")
OF_EXERCISES += ("test_mutants", "test_gap")
# too long for one process: each of so many parts makes the file's fixtures once
PARTS = {"test_attacks": 2, "test_bypasses": 2, "test_weight_files": 2}
# after the plain roads, as what is long and begins last leaves a core without work
LONG = ("test_nbgrader", "test_sandbox", "test_policy", "test_run_all", "test_judge")
InTwoProcesses = Callable[..., tuple[Path, subprocess.CompletedProcess[str]]]
LAUNCHERS = {
    "torchrun": "torch.distributed.run --standalone --nproc-per-node 2",
    # --multi_gpu: what two processes are called here, on a CPU too, where accelerate would ask for MPI otherwise
    "accelerate": "accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --main_process_port 0 "
    "--mixed_precision no --dynamo_backend no",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of a whole run."""
    parser.addoption("--all", action="store_true", help="the proofs, too")


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of what `make test` leaves out."""
    config.addinivalue_line(
        "markers", "proof: over all known mistakes, mutants or attacks, or a long road that few changes touch"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put plain roads and long files first; leave the proofs out where neither ``--all`` nor ``-m`` asks for them."""
    place = {"journeys": -1} | {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda each: min(place.get(name, len(LONG)) for name in (*each.path.parts, each.path.stem)))
    if config.getoption("--all") or config.getoption("-m"):
        return
    proofs = [each for each in items if each.get_closest_marker("proof")]
    items[:] = [each for each in items if each not in proofs]
    config.hook.pytest_deselected(items=proofs)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """For ``--dist loadgroup``: an exercise's tests share a process, those of a part of a file, or of a file.

    xdist's own groups are left alone, for xdist 3.8 writes them where pytest 9.2 does not read them.
    """
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return name_group_of_test(nodeid)

    return ByGroup(config, log)


def name_group_of_test(nodeid: str) -> str:
    """The name of the group of a test."""
    file, _, test = nodeid.partition("::")
    name = Path(file).stem
    if name in OF_EXERCISES and (exercise := re.search(r"\[(\w+)", test)):
        return exercise[1]
    return f"{file} {zlib.crc32(nodeid.encode()) % PARTS.get(name, 1)}"


@pytest.fixture(scope="session")
def run_in_two_processes(tmp_path_factory: pytest.TempPathFactory) -> InTwoProcesses:
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
