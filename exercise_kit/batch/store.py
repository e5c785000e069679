"""Results, kept by content: whoever asks again gets the answer, whoever was killed goes on where they were.

A file for each submission's content holds, for each exercise, its result under a key: a digest of everything that
the result depends on. What a file holds is believed when it is sealed with the grader's secret, and as far as its keys
match; nothing is lost when it is not.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from exercise_kit.files import DRAFT, write
from exercise_kit.judge.result import ExerciseResult, Result
from exercise_kit.submission.submission import Submission

FORMAT = 2
FORGOTTEN = 3600  # seconds after which a draft is one that a killed grader left


class ChangedResult(Exception):
    """A kept result was changed by somebody who does not hold the grader's secret; the message is a clause."""


class Store:
    """A folder of results.

    Args:
        folder: it is made when the first result is kept.
        secret: the grader's, with which results are sealed.
    """

    def __init__(self, folder: Path, secret: bytes) -> None:
        self.folder, self._secret = folder, secret

    def load(self, submission: Submission, keys: Mapping[str, str]) -> Result | None:
        """What is kept of a submission under keys that still hold; its exercises may be some of those asked for.

        Args:
            submission: of which content and lesson count, not whose it is.
            keys: the key of each exercise.

        Raises:
            ChangedResult: somebody else than the grader has written what is kept.
        """
        kept = self.read(submission.content, submission.lesson)
        if kept is None:
            return None
        result, all_keys = kept
        valid = [each for each in result.exercises if all_keys.get(each.name) == keys.get(each.name, "")]
        return _whose(replace(result, exercises=tuple(valid)), submission) if valid else None

    def save(self, submission: Submission, keys: Mapping[str, str], result: Result) -> None:
        """Keep a result, and with it those of other exercises of the same content that are there.

        Raises:
            OSError: it cannot be written; what was there before stays.
        """
        try:
            before = self.read(submission.content, submission.lesson)
        except ChangedResult:
            before = None
        kept, all_keys = ({each.name: each for each in before[0].exercises}, before[1]) if before else ({}, {})
        kept |= {each.name: each for each in result.exercises}
        all_keys |= {each.name: keys[each.name] for each in result.exercises}
        whole = replace(result, exercises=tuple(kept.values()))
        path = self.path_of(submission)
        entry = {"format": FORMAT, "keys": all_keys, "result": whole.to_store()}
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write(path, json.dumps({**entry, "seal": self._seal(path, entry)}).encode(), 0o600)

    def path_of(self, submission: Submission) -> Path:
        """The file of a submission's result; there may be none yet."""
        return self._path(submission.content, submission.lesson)

    def read(self, content: str, lesson: str | None) -> tuple[Result, dict[str, str]] | None:
        """What is kept of a content, and the key of each of its exercises; None: nothing that this version can read.

        Raises:
            ChangedResult: somebody else than the grader has written it.
        """
        path = self._path(content, lesson)
        try:
            entry = json.loads(path.read_bytes())
            if entry.pop("format") != FORMAT:
                return None
            seal = str(entry.pop("seal", ""))
            sealed = self._seal(path, {"format": FORMAT, **entry})
            result, keys = Result.from_dict(entry["result"]), {name: str(key) for name, key in entry["keys"].items()}
        except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return None
        if not hmac.compare_digest(sealed.encode(), seal.encode()) or not all(map(_can_be, result.exercises)):
            raise ChangedResult("what was kept of it had been changed by somebody else")
        return result, keys

    def _seal(self, path: Path, entry: Mapping[str, Any]) -> str:
        """What only the holder of the secret can write below an entry, for the file of this name alone."""
        content = json.dumps([path.name, entry], sort_keys=True).encode()
        return hmac.new(self._secret, b"a kept result\0" + content, hashlib.sha256).hexdigest()

    def clear_drafts(self) -> None:
        """Remove what graders that were killed left half written."""
        for draft in self.folder.glob(f".*{DRAFT}"):
            try:
                if time.time() - draft.stat().st_mtime > FORGOTTEN:
                    draft.unlink()
            except OSError:  # another grader was quicker
                continue

    def _path(self, content: str, lesson: str | None) -> Path:
        return self.folder / f"{hashlib.sha256(f'{content}/{lesson}'.encode()).hexdigest()}.json"


def _can_be(result: ExerciseResult) -> bool:
    return 0 <= result.score <= result.max_score < math.inf


def merged(submission: Submission, kept: Result | None, fresh: Result | None) -> Result:
    """One result of what was kept and what was graded now: the submission's exercises in their order.

    Reasons and flags of reading come first, then those of running.
    """
    exercises: dict[str, ExerciseResult] = {}
    for result in (kept, fresh):
        exercises |= {each.name: each for each in (result.exercises if result else ())}
    newest = fresh or kept
    assert newest is not None, "a result comes from somewhere"
    chosen = tuple(exercises[each.name] for each in submission.exercises if each.name in exercises)
    flags = [*submission.flags, *(kept.flags if kept else ()), *(fresh.flags if fresh else ())]
    reasons = [part for part in (submission.reason, newest.reason) if part]
    return _whose(
        replace(
            newest,
            reason="; ".join(reasons) or None,
            flags=tuple(dict.fromkeys(flags)),
            exercises=chosen,
            score=round(sum(each.score for each in chosen), 4),
            max_score=round(sum(each.max_score for each in chosen), 4),
        ),
        submission,
    )


def write_text(path: Path, text: str) -> None:
    """Write a file whole, and its folder where there is none; what is no text in a name becomes JSON's own escape.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, text.encode("utf-8", "backslashreplace"))


def _whose(result: Result, submission: Submission) -> Result:
    return replace(result, path=submission.path, student=submission.student, assignment=submission.assignment)
