"""The cache of results, by content: whoever asks again gets the answer, and a run that was killed goes on where it was.

A file for each submission's content holds, for each exercise, its result under a key: a digest of everything that the
result depends on. What a file holds is believed when it is sealed with the grader's secret, and as far as its keys
match; nothing is lost when it is not.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import platform
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import exercise_kit
from exercise_kit.batch.locations import Place
from exercise_kit.conventions import find_marked_exercises
from exercise_kit.engine.class_exercises import find_class_files
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.files import write
from exercise_kit.judge.result import Result, join_reason_clauses, replace_exercises
from exercise_kit.sandbox.limits import Limits
from exercise_kit.submission.flags import explain_flags
from exercise_kit.submission.submission import ExerciseAnswer, Submission


def make_exercise_keys(submission: Submission, place: Place, sandboxed: bool, limits: Limits) -> dict[str, str]:
    """The key of each exercise of a submission.

    It depends on:

    - the submission's content, and the exercise's points;
    - the check files that hold its checks, and the files that these may share;
    - this package's code, torch's version, the secret, the sandbox and its limits, of which the device is one;
    - for an exercise that asks for a file, that file and the grader's images.

    It does not depend on the lesson's test cells or on the student, since those change no score. Before the dash stands
    a digest of checks, code, secret and whether there is a sandbox: a result whose key begins otherwise is older.
    """
    prefixes = make_key_prefixes([each.name for each in submission.exercises], place, sandboxed)
    asked = {each.name: _digest_answer(submission, each, limits) for each in submission.exercises}
    return {name: f"{prefixes[name]}-{digest}" for name, digest in asked.items()}


def list_key_prefixes(exercises: Collection[str], place: Place) -> dict[str, set[str]]:
    """List for each exercise what keys of today's results may begin with, in whichever way they were graded."""
    prefixes = [make_key_prefixes(exercises, place, sandboxed) for sandboxed in (True, False)]
    return {name: {each[name] for each in prefixes} for name in exercises}


def make_key_prefixes(exercises: Iterable[str], place: Place, sandboxed: bool) -> dict[str, str]:
    """Return what all keys of each exercise begin with while checks, code, secret and sandbox stay as they are."""
    checks, own = (
        _digest_checks_by_exercise(place.checks, read_file_stats(place.checks)),
        find_class_files(place.class_dir),
    )
    shared = (digest_code(), sorted(find_package_versions().items()), checks[""], place.secret, sandboxed)
    return {name: _digest_repr(*shared, checks.get(name), own.digest if own.has(name) else "") for name in exercises}


def _digest_answer(submission: Submission, answer: ExerciseAnswer, limits: Limits) -> str:
    results = course().results if answer.file else None
    file = (answer.file and answer.file.digest, results and results.fingerprint())
    answered = (answer.name, answer.max_score, answer.cell, answer.problem, answer.parts)
    return _digest_repr(submission.digest, submission.lesson, answered, file, limits)


