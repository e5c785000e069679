"""`nbgrader autograde` and formgrader's button: whom they grade, what happens after a failure, and a table at the end.

nbgrader passes over a student whose folder holds no notebook, logs a traceback for every failure, and says early in a
long log whom it left out. Its converter has no option for any of this, so a class's configuration replaces it with this
one; the steps of grading stay those of the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import nbgrader.apps.api
import nbgrader.apps.autogradeapp
from nbconvert.exporters.exporter import ResourcesDict
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import rmtree
from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError

from exercise_kit.batch.locations import lock_folder
from exercise_kit.conventions import make_check_grade_id
from exercise_kit.judge.result import Result
from exercise_kit.nbgrader.class_table import NOT_GRADED, Row, describe_manual_grading, render_class_table
from exercise_kit.nbgrader.earlier import Earlier, read_earlier_grading
from exercise_kit.nbgrader.fault_messages import DISK_ERRORS, describe_fault, install_fault_messages
from exercise_kit.nbgrader.feedback import install_feedback
from exercise_kit.nbgrader.generate import install_generate
from exercise_kit.nbgrader.gradebook import Fault, GradebookError, describe_address, make_engine, refuse_new_gradebook
from exercise_kit.nbgrader.grader_notes import Noted, read_notes, update_same_file_flags
from exercise_kit.nbgrader.handed_in import digest_folder, matches_student_option
from exercise_kit.nbgrader.roster import NO_ADDRESS, breaks_formgrader_addresses
from exercise_kit.nbgrader.scores import find_students_to_review, find_waiting_students
from exercise_kit.nbgrader.typed_points import install_points_validation
from exercise_kit.nbgrader.validate import install_validate
from exercise_kit.progress_bar import SECONDS, Count
from exercise_kit.quoting import make_one_line
from exercise_kit.report.terminal import describe_remarks, format_score
from exercise_kit.submission.find import FoundFile, describe_stray_files, find, find_misplaced_work
from exercise_kit.submission.flags import SAME_FILE
from exercise_kit.submission.released import Lessons, ReleasedError, remember_class

# in the resources that nbgrader's steps hand on: what the judge found, the digest of what it was given, what was before
RESULT, SUBMISSION, EARLIER = "vit_course_result", "vit_course_submission", "vit_course_earlier"
KEPT = "what was graded is kept, and the same command goes on from there"


@dataclass
class _Recorded:
    """Whose checks have points in the gradebook: the ``waiting`` not all; and what each cell is worth (``points``)."""

    students: set[str]
    waiting: set[str]
    points: dict[str, float]

    def agrees_with_notes(self, student: str, notes: Noted) -> bool:
        """Say whether the gradebook knows of one what the page's notes say.

        Every check waits for a person until it has points, so that this alone does not tell that it was graded.
        """
        by_hand = not notes.graded or bool(notes.waiting)
        return student in self.students and (student not in self.waiting or by_hand)

    def update(self, other: _Recorded) -> None:
        vars(self).update(vars(other))


def install() -> None:
    """Make `nbgrader autograde`, and the programming interface that formgrader's button calls, use this converter.

    It also makes all of nbgrader wait for its gradebook, and say in a sentence what is wrong with it; and formgrader
    refuse what are no points; and feedback tell what is not graded yet from zero; and a release keep what students
    have.
    """
    for module in (nbgrader.apps.autogradeapp, nbgrader.apps.api):
        module.Autograde = JudgedAutograde
    install_fault_messages()
    install_points_validation()
    install_feedback()
    install_generate()
    install_validate()


class JudgedAutograde(Autograde):
    """nbgrader's converter for everybody who handed in something; nobody's failure costs another one anything."""

    def init_notebooks(self) -> None:
        """List the folders of the assignment, whatever lies in them: the judge's reader tells what counts.

        Raises:
            NbGraderException: there is none.
        """
        course = self.coursedir
        lesson, wanted = course.assignment_id, course.student_id
        submitted = Path(course.root) / course.submitted_directory
        self._rows: dict[str, Row] = {}
        self._again: dict[str, str] = {}  # why a student is graded once more
        self._said = False  # that there is another grader
        self._students = [path.name for path in _list_student_folders(submitted)]
        chosen = [name for name in self._students if matches_student_option(name, wanted)]
        handed_in = [submitted / name / lesson for name in chosen if (submitted / name / lesson).is_dir()]
        self.assignments = {str(folder): [str(folder / f"{lesson}.ipynb")] for folder in handed_in}
        if not self.assignments:
            who = "nobody has" if wanted == "*" else f"{wanted} has not"
            self._stop_with_error(f"{who} handed in {lesson}: there is no folder {submitted / wanted / lesson}")

    def convert_notebooks(self) -> None:
        """Grade them one after the other, and log one table; who grades at the same time takes turns with this.

        Raises:
            NbGraderException: the lesson was not released, the gradebook or the disk cannot be used, or the grader
                failed at one.
        """
        failed: list[str] = []
        remember_class(Path(self.coursedir.root))  # its configuration runs in this process
        try:
            self._require_release(self.coursedir.assignment_id)
            with refuse_new_gradebook():
                failed = self._convert_all_students(self.coursedir.assignment_id)
                self._flag_same_file(self.coursedir.assignment_id)
                self._log_result_table(self.coursedir.assignment_id)
        except GradebookError as error:
            self._stop_with_error(f"{error}; {KEPT}")
        except DBAPIError as error:
            where = describe_address(make_url(self.coursedir.db_url))
            self._stop_with_error(f"the gradebook {where} cannot be used: {_describe_error_cause(error)}; {KEPT}")
        except OSError as error:
            self._stop_with_error(f"{describe_fault(error, self.coursedir.root)}; {KEPT}")
        if failed:
            self._stop_with_error(f"the grader failed at {len(failed)} of {len(self.assignments)}: {', '.join(failed)}")

    def write_single_notebook(self, output: str, resources: ResourcesDict) -> None:
        """Write it, and remember for the table what the judge said of it."""
        super().write_single_notebook(output, resources)
        result = resources["nbgrader"].get(RESULT)
        if isinstance(result, Result):
            student = str(resources["nbgrader"]["student"])
            points = format_score(result) if result.status == "graded" else NOT_GRADED
            said = "; ".join(filter(None, [self._again.get(student), describe_remarks(result)]))
            self._rows[student] = Row(student, points, said, result.waits_for)

    def _convert_all_students(self, lesson: str) -> list[str]:
        """Those at whom the grader failed; what the gradebook or the disk has against all stops it."""
        failed = []
        recorded = self._read_recorded_points(lesson)
        count, began = Count("grading", len(self.assignments)), monotonic()
        said = began
        for folder in sorted(self.assignments):
            student = Path(folder).parent.name
            self.notebooks = self.assignments[folder]
            try:
                with self._lock_grading():
                    self._earlier = self._read_earlier_grading(lesson, student)
                    if self._is_grading_needed(lesson, student, recorded):
                        self._convert_student(lesson, student)
            except (DBAPIError, GradebookError):
                raise
            except Exception as error:  # whatever fails on our side costs this submission alone
                if isinstance(error, OSError) and error.errno in DISK_ERRORS:
                    raise
                failed.append(student)
                self._record_failure(lesson, student, error)
            count.advance()
            if monotonic() - said >= SECONDS:
                said = monotonic()
                self.log.info("%s", count.line(said - began))
        return failed

    def init_single_notebook_resources(self, notebook_filename: str) -> dict[str, Any]:
        """nbgrader's, the digest of what was handed in before any of it is read, and what an earlier grading left."""
        resources: dict[str, Any] = super().init_single_notebook_resources(notebook_filename)
        resources["nbgrader"] |= {SUBMISSION: self._submission, EARLIER: self._earlier}
        return resources

    def _read_earlier_grading(self, lesson: str, student: str) -> Earlier:
        page = Path(self._format_dest(lesson, student)) / f"{lesson}.ipynb"
        if not page.is_file():
            return Earlier()
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            return read_earlier_grading(page, gradebook, lesson, student)

    def _is_grading_needed(self, lesson: str, student: str, recorded: _Recorded) -> bool:
        """Say whether to grade one: as nbgrader says, and where what is there is not the grade of what was handed in.

        A run that was killed leaves a page without points, and new work can come without a newer timestamp.
        """
        if self.init_destination(lesson, student):
            return True
        if student in (self.coursedir.student_id_exclude or "").split(","):
            return False
        if not (why := self._explain_regrading(lesson, student, recorded)):
            return False
        self.log.info("%s: %s: graded again", student, why)
        self.log.info("for a new page, run: nbgrader generate_feedback %s", lesson)
        self._again[student] = f"{why}: graded again"
        rmtree(self._format_dest(lesson, student))
        return True

    def _explain_regrading(self, lesson: str, student: str, recorded: _Recorded) -> str:
        """Why a student with a page is graded once more, as a clause; "" where nothing speaks for it."""
        notes = self._read_notes(lesson, student)
        if not notes.finished:
            return "its grading was interrupted"
        if not recorded.agrees_with_notes(student, notes):
            recorded.update(self._read_recorded_points(lesson))  # by somebody who grades at the same time
        if not recorded.agrees_with_notes(student, notes):
            return "there is a page, but no points are in the gradebook"
        if notes.submission and (now := self._digest_handed_in_work(lesson, student)) and now != notes.submission:
            return "it was handed in again"
        if notes.points != {name: recorded.points.get(name, worth) for name, worth in notes.points.items()}:
            return "its points are others now"
        if waiting := self._list_waiting_exercises(lesson, student):
            return f"{', '.join(waiting)} was not graded yet"
        return ""

    def _digest_handed_in_work(self, lesson: str, student: str) -> str:
        with suppress(ReleasedError, KeyError):
            return digest_folder(Path(self._format_source(lesson, student)), Lessons(Path(self.coursedir.root)))
        return ""

    def _read_recorded_points(self, lesson: str) -> _Recorded:
        """Who has points in the gradebook."""
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            handed_in = {each.student_id for each in gradebook.assignment_submissions(lesson)}
            waiting = find_waiting_students(gradebook, lesson).items()
            points = {cell.name: float(cell.max_score) for cell in gradebook.find_notebook(lesson, lesson).grade_cells}
        checks = make_check_grade_id("")
        without = {who for who, cells in waiting if any(each.startswith(checks) for each in cells)}
        return _Recorded(handed_in, without, points)

    def _flag_same_file(self, lesson: str) -> None:
        """Flag the copies of one trained model, in all pages and in the rows of those who were graded now."""
        lessons = Lessons(Path(self.coursedir.root))
        with suppress(ReleasedError), self._lock_grading():
            flagged = update_same_file_flags(self.coursedir, lessons.get(lesson)) if lesson in lessons.names else set()
            for student in sorted(flagged):
                if row := self._rows.get(student):
                    self.log.warning("%s: %s", student, SAME_FILE)
                    said = "; ".join(filter(None, [f"[{SAME_FILE}]", row.remarks]))
                    self._rows[student] = row._replace(remarks=said)

    def _lock_grading(self) -> AbstractContextManager[None]:
        return lock_folder(Path(self.coursedir.root) / ".vit_course" / "autograde", self._warn_once_of_other_grader)

    def _warn_once_of_other_grader(self) -> None:
        if not self._said:
            self.log.warning("somebody else is grading this class: the two take turns, one submission at a time")
        self._said = True

    def _convert_student(self, lesson: str, student: str) -> None:
        try:
            self.run_pre_convert_hook()
            self._submission = self._digest_handed_in_work(lesson, student)
            self.init_assignment(lesson, student)
            for notebook in self.notebooks:
                self.convert_single_notebook(notebook)
            self.set_permissions(lesson, student)
            self.run_post_convert_hook()
        except BaseException:  # half of a page is worse than none: the next run makes a whole one
            with suppress(OSError):
                rmtree(self._format_dest(lesson, student))
            raise

    def _record_failure(self, lesson: str, student: str, error: Exception) -> None:
        reason = f"the grader failed ({_describe_error_cause(error)}); when that is mended, the same command grades it"
        if isinstance(error, UnicodeEncodeError):
            reason = "the name of the folder is not UTF-8, and no gradebook can keep it; rename the folder"
        self.log.error("%s: NOT GRADED: %s", student, reason)
        self.log.debug("how it failed", exc_info=error)
        self._rows[student] = Row(student, NOT_GRADED, reason)

    def _require_release(self, lesson: str) -> None:
        course = self.coursedir
        make_engine(course.db_url)  # or it tells what is the matter with the address
        released = Path(course.format_path(course.release_directory, ".", lesson)).is_dir()
        with refuse_new_gradebook(released), Gradebook(course.db_url, course.course_id) as gradebook:
            try:
                gradebook.find_notebook(lesson, lesson)
            except MissingEntry:
                if released:
                    raise GradebookError(Fault.GONE, describe_address(make_url(course.db_url))) from None
                self._stop_with_error(f"{lesson} has not been released; first: nbgrader generate_assignment {lesson}")

    def _log_result_table(self, lesson: str) -> None:
        """Everybody in one table: graded, not graded and why, graded before, missing."""
        everybody = self.coursedir.student_id == "*"
        rows = dict(self._rows)
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            for folder in self.assignments:
                student = Path(folder).parent.name
                if student not in rows and student not in (self.coursedir.student_id_exclude or "").split(","):
                    rows[student] = self._make_unchanged_row(gradebook, lesson, student)
            roster = {student.id for student in gradebook.students} if everybody else set()
            waiting, checks = find_waiting_students(gradebook, lesson), make_check_grade_id("")
            again = find_students_to_review(gradebook, lesson)
        handed_in = {Path(folder).parent.name for folder in self.assignments}
        for student in (roster | set(self._students if everybody else ())) - handed_in:
            rows[student] = Row(student, "missing", self._explain_missing_submission(lesson, student))
        if everybody:
            submitted = Path(self.coursedir.root) / self.coursedir.submitted_directory
            odd = find_misplaced_work(submitted, Lessons(Path(self.coursedir.root)).names)
            rows |= {str(each.student): Row(str(each.student), NOT_GRADED, str(each.problem)) for each in odd}
            for name in filter(breaks_formgrader_addresses, self._students):
                self.log.warning("'%s': %s", make_one_line(name), NO_ADDRESS)
            if stray := describe_stray_files(submitted):
                self.log.warning("%s", stray)
        before = len(self.assignments) - len(self._rows)
        kept = f"; {before} of them before, and left as they were: --force grades them again" if before else ""
        written = {who for who, cells in waiting.items() if not all(each.startswith(checks) for each in cells)}
        kept += describe_manual_grading(written & rows.keys(), again.keys() & rows.keys())
        self.log.info("%s%s", render_class_table(rows[student] for student in sorted(rows)), kept)

    def _make_unchanged_row(self, gradebook: Any, lesson: str, student: str) -> Row:
        """The row of a student whom this run left as they were, by the gradebook and the notes in their notebook."""
        notes = self._read_notes(lesson, student)
        with suppress(MissingEntry):
            submission = gradebook.find_submission_notebook(lesson, lesson, student)
            checks = [grade for grade in submission.grades if grade.cell.name.startswith(make_check_grade_id(""))]
            by_hand = any(grade.manual_score is not None for grade in checks)
            if notes.graded or by_hand:
                earned, worth = sum(grade.score for grade in checks), sum(grade.max_score for grade in checks)
                return Row(student, f"{earned:g} of {worth:g}", str(notes))
        return Row(student, NOT_GRADED, str(notes))

    def _read_notes(self, lesson: str, student: str) -> Noted:
        return read_notes(Path(self._format_dest(lesson, student)) / f"{lesson}.ipynb")

    def _list_waiting_exercises(self, lesson: str, student: str) -> list[str]:
        """The exercises that wait for a file to be mended, and to which nobody gave points by hand."""
        waiting = self._read_notes(lesson, student).waiting
        if not waiting:
            return []
        with suppress(MissingEntry), Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            grades = gradebook.find_submission_notebook(lesson, lesson, student).grades
            by_hand = {grade.name for grade in grades if grade.manual_score is not None}
            return [name for name, cause in waiting.items() if cause and make_check_grade_id(name) not in by_hand]
        return []

    def _explain_missing_submission(self, lesson: str, student: str) -> str:
        """Name a file that `vit-course grade` finds and nbgrader does not, since it lies in no lesson's folder."""
        course = self.coursedir
        lessons, submitted = Lessons(Path(course.root)), Path(course.root) / course.submitted_directory
        names = lessons.names
        for found in find([submitted / student], names, Path(course.root)):
            if found.path.is_file() and found.assignment not in names and _may_belong_to_lesson(lesson, found, lessons):
                return f"{found.path.relative_to(submitted)} lies in the wrong place: it belongs in {student}/{lesson}/"
        return "nothing handed in"

    def _stop_with_error(self, message: str) -> None:
        self.log.error(message)
        raise NbGraderException(message) from None


def _list_student_folders(submitted: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from (path for path in sorted(submitted.iterdir()) if path.is_dir() and not path.name.startswith("."))


def _may_belong_to_lesson(lesson: str, found_file: FoundFile, lessons: Lessons) -> bool:
    """Say whether a file is of a lesson; of one that cannot be read nobody knows."""
    from exercise_kit.submission.parse import open_with_answers  # with torch, which formgrader's server does without

    with suppress(Exception):
        return open_with_answers(found_file, lessons).lesson.name == lesson
    return True


def _describe_error_cause(error: BaseException) -> str:
    cause = getattr(error, "orig", None) or error
    return make_one_line(f"{type(cause).__name__}: {cause}")[:300]
