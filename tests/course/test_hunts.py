"""The proof of the hunting grounds: right without a bug, and with one exactly the mistake that its line names."""

from itertools import combinations
from pathlib import Path

import pytest

from exercise_kit.engine import check
from exercise_kit.engine.evaluate_check import evaluate_check
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Verdict
from tests.course.test_checks import find_owner_of_checks
from tests.our_hidden_checks import hidden_checks
from vit_course.exercises.catalog import EXERCISES
from vit_course.hunts.choose import list_hunting_grounds
from vit_course.hunts.suspect import Suspect

KEY = b"a hunt"
# the bug that a lesson tells its story of, in the exercise that is hunted there; nobody draws it again
STORIES = {
    "patchify": "column order",
    "resize_positions": "reshaped both ways",
    "EncoderBlock": "residual from the normed stream",
    "VisionTransformer": "class token last",
    "train_one_epoch": "gradients cleared once",
}
LESSONS = sorted(path.stem for path in (Path(__file__).parents[2] / "solutions").glob("*.py"))


def make_program(name, *bugs):
    ground = list_hunting_grounds()[name]
    return Suspect(name, "under test", ground.text(bugs), ground.defines, len(bugs)).program


def make_student(name, program):
    return Student({EXERCISES[name].objects[0]: program})


def fails_a_public_check(name, program):
    """Say whether one of the exercise's checks is failed; the others are not run."""
    return any(evaluate_check(each, make_student(name, program)).failure for each in EXERCISES[name].checks)


EACH_GROUND = pytest.mark.parametrize("name", list_hunting_grounds())


def test_every_lesson_has_a_ground():
    assert {EXERCISES[name].lesson for name in list_hunting_grounds()} == set(LESSONS)
    assert len(list_hunting_grounds()) >= 19


@EACH_GROUND
def test_a_ground_without_bugs_passes_every_check(name):
    made = make_program(name)
    report = check(name, made)
    assert report.passed, str(report)
    for outcome in hidden_checks().run(name, lambda: make_student(name, made), KEY):
        assert outcome.result.verdict == Verdict.PASS, f"{outcome.check.name}: {outcome.result.message}\n{outcome.log}"


@EACH_GROUND
def test_a_ground_has_bugs_enough_and_none_is_the_lesson_s_story(name):
    bugs = {bug.name for bug in list_hunting_grounds()[name].bugs}
    assert len(bugs) >= 4
    told = {STORIES[name]} if name in STORIES else set()
    assert told <= {wrong.name for wrong in EXERCISES[name].misconceptions} - bugs


@EACH_GROUND
def test_a_bug_is_a_known_mistake_of_the_exercise_itself_under_another_name(name):
    """So what test_checks.py and test_hidden_checks.py prove of a mistake holds here: it fails, and is named alone."""
    assert find_owner_of_checks(EXERCISES[name]) is EXERCISES[name], "all of its mistakes are tried there"
    ground = list_hunting_grounds()[name]
    assert ground.program is EXERCISES[name].program
    known = {wrong.name: wrong for wrong in EXERCISES[name].misconceptions}
    assert all(known[bug.name].bug is bug for bug in ground.bugs)


@EACH_GROUND
@pytest.mark.proof
def test_two_bugs_at_once_run_and_fail(name):
    apart = [pair for pair in combinations(list_hunting_grounds()[name].bugs, 2) if not pair[0].touches(pair[1])]
    assert apart
    innocent = [
        [bug.name for bug in pair] for pair in apart if not fails_a_public_check(name, make_program(name, *pair))
    ]
    assert innocent == []
