"""What a grader sees beside an answer in formgrader, what grades.csv says, and what a student's page does not."""

import csv
import json
import logging
from dataclasses import replace

import pytest
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from traitlets.config import Config

from exercise_kit.judge.result import ExerciseResult, Result, add_wait_causes_to_reason
from exercise_kit.nbgrader.export import GradesWithFlags
from exercise_kit.nbgrader.feedback import install_feedback
from exercise_kit.nbgrader.gradebook import GradebookError
from exercise_kit.nbgrader.grader_notes import NOTES, ShowGraderNotes, make_notes
from exercise_kit.reasons import FlagNote, Reason

LESSON = "01_x"
RESULT = Result(
    "x.ipynb",
    "ada",
    LESSON,
    "graded",
    reason="patchify uses `<b>gc</b>`",
    flags=("possible-bypass", "timeout"),
    notes=(
        FlagNote("possible-bypass", "patchify", "patchify uses `<b>gc</b>`"),
        FlagNote("reference-copied", "attend", "attend has the 9 statements"),
    ),
)
FORMGRADER = {"submission_id": "7", "notebook_id": LESSON, "assignment_id": LESSON, "index": 0}
FEEDBACK = {"nbgrader": {"notebook": LESSON, "assignment": LESSON, "student": "ada"}}


def make_mark(name):
    return {"nbgrader": {"grade_id": name, "solution": True, "grade": False}}


@pytest.fixture
def class_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where grades.csv is written
    source = tmp_path / "source" / LESSON / f"{LESSON}.ipynb"
    source.parent.mkdir(parents=True)
    answer = "Why?\n### BEGIN SOLUTION\nBecause.\n\n**Rubric.** 1 point: the count.\n### END SOLUTION"
    source.write_text(
        json.dumps({"cells": [{"source": answer.splitlines(keepends=True), "metadata": make_mark("why")}]})
    )
    return tmp_path


def list_sources_with_notes(folder, resources, result=RESULT):
    cells = [
        new_code_cell("1", metadata=make_mark("patchify")),
        new_markdown_cell("Because.", metadata=make_mark("why")),
    ]
    notebook = new_notebook(cells=cells, metadata={NOTES: make_notes(result)} if result else {})
    step = ShowGraderNotes(config=Config({"CourseDirectory": {"root": str(folder)}}))
    return [cell.source for cell in step.preprocess(notebook, dict(resources))[0].cells]


def test_flags_stand_above_and_beside_the_answer_and_the_rubric_below_the_question(class_folder):
    flags, reason, answer, beside, question, rubric, script = list_sources_with_notes(class_folder, FORMGRADER)
    assert script.startswith("<script>"), "which saves what a grader types"
    assert "possible-bypass" in flags
    assert "the code took too long" in flags
    assert "&lt;b&gt;gc" in reason
    assert (answer, question) == ("1", "Because.")
    assert "&lt;b&gt;gc" in beside
    assert "<b>gc" not in beside
    assert "\n\n**For graders: the rubric.** 1 point: the count.\n\n" in rubric


def test_a_student_s_page_shows_none_of_it(class_folder):
    assert list_sources_with_notes(class_folder, FEEDBACK) == ["1", "Because."]


def test_notebooks_of_before_and_a_missing_source_are_shown_as_they_are(class_folder):
    (class_folder / "source" / LESSON / f"{LESSON}.ipynb").unlink()
    assert list_sources_with_notes(class_folder, FORMGRADER, result=None)[:-1] == ["1", "Because."]


def export_with_page(folder, result, students, points=()):
    """The rows of grades.csv by student; Ada has handed in, and her page is made of the result."""
    page = folder / "autograded" / "ada" / LESSON / f"{LESSON}.ipynb"
    page.parent.mkdir(parents=True)
    page.write_text(json.dumps({"cells": [], "metadata": {NOTES: make_notes(result)}}))
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as gradebook:
        gradebook.add_assignment(LESSON)
        gradebook.add_notebook(LESSON, LESSON)
        for name, worth in points:
            gradebook.add_grade_cell(name, LESSON, LESSON, max_score=worth, cell_type="code")
        for student, names in students.items():
            gradebook.add_student(student, **names)
        gradebook.add_submission(LESSON, "ada")
        GradesWithFlags(config=Config({"CourseDirectory": {"root": str(folder)}})).export(gradebook)
    with (folder / "grades.csv").open(encoding="utf-8") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def test_grades_csv_has_names_flags_and_reasons_and_no_formula(class_folder):
    ada = {"first_name": "=HYPERLINK(1)", "last_name": 'Love, "Ada"'}
    rows = export_with_page(class_folder, RESULT, {"ada": ada, "absent": {}})
    assert rows["ada"]["flags"] == "possible-bypass timeout"
    assert rows["ada"]["remarks"] == f"attend has the 9 statements; {RESULT.reason}"
    assert rows["ada"]["last_name"] == 'Love, "Ada"'
    assert rows["ada"]["first_name"] == "'=HYPERLINK(1)"
    assert rows["absent"]["remarks"] == "nothing handed in"
    assert rows["absent"]["score"] == "0.0"


def test_grades_csv_says_of_what_waits_that_its_sum_is_no_grade(class_folder):
    waiting = ExerciseResult("patchify", 0.0, 5.0, reason=Reason.OUR_ERROR, waits_for="hidden/test_patchify.py:7: no")
    result = add_wait_causes_to_reason(replace(RESULT, reason=None, notes=(), exercises=(waiting,)))
    row = export_with_page(class_folder, result, {"ada": {}}, [("check-patchify", 5.0)])["ada"]
    assert row["remarks"].startswith("PARTLY GRADED: patchify is not graded yet")
    assert "hidden/test_patchify.py:7: no" in row["remarks"]
    assert (row["score"], row["max_score"], row["not_graded_yet"]) == ("0.0", "5.0", "5.0")


def test_a_gradebook_without_a_lesson_empties_no_grades(class_folder):
    (class_folder / "grades.csv").write_text("assignment,score\n01_patchify,7\n")
    with (
        Gradebook(f"sqlite:///{class_folder}/gradebook.db") as gradebook,
        pytest.raises(GradebookError, match="no lesson"),
    ):
        GradesWithFlags().export(gradebook)
    assert (class_folder / "grades.csv").read_text().endswith("01_patchify,7\n")


def test_no_step_of_the_feedback_warns_of_the_exporter_s_own_setting(caplog):
    """nbgrader's base class of steps does not know it, and each step that does not say otherwise would warn."""
    install_feedback()
    steps = ["exercise_kit.nbgrader.grader_notes.ShowGraderNotes", "nbgrader.preprocessors.AssignLatePenalties"]
    HTMLExporter(config=Config({"HTMLExporter": {"preprocessors": steps}}), log=logging.getLogger(LESSON))
    assert caplog.messages == []
