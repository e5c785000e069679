"""``check``: from the name of an exercise and a student's objects to a report in words.

An error is carried forward: an answer that calls another exercise's is also evaluated with the reference there.
"""

from __future__ import annotations

import contextlib
import difflib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

from torch import nn

from exercise_kit.engine.call_rules import not_allowed
from exercise_kit.engine.call_trace import Watch
from exercise_kit.engine.chance import with_chance_named
from exercise_kit.engine.compare import kind_of, listed
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import package
from exercise_kit.engine.diagnosis import Record, diagnose
from exercise_kit.engine.errors import LIBRARIES, OURS
from exercise_kit.engine.evaluate_check import evaluate_check
from exercise_kit.engine.exercise import Check, Exercise, Misconception
from exercise_kit.engine.first_cause import with_first_causes
from exercise_kit.engine.lent import is_lent
from exercise_kit.engine.local_backend import LocalBackend
from exercise_kit.engine.notebook_or_script import older_than_its_cell, printed_in_a_script
from exercise_kit.engine.pace import pace_of
from exercise_kit.engine.printed import first_call_printed
from exercise_kit.engine.probes import quiet, uncompiled
from exercise_kit.engine.python_slips import definitions_of, line_left_over, renamed, slip_in
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Report, Verdict
from exercise_kit.engine.waiting_cells import noting_failures
from exercise_kit.engine.watchdog import Watchdog, not_watched, watching
from exercise_kit.progress.log import noting
from exercise_kit.quoting import quoted
from exercise_kit.reasons import Reason


def find(name: object) -> Exercise | None:
    """The exercise called ``name``, in whatever case."""
    return _by_lower_case().get(name.strip().lower()) if isinstance(name, str) else None


def _by_lower_case() -> dict[str, Exercise]:
    return {name.lower(): exercise for name, exercise in course().exercises.items()}


def unknown(name: object, objects: tuple[object, ...] = (), called: str = "check") -> str:
    """What to say when ``name`` is no exercise, to who ``called`` a function with it."""
    if not isinstance(name, str):
        meant = next(filter(None, map(find, (*objects, getattr(name, "__name__", None)))), _first())
        return f"The name of the exercise comes first, in quotes: {_call_of(called, meant)}. This is {kind_of(name)}."
    if not name.strip():
        wanted = "its name, and what you wrote for it" if called == "check" else "its name"
        return f"Which exercise? Give {wanted}: {_call_of(called, _first())}."
    known = _by_lower_case()
    near = difflib.get_close_matches(name.strip().lower(), known, n=1, cutoff=0.5)
    all_of_them = ", ".join(each.name for each in known.values())
    hint = f"Did you mean {_call_of(called, known[near[0]])}?" if near else f"There are: {all_of_them}."
    return f"There is no exercise called {quoted(name, 60)}. {hint}"


def _call_of(called: str, exercise: Exercise) -> str:
    return usage(exercise) if called == "check" else f'`{called}("{exercise.name}")`'


def _first() -> Exercise:
    return next(iter(course().exercises.values()))


def usage(exercise: Exercise) -> str:
    """The call that checks ``exercise``, as code."""
    if exercise.file:
        return f'`check("{exercise.name}", "{exercise.file.name}")`'
    return f'`check("{exercise.name}", {", ".join(exercise.objects)})`'


def problem_with(exercise: Exercise, objects: tuple[object, ...]) -> str | None:
    """Why these objects cannot be checked; None when they can."""
    if exercise.problem:
        return f"{exercise.name} cannot be checked until its author has repaired it: {exercise.problem}"
    wanted = len(exercise.objects)
    if len(objects) != wanted:
        count = "Nothing was" if not objects else "Only one was" if len(objects) == 1 else f"{len(objects)} were"
        return f"{exercise.name} needs {_counted(wanted, exercise)}. {count} given. Write {usage(exercise)}."
    names = [getattr(each, "__name__", None) for each in objects]
    if names != list(exercise.objects) and set(names) == set(exercise.objects):
        return f"These are the right ones in the wrong order. Write {usage(exercise)}."
    if exercise.file:
        wrong = f"The name of a file is asked for, and this is {kind_of(objects[0])}. Write {usage(exercise)}."
        return None if isinstance(objects[0], str | Path) or inspect.isfunction(objects[0]) else wrong
    for index, given in enumerate(objects):
        if problem := _wrong_kind(exercise, index, given) or _wrong_parameters(exercise, index, given):
            return problem
    return None


