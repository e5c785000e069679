"""A report as text for a terminal and as HTML for a notebook: one cause first, the rest folded.

The HTML needs no style sheet and no script, which an untrusted notebook would not run. Text keeps the notebook's own
colors, so it reads on light and dark themes; a verdict is shown by a word and a sign before it is shown by a color
(blue, vermilion and gray of Okabe and Ito's palette).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from exercise_kit.engine.cause_groups import CauseGroup, split_into_cause_groups_and_passed
from exercise_kit.engine.verdict import (
    BETWEEN,
    CheckResult,
    Part,
    Report,
    Verdict,
    format_count,
    map_names_to_addresses,
)
from exercise_kit.palette import BLUE, VERMILION
from exercise_kit.reasons import Reason

# a longer text is cut: a report is read, not searched
_LONGEST = 700
# the report for programs, beside the forms for people
REPORT_MIME = "application/vnd.vit-course.report+json"
_SIGN = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.UNDECIDED: "○"}
_COLOR = {Verdict.PASS: BLUE, Verdict.FAIL: VERMILION, Verdict.UNDECIDED: "#8a939c"}
_LONGEST_IN_TEXT: Mapping[str, int] = {Part.SEEN: 360, Part.EXPECTED: 150}
_OF_ITS_OWN: tuple[str, ...] = (Part.SEEN, Part.EXPECTED)  # of a check, beside a cause that others share
_WHY = "Why"  # a check is undecided, of which nothing was seen
_ONE_LINE = 300  # characters, of which a page shows as many as fit
_WIDTH = 100
_INDENT = " " * 14
_MARKUP = re.compile(r"`([^`]+)`|(?<![\w*])\*([^*\s](?:[^*`]*[^*`\s])?)\*(?![\w*])")


def render_text(report: Report) -> str:
    """The report for a terminal, wrapped at 100 columns."""
    return "\n".join(lines for lines, _ in render_entries(report))


def render_entries(report: Report, width: int = _WIDTH) -> Iterator[tuple[str, Verdict | None]]:
    """The same piece by piece, each wrapped at ``width`` columns, with the verdict that it tells, if it tells one."""

    def wrap_text(text: str, first: str = "  ", rest: str = "  ") -> str:
        words = " ".join(_truncate_text(text).split())
        return textwrap.fill(words, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)

    if report.problem:
        yield wrap_text(f"{report.exercise}: not checked. {report.problem}", ""), None
        return
    yield wrap_text(report.summary(), ""), None
    yield from ((wrap_text(each), None) for each in (report.older, report.note) if each)
    groups, passing = split_into_cause_groups_and_passed(report.results)
    for group in groups:
        first = group.first
        sign = f"  {_SIGN[first.verdict]} {first.word or first.verdict:<9} "
        yield wrap_text(write_heading(first), sign, _INDENT), first.verdict
        for label, text in _select_visible_parts(first).items():
            yield wrap_text(f"{label}: {_shorten_part(label, text)}", _INDENT, _INDENT), None
        yield from (
            (wrap_text(words, f"{_INDENT}{_SIGN[one]} ", _INDENT), one) for words, one, _ in _list_folded_checks(group)
        )
    if passing and not report.passed:
        yield f"  {_SIGN[Verdict.PASS]} {_write_passing_summary(passing)}", Verdict.PASS
    yield from ((wrap_text(each), None) for each in (report.pace, report.offer, report.hint) if each)
    # an address is never broken over two lines: it is there to be opened
    yield from ((f"  About {name}: {address}", None) for name, address in report.map_pages_to_read().items())


def write_heading(result: CheckResult) -> str:
    """Write what stands behind a verdict: behind "fail" no sentence that reads as if it held.

    A first cause is told as broken; what a check claims is what the exercise asks for.
    """
    return f"asked: {result.claim}" if result.verdict == Verdict.FAIL and not result.leads else result.claim


def render_first_cause_line(report: Report) -> str:
    """The first cause of a report in one line of HTML, with its sign: the mistake's name, else what was seen."""
    groups, passing = split_into_cause_groups_and_passed(report.results)
    if not groups:
        verdict, words = _find_overall_verdict(report), report.problem or report.note or _write_passing_summary(passing)
    else:
        first = groups[0].first
        parts, verdict = _select_visible_parts(first), first.verdict
        words = parts.get(Part.CAUSE) or next(iter(parts.values()), write_heading(first))
    return f"{_render_sign(verdict)} {render_inline_markup(words, longest=_ONE_LINE)}"


def _shorten_part(label: str, text: str) -> str:
    """A part of a message that fits on a first screen of text; a notebook shows the whole."""
    return _truncate_text(text, _LONGEST_IN_TEXT.get(label, _LONGEST))


