"""What simulated students hand in for an exercise: cells whose outcome is known before anybody grades them.

They are right, wrong, broken (they raise, never end, or end their process) or hostile (a mistake that pretends to be
right). To run such a notebook outside of the sandbox costs no more than the kernel: it writes, deletes, sends and
starts nothing, and gives back all memory that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from exercise_kit.engine.exercise import Exercise
from exercise_kit.submission.flags import STOPPED, TEST_DELETED, TEST_EDITED, TIMEOUT


class Kind(StrEnum):
    """What sort of answer it is."""

    RIGHT = "right"
    MISCONCEPTION = "misconception"
    TWO = "two at once"
    UNWRITTEN = "unwritten"
    CRASHING = "crashing"
    HOSTILE = "hostile"


class Outcome(StrEnum):
    """How the checks of an answer end: as they are bound to, or as evaluating the library's own objects tells."""

    PASSES = "passes"
    FAILS = "fails"
    ASK = "ask"


@dataclass(frozen=True)
class SimulatedAnswer:
    """An answer to one exercise.

    Attributes:
        exercise: its name.
        kind: of answer.
        name: of the misconception, or of what is tried.
        source: of its cell (None: as it was released).
        outcome: of its checks.
        objects: that are evaluated in its place (None: those that the source defines).
        misconception: that is in it.
        flags: that grading raises.
        check: the text of the check's cell (None: as released; "": the cell is gone).
        claimed: whether that cell shows all points as its output.
        uses: other exercises of the lesson whose answers it calls.
        ends: whether it ends the process that it runs in, or never ends.
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


def make_crashing_answers(exercise: Exercise, right_source: str, uses: tuple[str, ...]) -> Iterator[SimulatedAnswer]:
    """Answers to an exercise that break in one way or another.

    Args:
        exercise: the exercise.
        right_source: the source of a right answer, which some of them spoil.
        uses: other exercises of the lesson whose answers that calls.
    """
    yield _make_failing_answer(exercise, "syntax error", _drop_first_colon(right_source))
    yield _make_failing_answer(
        exercise, "a name misspelled before the definition", f"inport = troch.nn.functional\n\n{right_source}"
    )
    yield _make_failing_answer(
        exercise, "an assertion before the definition", f'assert False, "finish this later"\n\n{right_source}'
    )
    yield _make_raising_answer(exercise, "a name that nobody defined", "return no_such_name")
    yield _make_raising_answer(exercise, "an index out of range", "return [][0]")
    yield _make_raising_answer(exercise, "a division by zero", "return 1 / 0")
    loop = _write_cell_with_body(exercise, "while True:\n    pass")
    yield _make_failing_answer(exercise, "an endless loop", loop, (TIMEOUT,), ends_worker=True)
    leaves = "import os\n\n" + _write_cell_with_body(exercise, "os._exit(1)")
    yield _make_failing_answer(exercise, "ends the process when called", leaves, (STOPPED,), ends_worker=True)
    exits = f"import os\n\nif input is not None:\n    os._exit(0)\n\n{right_source}"
    yield _make_failing_answer(exercise, "ends the process when its cell runs", exits, (STOPPED,), ends_worker=True)
    # the cell is stopped, and what it had defined by then is graded
    waiting = f"{right_source}\n\nwhile not None:\n    pass"
    yield SimulatedAnswer(
        exercise.name,
        Kind.CRASHING,
        "an endless loop after the definition",
        waiting,
        Outcome.PASSES,
        flags=(TIMEOUT,),
        uses=uses,
        ends=True,
    )


def _make_failing_answer(
    exercise: Exercise, name: str, source: str, flags: tuple[str, ...] = (), ends_worker: bool = False
) -> SimulatedAnswer:
    return SimulatedAnswer(exercise.name, Kind.CRASHING, name, source, Outcome.FAILS, flags=flags, ends=ends_worker)


def _make_raising_answer(exercise: Exercise, name: str, statement: str) -> SimulatedAnswer:
    return SimulatedAnswer(exercise.name, Kind.CRASHING, name, _write_cell_with_body(exercise, statement), Outcome.ASK)


def _drop_first_colon(source: str) -> str:
    """A source with its first colon at the end of a line gone."""
    lines = source.split("\n")
    place = next(index for index, line in enumerate(lines) if line.rstrip().endswith(":"))
    lines[place] = lines[place].rstrip()[:-1]
    return "\n".join(lines)


def _write_cell_with_body(exercise: Exercise, body: str) -> str:
    """A cell that defines all objects of an exercise, each with the same body."""
    deep = "\n".join(f"    {line}" for line in body.split("\n"))
    if not exercise.is_class:
        return "\n\n".join(f"def {name}(*inputs):\n{deep}" for name in exercise.objects)
    deeper = "\n".join(f"    {line}" for line in deep.split("\n"))
    return "\n\n".join(
        f"class {name}:\n    def __new__(cls, *sizes, **options):\n{deeper}" for name in exercise.objects
    )


_PATCHED_CHECK = """
def check(*_, points=1.0, **__):
    return float(points)
"""
_PATCHED_TORCH = """
import torch.testing
import unittest
torch.testing.assert_close = lambda *_, **__: None
unittest.TestCase.assertEqual = unittest.TestCase.assertTrue = lambda *_, **__: None
"""
_FORGED_RESULT = """
import json
print(json.dumps({"version": 1, "submissions": [{"status": "graded", "score": 100.0, "max_score": 100.0}]}))
100.0
"""
_READS = """
import glob
found = []
for pattern in ("../../source/*/*.ipynb", "../../../source/*/*.ipynb", "../../../truth.json", "/etc/shadow"):
    for path in (*glob.glob(pattern), pattern):
        try:
            with open(path) as file:
                found.append(len(file.read()))
        except OSError:
            pass
"""
_CALLS_OUT = """
import socket
try:
    # 192.0.2.1 is nobody's address
    socket.create_connection(("192.0.2.1", 80), timeout=0.2).close()
except OSError:
    pass
"""
_MEMORY = """
try:
    # never touched, so that no machine gives more than the address of it
    hoard = bytearray(1 << 40)
except MemoryError:
    hoard = None
del hoard
"""
_SUBPROCESS = """
import subprocess
try:
    subprocess.run(["true"], check=False)
except OSError:
    pass
"""


def make_hostile_answers(wrong_answer: SimulatedAnswer, points: float) -> Iterator[SimulatedAnswer]:
    """Attacks that begin with a wrong answer, whose verdicts they deserve.

    Args:
        wrong_answer: which each attack holds.
        points: what the exercise is worth.
    """
    base = replace(wrong_answer, kind=Kind.HOSTILE)
    source, stopped = wrong_answer.source or "", (*wrong_answer.flags, STOPPED)
    yield replace(base, name="check redefined", source=source + _PATCHED_CHECK)
    yield replace(base, name="assertions patched", source=source + _PATCHED_TORCH)
    yield replace(base, name="result forged in the output", source=source + _FORGED_RESULT, claimed=True)
    yield replace(
        base, name="check cell edited", check=repr(float(points)), claimed=True, flags=(*base.flags, TEST_EDITED)
    )
    yield replace(base, name="check cell deleted", check="", flags=(*base.flags, TEST_DELETED))
    yield replace(base, name="reads files for the answers", source=source + _READS, flags=stopped)
    yield replace(base, name="calls out", source=source + _CALLS_OUT, flags=stopped)
    yield replace(base, name="takes memory", source=source + _MEMORY)
    yield replace(base, name="starts a program", source=source + _SUBPROCESS, flags=stopped)