def _counted(wanted: int, exercise: Exercise) -> str:
    if exercise.file:
        return "the name of your file"
    kind = ("class", "classes") if exercise.is_class else ("function", "functions")
    return f"one {kind[0]} to check" if wanted == 1 else f"{wanted} {kind[1]} to check"


def _wrong_kind(exercise: Exercise, index: int, given: object) -> str | None:
    kind = "class" if exercise.is_class else "function"
    if inspect.isclass(given) if exercise.is_class else callable(given) and not inspect.isclass(given):
        return None
    advice = "Write"
    if isinstance(given, str):
        advice = "Leave out the quotes:"
    elif not callable(given) and given is not None:
        advice = f"Give the {kind} itself, without calling it:"
    elif exercise.is_class and isinstance(given, nn.Module):
        advice = "Give the class itself, without building it:"
    return f"{exercise.objects[index]} has to be a {kind}, and this is {kind_of(given)}. {advice} {usage(exercise)}."


def _wrong_parameters(exercise: Exercise, index: int, given: object) -> str | None:
    """Whether ``given`` can be called with as many arguments as the exercise's own signature has."""
    expected = _parameters(exercise, index)
    try:
        signature = inspect.signature(given)  # type: ignore[arg-type]  # _wrong_kind let callables pass only
    except (TypeError, ValueError):  # some callables do not tell
        return None
    if expected is None or _takes(signature, len(expected)):
        return None
    name = exercise.objects[index]
    verb = "is built" if exercise.is_class else "is called"
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    yours = quoted(signature.replace(parameters=bare, return_annotation=signature.empty))
    return f"{name} {verb} as `{name}({', '.join(expected)})`, but yours takes {yours}."


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _parameters(exercise: Exercise, index: int) -> list[str] | None:
    """Names of the parameters without a default, as the wrong implementations have them too."""
    for wrong in exercise.misconceptions:
        parameters = _own_parameters(wrong.objects[index])
        if parameters and all(each.kind is each.POSITIONAL_OR_KEYWORD for each in parameters):
            return [each.name for each in parameters if each.default is each.empty]
    return None


def _own_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def parts_of(exercise: Exercise, objects: Sequence[object]) -> dict[str, dict[str, Any]]:
    """The other exercises' answers that these objects call: exercise → the student's objects by name.

    Args:
        exercise: what the objects were written for.
        objects: functions and classes; what calls by other ways than a global name is not seen.
    """
    functions = [function for each in objects for function in _functions(each)]
    names = {name for function in functions for name in _names(function.__code__)}
    found: dict[str, dict[str, Any]] = {}
    for part in course().reference_modules:
        known = course().exercises[part]
        if known.lesson != exercise.lesson or known.checks is exercise.checks or names.isdisjoint(known.objects):
            continue
        held = {name: function.__globals__[name] for name in known.objects for function in functions
                if name in function.__globals__}  # fmt: skip
        if held.keys() == set(known.objects):
            found[part] = held
    return found


@contextlib.contextmanager
def reference_in_place_of(parts: Mapping[str, Mapping[str, Any]], objects: Sequence[object]) -> Iterator[None]:
    """Inside, the functions of ``objects`` find the reference under the names of ``parts``; then all is as before."""
    module_of = course().reference_modules
    right = {name: getattr(import_module(module_of[part]), name) for part, held in parts.items() for name in held}
    namespaces = {id(function.__globals__): function.__globals__ for each in objects for function in _functions(each)}
    kept = [(each, {name: each[name] for name in right if name in each}) for each in namespaces.values()]
    try:
        for namespace, before in kept:
            namespace.update({name: right[name] for name in before})
        yield
    finally:
        for namespace, before in kept:
            namespace.update(before)


