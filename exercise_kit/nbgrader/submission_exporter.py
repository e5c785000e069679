"""How nbgrader reads what was handed in: which file counts, and what it says.

nbgrader leaves out a notebook whose file has another name than the lesson. It copies the files beside it and follows
links: to a device without an end, or to another file of the class. It stops at a timestamp that it cannot read. When
this hook raises, it goes on without it: so what cannot be removed is only logged, and copies are removed in a step of
their own.

nbgrader finds a cell by metadata that tools strip, reads only UTF-8, and makes objects of everything in a file before
any step of ours. So its reading is replaced: the judge's reader opens the file within its limits and finds the answers,
and a clean notebook is made of them in memory. What the student handed in stays as it is.
"""

from __future__ import annotations

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode, from_dict
from nbgrader.utils import parse_utc
from traitlets.log import get_logger

from exercise_kit.conventions import TEXT_STUB
from exercise_kit.engine.class_exercises import set_class_in_use
from exercise_kit.nbgrader.cleaning import PLACE, make_cell_ids_valid, make_picture_outputs, select_safe_pictures
from exercise_kit.nbgrader.exchange import SECRET, TIMESTAMP
from exercise_kit.quoting import make_one_line
from exercise_kit.submission.find import FoundFile, find
from exercise_kit.submission.notebook_file import SubmittedCell, Unreadable, read_bytes
from exercise_kit.submission.parse import OpenedSubmission, open_with_answers
from exercise_kit.submission.released import Lessons, ReleasedCell, ReleasedLesson

MOST_BYTES_OF_TIME = 1000
_SECRET = re.compile(r"[0-9a-f]{128}")  # as `nbgrader submit` makes it


def receive(notebooks: list[str], **_: str) -> None:
    """The hook that `nbgrader autograde` calls before it reads a submission.

    Args:
        notebooks: the notebooks' paths, `.../STUDENT/LESSON/NAME.ipynb`; changed in place to the one that is graded,
            under the lesson's name, by which nbgrader knows it. What that is made of, and whether anything can be,
            :class:`~exercise_kit.nbgrader.submission_exporter.SubmissionExporter` sees.
    """
    if not notebooks:
        return
    folder = Path(notebooks[0]).parent
    remove_links(folder)
    set_timestamp_aside(folder / TIMESTAMP)
    set_secret_aside(folder / SECRET)
    lessons_file = folder / f"{folder.name}.ipynb"
    for found in find([folder], [folder.name]):
        beside = found.path.parent == folder and not os.path.lexists(lessons_file)
        if beside and folder.name in found.path.stem and found.path.suffix == ".ipynb":
            get_logger().warning("'%s' is named %s.ipynb from now on", found.path, folder.name)
            found.path.rename(lessons_file)
    notebooks[:] = [str(lessons_file)]


def remove_links(folder: Path) -> None:
    """Delete below ``folder`` what nbgrader would copy and is no file: links, pipes, sockets, devices.

    The log says where each link led; nothing that it led to changes. What is called a notebook stays: nbgrader copies
    none, and the reader tells why it cannot be graded. Folders too deep for a path are left: nbgrader goes by paths.
    """
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            try:
                kind = path.lstat().st_mode
                if stat.S_ISREG(kind) or stat.S_ISDIR(kind) or (path.suffix == ".ipynb" and not path.is_dir()):
                    continue
                what = "no file"
                if stat.S_ISLNK(kind):
                    what = f"a link to '{make_one_line(os.readlink(path))}', which is not the student's"
                _unlink_forcibly(path)
                get_logger().warning("'%s' is %s: removed", make_one_line(str(path)), what)
            except OSError as error:
                get_logger().error("'%s' cannot be removed: %s", make_one_line(str(path)), error.strerror)


def _unlink_forcibly(path: Path) -> None:
    try:
        path.unlink()
    except PermissionError:  # its folder was handed in as one that nothing can be removed from
        path.parent.chmod(0o700)
        path.unlink()


def set_timestamp_aside(file: Path) -> None:
    """Rename a ``timestamp.txt`` that nbgrader cannot read, and would stop at: the work counts as in time."""
    try:
        if os.path.lexists(file):
            parse_utc(read_bytes(file, MOST_BYTES_OF_TIME).decode().strip())
    except Exception:  # whatever dateutil, the calendar and the file system have against it
        get_logger().warning("'%s' holds no time, and is set aside", make_one_line(str(file)))
        with suppress(OSError):
            file.rename(file.with_name(f"{TIMESTAMP}.unreadable"))


def set_secret_aside(file: Path) -> None:
    """Rename a ``submission_secret.txt`` that is none of nbgrader's, which reads it whole when feedback is released."""
    try:
        if os.path.lexists(file) and not _SECRET.fullmatch(read_bytes(file, MOST_BYTES_OF_TIME).decode()):
            raise ValueError
    except (OSError, ValueError, Unreadable):
        get_logger().warning("'%s' is not nbgrader's, and is set aside", make_one_line(str(file)))
        with suppress(OSError):
            file.rename(file.with_name(f"{SECRET}.unreadable"))