def render_html(report: Report) -> str:
    """The report for a notebook: one section, a heading line, the first cause open, and the rest folded."""
    if report.problem:
        summary = f"{report.exercise}: not checked"
        content = (
            f"<strong>{_SIGN[Verdict.UNDECIDED]} {escape(summary)}.</strong> {render_inline_markup(report.problem)}"
        )
        return render_html_section(summary, render_paragraph(content), Verdict.UNDECIDED)
    verdict = _find_overall_verdict(report)
    before = render_paragraph(f"<strong>{_SIGN[verdict]} {escape(report.summary())}</strong>")
    before += "".join(render_paragraph(render_inline_markup(each)) for each in (report.older, report.note) if each)
    after = (
        f'<p style="margin:0;opacity:0.75"><small>{render_inline_markup(report.pace)}</small></p>'
        if report.pace
        else ""
    )
    after += render_paragraph(render_inline_markup(report.offer)) if report.offer else ""
    after += render_paragraph(f"<small>{render_inline_markup(report.hint)}</small>") if report.hint else ""
    return render_html_section(
        report.summary(), f"{before}{_render_results_list(report.results, report.site)}{after}", verdict
    )


def _render_results_list(results: Sequence[CheckResult], site: str) -> str:
    """The lines of a report as a list: an item for each cause, the first one open, and one for all that passes.

    Args:
        results: in the order of the checks.
        site: the address of the site with pages about misconceptions ("": there is none).
    """
    groups, passing = split_into_cause_groups_and_passed(results)
    items = [_render_cause_item(group, site, is_open=not place) for place, group in enumerate(groups)]
    if passing:
        folded = _render_folded_checks(_write_passing_summary(passing), Verdict.PASS, passing)
        items.append(f'<li style="margin:0.25em 0">{folded}</li>')
    return f'<ul style="list-style:none;margin:0.4em 0 0 0;padding:0">{"".join(items)}</ul>'


def make_mimebundle(report: Report) -> dict[str, object]:
    """Make what Jupyter shows. In a graded cell of a notebook the plain form is the bare number of points.

    nbgrader reads partial credit from the plain form of a cell's value, and gives full points for anything
    that is not a number.
    """
    in_notebook = is_in_notebook_kernel()
    graded = in_notebook and report.score is not None
    plain = str(report.score) if graded else render_text(report)
    if not in_notebook:
        return {"text/plain": plain}
    return {
        "text/plain": plain,
        "text/html": render_html(report),
        REPORT_MIME: report.as_dict() | {"text": render_text(report)},
    }


