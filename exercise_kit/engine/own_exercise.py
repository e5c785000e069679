"""An exercise of a class's own: its file has its name, its lesson has its answer, and its mistakes are edits of that.

The answer stands once, in the cell of ``lessons/NN_topic.py``. Comments between the two markers say how its lines can
be broken, in the form of :mod:`exercise_kit.engine.program`; no notebook has them. A release, which holds no lesson's
source, has the answer packed, as the course has its own.
"""

from __future__ import annotations

import ast
import tomllib
import zlib
from pathlib import Path
from typing import Any

from exercise_kit.engine.class_exercises import EXERCISES, LESSONS, PACKAGE, PACKED
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.lesson_answers import find_exercise_cell, list_lesson_dependencies
from exercise_kit.engine.mistakes import add_mistakes
from exercise_kit.engine.program import ProgramError, read_program

_MARKERS = ("BEGIN SOLUTION", "END SOLUTION")


def own_exercise(file: str, mistakes: str = "", **options: Any) -> Exercise:
    """The exercise of a file in a class's ``exercises/``.

    Args:
        file: the module's ``__file__``; the exercise is called as the file.
        mistakes: the words of each known mistake, a table as in the course's ``mistakes.toml``.
        options: of :class:`Exercise`: ``objects``, ``is_class``, ``in_training``.

    Raises:
        ProgramError: no lesson has a cell for it, or the words and the comments do not name the same mistakes.
    """
    path = Path(file)
    packed = path.with_suffix(PACKED)
    text = zlib.decompress(packed.read_bytes()).decode() if packed.is_file() else ""
    lesson = ast.get_docstring(ast.parse(text)) if text else find_lesson_of_exercise(path)
    found = Exercise(path.stem, lesson or "", **options)
    if not text:
        text = _read_answer(path, found)
    # forgotten with the exercises when a class's files change
    module = f"{read_package_name()}.{PACKAGE}.{path.stem}_answer"
    found.program = read_program(text, module, f"{LESSONS}/{found.lesson}.py")
    add_mistakes(found, found.program, tomllib.loads(mistakes), f"{EXERCISES}/{path.name}")
    return found


def pack_answer_with_lesson(path: Path, exercise: Exercise) -> bytes:
    """Pack what a release has beside an exercise's file: its lesson, and the answer where mistakes are edits of it.

    Args:
        path: of the exercise's file in the class folder.
        exercise: that it defines.

    Returns: b"" for an exercise that was not made by :func:`own_exercise`, whose file says all.
    """
    if exercise.program is None:
        return b""
    answer = _read_answer(path, exercise) if exercise.program.bugs else ""
    return zlib.compress(f'"""{exercise.lesson}"""\n{answer}'.encode(), 9)


def find_lesson_of_exercise(path: Path) -> str:
    """The lesson of the class that has the cell of an exercise.

    Raises:
        ProgramError: none has.
    """
    for lesson in sorted((path.parent.parent / LESSONS).glob("*.py")):
        if find_exercise_cell(lesson.read_text("utf-8", "replace"), path.stem) is not None:
            return lesson.stem
    raise ProgramError(f'no lesson in {LESSONS}/ has its cell, which begins with # %% exercise="{path.stem}"')


def _read_answer(path: Path, exercise: Exercise) -> str:
    """The exercise's cell, below what it uses of its lesson."""
    lesson = path.parent.parent / LESSONS / f"{exercise.lesson}.py"
    source = lesson.read_text("utf-8")
    cell = find_exercise_cell(source, path.stem) or ""
    lines = [line for line in cell.splitlines() if not line.strip().endswith(_MARKERS)]
    around = list_lesson_dependencies(source, exercise.objects, read_package_name(), str(lesson))
    return "\n".join([*around, "", "", *lines]) + "\n"
