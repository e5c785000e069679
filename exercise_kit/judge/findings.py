"""What is found while a submission is graded, beside its points: for the student, for the instructor, and the log."""

from __future__ import annotations

from dataclasses import dataclass, field

from exercise_kit.judge.result import LogEntry
from exercise_kit.reasons import FlagNote


@dataclass
class Findings:
    """Filled by whoever finds something.

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
