"""What the judge says of a submission: the JSON of ``vit-course grade``, and what is kept of it for feedback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.quoting import make_legible
from exercise_kit.reasons import NOT_GRADED, FlagNote, Reason

Status = Literal["graded", "rejected", "error"]
VERSION = 1
OUT_OF_MEMORY = "the judge ran out of memory while grading this; what in it is so large?"


@dataclass(frozen=True)
class ExerciseResult:
    """The result of one exercise.

    ``seconds`` and ``waits_for`` are kept, but not published; ``comment`` is neither: it comes of a gradebook.

    Attributes:
        name: of the exercise.
        score: out of ``max_score``.
        misconception: the one that explains most of its failures.
        checks: what came of them.
        problem: a sentence about the whole exercise, which comes first.
        reason: of the problem, as data.
        kind: the problem without the exercise's name and what the code said, the same for many answers.
        seconds: that it took; 0: not measured.
        waits_for: what is to be repaired before it can be graded: file and line, ": ", and what is wrong there.
        comment: that a person wrote on the answer.
    """

    name: str
    score: float
    max_score: float
    misconception: str | None = None
    checks: tuple[CheckResult, ...] = ()
    problem: str | None = None
    reason: Reason | None = None
    kind: str = ""
    seconds: float = 0.0
    waits_for: str = ""
    comment: str = ""

    @property
    def waits(self) -> bool:
        """Whether nothing could be decided of it, so that it is not graded yet; its score of 0 says nothing."""
        undecided = bool(self.checks) and all(each.verdict == Verdict.UNDECIDED for each in self.checks)
        return self.reason in NOT_GRADED or (self.max_score > 0 and undecided)

    @property
    def points(self) -> str:
        """ "3 of 4"; "– of 4" while it is not graded."""
        return f"{'–' if self.waits else f'{self.score:g}'} of {self.max_score:g}"

    def as_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "name": self.name,
            "score": self.score,
            "max_score": self.max_score,
            "misconception": self.misconception,
            "checks": [each.as_dict() for each in self.checks],
            "problem": None if self.problem is None else make_legible(self.problem),
            "reason": self.reason,
            "kind": make_legible(self.kind),
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> ExerciseResult:
        """The result that :meth:`as_dict` was made of.

        Raises:
            KeyError, TypeError, ValueError: when ``entry`` was not made by it.
        """
        reason = Reason(entry["reason"]) if entry.get("reason") else None
        checks = tuple(map(CheckResult.from_dict, entry["checks"]))
        return cls(**{**entry, "reason": reason, "checks": checks})


class LogKind(StrEnum):
    """What an entry of the instructor's log is about."""

    BROKEN_CHECK = "broken-check"
    GRADER_FAILED = "grader-failed"
    DETAIL = "detail"  # of a check's verdict: what it printed, what an assertion compared
    ATTEMPTS = "attempts"


@dataclass(frozen=True)
class LogEntry:
    """An entry of the log: of what kind, its ``text``, and the ``exercise`` and ``check`` that it is about, if any."""

    kind: LogKind
    text: str
    exercise: str = ""
    check: str = ""

    def __str__(self) -> str:
        about = ", ".join(filter(None, (self.exercise, self.check)))
        return f"{about}: {self.text}" if about else self.text


@dataclass
class Findings:
    """What is found while a submission is graded, beside its points, filled by whoever finds something.

    Attributes:
        reasons: sentences without their full stop, for the instructor.
        flags: for a person to look at, each once, in order.
        notes: on those flags that one exercise raised.
        log: for the instructor.
    """

    reasons: list[str] = field(default_factory=list)
    flags: dict[str, None] = field(default_factory=dict)
    notes: dict[FlagNote, None] = field(default_factory=dict)
    log: list[LogEntry] = field(default_factory=list)

    def flag(self, flag: str, exercise: str = "", words: str = "") -> None:
        """Raise a flag, with a note where one exercise raised it."""
        self.flags[flag] = None
        if exercise:
            self.notes[FlagNote(flag, exercise, words.rstrip("."))] = None


