"""What the tests of several folders share."""

from __future__ import annotations

import hashlib
import json
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
# a course of its own, which tests/e2e/test_second_course.py has built and graded
collect_ignore = ["second_course"]
# these compute what every answer to an exercise does, and keep it: an exercise's tests run in one process
OF_EXERCISES = ("test_checks", "test_hidden_checks", "test_distinguished", "test_simulated_cells", "test_hunts")
OF_EXERCISES += ("test_mutants", "test_gap")
# too long for one process: each of so many parts makes the file's fixtures once
PARTS = {"test_attacks": 2, "test_bypasses": 2, "test_weight_files": 2}
# of what is sampled, one in so many is run
SHARE = 20
# these are dealt out over the parts by their places, so that no part has two journeys, or no exercise
JOURNEYS = ("two processes", "gradebook", "own exercise", "train", "nbgrader agrees", "many machines", "simulate")
JOURNEYS += ("the second course", "exchange", "same file", "jupyterlab", "site", "autograder")
JOURNEYS += (
    "interrupted",
    "hand grading",
    "released again",
    "validate",
    "formgrader",
    "cluster",
    "two graders",
    "git classroom",
    "policy without namespaces",
)
LESSONS = json.loads((Path(__file__).parents[1] / "vit_course" / "exercises" / "outline.json").read_text("utf-8"))
DEALT = (JOURNEYS, [*LESSONS], [exercise for lesson in LESSONS.values() for exercise in lesson["points"]])
InTwoProcesses = Callable[..., tuple[Path, subprocess.CompletedProcess[str]]]
LAUNCHERS = {
    "torchrun": "torch.distributed.run --standalone --nproc-per-node 2",
    # --multi_gpu: what two processes are called here, on a CPU too, where accelerate would ask for MPI otherwise
    "accelerate": "accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --main_process_port 0 "
    "--mixed_precision no --dynamo_backend no",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of a run in tiers."""
    parser.addoption("--all", action="store_true", help="every test and mutant, and not a sample")
    parser.addoption("--part", type=int, default=0, help=f"the sample that is run, modulo {SHARE}")


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of what is sampled."""
    config.addinivalue_line("markers", "sampled(journey): many of a kind, or long; see tests/conftest.py")
    config.addinivalue_line("markers", "proof: over all known mistakes or mutants; run by `make proof`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the plain roads first; of what is marked as sampled run one part in :data:`SHARE`, or with ``--all`` all."""
    items.sort(key=lambda each: "journeys" not in each.path.parts)
    if config.getoption("--all") or config.getoption("-m") == "proof":
        return
    proof = [each for each in items if each.get_closest_marker("proof")]
    items[:] = [each for each in items if each not in proof]
    config.hook.pytest_deselected(items=proof)
    part = config.getoption("--part") % SHARE
    marked = [(each, each.get_closest_marker("sampled")) for each in items]
    items[:] = [each for each, mark in marked if mark is None or part_of(each, mark) == part]
    config.hook.pytest_deselected(items=[each for each, mark in marked if mark and part_of(each, mark) != part])


def part_of(item: pytest.Item, mark: pytest.Mark) -> int:
    """In which part of the sample a test is.

    The mark's name decides, for tests that share a fixture which takes long; else the exercise, for to name a mistake
    all the others of its exercise are evaluated; else what stands in the test's brackets, or the test's own name. What
    :data:`DEALT` lists is dealt out, everything else goes by a digest.
    """
    _, _, parameters = item.nodeid.partition("[")
    of_exercise = group_of(item.nodeid) if Path(item.nodeid.partition("::")[0]).stem in OF_EXERCISES else None
    key = mark.args[0] if mark.args else of_exercise or parameters.removesuffix("]") or item.nodeid
    for names in DEALT:
        if key in names:
            return names.index(key) % SHARE
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % SHARE


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
            return group_of(nodeid)

    return ByGroup(config, log)


def group_of(nodeid: str) -> str:
    """The name of the group of a test."""
    file, _, test = nodeid.partition("::")
    name = Path(file).stem
    if name in OF_EXERCISES and (exercise := re.search(r"\[(\w+)", test)):
        return exercise[1]
    return f"{file} {zlib.crc32(nodeid.encode()) % PARTS.get(name, 1)}"


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
