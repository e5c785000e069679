"""What a check can say, and the report of all that it says, as text for a terminal and as HTML for a notebook.

The HTML needs no style sheet and no script, which an untrusted notebook would not run. Text keeps the notebook's own
colors, so it reads on light and dark themes; a verdict is shown by a word and a sign before it is shown by a color
(blue, vermilion and gray of Okabe and Ito's palette).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from urllib.parse import quote

from exercise_kit.reasons import Reason

BETWEEN = ", and "  # in the name of two misconceptions at once
CAUSE = "Likely cause"  # the label under which a report names misconceptions


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
    """

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
    """One line of a report.

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
        follows: whether an earlier line failed of the same, so that its own claim could not be decided.
        worth: the check's weight.
        guard: whether it earns only the share that the other checks earn.
        stumbled_over: as in :class:`Failure`.
        kind: of a failure; the same for others' failures that differ in numbers alone.
        waits_for: the name of the check that has to pass first.
        leads: whether it is a first cause, over which several checks stumbled, and no check of its own.
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
    follows: bool = False
    worth: float = 1.0
    guard: bool = False
    stumbled_over: str = ""
    kind: str = ""
    waits_for: str = ""
    leads: bool = False

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

    def pages(self) -> Mapping[str, str]:
        """By the names of misconceptions among its causes, the paths of their pages."""
        return dict(page for cause in self.causes for page in cause.pages)

    def parts(self) -> Mapping[str, str]:
        """The message's parts under their labels, in the order in which a student reads them."""
        names = " or ".join(f"*{each.name}*" for each in self.causes)
        explanations = [f"{each.explanation} {each.in_training}".rstrip() for each in self.causes[:1]]
        cause = f"This looks like {names}: {explanations[0]}" if explanations else ""
        if len(self.causes) > 1:
            cause = f"This looks like {names}: on this check they give the same numbers."
        look = self.causes[0].question if self.causes else self.look
        section = f" (lesson {self.causes[0].section})" if self.causes else ""
        if self.is_repeated:
            cause, section = f"{names}, as above.", ""
            look = self.look if self.reason == Reason.ACCEPTED else ""  # the question above is about something else
        labeled = {
            "Seen": self.seen,
            "Expected": self.expected,
            CAUSE: cause,
            "Where to look": look + section if look else "",
        }
        return {label: text for label, text in labeled.items() if text}

    @property
    def message(self) -> str | None:
        """The whole message in one paragraph; None for a check that passed."""
        sentences = (f"{label}: {text}" for label, text in self.parts().items())
        return " ".join(each if each[-1] in ".?!" else f"{each}." for each in sentences) or None


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
        site: the address of the site with pages about misconceptions ("": there is none).
    """

    exercise: str
    results: tuple[CheckResult, ...] = ()
    points: float | None = None
    problem: str | None = None
    complete: bool = True
    note: str | None = None
    offer: str | None = None
    site: str = ""

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
        decide does not count at all. A guard earns in the proportion in which the other checks pass. Nothing is
        earned before everything is written.
        """
        if not self.complete:
            return 0.0
        guards = [each for each in self._counted() if each.guard]
        others = [each for each in self._counted() if not each.guard]
        core, beside = (sum(each.worth for each in some if each.verdict == Verdict.PASS) for some in (others, guards))
        total = sum(each.worth for each in others)
        right = core / total if total else 1.0
        earned = core + right * beside
        return earned / (total + sum(each.worth for each in guards)) if earned else 0.0

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

    def pages_to_read(self) -> dict[str, str]:
        """By the names of the misconceptions that the report mentions, the addresses of their pages."""
        return addresses((page for each in self.results for page in each.pages().items()), self.site)

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
        checks = [each for each in self.results if not each.leads]
        passing, total = sum(each.verdict == Verdict.PASS for each in checks), len(checks)
        verb = "passes" if 1 in (passing, total) else "pass"
        line = f"{self.exercise}: {passing} of {total} check{'' if total == 1 else 's'} {verb}"
        if self.score is not None:
            line += f", {round(self.score, 2):g} of {self.points:g} points"
        return line if self.complete else f"{line}; something in it is not written yet"

    def __str__(self) -> str:

        return as_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:

        return as_mimebundle(self)


