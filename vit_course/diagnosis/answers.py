"""The four answers of a diagnosis, kept apart, and the report of them all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from pathlib import Path

import vit_course.exercises
from exercise_kit.engine.verdict import Cause, CheckResult, Report, Verdict, format_count
from exercise_kit.reasons import Reason
from vit_course.diagnosis.watch import Op, is_model_source_file


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

    def describe_place(self) -> str:
        """ "`blocks.0.attention` (vit.py, line 59)", or as much of it as is known."""
        line = f"{Path(self.file).name}, line {self.line}" if self.file else ""
        if self.module and line:
            return f"`{self.module}` ({line})"
        return f"`{self.module}`" if self.module else line

    def as_result(self, waits_for: str = "") -> CheckResult:
        """The finding as a line of a report of the kind that ``check`` gives."""
        verdict, reason = _VERDICT[self.answer]
        seen = f"{self.seen}, in {self.describe_place()}" if self.describe_place() and self.seen else self.seen
        causes = (_find_cause_of_mistake(*self.mistake),) if self.mistake else ()
        said = {"reason": reason, "word": str(self.answer), "waits_for": waits_for}
        return CheckResult(self.asked, self.claim, verdict, seen, causes=causes, **said)  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, object]:
        """The finding as JSON types."""
        return {
            "property": self.asked,
            "claim": self.claim,
            "answer": str(self.answer),
            "seen": self.seen or None,
            "mistake": self.mistake[1] if self.mistake else None,
            "pages": dict(_find_cause_of_mistake(*self.mistake).pages) if self.mistake else {},
            "module": self.module or None,
            "file": self.file or None,
            "line": self.line or None,
        }


@cache
def _find_cause_of_mistake(exercise: str, name: str) -> Cause:
    # one exercise is imported and not their catalog, which takes seconds
    folder = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", exercise).lower()
    (claims,) = Path(vit_course.exercises.__path__[0]).glob(f"*/{folder}/claims.py")
    found = vars(import_module(f"vit_course.exercises.{claims.parts[-3]}.{folder}.claims"))
    return next(each.mistake(name).cause for each in found.values() if getattr(each, "name", "") == exercise)


@dataclass(frozen=True)
class Remark:
    """What a property's question says of a model, before it is known whose question it was."""

    answer: Answer
    seen: str
    mistake: tuple[str, str] | None
    module: str
    where: tuple[str, int]


def report_wrong(
    seen: str, mistake: str = "", at: Op | None = None, module: str = "", error: Exception | None = None
) -> Remark:
    """A property is broken that every ViT has.

    Args:
        seen: what was seen, with numbers.
        mistake: "exercise: name" in the library.
        at: the operation where it happened, whose module and line are told; else a ``module``, or the ``error`` raised.
        module: as there.
        error: as there.
    """
    return _make_remark(Answer.WRONG, seen, mistake, at, module, error)


def report_unusual(
    seen: str, mistake: str = "", at: Op | None = None, module: str = "", error: Exception | None = None
) -> Remark:
    """A choice that has arguments, and differs from the plain ViT; arguments as of :func:`wrong`."""
    return _make_remark(Answer.UNUSUAL, seen, mistake, at, module, error)


def _make_remark(
    answer: Answer, seen: str, mistake: str, at: Op | None, module: str, error: Exception | None
) -> Remark:
    exercise, _, name = mistake.partition(": ")
    where = find_raising_line(error) if error else (at and at.where) or ("", 0)
    return Remark(answer, seen, (exercise, name) if name else None, at.module if at else module, where)


def describe_error(error: BaseException) -> str:
    """An exception in one line."""
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0][:110]}" if words else type(error).__name__


def find_raising_line(error: BaseException) -> tuple[str, int]:
    """The file and the last line outside torch that an exception passed; ("", 0) where it passed none."""
    found, trace = ("", 0), error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_model_source_file(file) and Path(file).parent != Path(__file__).parent:
            found = file, trace.tb_lineno
        trace = trace.tb_next
    return found


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

    @property
    def ran(self) -> bool:
        """Whether the model ran on the images, so that something could be asked."""
        return len(self.findings) != len(self.of(Answer.NOT_ASKED))

    def summary(self) -> str:
        """One line: how many findings of each of the four answers."""
        counts = (format_count(len(self.of(each)), each) for each in Answer if self.of(each))
        return f"{self.exercise}: {', '.join(counts)}"

    def as_dict(self) -> dict[str, object]:
        """The report as JSON types."""
        found = [each.as_dict() for each in self.findings]
        return {"version": 1, "model": self.exercise, "problem": self.problem, "findings": found}

    def __repr__(self) -> str:
        return str(self)
