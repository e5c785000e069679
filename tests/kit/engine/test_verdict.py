"""What a report counts, sums up and hands to programs."""

from __future__ import annotations

import json

import pytest

from exercise_kit.engine.verdict import Cause, CheckResult, Report, Verdict
from exercise_kit.reasons import Reason

PASS, FAIL, UNDECIDED = Verdict.PASS, Verdict.FAIL, Verdict.UNDECIDED
COLUMN = Cause("column order", "Tokens run down.", "Which axis is fastest?", "01_patchify, Order")
STRIPS = Cause("strips not squares", "Tokens are strips.", "What is a neighbor?", "01_patchify, Tokens")


def make_check_result(verdict: Verdict, **fields: object) -> CheckResult:
    return CheckResult("a_claim", "A claim.", verdict, **fields)  # type: ignore[arg-type]


WAITS, UNKNOWN = make_check_result(UNDECIDED, reason=Reason.WAITS_FOR_CHECK), make_check_result(UNDECIDED)


@pytest.mark.parametrize(
    ("results", "fraction"),
    [
        ((), 0.0),
        ((make_check_result(PASS),), 1.0),
        ((make_check_result(FAIL),), 0.0),
        ((make_check_result(PASS), make_check_result(FAIL), make_check_result(FAIL), make_check_result(PASS)), 0.5),
        ((make_check_result(PASS), WAITS), 0.5),
        ((make_check_result(PASS), UNKNOWN), 1.0),
        ((make_check_result(PASS), make_check_result(FAIL), UNKNOWN, WAITS), 1 / 3),
        ((UNKNOWN,), 0.0),
        ((make_check_result(PASS), make_check_result(FAIL, worth=3.0)), 0.25),
        ((make_check_result(PASS, worth=0.0), make_check_result(FAIL)), 0.0),
        ((make_check_result(PASS), make_check_result(UNDECIDED, reason=Reason.WAITS_FOR_CHECK, worth=7.0)), 1 / 8),
        ((make_check_result(PASS), make_check_result(FAIL), make_check_result(PASS, guard=True)), 1.5 / 3),
        ((make_check_result(FAIL), make_check_result(PASS, guard=True), make_check_result(PASS, guard=True)), 0.0),
        ((make_check_result(PASS), make_check_result(FAIL, guard=True)), 0.5),
    ],
    ids=[
        *("nothing", "all", "none", "half", "waiting is not earned", "undecided does not count", "mixed", "no verdict"),
        *("worth more", "worth nothing", "waiting by its worth"),
        *("guards in proportion", "guards alone earn nothing", "a guard that fails"),
    ],
)
def test_fraction(results: tuple[CheckResult, ...], fraction: float) -> None:
    report = Report("patchify", results, points=8)
    assert report.fraction == pytest.approx(fraction)
    assert report.score == pytest.approx(8 * fraction, abs=1e-4)
    assert report.passed == (fraction == 1)


def test_a_failure_that_costs_nothing_is_no_pass() -> None:
    report = Report("patchify", (make_check_result(PASS), make_check_result(FAIL, worth=0.0)))
    assert report.fraction == 1.0
    assert not report.passed


def test_a_problem_is_no_pass() -> None:
    assert not Report("patchify", (make_check_result(PASS),), problem="Nothing was given.").passed


@pytest.mark.parametrize("points", [0, 1 / 3, 2 / 3, 0.66666, 1, 1.00005, 3.14159, 7, 1e-6, 1e6])
@pytest.mark.parametrize("passing", range(4))
def test_the_score_stays_within_its_points(points: float, passing: int) -> None:
    report = Report(
        "patchify", (*[make_check_result(PASS)] * passing, *[make_check_result(FAIL)] * (3 - passing)), points
    )
    assert 0 <= report.score <= points  # nbgrader loses a submission whose score is above
    assert isinstance(report.score, float)


