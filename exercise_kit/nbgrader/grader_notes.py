"""What formgrader shows a grader beside an answer: the judge's flags, and the rubric of a written answer.

The flags are in the metadata of the autograded notebook, which no page shows by itself; the rubric is read from the
lesson's source when formgrader opens a submission, so that an edited rubric counts at once. formgrader and
`generate_feedback` make their pages with the same exporter. Only formgrader passes certain resources to it, and by them
this module knows the two apart, so that no student reads a note.

With the notes comes a script of ours, for nbgrader's page saves a field only when one leaves it.

One flag depends on all submissions: two students handed in the same trained model. The judge's result is kept for each
submission alone, so this flag is noted after grading, and removed when it is no longer true.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor

from exercise_kit.conventions import BEGIN_SOLUTION, END_SOLUTION, RUBRIC
from exercise_kit.engine.rendering import REPORT_MIME
from exercise_kit.files import write
from exercise_kit.judge.result import Result
from exercise_kit.nbgrader.cleaning import PLACE
from exercise_kit.nbgrader.handed_in import find_work_folder
from exercise_kit.quoting import make_legible, make_one_line
from exercise_kit.submission.find import find
from exercise_kit.submission.flags import MEANINGS, SAME_FILE, explain_flags, flag_same_file
from exercise_kit.submission.notebook_file import Unreachable
from exercise_kit.submission.released import ReleasedLesson, read_cell_source
from exercise_kit.submission.result_file import find_result

NOTES = "vit_course_notes"
_SAVING = files("exercise_kit") / "templates" / "formgrader_saving.js"
_BOX = "border-left:4px solid #b58900;background:#fdf6e3;color:#222;padding:0.4em 0.8em;margin:0.3em 0"


def make_notes(result: Result, submission: str = "") -> dict[str, Any]:
    """A result's flags and reason, as the notebook's metadata has them, and the digest of what was graded."""
    beside = [
        {"flag": each.flag, "exercise": each.exercise, "words": make_legible(each.words)} for each in result.notes
    ]
    graded = result.status == "graded"
    return {
        "graded": graded,
        "submission": submission,
        "waiting": result.waits_for,
        "flags": list(result.flags),
        "reason": result.reason and make_legible(result.reason),
        "beside": beside,
        "explained": make_legible("; ".join(explain_flags(result.notes))),
    }


@dataclass(frozen=True)
class Noted:
    """What an autograded notebook says of its grading; ``graded`` where it says nothing, as one of before.

    Attributes:
        graded: whether the judge could grade it.
        flags: for a person to look at.
        reason: of what there is to say.
        waiting: each exercise that is not graded yet, and what it waits for.
        finished: whether its grading came to an end; a killed run leaves no page, half of one, or one without points.
        submission: the digest of what was graded; empty: not known.
        mistakes: the known mistake that the judge named in an exercise.
        points: what each graded cell was worth.
    """

    graded: bool = True
    flags: tuple[str, ...] = ()
    reason: str = ""
    waiting: Mapping[str, str] = field(default_factory=dict)
    finished: bool = True
    submission: str = ""
    mistakes: Mapping[str, str] = field(default_factory=dict)
    points: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        named = (f"{exercise}: {mistake}" for exercise, mistake in self.mistakes.items())
        return "; ".join([*(f"[{flag}]" for flag in self.flags), *filter(None, [self.reason]), *named])


def read_notes(page: Path) -> Noted:
    """Return what an autograded notebook says."""
    try:
        notebook = json.loads(page.read_bytes())
        cells, metadata = list(notebook["cells"]), dict(notebook["metadata"])
    except (OSError, ValueError, KeyError, TypeError):
        return Noted(finished=False)
    finished = not any(PLACE in part for part in (metadata, *(cell.get("metadata", {}) for cell in cells)))
    with suppress(AttributeError, TypeError, KeyError):
        notes = metadata.get(NOTES) or {}
        said = (str(notes.get("explained") or ""), str(notes["reason"] or ""))
        waiting = {str(name): str(cause) for name, cause in (notes.get("waiting") or {}).items()}
        flags, reason = tuple(map(str, notes["flags"])), make_one_line("; ".join(filter(None, said)))
        graded, submission = bool(notes["graded"]), str(notes.get("submission") or "")
        mistakes, points = dict(_list_mistakes(cells)), dict(_list_points_by_cell(cells))
        return Noted(graded, flags, reason, waiting, finished, submission, mistakes, points)
    return Noted(finished=finished)


def _list_mistakes(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """The exercises with a known mistake, by the reports of their checks: no other cell's output is the judge's."""
    for cell in cells:
        mark = cell["metadata"].get("nbgrader", {})
        for output in cell["outputs"] if mark.get("grade") and not mark.get("solution") else ():
            report = output.get("data", {}).get(REPORT_MIME, {})
            if report.get("misconception"):
                yield str(report["name"]), str(report["misconception"])


def _list_points_by_cell(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    for mark in (cell["metadata"].get("nbgrader", {}) for cell in cells):
        if mark.get("grade") and "points" in mark:
            yield str(mark["grade_id"]), float(mark["points"])


class ShowGraderNotes(NbGraderPreprocessor):
    """A step of the HTML exporter; of pages that are not formgrader's it changes nothing."""

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Put notes above the notebook and below the answers that they are about, in place."""
        if "submission_id" not in resources or "notebook_id" not in resources:
            return notebook, resources
        notes = notebook.metadata.get(NOTES) or {}
        rubrics = self._read_rubrics(str(resources["assignment_id"]))
        cells = [new_markdown_cell(html) for html in _render_page_notes(notes)]
        for cell in notebook.cells:
            cells.append(cell)
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if cell.metadata.get("nbgrader", {}).get("solution") and name:
                cells += [new_markdown_cell(html) for html in _render_exercise_notes(notes, name)]
                cells += [new_markdown_cell(_render_rubric(rubrics[name]))] if name in rubrics else []
        notebook.cells = [*cells, new_markdown_cell(f"<script>\n{_SAVING.read_text('utf-8')}</script>")]
        return notebook, resources

    def _read_rubrics(self, lesson: str) -> dict[str, str]:
        """The rubric of each question, by its name, from the class's source folder; none where it cannot be read."""
        course = CourseDirectory(parent=self)
        path = Path(course.format_path(course.source_directory, ".", lesson)) / f"{lesson}.ipynb"
        rubrics = {}
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            for cell in json.loads(path.read_bytes())["cells"]:
                _, mark, rubric = read_cell_source(cell).partition(RUBRIC)
                if mark:
                    name = cell["metadata"]["nbgrader"]["grade_id"]
                    rubrics[name] = rubric.replace(END_SOLUTION, "").replace(BEGIN_SOLUTION, "").strip()
        return rubrics


