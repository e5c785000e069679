"""Points as every table, page and file writes them."""

from __future__ import annotations


def in_digits(points: float) -> str:
    """As "2", "14.5" or "3.25": two digits after a point at most, and none where there is nothing to say."""
    return f"{round(points, 2):g}"
