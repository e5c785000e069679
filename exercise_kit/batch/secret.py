"""The grader's secret, from which the hidden checks' sizes and numbers are drawn."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exercise_kit.files import write

DIGITS = 64


def secret_at(path: Path) -> bytes:
    """The secret in a file; it is made when it is not there, readable by its owner alone.

    Graders that start at once get the same one.

    Raises:
        OSError: it can be neither read nor made.
    """
    if kept := _read(path):
        return kept
    with alone_in(path.parent):
        if kept := _read(path):  # another grader was quicker
            return kept
        made = secrets.token_hex(DIGITS // 2).encode()
        write(path, made, 0o600)
        return made


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Be the only one in a folder of the grader's; it is made when it is not there.

    Raises:
        OSError: it can be neither opened nor made.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes | None:
    """The secret; None where there is none, or half of one, as a full disk leaves it."""
    try:
        kept = path.read_bytes().strip()
    except FileNotFoundError:
        return None
    return kept if len(kept) == DIGITS else None
