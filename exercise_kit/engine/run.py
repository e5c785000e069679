"""``check``: run an exercise's public checks on a student's code and report in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from exercise_kit.engine.arguments import find, problem_with, unknown
from exercise_kit.engine.calls import Around, ObjectsHere, as_it_is
from exercise_kit.engine.carried import parts_of, reference_in_place_of, sentence
from exercise_kit.engine.course import course
from exercise_kit.engine.diagnosis import Record, diagnose, run
from exercise_kit.engine.exercise import Exercise, Misconception, PublicCheck
from exercise_kit.engine.isolation import quiet, uncompiled
from exercise_kit.engine.rules import not_allowed
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Failure, Report, Undecided, Verdict
from exercise_kit.engine.words import quoted
from exercise_kit.reasons import Reason
from exercise_kit.worker.watch import Watch

_WHATEVER_THE_SIZES = (Reason.RAISED, Reason.PARAMETERS)
_COURSE = str(Path(__file__).parents[2])


def check(exercise: str = "", *objects: object, points: float | None = None) -> Report:
    """Check what you wrote: one line for every check, and for a mistake its name and where to look.

    Your objects are called on fresh inputs; nothing of yours is changed.

    Args:
        exercise: the exercise's name, as "patchify".
        objects: what you wrote for it: the function or class itself, not the result of calling it; the path of a
            file, where one is asked for.
        points: what the exercise is worth; set in graded cells.

    Returns:
        A report that shows itself as the value of a cell.

    Raises:
        ValueError: when ``points`` is no number that can be earned.
    """
    known = find(exercise)
    problem = problem_with(known, objects) if known else unknown(exercise, objects)
    if known is None or problem:
        name = known.name if known else isinstance(exercise, str) and quoted(exercise, 60).strip("`")
        return Report(name or "(no name)", points=points, problem=problem)
    if known.file:
        objects = tuple(map(known.file.opened, objects))
    watch = Watch(_COURSE)
    rule = course().rules.get(known.name)
    results, note = _with_right_parts(known, objects, watch.around if rule else as_it_is)
    if problem := not_allowed(rule, watch.names()):
        return Report(known.name, points=points, problem=problem)
    unwritten = any(each.unwritten for each in results)
    if unwritten and not any(each.verdict == Verdict.PASS for each in results):
        problem = f"{known.name} is not written yet. Fill in its cell, run it, and check again."
    return Report(known.name, results, points, problem, complete=not (unwritten and known.is_class), note=note)


def _with_right_parts(
    exercise: Exercise, objects: Sequence[object], around: Around
) -> tuple[tuple[CheckResult, ...], str | None]:
    """The results; where answers to other exercises that these objects call are wrong, as if they were right.

    Returns:
        the results, and a sentence on the answers that are wrong, or None.
    """
    named = dict(zip(exercise.objects, objects, strict=True))
    results = run_checks(exercise, named, around)
    parts = {} if _passing(results) == len(results) else parts_of(exercise, objects)
    if not parts:
        return results, None
    with reference_in_place_of(parts, objects):
        again = run_checks(exercise, named, around)
    gained = _passing(again) - _passing(results)
    if gained <= 0:
        return results, None
    exercises = course().exercises
    wrong = {name for name, held in parts.items() if not all(map(_passed, run_checks(exercises[name], held)))}
    failed = sum(each.verdict == Verdict.FAIL for each in again)
    return again, sentence(exercise.name, list(parts), wrong, gained, failed)


def _passed(result: CheckResult) -> bool:
    return result.verdict == Verdict.PASS


def _passing(results: Sequence[CheckResult]) -> int:
    return sum(map(_passed, results))


def run_checks(exercise: Exercise, objects: dict[str, object], around: Around = as_it_is) -> tuple[CheckResult, ...]:
    """Run every public check of ``exercise``; a check whose prerequisites have not all passed is undecided.

    Args:
        exercise: whose checks.
        objects: name → what was written for it.
        around: gives an object as it is to be called: watched, say.
    """
    results: dict[str, CheckResult] = {}
    records: dict[str, Record] = {}
    with quiet(), uncompiled():
        for each in exercise.checks:
            first = (results[name] for name in each.needs)
            if waits_for := next((result for result in first if result.verdict != Verdict.PASS), None):
                results[each.name] = _waiting(each, waits_for)
                continue
            student = Student(objects, ObjectsHere(objects, around))
            results[each.name] = replace(_run_one(each, student), worth=each.worth)
            records[each.name] = student.record
        failed = [name for name, each in results.items() if each.verdict == Verdict.FAIL and not each.unwritten]
        for name, causes in diagnose(exercise, records, failed).items():
            results[name] = replace(results[name], causes=causes)
    return without_repetition(list(results.values()))


def why_no_pair(exercise: Exercise, pair: Misconception) -> str:
    """Why two mistakes at once, of :func:`exercise_kit.engine.two_at_once.pairs_of`, are not told as what they are.

    Returns: "" for a pair that fails public checks and is named by them; else a clause that says what becomes of it.
    """
    results = run_checks(exercise, dict(zip(exercise.objects, pair.objects, strict=True)))
    named = list(dict.fromkeys(cause.name for each in results for cause in each.causes))
    if not any(each.verdict == Verdict.FAIL for each in results):
        return f"every public check of {exercise.name} passes {pair.name}"
    if named == [pair.name]:
        return ""
    told = " or ".join(named) or "nothing that has a name"
    return f"on the public checks of {exercise.name}, {pair.name} looks like {told}"


def _run_one(each: PublicCheck, student: Student) -> CheckResult:
    try:
        run(each, student)
    except (Failure, Undecided) as found:
        return as_result(each.name, each.claim, found)
    return CheckResult(each.name, each.claim, Verdict.PASS)


def as_result(name: str, claim: str, found: Failure | Undecided) -> CheckResult:
    """The line of a report for a check that ended in a failure or could not decide."""
    if isinstance(found, Undecided):
        return CheckResult(name, claim, Verdict.UNDECIDED, seen=str(found), reason=found.reason)
    words = found.seen, found.expected
    return CheckResult(name, claim, Verdict.FAIL, *words, look=found.look, reason=found.reason)


def _waiting(each: PublicCheck, waits_for: CheckResult) -> CheckResult:
    reason = f"it waits until “{waits_for.claim}” passes"
    return CheckResult(
        each.name, each.claim, Verdict.UNDECIDED, seen=reason, reason=Reason.WAITS_FOR_CHECK, worth=each.worth
    )


def without_repetition(results: list[CheckResult]) -> tuple[CheckResult, ...]:
    """Say the same thing once: a failure, or a cause, that was told before is only named again."""
    told: set[tuple[str, tuple[str, ...]]] = set()
    explained: set[tuple[str, ...]] = set()
    shortened = []
    for result in results:
        names = tuple(cause.name for cause in result.causes)
        # an exception, or a wrong name, comes back with other sizes for other inputs, and is the same all the same
        seen = re.sub(r"[0-9]+", "#", result.seen) if result.reason in _WHATEVER_THE_SIZES else result.seen
        known = bool(seen) and (seen, names) in told
        told.add((seen, names))
        if known and result.verdict == Verdict.FAIL:
            result = replace(result, seen="the same as above", expected="", look="")
        elif known and result.verdict == Verdict.UNDECIDED:
            waits = result.reason == Reason.WAITS_FOR_CHECK
            result = replace(result, seen="it waits for the same check" if waits else "the same as above")
        shortened.append(replace(result, again=bool(names) and names in explained))
        explained.add(names)
    return tuple(shortened)
