"""What a student hands in that only an instructor has: a class's configuration, checks, results. None of it is used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_NAMES = frozenset(
    {"nbgrader_config.py", "nbgrader_config.json", "conftest.py", "hidden", ".vit_course", "gradebook.db"}
)
_MOST_FOLDERS, _DEEPEST = 1000, 16


def beside(folder: Path) -> bool:
    """Whether one of these names lies in a folder."""
    return not _NAMES.isdisjoint(_names(folder))


def below(folder: Path) -> bool:
    """Whether one of these names lies in a folder or below it; no link is followed."""
    return any(not _NAMES.isdisjoint((*folders, *files)) for folders, files in _walk(folder))


def _walk(folder: Path) -> Iterator[tuple[list[str], list[str]]]:
    for number, (home, folders, files) in enumerate(os.walk(folder)):
        if number == _MOST_FOLDERS:
            return
        yield folders, files
        if len(Path(home).relative_to(folder).parts) == _DEEPEST:
            folders.clear()


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
