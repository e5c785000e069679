"""Which known mistakes are behind what checks found: of ``check``, on its own draws, and of grading, on a class's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import cache

from exercise_kit.engine.chance import mark_numbers_made_by_chance
from exercise_kit.engine.diagnosis import Compared, Observe, Record, find_causes, find_causes_in_pairs
from exercise_kit.engine.evaluate_check import Outcome, evaluate_check
from exercise_kit.engine.exercise import Check, Exercise, Misconception, is_example_check
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Cause, CheckResult, Verdict
from exercise_kit.reasons import Reason

# a replay costs a check's time, 1 to 4 ms: so many in an exercise at most for single misconceptions, and so many
# failures that nobody explains; two_mistakes.get_most_pairs_evaluated bounds the pairs, as a rule evaluated once each
MOST_REPLAYS = 240
MOST_UNEXPLAINED = 3
_UNDIAGNOSED = (Reason.NOT_WRITTEN, Reason.TIME)


def name_failures(
    exercise: Exercise,
    outcomes: Sequence[Outcome],
    observe: Observe | None = None,
    student: Callable[[], Student] | None = None,
) -> list[Outcome]:
    """Give each failure the misconceptions that explain it, one or two at once.

    Args:
        exercise: whose checks and misconceptions these are.
        outcomes: in the order of the checks.
        observe: what a misconception does in a check; None: as :func:`observe_misconception` finds it,
            where ``check`` asks.
        student: makes the one that was asked, whom a misconception's sentence has to be true of, and who may have made
            wrong numbers by chance; None: that is not looked at.
    """

    def is_true_of_student(mistake: Misconception) -> bool:
        return student is None or mistake.is_true_of(student())

    asked = [each for each in outcomes if each.result.reason != Reason.WAITS_FOR_CHECK]
    records = {each.check.name: each.record for each in asked}
    failed = [each for each in asked if each.result.verdict == Verdict.FAIL and each.result.reason not in _UNDIAGNOSED]
    # what earns nothing comes last: its author begins with what tells most
    names = [each.check.name for each in sorted(failed, key=lambda each: not each.check.worth)]
    decisive = frozenset(each.check.name for each in asked if each.check.is_decisive)
    checks = {each.name: each for each in exercise.checks}

    def observe_where_check_asks(mistake: Misconception, name: str) -> tuple[bool, Record]:
        return observe_misconception(mistake, exercise.objects, checks[name])

    observe = observe or observe_where_check_asks
    seen = Compared(records, limit_replays(MOST_REPLAYS, observe), is_true_of_student)
    found: dict[str, tuple[Cause, ...]] = {}
    with suppress(_TooManyReplays):
        for each in failed:
            found[each.check.name] = _find_causes_of_failure(
                exercise, records, names, each.check.name, seen, found, decisive
            )
    found = drop_causes_of_examples_alone(
        find_causes_in_pairs(exercise, records, names, found, observe, decisive, is_true_of_student)
    )
    found = drop_causes_of_missing_errors(found, find_checks_about_errors(each.result for each in outcomes))
    named = [replace(each, result=replace(each.result, causes=found.get(each.check.name, ()))) for each in outcomes]
    return mark_numbers_made_by_chance(exercise, named, student) if student else named


def _find_causes_of_failure(
    exercise: Exercise,
    records: Mapping[str, Record],
    failed: Sequence[str],
    name: str,
    seen: Compared,
    causes_found_so_far: Mapping[str, tuple[Cause, ...]],
    decisive: Set[str],
) -> tuple[Cause, ...]:
    """Explain one failure: rather by what has explained others already, so that few are evaluated."""
    everyone, all_failed = exercise.misconceptions, dict.fromkeys(failed).keys()
    known = {cause for causes in causes_found_so_far.values() for cause in causes}
    likely = [each for each in everyone if each.cause in known]
    causes = find_causes(likely, records, all_failed, name, seen, decisive)
    if causes or sum(not each for each in causes_found_so_far.values()) >= MOST_UNEXPLAINED:
        return causes
    return find_causes(everyone, records, all_failed, name, seen, decisive)


def limit_replays(count: int, observe: Observe) -> Observe:
    """The same for so many misconceptions and checks; then the diagnosis goes on with what it has."""
    evaluated: set[tuple[str, str]] = set()

    def observe_bounded(mistake: Misconception, name: str) -> tuple[bool, Record]:
        evaluated.add((mistake.name, name))
        if len(evaluated) > count:
            raise _TooManyReplays
        return observe(mistake, name)

    return observe_bounded


class _TooManyReplays(Exception):
    """No more replays."""


def find_checks_about_errors(results: Iterable[CheckResult]) -> set[str]:
    """Failed checks that are about errors alone: bad input was accepted, or a guard met an exception of its own."""
    failed = [each for each in results if each.verdict == Verdict.FAIL]
    met = Counter(each.stumbled_over for each in failed)
    return {
        each.name
        for each in failed
        if each.reason == Reason.ACCEPTED
        or (each.guard and each.reason == Reason.RAISED and met[each.stumbled_over] == 1)
    }


def drop_causes_of_examples_alone(causes_of: Mapping[str, tuple[Cause, ...]]) -> dict[str, tuple[Cause, ...]]:
    """``causes_of`` without what only a docstring's example speaks for: it prints little, and many print the same.

    Args:
        causes_of: check → what explains its failure.
    """
    elsewhere = {cause for name, causes in causes_of.items() if not is_example_check(name) for cause in causes}
    return {
        name: tuple(each for each in causes if not is_example_check(name) or each in elsewhere)
        for name, causes in causes_of.items()
    }


def drop_causes_of_missing_errors(
    causes_of: Mapping[str, tuple[Cause, ...]], refusals: Collection[str]
) -> dict[str, tuple[Cause, ...]]:
    """``causes_of`` without the causes of a missing error that also explain another failure.

    To forget the error is a mistake of its own.

    Args:
        causes_of: check → what explains its failure.
        refusals: the checks that lack an error.
    """
    elsewhere = {cause for name, causes in causes_of.items() if name not in refusals for cause in causes}
    return {
        name: tuple(each for each in causes if name not in refusals or each not in elsewhere)
        for name, causes in causes_of.items()
    }


@cache
def observe_misconception(mistake: Misconception, names: tuple[str, ...], check: Check) -> tuple[bool, Record]:
    """Say whether a misconception fails a check, and what the check wrote down on the way."""
    outcome = evaluate_check(check, Student(dict(zip(names, mistake.objects, strict=True))))
    return outcome.result.verdict == Verdict.FAIL, outcome.record


def find_first_failed_check(exercise: Exercise, mistake: Misconception) -> str:
    """The name of the check with which ``check`` begins to tell of a misconception; "" where no check fails."""
    failed = (each.name for each in exercise.checks if observe_misconception(mistake, exercise.objects, each)[0])
    return next(failed, "")
