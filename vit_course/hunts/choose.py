"""Which exercises are hunted in, and which bugs of their programs a seed draws."""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import combinations

from exercise_kit.engine.compare import describe_kind
from exercise_kit.engine.mistakes import Edit
from exercise_kit.engine.program import Bug, Program
from exercise_kit.quoting import quote_first_line
from vit_course.exercises.catalog import EXERCISES


@dataclass(frozen=True)
class Ground:
    """Where to hunt.

    Attributes: ``name`` of the exercise, its ``program``, and the ``bugs`` that may be drawn.
    """

    name: str
    program: Program
    bugs: tuple[Bug, ...]

    def text(self, bugs: Iterable[Bug] = ()) -> str:
        """The program with these bugs in it, under a name that is not that of the student's own code."""
        return re.sub(rf"\b{self.name}\b", self.defines, self.program.text(bugs))

    @property
    def defines(self) -> str:
        """What the hunted function or class is called: suspect_patchify, SuspectEncoderBlock."""
        if not self.program.defines(self.name):
            return list(self.program.spans)[-1]
        return f"Suspect{self.name}" if EXERCISES[self.name].is_class else f"suspect_{self.name}"


@cache
def list_hunting_grounds() -> dict[str, Ground]:
    """All grounds by the name of their exercise, in the order of the course."""
    found = {}
    for name, exercise in EXERCISES.items():
        edits = [each for each in exercise.misconceptions if isinstance(each, Edit) and each.hunt]
        if edits and exercise.program and exercise.program.defines(name):
            found[name] = Ground(name, exercise.program, tuple(each.bug for each in edits))
    return found


def find_ground(name: object) -> Ground:
    """The ground of an exercise, in whatever case its name is written.

    Raises:
        ValueError: there is none.
    """
    known = {_normalize_name(each): ground for each, ground in list_hunting_grounds().items()}
    if isinstance(name, str) and (ground := known.get(_normalize_name(name))):
        return ground
    offer = f"There are: {', '.join(list_hunting_grounds())}."
    if not isinstance(name, str):
        raise ValueError(f"The name of a hunt comes first, in quotes; this is {describe_kind(name)}. {offer}")
    near = difflib.get_close_matches(_normalize_name(name), known, n=1, cutoff=0.5)
    meant = f'Did you mean "{known[near[0]].name}"? ' if near else ""
    raise ValueError(f"There is no hunt called {quote_first_line(name, 60) or 'nothing'}. {meant}{offer}")


def draw_bugs(ground: Ground, seed: object, count: object) -> tuple[Bug, ...]:
    """The bugs that a seed draws: as many seeds in a row as there are draws give each of them once.

    Args:
        ground: where to hunt.
        seed: any whole number.
        count: how many bugs, which do not touch each other's lines.

    Raises:
        ValueError: ``seed`` or ``count`` is no whole number, or the ground has not so many bugs.
    """
    number, wanted = _require_whole_number("seed", seed), _require_whole_number("bugs", count)
    possible = _list_possible_draws(ground.name, wanted) if 0 < wanted <= len(ground.bugs) else ()
    if not possible:
        most = next(size for size in range(len(ground.bugs), 0, -1) if _list_possible_draws(ground.name, size))
        raise ValueError(f"bugs={wanted}: the hunt {ground.name} can hide 1 to {most} at once.")
    return possible[number % len(possible)]


@cache
def _list_possible_draws(name: str, count: int) -> Sequence[tuple[Bug, ...]]:
    """All that can be drawn, in an order that looks like none and is the same on every machine."""
    apart = [
        drawn
        for drawn in combinations(list_hunting_grounds()[name].bugs, count)
        if not any(one.touches(other) for one, other in combinations(drawn, 2))
    ]
    return sorted(apart, key=lambda drawn: sha256(" ".join([name, *(bug.name for bug in drawn)]).encode()).digest())


def _require_whole_number(name: str, value: object) -> int:
    with suppress(TypeError):
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]  # whatever is no whole number raises TypeError
    advice = "leave out the quotes" if isinstance(value, str) and value.strip().isdigit() else f"as in {name}=2"
    raise ValueError(f"{name} has to be a whole number, and this is {describe_kind(value)}; {advice}.")


def _normalize_name(name: str) -> str:
    """EncoderBlock, encoder_block and " encoder block" → encoderblock."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
