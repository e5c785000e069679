"""How a report looks: as text, as HTML that a student's words cannot break, and to nbgrader."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from exercise_kit.engine import rendering as show
from exercise_kit.engine.verdict import Cause, CheckResult, Report, Verdict
from exercise_kit.reasons import Reason
from tests.html import Page

HOSTILE = """<script>alert("x")</script> & 'quoted' </section> <b onclick=x> &amp; --> *a `b* c` **d** `e *f` g*"""
ALLOWED = {"section", "p", "strong", "ul", "li", "span", "div", "code", "em", "details", "summary"}


def make_failing_report(text: str, problem: str | None = None, points: float | None = None) -> Report:
    cause = Cause(text, text, text, text)
    results = (
        CheckResult("one", text, Verdict.PASS),
        CheckResult("two", text, Verdict.FAIL, text, text, look=text),
        CheckResult("three", text, Verdict.FAIL, text, text, (cause,)),
        CheckResult("four", text, Verdict.UNDECIDED, text, reason=Reason.WAITS_FOR_CHECK),
    )
    return Report(text, results, points, problem)


@pytest.mark.parametrize(
    "report", [make_failing_report(HOSTILE), make_failing_report(HOSTILE, problem=HOSTILE)], ids=["results", "problem"]
)
def test_a_students_words_stay_words(report: Report) -> None:
    page = Page(show.render_html(report))
    assert {*page.tags} <= ALLOWED
    assert {name for _, name, _ in page.attributes} <= {"style", "aria-label", "aria-hidden"}
    assert "<script>alert(\"x\")</script> & 'quoted' </section>" in page.text
    assert str(page.elements[0][1]["aria-label"]).startswith(HOSTILE)


SITE = 'https://example.org/"><b>/'
PAGES = {"column order": "mistakes/a/column-order", "pixels first": "mistakes/a/pixels first"}
COLUMN_ORDER = f"{SITE}mistakes/a/column-order.html"


def make_named_report(*names: str) -> Report:
    """A report in which each of these causes explains a check, and a student's words use the name of one."""
    pages = [tuple((each, PAGES[each]) for each in name.split(", and ") if each in PAGES) for name in names]
    causes = [Cause(name, "It is wrong.", "Why?", "01_a, B", "", each) for name, each in zip(names, pages, strict=True)]
    said = "*column order*"
    results = [CheckResult(each.name, said, Verdict.FAIL, said, causes=(each,)) for each in causes]
    return Report("patchify", tuple(results), site=SITE)


def list_links(html: str) -> list[dict[str, str | None]]:
    return [attributes for tag, attributes in Page(html).elements if tag == "a"]


def test_the_name_of_a_mistake_leads_to_its_page_and_nothing_of_the_student_s_does() -> None:
    html = show.render_html(make_named_report("column order"))
    link = {"href": COLUMN_ORDER, "target": "_blank", "rel": "noopener", "title": "More about it on the course's site"}
    assert list_links(html) == [link]
    assert ">column order</a></em>: It is wrong." in html
    assert f"About column order: {COLUMN_ORDER}" in show.render_text(make_named_report("column order"))


def test_of_two_mistakes_at_once_each_leads_to_its_own_page() -> None:
    report = make_named_report("column order, and pixels first")
    expected = [COLUMN_ORDER, f"{SITE}mistakes/a/pixels%20first.html"]
    assert [each["href"] for each in list_links(show.render_html(report))] == expected
    assert list(report.map_pages_to_read().values()) == expected
    assert "<b>" not in show.render_html(report)


def test_a_mistake_without_a_page_has_no_link() -> None:
    for report in (
        make_named_report("unheard of"),
        make_named_report("column order, and unheard of"),
        make_failing_report("wrong"),
    ):
        assert list_links(show.render_html(report)) == []
    assert list_links(show.render_html(replace(make_named_report("column order"), site=""))) == []
    assert "About" not in show.render_text(make_named_report("unheard of"))


def test_a_mistake_that_explains_many_checks_has_one_line_of_text() -> None:
    assert show.render_text(make_named_report("column order", "column order")).count("https://") == 1


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`a` and *b*", "<code>a</code> and <em>b</em>"),
        ("`a*b*c`", "<code>a*b*c</code>"),
        ("`a *b` c*", "<code>a *b</code> c*"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("*args, **kwargs", "*args, **kwargs"),
        ("a lonely ` and a lonely *", "a lonely ` and a lonely *"),
        ("*column order*: x<y", "<em>column order</em>: x&lt;y"),
    ],
)
def test_marks_do_not_overlap(text: str, html: str) -> None:
    assert html in show.render_html(Report("patchify", problem=text))


def test_a_long_message_is_cut() -> None:
    report = Report("patchify", make_failing_report("x" * 100_000).results)
    for shown in (show.render_html(report), show.render_text(report)):
        assert len(shown) < 12_000
        assert "…" in shown