@pytest.mark.parametrize("points", [-1, float("nan"), float("inf"), -float("inf")])
def test_points_that_nobody_can_earn_are_refused(points: float) -> None:
    with pytest.raises(ValueError, match="points"):
        Report("patchify", points=points)


@pytest.mark.parametrize(
    ("passing", "failing", "said"),
    [
        (0, 0, "0 of 0 checks pass"),
        (0, 1, "0 of 1 check passes"),
        (1, 0, "1 of 1 check passes"),
        (1, 2, "1 of 3 checks passes"),
        (0, 2, "0 of 2 checks pass"),
        (2, 0, "2 of 2 checks pass"),
    ],
)
def test_the_summarys_grammar(passing: int, failing: int, said: str) -> None:
    results = (*[make_check_result(PASS)] * passing, *[make_check_result(FAIL)] * failing)
    assert Report("patchify", results).summary() == f"patchify: {said}"


def test_the_summary_rounds_points() -> None:
    results = (*[make_check_result(PASS)] * 4, *[make_check_result(FAIL)] * 3)
    assert Report("patchify", results, points=8).summary() == "patchify: 4 of 7 checks pass, 4.57 of 8 points"


def test_misconceptions_are_named_once_in_the_order_of_the_checks() -> None:
    results = (
        make_check_result(FAIL, causes=(STRIPS,)),
        make_check_result(FAIL, causes=(STRIPS, COLUMN)),  # these two cannot be told apart: no name
        make_check_result(FAIL),
        make_check_result(FAIL, causes=(COLUMN,)),
        make_check_result(FAIL, causes=(STRIPS,)),
    )
    assert Report("patchify", results).misconceptions == ("strips not squares", "column order")


def test_a_message_runs_from_what_was_seen_to_where_to_look() -> None:
    failed = make_check_result(FAIL, seen="token 1 is wrong", expected="another", causes=(COLUMN,), look="Look here.")
    assert list(failed.parts()) == ["Seen", "Expected", "Likely cause", "Where to look"]
    assert "This looks like *column order*: Tokens run down." in failed.message
    assert "Which axis is fastest? (lesson 01_patchify, Order)" in failed.message
    assert "Look here." not in failed.message  # the cause's own question says it better


def test_parts_that_say_nothing_are_left_out() -> None:
    assert make_check_result(FAIL, seen="it is None").parts() == {"Seen": "it is None"}
    assert make_check_result(PASS).message is None


def test_two_causes_are_both_named_and_none_is_explained() -> None:
    failed = make_check_result(FAIL, seen="wrong", causes=(COLUMN, STRIPS))
    assert "*column order* or *strips not squares*" in failed.message
    assert "Tokens run down" not in failed.message
    assert failed.misconception is None


def test_a_cause_that_was_reported_above_is_only_named() -> None:
    message = make_check_result(FAIL, seen="wrong", causes=(COLUMN,), is_repeated=True).message
    assert "*column order*, as above" in message
    assert "Tokens run down" not in message
    assert "Where to look" not in message


def test_input_that_should_have_been_refused_has_its_own_place_to_look_whatever_was_reported_above() -> None:
    fields = {"seen": "it was accepted", "causes": (COLUMN,), "look": "Test for it.", "reason": Reason.ACCEPTED}
    assert make_check_result(FAIL, is_repeated=True, **fields).parts()["Where to look"] == "Test for it."
    assert "Test for it." not in make_check_result(FAIL, **fields).message


def test_the_form_for_programs_is_json() -> None:
    results = (make_check_result(PASS), make_check_result(FAIL, seen="wrong", causes=(COLUMN,)), WAITS)
    data = json.loads(json.dumps(Report("patchify", results, points=3).as_dict(), allow_nan=False))
    assert data["name"] == "patchify"
    assert data["score"] == 1.0
    assert data["max_score"] == 3
    assert data["misconception"] == "column order"
    assert [each["verdict"] for each in data["checks"]] == ["pass", "fail", "undecided"]
    assert data["checks"][1]["misconception"] == "column order"