def remove_copied_files(copied: Path, released: Path) -> None:
    """Delete from an autograded folder what nbgrader has copied from the student's, other than the time and the secret.

    The instructor's server would show a student's page as its own, and the feedback would hold whatever a link led to.
    The student's files stay where they were handed in. The secret is what feedback is released under.

    Raises:
        OSError: something cannot be deleted.
    """
    for parent, folders, files in os.walk(copied, topdown=False):
        for name in files:
            path = Path(parent, name)
            if (
                path not in (copied / TIMESTAMP, copied / SECRET)
                and not (released / path.relative_to(copied)).is_file()
            ):
                path.unlink()
        for name in folders:
            with suppress(OSError):  # it holds something of the lesson's
                Path(parent, name).rmdir()


NOWHERE = -1  # the place of a cell that the submission does not have


class SubmissionExporter(NotebookExporter):
    """Reads submissions for ``nbgrader autograde`` and formgrader's button."""

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **options: Any
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Convert a notebook: of a submission its answers, of what autograding has written the whole.

        Args:
            filename: of nbgrader's, whatever the file in the submission's folder is called.
            resources: nbgrader's, with the names of student, assignment and notebook.
        """
        assert resources is not None, "nbgrader says whose notebook it is"
        assert self.parent is not None, "it is made by nbgrader's converter"
        where, course = resources["nbgrader"], self.parent.coursedir
        folder = Path(course.format_path(course.submitted_directory, where["student"], where["assignment"]))
        if Path(filename).parent != folder:
            return super().from_filename(filename, resources=resources, **options)
        copied = Path(course.format_path(course.autograded_directory, where["student"], where["assignment"]))
        released = Path(course.format_path(course.source_directory, ".", where["assignment"]))
        remove_copied_files(copied, released)
        resources["metadata"] = {"name": where["notebook"], "path": str(folder)}
        set_class_in_use(Path(course.root))
        lessons = Lessons(Path(course.root))
        found = next(iter(find([folder], lessons.names)), FoundFile(folder, problem="it is no lesson of the course"))
        converted: tuple[NotebookNode, dict[str, Any]] = self.from_notebook_node(
            build_marked_notebook(found, lessons), resources
        )
        return converted


def build_marked_notebook(handed_in: FoundFile, lessons: Lessons) -> NotebookNode:
    """A notebook of a submission's cells in their order, each with the mark that the lesson has for it.

    Of a file that cannot be graded it has no cell; the judge says why.
    """
    cells: list[dict[str, Any]] = []
    with suppress(Exception):
        cells = list(_make_marked_cells(open_with_answers(handed_in, lessons)))
        make_cell_ids_valid(cells)
    notebook: NotebookNode = from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    return notebook


def _make_marked_cells(opened: OpenedSubmission) -> Iterator[dict[str, Any]]:
    marks = _find_grade_ids(opened)
    for cell in opened.file.cells:
        names = marks[cell.index]
        kind = "code" if cell.code else "markdown" if cell.markdown else "raw"
        pasted = (
            {"outputs": make_picture_outputs(cell.still)}
            if cell.code
            else {"attachments": select_safe_pictures(cell.attachments)}
        )
        yield _make_marked_cell(kind, cell.source, cell.index, *names[:1]) | {"id": cell.id} | pasted
        for name in names[1:]:
            yield _make_marked_cell("code", f"# {name} is answered in the cell above.", NOWHERE, name)


def _make_marked_cell(kind: str, source: str, place: int, grade_id: str | None = None) -> dict[str, Any]:
    mark = {"nbgrader": {"grade_id": grade_id}} if grade_id else {}
    outputs: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "source": source, "metadata": {PLACE: place, **mark}, **outputs}


def _find_grade_ids(opened: OpenedSubmission) -> defaultdict[int, list[str]]:
    """The grade ids of each cell, by its index; one that answers several exercises has several."""
    marks = defaultdict[int, list[str]](list)
    for answer in opened.answers:
        if answer.cell is not None:
            marks[answer.cell].append(answer.name)
    for released in opened.lesson.cells:
        if released.name and released.role in ("check", "locked", "question"):
            free = [cell for cell in opened.file.cells if cell.index not in marks and cell.code == released.code]
            if (found := _find_last_match(free, released, opened.lesson)) is not None:
                marks[found.index].append(released.name)
    return marks


def _find_last_match(
    cells: list[SubmittedCell], released: ReleasedCell, lesson: ReleasedLesson
) -> SubmittedCell | None:
    """The last cell that bears a released cell's mark, else its id, else its text: of a question, the question.

    Of an edited text one line is enough, if no other cell of the lesson has it.
    """
    text = released.source.partition(TEXT_STUB)[0].strip() if released.role == "question" else released.source.strip()
    others = {line for cell in lesson.cells if cell is not released for line in cell.source.splitlines()}
    own = next((line for line in text.splitlines() if line not in others), None)
    for alike in (
        [cell for cell in cells if cell.grade_id == released.name],
        [cell for cell in cells if released.id and cell.id == released.id],
        [cell for cell in cells if text and cell.source.strip().startswith(text)],
        [cell for cell in cells if own and own in cell.source.splitlines()],
    ):
        if alike:
            return alike[-1]
    return None
