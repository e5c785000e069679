"""The solution regions of a cell: what stands between ### BEGIN SOLUTION and ### END SOLUTION."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exercise_kit.conventions import BEGIN_SOLUTION, END_SOLUTION


class RegionError(ValueError):
    """The markers of a cell do not pair up; `line` counts the cell's lines from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Split:
    """The lines of a cell that are part of an answer, and the others; the markers are in neither."""

    inside: tuple[str, ...]
    outside: tuple[str, ...]
    regions: int


def split_regions(source: str) -> Split:
    """Take a cell's source apart.

    Raises:
        RegionError: a marker without its partner, a nested region, an empty one, or a marker amid other text.
    """
    inside: list[str] = []
    outside: list[str] = []
    begun_at: int | None = None
    regions = 0
    for number, line in enumerate(source.split("\n"), 1):
        marker = _marker_of(line, number)
        if marker == BEGIN_SOLUTION:
            if begun_at is not None:
                raise RegionError("BEGIN SOLUTION inside a region that has not ended", number)
            begun_at, filled = number, len(inside)
        elif marker == END_SOLUTION:
            if begun_at is None:
                raise RegionError("END SOLUTION without a BEGIN SOLUTION above it", number)
            if not _any_text(inside[filled:]):
                raise RegionError("an empty solution region; write the answer between the markers", number)
            begun_at, regions = None, regions + 1
        else:
            (outside if begun_at is None else inside).append(line)
    if begun_at is not None:
        raise RegionError("BEGIN SOLUTION without an END SOLUTION below it", begun_at)
    return Split(tuple(inside), tuple(outside), regions)


def _marker_of(line: str, number: int) -> str | None:
    for marker in (BEGIN_SOLUTION, END_SOLUTION):
        words = marker.lstrip("# ")  # all that nbgrader looks for
        if words in line:
            if line.strip() != marker:
                raise RegionError(f"{words} amid other text; write {marker} on a line of its own", number)
            return marker
    return None


def _any_text(lines: Sequence[str]) -> bool:
    return any(line.strip() for line in lines)
