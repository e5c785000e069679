"""The head of a graded page, a student's and formgrader's: each exercise by its name, with its points and first cause.

It stands above the notebook, and each name leads to its cell. Points and comments are the gradebook's, so what a person
gave is in it; causes are the judge's reports in the cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor

from exercise_kit.conventions import make_check_grade_id
from exercise_kit.engine.rendering import REPORT_MIME, render_first_cause_line, render_inline_markup
from exercise_kit.judge.graded_report import make_graded_report
from exercise_kit.judge.result import ExerciseResult
from exercise_kit.nbgrader.scores import CellScore, LessonScore, read_score
from exercise_kit.points import format_points
from exercise_kit.quoting import make_legible, make_one_line

TOLD = "vit_course_told"  # in a page's metadata: what its student has to know of the grading
STYLE = (files("exercise_kit") / "templates" / "graded_page.css").read_text("utf-8").strip()
_ROW = "display:flex;flex-wrap:wrap;gap:0 1em;border-top:1px solid #ccc;padding:0.35em 0;margin:0"
_TWO_LINES = "display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden"


class ShowHead(NbGraderPreprocessor):
    """A step of the HTML exporter that puts the head on formgrader's pages; feedback's have a place for it."""

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Put it above a notebook, in place."""
        if "submission_id" in resources and "notebook_id" in resources:
            whose = str(resources["assignment_id"]), str(resources["student"])
            head = render_page_head(notebook, CourseDirectory(parent=self), *whose)
            notebook.cells.insert(0, new_markdown_cell(f"<style>\n{STYLE}\n</style>\n{head}"))
        return notebook, resources


def read_report(cell: NotebookNode) -> ExerciseResult | None:
    """The judge's report in a check's cell; no other cell's output is the judge's."""
    mark = cell.metadata.get("nbgrader", {})
    outputs = cell.get("outputs", ()) if mark.get("grade") and not mark.get("solution") else ()
    found = (output.get("data", {}).get(REPORT_MIME) for output in outputs)
    return next((ExerciseResult.from_dict(each) for each in found if each), None)


def render_page_head(notebook: NotebookNode, course: CourseDirectory, lesson: str, student: str) -> str:
    """The head as one block of HTML without a script; empty where the gradebook knows nothing of the student's work.

    Args:
        notebook: as it was graded.
        course: the class.
        lesson: by its name.
        student: by the id.
    """
    page = Path(course.format_path(course.autograded_directory, student, lesson)) / f"{lesson}.ipynb"
    with Gradebook(course.db_url, course.course_id) as gradebook:
        try:
            score = read_score(gradebook, lesson, student, page)
            comments = _read_comments(gradebook, lesson, student)
        except MissingEntry:
            return ""
    reports = {cell.metadata.nbgrader.grade_id: found for cell in notebook.cells if (found := read_report(cell))}
    rows = "".join(_render_exercise_row(each, reports.get(each.name), comments) for each in score.cells)
    late = f"<p>Late: {format_points(score.penalty)} points are taken off.</p>" if score.penalty else ""
    told = notebook.metadata.get(TOLD)
    said = f"<p><strong>{escape(make_one_line(str(told)))}</strong></p>" if told else ""
    title = f'<p style="font-size:1.5em;margin:0 0 0.4em"><strong>{escape(_write_score_title(score))}</strong></p>'
    return f'<section aria-label="Points" style="line-height:1.5">{title}{said}{late}{rows}</section>'


def _read_comments(gradebook: Gradebook, lesson: str, student: str) -> dict[str, str]:
    notebooks = gradebook.find_submission(lesson, student).notebooks
    return {each.name: each.comment for notebook in notebooks for each in notebook.comments if each.comment}


def _write_score_title(score: LessonScore) -> str:
    if score.waiting_worth and score.waiting_worth == score.worth:
        return f"{score.lesson}: not graded yet, – of {score.worth:g} points"
    points = f"{score.lesson}: {format_points(score.score)} of {score.worth:g} points"
    return f"{points} so far, {format_points(score.waiting_worth)} not graded yet" if score.waiting_worth else points


def _render_exercise_row(cell: CellScore, report: ExerciseResult | None, comments: Mapping[str, str]) -> str:
    name = report.name if report else cell.name.removeprefix(make_check_grade_id(""))
    points = "–" if cell.score is None else format_points(cell.score)
    link = f'<a href="#{escape(cell.name, quote=True)}">{escape(name)}</a>'
    said = [f'<span style="flex:1 1 22em;{_TWO_LINES}">{"; ".join(_list_row_remarks(cell, report))}</span>']
    for text in filter(None, {each: comments.get(each) for each in (name, cell.name)}.values()):
        said.append(
            f'<span style="flex:1 0 100%">Comment: {render_inline_markup(" ".join(make_legible(text).split()))}</span>'
        )
    columns = f'<span style="flex:0 0 13em">{link}</span><span style="flex:0 0 6em">{points} of {cell.worth:g}</span>'
    return f'<div style="{_ROW}">{columns}{"".join(said)}</div>'


def _list_row_remarks(cell: CellScore, report: ExerciseResult | None) -> Iterator[str]:
    if report:
        yield render_first_cause_line(make_graded_report(report, cell.worth))
    if cell.by_hand:
        yield "points given by hand"
    elif cell.score is None and not report:
        yield "○ not graded yet: it waits for a person"
    elif cell.score is not None and cell.listed:
        yield "a person looks at it too"
