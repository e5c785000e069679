"""Results as JSON: exactly the published keys, and back again from what was kept."""

import json
from dataclasses import replace

import pytest

from exercise_kit.engine.verdict import Cause, CheckResult, Verdict
from exercise_kit.judge.result import (
    CellOutputs,
    ExerciseResult,
    LogEntry,
    LogKind,
    Result,
    make_legible,
)
from exercise_kit.reasons import FlagNote

COLUMN = Cause("column order", "It runs down.", "", "01", pages=(("column order", "mistakes/patchify/column-order"),))
CHECK = CheckResult("test_rows", "Tokens follow the image.", Verdict.FAIL, "x\x1b[31m", causes=(COLUMN,))
OTHER = CheckResult("test_other", "It holds.", Verdict.PASS)
RESULT = Result(
    "submitted/ann/01_patchify/01_patchify.ipynb",
    "ann",
    "01_patchify",
    "graded",
    None,
    3.5,
    8.0,
    0.123456,
    ("reference-copied",),
    (ExerciseResult("patchify", 3.5, 8.0, "column order", (CHECK, OTHER)),),
    (FlagNote("reference-copied", "patchify", "9 of its lines are the course's"),),
    (CellOutputs(3, ({"output_type": "stream", "name": "stdout", "text": "hello"},)),),
    (LogEntry(LogKind.DETAIL, "for the instructor", "patchify", "test_rows"),),
)


def test_no_control_character_is_published():
    entry = RESULT.as_dict()["exercises"][0]["checks"][0]
    assert entry["message"].startswith("Seen: x [31m. Likely cause: This looks like *column order*")
    assert entry["parts"]["Seen"] == "x [31m"
    assert make_legible("a\x00b\tc\nd\u202ee\udc80f é√") == "a b\tc\nd e f é√"


def test_seconds_of_an_exercise_are_kept_and_not_published():
    timed = replace(RESULT, exercises=(replace(RESULT.exercises[0], seconds=0.25),))
    assert "seconds" not in timed.as_dict()["exercises"][0]
    assert Result.from_dict(timed.to_store()).exercises[0].seconds == 0.25


def test_what_is_kept_comes_back():
    kept = json.loads(json.dumps(RESULT.to_store()))
    again = Result.from_dict(kept)
    assert again.to_store() == RESULT.to_store()
    assert again.runs == RESULT.runs
    assert again.log == RESULT.log
    assert isinstance(again.exercises[0].checks[0], CheckResult)


def test_what_is_published_comes_back_without_what_was_not():
    again = Result.from_dict(RESULT.as_dict())
    assert again.as_dict() == RESULT.as_dict()
    assert again.runs == ()


@pytest.mark.parametrize("entry", [{}, {"exercises": []}, {**RESULT.as_dict(), "more": 1}])
def test_what_was_never_kept_is_refused(entry):
    with pytest.raises((KeyError, TypeError, ValueError)):
        Result.from_dict(entry)
