"""A submission's folder before nbgrader reads it: which file counts, links, and what is no file.

nbgrader leaves out a notebook whose file has another name than the lesson. It copies the files beside it and follows
links: a student's link to another file of the class would be copied into their feedback. And it waits for ever at a
pipe that nobody writes to.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from traitlets.log import get_logger

from vit_course.grading.submissions.finding import find


def receive(notebooks: list[str], **_: str) -> None:
    """The hook that `nbgrader autograde` calls before it reads a submission.

    Args:
        notebooks: the notebooks' paths, `.../STUDENT/LESSON/NAME.ipynb`; changed in place to the one that is graded,
            under the lesson's name, by which nbgrader knows it. What that is made of, and whether anything can be,
            :class:`~vit_course.grading.classroom.submission_exporter.SubmissionExporter` sees.
    """
    if not notebooks:
        return
    folder = Path(notebooks[0]).parent
    remove_links(folder)
    lessons_file = folder / f"{folder.name}.ipynb"
    for found in find([folder], [folder.name]):
        if folder.name in found.path.stem and found.path.suffix == ".ipynb" and not os.path.lexists(lessons_file):
            get_logger().warning("'%s' is named %s.ipynb from now on", found.path, folder.name)
            found.path.rename(lessons_file)
    notebooks[:] = [str(lessons_file)]


def remove_links(folder: Path) -> None:
    """Delete below ``folder`` what nbgrader would copy and is no file: links, pipes, sockets.

    The log says where each link led; nothing that it led to changes. What is called a notebook stays: nbgrader copies
    none, and the reader tells why it cannot be graded.
    """
    for home, folders, files in os.walk(folder):
        for path in (Path(home, name) for name in (*folders, *files)):
            if path.suffix == ".ipynb" and not path.is_dir():
                continue
            if path.is_symlink():
                get_logger().warning(
                    "'%s' is a link to '%s', which is not the student's: removed", path, path.readlink()
                )
                path.unlink()
            elif not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
                get_logger().warning("'%s' is no file: removed", path)
                path.unlink()
