"""``check``: from the name of an exercise and a student's objects to a report in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from exercise_kit.engine.arguments import (
    describe_unknown_exercise,
    find_exercise_ignoring_case,
    find_problem_with_objects,
)
from exercise_kit.engine.call_rules import describe_forbidden_call
from exercise_kit.engine.call_trace import Watch
from exercise_kit.engine.carry_forward import describe_parts_carried_forward, find_called_parts, replace_by_reference
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.errors import LIBRARIES, OURS
from exercise_kit.engine.evaluate_check import Outcome, evaluate_check, make_check_result
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.lent import is_lent_part
from exercise_kit.engine.local_backend import LocalBackend
from exercise_kit.engine.name_failures import name_failures
from exercise_kit.engine.notebook_or_script import explain_outdated_answer, print_in_script
from exercise_kit.engine.pace import describe_pace
from exercise_kit.engine.printed import print_first_call_alone
from exercise_kit.engine.probes import disable_compilation, silence
from exercise_kit.engine.python_slips import (
    describe_leftover_stub_line,
    describe_misnamed_answer,
    describe_unwritten_part,
    find_definitions,
)
from exercise_kit.engine.report_lines import make_report_lines, mark_waiting
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Report, Verdict
from exercise_kit.engine.waiting_cells import remember_failed_checks
from exercise_kit.engine.watchdog import Watchdog, pause_watching, set_claim_being_checked
from exercise_kit.progress.log import note_report_in_log
from exercise_kit.quoting import quote_first_line
from exercise_kit.reasons import Reason

# exercise → what passed its check last in this process
_passed_objects: dict[str, dict[str, object]] = {}
_COURSE = str(Path(__file__).parents[2])
_HIDDEN = "Grading uses more checks, and other numbers."


@print_in_script
@note_report_in_log
@remember_failed_checks
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
    known = find_exercise_ignoring_case(exercise)
    problem = find_problem_with_objects(known, objects) if known else describe_unknown_exercise(exercise, objects)
    if known is None or problem:
        name = known.name if known else isinstance(exercise, str) and quote_first_line(exercise, 60).strip("`")
        return Report(name or "(no name)", points=points, problem=problem)
    if any(map(is_lent_part, objects)):
        lent = f"This {known.name} is the course's, and earns nothing. Run your own cell again, then check yours."
        return Report(known.name, points=points, problem=lent)
    if known.file:
        objects = tuple(map(known.file.opened, objects))
    report = make_report(known, objects, points)
    older = explain_outdated_answer(known)
    if older and any(each.unwritten for each in report.results):  # what the cell holds now is written
        return replace(report, problem=older)
    report = replace(report, older=older or None)
    if not report.passed:
        return report
    report = replace(report, hint=_HIDDEN)
    _passed_objects[known.name] = dict(zip(known.objects, objects, strict=True))
    report = replace(report, pace=describe_pace(known, objects))
    if report.note or known.lesson not in course().built_upon or not can_keep_answer(known):
        return report
    return replace(report, offer=f'`keep("{known.name}")` takes it to the next lessons.')


def make_report(exercise: Exercise, objects: Sequence[object], points: float | None = None) -> Report:
    """Report what the public checks of an exercise find about objects of the right kind."""
    watch = Watch(_COURSE, (read_package_name(), "exercise_kit"))
    rule = course().rules.get(exercise.name)
    with Watchdog(exercise.name, OURS, LIBRARIES), print_first_call_alone():
        results, note = _run_with_right_parts(exercise, objects, watch if rule else None)
    if problem := describe_forbidden_call(rule, watch.names()):
        return Report(exercise.name, points=points, problem=problem)
    unwritten = any(each.unwritten for each in results)
    written = find_definitions(objects) if _count_passing(results) < len(results) else []
    if unwritten and not any(each.verdict == Verdict.PASS for each in results):
        problem = f"{exercise.name} is not written yet. Fill in its cell, run it, and check again."
        by_name = (describe_misnamed_answer(name, each) for name, each in zip(exercise.objects, objects, strict=True))
        by_lines = describe_leftover_stub_line(written), describe_unwritten_part(exercise.name, written)
        problem = next(filter(None, (*by_lines, *by_name)), problem)
    if unwritten and not problem and (left_over := describe_leftover_stub_line(written)):
        note = " ".join(filter(None, (left_over, note)))
    complete = not (unwritten and exercise.is_class)
    lines = make_report_lines(results, {each.name: each.needs for each in exercise.checks}, written)
    report = Report(exercise.name, lines, points, problem, complete=complete, note=note)
    return replace(report, site=course().site)


def get_last_passed_objects(exercise: Exercise) -> Mapping[str, object] | None:
    """Return what passed the check of an exercise last in this process, by name; None where nothing did."""
    return _passed_objects.get(exercise.name)


def can_keep_answer(exercise: Exercise) -> bool:
    """Say whether the answer to an exercise can be kept: the course's package has a part of the same name."""
    return not exercise.file and set(exercise.objects) <= set(
        getattr(import_module(read_package_name()), "__all__", ())
    )


