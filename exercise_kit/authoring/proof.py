"""The proof of a class's own exercises: right answers pass, and each known mistake is caught and gets its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exercise_kit.engine.class_exercises import EXERCISES, LESSONS, describe_error_with_line
from exercise_kit.engine.course import course
from exercise_kit.engine.evaluate_check import Outcome, evaluate_check
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.run import run_checks
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.hidden_checks.checks import HiddenChecks

_KEYS = (b"proof 1", b"proof 2", b"proof 3")  # other sizes and numbers each time
Objects = Sequence[Callable[..., Any]]
Outcomes = Mapping[str, Sequence[Outcome]]  # of each check, in every draw
Tried = tuple[Misconception, Sequence[CheckResult], Outcomes]  # what public and hidden checks find of a known mistake


@dataclass(frozen=True)
class Proof:
    """What speaks against exercises (``problems``, a sentence with its file each), and what catches each mistake.

    Attributes: ``problems`` (none: the exercises are proven), ``caught``, by exercise and known mistake the names of
    the checks that catch it, "hidden" before those of hidden ones, and the exercises that are ``all_or_nothing``,
    because one hidden check gives all of their points.
    """

    problems: tuple[str, ...]
    caught: Mapping[str, Mapping[str, tuple[str, ...]]]
    all_or_nothing: tuple[str, ...] = ()


def prove_class_exercises(hidden: Path) -> Proof:
    """Prove the class's own exercises, and see that the course's hidden checks in the class can be used.

    Args:
        hidden: the folder of the hidden checks.

    Raises:
        HiddenChecksError: with file and line, when a file that is about no exercise cannot be used.
    """
    own = course().own
    if own is None:
        return Proof((), {})
    checks = HiddenChecks(hidden)
    found: list[str] = list(dict.fromkeys(checks.problems.values()))
    caught: dict[str, Mapping[str, tuple[str, ...]]] = {}
    for name, exercise in own.exercises.items():
        if name in checks.problems:
            continue
        if broken := [*_find_broken_claims(exercise, own.answers[name], own.folder.parent)]:
            found += broken  # whatever else was said would follow from that
            continue
        right = _run_grading_checks(exercise, own.answers[name], checks)
        mistakes = [
            (wrong, _run_public_checks(exercise, wrong.objects), _run_grading_checks(exercise, wrong.objects, checks))
            for wrong in exercise.misconceptions
        ]
        found += _find_public_problems(exercise, own.answers[name], mistakes)
        found += _find_hidden_problems(exercise, right, mistakes, f"{EXERCISES}/{name}.py")
        caught[name] = {wrong.name: _list_catching_checks(public, hidden) for wrong, public, hidden in mistakes}
    single = (name for name in caught if sum(each.worth > 0 for each in checks.exercises()[name]) == 1)
    return Proof(tuple(found), caught, tuple(single))


def _run_public_checks(exercise: Exercise, objects: Objects) -> Sequence[CheckResult]:
    return run_checks(exercise, dict(zip(exercise.objects, objects, strict=True)))


def _list_catching_checks(results: Sequence[CheckResult], outcomes: Outcomes) -> tuple[str, ...]:
    public = [each.name for each in results if each.verdict == Verdict.FAIL]
    hidden = [name for name, runs in outcomes.items() if any(each.result.verdict == Verdict.FAIL for each in runs)]
    return (*public, *(f"hidden {name}" for name in hidden))


def _find_broken_claims(exercise: Exercise, answer: Objects, class_dir: Path) -> Iterator[str]:
    """Public checks that break off with the right answer, each with the line at which it does."""
    where = f"{EXERCISES}/{exercise.name}.py"
    for check in exercise.checks:
        failure = evaluate_check(check, Student(dict(zip(exercise.objects, answer, strict=True)))).failure
        if failure and failure.error:  # no verdict of the check, but how it broke
            place = describe_error_with_line(failure.error, class_dir, where)
            yield f"{place}; the check {check.name} breaks off with the lesson's own answer"


def _find_public_problems(exercise: Exercise, answer: Objects, mistakes: Sequence[Tried]) -> Iterator[str]:
    where = f"{EXERCISES}/{exercise.name}.py"
    for name, count in Counter(wrong.name for wrong in exercise.misconceptions).items():
        if count > 1:
            yield f"{where}: {count} known mistakes are called {name!r}; rename them"
    for check in exercise.checks:
        if not check.claim:
            yield f"{where}: the check {check.name} has no docstring, which is the sentence that students read"
    for result in _run_public_checks(exercise, answer):
        if result.verdict != Verdict.PASS:
            refused = f"the check {result.name} refuses the answer of {LESSONS}/{exercise.lesson}.py"
            yield f"{where}: {refused}: {result.message}"
    for wrong, results, _ in mistakes:
        for words in _find_mistake_problems(wrong, results):
            yield f"{where}: the known mistake {wrong.name!r} {words}"


def _find_mistake_problems(mistake: Misconception, results: Sequence[CheckResult]) -> Iterator[str]:
    if not mistake.cause.explanation:
        yield "has no docstring, which explains it to the student"
    called = list(dict.fromkeys(cause.name for each in results for cause in each.causes))
    if not any(each.verdict == Verdict.FAIL for each in results):
        yield "is caught by no public check: a student who makes it reads that everything is right"
    elif mistake.name not in called:
        yield f"is caught, but the student reads {' or '.join(map(repr, called)) or 'no name at all'}"


def _find_hidden_problems(
    exercise: Exercise, right_outcomes: Outcomes, mistakes: Sequence[Tried], check_file: str
) -> Iterator[str]:
    broke = False
    for name, outcomes in right_outcomes.items():
        wrong = next((each for each in outcomes if each.result.verdict != Verdict.PASS), None)
        if wrong and wrong.broke:
            broke = True
            yield wrong.broke
        elif wrong:
            said = wrong.log.rstrip() or wrong.result.message
            yield f"{check_file}: {name} refuses the answer of {LESSONS}/{exercise.lesson}.py: {said}"
    if broke:  # what the others catch tells nothing of the whole
        return
    for mistake, _, found in mistakes:
        runs = zip(*found.values(), strict=True)
        missed = sum(not any(each.result.verdict == Verdict.FAIL for each in run) for run in runs)
        if missed:
            often = "" if missed == len(_KEYS) else f" in {missed} of {len(_KEYS)} draws"
            yield f"{check_file}: no hidden check catches the known mistake {mistake.name!r}{often}: it gets all points"


def _run_grading_checks(exercise: Exercise, objects: Objects, checks: HiddenChecks) -> Outcomes:
    found: dict[str, list[Outcome]] = {}
    named = dict(zip(exercise.objects, objects, strict=True))
    for key in _KEYS:
        outcomes = (each for each in checks.run(exercise.name, lambda: Student(named), key) if each.check.worth)
        for each in outcomes:
            found.setdefault(each.check.name, []).append(each)
    return found