# a longer text is cut: a report is read, not searched
_LONGEST = 700
# the report for programs, beside the forms for people
REPORT_MIME = "application/vnd.vit-course.report+json"
_SIGN = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.UNDECIDED: "○"}
_COLOR = {Verdict.PASS: "#0072B2", Verdict.FAIL: "#D55E00", Verdict.UNDECIDED: "#8a939c"}
_WIDTH = 100
_INDENT = " " * 14
_MARKUP = re.compile(r"`([^`]+)`|(?<![\w*])\*([^*\s](?:[^*`]*[^*`\s])?)\*(?![\w*])")


def as_text(report: Report) -> str:
    """The report for a terminal, wrapped at 100 columns."""
    if report.problem:
        return _wrapped(f"{report.exercise}: not checked. {report.problem}", "", "  ")
    lines = [report.summary(), *([_wrapped(report.note, "  ", "  ")] if report.note else [])]
    for result, behind in folded(report.results):
        lines.append(_wrapped(result.claim, f"  {_SIGN[result.verdict]} {result.verdict:<9} ", _INDENT))
        lines += [_wrapped(f"{label}: {text}", _INDENT, _INDENT) for label, text in _visible_parts(result).items()]
        lines += [_wrapped(_because(result, behind), f"{_INDENT}○ ", _INDENT)] if behind else []
    lines += [_wrapped(report.offer, "  ", "  ")] if report.offer else []
    # an address is never broken over two lines: it is there to be opened
    lines += [f"  About {name}: {address}" for name, address in report.pages_to_read().items()]
    return "\n".join(lines)


def as_html(report: Report) -> str:
    """The report for a notebook: one section, a heading line, and a list with an entry for each check."""
    if report.problem:
        heading = f"{report.exercise}: not checked"
        content = f"<strong>{_SIGN[Verdict.UNDECIDED]} {escape(heading)}.</strong> {rich(report.problem)}"
        return section(heading, paragraph(content), Verdict.UNDECIDED)
    verdict = _overall(report)
    heading = paragraph(f"<strong>{_SIGN[verdict]} {escape(report.summary())}</strong>")
    heading += paragraph(rich(report.note)) if report.note else ""
    entries = "".join(entry(result, behind, report.site) for result, behind in folded(report.results))
    style = "list-style:none;margin:0.4em 0 0 0;padding:0"
    offer = paragraph(rich(report.offer)) if report.offer else ""
    return section(report.summary(), f'{heading}<ul style="{style}">{entries}</ul>{offer}', verdict)


def as_mimebundle(report: Report) -> dict[str, object]:
    """What Jupyter shows. In a graded cell of a notebook the plain form is the bare number of points.

    nbgrader reads partial credit from the plain form of a cell's value, and gives full points for anything
    that is not a number.
    """
    in_notebook = in_notebook_kernel()
    graded = in_notebook and report.score is not None
    plain = str(report.score) if graded else as_text(report)
    if not in_notebook:
        return {"text/plain": plain}
    return {"text/plain": plain, "text/html": as_html(report), REPORT_MIME: report.as_dict()}


