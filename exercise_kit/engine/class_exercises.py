"""The exercises of a class's own: which class this process serves, and what its folder holds.

A class folder holds ``exercises/NAME.py`` (the checks and known mistakes), ``lessons/NN_topic.py`` (the text, with the
right answer) and, for what only grading asks, ``hidden/test_NAME.py``. The operator decides which folder that is: a
command takes the one that it runs in or that it is given, never one that lies beside a submission. Students get
``exercises/`` in the wheel of their release, as a package inside the course's; no release holds answers, or what only
grading asks.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exercise_kit.engine.exercise import Exercise

PACKAGE, EXERCISES, LESSONS = "class_exercises", "exercises", "lessons"
PACKED = ".packed"  # of a release: the answer from which an exercise's known mistakes are made
LESSON_NAME = re.compile(r"\d\d_[a-z][a-z0-9_]*")
_EXERCISE_CELL = re.compile(r"""^# ?%%.*\bexercise=["']([^"']+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class ClassFiles:
    """The files of a class's own exercises: the class ``folder``, and their ``stats``."""

    folder: Path | None = None
    stats: tuple[tuple[str, int, int], ...] = ()

    @property
    def digest(self) -> str:
        """A digest of what stands in them; "" where the class has none.

        Raises:
            OSError: one cannot be read.
        """
        if not self.stats:
            return ""
        contents = [(name, hashlib.sha256(Path(name).read_bytes()).hexdigest()) for name, *_ in self.stats]
        return hashlib.sha256(repr(contents).encode()).hexdigest()

    def has(self, exercise: str) -> bool:
        """Say whether the class has a file for an exercise of that name."""
        return bool(self.folder and (self.folder / EXERCISES / f"{exercise}.py").is_file())


def find_class_files(folder: Path | None) -> ClassFiles:
    """The files of a class folder; of None, or of a class without exercises of its own, none."""
    if folder is None or not (folder / EXERCISES).is_dir():
        return ClassFiles()
    paths = [path for name in (EXERCISES, LESSONS) for path in sorted((folder / name).glob("*.py"))]
    facts = ((path, path.stat()) for path in paths)
    stats = tuple((str(path), fact.st_mtime_ns, fact.st_size) for path, fact in facts)
    return ClassFiles(folder.resolve(), stats)


class _InUse:
    files: ClassFiles | None = None


def set_class_in_use(folder: Path | None) -> None:
    """From now on this process serves that class, as its files are now.

    Args:
        folder: a class folder that the operator has named, or works in; None: no class.
    """
    _InUse.files = find_class_files(folder)


def set_default_class(find_folder: Callable[[], Path | None]) -> None:
    """Serve the class that ``folder()`` gives, unless something has been chosen before."""
    if _InUse.files is None:
        set_class_in_use(find_folder())


def get_class_files_in_use() -> ClassFiles:
    """The files of the class that this process serves."""
    return _InUse.files or ClassFiles()


def load_class_exercises(
    package: str, class_files: ClassFiles, course_exercises: Mapping[str, object]
) -> ClassExercises | None:
    """The exercises of a class, or of a student's release, beside those of the course; None: there are none.

    Args:
        package: the course's package, by its name.
        class_files: the files of a class.
        course_exercises: the exercises of the course, by name.
    """
    if class_files.folder:
        return ClassExercises(package, class_files.folder / EXERCISES, course_exercises)
    released = Path(str(files(package))) / PACKAGE
    return ClassExercises(package, released, course_exercises) if released.is_dir() else None


