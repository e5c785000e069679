"""What the hidden checks must find about an answer, evaluated in this process and on the library's own objects.

The sandboxed judge has no part in it: it reads the cells, runs them elsewhere, and has to come to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exercise_kit.engine.course import course
from exercise_kit.engine.evaluate_check import Outcome as Found
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.name_failures import name_failures
from exercise_kit.engine.two_mistakes import list_pairs
from exercise_kit.engine.verdict import Verdict
from exercise_kit.hidden_checks import HiddenChecksError
from exercise_kit.hidden_checks.checks import HiddenChecks
from exercise_kit.judge.replays import Replays, find_commonest_misconception, make_isolated_student
from exercise_kit.simulate.answers import Kind, Outcome, SimulatedAnswer

# from which the checks draw when the name of a mistake is looked for: that does not depend on the draws
_KEY = b"a simulated class"


@dataclass(frozen=True)
class Expected:
    """What grading has to find.

    Attributes: ``verdicts`` by the check's name, the ``share`` of the points, and the ``misconception`` that can be
    named.
    """

    verdicts: Mapping[str, str]
    share: float
    misconception: str | None = None


class Oracle:
    """Knows what grading has to find.

    Args:
        checks: the folder of hidden checks.

    Raises:
        HiddenChecksError: with file and line, when they cannot be used.
    """

    def __init__(self, checks: Path) -> None:
        self._checks = HiddenChecks(checks)
        if problems := self._checks.problems:
            raise HiddenChecksError("\n".join(dict.fromkeys(problems.values())))
        self._replays: dict[str, Replays] = {}
        self._named: dict[tuple[str, str, tuple[str, ...]], str | None] = {}

    def predict(self, answer: SimulatedAnswer, key: Callable[[], bytes]) -> Expected:
        """Return what the checks of an answer's exercise find.

        A mistake may show in a check at some sizes only (2 x 2 patches hide what 3 x 3 patches show), so verdicts are
        found with the submission's own key. While the same checks fail, the name of the mistake does not depend on the
        sizes, so it is found once.

        Args:
            answer: the answer.
            key: from which the checks draw when its submission is graded.
        """
        if answer.outcome != Outcome.ASK:
            return self._predict_same_for_all_checks(answer)
        replays = Replays(self._checks, answer.exercise, key())
        outcomes = self._run_checks(answer, replays)
        verdicts = {each.check.name: str(each.result.verdict) for each in outcomes}
        counted = [each for each in outcomes if each.result.verdict != Verdict.UNDECIDED]
        earned = sum(each.check.worth for each in counted if each.result.verdict == Verdict.PASS)
        share = earned / sum(each.check.worth for each in counted) if counted else 0.0
        return Expected(verdicts, share, self._find_mistake_name(answer, outcomes, replays))

    def _run_checks(self, answer: SimulatedAnswer, replays: Replays) -> list[Found]:
        """Return what the checks find about an answer: of one that is a mistake of the library, in its replays."""
        exercise = course().exercises[answer.exercise]
        if wrong := _find_misconception_of_answer(exercise, answer):
            return [replays.outcome(wrong, each.name) for each in self._checks.exercises()[exercise.name]]
        objects = answer.objects or _run_cell_source(answer.source or "", exercise.objects)
        answer_objects = dict(zip(exercise.objects, objects, strict=True))
        return list(self._checks.run(exercise.name, lambda: make_isolated_student(answer_objects), replays.key))

    def _find_mistake_name(self, answer: SimulatedAnswer, outcomes: Sequence[Found], replays: Replays) -> str | None:
        """The name of the mistake, as the judge's own way to find it finds it here."""
        if answer.kind == Kind.TWO:  # one of two hides behind the other on some draws
            return find_commonest_misconception(name_failures(course().exercises[answer.exercise], outcomes, replays))
        failed = _list_failed_checks(outcomes)
        place = answer.exercise, answer.misconception or answer.name, failed
        if place not in self._named:
            if answer.exercise not in self._replays:
                self._replays[answer.exercise] = Replays(self._checks, answer.exercise, _KEY)
            shared = self._replays[answer.exercise]
            same = self._run_checks(answer, shared)
            if failed != _list_failed_checks(same):
                same, shared = list(outcomes), replays
            self._named[place] = find_commonest_misconception(
                name_failures(course().exercises[answer.exercise], same, shared)
            )
        return self._named[place]

    def _predict_same_for_all_checks(self, answer: SimulatedAnswer) -> Expected:
        verdict = Verdict.PASS if answer.outcome == Outcome.PASSES else Verdict.FAIL
        names = (each.name for each in self._checks.exercises()[answer.exercise])
        return Expected({name: str(verdict) for name in names}, float(verdict == Verdict.PASS))


def _find_misconception_of_answer(exercise: Exercise, answer: SimulatedAnswer) -> Misconception | None:
    """The mistake of the library, or two of them, that an answer is made of."""
    library = list_pairs(exercise) if answer.kind == Kind.TWO else exercise.misconceptions
    return next((each for each in library if each.objects == answer.objects), None)


def _list_failed_checks(outcomes: Sequence[Found]) -> tuple[str, ...]:
    return tuple(each.check.name for each in outcomes if each.result.verdict == Verdict.FAIL)


def _run_cell_source(source: str, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return what a cell that needs no other defines."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "<a simulated answer>", "exec"), namespace)  # the source is ours
    return tuple(namespace[name] for name in names)
