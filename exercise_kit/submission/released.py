"""What a lesson's released notebook says: its exercises, checks and cells, and the version that students got."""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from exercise_kit.conventions import CODE_STUB, EXPERIMENT_TAG, TEXT_STUB, make_check_grade_id
from exercise_kit.files import find_user_folder, write
from exercise_kit.submission.slice import parse

CLONE = Path(__file__).resolve().parents[2]  # where the lessons are, when this is an editable install of a clone
CONFIG = "nbgrader_config.py"
SUBMITTED = "submitted"
_STUDENT_FOLDERS = frozenset({SUBMITTED, "autograded", "feedback", "downloaded"})
_NOTEBOOK_FOLDERS = frozenset({SUBMITTED, "autograded", "source", "release"})

Stamps = tuple[tuple[str, int, int, int], ...]
"""Files, each with its inode, the time of its last change in nanoseconds, and its size in bytes."""


class ReleasedError(Exception):
    """A released lesson cannot be read; the message says which file, and what to do."""


@dataclass(frozen=True)
class ReleasedCell:
    """A cell of the released notebook.

    Attributes: ``role`` ("exercise", "check", "question", "locked" or "plain"), ``name`` (its grade id), ``id``,
    ``source``, ``code``, ``checksum`` (nbgrader's), ``experiment`` (skipped while grading), and of releases before this
    one the checksum and source that it had (``earlier``).
    """

    role: str
    name: str | None
    id: str | None
    source: str
    code: bool
    checksum: str | None
    experiment: bool
    earlier: tuple[tuple[str | None, str], ...] = ()


@dataclass(frozen=True)
class ReleasedExercise:
    """An exercise: its name, its points, and the names that a student defines in its cell, or the ``file`` wanted."""

    name: str
    points: float
    objects: tuple[str, ...]
    stub: str
    file: str = ""


@dataclass(frozen=True)
class ReleasedLesson:
    """A lesson as it was released; ``model_answers`` has the source of each exercise's model solution."""

    name: str
    cells: tuple[ReleasedCell, ...]
    exercises: tuple[ReleasedExercise, ...]
    digest: str
    model_answers: dict[str, str] = field(default_factory=dict, compare=False)

    def find_cells_by_role(self, role: str) -> dict[str, ReleasedCell]:
        """The cells of a role by their grade ids."""
        return {cell.name: cell for cell in self.cells if cell.role == role and cell.name}

    @property
    def names(self) -> tuple[str, ...]:
        """The exercises' names, in the lesson's order."""
        return tuple(each.name for each in self.exercises)


def find_current_class(graded: Sequence[Path] = ()) -> Path | None:
    """The class folder that the command runs in: the working folder or its nearest parent with a configuration.

    A student who hands in an ``nbgrader_config.py`` must not choose the checks. So two kinds of folders are passed
    over: those into which students' files are put, and those in which something to be graded lies beside the
    configuration, as when an operator works in a student's folder. An operator may grade such a folder as a whole only
    if this account made it or named it as a class before (:func:`remember_class`): a student can hand in a
    ``submitted/`` beside a configuration, too.

    Args:
        graded: the paths that are to be graded.
    """
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return None
    found = next((each for each in (here, *here.parents) if is_class(each) and not is_from_students(each)), None)
    return None if found and any(_is_beside_config(path, found) for path in graded) else found


def find_unclaimed_class(graded: Sequence[Path]) -> Path | None:
    """Find what looks like a class folder and is to be graded as a whole, but was never said by this account to be one.

    Args:
        graded: the paths that are to be graded.
    """
    found = find_current_class()
    if found is None or find_current_class(graded) is not None or not (found / SUBMITTED).is_dir():
        return None
    return found if any(Path(os.path.realpath(path)) == found.resolve() for path in graded) else None


def _is_beside_config(path: Path, folder: Path) -> bool:
    """Say whether a path lies in a class folder, but not where nbgrader puts notebooks; links do not lead out of it."""
    return any(_lies_in_class(Path(each), folder) for each in (os.path.abspath(path), os.path.realpath(path)))


def _lies_in_class(path: Path, folder: Path) -> bool:
    if not path.is_relative_to(folder):
        return False
    below = path.relative_to(folder).parts
    return below[0] not in _NOTEBOOK_FOLDERS if below else not _is_remembered_class(folder)


def remember_class(folder: Path) -> None:
    """Note, where only this account can write, that a folder is a class; without a place to note it, do nothing.

    Args:
        folder: that the account has made as a class, or named as one.
    """
    with suppress(OSError):
        mark = _find_class_note(folder)
        for each in (mark.parent.parent, mark.parent):
            each.mkdir(parents=True, exist_ok=True, mode=0o700)
        write(mark, f"{folder.resolve()}\n".encode("utf-8", "surrogateescape"), 0o600)


