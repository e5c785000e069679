"""`nbgrader generate_feedback` and formgrader's button: a page opens with the points and what was found first.

What every student was given is folded. A page never shows a zero for what nobody has graded: nbgrader writes "Score:
0.0" for an answer that waits for a person. Its template rounds numbers, so here a score that does not exist yet is a
text that passes through both filters. A page whose grading was interrupted is made of no points at all: its student is
left out and named. A page that is older than the grading that it shows is made again, and so is one whose points or
comments a person has changed since: a page ends in a fingerprint of those that it shows.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from glob import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import nbgrader.apps.api
import nbgrader.apps.generatefeedbackapp
from jinja2.filters import do_round
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import GetGrades, NbGraderPreprocessor
from nbgrader.utils import rmtree
from traitlets.config import Config

from exercise_kit.nbgrader.cleaning import sanitize_markdown
from exercise_kit.nbgrader.export import describe_incomplete_points, describe_students_to_review
from exercise_kit.nbgrader.grader_notes import read_notes
from exercise_kit.nbgrader.handed_in import matches_student_option
from exercise_kit.nbgrader.page_head import STYLE, render_page_head
from exercise_kit.nbgrader.scores import (
    find_students_to_review,
    find_students_with_points,
    find_waiting_students,
)
from exercise_kit.quoting import make_legible, make_one_line
from exercise_kit.submission.released import Lessons, ReleasedError, ReleasedLesson

_TEMPLATES = Path(str(files("exercise_kit") / "templates"))
_HEADING = re.compile(r"^#+ (.+)", re.MULTILINE)


class NotGraded(str):
    """What stands in the place of points that nobody gave yet."""

    __slots__ = ()


NOT_YET = NotGraded("not graded yet")


def _make_number_filter(convert: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of jinja's for numbers, through which the words pass."""

    def convert_if_graded(value: Any, *arguments: Any) -> Any:
        return value if isinstance(value, NotGraded) else convert(value, *arguments)

    return convert_if_graded


