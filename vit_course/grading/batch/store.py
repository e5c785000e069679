"""Results, kept by content: whoever asks again gets the answer, whoever was killed goes on where they were.

A file for each submission's content holds, for each exercise, its result under a key: a digest of everything that
the result depends on. What a file holds is believed as far as its keys match, and nothing is lost when it does not.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vit_course.files import DRAFT, write
from vit_course.grading.judging.result import ExerciseResult, Result
from vit_course.grading.submissions.submission import Submission

FORMAT = 1
FORGOTTEN = 3600  # seconds after which a draft is one that a killed grader left


class Store:
    """A folder of results.

    Args:
        folder: it is made when the first result is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, submission: Submission, keys: Mapping[str, str]) -> Result | None:
        """What is kept of a submission under keys that still hold; its exercises may be some of those asked for.

        Args:
            submission: of which content and lesson count, not whose it is.
            keys: the key of each exercise.
        """
        entry = self._entry(submission)
        try:
            kept = Result.from_dict(entry["result"])
            valid = [each for each in kept.exercises if entry["keys"].get(each.name) == keys.get(each.name, "")]
        except (KeyError, TypeError, ValueError, AttributeError):
            return None
        return _whose(replace(kept, exercises=tuple(valid)), submission) if valid else None

    def save(self, submission: Submission, keys: Mapping[str, str], result: Result) -> None:
        """Keep a result, and with it those of other exercises of the same content that are there.

        Raises:
            OSError: it cannot be written; what was there before stays.
        """
        entry = self._entry(submission)
        try:
            kept = {each.name: each for each in Result.from_dict(entry["result"]).exercises}
            all_keys = {name: str(entry["keys"][name]) for name in kept}
        except (KeyError, TypeError, ValueError, AttributeError):
            kept, all_keys = {}, {}
        kept |= {each.name: each for each in result.exercises}
        all_keys |= {each.name: keys[each.name] for each in result.exercises}
        whole = replace(result, exercises=tuple(kept.values()))
        write_text(self._path(submission), json.dumps({"format": FORMAT, "keys": all_keys, "result": whole.to_store()}))

    def clear_drafts(self) -> None:
        """Remove what graders that were killed left half written."""
        for draft in self.folder.glob(f".*{DRAFT}"):
            try:
                if time.time() - draft.stat().st_mtime > FORGOTTEN:
                    draft.unlink()
            except OSError:  # another grader was quicker
                continue

    def _path(self, submission: Submission) -> Path:
        what = f"{submission.content}/{submission.lesson}"
        return self.folder / f"{hashlib.sha256(what.encode()).hexdigest()}.json"

    def _entry(self, submission: Submission) -> dict[str, Any]:
        try:
            entry = json.loads(self._path(submission).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return entry if isinstance(entry, dict) and entry.get("format") == FORMAT else {}


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