@dataclass(frozen=True)
class CellOutputs:
    """What a cell of the submitted notebook printed and drew when it ran: its place, and nbformat's outputs."""

    index: int
    outputs: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Result:
    """The result of one submission.

    The last four attributes are not published.

    Attributes:
        path, student, assignment: as they were handed in.
        status: "graded", "rejected" (the file cannot be graded) or "error" (the grader is at fault).
        reason: None when there is nothing to say.
        score: out of ``max_score``.
        seconds: that grading took.
        flags: for a person to look at.
        exercises: their results.
        notes: on flags that one exercise raised.
        runs: the cells' outputs, for feedback.
        log: for the instructor.
        penalty: points that lateness has cost, in a gradebook; they are taken off the score already.
    """

    path: str
    student: str | None
    assignment: str | None
    status: Status
    reason: str | None = None
    score: float = 0.0
    max_score: float = 0.0
    seconds: float = 0.0
    flags: tuple[str, ...] = ()
    exercises: tuple[ExerciseResult, ...] = ()
    notes: tuple[FlagNote, ...] = ()
    runs: tuple[CellOutputs, ...] = ()
    log: tuple[LogEntry, ...] = ()
    penalty: float = 0.0

    @property
    def waiting(self) -> tuple[ExerciseResult, ...]:
        """The exercises that are not graded yet, which is no fault of the student's."""
        return tuple(each for each in self.exercises if each.waits)

    @property
    def waits_for(self) -> dict[str, str]:
        """The names of these → the file and line that each waits for, ": ", and what is wrong there; "": not known."""
        return {each.name: make_legible(each.waits_for) for each in self.waiting}

    @property
    def worth(self) -> float:
        """What its score is out of: the points of the exercises that are graded."""
        return max(0.0, round(self.max_score - sum(each.max_score for each in self.waiting), 4))

    @property
    def points(self) -> str:
        """ "7 of 10"; where an exercise of 4 points is not graded yet, "7 of 10, – of 4"."""
        graded = f"{self.score:g} of {self.worth:g}"
        if not self.waiting:
            return graded
        return ", ".join([*([graded] if self.worth else []), f"– of {self.max_score - self.worth:g}"])

    def as_dict(self) -> dict[str, Any]:
        """An entry of "submissions" in the published JSON."""
        return {
            "path": self.path,  # exact, as are the next two: other programs match them with the files
            "student": self.student,
            "assignment": self.assignment,
            "status": self.status,
            "reason": None if self.reason is None else make_legible(self.reason),
            "score": self.score,
            "max_score": self.max_score,
            "seconds": round(self.seconds, 4),
            "flags": list(self.flags),
            "exercises": [each.as_dict() for each in self.exercises],
        }

    def to_store(self) -> dict[str, Any]:
        """The same with what is kept for feedback and for the instructor."""
        exercises = [
            {**each.as_dict(), "seconds": round(each.seconds, 4), "waits_for": make_legible(each.waits_for)}
            for each in self.exercises
        ]
        runs = [{"index": each.index, "outputs": [dict(output) for output in each.outputs]} for each in self.runs]
        log = [{**vars(each), "text": make_legible(each.text)} for each in self.log]
        notes = [vars(each) for each in self.notes]
        return {**self.as_dict(), "exercises": exercises, "notes": notes, "runs": runs, "log": log}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Result:
        """The result that :meth:`to_store` or :meth:`as_dict` was made of.

        Raises:
            KeyError, TypeError, ValueError: when ``entry`` was made by neither.
        """
        exercises = tuple(map(ExerciseResult.from_dict, entry["exercises"]))
        runs = tuple(CellOutputs(each["index"], tuple(each["outputs"])) for each in entry.get("runs", ()))
        made = {
            "flags": tuple(entry["flags"]),
            "exercises": exercises,
            "notes": tuple(FlagNote(**each) for each in entry.get("notes", ())),
            "runs": runs,
            "log": tuple(LogEntry(**{**each, "kind": LogKind(each["kind"])}) for each in entry.get("log", ())),
        }
        return cls(**{**entry, **made})


def add_wait_causes_to_reason(result: Result) -> Result:
    """The same, whose reason tells the instructor too which exercises are not graded yet, and what they wait for."""
    names: dict[str, list[str]] = {}
    for each in result.exercises:
        if each.reason in NOT_GRADED:
            names.setdefault(each.waits_for or each.problem or "", []).append(each.name)
    said = (
        f"{' and '.join(several)} {'is' if len(several) == 1 else 'are'} not graded yet, and that is no fault of the "
        f"student: {cause}"
        for cause, several in names.items()
    )
    return replace(result, reason=join_reason_clauses(result.reason, *said))


def replace_exercises(result: Result, exercises: Iterable[ExerciseResult]) -> Result:
    """The same of these exercises, whose points it has."""
    every = tuple(exercises)
    score, max_score = sum(each.score for each in every), sum(each.max_score for each in every)
    return replace(result, exercises=every, score=round(score, 4), max_score=round(max_score, 4))


def join_reason_clauses(*clauses: str | None) -> str | None:
    """A reason of those clauses that there are; None: there is none."""
    return "; ".join(filter(None, clauses)) or None


def make_grade_json(results: list[Result]) -> dict[str, Any]:
    """The object that ``vit-course grade --json`` writes."""
    return {"version": VERSION, "submissions": [each.as_dict() for each in results]}