def sentence_on_parts(name: str, parts: Sequence[str], wrong: Collection[str], gained: int, failed: int) -> str:
    """What the student reads about the parts.

    Args:
        name: of the exercise.
        parts: the names of the exercises whose answers it calls.
        wrong: those of which checks of their own fail; empty where these were not evaluated.
        gained: how many checks pass only with right answers to the parts.
        failed: how many checks fail all the same.
    """
    names = [f"`{part}`" for part in parts if part in wrong] or [f"`{part}`" for part in parts]
    calls = f"calls your {listed(names)}, which {'is' if len(names) == 1 else 'are'} not right"
    if not failed:
        return f"{name} is right. It {calls}: the mistake is there, and costs points there alone."
    more = "1 more check passes and counts" if gained == 1 else f"{gained} more checks pass and count"
    return f"{name} {calls}. With right ones in their places {more}; what fails below is the mistake of {name}."


def _functions(of: object) -> Iterator[Callable[..., Any]]:
    """The student's functions in an object: itself, or the methods of a class; none of the course's own."""
    ours = f"{package()}."
    held = vars(of).values() if inspect.isclass(of) else (of,)
    for each in map(inspect.unwrap, filter(callable, held)):
        if inspect.isfunction(each) and not str(each.__globals__.get("__name__")).startswith(ours):
            yield each


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function looks up, in the functions inside it too."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


# exercise → what passed its check last in this process
_passed_objects: dict[str, dict[str, object]] = {}
_SAME_UP_TO_NUMBERS = (Reason.RAISED, Reason.PARAMETERS, Reason.TIME, Reason.KIND)
_COURSE = str(Path(__file__).parents[2])
_HIDDEN = "Grading uses more checks, and other numbers."


@printed_in_a_script
@noting
@noting_failures
def check(exercise: str = "", *objects: object, points: float | None = None) -> Report:
    """Check what you wrote: one line for every check, and for a mistake its name and where to look.

    Your objects are called on fresh inputs; nothing of yours is changed.

    Args:
        exercise: the exercise's name, as "one_hot".
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
    if any(map(is_lent, objects)):
        lent = f"This {known.name} is the course's, and earns nothing. Run your own cell again, then check yours."
        return Report(known.name, points=points, problem=lent)
    if known.file:
        objects = tuple(map(known.file.opened, objects))
    report = report_on(known, objects, points)
    older = older_than_its_cell(known)
    if older and any(each.unwritten for each in report.results):  # what the cell holds now is written
        return replace(report, problem=older)
    report = replace(report, older=older or None)
    if not report.passed:
        return report
    report = replace(report, hint=_HIDDEN)
    _passed_objects[known.name] = dict(zip(known.objects, objects, strict=True))
    report = replace(report, pace=pace_of(known, objects))
    if report.note or known.lesson not in course().built_upon or not is_part(known):
        return report
    return replace(report, offer=f'`keep("{known.name}")` takes it to the next lessons.')


def report_on(known: Exercise, objects: Sequence[object], points: float | None = None) -> Report:
    """What the public checks of an exercise find about objects of the right kind."""
    watch = Watch(_COURSE, (package(), "exercise_kit"))
    rule = course().rules.get(known.name)
    with Watchdog(known.name, OURS, LIBRARIES), first_call_printed():
        results, note = _with_right_parts(known, objects, watch if rule else None)
    if problem := not_allowed(rule, watch.names()):
        return Report(known.name, points=points, problem=problem)
    unwritten = any(each.unwritten for each in results)
    written = definitions_of(objects) if _passing(results) < len(results) else []
    if unwritten and not any(each.verdict == Verdict.PASS for each in results):
        problem = f"{known.name} is not written yet. Fill in its cell, run it, and check again."
        by_name = (renamed(name, each) for name, each in zip(known.objects, objects, strict=True))
        problem = line_left_over(written) or next(filter(None, by_name), problem)
    if unwritten and not problem and (left_over := line_left_over(written)):
        note = " ".join(filter(None, (left_over, note)))
    complete = not (unwritten and known.is_class)
    lines = with_first_causes(results, slip_in(written, results))
    report = Report(known.name, lines, points, problem, complete=complete, note=note)
    return replace(report, site=course().site)


def last_passed(exercise: Exercise) -> Mapping[str, object] | None:
    """What passed the check of an exercise last in this process, by name; None where nothing did."""
    return _passed_objects.get(exercise.name)


def is_part(exercise: Exercise) -> bool:
    """Whether the answer to an exercise can be kept: the course's package has a part of the same name."""
    return not exercise.file and set(exercise.objects) <= set(getattr(import_module(package()), "__all__", ()))


