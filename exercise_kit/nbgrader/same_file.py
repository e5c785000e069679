"""The flag of students who handed in one trained model: it depends on all of them, so it is noted after grading.

The judge's result is kept for each submission alone. So the flag is written into the autograded notebooks, where
formgrader and `nbgrader export` read flags, and taken back where it does not hold any more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nbgrader.coursedir import CourseDirectory

from exercise_kit.files import write
from exercise_kit.nbgrader.grader_notes import NOTES, noted
from exercise_kit.submission.flags import SAME_FILE, flag_same_file
from exercise_kit.submission.notebook_file import Unreachable
from exercise_kit.submission.released import ReleasedLesson
from exercise_kit.submission.result_file import find_result


def note_same_file(course: CourseDirectory, lesson: ReleasedLesson) -> set[str]:
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
        if not folder.is_symlink() and noted(_page(course, folder.parent.name, lesson.name)).graded:
            found.append((folder.parent.name, _digests(folder, files)))
    shared = flag_same_file(found)
    for (student, _), same in zip(found, shared, strict=True):
        _flag(_page(course, student, lesson.name), same)
    return {student for (student, _), same in zip(found, shared, strict=True) if same}


def _page(course: CourseDirectory, student: str, lesson: str) -> Path:
    return Path(course.format_path(course.autograded_directory, student, lesson)) / f"{lesson}.ipynb"


def _digests(folder: Path, files: Sequence[str]) -> set[str]:
    with suppress(Unreachable):  # what is the matter with the folder, its own result says
        return {result.digest for name in files if (result := find_result(folder, name)).digest}
    return set()


def _flag(page: Path, wanted: bool) -> None:
    if not page.is_file() or wanted == (SAME_FILE in noted(page).flags):
        return
    notebook = json.loads(page.read_bytes())
    if notes := notebook["metadata"].get(NOTES):  # an older version of the kit noted nothing
        others = [flag for flag in notes["flags"] if flag != SAME_FILE]
        notes["flags"] = [*others, SAME_FILE] if wanted else others
        write(page, json.dumps(notebook, indent=1).encode())
