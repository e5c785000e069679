"""`nbgrader generate_assignment` and formgrader's button, for a lesson that students have handed in already.

nbgrader refuses cells that come or go once there is a submission, after it has removed the release. So here that is
seen before anything is removed, and what was released stays until the new one is there. Each version that students may
have got is kept, so that what they hand in is compared with theirs.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import nbgrader.apps.api
import nbgrader.apps.generateassignmentapp
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import GenerateAssignment
from nbgrader.converters.base import NbGraderException

from exercise_kit.files import write_and_make_folder
from exercise_kit.nbgrader.gradebook import has_released_lesson, read_gradebook_address, refuse_new_gradebook
from exercise_kit.quoting import make_one_line
from exercise_kit.submission.released import find_earlier_releases_folder

WAY_ROUND = (
    "nbgrader can neither add nor remove cells of {lesson}, because students have handed it in ({changes}). Put them "
    "back as they were; to leave something out, give everybody its points, or take it out of the sum where the grades "
    "go. Or begin the lesson again, which loses the points and comments that were given by hand in it: back up the "
    "gradebook, then 'nbgrader db assignment remove {lesson} --force', 'nbgrader generate_assignment {lesson} --force' "
    "and 'nbgrader autograde {lesson}'"
)


def explain_refused_change(gradebook: Gradebook, lesson: str, source: Path) -> str:
    """Why nbgrader cannot release a changed lesson, and the way round; "" where it can.

    Args:
        gradebook: of the class.
        lesson: its name.
        source: the notebook in ``source/``.
    """
    try:
        notebook = gradebook.find_notebook(lesson, lesson)
        marks = [cell["metadata"].get("nbgrader", {}) for cell in json.loads(source.read_bytes())["cells"]]
    except (MissingEntry, OSError, ValueError, KeyError, TypeError):
        return ""  # nbgrader says what is wrong with it
    if not notebook.submissions:
        return ""
    new = {mark["grade_id"] for mark in marks if any(mark.get(role) for role in ("grade", "solution", "locked"))}
    old = {cell.name for cell in notebook.source_cells}
    if new == old:
        return ""
    changes = [f"without {name}" for name in sorted(old - new)] + [f"with {name}" for name in sorted(new - old)]
    return make_one_line(WAY_ROUND.format(lesson=lesson, changes=", ".join(changes)))


def describe_next_steps(class_dir: Path, lesson: str) -> str:
    """Return what to run after a released lesson was built anew, as a sentence; "" where it was never released.

    Args:
        class_dir: the class folder.
        lesson: its name.

    Raises:
        GradebookError: the gradebook cannot be used.
    """
    if not (class_dir / "release" / lesson / f"{lesson}.ipynb").is_file():
        return ""
    with (
        refuse_new_gradebook(has_released_lesson(class_dir)),
        Gradebook(read_gradebook_address(class_dir)) as gradebook,
    ):
        if refused := explain_refused_change(gradebook, lesson, class_dir / "source" / lesson / f"{lesson}.ipynb"):
            return refused
        try:
            handed_in = len(gradebook.find_assignment(lesson).submissions)
        except MissingEntry:
            handed_in = 0
    steps = f"{lesson} was released as it was before. Next: nbgrader generate_assignment {lesson} --force"
    if not handed_in:
        return f"{steps}; then give it to the students again"
    return f"{steps}; then nbgrader autograde {lesson}, which grades {handed_in} again where points have changed"


def archive_release(class_dir: Path, lesson: str) -> None:
    """Keep the lesson as it is released now, for comparing what students hand in of it.

    Raises:
        OSError: it cannot be kept.
    """
    released = class_dir / "release" / lesson / f"{lesson}.ipynb"
    if released.is_file():
        content = released.read_bytes()
        kept = find_earlier_releases_folder(class_dir, lesson) / f"{hashlib.sha256(content).hexdigest()}.ipynb"
        if not kept.is_file():
            # the grader's own folder: its secret lies there too, and a first release comes before the first grading
            (class_dir / ".vit_course").mkdir(exist_ok=True, mode=0o700)
            write_and_make_folder(kept, content)


class ReleaseAgain(GenerateAssignment):
    """nbgrader's converter of a lesson's source to what students get."""

    def convert_notebooks(self) -> None:
        """Release the lesson, or leave what is there as it is.

        Raises:
            NbGraderException: it cannot be done; the message says why.
        """
        root, lesson = Path(self.coursedir.root), self.coursedir.assignment_id
        released = root / self.coursedir.release_directory / "." / lesson
        if not self.no_database:
            self._require_same_cells(lesson)
        archive_release(root, lesson)
        with tempfile.TemporaryDirectory(prefix="vit-course-release-") as folder:
            before = Path(folder) / lesson
            if released.is_dir():
                shutil.copytree(released, before)
            try:
                super().convert_notebooks()
            except BaseException:
                if before.is_dir():
                    shutil.rmtree(released, ignore_errors=True)
                    shutil.copytree(before, released)
                raise
        archive_release(root, lesson)

    def _require_same_cells(self, lesson: str) -> None:
        source = Path(self._format_source(lesson, ".")) / f"{lesson}.ipynb"
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            refused = explain_refused_change(gradebook, lesson, source)
        if refused:
            self.log.error("%s", refused)
            raise NbGraderException(refused)


def install_generate() -> None:
    """Make nbgrader's command, and the programming interface that formgrader's button calls, use this converter."""
    for module in (nbgrader.apps.generateassignmentapp, nbgrader.apps.api):
        module.GenerateAssignment = ReleaseAgain
