"""What an attack is: a notebook whose author wants points, secrets, or the grader's machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.outline import POINTS

WRONG = """\
def patchify(images, patch_size):
    return images
"""
RIGHT = """\
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    for name, side in (("height", height), ("width", width)):
        if side % patch_size:
            raise ValueError(f"{name} {side} is not divisible by patch_size {patch_size}")
    rows, columns = height // patch_size, width // patch_size
    grid = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return grid.permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, channels * patch_size**2)
"""
# the worker's own wire, found in the frames above: its replies have the right number and the right form
FORGE = """
import sys, torch
def serving():
    frame = sys._getframe()
    while frame is not None:
        found = frame.f_locals.get("self")
        if type(found).__name__ == "RequestServer":
            return found
        frame = frame.f_back
def replies(result, tensors=()):
    fields = [["result", result], ["changed", []], ["inputs", [None, None]], ["same", None], ["shares", False]]
    server = serving()
    server._wire.send({"number": server._number, "reply": {"dict": fields}}, list(tensors))
"""
ALL_OF_PATCHIFY = POINTS["01_patchify"]["patchify"]


@dataclass(frozen=True)
class Attack:
    """A hostile submission.

    Attributes: ``name``, ``aim`` (what its author tries, as a clause), ``answer`` (the cell of the exercise; what else
    the lesson asks stays unwritten), ``honest`` (the points that the answer deserves), ``first`` (a cell put before all
    others), ``then`` (one at the end), ``check`` (what stands in the check's cell, None where that is left alone),
    ``flags`` (that it has to raise), and the ``lesson`` and the ``exercise`` that it attacks.
    """

    name: str
    aim: str
    answer: str
    honest: float = 0.0
    first: str = ""
    then: str = ""
    check: str | None = None
    flags: tuple[str, ...] = field(default=())
    lesson: str = "01_patchify"
    exercise: str = "patchify"
