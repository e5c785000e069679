"""Exercises whose student writes a test: it is asked about right answers, and about impostors of each family.

A test that says no to everything would catch every impostor; so those count only after it has let the right ones pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, NotWritten

Candidate = Callable[..., Any]
TRIES = 3


class Suspect(NamedTuple):
    """A function for a student's test to judge, and what it does, as a clause: "scales the keys beforehand"."""

    described: str
    function: Candidate


@dataclass(frozen=True)
class Interview:
    """How a student's test is asked.

    Attributes: ``kind``, the name of what it is asked about, with its article: "an attend"; ``own``, what the student
    has of that kind: "your own attention".
    """

    kind: str
    own: str

    def problem_with(self, student: Student, suspect: Suspect, is_right: bool, look: str = "") -> Failure | None:
        """The failure when the student's test answers wrong about one suspect, None when it is right.

        Args:
            student: the test.
            suspect: what it is asked about.
            is_right: the right answer.
            look: where to look, for a test that lets an impostor pass.
        """
        described = f"{self.kind} that {'is right: it ' if is_right else ''}{suspect.described}"
        call = f"{student.name}({self.kind.split()[-1]})"
        try:
            answer = student(suspect.function)
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


@dataclass(frozen=True)
class LineUp(Interview):
    """What the public checks ask a student's test about.

    Attributes: ``right`` and, by family, ``wrong`` functions, whose docstrings say what they do, as a clause.
    """

    right: Sequence[Candidate]
    wrong: Mapping[str, Sequence[Candidate]]

    def expect_right_passes(self, student: Student) -> None:
        """Fail unless the test says True to every right function, whatever numbers it draws."""
        for function in self.right:
            tries = [self._judge(student, function, is_right=True, seed=seed) for seed in range(TRIES)]
            failures = [failure for failure in tries if failure]
            if 0 < len(failures) < TRIES:
                failures[0].seen += f", in {len(failures)} of {TRIES} tries"
            self._raise_first(student, failures)

    def expect_caught(self, student: Student, family: str, look: str) -> None:
        """Fail unless the test says False to every function of one family; ``look`` is the question if it does not."""
        found = [self._judge(student, function, is_right=False, look=look) for function in self.wrong[family]]
        self._raise_first(student, [failure for failure in found if failure])

    def _raise_first(self, student: Student, failures: Sequence[Failure]) -> None:
        """Raise the first failure, after the test has been asked about one function of every family.

        These answers go on record, so that a likely cause is named only where the whole pattern fits.
        """
        if failures:
            for family in self.wrong.values():
                self._judge(student, family[0], is_right=False)
            raise failures[0]

    def _judge(
        self, student: Student, function: Candidate, is_right: bool, look: str = "", seed: int = 0
    ) -> Failure | None:
        """Ask about one function, after ``seed``: a test that draws without one draws the same for every function."""
        torch.manual_seed(seed)
        return self.problem_with(student, Suspect(function.__doc__ or "", function), is_right, look)


def is_bool(answer: object) -> bool:
    """Whether it is True or False, be it as a tensor or a number of numpy."""
    if isinstance(answer, torch.Tensor):
        return answer.dtype == torch.bool and answer.numel() == 1
    return type(answer).__name__ in ("bool", "bool_")
