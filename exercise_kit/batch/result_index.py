"""Whole results by the bytes of a file: one that was graded before is answered without reading it, and without torch.

The store (:mod:`exercise_kit.batch.result_cache`) decides: an entry here is valid while the store's file that it was
made from is the same to the byte, and while checks, code, released lessons and secret are the same. Only results that
depend on nothing but the notebook are entered.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from exercise_kit.batch.locations import Place
from exercise_kit.batch.result_cache import code_digest, file_stats
from exercise_kit.engine.class_exercises import files_of
from exercise_kit.files import write
from exercise_kit.judge.result import Result
from exercise_kit.submission.notebook_file import Unreadable, read_bytes
from exercise_kit.submission.released import CLONE

if TYPE_CHECKING:
    from exercise_kit.batch.job import Task


FOLDER = "index"  # beside the folder of results
_SEAL = 64  # hexadecimal digits


def released_file_stats(place: Place) -> tuple[tuple[str, int, int], ...]:
    """What changes when a lesson is released again, in the class or in the clone."""
    facts = ((path, path.stat()) for path in _released(place))
    return tuple((str(path), fact.st_mtime_ns, fact.st_size) for path, fact in facts)


def grader_digest(place: Place) -> str:
    """A digest of all that is the grader's: checks, code and versions, released lessons and model answers.

    Raises:
        OSError: a file cannot be read.
    """
    checks = _contents(tuple(name for name, *_ in file_stats(place.checks)), file_stats(place.checks))
    released = released_file_stats(place)
    lessons = _contents(tuple(name for name, *_ in released), released)
    own = files_of(place.class_dir).digest
    return hashlib.sha256(repr((code_digest(), str(place.checks), checks, lessons, own)).encode()).hexdigest()


def look_up(task: Task) -> Result | None:
    """The result of a submission that was graded before and of which nothing has changed; None: grade it."""
    if task.fresh or task.handed_in.problem:
        return None
    try:
        digest = hashlib.sha256(read_bytes(task.handed_in.path)).hexdigest()
        path = _path(task, digest)
        seal, content = (data := path.read_bytes())[:_SEAL], data[_SEAL:]
        if not hmac.compare_digest(seal, _seal(task.place, path.name, grader_digest(task.place), content)):
            return None
        entry = json.loads(content)
        kept = (task.place.results / entry["file"]).read_bytes()
        return Result.from_dict(entry["result"]) if hashlib.sha256(kept).hexdigest() == entry["digest"] else None
    except (OSError, Unreadable):
        return None


def add(task: Task, digest: str, grader: str, kept: Path, result: Result) -> None:
    """Remember the whole result of a task.

    Args:
        task: what was asked.
        digest: of the submission's bytes, as they were read.
        grader: the grader's digest from before they were read.
        kept: the store's file of the result.
        result: all of it.

    Raises:
        OSError: it cannot be written.
    """
    entry = {"file": kept.name, "digest": hashlib.sha256(kept.read_bytes()).hexdigest(), "result": result.to_store()}
    content, path = json.dumps(entry).encode(), _path(task, digest)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write(path, _seal(task.place, path.name, grader, content) + content, 0o600)


def _released(place: Place) -> Iterator[Path]:
    folders = [CLONE / "notebooks", CLONE / "solutions"]
    for folder in folders:
        yield from sorted(folder.glob("*.ipynb"))
    for step in ("release", "source") if place.class_dir else ():
        yield from sorted((place.class_dir or CLONE).glob(f"{step}/*/*.ipynb"))


@lru_cache(maxsize=8)
def _contents(names: tuple[str, ...], of: object) -> tuple[str, ...]:
    """Each file's name and digest; read again when the file stats ``of`` them have changed."""
    return tuple(f"{name} {hashlib.sha256(Path(name).read_bytes()).hexdigest()}" for name in names)


def _path(task: Task, digest: str) -> Path:
    request = (digest, task.handed_in, task.exercise, task.sandboxed, task.device)
    name = hashlib.sha256(repr(request).encode("utf-8", "surrogatepass")).hexdigest()
    return task.place.results.parent / FOLDER / f"{name}.json"


def _seal(place: Place, name: str, grader: str, content: bytes) -> bytes:
    """What only the holder of the secret can write before an entry of that name."""
    sealed = b"a whole result\0" + f"{name} {grader} ".encode() + content
    return hmac.new(place.secret, sealed, hashlib.sha256).hexdigest().encode()
