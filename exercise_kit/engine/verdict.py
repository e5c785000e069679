"""What a check can say, and the report of all that it says; :mod:`exercise_kit.engine.rendering` shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any
from urllib.parse import quote

from exercise_kit.points import format_points
from exercise_kit.quoting import make_legible
from exercise_kit.reasons import Reason

LOOKS_LIKE = "This looks like"  # before the name of a likely cause
BETWEEN = ", and "  # in the name of two misconceptions at once


class Part(StrEnum):
    """The parts of a message, in a student's order; their values are the labels, in JSON as in every report."""

    SEEN = "Seen"
    EXPECTED = "Expected"
    CAUSE = "Likely cause"
    LOOK = "Where to look"


class Verdict(StrEnum):
    """The three things that a check can find."""

    PASS = "pass"
    FAIL = "fail"
    UNDECIDED = "undecided"


class Failure(Exception):
    """A check found something wrong.

    Args:
        seen: what the student's code did, as a clause ("one_hot returned None").
        expected: what was expected, as a clause ("a tensor of shape (2, 10, 48)"), or "" when ``seen`` says all.
        look: where to look next, as a sentence or a question; never the answer.
        reason: what kind of failure it is.
        stumbled_over: what is the same in other checks that stumble over the same, whatever their inputs.

    Attributes: as its arguments; ``is_anothers``: whether a claim failed that is asked before this one; ``error``: with
    what a check broke off, which is no verdict of its own.
    """

    is_anothers = False
    error: BaseException | None = None

    def __init__(
        self,
        seen: str,
        expected: str = "",
        look: str = "",
        reason: Reason = Reason.DIFFERENT,
        stumbled_over: str = "",
    ) -> None:
        super().__init__(seen)
        self.seen = seen
        self.expected = expected
        self.look = look
        self.reason = reason
        self.stumbled_over = stumbled_over


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

    Attributes:
        name: as "column order".
        explanation: one sentence.
        question: what a student should ask themselves next.
        section: the part of a lesson that treats it.
        in_training: a sentence on how it looks in training; empty where nobody has trained with it.
        pages: name → the permanent path, without ".html", of its page on the course's site; a cause made of several
            misconceptions has a page for each.
    """

    name: str
    explanation: str
    question: str
    section: str
    in_training: str = ""
    pages: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class CheckResult:
    """What came of a check, asked by ``check`` or by grading: one line of a report, as data.

    Attributes:
        name: of the check.
        claim: the sentence that the student reads.
        verdict: passed, failed or undecided.
        seen: what was seen in a failure; for an undecided check, why.
        expected: in the place of what was seen.
        causes: of a failure; empty when none matches.
        look: where to look next.
        reason: the kind of failure or doubt; None for a check that passed.
        is_repeated: whether an earlier line of the report has explained the same causes.
        worth: the check's weight.
        guard: whether it earns only the share that the other checks earn.
        stumbled_over: as in :class:`Failure`.
        kind: of a failure; the same for others' failures that differ in numbers alone.
        waits_for: the name of the check that has to pass first.
        leads: whether it is a first cause, over which several checks stumbled, and no check of its own; its claim is
            told as broken.
        same_as: the name of an earlier line that fails for the same reason, so that its own claim is undecided.
        is_anothers: as in :class:`Failure`.
        word: what stands in the verdict's place where it has a finer name, such as "wrong" or "holds".
        saved_parts: the message's parts with their labels, of a result that was read from a file: it keeps words alone.
    """

    name: str
    claim: str
    verdict: Verdict
    seen: str = ""
    expected: str = ""
    causes: tuple[Cause, ...] = ()
    look: str = ""
    reason: Reason | None = None
    is_repeated: bool = False
    worth: float = 1.0
    guard: bool = False
    stumbled_over: str = ""
    kind: str = ""
    waits_for: str = ""
    leads: bool = False
    same_as: str = ""
    is_anothers: bool = False
    word: str = ""
    saved_parts: tuple[tuple[str, str], ...] = ()

    @property
    def waits(self) -> bool:
        """Whether its share is not earned yet: another check has to pass first, or the judge decides."""
        return self.reason in (Reason.WAITS_FOR_CHECK, Reason.WAITS_FOR_JUDGE)

    @property
    def is_unnamed_number(self) -> bool:
        """Whether it fails for a wrong value that no known mistake explains."""
        return self.verdict == Verdict.FAIL and self.reason == Reason.DIFFERENT and not self.causes

    @property
    def unwritten(self) -> bool:
        """Whether the student's code still raises NotImplementedError."""
        return self.reason == Reason.NOT_WRITTEN

    @property
    def misconception(self) -> str | None:
        """The name of the likely cause, None where none or several match."""
        return self.causes[0].name if len(self.causes) == 1 else None

    def pages(self) -> Mapping[str, str]:
        """By the names of misconceptions among its causes, the paths of their pages."""
        return dict(page for cause in self.causes for page in cause.pages)

    def parts(self) -> Mapping[str, str]:
        """The message's parts by :class:`Part`, in the order in which a student reads them, fit for every page."""
        if self.saved_parts:
            kept = dict(self.saved_parts)  # a notebook that is saved sorts them
            return {str(part): make_legible(kept[part]) for part in Part if kept.get(part)}
        names = " or ".join(f"*{each.name}*" for each in self.causes)
        explanations = [f"{each.explanation} {each.in_training}".rstrip() for each in self.causes[:1]]
        cause = f"{LOOKS_LIKE} {names}: {explanations[0]}" if explanations else ""
        if len(self.causes) > 1:
            cause = f"{LOOKS_LIKE} {names}: on this check they give the same numbers."
        look = self.causes[0].question if self.causes else self.look
        section = f" (lesson {self.causes[0].section})" if self.causes else ""
        if self.is_repeated:
            cause, section = f"{names}, as above.", ""
            look = self.look if self.reason == Reason.ACCEPTED else ""  # the question above is about something else
        labeled = {
            Part.SEEN: self.seen,
            Part.EXPECTED: self.expected,
            Part.CAUSE: cause,
            Part.LOOK: look + section if look else "",
        }
        return {str(label): make_legible(text) for label, text in labeled.items() if text}

    @property
    def message(self) -> str | None:
        """The whole message in one paragraph; None for a check that passed."""
        sentences = (f"{label}: {text}" for label, text in self.parts().items())
        return " ".join(each if each[-1] in ".?!" else f"{each}." for each in sentences) or None

    def as_dict(self) -> dict[str, Any]:
        """JSON types, in the form of a check in ``vit-course grade --json``."""
        return {
            "name": self.name,
            "verdict": str(self.verdict),
            "message": self.message,
            "misconception": self.misconception,
            "parts": dict(self.parts()),
            "kind": make_legible(self.kind),
            "claim": make_legible(self.claim),
            "pages": dict(self.pages()),
            "same_as": self.same_as,
            "waits_for": self.waits_for,
            "leads": self.leads,
            "reason": self.reason,
            "guard": self.guard,
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> CheckResult:
        """The result that :meth:`as_dict` was made of: its causes by their names and pages, its message in its parts.

        Another program may have written no more than name, verdict, message and misconception.

        Raises:
            KeyError, TypeError, ValueError: when ``entry`` was not made so.
        """
        name, cause, said = entry["name"], entry["misconception"], entry["message"]
        pages = tuple(dict(entry.get("pages", {})).items())
        several = (Cause(each, "", "", "", pages=((each, path),)) for each, path in pages)
        return cls(
            *(name, entry.get("claim") or name.removeprefix("test_").replace("_", " "), Verdict(entry["verdict"])),
            causes=(Cause(cause, "", "", "", pages=pages),) if cause else tuple(several),
            reason=Reason(entry["reason"]) if entry.get("reason") else None,
            saved_parts=tuple(dict(entry.get("parts", {Part.SEEN: said} if said else {})).items()),
            **{key: entry[key] for key in ("kind", "same_as", "waits_for", "leads", "guard") if key in entry},
        )


@dataclass(frozen=True)
class Report:
    """What ``check`` returns: it shows itself in a notebook and in a terminal.

    Attributes:
        exercise: its name.
        results: in the order of the checks.
        points: what the exercise is worth; None outside of a graded cell.
        problem: why nothing could be checked at all.
        complete: False while a part of a class is not written: what the class inherits earns nothing.
        note: a sentence that comes before the results.
        offer: a sentence that comes after them.
        hint: another one, for whoever reads on.
        older: where the last cell that defines the answer has an error: what the report is about instead.
        pace: a sentence on how fast a right answer is; it counts for nothing.
        site: the address of the site with pages about misconceptions ("": there is none).
        earned: the points that the judge gives; None: those of the checks' shares.
        waits: whether the judge could not grade it yet.
    """

    exercise: str
    results: tuple[CheckResult, ...] = ()
    points: float | None = None
    problem: str | None = None
    complete: bool = True
    note: str | None = None
    offer: str | None = None
    hint: str | None = None
    older: str | None = None
    pace: str | None = None
    site: str = ""
    earned: float | None = None
    waits: bool = False

    def __post_init__(self) -> None:
        if self.points is not None and not 0 <= self.points < float("inf"):
            raise ValueError(f"points must be a finite number from 0 up, not {self.points}")

    @property
    def passed(self) -> bool:
        """Whether every check that could be decided passed, and at least one did, and it is not older than its cell.

        Of what the judge has graded, whether it has all its points.
        """
        if self.earned is not None:
            return not self.waits and self.earned == self.points
        passing = all(each.verdict == Verdict.PASS for each in self._list_counted_results())
        return self.problem is None and self.older is None and self.fraction > 0 and passing

    @property
    def fraction(self) -> float:
        """The share of the points earned, from 0 to 1, each check by its worth.

        A check that waits for another one has not earned its share yet; a check that this machine cannot
        decide does not count at all. A guard earns in the proportion in which the other checks pass. Nothing is
        earned before everything is written.
        """
        if not self.complete:
            return 0.0
        guards = [each for each in self._list_counted_results() if each.guard]
        others = [each for each in self._list_counted_results() if not each.guard]
        core, beside = (sum(each.worth for each in some if each.verdict == Verdict.PASS) for some in (others, guards))
        total = sum(each.worth for each in others)
        right = core / total if total else 1.0
        earned = core + right * beside
        return earned / (total + sum(each.worth for each in guards)) if earned else 0.0

    def _list_counted_results(self) -> list[CheckResult]:
        return [each for each in self.results if each.verdict != Verdict.UNDECIDED or each.waits]

    @property
    def score(self) -> float | None:
        """The points earned, None outside of a graded cell."""
        if self.earned is not None:
            return self.earned
        return None if self.points is None else min(round(self.points * self.fraction, 4), float(self.points))

    @property
    def misconceptions(self) -> tuple[str, ...]:
        """Names of the misconceptions found, each once, in the order of the checks."""
        return tuple(dict.fromkeys(each.misconception for each in self.results if each.misconception))

    def map_pages_to_read(self) -> dict[str, str]:
        """By the names of the misconceptions that the report mentions, the addresses of their pages."""
        return map_names_to_addresses((page for each in self.results for page in each.pages().items()), self.site)

    def as_dict(self) -> dict[str, object]:
        """The report as JSON types, in the form of an exercise in ``vit-course grade --json``."""
        return {
            "name": self.exercise,
            "score": self.score,
            "max_score": self.points,
            "misconception": self.misconceptions[0] if self.misconceptions else None,
            "problem": self.problem or " ".join(filter(None, (self.older, self.note))) or None,
            "checks": [each.as_dict() for each in self.results],
        }

    def summary(self) -> str:
        """One line: how many checks pass, and the points where there are some."""
        if self.older:
            return f"{self.exercise}: what the cell holds now was not checked"
        if self.waits:
            return f"{self.exercise}: not graded yet, – of {self.points:g} points"
        if self.earned is not None and not self.results:
            return f"{self.exercise}: {format_points(self.earned)} of {self.points:g} points"
        checks = [each for each in self.results if not each.leads]
        passing, total = sum(each.verdict == Verdict.PASS for each in checks), len(checks)
        verb = "passes" if 1 in (passing, total) else "pass"
        line = f"{self.exercise}: {passing} of {total} check{'' if total == 1 else 's'} {verb}"
        if self.score is not None:
            line += f", {format_points(self.score)} of {self.points:g} points"
        return line if self.complete else f"{line}; something in it is not written yet"

    def __str__(self) -> str:
        return str(_import_rendering().render_text(self))

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        return dict(_import_rendering().make_mimebundle(self))


def format_count(count: int, word: str) -> str:
    """A count and its word, which may be a verb: "1 holds", "42 hold", "3 wrong"."""
    return f"{count} {word if count == 1 else word.removesuffix('s')}"


def _import_rendering() -> Any:
    """The module that shows reports, which needs this one."""
    return import_module("exercise_kit.engine.rendering")


def map_names_to_addresses(pages: Iterable[tuple[str, str]], site: str) -> dict[str, str]:
    """The addresses of pages, given as names with paths, by their names; none where there is no site."""
    return {name: f"{site}{quote(path)}.html" for name, path in pages} if site else {}
