"""Two students with one trained model: the flag stands wherever nbgrader shows flags, as `grade` gives it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from traitlets.config import Config
from typer.testing import CliRunner

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import write_submissions
from exercise_kit.nbgrader.grader_notes import ShowGraderNotes
from tests.e2e.commands import ROOT, run_nbgrader
from tests.e2e.submissions import read_mark
from tests.journeys.graded_class import GradedClass, read_table
from vit_course.cli import app

pytestmark = pytest.mark.proof

LESSON = "07_experiments"
MODEL = "vit_cifar.safetensors"
MODELS = {"ada": b"one", "ben": b"one", "cleo": b"another", "eve": b"one"}


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class that has handed in models, Eve hers without a notebook that can be read; nbgrader has graded it."""
    made = new_class(tmp_path_factory.mktemp("same-file") / "class", ROOT).path
    source = made / "source" / LESSON / f"{LESSON}.ipynb"
    notebook = json.loads(source.read_text("utf-8"))
    notebook["cells"] = [cell for cell in notebook["cells"] if read_mark(cell).get("grade_id") == "check-vit_cifar"]
    source.write_text(json.dumps(notebook), "utf-8")
    run_nbgrader(made, "generate_assignment", LESSON)
    for student in MODELS:
        hand_in_model(made, student, MODELS[student])
    (made / "submitted" / "eve" / LESSON / f"{LESSON}.ipynb").write_text("<html>")
    (made / "log").write_text(run_nbgrader(made, "autograde", LESSON), "utf-8")
    return made


def hand_in_model(folder: Path, student: str, model: bytes) -> None:
    path = write_submissions(folder, LESSON, {student: {}})[student]
    path.with_name(MODEL).write_bytes(model)


def find_flagged_in_csv(folder: Path) -> set[str]:
    run_nbgrader(folder, "export")
    rows = GradedClass(folder, LESSON).read_exported()
    return {student for student, row in rows.items() if "same-file" in row["flags"]}


def find_flagged_by_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    monkeypatch.chdir(folder)
    CliRunner().invoke(app, ["grade", "submitted", "--json", "all.json"])
    results = json.loads((folder / "all.json").read_text("utf-8"))["submissions"]
    return {result["student"] for result in results if "same-file" in result["flags"]}


def read_formgrader_page(folder: Path, student: str) -> str:
    resources = {"submission_id": "7", "notebook_id": LESSON, "assignment_id": LESSON, "index": 0}
    step = ShowGraderNotes(config=Config({"CourseDirectory": {"root": str(folder)}}))
    notebook, _ = step.preprocess(GradedClass(folder, LESSON).read_notebook(student), resources)
    return "\n".join(cell.source for cell in notebook.cells)


def test_the_flag_is_in_the_log_the_table_formgrader_and_grades_csv(
    class_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = (class_folder / "log").read_text("utf-8")
    assert find_flagged_by_command(class_folder, monkeypatch) == {"ada", "ben"} == find_flagged_in_csv(class_folder)
    table = read_table(log)
    for student in MODELS:
        is_flagged = student in ("ada", "ben")
        assert (f"{student}: same-file" in log) == is_flagged
        assert ("[same-file]" in table[student]) == is_flagged
        assert ("<code>same-file</code>" in read_formgrader_page(class_folder, student)) == is_flagged


def test_who_was_graded_before_is_flagged_by_a_copy_that_comes_later_and_not_for_longer_than_it_is_one(
    class_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in_model(class_folder, "dan", MODELS["cleo"])
    log = run_nbgrader(class_folder, "autograde", LESSON, "--student=dan")
    assert "dan: same-file" in log
    assert (
        find_flagged_in_csv(class_folder)
        == {"ada", "ben", "cleo", "dan"}
        == find_flagged_by_command(class_folder, monkeypatch)
    )
    hand_in_model(class_folder, "dan", b"his own")
    run_nbgrader(class_folder, "autograde", LESSON, "--student=dan", "--force")
    assert find_flagged_in_csv(class_folder) == {"ada", "ben"} == find_flagged_by_command(class_folder, monkeypatch)
