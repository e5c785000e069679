"""The grades of a class as its gradebook has them: automatic and manual points, less what lateness costs.

They come as the results that ``vit-course grade`` gives, with a cell in the place of an exercise, so that each system's
file is written from both alike. A grade of which a part is missing is none: its student is named.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nbgrader.api import Gradebook

from exercise_kit.conventions import make_check_grade_id
from exercise_kit.exports.grades import ExportError
from exercise_kit.judge.result import ExerciseResult, Result
from exercise_kit.nbgrader.gradebook import (
    has_released_lesson,
    make_engine,
    read_gradebook_address,
    refuse_new_gradebook,
)
from exercise_kit.nbgrader.roster import Student
from exercise_kit.nbgrader.scores import CellScore, LessonScore, read_score
from exercise_kit.points import format_points, round_to_hundredths
from exercise_kit.quoting import escape_spreadsheet_cell, make_one_line
from exercise_kit.reasons import Reason

TOTAL = "total"
Table = list[list[str | float]]


@dataclass(frozen=True)
class ClassGrades:
    """What a gradebook has: a score of each student and lesson, and the ``people`` by their ids."""

    scores: tuple[LessonScore, ...]
    people: dict[str, Student]

    @property
    def results(self) -> list[Result]:
        """A result for everybody who handed something in."""
        return [_make_result(each) for each in self.scores if each.handed_in]

    @property
    def totals(self) -> list[Result]:
        """One result a student: the sum over all lessons, where what was not handed in earns nothing."""
        worth = {each.lesson: each.worth for each in self.scores}
        found: dict[str, list[Result]] = {}
        for each in self.results:
            found.setdefault(each.student or "", []).append(each)
        return [_sum_results(several, sum(worth.values())) for several in found.values()]

    @property
    def remarks(self) -> Iterator[str]:
        """A sentence on each grade that formgrader lists for a person to look at, and that counts all the same."""
        for each in self.scores:
            listed = [cell.name for cell in each.cells if cell.listed and cell not in each.waiting]
            if listed:
                yield make_one_line(
                    f"{each.student}, {each.lesson}: {', '.join(listed)} is to be looked at in formgrader"
                )


def read_class_grades(class_dir: Path, lessons: Collection[str] = (), students: Collection[str] = ()) -> ClassGrades:
    """The grades in a class's gradebook.

    Args:
        class_dir: the class folder.
        lessons: those that count; none: all that were released.
        students: those that count; none: all.

    Raises:
        ExportError: there is no such lesson or student.
        GradebookError: the gradebook cannot be used.
    """
    address = read_gradebook_address(class_dir)
    make_engine(address)
    with refuse_new_gradebook(has_released_lesson(class_dir)), Gradebook(address) as gradebook:
        known = {each.name for each in gradebook.assignments}, {each.id for each in gradebook.students}
        for wanted, names, what in zip((lessons, students), known, ("lesson", "student"), strict=True):
            if missing := sorted(set(wanted) - names):
                raise ExportError(f"the gradebook has no {what} {missing[0]!r}; it has: {', '.join(sorted(names))}")
        chosen = [name for name in sorted(known[0]) if not lessons or name in lessons]
        people = {
            each.id: Student(each.id, each.first_name, each.last_name, each.email)
            for each in sorted(gradebook.students, key=lambda each: each.id)
            if not students or each.id in students
        }
        pages = class_dir / "autograded"
        scores = [
            read_score(gradebook, name, who, pages / who / name / f"{name}.ipynb") for who in people for name in chosen
        ]
    return ClassGrades(tuple(scores), people)


def _make_result(score: LessonScore) -> Result:
    place = f"{score.student}, {score.lesson}"
    base = Result(place, score.student, score.lesson, "graded", max_score=score.worth, flags=score.notes.flags)
    if not score.notes.finished:
        why = f"there is no finished page of it in autograded/; run: nbgrader autograde {score.lesson}"
        return replace(base, status="error", reason=why)
    if score.waiting and not score.notes.graded:
        return replace(base, status="rejected", reason=score.notes.reason)
    cells = tuple(_make_exercise_result(each, score) for each in score.cells)
    return replace(base, score=score.score, exercises=cells, penalty=score.penalty)


def _make_exercise_result(cell: CellScore, score: LessonScore) -> ExerciseResult:
    name = cell.name.removeprefix(make_check_grade_id(""))
    reason = None
    if cell in score.waiting:
        by_judge = name in score.notes.waiting
        reason = Reason.LOOK_AGAIN if cell.again else Reason.OUR_ERROR if by_judge else Reason.WAITS_FOR_PERSON
    mistake = score.notes.mistakes.get(name)
    return ExerciseResult(name, cell.score or 0.0, cell.worth, mistake, reason=reason, comment=cell.comment)


def _sum_results(results: Sequence[Result], worth: float) -> Result:
    """The sum; what one of them lacks, all of it lacks."""
    failed = next((each for each in results if each.status != "graded"), None)
    if failed:
        return replace(failed, assignment=TOTAL, max_score=worth)
    exercises = tuple(
        replace(part, name=f"{each.assignment}: {part.name}") if part.waits else part
        for each in results
        for part in each.exercises
    )
    score, flags = round(sum(each.score for each in results), 4), {flag for each in results for flag in each.flags}
    first = replace(results[0], path=results[0].student or "", assignment=TOTAL, flags=tuple(sorted(flags)))
    penalty = round(sum(each.penalty for each in results), 4)
    return replace(first, score=score, max_score=worth, exercises=exercises, penalty=penalty)


COLUMNS = ("student_id", "last_name", "first_name", "email", "lesson")
POINTS = ("automatic", "by_hand", "late_penalty", "score", "max_score", "not_graded_yet")


def make_grades_table(grades: ClassGrades, in_total: bool = False) -> Table:
    """A plain table: a line of headings, then who, the lesson, and of what the points are made.

    ``score`` is empty where a part of it is missing. Who handed nothing in has no line.

    Args:
        grades: of the class.
        in_total: one line a student, with the sum of all lessons.
    """
    table: Table = [[*COLUMNS, *POINTS]]
    rows: dict[tuple[str, str], list[LessonScore]] = {}
    for each in grades.scores:
        rows.setdefault((each.student, TOTAL if in_total else each.lesson), []).append(each)
    for (who, lesson), several in rows.items():
        if any(each.handed_in for each in several):
            person = grades.people[who]
            columns = (person.id, person.last_name, person.first_name, person.email, lesson)
            table.append([*map(escape_spreadsheet_cell, columns), *_list_point_columns(several)])
    return table


def _list_point_columns(scores: Sequence[LessonScore]) -> Iterator[str | float]:
    for field in ("automatic", "by_hand", "penalty"):
        yield round_to_hundredths(sum(getattr(each, field) for each in scores))
    whole = all(each.notes.finished and not each.waiting for each in scores)
    yield round_to_hundredths(sum(each.score for each in scores)) if whole else ""
    yield round_to_hundredths(sum(each.worth for each in scores))
    yield round_to_hundredths(sum(each.waiting_worth for each in scores))


def render_csv(table: Table) -> bytes:
    """For programs: UTF-8 without a mark before it, commas, and a point in numbers."""
    text = io.StringIO()
    lines = ([each if isinstance(each, str) else format_points(each) for each in row] for row in table)
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


def render_xlsx(table: Table) -> bytes:
    """For spreadsheets, which show a number as their reader's country writes it.

    Raises:
        ModuleNotFoundError: openpyxl is not installed.
    """
    from openpyxl import Workbook

    book, packed = Workbook(), io.BytesIO()
    (sheet,) = book.worksheets
    for row in table:
        sheet.append(row)
    sheet.freeze_panes = "A2"
    book.save(packed)
    return packed.getvalue()
