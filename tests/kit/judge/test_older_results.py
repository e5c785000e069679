"""Results from before reasons were data: what the newer keys hold is read from their sentences."""

import pytest

from exercise_kit.judge.result import CheckOutcome, ExerciseResult, Result, completed
from exercise_kit.reasons import Reason

PARTS = {
    "Seen": "token 3 of (2, 10, 48) is 0.5 too large, at `x = 1`",
    "Expected": "a difference of 0",
    "Likely cause": "This looks like *column order*: it reads columns first.",
    "Where to look": "Which axis varies fastest? (lesson 01_patchify, Tokens)",
}
MESSAGE = (
    "Seen: token 3 of (2, 10, 48) is 0.5 too large, at `x = 1`. Expected: a difference of 0. Likely cause: This "
    "looks like *column order*: it reads columns first. Where to look: Which axis varies fastest? (lesson 01_patchify, "
    "Tokens)."
)
KIND = "token # of (…) is # too large, at …"


def check(message, verdict="fail"):
    return {"name": "test_it", "verdict": verdict, "message": message, "misconception": None}


def published(*messages, score=0.0, name="patchify"):
    checks = [check(message) for message in messages]
    return completed({"name": name, "score": score, "max_score": 8.0, "misconception": None, "checks": checks})


def test_a_message_gives_its_parts_and_its_kind():
    exercise = published(MESSAGE)
    (check,) = exercise["checks"]
    assert (check["parts"], check["kind"]) == (PARTS, KIND)
    assert (exercise["problem"], exercise["reason"], exercise["kind"]) == (None, None, "")


@pytest.mark.parametrize(
    ("problem", "reason", "kind"),
    [
        (
            "`a`, `b` are not defined: it raised ValueError `by Quist`.",
            Reason.REMARK,
            "the answer is not defined: it raised ValueError",
        ),
        (
            "patchify was not evaluated: it took 60 seconds",
            Reason.REMARK,
            "the answer was not evaluated: it took 60 seconds",
        ),
        ("the cell of patchify does not define patchify", Reason.REMARK, "its cell does not define the answer"),
        ("patchify.pt is not there", Reason.REMARK, "patchify.pt is not there"),
        ("the cell of patchify is missing", Reason.NOT_WRITTEN, "its cell is missing"),
        ("patchify is not written yet", Reason.NOT_WRITTEN, "the answer is not written yet"),
    ],
)
def test_what_is_said_at_each_check_is_of_the_whole_exercise(problem, reason, kind):
    exercise = published(problem, problem)
    assert [exercise["problem"], exercise["reason"], exercise["kind"]] == [problem, reason, kind]
    assert [each["parts"] for each in exercise["checks"]] == [{}, {}]


def test_an_exercise_without_a_check_could_not_be_used():
    assert published()["reason"] is Reason.OUR_ERROR
    assert published(score=8.0)["reason"] is None


def test_what_was_kept_without_kinds_is_read_as_what_is_kept_today():
    failed = CheckOutcome("test_it", "fail", MESSAGE, None, "It holds.", PARTS, kind=KIND)
    fields = {"problem": "the cell of unpatchify is empty", "reason": Reason.EMPTY_CELL, "kind": "its cell is empty"}
    empty = ExerciseResult("unpatchify", 0.0, 5.0, None, (CheckOutcome("test_a", "fail"),), **fields)
    result = Result(
        "a", "ann", "01_patchify", "graded", exercises=(ExerciseResult("patchify", 0, 8, None, (failed,)), empty)
    )
    entry = result.to_store()
    for exercise in entry["exercises"]:
        del exercise["kind"]
        for each in exercise["checks"]:
            del each["kind"]
    assert Result.from_dict(entry) == result