def _with_right_parts(
    exercise: Exercise, objects: Sequence[object], watch: Watch | None
) -> tuple[tuple[CheckResult, ...], str | None]:
    """Run the checks; where more pass with the reference in place of the student's other answers, those results count.

    Returns:
        the results, and a sentence on the answers that are wrong, or None.
    """
    named = dict(zip(exercise.objects, objects, strict=True))
    results = run_checks(exercise, named, watch)
    is_done = _passing(results) == len(results) or any(each.reason == Reason.TIME for each in results)
    parts = {} if is_done else parts_of(exercise, objects)
    if not parts:
        return results, None
    with reference_in_place_of(parts, objects):
        again = run_checks(exercise, named, watch)
    gained = _passing(again) - _passing(results)
    if gained <= 0:
        return results, None
    exercises = course().exercises
    wrong = {name for name, held in parts.items() if not all(map(_passed, run_checks(exercises[name], held)))}
    failed = sum(each.verdict == Verdict.FAIL for each in again)
    return again, sentence_on_parts(exercise.name, list(parts), wrong, gained, failed)


def _passed(result: CheckResult) -> bool:
    return result.verdict == Verdict.PASS


def _passing(results: Sequence[CheckResult]) -> int:
    return sum(map(_passed, results))


def run_checks(exercise: Exercise, objects: dict[str, object], watch: Watch | None = None) -> tuple[CheckResult, ...]:
    """Run every public check of ``exercise``; a check whose prerequisites have not all passed is undecided.

    Args:
        exercise: whose checks.
        objects: name → what was written for it.
        watch: notes what they call.
    """
    results: dict[str, CheckResult] = {}
    records: dict[str, Record] = {}
    late: CheckResult | None = None  # the check in which the answer did not come back; nothing is called after it
    with quiet(), uncompiled():
        for each in exercise.checks:
            first = (results[name] for name in each.needs)
            if waits_for := next((result for result in first if result.verdict != Verdict.PASS), late):
                results[each.name] = _wait(each, waits_for)
                continue
            watching(each.claim)
            student = Student(objects, LocalBackend(objects, watch))
            results[each.name] = replace(evaluate_check(each, student)[0], worth=each.worth, guard=each.guard)
            records[each.name] = student.record
            late = results[each.name] if results[each.name].reason == Reason.TIME else None
        undiagnosed = (Reason.NOT_WRITTEN, Reason.TIME)
        failed = [
            name for name, one in results.items() if one.verdict == Verdict.FAIL and one.reason not in undiagnosed
        ]
        with not_watched():
            refusals = refusals_among(results.values())
            found = diagnose(exercise, records, failed, refusals, lambda wrong: wrong.is_true_of(Student(objects)))
            for name, causes in found.items():
                results[name] = replace(results[name], causes=causes)
            told = with_chance_named(exercise, objects, list(results.values()))
    return abbreviate_repetitions(told)


