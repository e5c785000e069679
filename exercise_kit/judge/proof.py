"""The proof of a class's own exercises: right answers pass, and each known mistake is caught and gets its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from exercise_kit.engine.class_exercises import EXERCISES, LESSONS
from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.run import run_checks
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Verdict
from exercise_kit.judge.hidden import HiddenChecks, Outcome, file_of

_KEYS = (b"proof 1", b"proof 2", b"proof 3")  # other sizes and numbers each time
Objects = Sequence[Callable[..., Any]]


def unproven(hidden: Path) -> list[str]:
    """What speaks against the class's own exercises, a sentence with its file each; nothing: they are proven.

    Args:
        hidden: the folder of the hidden checks.

    Raises:
        HiddenChecksError: with file and line, when a file that is not about such an exercise cannot be used.
    """
    own = course().own
    if own is None:
        return []
    checks = HiddenChecks(hidden)
    try:
        found = []
        for name, exercise in own.exercises.items():
            if problem := checks.problems.get(name):
                found.append(problem)
                continue
            found += _public(exercise, own.answers[name])
            found += _hidden(exercise, own.answers[name], checks, f"{hidden.name}/{file_of(name)}")
        return found
    finally:
        checks.close()


def _public(exercise: Exercise, answer: Objects) -> Iterator[str]:
    where = f"{EXERCISES}/{exercise.name}.py"
    for name, count in Counter(wrong.name for wrong in exercise.misconceptions).items():
        if count > 1:
            yield f"{where}: {count} known mistakes are called {name!r}; rename them"
    for check in exercise.checks:
        if not check.claim:
            yield f"{where}: the check {check.name} has no docstring, which is the sentence that students read"
    for result in run_checks(exercise, dict(zip(exercise.objects, answer, strict=True))):
        if result.verdict != Verdict.PASS:
            refused = f"the check {result.name} refuses the answer of {LESSONS}/{exercise.lesson}.py"
            yield f"{where}: {refused}: {result.message}"
    for wrong in exercise.misconceptions:
        yield from (f"{where}: the known mistake {wrong.name!r} {words}" for words in _mistake(exercise, wrong))


def _mistake(exercise: Exercise, wrong: Misconception) -> Iterator[str]:
    if not wrong.cause.explanation:
        yield "has no docstring, which explains it to the student"
    results = run_checks(exercise, dict(zip(exercise.objects, wrong.objects, strict=True)))
    called = list(dict.fromkeys(cause.name for each in results for cause in each.causes))
    if not any(each.verdict == Verdict.FAIL for each in results):
        yield "is caught by no public check: whoever makes it reads that all is well"
    elif wrong.name not in called:
        yield f"is caught, but the student reads {' or '.join(map(repr, called)) or 'no name at all'}"


def _hidden(exercise: Exercise, answer: Objects, checks: HiddenChecks, where: str) -> Iterator[str]:
    for name, outcomes in _by_check(exercise, answer, checks).items():
        wrong = next((each for each in outcomes if each.result.verdict != Verdict.PASS), None)
        if wrong:
            said = wrong.log.rstrip() or wrong.result.message
            yield f"{where}: {name} refuses the answer of {LESSONS}/{exercise.lesson}.py: {said}"
    for mistake in exercise.misconceptions:
        runs = zip(*_by_check(exercise, mistake.objects, checks).values(), strict=True)
        missed = sum(not any(each.result.verdict == Verdict.FAIL for each in run) for run in runs)
        if missed:
            often = "" if missed == len(_KEYS) else f" in {missed} of {len(_KEYS)} draws"
            yield f"{where}: no hidden check catches the known mistake {mistake.name!r}{often}: it gets all points"


def _by_check(exercise: Exercise, objects: Objects, checks: HiddenChecks) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    named = dict(zip(exercise.objects, objects, strict=True))
    for key in _KEYS:
        for each in checks.run(exercise.name, lambda: Student(named), key):
            found.setdefault(each.check.name, []).append(each)
    return found
