"""What stands in the place of ``hunt`` while the judge grades: it draws nothing."""

from __future__ import annotations

HUNTS = '''"""Stands where the bug hunts are while a student works: every ground of theirs holds an answer."""


class Suspect:
    """What a hunt gives while the judge grades: nothing to be read or run."""

    code = ""

    def __call__(self, *inputs: object, **options: object) -> object:
        """There is no program here."""
        raise RuntimeError("bug hunts are not there while grading; no point depends on them")

    program = __call__

    def check(self, mended: object = None) -> "Suspect":
        """Decide nothing."""
        return self

    def __repr__(self) -> str:
        return "a bug hunt is not shown while grading; no point depends on it"


def hunt(exercise: str = "", seed: object = 1, bugs: object = 1) -> Suspect:
    """Draw nothing."""
    return Suspect()
'''
