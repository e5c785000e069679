"""A student's log: one line of JSON for each guess and check, in a file beside their own parts, for them alone.

Lines are only appended, each by one system call, so that several kernels lose none of each other's lines. Where the
file cannot be written, the notes last as long as the kernel. The log is written in a student's kernel only: not while
nbgrader runs a notebook, not in a test or a script, and not where VIT_COURSE_PROGRESS is "off".
"""

from __future__ import annotations

import functools
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec
from uuid import uuid4

from exercise_kit.engine import own_folder
from exercise_kit.engine.course import course
from exercise_kit.engine.rendering import is_in_notebook_kernel
from exercise_kit.engine.verdict import Report, Verdict
from exercise_kit.reasons import Reason

FILE = "my_progress.jsonl"
SWITCH = "VIT_COURSE_PROGRESS"
VERSION = 1
Event = Mapping[str, Any]
_Arguments = ParamSpec("_Arguments")
_MOST_BYTES = 32 << 20
# why a check is undecided that is no matter of the student's
_NOT_THE_STUDENTS = (Reason.WAITS_FOR_JUDGE, Reason.UNDECIDABLE)
_BETWEEN_MARKS = 60.0  # seconds from one sign of activity to the next that is noted
# kind → the fields that a line of it has, with their types
_FIELDS: dict[str, dict[str, tuple[type, ...]]] = {
    "active": {},
    "check": {"exercise": (str,), "points": (int, float), "share": (int, float), "state": (str,), "mistakes": (list,)},
    "guess": {"name": (str,), "guess": (int, float, str)},
    "result": {"name": (str,), "result": (int, float, str), "right": (bool, type(None))},
}
# of this process: what no file would take, and the folders of which that has been said
_in_memory: list[Event] = []
_reported: set[Path] = set()
_session = uuid4().hex[:12]
_last_note = 0.0


@dataclass(frozen=True)
class Log:
    """What a log holds.

    Attributes: ``events`` in the order of their times; ``unreadable``, how many lines could not be read.
    """

    events: tuple[Event, ...]
    unreadable: int = 0


class LogError(Exception):
    """A log cannot be read at all; the message says why."""


def is_logging() -> bool:
    """Say whether something is noted in a file here."""
    by_nbgrader = "NBGRADER_EXECUTION" in os.environ
    return is_in_notebook_kernel() and not by_nbgrader and not is_log_switched_off()


def is_log_switched_off() -> bool:
    """Say whether the student, or a test, does not want a file."""
    return os.environ.get(SWITCH, "").strip().lower() in ("off", "0", "no", "false")


def find_log_file() -> Path:
    """The file of the student who works here."""
    try:
        return own_folder.find_own_folder() / FILE
    except OSError:  # the folder that this kernel stood in is gone
        return Path(FILE)


def note(kind: str, **fields: object) -> None:
    """Append a line; where that cannot be done, keep it for this process, and say so once."""
    global _last_note
    event = {"v": VERSION, "t": round(time.time(), 1), "s": _session, "kind": kind, **fields}
    if not is_logging():
        _in_memory.append(event)
        return
    _last_note = time.monotonic()
    _note_cell_runs()
    path = Path(FILE)
    try:
        path = find_log_file()
        if "lesson" not in event and (lesson := _guess_lesson()):
            event["lesson"] = lesson
        _repair_log(path)
        _append_events(path, [event])
    except OSError as error:
        _in_memory.append(event)
        if path not in _reported:
            _reported.add(path)
            print(
                f"Guesses and progress cannot be kept in {path} ({error.strerror}): they last as long as this kernel."
            )


def read_current_events() -> Log:
    """Return what is known in this kernel: what its file holds, and what no file would take."""
    log = Log(())
    if is_logging():
        with suppress(OSError):
            _repair_log(find_log_file())
        with suppress(LogError, OSError):
            log = read(find_log_file())
    events = sorted((*log.events, *_in_memory), key=lambda each: float(each["t"]))
    return Log(tuple(events), log.unreadable)


def get_session_name() -> str:
    """The name by which lines of this process are known."""
    return _session


