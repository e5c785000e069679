"""A report as text for a terminal and as HTML for a notebook.

The HTML needs no style sheet and no script, which an untrusted notebook would not run. Text keeps the
notebook's own colours, so it reads on light and dark themes; a verdict is told by a word and a sign before
it is told by a colour (blue, vermilion and grey of Okabe and Ito's palette).
"""

from __future__ import annotations

import re
import textwrap
from html import escape

from exercise_kit.engine.verdict import CheckResult, Report, Verdict

# a longer text is cut: a report is read, not searched
_LONGEST = 700
# the report for programs, beside the forms for people
REPORT_MIME = "application/vnd.vit-course.report+json"
_SIGN = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.UNDECIDED: "○"}
_COLOUR = {Verdict.PASS: "#0072B2", Verdict.FAIL: "#D55E00", Verdict.UNDECIDED: "#8a939c"}
_WIDTH = 100
_INDENT = " " * 14
_MARKUP = re.compile(r"`([^`]+)`|(?<![\w*])\*([^*\s](?:[^*`]*[^*`\s])?)\*(?![\w*])")


def as_text(report: Report) -> str:
    """The report for a terminal, wrapped at 100 columns."""
    if report.problem:
        return _wrapped(f"{report.exercise}: not checked. {report.problem}", "", "  ")
    lines = [report.summary(), *([_wrapped(report.note, "  ", "  ")] if report.note else [])]
    for result in report.results:
        lines.append(_wrapped(result.claim, f"  {_SIGN[result.verdict]} {result.verdict:<9} ", _INDENT))
        lines += [_wrapped(f"{label}: {text}", _INDENT, _INDENT) for label, text in _visible_parts(result).items()]
    return "\n".join(lines)


def as_html(report: Report) -> str:
    """The report for a notebook: one section, a heading line, and a list with an entry for each check."""
    if report.problem:
        heading = f"{report.exercise}: not checked"
        told = f"<strong>{_SIGN[Verdict.UNDECIDED]} {escape(heading)}.</strong> {rich(report.problem)}"
        return section(heading, paragraph(told), Verdict.UNDECIDED)
    verdict = _overall(report)
    heading = paragraph(f"<strong>{_SIGN[verdict]} {escape(report.summary())}</strong>")
    heading += paragraph(rich(report.note)) if report.note else ""
    entries = "".join(entry(result) for result in report.results)
    style = "list-style:none;margin:0.4em 0 0 0;padding:0"
    return section(report.summary(), f'{heading}<ul style="{style}">{entries}</ul>', verdict)


def as_mimebundle(report: Report) -> dict[str, object]:
    """What Jupyter shows. In a graded cell of a notebook the plain form is the bare number of points.

    nbgrader reads partial credit from the plain form of a cell's value, and gives full points for anything
    that is not a number.
    """
    in_notebook = _in_notebook_kernel()
    graded = in_notebook and report.score is not None
    plain = str(report.score) if graded else as_text(report)
    if not in_notebook:
        return {"text/plain": plain}
    return {"text/plain": plain, "text/html": as_html(report), REPORT_MIME: report.as_dict()}


def _in_notebook_kernel() -> bool:
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


def _overall(report: Report) -> Verdict:
    if report.passed:
        return Verdict.PASS
    wrong = any(each.verdict == Verdict.FAIL or each.waits for each in report.results)
    return Verdict.FAIL if wrong else Verdict.UNDECIDED


def _visible_parts(result: CheckResult) -> dict[str, str]:
    parts = dict(result.parts())
    if result.verdict == Verdict.UNDECIDED and "Seen" in parts:
        parts = {"Why": parts["Seen"]}
    return parts


def section(label: str, body: str, verdict: Verdict) -> str:
    """A block with a coloured edge, called ``label`` for those who hear the page; ``body`` is HTML."""
    style = f"border-left:4px solid {_COLOUR[verdict]};padding:0.4em 0 0.4em 0.9em;margin:0.3em 0;line-height:1.5"
    return f'<section aria-label="{escape(label, quote=True)}" style="{style}">{body}</section>'


def entry(result: CheckResult) -> str:
    """A check as an item of a list."""
    sign = f'<span aria-hidden="true" style="color:{_COLOUR[result.verdict]}">{_SIGN[result.verdict]}</span>'
    head = f"{sign} <strong>{result.verdict}</strong> &nbsp;{rich(result.claim)}"
    rows = "".join(
        f'<div style="margin:0.1em 0 0.1em 1.4em"><strong>{label}:</strong> {rich(text)}</div>'
        for label, text in _visible_parts(result).items()
    )
    return f'<li style="margin:0.25em 0">{head}{rows}</li>'


def paragraph(body: str) -> str:
    """``body``, which is HTML, on its own line."""
    return f'<p style="margin:0">{body}</p>'


def rich(text: str) -> str:
    """Cut and escape ``text``, then turn `code` and *emphasis* into HTML; no mark is read inside another."""

    def marked(match: re.Match[str]) -> str:
        code, emphasis = match.groups()
        return f"<code>{code}</code>" if code else f"<em>{emphasis}</em>"

    return _MARKUP.sub(marked, escape(_cut(text)))


def _wrapped(text: str, first: str, rest: str) -> str:
    words = " ".join(_cut(text).split())
    return textwrap.fill(words, _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"
