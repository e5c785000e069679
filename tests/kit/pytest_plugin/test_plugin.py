"""Two doors, one judge: ``pytest tests/hidden --submission FILE`` and ``vit-course grade`` give the same verdicts."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from exercise_kit.engine.course import course
from tests.machine import needs_sandbox

ROOT = Path(__file__).parents[3]
LESSONS = course().lessons


def write_wrong_answer(exercise):
    """Answers that give back what goes in: some checks fail, and some pass."""
    if exercise.is_class:
        source = "class {}(torch.nn.Module):\n    def __init__(self, *sizes, **options):\n        super().__init__()\n"
        return "import torch\n\n" + "\n\n".join(
            f"{source.format(name)}\n    def forward(self, x, *_):\n        return x\n" for name in exercise.objects
        )
    return "\n\n".join(f"def {name}(*inputs):\n    return inputs[0]\n" for name in exercise.objects)


def run_pytest(path, folder):
    """Return what pytest tells: exercise and check → passed, failure or skipped; and what it prints."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/hidden", "--submission", path]
    command += ["--probe-seed", "secret", "--junitxml", folder / "told.xml"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    cases = ElementTree.parse(folder / "told.xml").iter("testcase")
    return {case.get("name"): case[0].tag if len(case) else "passed" for case in cases}, ended.stdout


@needs_sandbox
@pytest.mark.parametrize("is_right", [True, False], ids=["right", "wrong"])
@pytest.mark.parametrize(
    "lesson", [pytest.param(each, marks=[pytest.mark.proof] * (each != "01_patchify")) for each in LESSONS]
)
def test_pytest_tells_the_verdicts_and_points_of_the_judge(open_judge, work, tmp_path, lesson, is_right):
    handed_in = work(lesson, solved=True)
    asked = [each for each in course().exercises.values() if each.lesson == lesson and not each.file]
    if not is_right:
        handed_in.answer(**{each.name: write_wrong_answer(each) for each in asked})
    result = open_judge.grade(handed_in.read())
    verdicts = {"pass": "passed", "fail": "failure", "undecided": "skipped"}
    wanted = {
        f"{each.name}: {check.name.removeprefix('test_')}": verdicts[check.verdict]
        for each in result.exercises
        for check in each.checks
        if not check.leads
    }
    found, printed = run_pytest(handed_in.write(), tmp_path)
    assert {name: found[name] for name in wanted} == wanted
    assert {found[name] for name in found.keys() - wanted.keys()} <= {"skipped"}, "of other lessons"
    assert f"in all {result.points} points" in printed
    names = {each.name for each in asked}  # the file that lesson 07 asks for is not there
    assert is_right == all(each.score == each.max_score for each in result.exercises if each.name in names)
