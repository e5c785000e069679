"""How hidden checks ask a test that a student wrote: about right answers and impostors, in a random order.

Saying no to everything catches every impostor, and saying yes to everything lets every right answer pass. So every
check asks about right ones too, and about a right and a wrong one twice: who guesses earns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.impostors import Candidate, Interview, Suspect

RIGHT_ONES = 2  # in a check; the checks of all families ask about each right one at least once


@dataclass(frozen=True)
class HiddenLineUp(Interview):
    """What the hidden checks ask a student's test about.

    Attributes: ``right`` suspects; ``wrong``, which by family draws those of one run; ``unnamed``, which makes of a
    function one with the arguments that the exercise names, and with no name that gives it away.
    """

    right: Sequence[Suspect]
    wrong: Mapping[str, Callable[[Probe], Sequence[Suspect]]]
    unnamed: Callable[[Candidate], Candidate]

    def expect_distinguished(self, student: Student, probe: Probe, family: str, look: str) -> None:
        """Fail unless the test says True to right suspects and False to the wrong ones of ``family``.

        All answers are gathered before the verdict, so that the whole pattern goes on record.
        """
        first = RIGHT_ONES * list(self.wrong).index(family)
        right = [self.right[(first + number) % len(self.right)] for number in range(RIGHT_ONES)]
        wrong = self.wrong[family](probe)
        asked = [*((each, True) for each in (*right, right[0])), *((each, False) for each in (*wrong, wrong[-1]))]
        order = probe.permutation(len(asked)).tolist()
        in_order = [asked[place] for place in order]
        failures = [(is_right, self._judge(student, each, is_right, look)) for each, is_right in in_order]
        for about_right in (True, False):  # a refusal of what is right comes first
            for is_right, failure in failures:
                if failure and is_right == about_right:
                    raise failure

    def _judge(self, student: Student, suspect: Suspect, is_right: bool, look: str) -> Failure | None:
        torch.default_generator.manual_seed(0)  # a test that draws without a seed draws the same for every suspect
        hidden = Suspect(suspect.described, self.unnamed(suspect.function))
        return self.problem_with(student, hidden, is_right, look)
