"""What was handed in: the files that paths name, whose each one is, and for which assignment.

No link is followed, and what cannot be handed in as a lesson (pictures, timestamps, packages) is left out. A class's
configuration, checks or results that a student hands in are flagged, and never used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from exercise_kit.quoting import make_one_line
from exercise_kit.submission.flags import CHECK_FILES
from exercise_kit.submission.notebook_file import ADVICE, ARCHIVES, Unreachable, make_unreadable_error
from exercise_kit.submission.released import CLONE, SUBMITTED, is_class, is_from_students

_NAMES = frozenset(
    {"nbgrader_config.py", "nbgrader_config.json", "conftest.py", "hidden", ".vit_course", "gradebook.db"}
)
_MOST_FOLDERS, _DEEPEST = 1000, 16


def holds_class_file(folder: Path) -> bool:
    """Say whether one of these names lies in a folder."""
    return not _NAMES.isdisjoint(_list_entry_names(folder))


def holds_class_file_below(folder: Path) -> bool:
    """Say whether one of these names lies in a folder or below it; no link is followed."""
    return any(not _NAMES.isdisjoint((*folders, *files)) for folders, files in _walk_to_limited_depth(folder))


def _walk_to_limited_depth(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    for number, (parent, folders, files) in enumerate(os.walk(folder)):
        if number == _MOST_FOLDERS:
            return
        yield folders, files
        if len(Path(parent).relative_to(folder).parts) == _DEEPEST:
            folders.clear()


def _list_entry_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


SUFFIXES = (".ipynb", ".py", *ARCHIVES)
DEEPEST = 16  # folders in each other below what was named
NO_NOTEBOOK = "the folder holds no notebook"
HIDDEN_FOLDER = "its name begins with a dot, so nbgrader passes over it; rename the folder"
_MOST_NAMED = 10
_OF_TOOLS = frozenset({".git", ".github", ".ipynb_checkpoints", ".vscode", ".idea", ".cache"})


@dataclass(frozen=True)
class FoundFile:
    """A file to grade, or the place where one is missing.

    Attributes:
        path: of the file.
        student, assignment: by the names of its folders, where those say it.
        problem: why there is nothing to grade.
        unreachable: whether the problem is no fault of the student's.
        note: a sentence to say beside the grade.
        named: whether its own path was given, so that it is not left out in silence.
        flags: for what lies beside it.
    """

    path: Path
    student: str | None = None
    assignment: str | None = None
    problem: str | None = None
    unreachable: bool = False
    note: str | None = None
    named: bool = False
    flags: tuple[str, ...] = ()


def find(paths: Iterable[Path], lessons: Iterable[str], class_dir: Path | None = None) -> list[FoundFile]:
    """All that is to be graded, in the order of the paths, within a folder by name; a file found twice counts once.

    Args:
        paths: notebooks, ``.py`` files, folders of them, nbgrader's ``submitted/`` trees or parts of one.
        lessons: names of lessons, by which the folders of a tree are known.
        class_dir: the operator's class folder; it stands for what its students handed in.
    """
    known = frozenset(lessons)
    found: dict[str, FoundFile] = {}
    has_below = lru_cache(holds_class_file_below)
    for path in paths:
        seems = find_apparent_class(path)
        is_strange = seems is not None and (class_dir is None or seems.resolve() != class_dir.resolve())
        for each in _find_or_report_error(path, known, class_dir):
            folders = tuple(_iterate_candidate_folders(each, path, class_dir)) if each.student is None else ()
            flagged = (
                is_strange
                or any(map(holds_class_file, folders))
                or (each.student and has_below(_find_students_folder(each)))
            )
            found.setdefault(os.path.abspath(each.path), replace(each, flags=(CHECK_FILES,)) if flagged else each)
    return list(found.values())


def find_apparent_class(path: Path) -> Path | None:
    """The folder of a class as it seems, of which a path names all the work, or some: only for words about it."""
    for folder in (path.absolute(), *path.absolute().parents):
        whole = folder == path.absolute() and (folder / SUBMITTED).is_dir()
        if is_class(folder) and not is_from_students(folder):
            return folder if whole or path.absolute().is_relative_to(folder / SUBMITTED) else None
    return None


def _find_or_report_error(path: Path, lessons: frozenset[str], class_dir: Path | None) -> Iterator[FoundFile]:
    try:
        yield from list(_find_at_path(path, lessons, class_dir))
    except OSError as error:
        yield _add_read_error(FoundFile(path, named=True), error)


def _add_read_error(place: FoundFile, error: OSError) -> FoundFile:
    why = make_unreadable_error(error, "the folder")
    return replace(place, problem=str(why), unreachable=isinstance(why, Unreachable))


def _find_at_path(path: Path, lessons: frozenset[str], class_dir: Path | None) -> Iterator[FoundFile]:
    if find_apparent_class(path) == path.absolute() or (class_dir and path.resolve() == class_dir.resolve()):
        path = path / SUBMITTED
    place = _split_below_submitted(path, class_dir)
    if not os.path.lexists(path):
        yield FoundFile(path, problem="there is no such file or folder", named=True)
    elif path.is_dir():
        if place is None and _is_submitted_tree(path, lessons):
            place = ()
        yield from _find_in_tree(path, place, lessons) if place is not None else _walk_files(FoundFile(path))
    else:
        student, assignment, *_ = (*(place or ())[:-1], None, None)
        yield FoundFile(path, student, assignment, _explain_link_or_archive(path), named=True)


def _split_below_submitted(path: Path, class_dir: Path | None) -> tuple[str, ...] | None:
    """The folders' names below ``submitted/``: student, assignment, file; None: the path is not in such a tree."""
    if class_dir and path.absolute().is_relative_to(class_dir / SUBMITTED):
        return path.absolute().relative_to(class_dir / SUBMITTED).parts
    parts = path.absolute().parts
    roots = [index for index, name in enumerate(parts) if name == SUBMITTED]
    return parts[roots[-1] + 1 :] if roots else None


