"""Scores and words of an exercise, from what its checks found."""

from dataclasses import replace

import pytest

from exercise_kit.engine.evaluate_check import Outcome, make_check_result
from exercise_kit.engine.exercise import Check
from exercise_kit.engine.python_slips import parse_definitions
from exercise_kit.engine.rendering import render_html
from exercise_kit.engine.verdict import Cause, CheckResult, Failure, Verdict
from exercise_kit.judge.graded_report import make_graded_report
from exercise_kit.judge.scoring import compute_fraction, fail_all_checks, score_checks
from exercise_kit.reasons import Reason
from vit_course.exercises.catalog import EXERCISES

CAUSE = Cause("column order", "It reads columns first.", "Which axis varies fastest?", "01_patchify, Tokens")


def make_outcome(verdict, points=1.0, name="test_it", **fields):
    check = Check(name, f"{name} holds.", lambda student, probe: None, worth=points)
    return Outcome(check, CheckResult(name, check.claim, Verdict(verdict), **fields))


@pytest.mark.parametrize(
    ("outcomes", "share"),
    [
        ([make_outcome("pass"), make_outcome("pass")], 1.0),
        ([make_outcome("pass", 3), make_outcome("fail", 1)], 0.75),
        ([make_outcome("pass", 3), make_outcome("fail", 1), make_outcome("undecided", 4)], 0.75),
        ([make_outcome("undecided"), make_outcome("undecided")], 0.0),
        ([make_outcome("pass", 3), make_outcome("fail", 1, reason=Reason.NOT_WRITTEN)], 0.75),
        ([], 0.0),
    ],
)
def test_points_are_weights(outcomes, share):
    assert compute_fraction("split_heads", outcomes) == share


def test_half_a_class_earns_nothing():
    outcomes = [
        make_outcome("pass", 3),
        make_outcome("fail", 1, "test_other", seen="not written", reason=Reason.NOT_WRITTEN),
    ]
    assert compute_fraction("PatchEmbedding", outcomes) == 0
    result = score_checks("PatchEmbedding", 5.0, outcomes)
    assert (result.score, result.problem) == (0.0, "something in PatchEmbedding is not written yet")
    assert (result.reason, result.kind) == (Reason.PARTLY_WRITTEN, "something in the answer is not written yet")
    assert [each.kind for each in result.checks] == ["", ""]


def test_a_result():
    failed = make_outcome(
        "fail", 1, "test_other", seen="this came", expected="that", causes=(CAUSE,), look="hidden by the cause"
    )
    result = score_checks("patchify", 8.0, [make_outcome("pass", 3), failed])
    assert (result.name, result.score, result.max_score, result.problem) == ("patchify", 6.0, 8.0, None)
    assert result.misconception == "column order"
    passed, other = result.checks
    assert (passed.verdict, passed.message, passed.parts()) == ("pass", None, {})
    assert (other.name, other.verdict, other.claim) == ("test_other", "fail", "test_other holds.")
    assert other.misconception == "column order"
    assert "This looks like *column order*" in other.parts()["Likely cause"]


def test_what_follows_from_an_earlier_cause_earns_nothing_and_is_told_as_check_tells_it():
    reason = Reason.DIFFERENT
    failed = [
        make_outcome("fail", name=name, seen=f"{name} gave 1", causes=(CAUSE,), reason=reason)
        for name in ("test_first", "test_next")
    ]
    own = make_outcome("fail", name="test_own", seen="of its own", reason=reason)
    result = score_checks("patchify", 8.0, [*failed, make_outcome("pass"), own])
    assert result.score == 2.0
    assert [(each.verdict, each.same_as) for each in result.checks] == [
        *(("fail", ""), ("fail", "test_first"), ("pass", ""), ("fail", ""))
    ]
    page = render_html(make_graded_report(result))
    assert "1 more check fails for the same reason" in page
    assert "2 of 8 points" in page


def test_a_claim_that_needs_another_waits_for_it():
    """A check of `check` that has to pass first; a failure behind it says nothing of its own."""
    first, second = EXERCISES["patchify"].list_graded_checks()[:2]
    bound = [
        replace(
            make_outcome("fail", name=each.name, seen=each.name, reason=Reason.SHAPE), check=replace(each, worth=1.0)
        )
        for each in (first, second)
    ]
    told = score_checks("patchify", 8.0, bound).checks
    assert [(each.verdict, each.waits_for) for each in told] == [("fail", ""), ("undecided", first.name)]
    passed = [make_outcome("undecided", name=first.name), bound[1]]
    assert [each.verdict for each in score_checks("patchify", 8.0, passed).checks] == ["undecided", "fail"]