def read(path: Path) -> Log:
    """A log's lines; those that cannot be read are counted.

    Raises:
        LogError: it is no file, too large, or not to be read.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise LogError(f"{path.name} is larger than {_MOST_BYTES >> 20} MB")
        content = path.read_bytes()
    except FileNotFoundError:
        return Log(())
    except OSError as error:
        raise LogError(f"{path.name} cannot be read: {error.strerror}") from None
    lines = [line for line in content.split(b"\n") if line.strip()]
    events = [event for event in map(_read_event, lines) if event is not None]
    return Log(tuple(sorted(events, key=lambda each: float(each["t"]))), len(lines) - len(events))


def delete(path: Path) -> list[Path]:
    """Delete a log, and the older ones beside it; returns what was there."""
    found = sorted({*path.parent.glob(f"{path.stem}.before*{path.suffix}"), *([path] if path.is_file() else [])})
    for each in found:
        each.unlink()
    return found


def note_report_in_log(check: Callable[_Arguments, Report]) -> Callable[_Arguments, Report]:
    """Decorate a check that returns a report: the report of a graded cell is noted.

    Without points it is a demonstration, a bug hunt or a trial, and none of the log's business.
    """

    @functools.wraps(check)
    def check_and_note(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> Report:
        report = check(*arguments, **options)
        if report.points and (report.results or report.problem) and is_logging():
            _note_report(report)
        return report

    return check_and_note


def _note_report(report: Report) -> None:
    if known := course().exercises.get(report.exercise):
        mistakes = list(report.misconceptions)
        facts = {"exercise": known.name, "points": report.points, "share": round(report.fraction, 4)}
        note("check", lesson=known.lesson, **facts, state=_classify_report(report), mistakes=mistakes)


def _classify_report(report: Report) -> str:
    """Name the state of an exercise: "passed", "judged" (the rest waits for the judge), "failed", "unwritten"."""
    if report.problem or not report.complete or all(each.unwritten for each in report.results):
        return "unwritten"
    if report.passed:
        return "passed"
    left = [each for each in report.results if each.verdict != Verdict.PASS]
    waits = report.fraction > 0 and all(each.reason in _NOT_THE_STUDENTS for each in left)
    return "judged" if waits else "failed"


def _read_event(line: bytes) -> Event | None:
    """A line, where it is one of ours and every field is what it should be."""
    try:
        event = json.loads(line)
        if not isinstance(event, dict) or event["v"] != VERSION:
            return None
        known = isinstance(event["s"], str) and isinstance(event.get("lesson", ""), str)
        typed = all(isinstance(event[name], types) for name, types in _FIELDS[event["kind"]].items())
        amounts = [event[name] for name in ("t", "points", "share") if name in event]
        others = [event[name] for name in ("guess", "result") if isinstance(event.get(name), int | float)]
        numbers = all(map(_is_valid_amount, amounts)) and all(map(math.isfinite, others))
        words = all(isinstance(each, str) for each in event.get("mistakes", []))
        return event if known and typed and numbers and words else None
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None


def _is_valid_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e11


def _append_events(path: Path, events: list[Event]) -> None:
    """Add lines in one write; what somebody left half written before them ends there."""
    text = "".join(f"{json.dumps(each, ensure_ascii=False, allow_nan=False)}\n" for each in events).encode()
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(handle).st_size
        if size:
            os.lseek(handle, size - 1, os.SEEK_SET)
            text = text if os.read(handle, 1) == b"\n" else b"\n" + text
        os.write(handle, text)
    finally:
        os.close(handle)


_mended: set[Path] = set()


def _repair_log(path: Path) -> None:
    """Once for each file: where lines cannot be read, go on in a new one with the rest, and keep the old beside it."""
    if path in _mended:
        return
    _mended.add(path)
    try:
        log = read(path)
        damage = f"{log.unreadable} of its lines cannot be read" if log.unreadable else ""
    except LogError as error:
        log, damage = Log(()), str(error)
    if damage and path.is_file():
        beside = _find_unused_path(path)
        path.rename(beside)  # and then read again: another kernel may have written meanwhile
        with suppress(LogError):
            log = read(beside)
        _append_events(path, list(log.events))
        print(f"{path.name} is begun anew with what could be read of it: {damage}. The old one is {beside.name}.")


def _find_unused_path(path: Path) -> Path:
    names = (path.with_name(f"{path.stem}.before{number}{path.suffix}") for number in ("", *range(2, 1000)))
    return next(name for name in names if not name.exists())


def _guess_lesson() -> str | None:
    """The lesson whose notebook this is, where JupyterLab, or the name of its folder, tells."""
    names = (Path(os.environ.get("JPY_SESSION_NAME", "")).stem, Path.cwd().name)
    return next((name for name in names if name[:2].isdigit() and name[2:3] == "_"), None)


@functools.cache
def _note_cell_runs() -> None:
    """From now on, note that cells are run: what is read and tried between two checks is time spent, too."""
    from IPython.core.getipython import get_ipython

    get_ipython().events.register("post_run_cell", _note_activity)  # type: ignore[union-attr]  # there is one: `is_logging`


def _note_activity(_: object = None) -> None:
    if time.monotonic() - _last_note > _BETWEEN_MARKS and is_logging():
        note("active")