class ClassExercises:
    """A folder of exercises, imported as modules of the package ``COURSE.class_exercises``.

    Args:
        package: the course's package, by its name.
        folder: of the exercises; ``lessons/`` is beside it.
        course: the exercises of the course, by name.

    Attributes:
        folder: of the exercises.
        exercises: by name; a broken one has only its name and the ``problem``.
        problems: by the file's name without ".py", a sentence on each file that cannot be used.
        answers: see :meth:`answers`.
    """

    def __init__(self, package: str, folder: Path, course: Mapping[str, object]) -> None:
        self.folder, self._package, self._course = folder, package, course
        name = f"{package}.{PACKAGE}"
        for old in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
            del sys.modules[old]
        home = ModuleType(name)
        home.__path__ = [str(folder)]
        sys.modules[name] = home
        importlib.invalidate_caches()

    @property
    def exercises(self) -> Mapping[str, Exercise]:
        """By name; those that cannot be used among them, where a lesson asks for them."""
        return self._exercises_and_problems[0]

    @property
    def problems(self) -> Mapping[str, str]:
        """By the names of files without ".py" why they cannot be used, with file and line."""
        return self._exercises_and_problems[1]

    @property
    def answers(self) -> Mapping[str, tuple[Callable[..., Any], ...]]:
        """The right objects of each exercise, out of its lesson: for the judge alone."""
        return self._answers_and_problems[0]

    @property
    def problems_of_answers(self) -> Mapping[str, str]:
        """By the names of exercises why their lesson gives no right answer, with file and line."""
        return self._answers_and_problems[1]

    def map_exercises_to_lessons(self) -> Mapping[str, str]:
        """The exercises that the class's own lessons ask for → the lesson."""
        found: dict[str, str] = {}
        for path in sorted((self.folder.parent / LESSONS).glob("*.py")):
            for name in _EXERCISE_CELL.findall(path.read_text("utf-8", "replace")):
                found.setdefault(name, path.stem)
        return found

    @cached_property
    def _exercises_and_problems(self) -> tuple[dict[str, Exercise], dict[str, str]]:
        from exercise_kit.engine.exercise import Exercise  # with torch

        exercises: dict[str, Exercise] = {}
        problems: dict[str, str] = {}
        lessons = self.map_exercises_to_lessons()
        for path in sorted(self.folder.glob("[!_.]*.py")):
            name = path.stem
            found = self._import_exercise(path)
            if isinstance(found, Exercise):
                exercises[name] = found
                continue
            problems[name] = found
            if name in lessons and name not in self._course:
                exercises[name] = Exercise(name, lessons[name], problem=found)
        return exercises, problems

    def _import_exercise(self, path: Path) -> Exercise | str:
        """The exercise of a file, or what is wrong with it."""
        from exercise_kit.engine.exercise import Exercise

        name, where = path.stem, f"{EXERCISES}/{path.name}"
        if name in self._course:
            return f"{where}: the course has an exercise called {name!r}; give the file and the exercise another name"
        try:
            with suppress_bytecode():
                module = importlib.import_module(f"{self._package}.{PACKAGE}.{name}")
        except (Exception, SystemExit) as error:
            return describe_error_with_line(error, self.folder.parent, where)
        found = vars(module).get(name)
        if not isinstance(found, Exercise) or found.name != name:
            return f'{where}: it has to define {name} = Exercise("{name}", LESSON): the file is called as its exercise'
        if not LESSON_NAME.fullmatch(found.lesson):
            return f"{where}: its lesson is called NN_topic, two digits and lower case, and not {found.lesson!r}"
        return found if found.checks else f"{where}: {name} has no public check; write one below @{name}.check"

    @cached_property
    def _answers_and_problems(self) -> tuple[dict[str, tuple[Callable[..., Any], ...]], dict[str, str]]:
        from exercise_kit.engine.lesson_answers import load_right_objects

        answers: dict[str, tuple[Callable[..., Any], ...]] = {}
        problems: dict[str, str] = {}
        for name, exercise in self.exercises.items():
            if exercise.problem:
                continue
            path = self.folder.parent / LESSONS / f"{exercise.lesson}.py"
            try:
                answers[name] = load_right_objects(path, exercise.objects, self._package)
            except FileNotFoundError:
                problems[name] = f"{EXERCISES}/{name}.py: there is no lesson {LESSONS}/{path.name}"
            except (Exception, SystemExit) as error:
                problems[name] = describe_error_with_line(error, self.folder.parent, f"{LESSONS}/{path.name}")
        return answers, problems


@contextmanager
def suppress_bytecode() -> Iterator[None]:
    """Python writes no compiled file beside an exercise, which would hide a change within the same second."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def find_error_line(error: BaseException, folder: Path) -> tuple[Path, int] | None:
    """The innermost line of a file in ``folder`` at which ``error`` came up."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_relative_to(folder):
        return Path(error.filename), error.lineno or 1
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(folder):
            return Path(frame.filename), frame.lineno or 1
    return None


def describe_error_with_line(error: BaseException, folder: Path, fallback_place: str) -> str:
    """An exception with the innermost line of a file in ``folder``, as "exercises/count.py:12: NameError: ...".

    Args:
        error: what was raised.
        folder: of the class, or of its checks.
        fallback_place: the file that is named where no line is known.
    """
    place = find_error_line(error, folder)
    where = f"{place[0].relative_to(folder)}:{place[1]}" if place else fallback_place
    words = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{where}: {type(error).__name__}: {words}"
