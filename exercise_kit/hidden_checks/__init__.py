"""The checks that grade: the exercises' own claims, and the functions that a teacher adds to them."""

from __future__ import annotations

from pathlib import Path


class HiddenChecksError(Exception):
    """The checks that grade cannot be used: the message says which file and line to mend.

    Attributes: ``file``, where it is about one.
    """

    def __init__(self, message: str, file: Path | None = None) -> None:
        super().__init__(message)
        self.file = file
