"""The judge inside `nbgrader autograde` and the formgrader page, where it takes the place of nbgrader's own execution.

A feedback page has the judge's claims and words, and no hidden check. A submission that cannot be graded gets no
points and a page that says why.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_output
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades
from nbgrader.utils import is_grade, is_solution
from traitlets import Bool, Enum, Integer

from exercise_kit.batch.batch import Grader
from exercise_kit.batch.job import GradingSettings, make_ungraded_result
from exercise_kit.batch.locations import PlaceError, find_place
from exercise_kit.conventions import make_check_grade_id
from exercise_kit.engine.rendering import REPORT_MIME, render_html
from exercise_kit.judge.graded_report import compute_earned_points, make_graded_report
from exercise_kit.judge.result import ExerciseResult, Result
from exercise_kit.nbgrader.autograde import EARLIER, RESULT, SUBMISSION
from exercise_kit.nbgrader.cleaning import PLACE
from exercise_kit.nbgrader.earlier import Earlier
from exercise_kit.nbgrader.grader_notes import NOTES, make_notes
from exercise_kit.nbgrader.page_head import TOLD
from exercise_kit.quoting import make_legible, make_one_line
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.flags import CELL_TYPE


def make_check_output(result: ExerciseResult, points: float) -> dict[str, Any]:
    """The output of a check's cell: nbgrader reads the points from its plain form, a person the HTML.

    The HTML needs no style sheet and no script, and everything of the student's in it is escaped.
    """
    data = {
        "text/plain": repr(float(compute_earned_points(result, points))),
        "text/html": render_html(make_graded_report(result, points)),
        REPORT_MIME: result.as_dict(),
    }
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}


NO_REASON = "This notebook is not graded yet: the grader stopped, and your instructor has its reason."
UNGRADED = "vit_course_ungraded"  # in the resources that nbgrader's steps hand on
SAVER = "SaveGrades"


class SaveGrades(SaveAutoGrades):
    """nbgrader's step that keeps the points; of a submission that was not graded it keeps that a person must look.

    Or, where the class wants that of a file that cannot be graded, no points and the reason as a comment.
    """

    ungraded = Enum(
        ("wait", "zero"),
        "wait",
        help="What a file that cannot be graded gets: 'wait' for a person, or 'zero' with the reason as a comment.",
    ).tag(config=True)

    def _add_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        self._add_points(cell, resources)
        where = resources["nbgrader"]
        grade = self.gradebook.find_grade(
            cell.metadata["nbgrader"]["grade_id"], self.notebook_id, self.assignment_id, self.student_id
        )
        if grade.manual_score is not None:
            earlier: Earlier = where.get(EARLIER, Earlier())
            grade.needs_manual_grade = earlier.needs_manual_grading(cell, grade.auto_score, where.get(SUBMISSION, ""))
            self.gradebook.db.commit()

    def _add_points(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        result = resources["nbgrader"].get(UNGRADED)
        judged = resources["nbgrader"].get(RESULT)
        if result is None and not _is_waiting(cell, judged):
            super()._add_score(cell, resources)
            if _has_retyped_answer(cell, judged):
                self._request_manual_grading(cell)
            return
        name, zero = cell.metadata["nbgrader"]["grade_id"], bool(result) and self._is_rejected_for_zero_points(result)
        grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
        grade.auto_score = 0.0 if zero else None
        grade.needs_manual_grade = not zero or grade.manual_score is not None
        self.gradebook.db.commit()

    def _request_manual_grading(self, cell: NotebookNode) -> None:
        """Under *Manual Grading*, with its points."""
        name = cell.metadata["nbgrader"]["grade_id"]
        grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
        grade.needs_manual_grade = True
        self.gradebook.db.commit()

    def _add_comment(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        result = resources["nbgrader"].get(UNGRADED)
        if result is None:
            super()._add_comment(cell, resources)
            return
        name = cell.metadata["nbgrader"]["grade_id"]
        comment = self.gradebook.find_comment(name, self.notebook_id, self.assignment_id, self.student_id)
        # nbgrader's own would be that there is no response
        comment.auto_comment = (
            f"Not graded, no points: {make_legible(result.reason or '')}."
            if self._is_rejected_for_zero_points(result)
            else None
        )
        self.gradebook.db.commit()

    def _is_rejected_for_zero_points(self, result: Result) -> bool:
        """Say whether the file is at fault and the class gives no points for that; a grader's failures cost nobody."""
        return self.ungraded == "zero" and result.status == "rejected"