def _run_with_right_parts(
    exercise: Exercise, objects: Sequence[object], watch: Watch | None
) -> tuple[tuple[CheckResult, ...], str | None]:
    """Run the checks; where more pass with the reference in place of the student's other answers, those results count.

    Returns:
        the results, and a sentence on the answers that are wrong, or None.
    """
    named = dict(zip(exercise.objects, objects, strict=True))
    results = run_checks(exercise, named, watch)
    is_done = _count_passing(results) == len(results) or any(each.reason == Reason.TIME for each in results)
    parts = {} if is_done else find_called_parts(exercise, objects)
    if not parts:
        return results, None
    with replace_by_reference(parts, objects):
        again = run_checks(exercise, named, watch)
    gained = _count_passing(again) - _count_passing(results)
    if gained <= 0:
        return results, None
    exercises = course().exercises
    wrong = {name for name, held in parts.items() if not all(map(_has_passed, run_checks(exercises[name], held)))}
    failed = sum(each.verdict == Verdict.FAIL for each in again)
    return again, describe_parts_carried_forward(exercise.name, list(parts), wrong, gained, failed)


def _has_passed(result: CheckResult) -> bool:
    return result.verdict == Verdict.PASS


def _count_passing(results: Sequence[CheckResult]) -> int:
    return sum(map(_has_passed, results))


def run_checks(exercise: Exercise, objects: dict[str, object], watch: Watch | None = None) -> tuple[CheckResult, ...]:
    """Run every public check of ``exercise``; a check whose prerequisites have not all passed is undecided.

    Args:
        exercise: whose checks.
        objects: name → what was written for it.
        watch: notes what they call.
    """
    found: dict[str, Outcome] = {}
    late: CheckResult | None = None  # the check in which the answer did not come back; nothing is called after it
    with silence(), disable_compilation():
        for each in exercise.checks:
            first = (found[name].result for name in each.needs)
            if waits_for := next((result for result in first if result.verdict != Verdict.PASS), late):
                found[each.name] = Outcome(each, mark_waiting(make_check_result(each), waits_for))
                continue
            set_claim_being_checked(each.claim)
            found[each.name] = evaluate_check(each, Student(objects, LocalBackend(objects, watch)))
            late = found[each.name].result if found[each.name].result.reason == Reason.TIME else None
        with pause_watching():
            named = name_failures(exercise, [*found.values()], student=lambda: Student(objects))
            return tuple(each.result for each in named)


def explain_unrecognized_pair_of_mistakes(exercise: Exercise, pair: Misconception) -> str:
    """Say why two mistakes at once, of :func:`exercise_kit.engine.two_mistakes.list_pairs`, are not recognized.

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