def _find_students_folder(found_file: FoundFile) -> Path:
    """The folder of a student of a tree, else the place itself."""
    places = (found_file.path.absolute(), *found_file.path.absolute().parents)
    return next((folder for folder in places[1:] if folder.name == found_file.student), places[0])


def _iterate_candidate_folders(found_file: FoundFile, given_path: Path, class_dir: Path | None) -> Iterator[Path]:
    """The folders above a file that may be its student's: up to the path that was given, and none of the operator's."""
    own = {CLONE, *((class_dir, *class_dir.parents) if class_dir else ())}
    for folder in found_file.path.absolute().parents:
        if folder in own:
            return
        yield folder
        if folder == given_path.absolute() or found_file.named:
            return


def _is_submitted_tree(folder: Path, lessons: frozenset[str]) -> bool:
    return any((child / lesson).is_dir() for child in _list_subfolders(folder) for lesson in lessons)


def _find_in_tree(folder: Path, place: tuple[str, ...], lessons: frozenset[str]) -> Iterator[FoundFile]:
    """Yield what is handed in at a place of a tree: all students' work, one student's, or one assignment."""
    student, assignment, *_ = (*place, None, None)
    here = FoundFile(folder, student, assignment)
    try:
        if folder.is_symlink() and place:
            yield replace(here, problem=ADVICE["link"])
        elif len(place) >= 2:
            yield from list(_find_in_assignment(here, is_lesson=place[1] in lessons))
        else:
            below = [
                each
                for child in _list_subfolders(folder)
                for each in _find_in_child(child, (*place, child.name), lessons)
            ]
            below += [replace(here, path=file, problem=_explain_link_or_archive(file)) for file in _list_files(folder)]
            below += find_misplaced_work(folder, lessons) if not place else ()
            if place and not below:
                below = [replace(here, problem=NO_NOTEBOOK)]
            yield from below
    except OSError as error:
        yield _add_read_error(here, error)


def find_misplaced_work(submitted: Path, lessons: Iterable[str]) -> Iterator[FoundFile]:
    """Yield what lies beside students' folders and is none: hidden folders with work in them, links that lead nowhere.

    nbgrader and this module pass over both, and whose they are is left without a grade.
    """
    with os.scandir(submitted) as entries:
        listed = sorted(entries, key=lambda each: os.fsencode(each.name))
    for entry in listed:
        path = submitted / entry.name
        if entry.is_symlink() and not os.path.isdir(path) and path.suffix.lower() not in SUFFIXES:
            yield FoundFile(path, student=entry.name, problem=ADVICE["link"])
        elif entry.name.startswith(".") and entry.name not in _OF_TOOLS and _holds_work(path, lessons):
            yield FoundFile(path, student=entry.name, problem=HIDDEN_FOLDER)


def find_submitted_folders(paths: Iterable[Path]) -> Iterator[Path]:
    """The folders `submitted/` that were graded whole."""
    for path in paths:
        for folder in (path / SUBMITTED, path):
            if folder.name == SUBMITTED and folder.is_dir():
                yield folder


def describe_stray_files(submitted: Path) -> str | None:
    """A sentence on the files that lie beside students' folders and that no command looks at; None: there are none."""
    names = []
    with suppress(OSError):
        files = [each.name for each in _list_visible(submitted) if not _is_folder(each) and not each.is_symlink()]
        names = [make_one_line(name) for name in files if Path(name).suffix.lower() not in SUFFIXES]
    if not names:
        return None
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    whose = "which is no student's" if len(names) == 1 else "which are no student's"
    return f"in {SUBMITTED}/ nobody has looked at {', '.join(names[:_MOST_NAMED])}{more}, {whose}"


def _holds_work(folder: Path, lessons: Iterable[str]) -> bool:
    with suppress(OSError):
        return any(os.path.isdir(folder / lesson) for lesson in lessons) or bool(_list_files(folder))
    return False