def _is_waiting(cell: NotebookNode, result: Result | None) -> bool:
    """Say whether a check's cell belongs to an exercise that is not graded yet."""
    waiting = result.waiting if result else ()
    return cell.metadata["nbgrader"]["grade_id"] in {make_check_grade_id(each.name) for each in waiting}


def _has_retyped_answer(cell: NotebookNode, result: Result | None) -> bool:
    """Say whether the answer that a check is about had been turned into another type of cell."""
    notes = result.notes if result else ()
    names = {make_check_grade_id(each.exercise) for each in notes if each.flag == CELL_TYPE}
    return cell.metadata["nbgrader"]["grade_id"] in names


def mark_ungraded(notebook: NotebookNode, result: Result) -> None:
    """Note why a notebook was not graded, for the head of its page; its checks end in an error, and earn no points."""
    if result.status == "rejected":
        notebook.metadata[TOLD] = f"This notebook could not be graded: {result.reason}."
    else:
        notebook.metadata[TOLD] = NO_REASON
    notice = new_output("error", ename="NotGraded", evalue="", traceback=["Not graded: see the top of this page."])
    for cell in notebook.cells:
        cell.metadata.pop(PLACE, None)
        if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell):
            cell.outputs = [notice]


class JudgeError(Exception):
    """A submission that the judge could not grade; the message says why."""


class JudgeNotebook(NbGraderPreprocessor):
    """Grade a submission, or take its result from the store, and write the verdicts into the notebook.

    The check cells get the points as their value, from which nbgrader reads partial credit; the student's own cells
    get what they printed and drew; a cell that did not run keeps its still picture.
    """

    jobs = Integer(0, help="How many submissions are judged at the same time; 0: as many as there are cores.").tag(
        config=True
    )
    sandbox = Bool(True, help="Whether the students' code runs in the sandbox.").tag(config=True)

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Judge the submission that ``notebook`` was made of, and fill in the outputs in place.

        What cannot be graded gets no points; the log and the page say why.
        """
        where = resources["nbgrader"]
        course = CourseDirectory(parent=self)
        folder = Path(course.format_path(course.submitted_directory, where["student"], where["assignment"]))
        others = _list_submitted_folders(course, where["assignment"]) if course.student_id == "*" else []
        try:
            with GRADER_CACHES.open_cache(
                Path(course.root).resolve(), self.jobs or os.cpu_count() or 1, self.sandbox
            ) as cache:
                result = cache.find_result(folder, others)
        except PlaceError as error:
            result = make_ungraded_result(FoundFile(folder, where["student"], where["assignment"]), "error", str(error))
        where[RESULT] = result
        graded = result.status == "graded"
        for line in (*result.log, *filter(None, [graded and result.reason, ", ".join(result.flags)])):
            self.log.warning("%s: %s", where["student"], line)
        if graded:
            if result.waiting:
                self._refuse_outdated_class_folder(result.reason or "an exercise is not graded yet")
            _fill_in_results(notebook, result)
        else:
            self._leave_ungraded(notebook, resources, result)
        notebook.metadata.pop(PLACE, None)
        notebook.metadata[NOTES] = make_notes(result, where.get(SUBMISSION, ""))
        return notebook, resources

    def _leave_ungraded(self, notebook: NotebookNode, resources: dict[str, Any], result: Result) -> None:
        reason = result.reason or "the judge gave no reason"
        self._refuse_outdated_class_folder(reason)
        self.log.error("%s: NOT GRADED: %s", resources["nbgrader"]["student"], make_one_line(reason))
        resources["nbgrader"][UNGRADED] = result
        mark_ungraded(notebook, result)

    def _refuse_outdated_class_folder(self, reason: str) -> None:
        """Stop in a class folder of before, where nbgrader's own step would give points to what is not graded."""
        if SAVER not in str(self.config.Autograde.get("autograde_preprocessors")):
            raise JudgeError(reason)


