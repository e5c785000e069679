"""Wrong numbers that chance has made: a check that is asked again, with another seed, finds others.

What is said of such numbers, where the first difference is or which axis they follow, is about nothing. Where an
exercise draws by itself, weights say, a check gives other numbers for everybody, and tells nothing of this kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import torch

from exercise_kit.engine.exercise import Check, Exercise, Misconception
from exercise_kit.engine.expect import RANDOM
from exercise_kit.engine.probes import Probe, fresh_settings
from exercise_kit.engine.records import same_record
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Failure, Undecided, Verdict
from exercise_kit.reasons import Reason

_SEEDS = 1, 2
_LOOK = "Which line of yours draws random numbers, and who asked for it?"
_WITNESSES = 3  # known mistakes that tell whether a check gives everybody other numbers


def with_chance_named(
    exercise: Exercise, objects: Mapping[str, object], results: Sequence[CheckResult]
) -> list[CheckResult]:
    """The results of an exercise's checks, where wrong numbers that nobody has named are said to be made by chance.

    Only the first of them is asked again; what others say follows from the same.
    """
    unnamed = [
        each
        for each in results
        if each.verdict == Verdict.FAIL and each.reason == Reason.DIFFERENT and not each.causes and not each.guard
    ]
    if not unnamed or not _is_of_chance(exercise, objects, unnamed[0].name):
        return list(results)
    first = replace(unnamed[0], seen=RANDOM[0], expected=RANDOM[1], look=_LOOK)
    others = {each.name for each in unnamed[1:]}
    changed = (replace(each, same_as=first.name) if each.name in others else each for each in results)
    return [first if each.name == first.name else each for each in changed]


def _is_of_chance(exercise: Exercise, objects: Mapping[str, object], name: str) -> bool:
    check = next(each for each in exercise.checks if each.name == name)
    if _is_alike(check, objects):
        return False
    witnesses = exercise.misconceptions[:_WITNESSES]
    return all(_is_alike_for(wrong, exercise.objects, check) for wrong in witnesses)


@cache
def _is_alike_for(wrong: Misconception, names: tuple[str, ...], check: Check) -> bool:
    return _is_alike(check, dict(zip(names, wrong.objects, strict=True)))


def _is_alike(check: Check, objects: Mapping[str, object]) -> bool:
    """Whether a check finds the same with two seeds."""
    return same_record(*(_record(check, objects, seed) for seed in _SEEDS))


def _record(check: Check, objects: Mapping[str, object], seed: int) -> list[object]:
    student = Student(objects)
    with fresh_settings():
        torch.default_generator.manual_seed(seed)
        try:
            check.function(student, Probe(check.name, is_secret=False))
        except (Failure, Undecided):
            pass
        except Exception as error:  # what an odd answer sets off
            student.record.append(("broke off", type(error).__name__))
    return student.record
