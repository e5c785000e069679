"""What simulated students hand in for an exercise: cells whose outcome is known before anybody grades them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What sort of answer it is."""

    RIGHT = "right"
    MISCONCEPTION = "misconception"
    TWO = "two at once"
    UNWRITTEN = "unwritten"
    CRASHING = "crashing"
    HOSTILE = "hostile"


class Outcome(StrEnum):
    """How the checks of an answer end: as they are bound to, or as asking the library's own objects tells."""

    PASSES = "passes"
    FAILS = "fails"
    ASK = "ask"


@dataclass(frozen=True)
class Answer:
    """An answer to one exercise.

    Attributes: ``exercise``; ``kind``; ``name`` (of the misconception, else of what is tried); ``source`` of its cell
    (None: as it was released); ``outcome``; ``objects``, which stand for it when the outcome is asked (None: those that
    the source defines); ``misconception`` that is in it; ``flags`` that grading raises; ``check``, what stands in the
    check's cell (None: as released; "": the cell is gone); ``claimed``, whether that cell shows all points as its
    output; ``uses``, other exercises of the lesson whose answers it calls; ``ends``, whether it ends the process that
    it runs in, or its time.
    """

    exercise: str
    kind: Kind
    name: str
    source: str | None
    outcome: Outcome
    objects: tuple[Callable[..., Any], ...] | None = None
    misconception: str | None = None
    flags: tuple[str, ...] = ()
    check: str | None = None
    claimed: bool = False
    uses: tuple[str, ...] = ()
    ends: bool = False
