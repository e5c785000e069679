"""Find what was handed in: the files that paths name, whose each one is, and for which assignment.

No link is followed, and what cannot be handed in as a lesson (pictures, timestamps, packages) is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from vit_course.grading.submissions.notebook_file import ADVICE, ARCHIVES
from vit_course.grading.submissions.released import class_of

SUBMITTED = "submitted"
SUFFIXES = (".ipynb", ".py", *ARCHIVES)
NO_NOTEBOOK = "the folder holds no notebook"


@dataclass(frozen=True)
class HandedIn:
    """A file to grade, or the place where one is missing.

    Attributes: ``path``, ``student`` and ``assignment`` where the folders tell them, ``class_dir`` (the class folder
    that it is in), ``problem`` (why there is nothing to grade), ``note`` (said beside the grade), and ``named`` (the
    path itself was given, so it is not left out in silence).
    """

    path: Path
    student: str | None = None
    assignment: str | None = None
    class_dir: Path | None = None
    problem: str | None = None
    note: str | None = None
    named: bool = False


def find(paths: Iterable[Path], lessons: Iterable[str]) -> list[HandedIn]:
    """All that is to be graded, in the order of the paths, within a folder by name; a file found twice counts once.

    Args:
        paths: notebooks, ``.py`` files, folders of them, nbgrader's ``submitted/`` trees or parts of one.
        lessons: names of lessons, by which the folders of a tree are known.
    """
    known = frozenset(lessons)
    found: dict[str, HandedIn] = {}
    for path in paths:
        for each in _find(path, known):
            found.setdefault(os.path.abspath(each.path), each)
    return list(found.values())


def _find(path: Path, lessons: frozenset[str]) -> Iterator[HandedIn]:
    class_dir = class_of(path)
    if class_dir and path.absolute() == class_dir:
        path = path / SUBMITTED  # a class folder stands for what its students handed in
    place = _below_submitted(path)
    if not os.path.lexists(path):
        yield HandedIn(path, class_dir=class_dir, problem="there is no such file or folder", named=True)
    elif path.is_dir():
        if place is None and _is_tree(path, lessons):
            place = ()
        for each in _in_tree(path, place, lessons) if place is not None else _loose(HandedIn(path)):
            yield replace(each, class_dir=class_dir)
    else:
        student, assignment, *_ = (*(place or ())[:-1], None, None)
        yield HandedIn(path, student, assignment, class_dir, _link_or_archive(path), named=True)


def _below_submitted(path: Path) -> tuple[str, ...] | None:
    """The folders' names below ``submitted/``: student, assignment, file; None: the path is not in such a tree."""
    parts = path.absolute().parts
    roots = [index for index, name in enumerate(parts) if name == SUBMITTED]
    return parts[roots[-1] + 1 :] if roots else None


def _is_tree(folder: Path, lessons: frozenset[str]) -> bool:
    return any((child / lesson).is_dir() for child in _folders(folder) for lesson in lessons)


def _in_tree(folder: Path, place: tuple[str, ...], lessons: frozenset[str]) -> Iterator[HandedIn]:
    """What is handed in at a place of a tree: all students' work, one student's, or one assignment."""
    student, assignment, *_ = (*place, None, None)
    here = HandedIn(folder, student, assignment)
    if folder.is_symlink() and place:
        yield replace(here, problem=ADVICE["link"])
    elif not os.access(folder, os.R_OK | os.X_OK):
        yield replace(here, problem="the folder cannot be read: Permission denied")
    elif len(place) >= 2:
        yield from _of_assignment(here, is_lesson=place[1] in lessons)
    else:
        below = [each for child in _folders(folder) for each in _in_tree(child, (*place, child.name), lessons)]
        below += [replace(here, path=file, problem=_link_or_archive(file)) for file in _files(folder)]
        if place and not below:
            below = [replace(here, problem=NO_NOTEBOOK)]
        yield from below


def _of_assignment(place: HandedIn, is_lesson: bool) -> Iterator[HandedIn]:
    """The one file that counts in STUDENT/ASSIGNMENT: the notebook of its name, else the only one."""
    lesson, files = place.assignment or "", _files(place.path)
    notebooks = [file for file in files if file.suffix.lower() == ".ipynb"]
    exact = [file for file in notebooks if file.stem == lesson]
    renamed = [file for file in notebooks if lesson in file.stem]
    scripts = [file for file in files if file.suffix.lower() == ".py" and lesson in file.stem]
    archives = [file for file in files if file.suffix.lower() in ARCHIVES]
    if named := exact or renamed[-1:]:
        yield replace(place, path=named[0], problem=_link_or_archive(named[0]))
    elif len(notebooks) == 1:
        name = notebooks[0].name.encode("utf-8", "replace").decode()
        note = f"its file is named {name}, not {lesson}.ipynb"
        yield replace(place, path=notebooks[0], problem=_link_or_archive(notebooks[0]), note=note)
    elif notebooks:
        yield replace(place, problem=f"it holds {len(notebooks)} notebooks, and none is named {lesson}.ipynb")
    elif scripts or archives:
        file = (scripts or archives)[0]
        yield replace(place, path=file, problem=_link_or_archive(file))
    elif is_lesson:
        yield replace(place, problem=NO_NOTEBOOK)


def _loose(place: HandedIn) -> Iterator[HandedIn]:
    """All notebooks and Python files in a folder and below it."""
    if not os.access(place.path, os.R_OK | os.X_OK):
        yield replace(place, problem="the folder cannot be read: Permission denied")
        return
    for file in _files(place.path):
        yield replace(place, path=file, problem=_link_or_archive(file))
    for folder in _folders(place.path):
        if folder.is_symlink():
            yield replace(place, path=folder, problem=ADVICE["link"])
        elif not os.path.lexists(folder / "__init__.py"):  # a package beside the work is no submission
            yield from _loose(replace(place, path=folder))


def _files(folder: Path) -> list[Path]:
    return [path for path in _visible(folder) if path.suffix.lower() in SUFFIXES and not path.is_dir()]


def _folders(folder: Path) -> list[Path]:
    return [path for path in _visible(folder) if path.is_dir() and path.name != "__pycache__"]


def _visible(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder), key=os.fsencode)
    except OSError:
        return []
    return [folder / name for name in names if not name.startswith(".")]


def _link_or_archive(path: Path) -> str | None:
    if path.is_symlink():
        return ADVICE["link"]
    return ADVICE["archive"] if path.suffix.lower() in ARCHIVES else None
