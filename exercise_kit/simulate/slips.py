"""Answers that break: cells that raise, that never end, and that end the process they run in."""

from __future__ import annotations

from collections.abc import Iterator

from exercise_kit.engine.exercise import Exercise
from exercise_kit.simulate.answers import Answer, Kind, Outcome
from exercise_kit.submission.flags import STOPPED, TIMEOUT


def crashing(exercise: Exercise, right: str, uses: tuple[str, ...]) -> Iterator[Answer]:
    """Answers to an exercise that break in one way or another.

    Args:
        exercise: the exercise.
        right: the source of a right answer, which some of them spoil.
        uses: other exercises of the lesson whose answers that calls.
    """
    yield _fails(exercise, "syntax error", _torn(right))
    yield _fails(exercise, "a name misspelt before the definition", f"inport = troch.nn.functional\n\n{right}")
    yield _fails(exercise, "an assertion before the definition", f'assert False, "finish this later"\n\n{right}')
    yield _raising(exercise, "a name that nobody defined", "return no_such_name")
    yield _raising(exercise, "an index out of range", "return [][0]")
    yield _raising(exercise, "a division by zero", "return 1 / 0")
    loop = _written(exercise, "while True:\n    pass")
    yield _fails(exercise, "an endless loop", loop, (TIMEOUT,), ends=True)
    leaves = "import os\n\n" + _written(exercise, "os._exit(1)")
    yield _fails(exercise, "ends the process when called", leaves, (STOPPED,), ends=True)
    exits = f"import os\n\nif input is not None:\n    os._exit(0)\n\n{right}"
    yield _fails(exercise, "ends the process when its cell runs", exits, (STOPPED,), ends=True)
    # the cell is stopped, and what it had defined by then is graded
    waiting = f"{right}\n\nwhile not None:\n    pass"
    yield Answer(
        exercise.name,
        Kind.CRASHING,
        "an endless loop after the definition",
        waiting,
        Outcome.PASSES,
        flags=(TIMEOUT,),
        uses=uses,
        ends=True,
    )


def _fails(exercise: Exercise, name: str, source: str, flags: tuple[str, ...] = (), ends: bool = False) -> Answer:
    return Answer(exercise.name, Kind.CRASHING, name, source, Outcome.FAILS, flags=flags, ends=ends)


def _raising(exercise: Exercise, name: str, statement: str) -> Answer:
    return Answer(exercise.name, Kind.CRASHING, name, _written(exercise, statement), Outcome.ASK)


def _torn(source: str) -> str:
    """A source with its first colon at the end of a line gone."""
    lines = source.split("\n")
    place = next(index for index, line in enumerate(lines) if line.rstrip().endswith(":"))
    lines[place] = lines[place].rstrip()[:-1]
    return "\n".join(lines)


def _written(exercise: Exercise, body: str) -> str:
    """A cell that defines all objects of an exercise, each with the same body."""
    deep = "\n".join(f"    {line}" for line in body.split("\n"))
    if not exercise.is_class:
        return "\n\n".join(f"def {name}(*inputs):\n{deep}" for name in exercise.objects)
    deeper = "\n".join(f"    {line}" for line in deep.split("\n"))
    return "\n\n".join(
        f"class {name}:\n    def __new__(cls, *sizes, **options):\n{deeper}" for name in exercise.objects
    )