def follow_needs(results: Sequence[CheckResult], needs: Mapping[str, Sequence[str]]) -> list[CheckResult]:
    """The results of checks that were all evaluated, where a failure waits for a check that has to pass first.

    So grading, which gives points for each claim, tells no more than ``check``, which asks one after the other. Of a
    guard, and of a check without prerequisites, nobody knows whether its claim holds where numbers are wrong that a
    claim before it has found wrong, and that no known mistake explains: it waits for that claim.

    Args:
        results: in the order of the checks.
        needs: a check's name → the names of the checks that have to pass first.
    """
    by_name: dict[str, CheckResult] = {}
    found = []
    own = next((each for each in results if each.verdict == Verdict.FAIL and not each.is_anothers), None)
    wrong: CheckResult | None = None
    for each in results:
        first = (by_name[name] for name in needs.get(each.name, ()) if name in by_name)
        waits_for = next((one for one in first if one.verdict == Verdict.FAIL or one.waits_for), None)
        waits_for = waits_for or (own if each.is_anothers else None)
        if _is_unnamed_number(each):
            waits_for = waits_for or (None if needs.get(each.name) and not each.guard else wrong)
            wrong = wrong or (each if needs.get(each.name) else None)
        found.append(_wait(each, waits_for) if waits_for and each.verdict == Verdict.FAIL else each)
        if not each.is_anothers:  # else nobody knows whether its own claim holds
            by_name[each.name] = found[-1]
    return found


def _is_unnamed_number(result: CheckResult) -> bool:
    return result.verdict == Verdict.FAIL and result.reason == Reason.DIFFERENT and not result.causes


def refusals_among(results: Iterable[CheckResult]) -> set[str]:
    """Failed checks that are about errors alone: bad input was accepted, or a guard met an exception of its own."""
    failed = [each for each in results if each.verdict == Verdict.FAIL]
    met = Counter(each.stumbled_over for each in failed)
    return {
        each.name
        for each in failed
        if each.reason == Reason.ACCEPTED
        or (each.guard and each.reason == Reason.RAISED and met[each.stumbled_over] == 1)
    }


def unrecognized_pair(exercise: Exercise, pair: Misconception) -> str:
    """Why two mistakes at once, of :func:`exercise_kit.engine.two_mistakes.pairs_of`, are not recognized.

    Returns: "" for a pair that fails public checks and is named by them; else a clause that says what becomes of it.
    """
    results = run_checks(exercise, dict(zip(exercise.objects, pair.objects, strict=True)))
    named = list(dict.fromkeys(cause.name for each in results for cause in each.causes))
    if not any(each.verdict == Verdict.FAIL for each in results):
        return f"every public check of {exercise.name} passes {pair.name}"
    if named == [pair.name]:
        return ""
    diagnosis = " or ".join(named) or "nothing that has a name"
    return f"on the public checks of {exercise.name}, {pair.name} looks like {diagnosis}"


def _wait(each: Check | CheckResult, waits_for: CheckResult) -> CheckResult:
    reason = f"it waits until “{waits_for.claim}” passes"
    waiting = CheckResult(each.name, each.claim, Verdict.UNDECIDED, seen=reason, reason=Reason.WAITS_FOR_CHECK)
    return replace(waiting, worth=each.worth, guard=each.guard, waits_for=waits_for.waits_for or waits_for.name)


def abbreviate_repetitions(results: list[CheckResult]) -> tuple[CheckResult, ...]:
    """Say the same thing once: a failure, or a cause, that was reported before is only named again."""
    reported: dict[tuple[str, tuple[str, ...]], str] = {}
    explained: dict[tuple[str, ...], str] = {}
    shortened = []
    for result in results:
        names = tuple(cause.name for cause in result.causes)
        # an exception, a wrong name or another dtype comes back with other inputs, and is the same all the same
        seen = result.seen
        if result.stumbled_over and result.reason != Reason.DIFFERENT:
            seen = f"{result.reason}: {result.stumbled_over}"
        if result.reason in _SAME_UP_TO_NUMBERS:
            seen = re.sub(r"[0-9]+", "#", seen)
        before = reported.setdefault((seen, names), result.name) if seen else result.name
        known = before != result.name
        if known and result.verdict == Verdict.FAIL:
            result = replace(result, seen="the same as above", expected="", look="", same_as=before)
        elif known and result.verdict == Verdict.UNDECIDED:
            waits = result.reason == Reason.WAITS_FOR_CHECK
            result = replace(result, seen="it waits for the same check" if waits else "the same as above")
        if names and (first := explained.setdefault(names, result.name)) != result.name:
            result = replace(result, is_repeated=True, same_as=first)
        shortened.append(result)
    return tuple(shortened)