def _is_remembered_class(folder: Path) -> bool:
    try:
        return os.path.exists(_find_class_note(folder))
    except OSError:
        return False


def _find_class_note(folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return find_user_folder("config") / "classes" / name


def is_class(folder: Path) -> bool:
    """Say whether a folder has the configuration of a class; a student's folder can have one too."""
    return (folder / CONFIG).is_file()


def is_from_students(path: Path) -> bool:
    """Say whether a path lies in a folder into which nbgrader puts students' files."""
    return not _STUDENT_FOLDERS.isdisjoint(path.absolute().parts)


class Lessons:
    """The lessons of a class folder and, where it has none of a name, of the clone; read once, when asked for.

    Args:
        class_dir: a folder made by ``new-class``, or None.
        clone: a clone of the course; its ``notebooks/`` and ``solutions/`` are used.
    """

    def __init__(self, class_dir: Path | None, clone: Path = CLONE) -> None:
        self.class_dir, self.clone = class_dir, clone
        self._read: dict[str, ReleasedLesson] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """All lessons by name, in the course's order."""
        found = {path.stem for path in (self.clone / "notebooks").glob("*.ipynb")}
        if self.class_dir:
            for step in ("release", "source"):
                found |= {
                    path.stem for path in (self.class_dir / step).glob("*/*.ipynb") if path.stem == path.parent.name
                }
        return tuple(sorted(found))

    def get(self, name: str) -> ReleasedLesson:
        """A lesson by name.

        Raises:
            KeyError: there is none.
            ReleasedError: its notebook cannot be read.
        """
        if name not in self._read:
            if name not in self.names:
                raise KeyError(name)
            self._read[name] = _read_lesson(self.class_dir, self.clone, name, self._read_file_stamps(name))
        return self._read[name]

    def __iter__(self) -> Iterator[ReleasedLesson]:
        return (self.get(name) for name in self.names)

    def find_by_exercise(self, exercise: str) -> ReleasedLesson | None:
        """The lesson that has an exercise; None: there is no such exercise."""
        return next((lesson for lesson in self if exercise in lesson.names), None)

    def _read_notebooks(self, name: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """The released notebook, and the one with model answers where there is one."""
        places, released = self._list_notebooks_with_answers(name), self._list_released_notebooks(name)
        answers = next((_read_notebook(path) for path in places if path.is_file()), None)
        if self.class_dir and not released[0].is_file() and places[0].is_file():
            return _convert_to_released(_read_notebook(places[0])), answers
        return next(_read_notebook(path) for path in released if path.is_file()), answers

    def _list_notebooks_with_answers(self, name: str) -> list[Path]:
        own = [self.class_dir / "source" / name / f"{name}.ipynb"] if self.class_dir else []
        return [*own, self.clone / "solutions" / f"{name}.ipynb"]

    def _list_released_notebooks(self, name: str) -> list[Path]:
        own = [self.class_dir / "release" / name / f"{name}.ipynb"] if self.class_dir else []
        return [*own, self.clone / "notebooks" / f"{name}.ipynb"]

    def _list_earlier_releases(self, name: str) -> list[Path]:
        return sorted(find_earlier_releases_folder(self.class_dir, name).glob("*.ipynb")) if self.class_dir else []

    def _read_file_stamps(self, name: str) -> Stamps:
        """Which files a lesson is read from, and by what a change of one shows."""
        stamps = []
        for file in (
            *self._list_notebooks_with_answers(name),
            *self._list_released_notebooks(name),
            *self._list_earlier_releases(name),
        ):
            with suppress(OSError):
                found = file.stat()
                stamps.append((str(file), found.st_ino, found.st_mtime_ns, found.st_size))
        return tuple(stamps)


@lru_cache(maxsize=64)  # nbgrader's road makes Lessons anew for every notebook
def _read_lesson(class_dir: Path | None, clone: Path, name: str, _: Stamps) -> ReleasedLesson:
    lessons = Lessons(class_dir, clone)
    lesson = _make_released_lesson(name, *lessons._read_notebooks(name))
    earlier = [
        _make_released_cell(cell)
        for path in lessons._list_earlier_releases(name)
        for cell in _read_notebook(path)["cells"]
    ]
    cells = (replace(cell, earlier=_list_earlier_versions(cell, earlier)) for cell in lesson.cells)
    return replace(lesson, cells=tuple(cells))


def _list_earlier_versions(cell: ReleasedCell, earlier: Sequence[ReleasedCell]) -> tuple[tuple[str | None, str], ...]:
    found = ((each.checksum, each.source) for each in earlier if cell.name and each.name == cell.name)
    return tuple(dict.fromkeys(each for each in found if each != (cell.checksum, cell.source)))


def find_earlier_releases_folder(class_dir: Path, lesson: str) -> Path:
    """The folder in which a class keeps what students were given of a lesson, one notebook a version."""
    return class_dir / ".vit_course" / "released" / lesson


def read_cell_source(cell: dict[str, Any]) -> str:
    """A trusted cell's source, which a file may hold as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def _read_notebook(path: Path) -> dict[str, Any]:
    try:
        notebook: dict[str, Any] = json.loads(path.read_bytes())
        notebook["cells"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ReleasedError(f"{path} cannot be read ({error}); release the lesson again") from None
    return notebook


def _convert_to_released(source: dict[str, Any]) -> dict[str, Any]:
    """Return what ``nbgrader generate_assignment`` would make of a source notebook."""
    import nbformat
    from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions, ComputeChecksums

    from exercise_kit.authoring.predictions import ClearPredictions

    notebook = nbformat.from_dict(json.loads(json.dumps(source)))
    for cell in notebook.cells:
        cell.source = read_cell_source(cell)
    stubs = {"code_stub": {"python": CODE_STUB}, "text_stub": TEXT_STUB}
    notebook, _ = ClearPredictions().preprocess(notebook, {})
    notebook, _ = ClearSolutions(**stubs).preprocess(notebook, {})
    notebook, _ = ClearHiddenTests().preprocess(notebook, {})
    notebook, _ = ComputeChecksums().preprocess(notebook, {})
    released: dict[str, Any] = notebook
    return released


def _make_released_lesson(name: str, notebook: dict[str, Any], answers: dict[str, Any] | None) -> ReleasedLesson:
    cells = tuple(_make_released_cell(cell) for cell in notebook["cells"])
    exercises = []
    stubs = {cell.name: cell for cell in cells if cell.role == "exercise"}
    points = {
        _read_nbgrader_metadata(cell).get("grade_id"): _read_nbgrader_metadata(cell).get("points", 0)
        for cell in notebook["cells"]
    }
    for cell in cells:
        if cell.role == "check" and (named := parse_exercise_and_file_name(cell.source)):
            exercises.append(ReleasedExercise(named[0], float(points[cell.name] or 0), (), "", named[1]))
            continue
        for exercise, stub in stubs.items():
            if cell.role == "check" and exercise and cell.name == make_check_grade_id(exercise):
                worth = float(points[cell.name] or 0)
                exercises.append(
                    ReleasedExercise(exercise, worth, parse_checked_object_names(cell.source), stub.source)
                )
    parts = [[cell.role, cell.name, cell.source, points.get(cell.name)] for cell in cells]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
    model = {
        mark["grade_id"]: read_cell_source(cell)
        for cell in (answers or {"cells": ()})["cells"]
        if (mark := _read_nbgrader_metadata(cell)).get("grade_id") in stubs
    }
    return ReleasedLesson(name, cells, tuple(exercises), digest, model)


def _read_nbgrader_metadata(cell: dict[str, Any]) -> dict[str, Any]:
    mark: dict[str, Any] = cell.get("metadata", {}).get("nbgrader", {})
    return mark


def _make_released_cell(cell: dict[str, Any]) -> ReleasedCell:
    mark, code = _read_nbgrader_metadata(cell), cell.get("cell_type") == "code"
    if not mark.get("grade_id"):
        role = "plain"
    elif mark.get("solution"):
        role = "exercise" if code and not mark.get("grade") else "question"
    else:
        role = "check" if mark.get("grade") else "locked"
    experiment = EXPERIMENT_TAG in cell.get("metadata", {}).get("tags", ())
    return ReleasedCell(
        role, mark.get("grade_id"), cell.get("id"), read_cell_source(cell), code, mark.get("checksum"), experiment
    )


def parse_checked_object_names(check: str) -> tuple[str, ...]:
    """The names that a check cell hands over: ``check("split", split, merge)`` → both functions."""
    arguments = _parse_check_arguments(check)
    return tuple(argument.id for argument in arguments[1:] if isinstance(argument, ast.Name))


def parse_exercise_and_file_name(check: str) -> tuple[str, str] | None:
    """The exercise and the file that a check cell hands over by its name: ``check("weights", "a.safetensors")``."""
    match _parse_check_arguments(check):
        case [ast.Constant(str(exercise)), ast.Constant(str(file))] if file and file == Path(file).name:
            return exercise, file
    return None


def _parse_check_arguments(check: str) -> list[ast.expr]:
    tree = parse(check)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "check":
            return node.args
    return []
