"""What of a long answer is shown: the lines that no answer without its mistake has, and where they stand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

MARK = "…"
MOST_LINES = 34
_CONTEXT = (4, 2, 1, 0)  # lines around a differing one, as many as there is room for
_REPLACED = re.compile(r"\bname\d+\b")
_HEADER = ("def ", "async def ", "class ")


def canonicalize_line(line: str) -> str:
    """A line as it is compared: wherever it stands, and whatever stood for a name that was taken out."""
    return _REPLACED.sub("name", line.strip())


def find_differing_lines(lines: Iterable[str], right_lines: Collection[str]) -> list[str]:
    """The lines that stand in no answer without the mistake.

    Args:
        lines: of an answer.
        right_lines: those of answers without it, canonical.
    """
    return [line for line in lines if line.strip() and canonicalize_line(line) not in right_lines]


def shorten_lines(lines: Sequence[str], right_lines: Collection[str]) -> list[str]:
    """At most about MOST_LINES lines, those that differ among them where they are so few; a mark for what is left out.

    Args:
        lines: of an answer.
        right_lines: those of answers without it, canonical.
    """
    own = {place for place, line in enumerate(lines) if find_differing_lines([line], right_lines)}
    for context in _CONTEXT if len(lines) > MOST_LINES else ():
        near = {place for place in range(len(lines)) if any(abs(place - each) <= context for each in own)}
        shown = _replace_gaps_with_marks(
            lines, near | {header for each in own for header in _find_enclosing_headers(lines, each)}
        )
        if len(shown) <= MOST_LINES:
            return shown
    if len(lines) <= MOST_LINES:
        return list(lines)
    return [*lines[:MOST_LINES], f"# {MARK} and {len(lines) - MOST_LINES} lines more"]


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _find_enclosing_headers(lines: Sequence[str], place: int) -> list[int]:
    """The places of the first lines of the functions and classes that a line stands in."""
    found, depth = [], _measure_indent(lines[place])
    for above in range(place - 1, -1, -1):
        line = lines[above]
        if line.strip() and _measure_indent(line) < depth:
            depth = _measure_indent(line)
            if line.lstrip().startswith(_HEADER):
                found.append(above)
    return found


def _replace_gaps_with_marks(lines: Sequence[str], shown: Collection[int]) -> list[str]:
    made: list[str] = []
    left_out: list[str] = []
    for place, line in enumerate(lines):
        if place in shown:
            made += _make_gap_mark(left_out)
            left_out = []
            made.append(line)
        else:
            left_out.append(line)
    return made + _make_gap_mark(left_out)


def _make_gap_mark(left_out: Sequence[str]) -> list[str]:
    """One line for those left out: none of them says anything where all are empty."""
    written = [line for line in left_out if line.strip()]
    return [" " * _measure_indent(written[0]) + MARK] if written else list(left_out)
