"""Hunting grounds, and which of their bugs a seed draws.

A ground is a right program. Its comments say how its lines can be broken, and which mistake each change makes::

    patches = patches.permute(0, 2, 4, 1, 3, 5)
    # bug "column order": patches = patches.permute(0, 4, 2, 1, 3, 5)

The name is that of a misconception of the exercise, and the code after the colon replaces the line above. Without code
after the colon the line is removed. Several comments of one name under a line replace it by as many lines. Comments of
one name under several lines belong to one bug. The first space after the colon belongs to the form; more spaces indent
the code further than the line above.
"""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import combinations

from exercise_kit.engine.compare import kind_of
from exercise_kit.engine.exercise import Exercise
from exercise_kit.quoting import quoted
from vit_course.exercises.catalog import EXERCISES

_BUG = re.compile(r'\s*# bug "(?P<name>[^"]+)":(?: (?P<code>.*))?$')
_MEANT = re.compile(r"\s*#+\s*bugs?\b", re.IGNORECASE)


class GroundError(ValueError):
    """A hunting ground cannot be read; the message tells the file, the line, and what to do."""


@dataclass(frozen=True)
class Bug:
    """A way to spoil a program.

    Attributes: ``name``, that of a misconception; ``edits``, for each line that it touches, by its place in the
    program, the lines that take its place.
    """

    name: str
    edits: Mapping[int, tuple[str, ...]] = field(hash=False)

    def touches(self, other: Bug) -> bool:
        """Whether both spoil the same line, so that they cannot be drawn together."""
        return not self.edits.keys().isdisjoint(other.edits.keys())


@dataclass(frozen=True)
class Ground:
    """A right program and its bugs.

    Attributes: ``name`` ("patchify"), ``lines`` of the program without any bug, and ``bugs``.
    """

    name: str
    lines: tuple[str, ...]
    bugs: tuple[Bug, ...]

    def program(self, bugs: Iterable[Bug] = ()) -> str:
        """The program's text, with these bugs in it."""
        edits: dict[int, tuple[str, ...]] = {}
        for bug in bugs:
            edits |= bug.edits
        spoilt = (text for place, line in enumerate(self.lines) for text in edits.get(place, (line,)))
        return "\n".join(spoilt) + "\n"

    @property
    def defines(self) -> str:
        """The name of the function or class that the hunt is about: the last one that the program defines."""
        named = [each for each in ast.parse(self.program()).body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
        if not named:
            raise GroundError(f"the ground {self.name} defines no function and no class; write one")
        return named[-1].name


def read_ground(name: str, source: str, file: str) -> Ground:
    """The ground that stands in a module.

    Args:
        name: what the ground is called.
        source: the module's text.
        file: where it stands, for messages.

    Raises:
        GroundError: a comment about a bug has another form than those above, or no line to spoil.
    """
    lines: list[str] = []
    edits: dict[str, dict[int, tuple[str, ...]]] = {}
    for number, line in enumerate(source.splitlines(), 1):
        bug = _BUG.match(line)
        if not bug and not _MEANT.match(line):
            if lines or number >= _first_line(source):
                lines.append(line)
            continue
        where = f"{file}:{number}"
        if not bug:
            raise GroundError(f'{where}: {line.strip()!r} is no bug; write # bug "its name": the spoilt line')
        if not lines or not lines[-1].strip():
            raise GroundError(f"{where}: there is no line above to spoil; put the comment right below it")
        code, above = bug["code"] or "", lines[-1]
        spoilt = (above[: len(above) - len(above.lstrip())] + code,) if code.strip() else ()
        places = edits.setdefault(bug["name"], {})
        places[len(lines) - 1] = places.get(len(lines) - 1, ()) + spoilt
    return Ground(name, tuple(lines), tuple(Bug(each, places) for each, places in edits.items()))


def _first_line(source: str) -> int:
    """Where the program begins: behind the module's own docstring."""
    body = ast.parse(source).body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    return body[0].lineno if body else 1


@cache
def grounds() -> dict[str, Ground]:
    """All grounds by the name of their exercise, in the order of the course.

    Raises:
        GroundError: a ground cannot be read, or is named after no exercise.
    """
    by_plain_name = {_plain(name): name for name in EXERCISES}
    found = {}
    for file in files("vit_course.hunts.programs").iterdir():
        if not file.name.endswith(".py") or file.name.startswith("_"):
            continue
        name = by_plain_name.get(_plain(file.name.removesuffix(".py")))
        if name is None:
            raise GroundError(f"{file.name} is named after no exercise; name it as patchify.py or encoder_block.py is")
        found[name] = read_ground(name, file.read_text("utf-8"), file.name)
    return {name: found[name] for name in EXERCISES if name in found}


def exercise_of(ground: Ground) -> Exercise:
    """The exercise that checks what comes out of a ground."""
    return EXERCISES[ground.name]


def ground_called(name: object) -> Ground:
    """The ground of an exercise, in whatever case its name is written.

    Raises:
        ValueError: there is none.
    """
    known = {_plain(each): ground for each, ground in grounds().items()}
    if isinstance(name, str) and (ground := known.get(_plain(name))):
        return ground
    offer = f"There are: {', '.join(grounds())}."
    if not isinstance(name, str):
        raise ValueError(f"The name of a hunt comes first, in quotes; this is {kind_of(name)}. {offer}")
    near = difflib.get_close_matches(_plain(name), known, n=1, cutoff=0.5)
    meant = f'Did you mean "{known[near[0]].name}"? ' if near else ""
    raise ValueError(f"There is no hunt called {quoted(name, 60) or 'nothing'}. {meant}{offer}")


def draw(ground: Ground, seed: object, count: object) -> tuple[Bug, ...]:
    """The bugs that a seed draws: as many seeds in a row as there are draws give each of them once.

    Args:
        ground: where to hunt.
        seed: any whole number.
        count: how many bugs, which do not touch each other's lines.

    Raises:
        ValueError: ``seed`` or ``count`` is no whole number, or the ground has not so many bugs.
    """
    number, wanted = _whole("seed", seed), _whole("bugs", count)
    possible = _draws(ground.name, wanted) if 0 < wanted <= len(ground.bugs) else ()
    if not possible:
        most = next(size for size in range(len(ground.bugs), 0, -1) if _draws(ground.name, size))
        raise ValueError(f"bugs={wanted}: the hunt {ground.name} can hide 1 to {most} at once.")
    return possible[number % len(possible)]


@cache
def _draws(name: str, count: int) -> Sequence[tuple[Bug, ...]]:
    """All that can be drawn, in an order that looks like none and is the same on every machine."""
    apart = [
        drawn
        for drawn in combinations(grounds()[name].bugs, count)
        if not any(one.touches(other) for one, other in combinations(drawn, 2))
    ]
    return sorted(apart, key=lambda drawn: sha256(" ".join([name, *(bug.name for bug in drawn)]).encode()).digest())


def _whole(name: str, value: object) -> int:
    with suppress(TypeError):
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]  # whatever is no whole number raises TypeError
    advice = "leave out the quotes" if isinstance(value, str) and value.strip().isdigit() else f"as in {name}=2"
    raise ValueError(f"{name} has to be a whole number, and this is {kind_of(value)}; {advice}.")


def _plain(name: str) -> str:
    """EncoderBlock, encoder_block and " encoder block" → encoderblock."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
