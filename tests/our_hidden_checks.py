"""The course's hidden checks, for tests that ask them of answers."""

from functools import cache
from pathlib import Path

from exercise_kit.hidden_checks.checks import HiddenChecks


@cache
def hidden_checks() -> HiddenChecks:
    """Opened once in this process."""
    return HiddenChecks(Path(__file__).parent / "hidden")
