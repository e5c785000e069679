"""One report in every form: no failure stands before a sentence that says the opposite, and labels are written once."""

from __future__ import annotations

import ast
import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import exercise_kit
import vit_course
from exercise_kit.engine.course import course
from exercise_kit.engine.rendering import render_html, render_text
from exercise_kit.engine.verdict import Cause, CheckResult, Part, Report, Verdict
from exercise_kit.exports import classroom50, gradescope
from exercise_kit.judge.graded_report import make_graded_report
from exercise_kit.judge.result import ExerciseResult, Result
from exercise_kit.nbgrader.nbgrader_judge import make_check_output
from exercise_kit.reasons import Reason
from exercise_kit.report.terminal import render_submission
from tests.kit.batch.test_terminal import print_to_text

CLAIM, OTHER, HOLDS = "Tokens follow the image.", "Patches come back.", "Bad sizes raise."
VERDICTS = {CLAIM: Verdict.FAIL, OTHER: Verdict.UNDECIDED, HOLDS: Verdict.PASS}


CHECKS = tuple(CheckResult(f"test_{name}", name, each, "it is") for name, each in VERDICTS.items())


def make_exercise_result() -> ExerciseResult:
    return ExerciseResult("patchify", 1.0, 4.0, checks=CHECKS)


def make_result() -> Result:
    return Result(
        "a.ipynb", "ada", "01_patchify", "graded", score=1.0, max_score=4.0, exercises=(make_exercise_result(),)
    )


def write_for_classroom50() -> str:
    runner = dict.fromkeys(
        ("CLASSROOM", "ASSIGNMENT", "ASSIGNMENT_TYPE", "USERNAME", "SUBMISSION_TAG", "COMMIT_URL", "RELEASE_URL"), "a"
    )
    return str(json.loads(classroom50.write([make_result()], runner))["tests"][0]["output"])


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(lambda: render_text(Report("patchify", CHECKS)), id="check"),
        pytest.param(lambda: render_html(Report("patchify", CHECKS)), id="notebook"),
        pytest.param(lambda: print_to_text(render_submission(make_result())), id="grade"),
        pytest.param(lambda: str(make_check_output(make_exercise_result(), 4.0)["data"]["text/html"]), id="nbgrader"),
        pytest.param(lambda: str(json.loads(gradescope.write([make_result()]))["tests"][0]["output"]), id="gradescope"),
        pytest.param(write_for_classroom50, id="classroom50"),
    ],
)
def test_a_failure_says_what_was_asked_and_nothing_else_does(shown: Callable[[], str]) -> None:
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown())).split())
    assert f"✗ fail asked: {CLAIM} Seen: it is" in text
    assert f"○ undecided {OTHER} Why: it is" in text
    assert "✓ 1 check passes" in text
    assert text.count("asked: ") == 1


def test_what_a_gradebook_s_cell_is_worth_counts() -> None:
    assert (
        make_graded_report(make_exercise_result(), 2.0).summary() == "patchify: 1 of 3 checks passes, 0.5 of 2 points"
    )
    words = {"problem": "It is not written yet.", "reason": Reason.NOT_WRITTEN}
    unwritten = ExerciseResult("patchify", 0.0, 4.0, checks=make_exercise_result().checks, **words)
    assert render_text(make_graded_report(unwritten)).splitlines() == [
        "patchify: 0 of 4 points",
        "  It is not written yet.",
    ]


COLUMN, ROW = (
    Cause(name, f"{name}: so.", "Which is it?", "01", pages=((name, f"mistakes/{name}"),)) for name in ("column", "row")
)


@pytest.mark.parametrize(
    "causes",
    [(), (COLUMN,), (COLUMN, ROW), (Cause("column, and row", "Both.", "", "01", pages=COLUMN.pages + ROW.pages),)],
    ids=["none", "one", "two alike", "two at once"],
)
def test_a_graded_check_reads_and_stands_as_in_check_also_when_it_comes_back_from_a_file(
    causes: tuple[Cause, ...],
) -> None:
    """Of two mistakes that give the same numbers, too: such a line comes before one without any name."""
    unnamed = CheckResult("other", "It holds.", Verdict.FAIL, "it is 2", kind="it is #")
    line = replace(unnamed, name="test", seen="it is\x1b[31m 1", expected="3", causes=causes, reason=Reason.DIFFERENT)
    result = ExerciseResult("patchify", 0.0, 4.0, checks=(unnamed, line))
    again = ExerciseResult.from_dict(json.loads(json.dumps(result.as_dict(), sort_keys=True)))
    told, *others = (
        render_html(each).partition("<ul")[2]
        for each in (Report("", result.checks, site="s/"), *map(make_graded_report, (result, again)))
    )
    told = told.replace("s/mistakes", f"{course().site}mistakes")
    assert others == [told] * 2
    assert again.as_dict() == result.as_dict()


def test_the_labels_of_a_report_are_written_in_one_place() -> None:
    labels = {label for part in Part for label in (part, f"{part}:")}
    found = [
        f"{path}:{node.lineno}"
        for package in (exercise_kit, vit_course)
        for path in Path(package.__path__[0]).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and node.value in labels
    ]
    assert {each.partition(":")[0] for each in found} == {str(Path(exercise_kit.__path__[0], "engine", "verdict.py"))}
    assert len(found) == len(Part), found
