"""Exercises whose student writes a test: it is asked about right answers, and about impostors of each family.

One table of suspects serves ``check``, and grading, which asks about more of each family. A test that says
no to everything would catch every impostor, and one that says yes to everything would let every right answer pass. So
in ``check`` impostors count only after the right ones have passed, and in grading every check asks about right ones
too, and about a right and a wrong one twice: who guesses earns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, NotWritten

Candidate = Callable[..., Any]
TRIES = 3
RIGHT_ONES = 2  # in a check of grading; the checks of all families ask about each right one at least once


class Suspect(NamedTuple):
    """A function for a student's test to judge, and what it does, as a clause: "scales the keys beforehand"."""

    described: str
    function: Candidate


Family = Callable[[Probe], Sequence[Suspect]]  # draws the wrong suspects of one run


def draw_setting(probe: Probe, low: float, high: float, shown: float) -> float:
    """A setting of a suspect from ``low`` to ``high``; ``shown`` for a probe that is not secret."""
    return float(probe.uniform(1, low=low, high=high)) if probe.is_secret else shown


def add_graded_suspects(shown: Family, graded: Family) -> Family:
    """The wrong suspects of ``shown``; for a probe that is secret, those of ``graded`` too."""
    return lambda probe: [*shown(probe), *(graded(probe) if probe.is_secret else ())]


@dataclass(frozen=True)
class LineUp:
    """What a student's test is asked about.

    Attributes:
        kind: the name of what it is asked about, with its article: "an attend".
        own: what the student has of that kind: "your own attention".
        right: right suspects.
        more_right: those that grading asks about too.
        wrong: wrong suspects, by family.
        unnamed: makes of a function one with the exercise's names of arguments, and with no name that gives it away.
    """

    kind: str
    own: str
    right: Sequence[Suspect]
    more_right: Sequence[Suspect]
    wrong: Mapping[str, Family]
    unnamed: Callable[[Candidate], Candidate]

    def _list_right_suspects(self, probe: Probe) -> tuple[Suspect, ...]:
        return (*self.right, *(self.more_right if probe.is_secret else ()))

    def expect_right_passes(self, student: Student, probe: Probe) -> None:
        """Fail unless the test says True to every right suspect, whatever numbers it draws."""
        for suspect in self._list_right_suspects(probe):
            tries = [self._ask_about_suspect(student, suspect, is_right=True, seed=seed) for seed in range(TRIES)]
            failures = [failure for failure in tries if failure]
            if 0 < len(failures) < TRIES:
                failures[0].seen += f", in {len(failures)} of {TRIES} tries"
            self._raise_first_failure(student, probe, failures)

    def expect_family_is_caught(self, student: Student, probe: Probe, family: str, look: str) -> None:
        """Fail unless the test says False to every wrong suspect of ``family``; ``look`` is the question if not.

        In grading it has to say True to right ones among them.
        """
        if probe.is_secret:
            self._expect_told_from_right_ones(student, probe, family, look)
            return
        found = [
            self._ask_about_suspect(student, each, is_right=False, look=look) for each in self.wrong[family](probe)
        ]
        self._raise_first_failure(student, probe, [failure for failure in found if failure])

    def _expect_told_from_right_ones(self, student: Student, probe: Probe, family: str, look: str) -> None:
        """Ask about all in an order that is drawn. Answers are gathered first: the whole pattern goes on record."""
        every, first = self._list_right_suspects(probe), RIGHT_ONES * list(self.wrong).index(family)
        right = [every[(first + number) % len(every)] for number in range(RIGHT_ONES)]
        wrong = self.wrong[family](probe)
        asked = [*((each, True) for each in (*right, right[0])), *((each, False) for each in (*wrong, wrong[-1]))]
        order = probe.permutation(len(asked)).tolist()
        in_order = [asked[place] for place in order]
        failures = [(is_right, self._ask_about_suspect(student, each, is_right, look)) for each, is_right in in_order]
        for about_right in (True, False):  # a refusal of what is right comes first
            for is_right, failure in failures:
                if failure and is_right == about_right:
                    raise failure

    def _raise_first_failure(self, student: Student, probe: Probe, failures: Sequence[Failure]) -> None:
        """Raise the first failure, after the test has been asked about one suspect of every family.

        These answers go on record, so that a likely cause is named only where the whole pattern fits.
        """
        if failures:
            for family in self.wrong.values():
                self._ask_about_suspect(student, family(probe)[0], is_right=False)
            raise failures[0]

    def _ask_about_suspect(
        self, student: Student, suspect: Suspect, is_right: bool, look: str = "", seed: int = 0
    ) -> Failure | None:
        """The failure when the student's test answers wrong about one suspect, None when it is right.

        Args:
            student: the test.
            suspect: what it is asked about.
            is_right: the right answer.
            look: where to look, for a test that lets an impostor pass.
            seed: a test that draws without one draws the same for every suspect.
        """
        _seed_global_generators(seed)
        described = f"{self.kind} that {'is right: it ' if is_right else ''}{suspect.described}"
        call = f"{student.name}({self.kind.split()[-1]})"
        try:
            answer = student(self.unnamed(suspect.function))
        except NotWritten:
            raise
        except Failure as failure:
            asks = f"A fact may turn out false, but {student.name} should still answer. What could it return then?"
            seen = f"{failure.seen}; it was asked about {described}"
            return Failure(seen, str(is_right), (is_right and failure.look) or asks)
        if not is_bool(answer):
            seen = "None" if answer is None else f"a {type(answer).__name__}"
            line = "Does every path end in a `return`?" if answer is None else "What does your `return` line give back?"
            return Failure(f"{call} gives {seen}", "True or False", line)
        if bool(answer) is is_right:
            return None
        far = f"Print what your test compares, for {self.own}. Is a fact of yours wrong, or only too strict?"
        return Failure(f"{call} is {bool(answer)} for {described}", str(is_right), far if is_right else look)


def _seed_global_generators(seed: int) -> None:
    """Seed what draws without a generator; ``torch.manual_seed`` formats the whole stack where CUDA has not begun."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def is_bool(answer: object) -> bool:
    """Say whether it is True or False, be it as a tensor or a number of numpy."""
    if isinstance(answer, torch.Tensor):
        return answer.dtype == torch.bool and answer.numel() == 1
    return type(answer).__name__ in ("bool", "bool_")