def in_notebook_kernel() -> bool:
    """Whether this is the kernel of a notebook, and neither a terminal nor a script."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


def folded(results: Sequence[CheckResult]) -> list[tuple[CheckResult, list[CheckResult]]]:
    """The results that a reader sees, each with those that wait for it, which fold under it."""
    names = {each.name for each in results}
    behind = [each for each in results if each.waits_for in names]
    seen = [each for each in results if each.waits_for not in names]
    return [(each, [one for one in behind if one.waits_for == each.name]) for each in seen]


def _because(result: CheckResult, behind: Sequence[CheckResult]) -> str:
    count = f"{len(behind)}{'' if result.leads else ' more'} check{'' if len(behind) == 1 else 's'}"
    return f"{count} could not be decided because of this."


def _overall(report: Report) -> Verdict:
    if report.passed:
        return Verdict.PASS
    wrong = any(each.verdict == Verdict.FAIL or each.reason == Reason.WAITS_FOR_CHECK for each in report.results)
    return Verdict.FAIL if wrong else Verdict.UNDECIDED


def _visible_parts(result: CheckResult) -> dict[str, str]:
    parts = dict(result.parts())
    if result.verdict == Verdict.UNDECIDED and "Seen" in parts:
        parts = {"Why": parts["Seen"]}
    return parts


def section(label: str, body: str, verdict: Verdict) -> str:
    """A block with a colored edge, called ``label`` for those who hear the page; ``body`` is HTML."""
    style = f"border-left:4px solid {_COLOR[verdict]};padding:0.4em 0 0.4em 0.9em;margin:0.3em 0;line-height:1.5"
    return f'<section aria-label="{escape(label, quote=True)}" style="{style}">{body}</section>'


def entry(result: CheckResult, behind: Sequence[CheckResult] = (), site: str = "") -> str:
    """A check as an item of a list, and those that wait for it, folded; causes lead to their pages on ``site``."""
    sign = f'<span aria-hidden="true" style="color:{_COLOR[result.verdict]}">{_SIGN[result.verdict]}</span>'
    head = f"{sign} <strong>{result.verdict}</strong> &nbsp;{rich(result.claim)}"
    pages = {CAUSE: addresses(result.pages().items(), site)}
    parts = {label: rich(text, pages.get(label, {})) for label, text in _visible_parts(result).items()}
    rows = "".join(
        f'<div style="margin:0.1em 0 0.1em 1.4em"><strong>{label}:</strong> {html}</div>'
        for label, html in parts.items()
    )
    if behind:
        claims = "".join(f"<li>{rich(each.claim)}</li>" for each in behind)
        summary = f"<summary>{_SIGN[Verdict.UNDECIDED]} {_because(result, behind)}</summary>"
        rows += f'<details style="margin:0.1em 0 0.1em 1.4em">{summary}<ul style="margin:0">{claims}</ul></details>'
    return f'<li style="margin:0.25em 0">{head}{rows}</li>'


def paragraph(body: str) -> str:
    """``body``, which is HTML, on its own line."""
    return f'<p style="margin:0">{body}</p>'


def rich(text: str, pages: Mapping[str, str] | None = None) -> str:
    """Cut and escape ``text``, then turn `code` and *emphasis* into HTML; no mark is read inside another.

    An emphasis that is the name of a misconception, or of two at once, becomes a link to its page in ``pages``.
    """

    def marked(match: re.Match[str]) -> str:
        code, emphasis = match.groups()
        return f"<code>{code}</code>" if code else f"<em>{_linked(emphasis, pages or {})}</em>"

    return _MARKUP.sub(marked, escape(_cut(text)))


def addresses(pages: Iterable[tuple[str, str]], site: str) -> dict[str, str]:
    """The addresses of pages, given as names with paths, by their names; none where there is no site."""
    return {name: f"{site}{quote(path)}.html" for name, path in pages} if site else {}


def _linked(names: str, pages: Mapping[str, str]) -> str:
    each = names.split(BETWEEN)
    if not all(name in pages for name in each):
        return names
    # a notebook's output may be a frame, in which another site does not open
    opened = 'target="_blank" rel="noopener" title="More about it on the course\'s site"'
    return BETWEEN.join(f'<a href="{escape(pages[name], quote=True)}" {opened}>{name}</a>' for name in each)


def _wrapped(text: str, first: str, rest: str) -> str:
    words = " ".join(_cut(text).split())
    return textwrap.fill(words, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