def _find_in_child(folder: Path, place: tuple[str, ...], lessons: frozenset[str]) -> Iterator[FoundFile]:
    """A student's or an assignment's folder; of a student who handed in files without a lesson's folder, all files.

    A folder that nbgrader did not make is taken for a tree by one lesson's folder, which anybody can hand in.
    """
    of_student = len(place) == 1 and SUBMITTED not in folder.absolute().parts
    if of_student and not folder.is_symlink() and not any(os.path.isdir(folder / lesson) for lesson in lessons):
        here = FoundFile(folder, student=place[0])
        yield from list(_walk_files(here)) or [replace(here, problem=NO_NOTEBOOK)]
    else:
        yield from _find_in_tree(folder, place, lessons)


def _find_in_assignment(place: FoundFile, is_lesson: bool) -> Iterator[FoundFile]:
    """The one file that counts in STUDENT/ASSIGNMENT: the notebook of its name, else the only one."""
    lesson, files = place.assignment or "", _list_files(place.path)
    notebooks = [file for file in files if file.suffix.lower() == ".ipynb"]
    exact = [file for file in notebooks if file.stem == lesson]
    renamed = [file for file in notebooks if lesson in file.stem]
    all_scripts = [file for file in files if file.suffix.lower() == ".py"]
    scripts = [file for file in all_scripts if lesson in file.stem]
    alone = all_scripts if len(all_scripts) == 1 and not scripts else []
    archives = [file for file in files if file.suffix.lower() in ARCHIVES]
    if named := exact or renamed[-1:]:
        yield replace(place, path=named[0], problem=_explain_link_or_archive(named[0]))
    elif len(notebooks) == 1:
        yield _accept_misnamed(place, notebooks[0], lesson)
    elif notebooks:
        yield replace(place, problem=f"it holds {len(notebooks)} notebooks, and none is named {lesson}.ipynb")
    elif alone and not archives and is_lesson:
        yield _accept_misnamed(place, alone[0], lesson)
    elif scripts or archives:
        file = (scripts or archives)[0]
        yield replace(place, path=file, problem=_explain_link_or_archive(file))
    elif is_lesson:
        yield from _find_in_only_subfolder(place)


def _find_in_only_subfolder(place: FoundFile) -> Iterator[FoundFile]:
    """The file in the only folder with a notebook in STUDENT/ASSIGNMENT: many programs unpack an archive so."""
    inner = [folder for folder in _list_subfolders(place.path) if not folder.is_symlink() and _holds_notebook(folder)]
    if not inner:
        yield replace(place, problem=NO_NOTEBOOK)
    elif len(inner) > 1:
        names = " and ".join(make_one_line(folder.name) for folder in inner)
        yield replace(place, problem=f"{NO_NOTEBOOK} itself, and {names} in it do; leave the one that counts")
    else:
        deeper = f"its file lies one folder deeper, in {make_one_line(inner[0].name)}"
        for each in _find_in_assignment(replace(place, path=inner[0]), is_lesson=False):
            yield replace(each, note="; ".join(filter(None, (deeper, each.note))))


def _holds_notebook(folder: Path) -> bool:
    return any(file.suffix.lower() == ".ipynb" for file in _list_files(folder))


def _accept_misnamed(place: FoundFile, file: Path, lesson: str) -> FoundFile:
    name = file.name.encode("utf-8", "replace").decode()
    note = f"its file is named {name}, not {lesson}{file.suffix.lower()}"
    return replace(place, path=file, problem=_explain_link_or_archive(file), note=note)


def _walk_files(place: FoundFile, depth: int = 0) -> Iterator[FoundFile]:
    """All notebooks and Python files in a folder and below it."""
    if depth > DEEPEST:
        yield replace(place, problem=f"its folders are more than {DEEPEST} deep; hand in the notebook alone")
        return
    try:
        files, folders = _list_files(place.path), _list_subfolders(place.path)
    except OSError as error:
        yield _add_read_error(place, error)
        return
    for file in files:
        yield replace(place, path=file, problem=_explain_link_or_archive(file))
    for folder in folders:
        if folder.is_symlink():
            yield replace(place, path=folder, problem=ADVICE["link"])
        elif not os.path.lexists(folder / "__init__.py"):  # a package beside the work is no submission
            yield from _walk_files(replace(place, path=folder), depth + 1)


def _list_files(folder: Path) -> list[Path]:
    named = [each for each in _list_visible(folder) if Path(each.name).suffix.lower() in SUFFIXES]
    return [folder / each.name for each in named if not _is_folder(each)]


def _list_subfolders(folder: Path) -> list[Path]:
    return [folder / each.name for each in _list_visible(folder) if _is_folder(each) and each.name != "__pycache__"]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Say whether it is one, or a link to one; where a link of a student's leads is no reason for an error."""
    return os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir()


def _list_visible(folder: Path) -> list[os.DirEntry[str]]:
    """Return what lies in a folder, by name; OSError where the system does not say."""
    with os.scandir(folder) as entries:
        return sorted(
            (each for each in entries if not each.name.startswith(".")), key=lambda each: os.fsencode(each.name)
        )


def _explain_link_or_archive(path: Path) -> str | None:
    if path.is_symlink():
        return ADVICE["link"]
    return ADVICE["archive"] if path.suffix.lower() in ARCHIVES else None