def _list_submitted_folders(course: CourseDirectory, assignment: str) -> list[Path]:
    """Everybody's folder of an assignment, for which nbgrader will ask one after the other."""
    submitted = Path(course.root) / course.submitted_directory
    return sorted(folder for folder in submitted.glob(f"*/{assignment}") if folder.is_dir())


class GraderCache:
    """A class's grader, and the results requested ahead of time: nbgrader asks for one student after the other.

    Args:
        grader: of the class folder.
    """

    def __init__(self, grader: Grader) -> None:
        self.grader = grader
        self._pending: dict[tuple[Path, int], Future[Result]] = {}

    def find_result(self, path: Path, others: Sequence[Path]) -> Result:
        """The result of a student's folder; the first time, ``others`` are requested too, to be graded meanwhile."""
        version = _read_folder_version(path)
        if version not in self._pending:
            wanted = {version: path} | {_read_folder_version(each): each for each in others}
            self._pending |= {key: self.grader.submit(each) for key, each in wanted.items() if key not in self._pending}
        return self._pending.pop(version).result()


def _read_folder_version(folder: Path) -> tuple[Path, int]:
    """A folder, and a number that changes when a file in it does."""
    facts = []
    with suppress(OSError):  # the reader says in words what is the matter with it
        for path in sorted((*folder.iterdir(), *folder.glob("*/*.ipynb"))):
            facts.append((str(path), path.lstat().st_mtime_ns, path.lstat().st_size))
    return folder, hash(tuple(facts))


class GraderCaches:
    """The graders of this process, one for each class folder; they end after a minute without a request.

    formgrader's server stays up for days, and a grader's processes hold a gigabyte.
    """

    def __init__(self, idle_seconds: float = 60.0) -> None:
        self._idle_seconds = idle_seconds
        self._open: dict[tuple[Path, int, bool], GraderCache] = {}
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        atexit.register(self.close)

    @contextmanager
    def open_cache(self, root: Path, jobs: int, sandboxed: bool) -> Iterator[GraderCache]:
        """The cache of a class folder, which stays open at least as long as it is used here."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
            which = (root, jobs, sandboxed)
            if which not in self._open:
                self._open[which] = GraderCache(Grader(find_place(root), GradingSettings(sandboxed=sandboxed), jobs))
            try:
                yield self._open[which]
            finally:
                self._timer = threading.Timer(self._idle_seconds, self.close)
                self._timer.daemon = True
                self._timer.start()

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].grader.close()


GRADER_CACHES = GraderCaches()


def _fill_in_results(notebook: NotebookNode, result: Result) -> None:
    printed = {run.index: [dict(output) for output in run.outputs] for run in result.runs}
    judged = {make_check_grade_id(exercise.name): exercise for exercise in result.exercises}
    for cell in notebook.cells:
        place, mark = cell.metadata.pop(PLACE, None), cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code":
            continue
        outputs = printed.get(place, cell.outputs)
        if mark.get("grade") and not mark.get("solution"):
            exercise = judged.get(mark["grade_id"])
            if exercise is None:
                raise JudgeError(f"the judge knows no exercise for the cell {mark['grade_id']}")
            outputs = [make_check_output(exercise, float(mark["points"]))]
        cell.outputs = [from_dict(output) for output in outputs]
    if result.waiting:
        names = ", ".join(each.name for each in result.waiting)
        notebook.metadata[TOLD] = f"Not graded yet: {names}. That is no grade, and no fault of yours."