def _convert_to_float(value: Any, default: float = 0.0) -> float:
    """jinja's filter ``float``."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return default


FILTERS = {"float": _make_number_filter(_convert_to_float), "round": _make_number_filter(do_round)}


class GetPoints(GetGrades):
    """nbgrader's step that puts the points into a page; without points it puts that there are none."""

    def _get_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        super()._get_score(cell, resources)
        mark = cell.metadata.nbgrader
        grade = self.gradebook.find_grade(mark["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        if grade.auto_score is None and grade.manual_score is None:
            mark["score"] = NOT_YET


class OpenWithReport(NbGraderPreprocessor):
    """A step that puts the points and first causes on top of a page, and folds what every student was given."""

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Make the head, and mark in place the cells with which a fold begins and ends."""
        where, course = resources["nbgrader"], CourseDirectory(parent=self)
        where["style"] = STYLE
        where["head"] = render_page_head(notebook, course, where["assignment"], where["student"])
        with suppress(ReleasedError, KeyError):  # then nobody can tell what was given, and all of it is shown
            given = _map_read_only_cells_to_headings(Lessons(Path(course.root)).get(where["assignment"]))
            for is_given, cells in groupby(notebook.cells, lambda cell: _is_lesson_cell(cell, given)):
                _mark_folded_cells(list(cells), given) if is_given else None
        return notebook, resources


@lru_cache(maxsize=8)
def _map_read_only_cells_to_headings(lesson: ReleasedLesson) -> dict[str, str]:
    """The source of each cell that students only read, as a graded page has it → its heading, or ""."""
    given = {}
    for cell in lesson.cells:
        if cell.role in ("plain", "locked"):
            shown = make_legible(cell.source) if cell.code else sanitize_markdown(cell.source)
            found = None if cell.code else _HEADING.search(cell.source)
            given[shown] = found[1].strip("# ") if found else ""
    return given


def _is_lesson_cell(cell: NotebookNode, headings_by_source: Mapping[str, str]) -> bool:
    mark = cell.metadata.get("nbgrader", {})
    return not (mark.get("solution") or mark.get("grade")) and cell.source in headings_by_source


def _mark_folded_cells(cells: Sequence[NotebookNode], headings_by_source: Mapping[str, str]) -> None:
    heading = next(filter(None, (headings_by_source[cell.source] for cell in cells)), "")
    count = f"{len(cells)} cell{'' if len(cells) == 1 else 's'} of the lesson"
    cells[0].metadata["given_from"] = f"{count}: {heading}" if heading else count
    cells[-1].metadata["given_ends"] = True


# what a page shows of a cell, in the gradebook's words
_SHOWN = {"grades": ("auto_score", "manual_score", "extra_credit", "max_score"), "comments": ("comment",)}


class FeedbackPages(GenerateFeedback):
    """nbgrader's converter of graded notebooks to pages for their students."""

    preprocessors: Any  # which nbgrader gives no type
    _fingerprint = ""

    def __init__(self, coursedir: Any = None, **options: Any) -> None:
        super().__init__(coursedir=coursedir, **options)
        theirs = self.config.HTMLExporter
        page = {
            "filters": FILTERS,
            "template_name": "feedback_page",
            "extra_template_basedirs": [str(_TEMPLATES), *theirs.extra_template_basedirs],
            "extra_template_paths": [
                *theirs.extra_template_paths,
                *theirs.extra_template_basedirs,
            ],  # ours extends it
        }
        self.update_config(Config({"HTMLExporter": page}))
        names = {GetGrades, "nbgrader.preprocessors.GetGrades"}
        steps: list[Any] = self.preprocessors
        self.preprocessors = [*(GetPoints if each in names else each for each in steps), OpenWithReport]

    def init_notebooks(self) -> None:
        """List the graded notebooks of whom the command names; an id with brackets is no pattern for nbgrader's glob.

        Raises:
            NbGraderException: there is none.
        """
        lesson, wanted = self.coursedir.assignment_id, self.coursedir.student_id
        graded = Path(self.coursedir.root) / self.coursedir.autograded_directory
        pages = sorted(graded.glob(f"*/{escape(lesson)}/{escape(lesson)}.ipynb"))
        self.assignments = {
            str(page.parent): [str(page)] for page in pages if matches_student_option(page.parts[-3], wanted)
        }
        if not self.assignments:
            words = f"nothing is graded of {lesson} for {wanted}; first: nbgrader autograde {lesson}"
            self.log.error("%s", words)
            raise NbGraderException(words)

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        """Say whether to make a student's page."""
        graded = Path(self._format_source(assignment_id, student_id)) / f"{assignment_id}.ipynb"
        target = Path(self._format_dest(assignment_id, student_id))
        if not read_notes(graded).finished:
            words = "%s: no feedback, for its grading was interrupted; first: nbgrader autograde %s"
            self.log.error(words, student_id, assignment_id)
            return False
        # before the page is made: what changes while it is made is seen the next time
        self._fingerprint = self._make_fingerprint(assignment_id, student_id)
        if super().init_destination(assignment_id, student_id):
            return True
        page = target / f"{assignment_id}.html"
        excluded = student_id in (self.coursedir.student_id_exclude or "").split(",")
        if excluded or (page.is_file() and self._is_page_current(page, graded)):
            return False
        self.log.info("%s: graded since its page was made: made again", student_id)
        rmtree(str(target))
        return True

    def write_single_notebook(self, output: str, resources: Any) -> None:
        """Write a page, with the fingerprint of what it shows as its last line."""
        super().write_single_notebook(output + self._fingerprint, resources)

    def _is_page_current(self, page: Path, graded: Path) -> bool:
        with page.open("rb") as file:
            file.seek(-min(len(self._fingerprint), page.stat().st_size), os.SEEK_END)
            same = file.read() == self._fingerprint.encode()
        return same and page.stat().st_mtime >= graded.stat().st_mtime

    def _make_fingerprint(self, lesson: str, student: str) -> str:
        """A comment of HTML that changes with the points, the comments, and what lateness costs."""
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            try:
                submission = gradebook.find_submission(lesson, student)
            except MissingEntry:
                return ""
            shown = [
                [each.name, *(getattr(each, part) for part in parts)]
                for kind, parts in _SHOWN.items()
                for notebook in submission.notebooks
                for each in getattr(notebook, kind)
            ]
            late = submission.total_seconds_late, str(self.config.get("LateSubmissionPlugin"))
        digest = hashlib.sha256(json.dumps([sorted(shown, key=str), late]).encode()).hexdigest()
        return f"\n<!-- {digest} -->\n"

    def convert_notebooks(self) -> None:
        """Make the pages, and say whose answers wait for a person: their pages say so too.

        Raises:
            NbGraderException: a page could not be made, or somebody has points and no page.
        """
        super().convert_notebooks()
        lesson = self.coursedir.assignment_id
        shown = {Path(folder).parent.name for folder in self.assignments}
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            waiting = [student for student in find_waiting_students(gradebook, lesson) if student in shown]
            again = shown & find_students_to_review(gradebook, lesson).keys()
            with_points = find_students_with_points(gradebook, lesson)
        if waiting:
            self.log.warning("%s", describe_incomplete_points(lesson, waiting))
        if again:
            self.log.warning("%s: %s", lesson, describe_students_to_review(sorted(again)))
        if without := [student for student in sorted(with_points) if self._lacks_page(lesson, student)]:
            words = make_one_line(f"{lesson}: graded, and without a page: {', '.join(without)}")
            self.log.error("%s; first: nbgrader autograde %s", words, lesson)
            raise NbGraderException(words)

    def _lacks_page(self, lesson: str, student: str) -> bool:
        excluded = (self.coursedir.student_id_exclude or "").split(",")
        wanted = matches_student_option(student, self.coursedir.student_id) and student not in excluded
        return wanted and not (Path(self._format_dest(lesson, student)) / f"{lesson}.html").is_file()


def install_feedback() -> None:
    """Make nbgrader's command, and the programming interface that formgrader's button calls, use this converter."""
    for module in (nbgrader.apps.generatefeedbackapp, nbgrader.apps.api):
        module.GenerateFeedback = FeedbackPages
    # nbgrader has left it out, so that the exporter's own setting would warn at each of its steps
    NbGraderPreprocessor.display_data_priority.tag(config=True)
