"""What belongs to the grader alone: the hidden checks, the folder of results, and the secret for drawing inputs."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from exercise_kit.files import find_user_folder, write
from exercise_kit.submission.released import CLONE

DIGITS = 64


def read_or_create_secret(path: Path) -> bytes:
    """The secret in a file; it is made when it is not there, readable by its owner alone.

    Graders that start at once get the same one.

    Raises:
        OSError: it can be neither read nor made.
    """
    if kept := _read_secret(path):
        return kept
    with lock_folder(path.parent):
        if kept := _read_secret(path):  # another grader was quicker
            return kept
        made = secrets.token_hex(DIGITS // 2).encode()
        write(path, made, 0o600)
        return made


@contextmanager
def lock_folder(folder: Path, before_waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Be the only one in a folder of the grader's; it is made when it is not there, for its owner alone.

    Args:
        folder: of which everybody who locks it takes turns.
        before_waiting: called when somebody else is in there.

    Raises:
        OSError: it can be neither opened nor made.
    """
    for each in (folder.parent, folder):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            before_waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_secret(path: Path) -> bytes | None:
    """The secret; None where there is none, or half of one, as a full disk leaves it."""
    try:
        kept = path.read_bytes().strip()
    except FileNotFoundError:
        return None
    return kept if len(kept) == DIGITS else None


class GradeError(Exception):
    """Nothing can be graded; the message says why, and what to do."""


class PlaceError(GradeError):
    """Something that grading needs is not there; the message says what to do."""


@dataclass(frozen=True)
class Place:
    """A grader's places: the class folder (None: a clone alone), the hidden checks' folder, the secret, the results."""

    class_dir: Path | None
    checks: Path
    secret: bytes
    results: Path


def find_place(class_dir: Path | None, clone: Path = CLONE) -> Place:
    """The places for the submissions of a class, or for those outside any class folder.

    Args:
        class_dir: a folder made by ``new-class``; its own ``hidden/`` counts where it has one.
        clone: a clone of the course, whose ``tests/hidden`` counts otherwise.

    Raises:
        PlaceError: there are no hidden checks, they cannot be read, or the secret cannot be read or made.
    """
    folders = [clone / "tests" / "hidden"]
    if class_dir:
        folders.insert(0, class_dir / "hidden")
    for folder in folders:
        if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
            raise PlaceError(f"the hidden checks cannot be read: {folder}: Permission denied")
    checks = next((folder for folder in folders if folder.is_dir()), None)
    if checks is None:
        where = " nor in ".join(str(folder) for folder in folders)
        raise PlaceError(
            f"there are no hidden checks in {where}; grade in a clone or in a class folder, or name one: --class DIR"
        )
    secret, results = _find_grader_folders(class_dir)
    try:
        return Place(class_dir, checks, read_or_create_secret(secret), results)
    except OSError as error:
        raise PlaceError(f"the grader's secret cannot be kept in {secret}: {error.strerror or error}") from None


def _find_grader_folders(class_dir: Path | None) -> tuple[Path, Path]:
    """Where the secret and the results are: in the class, or else with the account."""
    if class_dir:
        return class_dir / ".vit_course" / "secret", class_dir / ".vit_course" / "results"
    try:
        config, cache = find_user_folder("config"), find_user_folder("cache")
    except OSError as error:
        raise PlaceError(f"the grader's secret and results have no place: {error.strerror}") from None
    return config / "secret", cache / "results"
