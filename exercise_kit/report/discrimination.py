"""How much an exercise tells students apart: the corrected item-total correlation.

That is Pearson's correlation, over students, of what they earned in the exercise with what they earned in all others:
where an exercise gives full points or none, the point-biserial correlation. "Corrected" says that the exercise itself
is left out of the total (J. C. Nunnally and I. H. Bernstein, Psychometric Theory, 3rd edition, 1994).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import atanh, sqrt, tanh
from statistics import StatisticsError, correlation

from exercise_kit.report.answers import ExerciseTally, GradedAnswer

LEAST_STUDENTS = 10
CLEAR = 0.4
_Z = 1.96  # of a 95 % interval
_NEARLY_ONE = 1 - 1e-9

_Key = tuple[str, str]  # lesson and exercise


@dataclass(frozen=True)
class Discrimination:
    """How much an exercise tells students apart.

    Attributes: ``exercise``, the number of ``students`` it is computed from, the ``index`` from -1 to 1 (None: too few
    students, or all earned the same), and its 95 % ``interval``, by Fisher's transformation.
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
            return "who does well elsewhere does worse here: look at the exercise and its checks"
        if low <= 0:
            return "may be chance: so few students leave open whether it tells anybody apart"
        return "who does well elsewhere does well here" + ("" if self.index >= CLEAR else ", a little")


def discriminations(exercises: Sequence[ExerciseTally]) -> list[Discrimination]:
    """Of every exercise with answers, how much it tells students apart: the most first, the unknown last."""
    answered = [each for each in exercises if each.answers and each.points]
    earned = _earned(answered)
    found = [_of(each, earned) for each in answered]
    return sorted(found, key=lambda each: (each.index is None, -(each.index or 0.0)))


def _earned(exercises: Sequence[ExerciseTally]) -> Mapping[str, Mapping[_Key, GradedAnswer]]:
    """Each student's answers; of several to one exercise the best."""
    earned: dict[str, dict[_Key, GradedAnswer]] = {}
    for exercise in exercises:
        for answer in exercise.answers:
            theirs, key = earned.setdefault(answer.work.who, {}), (exercise.lesson, exercise.name)
            if key not in theirs or theirs[key].share < answer.share:
                theirs[key] = answer
    return earned


def _of(exercise: ExerciseTally, earned: Mapping[str, Mapping[_Key, GradedAnswer]]) -> Discrimination:
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
