"""The scratch folder, the one place where a student's code may write, made empty again after each child."""

from __future__ import annotations

import os
import stat
from itertools import count


def emptied(folder: str) -> bool:
    """Remove all that is in ``folder``, however deep or oddly named; whether that worked.

    Links are removed, not followed. A folder's own folders are moved to the top before it is removed, so that no
    depth of nesting is too deep.
    """
    numbers = count()
    try:
        while entries := list(os.scandir(folder)):
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _flattened(folder, entry.path, numbers)
                else:
                    os.unlink(entry.path)
    except OSError:
        return False
    return True


def _flattened(top: str, folder: str, numbers: count[int]) -> None:
    """Remove ``folder`` with its files, and move its folders to ``top`` under names that nothing there has."""
    os.chmod(folder, stat.S_IRWXU)
    for entry in list(os.scandir(folder)):
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.path)
            continue
        os.chmod(entry.path, stat.S_IRWXU)
        while os.path.lexists(name := os.path.join(top, f"{next(numbers)}")):
            pass
        os.rename(entry.path, name)
    os.rmdir(folder)
