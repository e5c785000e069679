"""The four answers of a diagnosis, kept apart, and the report of them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from pathlib import Path

from exercise_kit.engine.verdict import Cause, CheckResult, Report, Verdict
from exercise_kit.reasons import Reason
from vit_course.diagnosis.watch import Op


class Answer(StrEnum):
    """What a property's question can end in."""

    WRONG = "wrong"
    UNUSUAL = "unusual"
    NOT_ASKED = "not asked"
    HOLDS = "holds"


_VERDICT = {
    Answer.WRONG: (Verdict.FAIL, Reason.DIFFERENT),
    Answer.UNUSUAL: (Verdict.UNDECIDED, Reason.REMARK),
    Answer.NOT_ASKED: (Verdict.UNDECIDED, Reason.UNDECIDABLE),
    Answer.HOLDS: (Verdict.PASS, None),
}


class NotAsked(Exception):
    """A property could not be asked of this model: why is its message."""


@dataclass(frozen=True)
class Finding:
    """One answer.

    Attributes: the property ``asked``, and the ``claim`` that holds of every plain ViT; ``seen``, with numbers, or why
    it could not be asked; ``mistake``, the library's name as ("exercise", "name") where one fits; ``module``, ``file``
    and ``line`` where they are known.
    """

    asked: str
    claim: str
    answer: Answer
    seen: str = ""
    mistake: tuple[str, str] | None = None
    module: str = ""
    file: str = ""
    line: int = 0

    def place(self) -> str:
        """ "`blocks.0.attention` (vit.py, line 59)", or as much of it as is known."""
        line = f"{Path(self.file).name}, line {self.line}" if self.file else ""
        if self.module and line:
            return f"`{self.module}` ({line})"
        return f"`{self.module}`" if self.module else line

    def as_result(self, waits_for: str = "") -> CheckResult:
        """The finding as a line of a report of the kind that ``check`` gives."""
        verdict, reason = _VERDICT[self.answer]
        place = self.place()
        seen = f"{self.seen}, in {place}" if place and self.seen else self.seen
        causes = (_cause(*self.mistake),) if self.mistake else ()
        name = self.asked
        return CheckResult(
            name, self.claim, verdict, seen, causes=causes, reason=reason, word=str(self.answer), waits_for=waits_for
        )

    def as_dict(self) -> dict[str, object]:
        """The finding as JSON types."""
        result = self.as_result()
        return {
            "property": self.asked,
            "claim": self.claim,
            "answer": str(self.answer),
            "seen": self.seen or None,
            "mistake": self.mistake[1] if self.mistake else None,
            "pages": dict(result.pages()),
            "module": self.module or None,
            "file": self.file or None,
            "line": self.line or None,
        }


@cache
def _cause(exercise: str, name: str) -> Cause:
    # the catalog takes seconds to load, and a right model has no need of it
    exercises = import_module("vit_course.exercises.catalog").EXERCISES
    return next(each.cause for each in exercises[exercise].misconceptions if each.name == name)


@dataclass(frozen=True)
class Remark:
    """What a property's question says of a model, before it is known whose question it was."""

    answer: Answer
    seen: str
    mistake: tuple[str, str] | None = None
    at: Op | None = None
    module: str = ""


def wrong(seen: str, mistake: str = "", at: Op | None = None, module: str = "") -> Remark:
    """A property is broken that every ViT has; ``mistake`` is "exercise: name" in the library."""
    return Remark(Answer.WRONG, seen, _key(mistake), at, module)


def unusual(seen: str, mistake: str = "", at: Op | None = None, module: str = "") -> Remark:
    """A choice that has arguments, and differs from the plain ViT."""
    return Remark(Answer.UNUSUAL, seen, _key(mistake), at, module)


def _key(mistake: str) -> tuple[str, str] | None:
    exercise, _, name = mistake.partition(": ")
    return (exercise, name) if name else None


Remarks = Iterator[Remark]


@dataclass(frozen=True)
class Diagnosis(Report):
    """What :func:`vit_course.diagnose` returns: it shows itself in a notebook and in a terminal.

    Attributes: ``findings``, one or more for each property that was asked.
    """

    findings: tuple[Finding, ...] = field(default=(), kw_only=True)

    def of(self, answer: Answer | str) -> tuple[Finding, ...]:
        """The findings with one answer."""
        return tuple(each for each in self.findings if each.answer == answer)

    def summary(self) -> str:
        """One line: how many findings of each of the four answers."""
        counts = (f"{len(self.of(each))} {each}" for each in Answer if self.of(each))
        return f"{self.exercise}: {', '.join(counts)}"

    def as_dict(self) -> dict[str, object]:
        """The report as JSON types."""
        found = [each.as_dict() for each in self.findings]
        return {"version": 1, "model": self.exercise, "problem": self.problem, "findings": found}

    def __repr__(self) -> str:
        return str(self)
