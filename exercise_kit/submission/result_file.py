"""A file that an exercise asks for in the place of code, found beside the notebook: links are not followed."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from exercise_kit.conventions import MOST_BYTES, MOST_BYTES_BESIDE
from exercise_kit.submission.notebook_file import Unreachable, Unreadable, read_bytes


@dataclass(frozen=True)
class ResultFile:
    """A file that an exercise asks for.

    Attributes:
        name: as in the lesson.
        path: where it was looked for.
        digest: of its bytes and of those of the JSON file beside it; empty where it cannot be read.
        problem: a clause on why it cannot be graded.
    """

    name: str
    path: str
    digest: str = ""
    problem: str | None = None


def find_result(folder: Path, name: str) -> ResultFile:
    """The file called ``name`` in ``folder``; links are not followed.

    Args:
        folder: of the notebook.
        name: a file's name, from the lesson as it was released.
    """
    result = ResultFile(name, str(folder / name))
    content, beside = read_contents(result)
    if isinstance(content, str):
        return ResultFile(name, result.path, problem=content)
    return ResultFile(name, result.path, _digest_with_json(content, beside))


def read_contents(result: ResultFile) -> tuple[bytes | str, bytes | None]:
    """The bytes of a result, and those of the JSON file beside it; a clause in the place of what cannot be read.

    A file that has changed since it was found is not read.

    Raises:
        Unreachable: the disk or the shared folder that it lies on is gone.
    """
    path = Path(result.path)
    if not os.path.lexists(path):
        return f"{result.name} does not lie beside the notebook", None
    try:
        content = read_bytes(path, MOST_BYTES)
    except Unreachable:
        raise
    except Unreadable as error:
        return f"{result.name} cannot be graded: {error}", None
    beside = None
    with suppress(Unreadable):  # only a file that tells nothing of its model needs it
        beside = read_bytes(path.with_suffix(".json"), MOST_BYTES_BESIDE)
    if result.digest and _digest_with_json(content, beside) != result.digest:
        return f"{result.name} was changed while it was graded", None
    return content, beside


def _digest_with_json(content: bytes, json_content: bytes | None) -> str:
    return hashlib.sha256(hashlib.sha256(content).digest() + (json_content or b"")).hexdigest()
