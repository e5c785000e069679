"""Gradescope's autograder as the zip that is uploaded there: two scripts, and the course with its hidden checks.

Gradescope unpacks it into ``/autograder/source``, runs ``setup.sh`` once and ``run_autograder`` for each upload, which
reads ``/autograder/submission`` and writes ``/autograder/results/results.json``:
https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from exercise_kit.authoring.release import DATE, list_tracked_files
from exercise_kit.exports.grades import ExportError
from exercise_kit.exports.gradescope import Visibility
from exercise_kit.files import explain_unreadable_folder

SETUP, RUN = "setup.sh", "run_autograder"
COURSE = "course"
_LESSONS = ("notebooks", "solutions")
_HIDDEN = Path("tests") / "hidden"


def build_autograder(root: Path, visibility: Visibility = Visibility.VISIBLE) -> bytes:
    """The zip; the same clone gives the same bytes.

    Args:
        root: a clone of the course.
        visibility: when students see the tests.

    Raises:
        ExportError: the folder is no clone with lessons and hidden checks.
    """
    paths = list(_list_course_files(root))
    for needed in (*map(Path, _LESSONS), _HIDDEN):
        if not any(path.is_relative_to(needed) for path in paths):
            nothing = f"there is nothing in {root / needed}; name a clone of the course with --root"
            raise ExportError(explain_unreadable_folder(root / needed) or nothing)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in (SETUP, RUN):
            _add_file(
                archive, name, _read_gradescope_script(name).replace("VISIBILITY", visibility.value).encode(), 0o755
            )
        for path in paths:
            _add_file(archive, f"{COURSE}/{path.as_posix()}", (root / path).read_bytes(), 0o644)
    return packed.getvalue()


def _list_course_files(root: Path) -> Iterator[Path]:
    """The clone's files that grading needs: the packages, the lessons with their answers, the hidden checks."""
    packages = {each.parent.name for each in root.glob("*/__init__.py")} - {"tests"}
    for path in list_tracked_files(root):
        top = path.parts[0]
        if len(path.parts) == 1 or top in packages or top in _LESSONS or path.is_relative_to(_HIDDEN):
            yield path


def _read_gradescope_script(name: str) -> str:
    return (files("exercise_kit") / "templates" / f"gradescope_{name}").read_text(encoding="utf-8")


def _add_file(archive: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, DATE)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, mode << 16
    archive.writestr(entry, content)
