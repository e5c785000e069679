"""Whom to talk to, and why: for the private page. Signs, each by a rule that is stated; no judgment of a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import mean, median

from exercise_kit.report.tally import Tally
from exercise_kit.submission.flags import NOT_SANDBOXED, WEAKER_SANDBOX

DUE = 0.5  # of the class handed it in
MISSING = 2  # lessons
SAME = 2  # exercises
DROP = 0.3  # of the points, against the class
EARLIER = 2  # lessons before that
_OF_THE_MACHINE = frozenset({NOT_SANDBOXED, WEAKER_SANDBOX})


class Why(StrEnum):
    """Why to talk to somebody."""

    MISSING = "not handed in"
    SAME = "the same mistake again"
    DROPPED = "less than before"
    FLAGGED = "to look at"
    NOTHING = "nothing earned"


@dataclass(frozen=True)
class Concern:
    """A reason, and what was seen."""

    why: Why
    seen: str


@dataclass(frozen=True)
class Person:
    """A student, and the reasons to talk to them."""

    who: str
    concerns: tuple[Concern, ...]


def find_students_of_concern(tally: Tally) -> list[Person]:
    """The students with a reason; those with most reasons first."""
    shares = _find_shares(tally)
    book = tally.work.manual_grading
    students = dict.fromkeys((*(each.who for each in tally.work.handed_in), *(book.students if book else ())))
    people = [Person(who, tuple(_find_concerns(tally, who, shares, len(students)))) for who in students]
    return sorted(
        (each for each in people if each.concerns), key=lambda each: (-len(each.concerns), each.who.casefold())
    )


def _find_concerns(
    tally: Tally, student_id: str, shares: Mapping[str, Mapping[str, float]], students: int
) -> Iterator[Concern]:
    theirs = {each.lesson for each in tally.work.handed_in if each.who == student_id}
    due = [lesson.name for lesson in tally.work.lessons if _count_students(tally, lesson.name) >= DUE * students]
    missing = [name for name in due if name not in theirs]
    if len(missing) >= MISSING:
        yield Concern(Why.MISSING, ", ".join(missing))
    for mistake in tally.mistakes:
        exercises = [exercise for student, exercise in mistake.answers if student == student_id]
        if len(exercises) >= SAME:
            yield Concern(Why.SAME, f"{mistake.misconception.name}: in {', '.join(exercises)}")
    if dropped := _describe_drop(student_id, shares):
        yield Concern(Why.DROPPED, dropped)
    if nothing := ", ".join(_find_lessons_without_points(tally, student_id)):
        yield Concern(Why.NOTHING, nothing)
    for each in tally.work.handed_in:
        flags = [flag for flag in (each.result.flags if each.result else ()) if flag not in _OF_THE_MACHINE]
        if each.who == student_id and flags:
            yield Concern(Why.FLAGGED, f"{', '.join(flags)} in {each.lesson or each.path.name}")


def _find_lessons_without_points(tally: Tally, student_id: str) -> Iterator[str]:
    """The lessons that were handed in and earned nothing, neither by the judge nor by hand."""
    book = tally.work.manual_grading
    for each in tally.work.handed_in:
        by_hand = book.by_hand.get((student_id, each.lesson)) if book else None
        graded = each.result is not None and each.result.worth > 0 and not each.result.score
        if each.who == student_id and each.result and graded and not (by_hand and by_hand.given):
            yield f"{each.result.points} in {each.lesson}"


def _count_students(tally: Tally, lesson: str) -> int:
    return len({each.who for each in tally.work.handed_in if each.lesson == lesson})


def _find_shares(tally: Tally) -> dict[str, dict[str, float]]:
    """By lesson, in the course's order, and student the share of the points; of several files the best."""
    shares: dict[str, dict[str, float]] = {lesson.name: {} for lesson in tally.work.lessons}
    for each in tally.work.handed_in:
        if each.result and each.result.worth and each.lesson in shares:
            here, share = shares[each.lesson], each.result.score / each.result.worth
            here[each.who] = max(share, here.get(each.who, 0.0))
    return shares


def _describe_drop(student_id: str, shares: Mapping[str, Mapping[str, float]]) -> str:
    """Say how far a student fell in their last lesson against the class, measured from their own past; "": not far."""
    against = {name: here[student_id] - median(here.values()) for name, here in shares.items() if student_id in here}
    *earlier, last = against or [""]
    if len(earlier) < EARLIER:
        return ""
    past, now = mean(against[name] for name in earlier), against[last]
    if past - now < DROP:
        return ""
    return (
        f"{100 * shares[last][student_id]:.0f} % in {last}, {_describe_distance(now)} the class's median; "
        f"in the lessons before it was {_describe_distance(past)} it, in the mean"
    )


def _describe_distance(distance: float) -> str:
    return f"{abs(100 * distance):.0f} points of 100 {'above' if distance >= 0 else 'below'}"
