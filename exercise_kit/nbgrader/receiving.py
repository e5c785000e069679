"""A submission's folder before nbgrader reads it: which file counts, links, what is no file, and when it came.

nbgrader leaves out a notebook whose file has another name than the lesson. It copies the files beside it and follows
links: to a device without an end, or to another file of the class. It stops at a timestamp that it cannot read. And it
goes on without this hook where that raises: so what cannot be removed is logged, and copies go in a step of their own.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from nbgrader.utils import parse_utc
from traitlets.log import get_logger

from exercise_kit.judge.result import one_line
from exercise_kit.submission.finding import find
from exercise_kit.submission.notebook_file import read_bytes

TIMESTAMP = "timestamp.txt"
MOST_BYTES_OF_TIME = 1000


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
    lessons_file = folder / f"{folder.name}.ipynb"
    for found in find([folder], [folder.name]):
        if folder.name in found.path.stem and found.path.suffix == ".ipynb" and not os.path.lexists(lessons_file):
            get_logger().warning("'%s' is named %s.ipynb from now on", found.path, folder.name)
            found.path.rename(lessons_file)
    notebooks[:] = [str(lessons_file)]


def remove_links(folder: Path) -> None:
    """Delete below ``folder`` what nbgrader would copy and is no file: links, pipes, sockets, devices.

    The log says where each link led; nothing that it led to changes. What is called a notebook stays: nbgrader copies
    none, and the reader tells why it cannot be graded. Folders too deep for a path are left: nbgrader goes by paths.
    """
    for home, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(home, name)
            try:
                kind = path.lstat().st_mode
                if stat.S_ISREG(kind) or stat.S_ISDIR(kind) or (path.suffix == ".ipynb" and not path.is_dir()):
                    continue
                what = "no file"
                if stat.S_ISLNK(kind):
                    what = f"a link to '{one_line(os.readlink(path))}', which is not the student's"
                _remove(path)
                get_logger().warning("'%s' is %s: removed", one_line(str(path)), what)
            except OSError as error:
                get_logger().error("'%s' cannot be removed: %s", one_line(str(path)), error.strerror)


def _remove(path: Path) -> None:
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
        get_logger().warning("'%s' tells no time, and is set aside", one_line(str(file)))
        with suppress(OSError):
            file.rename(file.with_name(f"{TIMESTAMP}.unreadable"))


def remove_copies(copied: Path, released: Path) -> None:
    """Delete from an autograded folder what nbgrader has copied from the student's, other than the time.

    The instructor's server would show a student's page as its own, and the feedback would hold whatever a link led to.
    The student's files stay where they were handed in.

    Raises:
        OSError: something cannot be deleted.
    """
    for home, folders, files in os.walk(copied, topdown=False):
        for name in files:
            path = Path(home, name)
            if path != copied / TIMESTAMP and not (released / path.relative_to(copied)).is_file():
                path.unlink()
        for name in folders:
            with suppress(OSError):  # it holds something of the lesson's
                Path(home, name).rmdir()
