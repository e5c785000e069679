"""A student's progress: what is done, what it earned, what comes next; computed from their log, and shown by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name
from exercise_kit.engine.release_settings import Route, read_release_settings
from exercise_kit.progress import log
from exercise_kit.progress.predictions import Prediction, read_predictions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST_PAUSE = 10 * 60  # seconds without a sign of work after which time does not count as spent
_DONE = ("passed", "judged")
_HEADER_OF_PART = re.compile(r"^# %% (\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class LessonProgress:
    """One lesson.

    Attributes:
        name, title: of the lesson.
        to_do, done: its exercises.
        earned: points, by the best report of each exercise.
        worth: points of all its exercises.
        questions: written answers, which a person reads.
        seconds: spent.
        minutes: that it is estimated to take.
        core: whether it belongs to the core of the course.
        optional: those of its exercises that may be skipped.
        guesses: that were compared with a result.
        right: how many of them.
        met: mistakes that a check has named.
        mended: how many of them.
    """

    name: str
    title: str = ""
    to_do: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    earned: float = 0.0
    worth: float = 0.0
    questions: int = 0
    seconds: float = 0.0
    minutes: int = 0
    guesses: int = 0
    right: int = 0
    met: int = 0
    mended: int = 0
    core: bool = False
    optional: tuple[str, ...] = ()

    def list_core_exercises(self, exercises: Iterable[str]) -> tuple[str, ...]:
        """Those of its exercises that belong to the core."""
        return tuple(each for each in exercises if self.core and each not in self.optional)

    @property
    def begun(self) -> bool:
        """Whether anything of it is known."""
        return bool(self.seconds or self.earned or self.done or self.guesses)


@dataclass(frozen=True)
class Progress:
    """A student's way through a course; it shows itself in a notebook and in a terminal.

    Attributes:
        lessons: in order.
        here: the lesson of this notebook.
        last: the lesson that was worked on last.
        highlights: sentences on results of their own.
        parts: the exercises whose answers are kept, by name.
        remarks: on what could not be read.
    """

    lessons: tuple[LessonProgress, ...]
    here: str | None = None
    last: str | None = None
    highlights: tuple[str, ...] = ()
    parts: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = field(default=())

    @property
    def complete(self) -> bool:
        """Whether every exercise of the course is done."""
        return bool(self.lessons) and not any(each.to_do for each in self.lessons)

    @property
    def next(self) -> str:
        """What to do next, as a sentence."""
        names = [each.name for each in self.lessons]
        at = self.here or self.last or ""
        start = names.index(at) if at in names else 0
        ahead = next((each for each in (*self.lessons[start:], *self.lessons[:start]) if each.to_do), None)
        if ahead is None:
            return "Every exercise is done."
        where = "here" if ahead.name == self.here else f"in {ahead.name}"
        skip = " It may be skipped." if ahead.to_do[0] in ahead.optional else ""
        return f"Next: `{ahead.to_do[0]}`, {where}.{skip}"

    def total(self, attribute: str) -> float:
        """The sum of an attribute over the lessons."""
        return sum(getattr(each, attribute) for each in self.lessons)

    def card(self) -> Figure:
        """A picture of it all."""
        from exercise_kit.progress.show import draw_progress_card

        return draw_progress_card(self)

    def __str__(self) -> str:
        from exercise_kit.progress.show import render_as_text

        return render_as_text(self)

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        from exercise_kit.progress.show import render_as_html

        return {"text/plain": str(self), "text/html": render_as_html(self)}


def progress(*given: object) -> Progress:
    """What you have done, what it earned, and what comes next; kept in a file of yours that nobody else sees.

    Args:
        given: nothing is asked for; whoever gives the name of a lesson is told so.

    Returns:
        what shows itself as the value of a cell; its ``card()`` is a picture.
    """
    if given:
        print("Write `progress()`, with nothing in the brackets: it shows all lessons.")
    known = log.read_current_events()
    here = next((each["lesson"] for each in reversed(known.events) if _is_of_this_session(each)), None)
    return summarize_events(known.events, log.find_log_file().parent, here, _list_remarks(known.unreadable))


def read_progress(folder: Path) -> Progress:
    """The progress that is kept in a folder.

    Raises:
        log.LogError: its log cannot be read.
    """
    known = log.read(folder / log.FILE)
    return summarize_events(known.events, folder, None, _list_remarks(known.unreadable))


def summarize_events(
    events: Sequence[log.Event], folder: Path, current_lesson: str | None = None, remarks: tuple[str, ...] = ()
) -> Progress:
    """Return what a log says.

    Args:
        events: in the order of their times.
        folder: that of the student's own parts.
        current_lesson: the lesson of the notebook that asks.
        remarks: sentences to be shown with it.
    """
    placed = _add_lessons_to_events(events)
    found = read_predictions(tuple(events))
    lesson_of = {each["name"]: each["lesson"] for each in placed if "name" in each and each["lesson"]}
    lessons = []
    for name in _list_lessons({each["lesson"] for each in placed}):
        guesses = [each for prediction, each in found.items() if lesson_of.get(prediction) == name]
        lessons.append(_summarize_lesson(name, [each for each in placed if each["lesson"] == name], guesses))
    last = next((each["lesson"] for each in reversed(placed) if each["lesson"]), None)
    return Progress(
        tuple(lessons),
        current_lesson,
        last,
        tuple(_list_highlights(found)),
        _find_exercises_with_kept_parts(folder),
        remarks,
    )


def _list_lessons(worked_on: Collection[str]) -> list[str]:
    """The lessons of this release, and those that a student has worked on all the same."""
    every = dict.fromkeys((*_read_outline(), *course().lessons))
    if read_release_settings().route is Route.ALL:
        return [*every]
    return [name for name in every if _read_outline().get(name, {}).get("core") or name in worked_on]


def _is_of_this_session(event: log.Event) -> bool:
    return event["s"] == log.get_session_name() and event.get("lesson") in course().lessons


def _list_remarks(unreadable: int) -> tuple[str, ...]:
    lines = "1 line" if unreadable == 1 else f"{unreadable} lines"
    off = f"Nothing is noted: {log.SWITCH} is off." if log.is_log_switched_off() else ""
    unread = f"{lines} of {log.FILE} cannot be read, and {'is' if unreadable == 1 else 'are'} passed over."
    return tuple(filter(None, (unread if unreadable else "", off)))


def _add_lessons_to_events(events: Sequence[log.Event]) -> list[log.Event]:
    """The events, each with its lesson: that of the check before it in the same kernel, or of the first one there."""
    current: dict[str, str] = {}
    for event in reversed(events):
        if "lesson" in event:
            current[event["s"]] = event["lesson"]  # in the end, of each kernel the first
    placed: list[log.Event] = []
    for event in events:
        current[event["s"]] = event.get("lesson", current.get(event["s"], ""))
        placed.append({**event, "lesson": current[event["s"]]})
    return placed


def _summarize_lesson(name: str, events: Sequence[log.Event], guesses: Sequence[Prediction]) -> LessonProgress:
    known = _read_outline().get(name, {})
    checks = [each for each in events if each["kind"] == "check"]
    of_course = dict.fromkeys((each.name for each in course().exercises.values() if each.lesson == name), 0.0)
    points = known.get("points", of_course) | {each["exercise"]: float(each["points"]) for each in checks}
    best = dict.fromkeys(points, 0.0)
    for each in checks:
        best[each["exercise"]] = max(best[each["exercise"]], min(float(each["share"]), 1.0))
    passed = {each["exercise"] for each in checks if each["state"] in _DONE}
    met, mended = _count_mistakes(checks)
    return LessonProgress(
        name,
        known.get("title", ""),
        tuple(each for each in points if each not in passed),
        tuple(each for each in points if each in passed),
        sum(points[each] * share for each, share in best.items()),
        sum(points.values()),
        len(known.get("questions", ())),
        _sum_working_seconds(float(each["t"]) for each in events),
        known.get("minutes", 0),
        sum(each.right is not None for each in guesses),
        sum(each.right is True for each in guesses),
        met,
        mended,
        known.get("core", False),
        tuple(each for each, task in known.get("tasks", {}).items() if task["skip"]),
    )


def _count_mistakes(checks: Iterable[log.Event]) -> tuple[int, int]:
    """Return how many mistakes were named, and how many of them were in an exercise that passed later."""
    open_ones: dict[str, set[str]] = {}
    mended: set[tuple[str, str]] = set()
    met: set[tuple[str, str]] = set()
    for each in checks:
        name = each["exercise"]
        mistakes = open_ones.setdefault(name, set())
        mistakes.update(each["mistakes"])
        met.update((name, mistake) for mistake in each["mistakes"])
        if each["state"] in _DONE:
            mended.update((name, mistake) for mistake in mistakes)
    return len(met), len(mended)


def _sum_working_seconds(times: Iterable[float]) -> float:
    """The time spent: from each sign of work to the next, unless there is a long pause between."""
    known = sorted(times)
    gaps = (later - earlier for earlier, later in pairwise(known))
    return sum(gap for gap in gaps if gap <= LONGEST_PAUSE)


def _list_highlights(predictions: Mapping[str, Prediction]) -> Iterable[str]:
    for name, words in course().highlights.items():
        result = predictions[name].result if name in predictions else None
        if isinstance(result, int | float):
            yield words.format(result)


def _find_exercises_with_kept_parts(folder: Path) -> frozenset[str]:
    """The exercises to which a student's file of parts has an answer."""
    try:
        text = (folder / course().own_parts).read_text("utf-8")
    except (OSError, ValueError):
        return frozenset()
    return frozenset(_HEADER_OF_PART.findall(text)) & frozenset(course().exercises)


@cache
def _read_outline() -> dict[str, Any]:
    """The outline that the builder has put into the course's package; empty where there is none."""
    path = files(read_package_name()) / "exercises" / "outline.json"
    known: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return known
