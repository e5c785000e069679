"""What a student has handed in, as one digest: by it a second submission is never taken for the first.

nbgrader compares timestamps, which most ways of handing in do not write, and which a copied file keeps.
"""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from pathlib import Path

from exercise_kit.nbgrader.exchange import TIMESTAMP
from exercise_kit.submission.find import FoundFile, find
from exercise_kit.submission.notebook_file import Unreachable, Unreadable, read_bytes
from exercise_kit.submission.released import Lessons
from exercise_kit.submission.result_file import find_result


def matches_student_option(student: str, option: str) -> bool:
    """Say whether a command's option ``--student`` means a student: by the id, or by a pattern of nbgrader's."""
    return student == option or fnmatchcase(student, option)


def find_work_folder(found_file: FoundFile, folder: Path) -> Path:
    """Where the files lie beside what was found in a student's folder of a lesson: there, or one folder deeper."""
    return folder if found_file.path == folder else found_file.path.parent


def digest_folder(folder: Path, lessons: Lessons) -> str:
    """A digest of all in a folder that a grade depends on: the notebook, files that the lesson asks for, the time.

    What the files are called does not matter.

    Args:
        folder: of one student's lesson.
        lessons: of the class.

    Returns:
        64 hex digits; "" where the disk does not give the files now, so that nobody knows.

    Raises:
        ReleasedError: the lesson cannot be read.
    """
    wanted = [each.file for each in lessons.get(folder.name).exercises if each.file]
    try:
        parts = [_digest_file(folder / TIMESTAMP)]
        for found in find([folder], lessons.names):
            parts += [found.problem or "", _digest_file(found.path)]
            parts += [find_result(find_work_folder(found, folder), name).digest for name in wanted]
    except Unreachable:
        return ""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _digest_file(path: Path) -> str:
    if not path.exists():
        return ""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except Unreachable:
        raise
    except Unreadable as error:
        return str(error)