def _render_page_notes(notes: Mapping[str, Any]) -> Iterator[str]:
    flags = [flag for flag in notes.get("flags", ()) if isinstance(flag, str)]
    if flags:
        items = "".join(f"<li><code>{escape(flag)}</code>: {escape(MEANINGS.get(flag, ''))}</li>" for flag in flags)
        yield _render_box(
            "For you to look at; flags never change the points, and no student sees them.", f"<ul>{items}</ul>"
        )
    if notes.get("reason"):
        yield _render_box("What the judge noticed:", escape(str(notes["reason"])))


def _render_exercise_notes(notes: Mapping[str, Any], exercise: str) -> Iterator[str]:
    for note in notes.get("beside", ()):
        if note["exercise"] == exercise:
            yield _render_box(f"<code>{escape(note['flag'])}</code>", escape(note["words"]))


def _render_rubric(markdown: str) -> str:
    """The rubric is the instructor's own markdown, which is rendered between the blank lines."""
    return f'<div style="{_BOX}">\n\n**For graders: the rubric.** {markdown}\n\n</div>'


def _render_box(title: str, html: str) -> str:
    return f'<div style="{_BOX}"><strong>{title}</strong> {html}</div>'


def update_same_file_flags(course: CourseDirectory, lesson: ReleasedLesson) -> set[str]:
    """Bring the flag up to date in all autograded notebooks of a lesson, and give the students who have it.

    Args:
        course: the class; whoever handed in counts, graded or not yet.
        lesson: as it was released.

    Raises:
        OSError: a notebook cannot be written.
    """
    files = [each.file for each in lesson.exercises if each.file]
    submitted = Path(course.root) / course.submitted_directory
    found: list[tuple[str, set[str]]] = []
    for folder in sorted(submitted.glob(f"*/{lesson.name}")) if files else ():
        if (
            not folder.is_symlink()
            and read_notes(_find_autograded_page(course, folder.parent.name, lesson.name)).graded
        ):
            found.append((folder.parent.name, _digest_result_files(folder, files)))
    shared = flag_same_file(found)
    for (student, _), same in zip(found, shared, strict=True):
        _set_same_file_flag(_find_autograded_page(course, student, lesson.name), same)
    return {student for (student, _), same in zip(found, shared, strict=True) if same}


def _find_autograded_page(course: CourseDirectory, student: str, lesson: str) -> Path:
    return Path(course.format_path(course.autograded_directory, student, lesson)) / f"{lesson}.ipynb"


def _digest_result_files(folder: Path, files: Sequence[str]) -> set[str]:
    with suppress(Unreachable):  # what is the matter with the folder, its own result says
        places = [find_work_folder(found, folder) for found in find([folder], [folder.name])]
        results = [find_result(place, name) for place in places for name in files]
        return {result.digest for result in results if result.digest}
    return set()


def _set_same_file_flag(page: Path, flagged: bool) -> None:
    if not page.is_file() or flagged == (SAME_FILE in read_notes(page).flags):
        return
    notebook = json.loads(page.read_bytes())
    if notes := notebook["metadata"].get(NOTES):  # an older version of the kit noted nothing
        others = [flag for flag in notes["flags"] if flag != SAME_FILE]
        notes["flags"] = [*others, SAME_FILE] if flagged else others
        write(page, json.dumps(notebook, indent=1).encode())
