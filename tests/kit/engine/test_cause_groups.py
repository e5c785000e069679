"""One cause, one line: what folds under what, what comes first, and how much of it a reader has to see."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from exercise_kit.engine import check
from exercise_kit.engine.cause_groups import split_into_cause_groups_and_passed
from exercise_kit.engine.rendering import render_html, render_text
from exercise_kit.engine.verdict import Cause, CheckResult, Report, Verdict
from exercise_kit.reasons import Reason
from tests.answers import find_known_mistake
from vit_course.patches import patchify

ORDER = Cause("column order", "The tokens run down the columns.", "Which axis?", "01_a, B")
FIRST_SCREEN = 14  # lines of text
columns = find_known_mistake("patchify", "column order").objects[0]


def make_check_result(name: str, verdict: Verdict = Verdict.FAIL, **fields: Any) -> CheckResult:
    return CheckResult(name, f"{name.capitalize()}.", verdict, f"{name} is seen", **fields)


def test_causes_come_in_the_order_in_which_they_are_mended() -> None:
    results = [
        make_check_result("difference"),
        make_check_result("named", causes=(ORDER,)),
        make_check_result("doubt", Verdict.UNDECIDED, reason=Reason.UNDECIDABLE),
        make_check_result("shape", reason=Reason.SHAPE),
        make_check_result("in place", reason=Reason.CHANGED),
        make_check_result("error", leads=True, reason=Reason.RAISED),
        make_check_result("right", Verdict.PASS),
    ]
    groups, passing = split_into_cause_groups_and_passed(results)
    assert [each.first.name for each in groups] == ["error", "in place", "shape", "named", "difference", "doubt"]
    assert [each.name for each in passing] == ["right"]


def test_what_has_the_same_cause_or_waits_folds_and_so_does_what_waits_for_that() -> None:
    results = [
        make_check_result("first", causes=(ORDER,)),
        make_check_result("second", causes=(ORDER,), is_repeated=True, same_as="first"),
        make_check_result("third", Verdict.UNDECIDED, reason=Reason.WAITS_FOR_CHECK, waits_for="second"),
    ]
    ((group,), _) = split_into_cause_groups_and_passed(results)
    assert (group.first.name, [each.name for each in group.same]) == ("first", ["second"])
    assert [each.name for each in group.waiting] == ["third"]
    text = render_text(Report("double", tuple(results)))
    assert "✗ 1 more check fails for the same reason." in text
    assert "○ 1 more check waits until this one passes." in text
    assert "Second." not in text


def test_a_named_mistake_is_one_entry_and_no_tick_stands_beside_it() -> None:
    report = check("patchify", columns)
    text = render_text(report)
    assert len(text.splitlines()) <= FIRST_SCREEN
    assert text.count("✗ fail") == 1
    assert "✗ 2 more checks fail for the same reason." in text
    assert "○ 4 more checks wait until this one passes." in text
    assert re.search(r"✓ \d checks pass", text)
    assert "Inside a token" not in text
    html = render_html(report)
    assert html.count("<strong>fail</strong>") == 1
    # and whoever opens it reads each claim all the same
    assert all(each.claim in unescape(html) for each in report.results)


def test_only_the_first_cause_is_open() -> None:
    results = (
        make_check_result("b"),
        make_check_result("a", causes=(ORDER,)),
        make_check_result("c", look="Why?"),
        make_check_result("d", Verdict.PASS),
    )
    html = render_html(Report("double", results))
    before, _, after = html.partition("<details>")
    assert "A." in before
    assert "A is seen" not in after
    assert html.count("<details>") == 3  # two other causes, and what passes


def test_what_passes_an_idle_answer_says_so() -> None:
    results = make_check_result("a"), make_check_result("b", Verdict.PASS, guard=True)
    assert "✓ 1 check passes; it says little until the others pass" in render_text(Report("double", results))
    results = (
        make_check_result("a"),
        make_check_result("b", Verdict.PASS, guard=True),
        make_check_result("c", Verdict.PASS),
    )
    assert "✓ 2 checks pass\n" in render_text(Report("double", results)) + "\n"


def test_a_right_answer_reads_once_that_hidden_checks_ask_more() -> None:
    report = check("patchify", patchify, points=3)
    assert render_text(report).count("Grading uses more checks") == 1
    assert render_html(report).count("<small>Grading uses more checks") == 1
    assert len(render_text(report).splitlines()) <= 5
    assert "Hidden checks" not in render_text(check("patchify", columns))


@pytest.mark.parametrize("points", [None, 3])
def test_what_is_older_than_its_cell_has_no_green_heading(points: float | None) -> None:
    passing = make_check_result("a", Verdict.PASS)
    report = Report("double", (passing,), points, older="Line 2 of the last cell has a syntax error.")
    assert not report.passed
    assert render_text(report).startswith("double: what the cell holds now was not checked\n  Line 2 of the last cell")
    assert "1 of 1" not in render_text(report)
    assert "#D55E00" in render_html(report).partition(">")[0]
    assert "✓ double" not in render_html(report)
