"""``check``: run an exercise's public checks on a student's code and report in words."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import io
import warnings
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import nn

from vit_course.checks.catalogue import EXERCISES
from vit_course.checks.diagnosis import Record, causes, run
from vit_course.checks.exercise import Exercise, PublicCheck
from vit_course.checks.student import Student
from vit_course.checks.verdict import CheckResult, Failure, NotWritten, Report, Undecided, Verdict


def check(exercise: str, *objects: object, points: float | None = None) -> Report:
    """Check what you wrote: one line for every check, and for a mistake its name and where to look.

    Your objects are called on fresh inputs; nothing of yours is changed.

    Args:
        exercise: the exercise's name, as "patchify".
        objects: what you wrote for it: the function or class itself, not the result of calling it.
        points: what the exercise is worth; set in graded cells.

    Returns:
        A report that shows itself as the value of a cell.
    """
    known = _find(exercise)
    if known is None:
        return Report(str(exercise), points=points, problem=_unknown(str(exercise)))
    if problem := _wrong_objects(known, objects):
        return Report(known.name, points=points, problem=problem)
    results = run_checks(known, dict(zip(known.objects, objects, strict=True)))
    nothing_there = any(each.unwritten for each in results) and not any(
        each.verdict == Verdict.PASS for each in results
    )
    problem = f"{known.name} is not written yet. Fill in its cell, run it, and check again."
    return Report(known.name, results, points, problem if nothing_there else None)


def run_checks(exercise: Exercise, objects: dict[str, object]) -> tuple[CheckResult, ...]:
    """Run every public check of ``exercise``; a check whose prerequisite has not passed is undecided."""
    results: dict[str, CheckResult] = {}
    records: dict[str, Record] = {}
    with _quiet():
        for each in exercise.checks:
            waits_for = results.get(each.needs or "")
            if waits_for is not None and waits_for.verdict != Verdict.PASS:
                results[each.name] = _waiting(each, waits_for)
                continue
            student = Student(objects)
            results[each.name] = _run_one(each, student)
            records[each.name] = student.record
        named = {name: _with_causes(exercise, each, records) for name, each in results.items()}
    return _without_repetition(list(named.values()))


def _run_one(each: PublicCheck, student: Student) -> CheckResult:
    try:
        run(each, student)
    except NotWritten as missing:
        return CheckResult(each.name, each.claim, Verdict.FAIL, seen=missing.seen, unwritten=True)
    except Failure as failure:
        return CheckResult(each.name, each.claim, Verdict.FAIL, failure.seen, failure.expected, look=failure.look)
    except Undecided as reason:
        return CheckResult(each.name, each.claim, Verdict.UNDECIDED, seen=str(reason))
    return CheckResult(each.name, each.claim, Verdict.PASS)


def _waiting(each: PublicCheck, waits_for: CheckResult) -> CheckResult:
    reason = f"it waits until “{waits_for.claim}” passes"
    return CheckResult(each.name, each.claim, Verdict.UNDECIDED, seen=reason, waits=True)


def _with_causes(exercise: Exercise, result: CheckResult, records: dict[str, Record]) -> CheckResult:
    if result.verdict != Verdict.FAIL or result.unwritten:
        return result
    return replace(result, causes=causes(exercise, records, result.name))


def _without_repetition(results: list[CheckResult]) -> tuple[CheckResult, ...]:
    """Say the same thing once: a failure, or a cause, that was told before is only named again."""
    told: set[tuple[str, tuple[str, ...]]] = set()
    explained: set[tuple[str, ...]] = set()
    shortened = []
    for result in results:
        names = tuple(cause.name for cause in result.causes)
        if result.verdict == Verdict.FAIL and (result.seen, names) in told:
            result = replace(result, seen="the same as above", expected="", look="")
        told.add((result.seen, names))
        shortened.append(replace(result, again=bool(names) and names in explained))
        explained.add(names)
    return tuple(shortened)


def _find(name: str) -> Exercise | None:
    by_lower = {known.lower(): known for known in EXERCISES}
    return EXERCISES.get(by_lower.get(str(name).lower(), ""))


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), [known.lower() for known in EXERCISES], n=1, cutoff=0.5)
    names = {known.lower(): known for known in EXERCISES}
    hint = f" Did you mean `{names[near[0]]}`?" if near else f" There are: {', '.join(EXERCISES)}."
    return f"There is no exercise called `{name}`.{hint}"


def _wrong_objects(exercise: Exercise, objects: tuple[object, ...]) -> str | None:
    usage = f'`check("{exercise.name}", {", ".join(exercise.objects)})`'
    if len(objects) != len(exercise.objects):
        return f"{exercise.name} takes {len(exercise.objects)} thing(s) to check, not {len(objects)}: {usage}"
    for name, given in zip(exercise.objects, objects, strict=True):
        if exercise.is_class and isinstance(given, nn.Module):
            return f"{name} was given as a module that is built already. Give the class itself: {usage}"
        if exercise.is_class and not inspect.isclass(given):
            return f"{name} has to be a class, this is a {type(given).__name__}: {usage}"
        if not callable(given):
            kind = type(given).__name__
            return f"{name} has to be a function, this is a {kind}. Give it without calling it: {usage}"
    return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing on stderr (nbgrader scores such a cell zero), and torch's default dtype as at a fresh start."""
    dtype = torch.get_default_dtype()
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), torch.enable_grad():
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