def _digest_repr(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def read_file_stats(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Read what changes when a Python file of a folder does; cheaper than a digest."""
    facts = ((path, path.stat()) for path in sorted(folder.rglob("*.py")))
    return tuple((str(path), fact.st_mtime_ns, fact.st_size) for path, fact in facts)


@lru_cache(maxsize=4)
def _digest_checks_by_exercise(folder: Path, file_stats: object) -> dict[str, str]:
    """A digest of each exercise's check files; under "" one of all files that hold no checks of an exercise."""
    texts: dict[str, list[str]] = {"": []}
    for path in sorted(folder.rglob("*.py")):
        content = path.read_bytes()
        by_name = {path.stem.removeprefix("test_")} & course().exercises.keys()
        for exercise in find_marked_exercises(content) or by_name or {""}:
            texts.setdefault(exercise, []).append(f"{path.relative_to(folder)} {hashlib.sha256(content).hexdigest()}")
    return {exercise: _digest_repr(sorted(files)) for exercise, files in texts.items()}


def digest_checks(folder: Path) -> str:
    """A digest of a folder of hidden checks, wherever it lies.

    Raises:
        OSError: a file cannot be read.
    """
    return _digest_folder(folder, read_file_stats(folder))


@lru_cache(maxsize=4)
def _digest_folder(folder: Path, file_stats: object) -> str:
    paths = sorted(folder.rglob("*.py"))
    return _digest_repr(
        *((str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in paths)
    )


@lru_cache(maxsize=1)
def digest_code() -> str:
    """A digest of the kit's code and of the course's, wherever they lie."""
    packages = {Path(exercise_kit.__file__).parent, Path(str(files(read_package_name())))}
    return _digest_repr(sorted((folder.name, _digest_folder(folder, None)) for folder in packages))


@lru_cache(maxsize=2)
def find_package_versions(*more_packages: str) -> dict[str, str | None]:
    """The versions of what a result depends on beside code and checks; None: it is not installed."""
    packages = ("torch", "torchvision", "pytest", "IPython", *more_packages)
    return {"Python": platform.python_version()} | {package: _find_package_version(package) for package in packages}


def _find_package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


FORMAT = 2


class TamperedResult(Exception):
    """A kept result was changed by somebody who does not hold the grader's secret; the message is a clause."""


class Kept(NamedTuple):
    """What is kept of a content: its ``result``, the key of each exercise, and what its reader flagged and said."""

    result: Result
    keys: dict[str, str]
    flags: tuple[str, ...] = ()
    reason: str | None = None


class Store:
    """A folder of results.

    Args:
        folder: it is made when the first result is kept.
        secret: the grader's, with which results are sealed.
    """

    def __init__(self, folder: Path, secret: bytes) -> None:
        self.folder, self._secret = folder, secret

    def load(self, submission: Submission, keys: Mapping[str, str]) -> Result | None:
        """Load what is kept of a submission under keys that still hold; its exercises may be some of those asked for.

        One that is not graded yet is not among them: what it waits for may be there by now.

        Args:
            submission: of which content and lesson count, not whose it is.
            keys: the key of each exercise.

        Raises:
            TamperedResult: somebody else than the grader has written what is kept.
        """
        kept = self.read(submission.content, submission.lesson)
        if kept is None:
            return None
        result, all_keys = kept.result, kept.keys
        valid = [
            each
            for each in result.exercises
            if all_keys.get(each.name) == keys.get(each.name, "") and not each.waits  # its cause may be gone
        ]
        return copy_result_for_submission(replace(result, exercises=tuple(valid)), submission) if valid else None

    def save(self, submission: Submission, keys: Mapping[str, str], result: Result) -> None:
        """Keep a result, and with it those of other exercises of the same content that are there.

        Raises:
            OSError: it cannot be written; what was there before stays.
        """
        try:
            before = self.read(submission.content, submission.lesson)
        except TamperedResult:
            before = None
        kept, all_keys = ({each.name: each for each in before.result.exercises}, before.keys) if before else ({}, {})
        kept |= {each.name: each for each in result.exercises}
        all_keys |= {each.name: keys[each.name] for each in result.exercises}
        path = self._find_entry_path(submission.content, submission.lesson)
        reason = join_reason_clauses(*explain_flags(submission.notes), submission.reason)
        reading = {"flags": list(submission.flags), "reason": reason}
        entry = {
            "format": FORMAT,
            "keys": all_keys,
            "result": replace_exercises(result, kept.values()).to_store(),
            "reading": reading,
        }
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write(path, json.dumps({**entry, "seal": self._compute_signature(path, entry)}).encode(), 0o600)

    def read(self, content: str, lesson: str | None) -> Kept | None:
        """Read what is kept of a content; None: nothing that this version can read.

        Raises:
            TamperedResult: somebody else than the grader has written it.
        """
        path = self._find_entry_path(content, lesson)
        try:
            entry = json.loads(path.read_bytes())
            if entry.pop("format") != FORMAT:
                return None
            seal = str(entry.pop("seal", ""))
            sealed = self._compute_signature(path, {"format": FORMAT, **entry})
            result, keys = Result.from_dict(entry["result"]), {name: str(key) for name, key in entry["keys"].items()}
            flags, reason = tuple(entry["reading"]["flags"]), entry["reading"]["reason"]
        except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return None
        are_possible = all(0 <= each.score <= each.max_score < math.inf for each in result.exercises)
        if not hmac.compare_digest(sealed.encode(), seal.encode()) or not are_possible:
            raise TamperedResult("its kept result had been changed by somebody else")
        return Kept(result, keys, flags, reason)

    def _compute_signature(self, path: Path, entry: Mapping[str, Any]) -> str:
        """Make what only the holder of the secret can write below an entry, for the file of this name alone."""
        content = json.dumps([path.name, entry], sort_keys=True).encode()
        return hmac.new(self._secret, b"a kept result\0" + content, hashlib.sha256).hexdigest()

    def _find_entry_path(self, content: str, lesson: str | None) -> Path:
        return self.folder / f"{hashlib.sha256(f'{content}/{lesson}'.encode()).hexdigest()}.json"


def merge_results(submission: Submission, kept_result: Result | None, fresh_result: Result | None) -> Result:
    """One result of what was kept and what was graded now: the submission's exercises in their order.

    Reasons and flags of reading come first, then those of running.
    """
    results = [each for each in (kept_result, fresh_result) if each]
    exercises = {each.name: each for result in results for each in result.exercises}
    flags = tuple(flag for result in results for flag in result.flags)
    notes = tuple(note for result in results for note in result.notes)
    chosen = [exercises[each.name] for each in submission.exercises if each.name in exercises]
    return add_remarks_of_reader(submission, replace_exercises(replace(results[-1], flags=flags, notes=notes), chosen))


def add_remarks_of_reader(submission: Submission, result: Result) -> Result:
    """The result of that submission, with what its reader said and flagged."""
    return replace(
        copy_result_for_submission(result, submission),
        reason=join_reason_clauses(submission.reason, result.reason),
        flags=tuple(dict.fromkeys((*submission.flags, *result.flags))),
        notes=tuple(dict.fromkeys((*submission.notes, *result.notes))),
    )


def copy_result_for_submission(result: Result, submission: Submission) -> Result:
    """The same, as that of whoever handed the submission in."""
    return replace(result, path=submission.path, student=submission.student, assignment=submission.assignment)
