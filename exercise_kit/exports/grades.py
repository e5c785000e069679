"""What ``vit-course grade --json`` wrote, or a gradebook has, as a table of grades; of what is none, a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from exercise_kit.judge.result import VERSION, Result
from exercise_kit.quoting import escape_spreadsheet_cell, make_one_line
from exercise_kit.reasons import Reason


class ExportError(Exception):
    """Nothing can be exported; the message says why, and what to do."""


@dataclass(frozen=True)
class Grades:
    """The grades that can be handed on.

    Attributes:
        students: with a grade, in the order in which they came.
        maximum: points of each lesson with a grade, in the order in which the lessons came.
        results: by student and lesson.
        problems: sentences on what was left out, and why.
    """

    students: tuple[str, ...]
    maximum: dict[str, float]
    results: dict[tuple[str, str], Result]
    problems: tuple[str, ...]

    @property
    def lessons(self) -> tuple[str, ...]:
        """The columns of a table."""
        return tuple(self.maximum)

    def without(self, student: str, why: str) -> Grades:
        """The same less one student, of whom a sentence tells."""
        kept = {place: result for place, result in self.results.items() if place[0] != student}
        return _collect_lesson_columns(kept, (*self.problems, f"{make_one_line(student)} {why}"))


def read(path: Path) -> list[Result]:
    """The results in a file of ``vit-course grade --json``.

    Raises:
        ExportError: it is no such file.
        OSError: it cannot be read.
    """
    try:
        published = json.loads(path.read_bytes())
        version = published["version"]
        if version != VERSION:
            raise ExportError(f"{path} is of version {version!r}; this command reads version {VERSION}")
        return [Result.from_dict(entry) for entry in published["submissions"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        advice = "name a class folder, or make one with: vit-course grade submitted --json results.json"
        raise ExportError(f"{path} is no file that 'vit-course grade --json' wrote; {advice}") from None


def collect_grades(results: Sequence[Result], listed: Collection[str] | None = None) -> Grades:
    """The table of grades.

    Args:
        results: as they were graded.
        listed: ids of the students in the roster; None: there is no roster, and everybody counts.

    Raises:
        ExportError: not one grade is left.
    """
    found: dict[tuple[str, str], list[Result]] = {}
    problems = []
    for result in results:
        if problem := describe_missing_grade(result, listed):
            problems.append(make_one_line(f"{result.path}: {problem}"))
        else:
            found.setdefault((result.student or "", result.assignment or ""), []).append(result)
    for (student, lesson), several in found.items():
        if len(several) > 1:
            where = " and ".join(each.path for each in several)
            which = "none of them is exported; leave the one that counts, and grade again"
            problems.append(make_one_line(f"{student} has {len(several)} results for {lesson} ({where}): {which}"))
    grades = _collect_lesson_columns(
        {place: several[0] for place, several in found.items() if len(several) == 1}, problems
    )
    if not grades.results:
        raise ExportError("\n".join((*problems, "There is no grade to export.")))
    return grades


def choose_single_result(results: Sequence[Result], system: str) -> Result | None:
    """The result for a system that takes one submission at a time: the graded one, or why there is none; None: nothing.

    Raises:
        ExportError: there are several, or the grader failed, which must not read as a zero.
    """
    graded = [each for each in results if each.status == "graded"]
    if failed := [each for each in results if each.status not in ("graded", "rejected")]:
        raise ExportError(f"the grader failed, and that is no zero: {failed[0].reason}; grade it again")
    if waiting := [each for each in graded if each.waiting]:
        raise ExportError(make_one_line(f"{waiting[0].path}: no grade, {describe_undecided_exercises(waiting[0])}"))
    if len(graded) > 1 or (not graded and len(results) > 1):
        raise ExportError(f"{system} takes one submission at a time, and here are {len(results)}; grade one alone")
    return next(iter(graded or results), None)


_NOT_DECIDED = "{is} not graded yet; mend what 'vit-course grade' names, and grade again"
_WAITS: dict[Reason | None, str] = {
    Reason.WAITS_FOR_PERSON: "{has} no points yet; give them in formgrader under Manual Grading, and export again",
    Reason.LOOK_AGAIN: "{has} points by hand for other work than there is now; in formgrader under Manual Grading give "
    "others or press Resolve, and export again",
}


def describe_undecided_exercises(result: Result) -> str:
    """A clause on the exercises that could not be decided; part of a grade would look like the whole grade."""
    names: dict[str, list[str]] = {}
    for each in result.waiting:
        names.setdefault(_WAITS.get(each.reason, _NOT_DECIDED), []).append(each.name)
    verbs = ({"is": "are", "has": "have"}, {"is": "is", "has": "has"})
    return "; ".join(
        f"for {' and '.join(several)} {why.format(**verbs[len(several) == 1])}" for why, several in names.items()
    )


def describe_missing_grade(result: Result, listed: Collection[str] | None = None) -> str | None:
    """Why there is no grade that can be handed on, as a clause; None: there is one.

    Args:
        result: of one submission.
        listed: ids of the students in the roster; None: there is no roster.
    """
    if result.status == "rejected":
        return f"no grade, for it was rejected: {result.reason}"
    if result.status != "graded":
        return f"no grade, for the grader failed: {result.reason}; grade it again"
    if result.waiting:
        return f"no grade, {describe_undecided_exercises(result)}"
    if not result.student:
        return "no student, so no grade: grade a tree of submitted/STUDENT/LESSON/, whose folders name the students"
    if not result.assignment:
        return "no lesson, so no grade"
    if listed is not None and result.student not in listed:
        return f"{result.student} is not in the roster: left out"
    if escape_spreadsheet_cell(result.student) != result.student:
        return f"{result.student} cannot stand in a spreadsheet as it is written: enter this grade by hand"
    return None


def _collect_lesson_columns(results: dict[tuple[str, str], Result], problems: Iterable[str]) -> Grades:
    points: dict[str, set[float]] = {}
    for (_, lesson), result in results.items():
        points.setdefault(lesson, set()).add(result.max_score)
    said = list(problems)
    for lesson, several in points.items():
        if len(several) > 1:
            worth = " and ".join(f"{each:g}" for each in sorted(several))
            sentence = f"{make_one_line(lesson)} has results out of {worth} points: grade all of it by one command"
            said += [sentence] * (sentence not in said)
    students = tuple(dict.fromkeys(student for student, _ in results))
    return Grades(students, {lesson: max(several) for lesson, several in points.items()}, results, tuple(said))


def make_student_row(grades: Grades, student: str, cell: Callable[[Result | None], Iterable[str]]) -> list[str]:
    """A student's cells, those of each lesson from its result (None: there is none)."""
    return [each for lesson in grades.lessons for each in cell(grades.results.get((student, lesson)))]
