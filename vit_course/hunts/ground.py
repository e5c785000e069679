"""A hunting ground: a right program whose comments tell how its lines can be spoilt, and which mistake that makes.

A line of a ground may be followed by comments of this form::

    patches = patches.permute(0, 2, 4, 1, 3, 5)
    # bug "column order": patches = patches.permute(0, 4, 2, 1, 3, 5)

The name is that of a misconception of the exercise, and the code after the colon takes the place of the line above.
Nothing after the colon: the line is left out. Several comments of one name under a line: so many lines take its
place. Comments of one name under several lines: all of them belong to this one bug. One space after the colon belongs
to the form; any more of them indent the code further than the line above.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

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
