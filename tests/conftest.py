"""What the tests of several folders share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

# a course of its own, which tests/e2e/test_second_course.py has built and graded
collect_ignore = ["second_course"]
# these compute what every answer to an exercise does, and keep it: an exercise's tests run in one process
OF_EXERCISES = ("test_checks", "test_hidden_checks", "test_told_apart", "test_simulated_cells", "test_hunts")
OF_EXERCISES += ("test_mutants", "test_gap")
# too long for one process: each of so many parts makes the file's fixtures once
PARTS = {"test_attacks": 2, "test_doors": 2, "test_weight_files": 2}
InTwoProcesses = Callable[..., tuple[Path, subprocess.CompletedProcess[str]]]
LAUNCHERS = {
    "torchrun": "torch.distributed.run --standalone --nproc-per-node 2",
    # --multi_gpu: what two processes are called here, on a CPU too, where accelerate would ask for MPI otherwise
    "accelerate": "accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --main_process_port 0 "
    "--mixed_precision no --dynamo_backend no",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the proof by mutants."""
    parser.addoption("--all", action="store_true", help="evaluate every mutant, and not a sample of them")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Say for ``--dist loadgroup`` which tests share a process: those of an exercise, of a part of a file, or of it."""
    if config.getoption("dist", "no") != "loadgroup":
        return
    counts, seen = Counter(item.path for item in items), Counter[Path]()
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group_of(item, seen[item.path] / counts[item.path])))
        seen[item.path] += 1


def _group_of(item: pytest.Item, place: float) -> str:
    """The group of a test; its ``place`` in its file is between 0 and 1."""
    name = item.path.stem
    if name in OF_EXERCISES and (parameters := getattr(item, "callspec", None)):
        exercise = parameters.params.get("exercise") or parameters.params.get("name")
        if exercise:
            return str(getattr(exercise, "name", exercise))
    part = int(place * PARTS.get(name, 1))
    return f"{item.path.relative_to(Path(__file__).parent)} {part}"


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
