"""Points as every table, page and file writes them."""

from __future__ import annotations


def round_to_hundredths(points: float) -> float:
    """As they leave a gradebook: every file that is made of a grade says the same of it."""
    return round(points, 2)


def format_points(points: float) -> str:
    """As "2", "14.5" or "3.25": two digits after a point at most, and none where there is nothing to say."""
    return f"{round_to_hundredths(points):.2f}".rstrip("0").rstrip(".")
