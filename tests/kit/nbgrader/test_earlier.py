"""When points that a person gave are to be looked at again."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from exercise_kit.nbgrader.earlier import Earlier
from exercise_kit.nbgrader.grader_notes import Noted

MARK = {"grade": True, "points": 2.0}
CHECK = new_code_cell("check('a', a)", metadata={"nbgrader": MARK | {"grade_id": "check-a", "solution": False}})
ANSWER = new_markdown_cell("Because.", metadata={"nbgrader": MARK | {"grade_id": "why", "solution": True}})
BEFORE = {
    "notes": Noted(submission="first", points={"check-a": 2.0, "why": 2.0}),
    "texts": {"check-a": CHECK.source, "why": ANSWER.source},
    "points": {"check-a": (1.5, False), "why": (None, False)},
}


@pytest.mark.parametrize(
    ("cell", "changed", "automatic", "submission", "listed"),
    [
        pytest.param(ANSWER, {}, None, "first", False, id="the same answer"),
        pytest.param(ANSWER, {}, None, "second", False, id="the same answer, other code"),
        pytest.param(ANSWER, {"texts": {"why": "Why not?"}}, None, "second", True, id="another answer"),
        pytest.param(ANSWER, {"texts": {"why": "Why not?"}}, 0.0, "second", True, id="an emptied answer"),
        pytest.param(ANSWER, {"points": {"why": (None, True)}}, None, "first", True, id="listed before"),
        pytest.param(ANSWER, {"notes": Noted(points={"why": 1.0})}, None, "first", True, id="other points to earn"),
        pytest.param(CHECK, {}, 1.5, "first", False, id="the same work"),
        pytest.param(CHECK, {}, 1.5, "second", True, id="other work"),
        pytest.param(CHECK, {}, 1.0, "first", True, id="a mended hidden check decides otherwise"),
        pytest.param(CHECK, {}, 1.5, "", True, id="nobody knows what was handed in"),
    ],
)
def test_points_by_hand_are_looked_at_again_only_for_other_work(cell, changed, automatic, submission, listed) -> None:
    assert Earlier(**(BEFORE | changed)).needs_manual_grading(cell, automatic, submission) == listed


@pytest.mark.parametrize("cell", [ANSWER, CHECK])
def test_without_an_earlier_page_they_always_are(cell) -> None:
    assert Earlier().needs_manual_grading(cell, None, "first")
