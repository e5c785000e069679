"""A report as text for a terminal and as HTML for a notebook.

The HTML needs no style sheet and no script, which an untrusted notebook would not run. Text keeps the
notebook's own colours, so it reads on light and dark themes; a verdict is told by a word and a sign before
it is told by a colour (blue, vermilion and grey of Okabe and Ito's palette).
"""

from __future__ import annotations

import re
import textwrap
from html import escape

from vit_course.checks.verdict import CheckResult, Report, Verdict

# the report for programs, beside the forms for people
REPORT_MIME = "application/vnd.vit-course.report+json"
_SIGN = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.UNDECIDED: "○"}
_COLOUR = {Verdict.PASS: "#0072B2", Verdict.FAIL: "#D55E00", Verdict.UNDECIDED: "#8a939c"}
_WIDTH = 100


def as_text(report: Report) -> str:
    """The report for a terminal, wrapped at 100 columns."""
    if report.problem:
        return f"{report.exercise}: {_plain(report.problem)}"
    lines = [report.summary()]
    for result in report.results:
        lines.append(f"  {_SIGN[result.verdict]} {result.verdict:<9} {result.claim}")
        for label, text in _visible_parts(result).items():
            indent = " " * 14
            wrapped = textwrap.wrap(f"{label}: {_plain(text)}", _WIDTH - len(indent))
            lines += [indent + line for line in wrapped]
    return "\n".join(lines)


def as_html(report: Report) -> str:
    """The report for a notebook: one section, a heading line, and a list with an entry for each check."""
    if report.problem:
        return _section(report.exercise, _paragraph("○ " + _rich(report.problem)), Verdict.UNDECIDED)
    verdict = Verdict.PASS if report.passed else Verdict.FAIL
    heading = _paragraph(f"<strong>{_SIGN[verdict]} {escape(report.summary())}</strong>")
    entries = "".join(_entry(result) for result in report.results)
    style = "list-style:none;margin:0.4em 0 0 0;padding:0"
    return _section(report.summary(), f'{heading}<ul style="{style}">{entries}</ul>', verdict)


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


def _visible_parts(result: CheckResult) -> dict[str, str]:
    parts = dict(result.parts())
    if result.verdict == Verdict.UNDECIDED and "Seen" in parts:
        parts = {"Why": parts["Seen"]}
    return parts


def _section(label: str, body: str, verdict: Verdict) -> str:
    style = f"border-left:4px solid {_COLOUR[verdict]};padding:0.4em 0 0.4em 0.9em;margin:0.3em 0;line-height:1.5"
    return f'<section aria-label="{escape(label, quote=True)}" style="{style}">{body}</section>'


def _entry(result: CheckResult) -> str:
    sign = f'<span aria-hidden="true" style="color:{_COLOUR[result.verdict]}">{_SIGN[result.verdict]}</span>'
    head = f"{sign} <strong>{result.verdict}</strong> &nbsp;{_rich(result.claim)}"
    rows = "".join(
        f'<div style="margin:0.1em 0 0.1em 1.4em"><strong>{label}:</strong> {_rich(text)}</div>'
        for label, text in _visible_parts(result).items()
    )
    return f'<li style="margin:0.25em 0">{head}{rows}</li>'


def _paragraph(body: str) -> str:
    return f'<p style="margin:0">{body}</p>'


def _rich(text: str) -> str:
    """Escape ``text``, then turn `code` and *emphasis* into HTML."""
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    return re.sub(r"(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])", r"<em>\1</em>", html)


def _plain(text: str) -> str:
    return " ".join(text.split())
