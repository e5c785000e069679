"""What a dask worker does for ``vit-course grade --scheduler``: it judges in a process of its own, or says why not.

A request and its reply are JSON. A request holds the cells and answers of one submission, the key of its draws, and
what a worker must have so that every worker gives the same result. It holds no path, no name and not the grader's
secret.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from multiprocessing import current_process
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from exercise_kit.batch.executors import JobProcess
from exercise_kit.batch.job import Task, judge_submission
from exercise_kit.batch.locations import Place
from exercise_kit.batch.result_cache import digest_checks, digest_code, find_package_versions
from exercise_kit.reasons import Reason
from exercise_kit.sandbox.devices import DeviceError, list_missing_protections, resolve_device
from exercise_kit.sandbox.limits import Limits
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.released import CLONE
from exercise_kit.submission.submission import CellSource, ExerciseAnswer, Part, Submission

HERE = CLONE / "tests" / "hidden"


@dataclass(frozen=True)
class Needs:
    """What a worker must have, and how it judges.

    Attributes:
        folder: of the hidden checks, on the grader's machine.
        checks: a digest of them.
        code: a digest of the code.
        versions: of the packages that it runs on.
        sandboxed: whether in the sandbox.
        limits: what the students' code may use, and where it computes.
    """

    folder: str
    checks: str
    code: str
    versions: tuple[tuple[str, str | None], ...]
    sandboxed: bool
    limits: Limits

    @classmethod
    def of(cls, task: Task) -> Needs:
        """Collect what a task needs."""
        folder = task.place.checks
        found = tuple(find_package_versions("distributed").items())
        return cls(str(folder), digest_checks(folder), digest_code(), found, task.sandboxed, task.limits)


def make_request(task: Task, submission: Submission | None = None) -> bytes:
    """A worker's request to judge a submission, none of whose exercises asks for a file; None: whether it could."""
    request: dict[str, object] = {"needs": asdict(Needs.of(task))}
    if submission:
        request["submission"] = asdict(replace(submission, path="", student=None, assignment=None))
        request["key"] = submission.derive_key(task.place.secret).hex()
    return json.dumps(request).encode()


def reply_to_request(request: bytes) -> bytes:
    """Reply as a dask worker: its host's name, and one of ``result``, ``refused``, ``failed`` or nothing more.

    ``refused`` is a clause on what this worker lacks, ``failed`` one on what became of the process that judged.
    """
    needs = _parse_needs(json.loads(request))
    folder = _find_checks_folder(needs)
    if folder is None:
        where = " or ".join(dict.fromkeys((needs.folder, str(HERE))))
        return _encode_reply(
            refused=f"it has other hidden checks: those of this run are not in {where} there; "
            "copy the grader's folder to the same place, or share it"
        )
    # dask's nanny makes its workers daemons, which may have no children; ours end by themselves when their parent does
    current_process().daemon = False
    try:
        reply: bytes = _own.process.call(folder, None, _judge_request, request, folder)
        return reply
    except Exception as error:  # a killed process, too little memory, a full disk
        stopped = isinstance(error, BrokenExecutor | TimeoutError)
        what = f"its process was stopped ({type(error).__name__})" if stopped else f"{type(error).__name__}: {error}"
        return _encode_reply(failed=what)


def _judge_request(request: bytes, checks: Path) -> bytes:
    """The reply of a worker's own process, which keeps its judge, and with it the sandbox, from task to task."""
    content = json.loads(request)
    needs = _parse_needs(content)
    if lack := _find_unmet_need(needs):
        return _encode_reply(refused=lack)
    if "submission" not in content:
        return _encode_reply()
    task = Task(FoundFile(Path()), Place(None, checks, b"", Path()), sandboxed=needs.sandboxed, limits=needs.limits)
    key, submission = bytes.fromhex(content["key"]), _parse_submission(content["submission"])
    return _encode_reply(result=judge_submission(task, submission, key).to_store())


def _encode_reply(**reply: object) -> bytes:
    return json.dumps({"host": socket.gethostname(), **reply}).encode()


def _parse_needs(content: Mapping[str, Any]) -> Needs:
    needs = content["needs"]
    versions_needed = tuple((name, number) for name, number in needs["versions"])
    return Needs(**{**needs, "versions": versions_needed, "limits": Limits(**needs["limits"])})


def _parse_submission(entry: Mapping[str, Any]) -> Submission:
    cells = tuple(CellSource(**each) for each in entry["cells"])
    exercises = tuple(
        ExerciseAnswer(
            **{
                **each,
                "reason": Reason(each["reason"]) if each["reason"] else None,
                "parts": tuple(Part(**part) for part in each["parts"]),
            }
        )
        for each in entry["exercises"]
    )
    return Submission(**{**entry, "cells": cells, "exercises": exercises, "flags": (), "notes": ()})


def _find_checks_folder(needs: Needs) -> Path | None:
    """The folder here that holds the checks that are needed: the grader's where it is shared, else this clone's."""
    for folder in (Path(needs.folder), HERE):
        try:
            if folder.is_dir() and digest_checks(folder) == needs.checks:
                return folder
        except OSError:  # a share that went away
            continue
    return None


@lru_cache(maxsize=4)
def _find_unmet_need(needs: Needs) -> str | None:
    """Say as a clause what differs here from what is needed, or is not there."""
    here = find_package_versions("distributed")
    other = [(name, here.get(name), number) for name, number in needs.versions if here.get(name) != number]
    if other:
        differs = ", ".join(f"{name} {mine or 'missing'} where the grader has {theirs}" for name, mine, theirs in other)
        return f"it has {differs}; install the same versions"
    if digest_code() != needs.code:
        return "its copy of the course is another one than the grader's; install the same one"
    try:
        device = resolve_device(needs.limits.device)
    except DeviceError as error:
        return f"it cannot compute on {needs.limits.device}: {error}"
    if needs.sandboxed and (missing := list_missing_protections(device)):
        remedies = "; ".join(f"{name}: {remedy}" for name, remedy in missing.items())
        return f"it cannot keep students' code apart ({remedies})"
    return None


class _OfThread(threading.local):
    """The process that judges for one thread of this worker."""

    def __init__(self) -> None:
        self.process = JobProcess()
        Finalize(None, self.process.stop, exitpriority=1)  # before a worker that ends waits for it


_own = _OfThread()
