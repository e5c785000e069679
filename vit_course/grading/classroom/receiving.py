"""A submission's folder before nbgrader reads it: renamed notebooks, links, and what is no file.

nbgrader leaves out a notebook whose file has another name than the lesson, as browsers give to a second download. It
follows links: a student's link to another file of the class would be copied into their feedback, a notebook that is a
link would be graded as theirs. And it waits for ever at a pipe that nobody writes to.
"""

from __future__ import annotations

import os
from pathlib import Path

from traitlets.log import get_logger


def receive(notebooks: list[str], **_: str) -> None:
    """The hook that `nbgrader autograde` calls before it reads a submission.

    Args:
        notebooks: the notebooks' paths, `.../STUDENT/LESSON/NAME.ipynb`; changed in place to those to be graded.
    """
    if not notebooks:
        return
    folder = Path(notebooks[0]).parent
    removed = remove_links(folder)
    notebooks[:] = [each for each in notebooks if Path(each) not in removed and _is_file(Path(each))]
    if len(notebooks) == 1:
        notebooks[0] = str(with_lessons_name(Path(notebooks[0])))


def remove_links(folder: Path) -> set[Path]:
    """Delete every symbolic link below ``folder``; the log says where each one led. Nothing that it led to changes."""
    removed = set()
    for home, folders, files in os.walk(folder):
        for path in (Path(home, name) for name in (*folders, *files)):
            if path.is_symlink():
                get_logger().warning(
                    "'%s' is a link to '%s', which is not the student's: removed", path, path.readlink()
                )
                path.unlink()
                removed.add(path)
    return removed


def _is_file(path: Path) -> bool:
    if path.is_file():
        return True
    get_logger().warning("'%s' is no file: left out", path)
    return False


def with_lessons_name(found: Path) -> Path:
    """Give a notebook its lesson's name back, where its name still holds it ("01_patchify (1)")."""
    lesson = found.parent.name
    if lesson not in found.stem or os.path.lexists(found.with_stem(lesson)):
        return found
    get_logger().warning("'%s' is named %s.ipynb from now on", found, lesson)
    return found.rename(found.with_stem(lesson))
