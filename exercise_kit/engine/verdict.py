"""What a check can say: its verdict, its words, and the report that gathers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from exercise_kit.reasons import Reason


class Verdict(StrEnum):
    """The three things that a check can find."""

    PASS = "pass"
    FAIL = "fail"
    UNDECIDED = "undecided"


class Failure(Exception):
    """A check found something wrong.

    Args:
        seen: what the student's code did, as a clause ("patchify returned None").
        expected: what was expected, as a clause ("a tensor of shape (2, 10, 48)"), or "" when ``seen`` says all.
        look: where to look next, as a sentence or a question; never the answer.
        reason: what kind of failure it is.
    """

    def __init__(self, seen: str, expected: str = "", look: str = "", reason: Reason = Reason.DIFFERENT) -> None:
        super().__init__(seen)
        self.seen = seen
        self.expected = expected
        self.look = look
        self.reason = reason


class NotWritten(Failure):
    """The exercise still raises NotImplementedError."""

    def __init__(self, seen: str) -> None:
        super().__init__(seen, reason=Reason.NOT_WRITTEN)


class Undecided(Exception):
    """A check could not decide: why is its message."""

    reason = Reason.UNDECIDABLE


class Waiting(Undecided):
    """A check that the judge decides: it has not earned its share yet. Why is its message."""

    reason = Reason.WAITS_FOR_JUDGE


@dataclass(frozen=True)
class Cause:
    """The likely cause of a failure: a named misconception.

    Attributes: ``name`` ("column order"), ``explanation`` (one sentence), ``question`` (leads out of it),
    ``section`` (the part of a lesson that treats it), ``in_training`` (a sentence on how it looks there, empty where
    nobody has trained with it).
    """

    name: str
    explanation: str
    question: str
    section: str
    in_training: str = ""


@dataclass(frozen=True)
class CheckResult:
    """One line of a report.

    Attributes: ``name`` of the check, its ``claim`` (the sentence that the student reads), its ``verdict``,
    and for a failure ``seen``, ``expected``, ``causes`` (empty when none matches) and ``look``; for an
    undecided check ``seen`` says why. ``reason``: the kind of failure or doubt, None for a check that passed.
    ``again`` tells that an earlier line of the report has explained the same causes; ``worth`` is the check's weight.
    """

    name: str
    claim: str
    verdict: Verdict
    seen: str = ""
    expected: str = ""
    causes: tuple[Cause, ...] = ()
    look: str = ""
    reason: Reason | None = None
    again: bool = False
    worth: float = 1.0

    @property
    def waits(self) -> bool:
        """Whether its share is not earned yet: another check has to pass first, or the judge decides."""
        return self.reason in (Reason.WAITS_FOR_CHECK, Reason.WAITS_FOR_JUDGE)

    @property
    def unwritten(self) -> bool:
        """Whether the student's code still raises NotImplementedError."""
        return self.reason == Reason.NOT_WRITTEN

    @property
    def misconception(self) -> str | None:
        """The name of the likely cause, None where none or several match."""
        return self.causes[0].name if len(self.causes) == 1 else None

    def parts(self) -> Mapping[str, str]:
        """The message's parts under their labels, in the order in which a student reads them."""
        names = " or ".join(f"*{each.name}*" for each in self.causes)
        told = [f"{each.explanation} {each.in_training}".rstrip() for each in self.causes[:1]]
        cause = f"This looks like {names}: {told[0]}" if told else ""
        if len(self.causes) > 1:
            cause = f"This looks like {names}: on this check they give the same numbers."
        look = self.causes[0].question if self.causes else self.look
        section = f" (lesson {self.causes[0].section})" if self.causes else ""
        if self.again:
            cause, look = f"{names}, as above.", ""
        labelled = {
            "Seen": self.seen,
            "Expected": self.expected,
            "Likely cause": cause,
            "Where to look": look + section if look else "",
        }
        return {label: text for label, text in labelled.items() if text}

    @property
    def message(self) -> str | None:
        """The whole message in one paragraph; None for a check that passed."""
        sentences = (f"{label}: {text}" for label, text in self.parts().items())
        return " ".join(each if each[-1] in ".?!" else f"{each}." for each in sentences) or None


@dataclass(frozen=True)
class Report:
    """What ``check`` returns: it shows itself in a notebook and in a terminal.

    Attributes: ``exercise``, ``results`` in the order of the checks, ``points`` that the exercise is worth
    (None outside of a graded cell), ``problem`` when nothing could be checked at all, ``complete`` unless a part
    of a class still has to be written: what it inherits or has by default earns nothing; and a ``note``, a sentence
    that comes before the results.
    """

    exercise: str
    results: tuple[CheckResult, ...] = ()
    points: float | None = None
    problem: str | None = None
    complete: bool = True
    note: str | None = None

    def __post_init__(self) -> None:
        if self.points is not None and not 0 <= self.points < float("inf"):
            raise ValueError(f"points must be a finite number from 0 up, not {self.points}")

    @property
    def passed(self) -> bool:
        """Whether every check that could be decided passed, and at least one did."""
        passing = all(each.verdict == Verdict.PASS for each in self._counted())
        return self.problem is None and self.fraction > 0 and passing

    @property
    def fraction(self) -> float:
        """The share of the points earned, from 0 to 1, each check by its worth.

        A check that waits for another one has not earned its share yet; a check that this machine cannot
        decide does not count at all. Nothing is earned before everything is written.
        """
        if not self.complete:
            return 0.0
        counted = self._counted()
        earned = sum(each.worth for each in counted if each.verdict == Verdict.PASS)
        return earned / sum(each.worth for each in counted) if earned else 0.0

    def _counted(self) -> list[CheckResult]:
        return [each for each in self.results if each.verdict != Verdict.UNDECIDED or each.waits]

    @property
    def score(self) -> float | None:
        """The points earned, None outside of a graded cell."""
        return None if self.points is None else min(round(self.points * self.fraction, 4), float(self.points))

    @property
    def misconceptions(self) -> tuple[str, ...]:
        """Names of the misconceptions found, each once, in the order of the checks."""
        return tuple(dict.fromkeys(each.misconception for each in self.results if each.misconception))

    def as_dict(self) -> dict[str, object]:
        """The report as JSON types, in the form of an exercise in ``vit-course grade --json``."""
        return {
            "name": self.exercise,
            "score": self.score,
            "max_score": self.points,
            "misconception": self.misconceptions[0] if self.misconceptions else None,
            "problem": self.problem or self.note,
            "checks": [
                {
                    "name": each.name,
                    "claim": each.claim,
                    "verdict": str(each.verdict),
                    "message": each.message,
                    "parts": dict(each.parts()),
                    "misconception": each.misconception,
                }
                for each in self.results
            ],
        }

    def summary(self) -> str:
        """One line: how many checks pass, and the points where there are some."""
        passing = sum(each.verdict == Verdict.PASS for each in self.results)
        total = len(self.results)
        verb = "passes" if 1 in (passing, total) else "pass"
        line = f"{self.exercise}: {passing} of {total} check{'' if total == 1 else 's'} {verb}"
        if self.score is not None:
            line += f", {round(self.score, 2):g} of {self.points:g} points"
        return line if self.complete else f"{line}; something in it is not written yet"

    def __str__(self) -> str:
        from exercise_kit.engine.show import as_text

        return as_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        from exercise_kit.engine.show import as_mimebundle

        return as_mimebundle(self)
