"""Tests that share what is slow to make run in one process, and long files in more than one."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.conftest import PARTS, group_of

ROOT = Path(__file__).parents[2]


def test_an_exercise_is_a_group_whatever_the_file():
    first = group_of("tests/course/test_checks.py::test_a_misconception_fails_and_is_named[patchify-column order]")
    assert (
        first == group_of("tests/proof/test_mutants.py::test_every_mutant_is_caught_or_listed[patchify]") == "patchify"
    )
    assert first != group_of("tests/proof/test_mutants.py::test_every_mutant_is_caught_or_listed[unpatchify]")


@pytest.mark.parametrize("name", PARTS)
def test_a_long_file_is_divided(name):
    groups = {group_of(f"tests/e2e/{name}.py::test_it[{number}]") for number in range(40)}
    assert len(groups) == PARTS[name]


def test_xdist_keeps_a_group_in_one_process():
    files = ["tests/course/test_groups.py", "tests/kit/engine/test_examples.py", "tests/kit/engine/test_compare.py"]
    options = ["-n", "2", "--dist", "loadgroup", "-v", "-p", "no:cacheprovider", "-k", "not xdist"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-o", "addopts=--import-mode=importlib", *files],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    processes = defaultdict(set)
    for line in done.stdout.splitlines():
        if line.startswith("[gw"):
            processes[group_of(line.partition(" PASSED ")[2])].add(line[:5])
    assert len(processes) == len(files)
    assert all(len(each) == 1 for each in processes.values()), processes