def is_in_notebook_kernel() -> bool:
    """Say whether this is the kernel of a notebook, and neither a terminal nor a script."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


def _list_folded_checks(group: CauseGroup) -> list[tuple[str, Verdict, tuple[CheckResult, ...]]]:
    """List what folds under the first of a group: a sentence about it, its sign, and the checks."""
    folds = []
    if group.same:
        because = " Mend this first." if group.first.reason == Reason.CHANGED else " for the same reason."
        verb = "fails" if len(group.same) == 1 else "fail"
        verb += "." if group.first.reason == Reason.CHANGED else ""
        folds.append((f"{_write_check_count(group.same, ' more')} {verb}{because}", Verdict.FAIL, group.same))
    if group.waiting:
        more = "" if group.first.leads else " more"
        words = (
            f"{_write_check_count(group.waiting, more)} wait{'s' * (len(group.waiting) == 1)} until this one passes."
        )
        words = f"{len(group.waiting)} more for the same reason." if group.first.word else words
        folds.append((words, Verdict.UNDECIDED, group.waiting))
    return folds


def _write_check_count(results: Sequence[CheckResult], suffix: str = "") -> str:
    return f"{len(results)}{suffix} check{'' if len(results) == 1 else 's'}"


def _write_passing_summary(passing: Sequence[CheckResult]) -> str:
    """That these checks pass, and what it is worth where an answer passes them that does nothing."""
    if passing[0].word:
        return format_count(len(passing), passing[0].word)
    verb = "passes" if len(passing) == 1 else "pass"
    says = "it says" if len(passing) == 1 else "they say"
    idle = f"; {says} little until the others pass" if all(each.guard for each in passing) else ""
    return f"{_write_check_count(passing)} {verb}{idle}"


def _find_overall_verdict(report: Report) -> Verdict:
    if report.passed:
        return Verdict.PASS
    if report.older:
        return Verdict.FAIL
    wrong = any(each.verdict == Verdict.FAIL or each.reason == Reason.WAITS_FOR_CHECK for each in report.results)
    return Verdict.FAIL if wrong else Verdict.UNDECIDED


def _select_visible_parts(result: CheckResult) -> dict[str, str]:
    parts = dict(result.parts())
    if result.verdict == Verdict.UNDECIDED and result.reason != Reason.REMARK and Part.SEEN in parts:
        parts = {_WHY: parts[Part.SEEN]}
    return parts


def render_html_section(aria_label: str, body: str, verdict: Verdict) -> str:
    """A block with a colored edge, called ``aria_label`` for those who hear the page; ``body`` is HTML."""
    style = f"border-left:4px solid {_COLOR[verdict]};padding:0.4em 0 0.4em 0.9em;margin:0.3em 0;line-height:1.5"
    return f'<section aria-label="{escape(aria_label, quote=True)}" style="{style}">{body}</section>'


def _render_cause_item(group: CauseGroup, site: str, is_open: bool) -> str:
    """A cause as an item of a list, with what folds under it; names of mistakes lead to their pages on ``site``."""
    first = group.first
    pages: dict[str, Mapping[str, str]] = {Part.CAUSE: map_names_to_addresses(first.pages().items(), site)}
    parts = {
        label: render_inline_markup(text, pages.get(label, {})) for label, text in _select_visible_parts(first).items()
    }
    rows = "".join(_render_indented_row(f"<strong>{label}:</strong> {html}") for label, html in parts.items())
    rows += "".join(
        _render_indented_row(_render_folded_checks(words, sign, checks))
        for words, sign, checks in _list_folded_checks(group)
    )
    sign, words = _render_sign(first.verdict), render_inline_markup(write_heading(first))
    head = f"{sign} <strong>{first.word or first.verdict}</strong> &nbsp;{words}"
    if rows and not is_open:
        return f'<li style="margin:0.25em 0"><details><summary>{head}</summary>{rows}</details></li>'
    return f'<li style="margin:0.25em 0">{head}{rows}</li>'


def _render_folded_checks(words: str, sign: Verdict, checks: Sequence[CheckResult]) -> str:
    """A sentence that opens to the checks that it is about, with what each of them has seen."""
    told = (f"{render_inline_markup(write_heading(each))}{_render_seen(each)}" for each in checks)
    items = "".join(f"<li>{each}</li>" for each in told)
    return (
        f'<details><summary>{_render_sign(sign)} {escape(words)}</summary><ul style="margin:0">{items}</ul></details>'
    )


def _render_seen(result: CheckResult) -> str:
    """Render what a folded failure has seen; a check that waits has seen nothing."""
    parts = result.parts() if result.verdict == Verdict.FAIL else {}
    return "".join(
        f"<div>{label}: {render_inline_markup(text)}</div>" for label, text in parts.items() if label in _OF_ITS_OWN
    )


def _render_sign(verdict: Verdict) -> str:
    return f'<span aria-hidden="true" style="color:{_COLOR[verdict]}">{_SIGN[verdict]}</span>'


def _render_indented_row(html: str) -> str:
    return f'<div style="margin:0.1em 0 0.1em 1.4em">{html}</div>'


def render_paragraph(body: str) -> str:
    """``body``, which is HTML, on its own line."""
    return f'<p style="margin:0">{body}</p>'


def render_inline_markup(text: str, pages: Mapping[str, str] | None = None, longest: int = _LONGEST) -> str:
    """Cut and escape ``text``, then turn `code` and *emphasis* into HTML; no mark is read inside another.

    An emphasis that is the name of a misconception, or of two at once, becomes a link to its page in ``pages``.
    """

    def mark(match: re.Match[str]) -> str:
        code, emphasis = match.groups()
        return f"<code>{code}</code>" if code else f"<em>{_link_mistake_names(emphasis, pages or {})}</em>"

    return _MARKUP.sub(mark, escape(_truncate_text(text, longest)))


def _link_mistake_names(names: str, pages: Mapping[str, str]) -> str:
    each = names.split(BETWEEN)
    if not all(name in pages for name in each):
        return names
    # a notebook's output may be a frame, in which another site does not open
    opened = 'target="_blank" rel="noopener" title="More about it on the course\'s site"'
    return BETWEEN.join(f'<a href="{escape(pages[name], quote=True)}" {opened}>{name}</a>' for name in each)


def _truncate_text(text: str, longest: int = _LONGEST) -> str:
    if len(text) <= longest:
        return text
    kept = text[:longest].rpartition(" ")[0] or text[:longest]
    kept = kept.rpartition("`")[0] if kept.count("`") % 2 else kept  # half of a quotation would swallow the rest
    return f"{kept.rstrip()} …"
