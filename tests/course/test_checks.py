"""The proof of the public checks: they pass every right variant, and fail and name every misconception."""

import re
from dataclasses import replace
from functools import cache

import pytest

from exercise_kit.engine import check
from exercise_kit.engine.cause_groups import split_into_cause_groups_and_passed
from exercise_kit.engine.mistakes import Edit
from exercise_kit.engine.run import run_checks
from exercise_kit.reasons import Reason
from exercise_kit.simulate.modules import load_right_variants
from tests.answers import find_known_mistake
from vit_course.exercises.catalog import EXERCISES


@cache
def _load_variants():
    return load_right_variants()


def right_variants_of(exercise):
    """The right variants of an exercise, each a tuple of its objects."""
    return _load_variants()[exercise]


def find_owner_of_checks(exercise):
    """The exercise whose checks these are: its own, or of a bug hunt that shares them the one before it."""
    return next((each for each in EXERCISES.values() if each.checks is exercise.checks), exercise)


def choose_mistakes(exercise):
    """The misconceptions that tests try: all; where the same checks have caught them already, one in six."""
    return exercise.misconceptions if find_owner_of_checks(exercise) is exercise else exercise.misconceptions[::6]


EACH_EXERCISE = pytest.mark.parametrize("exercise", EXERCISES)


@cache
def report_on(exercise, wrong):
    """The report on a misconception, made once for the tests of this file."""
    return check(exercise, *wrong.objects, points=10)


@EACH_EXERCISE
def test_a_right_variant_passes(exercise):
    for objects in right_variants_of(exercise):
        report = check(exercise, *objects)
        # how good the model in a file is, the judge measures
        decided = tuple(each for each in report.results if each.reason != Reason.WAITS_FOR_JUDGE)
        assert replace(report, results=decided).passed, f"{objects[0].__name__}\n{report}"
        assert not report.misconceptions


@EACH_EXERCISE
@pytest.mark.proof
def test_a_misconception_fails_and_is_named(exercise):
    problems = []
    for wrong in choose_mistakes(EXERCISES[exercise]):
        report = report_on(exercise, wrong)
        if report.passed or report.score >= 10:
            problems.append(f"every check passes {wrong.name}")
        elif wrong.name not in report.misconceptions:
            problems.append(f"{wrong.name} is not named\n{report}")
        elif isinstance(wrong, Edit) and wrong.hunt and len(report.misconceptions) > 1:
            problems.append(f"{wrong.name} is hunted, and another name stands beside it\n{report}")
    assert not problems, "\n\n".join(problems)


FIRST_SCREEN = 14  # lines, with the heading: what is wrong, the cause, where to look, and what folds under it


@EACH_EXERCISE
@pytest.mark.proof
def test_a_misconception_is_reported_on_one_screen(exercise):
    for wrong in choose_mistakes(EXERCISES[exercise]):
        report = report_on(exercise, wrong)
        (first, *others), passing = split_into_cause_groups_and_passed(report.results)
        lines = str(report).splitlines()
        begins = [place for place, line in enumerate(lines) if re.match(r"  [✗○✓] ", line)]
        assert (begins[1] if len(others) or passing else len(lines)) <= FIRST_SCREEN, str(report)
        assert first.first.parts().keys() & {"Likely cause", "Where to look"}, str(report)
        assert all(each.claim not in str(report) for each in first.same), str(report)


NAMED = re.compile(r"\b(?:token|row|column|patch|image|entry|dimension|head|query|layer|block) [0-9]+\b")


@EACH_EXERCISE
@pytest.mark.proof
def test_a_question_is_about_what_was_seen(exercise):
    """A question that names a token or a row names the one that differs, and none that is right."""
    for wrong in choose_mistakes(EXERCISES[exercise]):
        for result in report_on(exercise, wrong).results:
            if result.verdict == "fail" and not result.causes:
                places = NAMED.findall(result.look)
                assert not places or any(each in f"{result.seen} {result.expected}" for each in places), result.message


@EACH_EXERCISE
@pytest.mark.proof
def test_every_check_is_failed_by_a_misconception(exercise):
    known = EXERCISES[exercise]
    if find_owner_of_checks(known) is not known:  # then they are that exercise's, which are failed there
        return
    answers = (dict(zip(known.objects, wrong.objects, strict=True)) for wrong in known.misconceptions)
    failed = {each.name for answer in answers for each in run_checks(known, answer) if each.verdict == "fail"}
    names = {each.name for each in known.checks}
    assert failed == names, f"no misconception fails {names - failed}"


@pytest.mark.parametrize("exercise", EXERCISES.values(), ids=lambda each: each.name)
def test_an_exercise_is_complete(exercise):
    """Three misconceptions at least, each with a name and texts of its own; every check has its sentence."""
    assert len(exercise.misconceptions) >= 3
    names = [wrong.name for wrong in exercise.misconceptions]
    assert len(set(names)) == len(names)
    for wrong in exercise.misconceptions:
        assert wrong.cause.explanation.endswith("."), wrong.name
        assert wrong.cause.question.endswith("?"), wrong.name
        assert wrong.cause.section.startswith(exercise.lesson + ", "), wrong.name
    assert all(each.claim.endswith(".") for each in exercise.checks)


def test_other_chance_in_mixup_is_reported_as_that():
    wrong = find_known_mistake("mixup", "partners by the global generator")
    seen = {each.seen for each in report_on("mixup", wrong).results}
    assert "the same seed gave another batch the second time" in seen
    assert not any("e-" in each or "cannot be compared" in each for each in seen)
