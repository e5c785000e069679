"""Tests that share what is slow to make run in one process, and long files in more than one."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import name_group_of_test, pytest_collection_modifyitems

ROOT = Path(__file__).parents[2]


def test_an_exercise_is_a_group_whatever_the_file():
    first = name_group_of_test(
        "tests/course/test_checks.py::test_a_misconception_fails_and_is_named[patchify-column order]"
    )
    assert (
        first
        == name_group_of_test("tests/proof/test_mutants.py::test_every_mutant_is_caught_or_listed[patchify]")
        == "patchify"
    )
    assert first != name_group_of_test("tests/proof/test_mutants.py::test_every_mutant_is_caught_or_listed[unpatchify]")


@pytest.mark.proof
def test_xdist_keeps_a_group_in_one_process():
    files = ["tests/course/test_groups.py", "tests/course/test_examples.py", "tests/kit/engine/test_compare.py"]
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
            processes[line.partition(" PASSED ")[2].partition("::")[0]].add(line[:5])
    assert len(processes) == len(files)
    assert all(len(each) == 1 for each in processes.values()), processes


def test_roads_come_first_then_long_files_and_proofs_only_where_they_are_asked_for():
    def make_test_item(name, *marks, path="kit/test_files.py"):
        return SimpleNamespace(nodeid=name, path=Path(path), get_closest_marker=dict.fromkeys(marks, 1).get)

    every = [
        make_test_item("test_a"),
        make_test_item("test_b", "proof"),
        make_test_item("test_c", path="test_policy.py"),
    ]
    every.append(make_test_item("test_d", path="journeys/test_class.py"))

    def select_tests(**asked):
        left_out = []
        config = SimpleNamespace(
            getoption=lambda name: asked.get(name.strip("-")),
            hook=SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items)),
        )
        left = list(every)
        pytest_collection_modifyitems(config, left)
        return [each.nodeid for each in left], [each.nodeid for each in left_out]

    assert select_tests() == (["test_d", "test_c", "test_a"], ["test_b"])
    assert select_tests(all=True) == select_tests(m="proof") == (["test_d", "test_c", "test_a", "test_b"], [])
