"""Each two misconceptions of an exercise are told apart by its public checks, and by its hidden ones, or are listed.

What is compared is what the diagnosis sees: in each check whether it failed, and what the student gave there. The
right answer is among those compared. For one exercise: ``pytest tests/course/test_distinguished.py --all -k patchify``.
"""

from itertools import combinations

import pytest

from exercise_kit.engine.exercise import Misconception
from exercise_kit.engine.name_failures import observe_misconception
from exercise_kit.engine.probes import silence
from exercise_kit.engine.records import is_same_record
from exercise_kit.engine.verdict import Cause, Verdict
from tests.course.test_checks import choose_mistakes
from tests.course.test_hidden_checks import EACH_EXERCISE, KEYS, run_hidden_checks
from vit_course.exercises.catalog import EXERCISES
from vit_course.staff.references import REFERENCE

RIGHT = "the right answer"
# exercise → two names → why the hidden checks cannot tell them apart; the public checks tell all of them apart
ALIKE_WHEN_GRADED = {
    "EncoderBlock": {
        ("layers in plain list", "layers made in forward"): "no parameter can be loaded, so no hidden check goes on",
    },
}


def find_indistinguishable_pairs(answers):
    """The names that stand for the same answers, two by two.

    Args:
        answers: name → for each check whether it failed, and what was given in it.
    """
    return {
        (first, second)
        for first, second in combinations(answers, 2)
        if all(
            failed == also_failed and is_same_record(given, also_given)
            for (failed, given), (also_failed, also_given) in zip(answers[first], answers[second], strict=True)
        )
    }


def list_mistakes_and_right_answer(exercise):
    right = Misconception(Cause(RIGHT, "", "", ""), REFERENCE[exercise.name])
    return [right, *choose_mistakes(exercise)]


def observe_in_public_checks(exercise):
    """Return what each of them does in each public check, as the diagnosis sees it."""
    with silence():
        return {
            wrong.name: [observe_misconception(wrong, exercise.objects, check) for check in exercise.checks]
            for wrong in list_mistakes_and_right_answer(exercise)
        }


def observe_in_hidden_checks(exercise):
    """Return what each of them does in each hidden check."""
    return {
        wrong.name: [
            (each.result.verdict == Verdict.FAIL, each.record)
            for each in run_hidden_checks(exercise.name, wrong.objects, KEYS[0])
        ]
        for wrong in list_mistakes_and_right_answer(exercise)
    }


def expect_distinguished(exercise, answers, listed, where):
    """Fail with the names of those that nothing tells apart, and of those that are listed for no reason."""
    found = find_indistinguishable_pairs(answers)
    problems = [
        f"*{first}* and *{second}* of {exercise} give the same in every {where} check: let a probe tell them apart, "
        "make one of them, or list them in this file with the reason"
        for first, second in sorted(found - set(listed))
    ]
    problems += [
        f"*{first}* and *{second}* of {exercise} are listed as one, and the {where} checks tell them apart"
        for first, second in sorted(set(listed) - found)
    ]
    assert not problems, "\n".join(problems)


@EACH_EXERCISE
@pytest.mark.proof
def test_public_checks_tell_all_apart(exercise):
    expect_distinguished(exercise, observe_in_public_checks(EXERCISES[exercise]), {}, "public")


@EACH_EXERCISE
@pytest.mark.proof
def test_hidden_checks_tell_all_apart_but_those_listed(exercise):
    listed = ALIKE_WHEN_GRADED.get(exercise, {})
    expect_distinguished(exercise, observe_in_hidden_checks(EXERCISES[exercise]), listed, "hidden")
