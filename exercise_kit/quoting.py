"""A student's own words, or a library's, quoted so that they cannot break a report."""

from __future__ import annotations


def quoted(text: object, most: int = 200) -> str:
    """The first line of what a student or a library wrote, in backticks, cut after ``most`` characters.

    A line that ends in a colon is followed by the next: torch's ``load_state_dict`` tells only there what is wrong.
    Characters that no terminal can print become spaces; "" when there is nothing to quote.
    """
    lines = [line.strip() for line in said(text).splitlines() if line.strip()]
    line = " ".join(lines[: 2 if lines and lines[0].endswith(":") else 1])
    line = "".join(letter if letter.isprintable() else " " for letter in line[: most + 1]).replace("`", "'")
    return "" if not line else f"`{line}`" if len(line) <= most else f"`{line[:most]} …`"


def said(value: object) -> str:
    """``str(value)``, "" where that raises."""
    try:
        return str(value)
    except Exception:
        return ""
