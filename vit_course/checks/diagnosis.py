"""Which known mistake gives what the student gave? By matching outputs on the same inputs."""

from __future__ import annotations

import contextlib
from functools import cache

import torch

from vit_course.checks.exercise import Exercise, Misconception, PublicCheck
from vit_course.checks.probes import Probe
from vit_course.checks.student import Student, same_record
from vit_course.checks.verdict import Cause, Failure, Undecided

Record = list[object]


def observe(check: PublicCheck, student: Student) -> Record:
    """Run ``check`` on ``student`` and give back what it recorded, whatever the verdict.

    The probe depends on the check alone, so everybody is asked the same.
    """
    with contextlib.suppress(Failure, Undecided):
        run(check, student)
    return student.record


def run(check: PublicCheck, student: Student) -> None:
    """Run ``check`` with its own probe and a fixed random state, which is put back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        check.function(student, Probe(check.name))


def causes(exercise: Exercise, records: dict[str, Record], failed: str) -> tuple[Cause, ...]:
    """The misconceptions that explain why the check ``failed`` failed.

    Args:
        exercise: the exercise at hand.
        records: what the student gave in every check that ran, by the check's name.
        failed: the name of the check to explain.

    Returns:
        The misconceptions that gave the same in this check and, among those, agree with the student in the
        most other checks. More than one when these checks cannot tell them apart; none when nothing fits.
    """
    checks = {check.name: check for check in exercise.checks}
    matching = [wrong for wrong in exercise.misconceptions if _agree(exercise, wrong, checks[failed], records[failed])]
    if len(matching) > 1:
        votes = [
            sum(_agree(exercise, wrong, checks[name], record) for name, record in records.items()) for wrong in matching
        ]
        matching = [wrong for wrong, vote in zip(matching, votes, strict=True) if vote == max(votes)]
    return tuple(wrong.cause for wrong in matching)


def _agree(exercise: Exercise, wrong: Misconception, check: PublicCheck, record: Record) -> bool:
    return same_record(_record_of(wrong, exercise.objects, check), record)


@cache
def _record_of(wrong: Misconception, names: tuple[str, ...], check: PublicCheck) -> Record:
    return observe(check, Student(dict(zip(names, wrong.objects, strict=True))))
