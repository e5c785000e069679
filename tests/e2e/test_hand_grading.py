"""Written answers in nbgrader: kept whatever their cell was turned into, and no zero before a person."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.e2e.commands import ROOT, run_nbgrader
from tests.e2e.submissions import find_cell
from tests.journeys.graded_class import GradedClass, read_table
from tests.machine import needs_sandbox
from vit_course.cli import app

pytestmark = [pytest.mark.proof, needs_sandbox]

LESSON, CHECK, QUESTION = "00_start", "check-normalize_images", "loss-proves-little"
ANSWER = "### Question\n\nBecause a broken model learns too."
# who turned the cell of which answer into what
RETYPED = {
    "yan": (QUESTION, "code"),
    "rob": (QUESTION, "raw"),
    "mia": ("normalize_images", "markdown"),
    "rea": ("normalize_images", "raw"),
}
LISTED = {QUESTION: [QUESTION], "normalize_images": [CHECK, QUESTION]}


def read_points_shown(graded: GradedClass, student: str) -> list[str]:
    """In the head of a page: of the lesson, then of each cell."""
    head = graded.read_feedback(student).partition('<section aria-label="Points"')[2].partition("</section>")[0]
    return re.findall(r">([^<]* of [^<]*)<", head)


def export_grades(graded: GradedClass) -> dict[str, dict[str, str]]:
    run_nbgrader(graded.folder, "export")
    return graded.read_exported()


def change_cell_type(path: Path, name: str, kind: str) -> None:
    """One key press: y, m or r."""
    notebook = json.loads(path.read_bytes())
    cell = find_cell(notebook, name)
    cell["cell_type"] = kind
    for key in ("outputs", "execution_count"):
        cell.pop(key, None)
    if kind == "code":
        cell |= {"outputs": [], "execution_count": None}
    path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.fixture(scope="module")
def graded_class(tmp_path_factory: pytest.TempPathFactory) -> GradedClass:
    folder = new_class(tmp_path_factory.mktemp("hand") / "class", ROOT).path
    run_nbgrader(folder, "generate_assignment", LESSON)
    answers = read_model_answers(folder, LESSON) | {QUESTION: ANSWER}
    written = write_submissions(folder, LESSON, dict.fromkeys([*RETYPED, "ada"], answers) | {"ben": {}})
    for student, (name, kind) in RETYPED.items():
        change_cell_type(written[student], name, kind)
    log = run_nbgrader(folder, "autograde", LESSON)
    log += run_nbgrader(folder, "generate_feedback", LESSON)
    return GradedClass(folder, LESSON, log)


@pytest.mark.parametrize("student", RETYPED)
def test_an_answer_keeps_its_text_gets_its_type_back_and_is_listed_for_a_person(
    graded_class: GradedClass, student: str
) -> None:
    name, _ = RETYPED[student]
    cell, expected = (find_cell(graded_class.read_notebook(each), name) for each in (student, "ada"))
    assert (cell["cell_type"], cell["source"]) == (expected["cell_type"], expected["source"])
    assert sorted(cell for cell, (_, listed) in graded_class.read_grades(student).items() if listed) == LISTED[name]
    assert "2 of 2 [cell-type-changed]" in read_table(graded_class.log)[student]
    assert "No response" not in graded_class.read_feedback(student)


def test_what_nobody_has_graded_is_no_zero_anywhere(graded_class: GradedClass) -> None:
    assert read_points_shown(graded_class, "ada") == [
        f"{LESSON}: 2 of 3 points so far, 1 not graded yet",
        "2 of 2",
        "– of 1",
    ]
    assert read_points_shown(graded_class, "ben") == [f"{LESSON}: 0 of 3 points", "0 of 2", "0 of 1"], (
        "nothing written is a zero"
    )
    warned = "00_start: not graded yet, and not zero, are answers of ada, mia, rea, rob, yan"
    assert warned in graded_class.log
    assert "5 wait for points by hand: formgrader lists them under Manual Grading" in graded_class.log
    assert warned in run_nbgrader(graded_class.folder, "export")
    row = export_grades(graded_class)["ada"]
    assert (row["score"], row["not_graded_yet"], row["max_score"]) == ("2.0", "1.0", "3.0")
    assert row["remarks"] == f"not graded yet: {QUESTION}"


def test_points_by_hand_end_that(graded_class: GradedClass) -> None:
    give_points(graded_class, "ada", 0.0)
    log = run_nbgrader(graded_class.folder, "generate_feedback", LESSON)
    assert re.findall("(.*): graded since its page was made", log) == ["[GenerateFeedbackApp | INFO] ada"]
    assert read_points_shown(graded_class, "ada") == [f"{LESSON}: 2 of 3 points", "2 of 2", "0 of 1"]
    assert export_grades(graded_class)["ada"]["remarks"] == ""


def test_new_work_without_a_newer_timestamp_is_graded_and_its_page_made_again(graded_class: GradedClass) -> None:
    mine = graded_class.folder / "submitted" / "ben" / LESSON / f"{LESSON}.ipynb"
    before = mine.stat()
    mine.write_bytes((graded_class.folder / "submitted" / "ada" / LESSON / mine.name).read_bytes())
    os.utime(mine, ns=(before.st_atime_ns, before.st_mtime_ns))
    log = run_nbgrader(graded_class.folder, "autograde", LESSON)
    table = log.partition("the class in one table")[2]
    assert "ben      2 of 2  it was handed in again: graded again" in table, log
    assert "6 graded, 0 not graded, 0 missing; 5 of them before" in table
    assert graded_class.read_grades("ben")[CHECK] == (2.0, False)
    assert "ben: graded since its page was made: made again" in run_nbgrader(
        graded_class.folder, "generate_feedback", LESSON
    )
    assert read_points_shown(graded_class, "ben")[1] == "2 of 2"
    assert "graded again" not in run_nbgrader(graded_class.folder, "autograde", LESSON)


def test_a_page_whose_grading_was_interrupted_becomes_no_feedback(graded_class: GradedClass) -> None:
    page = graded_class.folder / "autograded" / "yan" / LESSON / f"{LESSON}.ipynb"
    page.chmod(0o600)
    page.write_bytes(page.read_bytes()[:1000])
    log = run_nbgrader(graded_class.folder, "generate_feedback", LESSON, "--force")
    assert f"yan: no feedback, for its grading was interrupted; first: nbgrader autograde {LESSON}" in log
    remarks = export_grades(graded_class)["yan"]["remarks"]
    assert remarks == f"NOT GRADED: its grading was interrupted; run: nbgrader autograde {LESSON}"


@pytest.fixture(scope="module")
def hand_graded_class(tmp_path_factory: pytest.TempPathFactory) -> GradedClass:
    """A class of three, all of whose answers a person has graded; one has brackets in the id."""
    folder = new_class(tmp_path_factory.mktemp("again") / "class", ROOT).path
    run_nbgrader(folder, "generate_assignment", LESSON)
    answers = read_model_answers(folder, LESSON) | {QUESTION: ANSWER}
    write_submissions(folder, LESSON, dict.fromkeys(["ada", "ben", "[ann]"], answers))
    graded = GradedClass(folder, LESSON, run_nbgrader(folder, "autograde", LESSON))
    for student, points in (("ada", 0.5), ("ben", 1.0), ("[ann]", 1.0)):
        give_points(graded, student, points)
    return graded


def give_points(graded: GradedClass, student: str, points: float) -> None:
    """As formgrader's server writes it, for a field and for *Resolve*."""
    with Gradebook(graded.address) as gradebook:
        grade = gradebook.find_grade(QUESTION, LESSON, LESSON, student)
        grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()


