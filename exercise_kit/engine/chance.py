"""Wrong numbers that chance has made, or an earlier call: a check that is asked again finds others.

What is said of such numbers, where the first difference is or which axis they follow, is about nothing. Where an
exercise draws by itself, weights say, a check gives other numbers for everybody, and tells nothing of this kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import torch

from exercise_kit.engine.evaluate_check import Outcome
from exercise_kit.engine.exercise import Check, Exercise, Misconception
from exercise_kit.engine.expect import RANDOM
from exercise_kit.engine.probes import Probe, use_fresh_settings
from exercise_kit.engine.records import is_same_record
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Undecided

_SEEDS, _ONE_SEED = (1, 2), (1, 1)
_BY_CHANCE = *RANDOM, "Which line of yours draws random numbers, and who asked for it?"
_BY_EARLIER_CALL = (
    "it gives other numbers when the same call is made again",
    "one and the same result from every call",
    # no seed of torch's reaches what numpy or Python's random draws
    "What is not the same at the second call: a list behind `=` in a `def` line, a name of the notebook, or numbers "
    "that are drawn outside torch?",
)
_WITNESSES = 3  # known mistakes that tell whether a check gives everybody other numbers


def mark_numbers_made_by_chance(
    exercise: Exercise, outcomes: Sequence[Outcome], make_student: Callable[[], Student]
) -> list[Outcome]:
    """Say of wrong numbers that nobody has named that they are made by chance, or by an earlier call, where they are.

    Only the first of them is asked again; what others say follows from the same.

    Args:
        exercise: whose checks.
        outcomes: with their causes.
        make_student: makes the one that was asked.
    """
    unnamed = [each for each in outcomes if each.result.is_unnamed_number and not each.result.guard]
    if not unnamed or not _fails_by_chance(exercise, unnamed[0].check, make_student):
        return list(outcomes)
    seen, expected, look = _BY_CHANCE if _is_repeatable(unnamed[0].check, make_student, _ONE_SEED) else _BY_EARLIER_CALL
    first = replace(unnamed[0].result, seen=seen, expected=expected, look=look)
    told = {each.check.name: replace(each.result, same_as=first.name) for each in unnamed} | {first.name: first}
    return [replace(each, result=told.get(each.check.name, each.result)) for each in outcomes]


def _fails_by_chance(exercise: Exercise, check: Check, make_student: Callable[[], Student]) -> bool:
    if _is_repeatable(check, make_student):
        return False
    witnesses = exercise.misconceptions[:_WITNESSES]
    return all(_is_repeatable_with_mistake(wrong, exercise.objects, check) for wrong in witnesses)


@cache
def _is_repeatable_with_mistake(mistake: Misconception, names: tuple[str, ...], check: Check) -> bool:
    return _is_repeatable(check, lambda: Student(dict(zip(names, mistake.objects, strict=True))))


def _is_repeatable(check: Check, make_student: Callable[[], Student], seeds: tuple[int, int] = _SEEDS) -> bool:
    """Say whether a check finds the same with two seeds, or twice with one."""
    return is_same_record(*(_run_check_with_seed(check, make_student(), seed) for seed in seeds))


def _run_check_with_seed(check: Check, student: Student, seed: int) -> list[object]:
    with use_fresh_settings():
        torch.default_generator.manual_seed(seed)
        try:
            check.function(student, Probe(check.name, is_secret=False))
        except (Failure, Undecided):
            pass
        except Exception as error:  # what an odd answer sets off
            student.note(("broke off", type(error).__name__))
    return student.record
