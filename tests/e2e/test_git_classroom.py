"""The workflow of a Git classroom: its commands, run as GitHub runs them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.e2e.test_autograder import LESSON, ROOT, write_submission
from tests.machine import needs_sandbox
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.proof

WORKFLOW = yaml.safe_load((ROOT / "exercise_kit" / "templates" / "grade_workflow.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step["run"] for step in WORKFLOW["jobs"]["grade"]["steps"] if "run" in step}
# what downloads, and what changes the machine's settings, is only written down
STAND_IN = '#!/bin/sh\necho "$(basename "$0") $*" >> commands\n'


@pytest.fixture
def runner_folder(tmp_path: Path) -> Path:
    """The folder of a job after its checkouts."""
    (tmp_path / "course").symlink_to(ROOT)
    for name in ("submission", "bin", "home"):
        (tmp_path / name).mkdir()
    for name in ("pip", "sudo"):
        (tmp_path / "bin" / name).write_text(STAND_IN)
        (tmp_path / "bin" / name).chmod(0o755)
    write_submission(tmp_path / "submission", tmp_path / "ran")
    return tmp_path


def run_step(step: str, runner: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(runner / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [str(shutil.which("bash")), "-e", "-c", STEPS[step]],
        cwd=runner,
        env={"HOME": str(runner / "home"), "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=GIVE_UP,
    )


def read_results(runner: Path) -> list[dict[str, object]]:
    return json.loads((runner / "graded" / "results.json").read_bytes())["submissions"]


@needs_sandbox
def test_a_push_is_graded(runner_folder: Path) -> None:
    for step in STEPS:
        done = run_step(step, runner_folder, COURSE="school/vit_course")
        assert done.returncode == 0, done.stdout + done.stderr
    (graded,) = read_results(runner_folder)
    assert (graded["assignment"], graded["status"]) == (LESSON, "graded")
    assert graded["score"] == graded["max_score"]
    assert not (runner_folder / "ran").exists()  # the sandbox let nothing be written
    assert (runner_folder / "commands").read_text().splitlines() == [
        "pip install --constraint course/constraints.txt --editable course[grading]",
        "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ]


@needs_sandbox
def test_a_file_that_cannot_be_graded_fails_the_job_and_its_reason_is_kept(runner_folder: Path) -> None:
    (runner_folder / "submission" / f"{LESSON}.ipynb").write_text("<html>")
    assert run_step("Grade", runner_folder).returncode == 1
    (rejected,) = read_results(runner_folder)
    assert (rejected["status"], bool(rejected["reason"])) == ("rejected", True)


def test_without_the_course_s_address_it_says_what_to_set(runner_folder: Path) -> None:
    done = run_step("The course has a place", runner_folder, COURSE="")
    assert (done.returncode, done.stdout) == (1, "::error::set the organization's variable COURSE_REPOSITORY\n")
