"""The run under Colab's packages: of today's dependencies, and nothing upgraded there."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from colab import PINS, RESULTS, SHOWN, compute_dependencies_digest, read_colab_versions
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
# what no package of Colab's gives, so that the setup cell installs it
MISSING = {"torchinfo"}


@pytest.fixture(scope="module")
def results():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def test_the_last_run_was_with_today_s_dependencies(results):
    assert results["dependencies"] == compute_dependencies_digest(), (
        "dependencies have changed since the last run: make colab"
    )


def test_the_last_run_found_nothing_wrong_in_any_lesson(results):
    assert set(results["lessons"]) == {path.stem for path in (ROOT / "solutions").glob("*.py")}, "make colab"
    assert results["problems"] == []
    assert [row["problems"] for row in results["lessons"].values() if row["problems"]] == []
    assert all(row["reports"] and row["pictures"] for row in results["lessons"].values())


def test_the_last_run_was_under_colab_s_versions_and_added_only_what_was_missing(results):
    assert {name: results["versions"][name] for name in SHOWN} == {name: read_colab_versions()[name] for name in SHOWN}
    for each in results["setup"].values():
        assert set(each["installed"]) == {*MISSING, "vit-course"}


def test_no_dependency_of_a_student_s_asks_for_more_than_colab_has():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    theirs = {canonicalize_name(name): version for name, version in read_colab_versions().items()}
    required = [Requirement(each) for each in project["dependencies"]]
    assert {canonicalize_name(each.name) for each in required} - theirs.keys() == MISSING
    refused = [each for each in required if each.name in theirs and not each.specifier.contains(theirs[each.name])]
    assert refused == []


def test_colab_s_packages_are_named_by_name_and_version_only():
    lines = [line for line in PINS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!]+", line)] == []
