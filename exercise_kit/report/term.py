"""The course of a term: lesson by lesson how many handed in, what they earned, and how soon they passed.

When a lesson was released is the time of its notebook in ``release/``, and when it was handed in stands in nbgrader's
``timestamp.txt``. nbgrader keeps a student's last file, so earlier attempts are not seen. What is not known is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, quantiles

from exercise_kit.report.answers import HALF
from exercise_kit.report.collect import State, SubmittedWork
from exercise_kit.report.tally import Tally
from exercise_kit.submission.notebook_file import Unreadable, read_bytes

TIMESTAMP = "timestamp.txt"
_MOST_BYTES = 200
_DAY = 86_400.0  # seconds


@dataclass(frozen=True)
class TimeToPass:
    """From a lesson's release to the file that earns half of its points or more.

    Attributes:
        days: of those students for whom it is known, in ascending order.
        passed: how many students.
        unknown: why nothing is known; "" where it is known.
    """

    days: tuple[float, ...] = ()
    passed: int = 0
    unknown: str = ""


@dataclass(frozen=True)
class LessonRow:
    """A lesson in numbers; the quartiles and the mean are None where nothing is graded."""

    name: str
    handed_in: int
    students: int
    graded: int
    quartiles: tuple[float, float, float] | None
    mean: float | None
    to_pass: TimeToPass


def count_students(tally: Tally) -> int:
    """Return how many students there are: those of the gradebook, and whoever handed in."""
    book = tally.work.manual_grading
    return len({*(book.students if book else ()), *(each.who for each in tally.work.handed_in)})


def make_lesson_rows(tally: Tally) -> list[LessonRow]:
    """All lessons with work in them, in the course's order."""
    return [_make_row(tally, lesson.name) for lesson in tally.work.lessons]


def _make_row(tally: Tally, lesson: str) -> LessonRow:
    here = [each for each in tally.work.handed_in if each.lesson == lesson]
    shares = tally.shares(lesson)
    first, middle, last = quantiles(shares, n=4, method="inclusive") if len(shares) > 1 else (shares * 3 or [0] * 3)
    return LessonRow(
        name=lesson,
        handed_in=len(here),
        students=len({each.who for each in here}),
        graded=sum(each.state in (State.GRADED, State.OLDER, State.PARTLY) for each in here),
        quartiles=(first, middle, last) if shares else None,
        mean=mean(shares) if shares else None,
        to_pass=_measure_time_to_pass(tally.work.folder, lesson, here),
    )


def _measure_time_to_pass(folder: Path | None, lesson: str, works: Sequence[SubmittedWork]) -> TimeToPass:
    passed = [each for each in works if each.result and each.result.worth and _has_passed(each)]
    students = len({each.who for each in passed})
    if folder is None:
        return TimeToPass((), students, "not known: a file of results holds no times")
    release = folder / "release" / lesson / f"{lesson}.ipynb"
    if not release.is_file():
        return TimeToPass((), students, f"not known: there is no release/{lesson}/{lesson}.ipynb")
    released = datetime.fromtimestamp(release.stat().st_mtime, UTC)
    if any(time < released for time in _find_first_times(works).values()):
        return TimeToPass((), students, "not known: the released notebook is newer than some that were handed in")
    times = _find_first_times(passed)
    days = sorted((time - released).total_seconds() / _DAY for time in times.values())
    return TimeToPass(tuple(days), students, "" if days else f"not known: no {TIMESTAMP} beside a notebook that passes")


def _has_passed(work: SubmittedWork) -> bool:
    return bool(work.result and work.result.score >= HALF * work.result.worth)


def _find_first_times(works: Iterable[SubmittedWork]) -> dict[str, datetime]:
    """When each student handed in first, of those files of which it is known."""
    times: dict[str, datetime] = {}
    for each in works:
        time = _read_timestamp(each.path.parent / TIMESTAMP)
        if time:
            times[each.who] = min(time, times.get(each.who, time))
    return times


def _read_timestamp(file: Path) -> datetime | None:
    """The time in a file of nbgrader's, which writes UTC; None: there is none that can be read."""
    try:
        text = read_bytes(file, _MOST_BYTES).decode().strip()
        time = datetime.fromisoformat(text.removesuffix("UTC").strip())
    except (Unreadable, OSError, ValueError):
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
