"""The known mistakes of an exercise as a table: the words of each in ``mistakes.toml``, its code in ``program.py``.

A table's key is the mistake's name, and that of a bug in the program::

    ["column order"]
    explanation = "The tokens run down the columns of the grid, so the second token is the patch below the first."
    question = "Which grid axis varies fastest in your reshape?"
    section = "Two kinds of axes"

``section`` names a heading of the exercise's own lesson, or "00_numbers, What a window is" one of another. ``training``
is an :class:`InTraining` where the exercise's own default does not fit, and ``hunt = true`` lets bug hunts draw it.
``holds`` names a function beside the claims, of (student, probe): whether the sentence is true of a student. Where the
answers are alike and it is not, another name or none is told.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from exercise_kit.engine.exercise import Exercise, Holds, Misconception
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.program import Bug, Implementations, Program, ProgramError, read_program_in

TABLE = "mistakes.toml"
_OF_A_LESSON = re.compile(r"\d\d_\w+, ")
_WORDS = ("explanation", "question", "section")
_KEYS = {*_WORDS, "training", "hunt", "holds"}


@dataclass(frozen=True, kw_only=True)
class Edit(Misconception):
    """A mistake that is an edit of its exercise's program.

    Attributes: ``program``, ``bug``, and whether bug hunts may draw it (``hunt``).
    """

    objects: Implementations
    program: Program
    bug: Bug
    hunt: bool = False


def read_mistakes(exercise: Exercise, claims: str) -> None:
    """Add to an exercise the mistakes that stand beside its claims, in the order of their table.

    Args:
        exercise: to which they belong.
        claims: the ``__name__`` of the module that holds its claims.

    Raises:
        ProgramError: the table and the program do not name the same mistakes, or an entry lacks words.
    """
    exercise.package = claims.rpartition(".")[0]
    folder = Path(str(sys.modules[claims].__file__)).parent
    exercise.program = program = read_program_in(folder, f"{exercise.package}.program")
    table = tomllib.loads((folder / TABLE).read_text("utf-8"))
    add_mistakes(exercise, program, table, f"{folder.name}/{TABLE}", vars(sys.modules[claims]))


def add_mistakes(
    exercise: Exercise,
    program: Program,
    table: Mapping[str, Mapping[str, Any]],
    where: str,
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Add to an exercise the mistakes of a table, each of which is a bug of its program.

    Args:
        exercise: to which they belong.
        program: right, with a bug for each.
        table: their words, by name.
        where: the table stands, for messages.
        beside: what the module of the claims holds, by name.

    Raises:
        ProgramError: the table and the program do not name the same mistakes, or an entry lacks words.
    """
    bugs = {each.name: each for each in program.bugs}
    for name in bugs.keys() ^ table.keys():
        lacks = "no words in the table" if name in bugs else f'no line # bug "{name}": in the program'
        raise ProgramError(f'{where}: "{name}" has {lacks}')
    for name, words in table.items():
        _validate_words(where, name, words, beside)
        holds = beside[words["holds"]] if "holds" in words else None
        exercise.misconceptions.append(_make_edit(exercise, program, bugs[name], words, holds))


def _make_edit(exercise: Exercise, program: Program, bug: Bug, words: Mapping[str, Any], holds: Holds | None) -> Edit:
    section = words["section"] if _OF_A_LESSON.match(words["section"]) else f"{exercise.lesson}, {words['section']}"
    training = InTraining[words["training"]] if "training" in words else None
    cause, seen = exercise.make_cause_and_effect(bug.name, words["explanation"], words["question"], section, training)
    objects = Implementations(program, (bug,), exercise.objects)
    place = program.find_place(bug, exercise.objects)
    hunt = words.get("hunt", False)
    return Edit(cause, effect=seen, place=place, objects=objects, holds=holds, program=program, bug=bug, hunt=hunt)


def _validate_words(table: str, name: str, entry: Mapping[str, Any], beside: Mapping[str, Any]) -> None:
    where = f'{table}: "{name}"'
    if missing := [each for each in _WORDS if not entry.get(each)]:
        raise ProgramError(f"{where} lacks {' and '.join(missing)}")
    if unknown := entry.keys() - _KEYS:
        raise ProgramError(f"{where} has {sorted(unknown)[0]!r}; there are {', '.join(sorted(_KEYS))}")
    if entry.get("training", "HIDDEN") not in InTraining.__members__:
        raise ProgramError(f"{where}: training is one of {', '.join(InTraining.__members__)}")
    if not callable(beside.get(entry.get("holds", ""), callable)):
        raise ProgramError(f"{where}: there is no function {entry['holds']} beside the claims")