def test_numbers_that_a_claim_has_found_wrong_decide_no_claim_of_another_sort():
    """'In training and in evaluation it gives the same tokens', and it does: they are other tokens than asked for."""
    claim = EXERCISES["patchify"].list_graded_checks()[1]
    right = make_outcome("fail", name=claim.name, seen="wrong numbers", reason=Reason.DIFFERENT)
    right = replace(right, check=claim)
    other, named, refusal = (
        make_outcome("fail", name="test_other", seen="wrong numbers, too", reason=Reason.DIFFERENT),
        make_outcome("fail", name="test_named", seen="wrong again", reason=Reason.DIFFERENT, causes=(CAUSE,)),
        make_outcome("fail", name="test_refusal", seen="30 x 4 accepted", reason=Reason.ACCEPTED),
    )
    told = score_checks("patchify", 8.0, [right, other, named, refusal]).checks
    assert [(each.verdict, each.waits_for) for each in told] == [
        *(("fail", ""), ("undecided", claim.name), ("fail", ""), ("fail", ""))
    ]


def test_a_slip_of_python_leads_as_in_check():
    source = "class PatchEmbedding(nn.Module):\n    def forward(images):\n        return self.projection(images)\n"
    raised = [make_outcome("fail", name=name, seen="TypeError", reason=Reason.RAISED) for name in ("test_a", "test_b")]
    written = parse_definitions(source, ["PatchEmbedding"])
    lead, *others = score_checks("PatchEmbedding", 5.0, raised, written=written).checks
    assert lead.leads
    assert "has no `self`" in lead.parts()["Seen"]
    assert {each.waits_for for each in others} == {lead.name}


def test_without_points_the_marks_count():
    assert score_checks("patchify", None, [make_outcome("pass", 1.5), make_outcome("fail", 0.5)]).max_score == 2.0


def test_what_is_not_written_is_said_once():
    outcomes = [
        make_outcome("fail", name=name, seen="it is not written yet", reason=Reason.NOT_WRITTEN)
        for name in ("test_a", "test_b")
    ]
    result = score_checks("patchify", 8.0, outcomes)
    assert result.problem == "patchify is not written yet"
    assert [each.message for each in result.checks] == [None, None]
    assert score_checks("patchify", 8.0, outcomes, "there were two answers").problem == "there were two answers"


def test_the_same_is_said_once_and_keeps_its_kind():
    failure = Failure("patchify gave 3 tokens")
    check = make_outcome("fail").check
    same = [
        Outcome(each, make_check_result(each, failure))
        for each in (replace(check, name="test_a"), replace(check, name="test_b"))
    ]
    assert [(each.message, each.kind) for each in score_checks("patchify", 8.0, same).checks] == [
        ("Seen: patchify gave 3 tokens.", "patchify gave # tokens"),
        ("Seen: the same as above.", "patchify gave # tokens"),
    ]


def test_nothing_could_be_decided():
    broke = replace(
        make_outcome("undecided", seen="the check itself broke"), broke="hidden/test_patchify.py:7: NameError: no"
    )
    result = score_checks("patchify", 8.0, [make_outcome("undecided"), broke])
    assert (result.score, result.points, result.waits) == (0, "– of 8", True)
    assert "none of its checks could decide" in result.problem
    assert result.waits_for == "hidden/test_patchify.py:7: NameError: no"
    assert not score_checks("patchify", 8.0, [make_outcome("fail"), broke]).waits, "the others decide"


def test_nothing_was_there_to_be_evaluated():
    checks = [make_outcome("pass", points).check for points in (1, 3)]
    checks[1] = replace(checks[1], name="test_other")
    words = "the cell of patchify is empty", Reason.EMPTY_CELL, "its cell is empty"
    result = fail_all_checks("patchify", None, checks, *words)
    assert (result.score, result.max_score) == (0.0, 4.0)
    assert (result.reason, result.kind) == (Reason.EMPTY_CELL, "its cell is empty")
    assert result.problem == "the cell of patchify is empty"
    assert [(each.verdict, each.message) for each in result.checks] == [("fail", None)] * 2
