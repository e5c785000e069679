"""Tests that share what is slow to make run in one process, and long files in more than one."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import DEALT, JOURNEYS, OF_EXERCISES, PARTS, SHARE, group_of, pytest_collection_modifyitems

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


@pytest.mark.sampled
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


def test_no_part_has_two_journeys_or_no_exercise():
    files = [path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py")]
    assert {name for text in files for name in re.findall(r'mark\.sampled\("([^"]+)"\)', text)} == set(JOURNEYS)
    journeys, lessons, exercises = DEALT
    assert len(lessons) < len(journeys) <= SHARE < len(exercises)


def test_the_parts_of_a_sample_are_all_of_it_and_the_rest_is_always_run():
    def item(name, *marks):
        held = {each.name: each for each in marks}
        return SimpleNamespace(nodeid=name, get_closest_marker=held.get)

    sampled = pytest.mark.sampled.mark
    many = [item(f"test_checks.py::test_it[exercise{number}-slip]", sampled) for number in range(100)]
    others = [item(f"test_hidden_checks.py::test_it[exercise{number}-lapse]", sampled) for number in range(100)]
    long = [item(f"test_c.py::test_{number}", pytest.mark.sampled(JOURNEYS[3]).mark) for number in range(9)]
    always = [item("test_d.py::test_it")]

    def run(part, all_of_them=False):
        options = {"--all": all_of_them, "--part": part}
        hook = SimpleNamespace(pytest_deselected=lambda items: None)
        left = [*many, *others, *long, *always]
        pytest_collection_modifyitems(SimpleNamespace(getoption=options.get, hook=hook), left)
        return [each.nodeid for each in left]

    parts = [run(part) for part in range(SHARE)]
    assert parts[0] == run(0) == run(SHARE) != parts[1]
    assert all(part.pop() == always[0].nodeid for part in parts)
    assert sorted(name for part in parts for name in part) == sorted(each.nodeid for each in (*many, *others, *long))
    assert [sum("test_c.py" in name for name in part) for part in parts] == [
        len(long) * (part == 3) for part in range(SHARE)
    ]
    of_exercises = [
        {group_of(name) for name in part if f"{file}.py" in name} for part in parts for file in OF_EXERCISES
    ]
    both = [each for each in of_exercises if each]
    assert both[::2] == both[1::2], "the tests of one exercise are run together"
    assert len(run(0, all_of_them=True)) == 210