def list_waiting(graded: GradedClass) -> list[str]:
    return [student for student in ("ada", "ben", "[ann]") if graded.read_grades(student)[QUESTION][1]]


def export_to_canvas(graded: GradedClass) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["export", str(graded.folder), "--to", "canvas"])
    return done.exit_code, done.stdout, done.stderr


def test_the_same_answer_is_not_to_be_graded_by_hand_twice(hand_graded_class: GradedClass) -> None:
    assert "other work than there is now" not in run_nbgrader(hand_graded_class.folder, "autograde", LESSON, "--force")
    assert list_waiting(hand_graded_class) == []
    status, table, _ = export_to_canvas(hand_graded_class)
    assert (status, "ada,,,ada,,2.5" in table) == (0, True)


def test_an_emptied_answer_with_points_by_hand_is_named_wherever_points_go_out(hand_graded_class: GradedClass) -> None:
    mine = hand_graded_class.folder / "submitted" / "ada" / LESSON / f"{LESSON}.ipynb"
    mine.write_bytes((hand_graded_class.folder / "release" / LESSON / mine.name).read_bytes())
    said = "points by hand for other work than there is now: ada: look at it in formgrader"
    for log in (run_nbgrader(hand_graded_class.folder, "autograde", LESSON, *force) for force in ((), ("--force",))):
        assert f"1 with {said}" in log.strip().splitlines()[-1]
        assert list_waiting(hand_graded_class) == ["ada"]
    assert f"{LESSON}: {said}" in run_nbgrader(hand_graded_class.folder, "generate_feedback", LESSON)
    assert f"{LESSON}: {said}" in run_nbgrader(hand_graded_class.folder, "export")
    row = export_grades(hand_graded_class)["ada"]
    assert (row["not_graded_yet"], row["remarks"]) == ("1.0", f"to be looked at again: {QUESTION}")
    status, table, errors = export_to_canvas(hand_graded_class)
    assert (status, "ada" in table, "ben,,,ben,,3" in table) == (1, False, True)
    assert f"ada, {LESSON}: no grade, for {QUESTION} has points by hand for other work than there is now" in errors


def test_resolve_ends_that(hand_graded_class: GradedClass) -> None:
    give_points(hand_graded_class, "ada", 0.5)
    assert "other work" not in run_nbgrader(hand_graded_class.folder, "autograde", LESSON, "--force")
    assert list_waiting(hand_graded_class) == []
    assert export_to_canvas(hand_graded_class)[0] == 0


def test_an_id_with_brackets_has_a_page_and_who_has_points_and_no_page_is_named(hand_graded_class: GradedClass) -> None:
    page = hand_graded_class.folder / "feedback" / "[ann]" / LESSON / f"{LESSON}.html"
    assert "3 of 3" in page.read_text("utf-8")
    shutil.rmtree(page.parents[1])
    run_nbgrader(hand_graded_class.folder, "generate_feedback", LESSON, "--student=[ann]")
    assert page.is_file()
    for folder in ("feedback", "autograded"):
        shutil.rmtree(hand_graded_class.folder / folder / "[ann]")
    log = run_nbgrader(hand_graded_class.folder, "generate_feedback", LESSON, status=1)
    assert f"{LESSON}: graded, and without a page: [ann]; first: nbgrader autograde {LESSON}" in log
    run_nbgrader(hand_graded_class.folder, "generate_feedback", LESSON, "--student=b*")