def test_html_brings_no_style_sheet_and_no_script_and_leaves_the_texts_color_alone() -> None:
    for tag, attributes in Page(show.render_html(make_failing_report("wrong", points=4))).elements:
        assert tag not in ("style", "script", "link")
        style = attributes.get("style") or ""
        assert "background" not in style
        assert "class" not in attributes
        colored = re.search(r"(?<!-)color:", style)
        assert not colored or attributes.get("aria-hidden") == "true"  # signs only, each beside its word


def test_every_verdict_is_a_word() -> None:
    report = make_failing_report("wrong")
    for text in (Page(show.render_html(report)).text, show.render_text(report)):
        assert all(text.count(word) >= 1 for word in ("pass", "fail", "undecided"))
    assert "not checked" in show.render_text(Report("patchify", problem="What?"))
    assert "not checked" in Page(show.render_html(Report("patchify", problem="What?"))).text


def compute_luminance(color: str) -> float:
    """Relative luminance after WCAG 2.2."""
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("ground", ["#ffffff", "#111111"])
@pytest.mark.parametrize("verdict", Verdict)
def test_signs_stand_out_from_light_and_dark_grounds(verdict: Verdict, ground: str) -> None:
    lighter, darker = sorted((compute_luminance(show._COLOR[verdict]), compute_luminance(ground)), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 3


@pytest.mark.parametrize(
    ("results", "color"),
    [
        ((Verdict.PASS,), Verdict.PASS),
        ((Verdict.PASS, Verdict.FAIL), Verdict.FAIL),
        ((Verdict.UNDECIDED,), Verdict.UNDECIDED),
    ],
)
def test_the_bar_has_the_color_of_the_whole(results: tuple[Verdict, ...], color: Verdict) -> None:
    html = show.render_html(Report("patchify", tuple(CheckResult("a", "A.", each) for each in results)))
    assert f"border-left:4px solid {show._COLOR[color]}" in html


@pytest.mark.parametrize(
    ("waits", "sign"), [(Reason.WAITS_FOR_JUDGE, Verdict.UNDECIDED), (Reason.WAITS_FOR_CHECK, Verdict.FAIL)]
)
def test_what_only_the_judge_can_decide_is_no_failure(waits: Reason, sign: Verdict) -> None:
    results = CheckResult("a", "A.", Verdict.PASS), CheckResult("b", "B.", Verdict.UNDECIDED, reason=waits)
    assert f"<strong>{show._SIGN[sign]} patchify: 1 of 2" in show.render_html(Report("patchify", results))


def test_text_is_wrapped_at_100_columns() -> None:
    long = "Images that are taller than wide, or wider than tall, with any number of channels, come out right. "
    for report in (
        make_failing_report(long * 3),
        Report("patchify", problem=long * 3),
        make_failing_report("unbreakable" * 40),
    ):
        report = Report("patchify", report.results, 8, report.problem)
        lines = show.render_text(report).splitlines()
        assert max(map(len, lines)) <= 100
    assert str(report) == repr(report) == show.render_text(report)


def test_text_has_one_line_of_its_own_for_every_part() -> None:
    text = show.render_text(Report("patchify", make_failing_report("a\n\nb").results))
    assert "Seen: a b" in text
    assert "Expected: a b" in text
    assert "Why: a b" in text


def test_outside_of_a_notebook_there_is_text_only() -> None:
    assert make_failing_report("wrong", points=4)._repr_mimebundle_() == {
        "text/plain": show.render_text(make_failing_report("wrong", points=4))
    }


@pytest.fixture
def pretend_notebook_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "is_in_notebook_kernel", lambda: True)


@pytest.mark.usefixtures("pretend_notebook_kernel")
def test_a_graded_cell_ends_in_its_points() -> None:
    bundle = make_failing_report("wrong", points=4)._repr_mimebundle_()
    assert bundle["text/plain"] == "1.0"
    assert bundle["text/html"] == show.render_html(make_failing_report("wrong", points=4))
    assert Report("patchify", problem="No.", points=4)._repr_mimebundle_()["text/plain"] == "0.0"


@pytest.mark.usefixtures("pretend_notebook_kernel")
def test_a_cell_without_points_ends_in_text() -> None:
    assert make_failing_report("wrong")._repr_mimebundle_()["text/plain"] == show.render_text(
        make_failing_report("wrong")
    )


@pytest.mark.usefixtures("pretend_notebook_kernel")
def test_what_jupyter_gets_is_json() -> None:
    bundle = make_failing_report(HOSTILE, points=4)._repr_mimebundle_()
    assert json.loads(json.dumps(bundle, allow_nan=False))[show.REPORT_MIME]["max_score"] == 4
