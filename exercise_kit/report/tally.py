"""What a class did, counted: its scores, its failures, its misconceptions and what the library says of them.

It also measures how well an exercise separates strong from weak students: its discrimination, the corrected item-total
correlation. That is Pearson's correlation, over students, between the points in the exercise and the points in all
other exercises. It is "corrected" because the total leaves out the exercise itself (J. C. Nunnally and I. H.
Bernstein, Psychometric Theory, 3rd edition, 1994). Where an exercise gives all of its points or none, it is the
point-biserial correlation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import atanh, sqrt, tanh
from statistics import StatisticsError, correlation, median

from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Misconception
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.verdict import BETWEEN
from exercise_kit.judge.result import ExerciseResult
from exercise_kit.report.answers import (
    CheckTally,
    ExerciseTally,
    GradedAnswer,
    Lost,
    find_first_unexplained_failure,
    is_unevaluated,
    is_unwritten,
    list_failures,
    split_lost_points,
)
from exercise_kit.report.collect import ClassWork


@dataclass(frozen=True)
class KnownMistake:
    """A misconception as the page shows it; all but the name is empty where the library no longer has it."""

    name: str
    explanation: str = ""
    question: str = ""
    section: str = ""
    in_training: str = ""


def find_known_mistakes(exercise: str, name: str) -> Iterator[KnownMistake]:
    """The misconception of that name, or the two of which it is made."""
    library = _map_names_to_mistakes(exercise)
    parts = name.split(BETWEEN)
    if name not in library and len(parts) > 1 and all(part in library for part in parts):
        yield from (library[part] for part in parts)
    else:
        yield library.get(name, KnownMistake(name))


@cache
def _map_names_to_mistakes(exercise: str) -> dict[str, KnownMistake]:
    found = course().exercises.get(exercise)
    return {each.name: _make_known_mistake(each) for each in found.misconceptions} if found else {}


def _make_known_mistake(mistake: Misconception) -> KnownMistake:
    cause = mistake.cause
    return KnownMistake(
        cause.name, cause.explanation, cause.question, cause.section, _describe_training_effect(mistake)
    )


def _describe_training_effect(mistake: Misconception) -> str:
    if mistake.effect.kind is InTraining.UNMEASURED:
        return ""
    return mistake.effect.sentence or f"{mistake.effect.kind[:1].upper()}{mistake.effect.kind[1:]}."


@dataclass
class Mistake:
    """A misconception: what the library says of it, who made it, where, and what it cost."""

    misconception: KnownMistake
    lost: float = 0.0
    answers: dict[tuple[str, str], GradedAnswer] = field(default_factory=dict)
    together: int = 0

    @property
    def students(self) -> int:
        """How many students made it."""
        return len({each.work.who for each in self.answers.values()})

    @property
    def exercises(self) -> Counter[str]:
        """How many answers to which exercise it is in."""
        return Counter(each.result.name for each in self.answers.values())


@dataclass
class UnexplainedGroup:
    """Wrong answers alike that no misconception explains: in which exercise, of what kind, which claims failed."""

    exercise: str
    kind: str
    claims: tuple[str, ...]
    answers: list[GradedAnswer] = field(default_factory=list)


@dataclass(frozen=True)
class Tally:
    """All counts of a class.

    Attributes:
        work: that is counted.
        exercises: in the course's order.
        mistakes: the costliest first.
        unexplained: the most frequent first.
        unevaluated: the most frequent first.
        following: exercise → how many of its answers have no name, but build on an earlier answer of the same notebook
            that is wrong too.
    """

    work: ClassWork
    exercises: tuple[ExerciseTally, ...]
    mistakes: tuple[Mistake, ...]
    unexplained: tuple[UnexplainedGroup, ...]
    unevaluated: tuple[UnexplainedGroup, ...]
    following: Counter[str]

    def shares(self, lesson: str | None = None) -> list[float]:
        """The share of its points that each graded file earned, in order of size."""
        results = [each.result for each in self.work.handed_in if lesson in (None, each.lesson)]
        return sorted(each.score / each.worth for each in results if each and each.worth)

    @property
    def median(self) -> float | None:
        """The median of these; None: nothing is graded."""
        shares = self.shares()
        return median(shares) if shares else None

    @property
    def lost(self) -> dict[Lost, float]:
        """The points that were lost, by their reason."""
        return {why: sum(each.lost.get(why, 0.0) for each in self.exercises) for why in Lost}

    def find_costliest_exercise(self, reason: Lost) -> ExerciseTally:
        """The exercise in which the class lost most points for this reason."""
        return max(self.exercises, key=lambda each: each.lost.get(reason, 0.0))

    @property
    def flags(self) -> Counter[str]:
        """How many files bear each flag."""
        return Counter(flag for each in self.work.handed_in if each.result for flag in each.result.flags)

    @property
    def seconds(self) -> list[float]:
        """What grading a file took, in order of size."""
        return sorted(each.result.seconds for each in self.work.handed_in if each.result and each.result.seconds)


def tally_class(work: ClassWork) -> Tally:
    """Count."""
    counting = _Counting(work)
    for answer in _list_answers(work):
        counting.count(answer)
    ranked = sorted(counting.mistakes.values(), key=lambda each: (-each.lost, -each.students, each.misconception.name))
    first_unexplained, unevaluated = (
        _sort_groups_by_size(counting.unexplained),
        _sort_groups_by_size(counting.unevaluated),
    )
    return Tally(
        work, tuple(counting.exercises.values()), tuple(ranked), first_unexplained, unevaluated, counting.following
    )


class _Counting:
    def __init__(self, work: ClassWork) -> None:
        self.exercises = {
            (lesson.name, name): ExerciseTally(name, lesson.name, points)
            for lesson in work.lessons
            for name, points in lesson.points.items()
        }
        self.mistakes: dict[KnownMistake, Mistake] = {}
        self.unexplained: dict[tuple[str, ...], UnexplainedGroup] = {}
        self.unevaluated: dict[tuple[str, ...], UnexplainedGroup] = {}
        self.following = Counter[str]()
        self._builds_on = {lesson.name: lesson.builds_on() for lesson in work.lessons}

    def count(self, answer: GradedAnswer) -> None:
        lesson, result = answer.work.lesson or "", answer.result
        exercise = self.exercises.get((lesson, result.name))
        if exercise is None:  # of an older release of the lesson
            return
        exercise.answers.append(answer)
        follows = self._builds_on_wrong_answer(answer, self._builds_on[lesson].get(result.name, frozenset()))
        named = _count_lost_points(exercise, answer, self.mistakes, follows)
        if is_unwritten(result):
            return
        if is_unevaluated(result):
            _add_to_group(self.unevaluated, answer, result.kind, ())
            return
        _count_checks(exercise, result)
        check = None if named else find_first_unexplained_failure(result)
        if check and follows:
            self.following[result.name] += 1
        elif check:
            _add_to_group(
                self.unexplained, GradedAnswer(answer.work, result, check), check.kind, _list_failed_claims(result)
            )

    def _builds_on_wrong_answer(self, answer: GradedAnswer, earlier: frozenset[str]) -> bool:
        """Say whether an answer builds on another one of the same notebook that is wrong."""
        others = answer.work.result.exercises if answer.work.result else ()
        return any(each.name in earlier and each.score < each.max_score and not each.waits for each in others)


def _list_answers(work: ClassWork) -> Iterator[GradedAnswer]:
    for each in work.handed_in:
        for result in each.result.exercises if each.result else ():
            if not result.waits:
                yield GradedAnswer(each, result)


def _count_checks(exercise: ExerciseTally, result: ExerciseResult) -> None:
    for check in result.checks:
        claim = check.claim or check.name.removeprefix("test_").replace("_", " ")
        counts = exercise.checks.setdefault(check.name, CheckTally(check.name, claim))
        counts.passed += check.verdict == "pass"
        counts.failed += check.verdict == "fail"
        counts.undecided += check.verdict == "undecided"


def _count_lost_points(
    exercise: ExerciseTally, answer: GradedAnswer, mistakes: dict[KnownMistake, Mistake], is_consequence: bool
) -> bool:
    """Count the points that an answer lost; whether some of them went to a misconception."""
    named = False
    for share in split_lost_points(answer.result, is_consequence):
        exercise.lost[share.why] = exercise.lost.get(share.why, 0.0) + share.points
        if share.check is None or not share.name:
            continue
        named = True
        parts = list(find_known_mistakes(exercise.name, share.name))
        for part in parts:
            mistake = mistakes.setdefault(part, Mistake(part))
            mistake.lost += share.points / len(parts)
            place = answer.work.who, exercise.name
            if place not in mistake.answers:
                mistake.answers[place] = GradedAnswer(answer.work, answer.result, share.check)
                mistake.together += len(parts) > 1
    return named


def _list_failed_claims(result: ExerciseResult) -> tuple[str, ...]:
    return tuple(check.claim or check.name for check in list_failures(result))


def _add_to_group(
    groups: dict[tuple[str, ...], UnexplainedGroup], answer: GradedAnswer, kind: str, claims: tuple[str, ...]
) -> None:
    place = answer.result.name, kind, *claims
    groups.setdefault(place, UnexplainedGroup(answer.result.name, kind, claims)).answers.append(answer)


def _sort_groups_by_size(groups: Mapping[tuple[str, ...], UnexplainedGroup]) -> tuple[UnexplainedGroup, ...]:
    return tuple(sorted(groups.values(), key=lambda each: (-len(each.answers), each.exercise, each.kind)))


LEAST_STUDENTS = 10
CLEAR = 0.4
_Z = 1.96  # of a 95 % interval
_NEARLY_ONE = 1 - 1e-9

_Place = tuple[str, str]  # lesson and exercise


@dataclass(frozen=True)
class Discrimination:
    """How well an exercise separates strong from weak students.

    Attributes:
        exercise: its name.
        students: how many it is computed from.
        index: from -1 to 1; None: too few students, or all earned the same.
        interval: its 95 % interval, by Fisher's transformation.
    """

    exercise: ExerciseTally
    students: int
    index: float | None = None
    interval: tuple[float, float] = (-1.0, 1.0)

    @property
    def sentence(self) -> str:
        """What it says, and no more."""
        if not self.students:
            return "nothing can be said: nobody who did it has another graded exercise to compare it with"
        if self.students < LEAST_STUDENTS:
            return f"nothing can be said of {self.students} students: at least {LEAST_STUDENTS} are needed"
        if self.index is None:
            return "nothing can be said: all students earned the same, here or in all else"
        low, high = self.interval
        if high < 0:
            return "students who do well elsewhere do worse here: look at the exercise and its checks"
        if low <= 0:
            return "may be chance: with so few students nobody can say whether it separates strong from weak"
        return "students who do well elsewhere do well here" + ("" if self.index >= CLEAR else ", a little")


def rank_discriminations(exercises: Sequence[ExerciseTally]) -> list[Discrimination]:
    """Of every exercise with answers, how much it tells students apart: the most first, the unknown last."""
    answered = [each for each in exercises if each.answers and each.points]
    earned = _find_best_answers(answered)
    found = [_measure_discrimination(each, earned) for each in answered]
    return sorted(found, key=lambda each: (each.index is None, -(each.index or 0.0)))


def _find_best_answers(exercises: Sequence[ExerciseTally]) -> Mapping[str, Mapping[_Place, GradedAnswer]]:
    """Each student's answers; of several to one exercise the best."""
    earned: dict[str, dict[_Place, GradedAnswer]] = {}
    for exercise in exercises:
        for answer in exercise.answers:
            theirs, key = earned.setdefault(answer.work.who, {}), (exercise.lesson, exercise.name)
            if key not in theirs or theirs[key].share < answer.share:
                theirs[key] = answer
    return earned


def _measure_discrimination(
    exercise: ExerciseTally, earned: Mapping[str, Mapping[_Place, GradedAnswer]]
) -> Discrimination:
    key = exercise.lesson, exercise.name
    here, elsewhere = [], []
    for theirs in earned.values():
        others = [each.result for other, each in theirs.items() if other != key]
        worth = sum(each.max_score for each in others)
        if key in theirs and worth:
            here.append(theirs[key].share)
            elsewhere.append(sum(each.score for each in others) / worth)
    if len(here) < LEAST_STUDENTS:
        return Discrimination(exercise, len(here))
    try:
        index = correlation(here, elsewhere)
    except StatisticsError:  # one of the two is constant
        return Discrimination(exercise, len(here))
    middle, half = atanh(max(-_NEARLY_ONE, min(_NEARLY_ONE, index))), _Z / sqrt(len(here) - 3)
    return Discrimination(exercise, len(here), index, (tanh(middle - half), tanh(middle + half)))
