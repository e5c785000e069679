"""A right program, and the edits that spoil it.

A program is a file that reads, type-checks and runs as it stands. Its comments say how its lines can be broken, and
which mistake each change makes::

    patches = patches.permute(0, 2, 4, 1, 3, 5)
    # bug "column order": patches = patches.permute(0, 4, 2, 1, 3, 5)

The code after the colon replaces the line above; without code the line is removed. Several comments of one name under a
line replace it by as many lines. Comments of one name under several lines belong to one bug. The first space after the
colon belongs to the form; more spaces indent the code further than the line above. A comment for the linter, as behind
an import that only bugs use, is no part of the program.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, overload

from exercise_kit.engine.verdict import BETWEEN

PROGRAM, PACKED = "program.py", "program.packed"
_BUG = re.compile(r'\s*# bug "(?P<name>[^"]+)":(?: (?P<code>.*))?$')
_FOR_THE_LINTER = re.compile(r"\s*# noqa\b.*")
_MEANT = re.compile(r"\s*#+\s*bugs?\b", re.IGNORECASE)


class ProgramError(ValueError):
    """A program cannot be read; the message tells the file, the line, and what to do."""


@dataclass(frozen=True)
class Bug:
    """A way to spoil a program.

    Attributes: ``name``, that of a known mistake; ``edits``, for each line that it touches, by its place in the
    program, the lines that take its place.
    """

    name: str
    edits: Mapping[int, tuple[str, ...]] = field(hash=False)

    def touches(self, other: Bug) -> bool:
        """Say whether both spoil the same line, so that they cannot be made together."""
        return not self.edits.keys().isdisjoint(other.edits.keys())


@dataclass(frozen=True)
class Program:
    """A right program and its bugs.

    Attributes:
        module: the name that its modules go by.
        lines: of the program without any bug.
        bugs: in the order of the file.
    """

    module: str
    lines: tuple[str, ...]
    bugs: tuple[Bug, ...]

    def text(self, bugs: Iterable[Bug] = ()) -> str:
        """The program with these bugs in it."""
        edits: dict[int, tuple[str, ...]] = {}
        for bug in bugs:
            edits |= bug.edits
        spoiled = (text for place, line in enumerate(self.lines) for text in edits.get(place, (line,)))
        return "\n".join(spoiled) + "\n"

    def bug(self, name: str) -> Bug | None:
        """The bug of that name."""
        return next((each for each in self.bugs if each.name == name), None)

    def find_place(self, bug: Bug, names: Sequence[str]) -> int:
        """In which of several objects a bug is first found; 0 where in none, as in a helper that they share."""
        spans = self.spans
        lines = sorted(bug.edits)
        return next((place for line in lines for place, name in enumerate(names) if line in spans.get(name, ())), 0)

    def defines(self, name: str) -> bool:
        """Say whether it defines a function or class of that name."""
        return name in self.spans

    @cached_property
    def spans(self) -> dict[str, range]:
        """Where each definition stands, in places of :attr:`lines`."""
        named = (each for each in ast.parse(self.text()).body if isinstance(each, ast.FunctionDef | ast.ClassDef))
        return {each.name: range(each.lineno - 1, each.end_lineno or each.lineno) for each in named}

    def run(self, *bugs: Bug) -> ModuleType:
        """A module with these bugs in it; made once, so that its source can be looked up as that of any other."""
        name = f"{self.module}:{BETWEEN.join(each.name for each in bugs)}"
        if name not in sys.modules:
            sys.modules[name] = make_module(name, self.text(bugs))
        return sys.modules[name]


def make_module(name: str, source: str) -> ModuleType:
    """A module of that name, made of its source; errors in it show its own lines."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    made = ModuleType(name)
    made.__file__ = file
    exec(compile(source, file, "exec", dont_inherit=True), vars(made))
    return made


class Implementations(Sequence[Callable[..., Any]]):
    """The objects that a spoiled program defines, made when they are first asked for.

    Args:
        program: the program.
        bugs: that are in it.
        names: of the objects, in the order of their exercise.

    Attributes: ``names``.
    """

    def __init__(self, program: Program, bugs: tuple[Bug, ...], names: tuple[str, ...]) -> None:
        self._program, self._bugs, self.names = program, bugs, names

    @cached_property
    def _objects(self) -> tuple[Callable[..., Any], ...]:
        held = vars(self._program.run(*self._bugs))
        return tuple(held[name] for name in self.names)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Callable[..., Any]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Callable[..., Any], ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self._objects[index]


def read_program_in(folder: Path, module: str) -> Program:
    """The program that stands in an exercise's folder, as text or, in a wheel, packed.

    Raises:
        ProgramError: there is none, or it cannot be read.
    """
    if (plain := folder / PROGRAM).exists():
        return read_program(plain.read_text("utf-8"), module, f"{folder.name}/{PROGRAM}")
    if (packed := folder / PACKED).exists():
        return read_program(zlib.decompress(packed.read_bytes()).decode(), module, f"{folder.name}/{PACKED}")
    raise ProgramError(f"{folder.name}: there is no {PROGRAM}")


def read_program(source: str, module: str, file: str) -> Program:
    """A program and its bugs.

    Args:
        source: the file's text.
        module: the name that its modules go by.
        file: where it stands, for messages.

    Raises:
        ProgramError: a comment about a bug has another form than those above, or no line to spoil.
    """
    lines: list[str] = []
    edits: dict[str, dict[int, tuple[str, ...]]] = {}
    first = _find_first_line(source)
    for number, line in enumerate(source.splitlines(), 1):
        bug = _BUG.match(line)
        if not bug and not _MEANT.match(line):
            if lines or number >= first:
                lines.append(_FOR_THE_LINTER.sub("", line))
            continue
        where = f"{file}:{number}"
        if not bug:
            raise ProgramError(f'{where}: {line.strip()!r} is no bug; write # bug "its name": the spoiled line')
        if not lines or not lines[-1].strip():
            raise ProgramError(f"{where}: there is no line above to spoil; put the comment right below it")
        code, above = bug["code"] or "", lines[-1]
        spoiled = (above[: len(above) - len(above.lstrip())] + code,) if code.strip() else ()
        places = edits.setdefault(bug["name"], {})
        places[len(lines) - 1] = places.get(len(lines) - 1, ()) + spoiled
    return Program(module, tuple(lines), tuple(Bug(each, places) for each, places in edits.items()))


def _find_first_line(source: str) -> int:
    """Find where the program begins: behind the module's own docstring."""
    body = ast.parse(source).body
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    return body[0].lineno if body else 1
