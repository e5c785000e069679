"""`nbgrader autograde`, formgrader's button and `vit-course grade` read one folder alike, whatever is in a file."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from typer.testing import CliRunner

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from exercise_kit.nbgrader.page_head import TOLD
from tests.e2e.button import click_button
from tests.e2e.commands import ROOT, run_nbgrader
from tests.e2e.submissions import (
    HONEST,
    KINDS,
    LESSON,
    OTHERWISE_GRADED,
    SCRIPTS,
    UNGRADABLE,
    find_place_of_cell,
    read_mark,
    replace_notebook,
)
from tests.e2e.test_nbgrader import PATCHIFY_BY_COLUMNS
from tests.journeys.graded_class import GradedClass
from vit_course.cli import app

pytestmark = pytest.mark.proof

QUESTION = "### Question: why not one token per pixel? (5 minutes, 2 points)\n\nBecause 50 176² is a lot."
PAGES = "*-file"  # whose pages are made, and who is graded once more
WRONG_LINE = PATCHIFY_BY_COLUMNS.splitlines()[-2].strip()
CHECKS = ("check-patchify", "check-unpatchify")
# files that lie in no lesson's folder: where, and whether they are of this lesson
MISPLACED = {"loose": f"{LESSON}.ipynb", "wrong-folder": f"week1/{LESSON}.ipynb"}


@dataclass(frozen=True)
class Row:
    """What a road says of a student: the points of each exercise (None: they wait), the reason, the flags."""

    points: tuple[float | None, ...]
    reason: str
    flags: str


@dataclass(frozen=True, kw_only=True)
class BothRoads(GradedClass):
    """A class after both, with what `vit-course grade` says by student, and the bytes of what was there."""

    results: dict[str, dict[str, Any]]
    handed_in: dict[str, dict[str, bytes]]

    def read_row_of_command(self, student: str) -> Row:
        result = self.results[student]
        scores = {each["name"]: each["score"] for each in result["exercises"]}
        points = tuple(scores.get(name.removeprefix("check-")) for name in CHECKS)
        return Row(points, result["reason"] or "", ", ".join(result["flags"]))

    def read_row_of_nbgrader(self, student: str) -> Row:
        return make_row(student, self.read_auto_scores(student), self.log)

    def read_autograded_cells(self, student: str) -> list[dict[str, Any]]:
        cells: list[dict[str, Any]] = self._read_autograded(student)["cells"]
        return cells

    def read_reason(self, student: str) -> str:
        return str(self._read_autograded(student)["metadata"][TOLD])

    def _read_autograded(self, student: str) -> Any:
        return json.loads((self.folder / "autograded" / student / LESSON / f"{LESSON}.ipynb").read_text("utf-8"))


def make_row(student: str, grades: dict[str, float | None], log: str) -> Row:
    """The points from a gradebook, the rest from nbgrader's log."""
    said = (line.partition("] ")[2] for line in log.splitlines() if re.search(r"(WARNING|ERROR)\]", line))
    lines = [line.removeprefix(f"{student}: ") for line in said if line.startswith(f"{student}: ")]
    flags = [line for line in lines if re.fullmatch(r"[a-z-]+(, [a-z-]+)*", line)]
    reasons = [line.removeprefix("NOT GRADED: ") for line in lines if line not in flags]
    points = tuple(None if (score := grades.get(name)) is None else round(score, 4) for name in CHECKS)
    return Row(points, "; ".join(reasons), "; ".join(flags))


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes()[: 1 << 20] for path in folder.iterdir() if path.is_file()}


def shorten_lesson(folder: Path) -> None:
    """The lesson's first two exercises and its question, so that seventy notebooks are graded in seconds."""
    path = folder / "source" / LESSON / f"{LESSON}.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    notebook["cells"] = notebook["cells"][: find_place_of_cell(notebook, "check-unpatchify") + 1]
    path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.fixture(scope="module")
def both_roads(tmp_path_factory: pytest.TempPathFactory) -> BothRoads:
    folder = new_class(tmp_path_factory.mktemp("roads") / "class", ROOT).path
    shorten_lesson(folder)
    run_nbgrader(folder, "generate_assignment", LESSON)
    shutil.copyfile(folder / "gradebook.db", folder / "button.db")
    answers = read_model_answers(folder, LESSON) | {"patchify": PATCHIFY_BY_COLUMNS, "patches-or-pixels": QUESTION}
    for student, path in write_submissions(folder, LESSON, dict.fromkeys(KINDS, answers)).items():
        replace_notebook(path, KINDS[student])
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as gradebook:
        gradebook.add_student("absent", first_name="Ada", last_name="Away")
    saved = (folder / "submitted" / "as-saved" / LESSON / f"{LESSON}.ipynb").read_bytes()
    for student, place in {**MISPLACED, "unreadable": "work.ipynb", "other": "00_start.ipynb"}.items():
        path = folder / "submitted" / student / place
        path.parent.mkdir(parents=True)
        path.write_bytes(saved)
    (folder / "submitted" / "unreadable" / "work.ipynb").write_text("{}")
    shutil.copy(ROOT / "notebooks" / "00_start.ipynb", folder / "submitted" / "other")
    before = {student: read_files(folder / "submitted" / student / LESSON) for student in KINDS}
    log = run_nbgrader(folder, "autograde", LESSON)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        paths = [f"submitted/{student}" for student in (*KINDS, *MISPLACED)]
        done = CliRunner().invoke(app, ["grade", *paths, "--json", "all.json", "--jobs", "2"])
    assert done.exit_code == 1, done.output
    assert f"of {len(KINDS) + len(MISPLACED)} graded" in done.output, "the table, beside the file"
    results = json.loads((folder / "all.json").read_text("utf-8"))["submissions"]
    by_student = {result["student"]: result for result in results}
    return BothRoads(folder, LESSON, log, results=by_student, handed_in=before)


def test_both_roads_give_the_same_points_reason_and_flags(both_roads: BothRoads) -> None:
    by_command = {student: both_roads.read_row_of_command(student) for student in KINDS}
    by_nbgrader = {student: both_roads.read_row_of_nbgrader(student) for student in KINDS}
    assert by_nbgrader == by_command
    for student, row in by_command.items():
        kind = KINDS[student]
        assert (kind.reason or "") in row.reason, student
        assert bool(kind.reason) == bool(row.reason), (student, row)
        assert row.flags == ", ".join(kind.flags), student
        assert (row.points == (None, None)) == (student in UNGRADABLE), (student, row)
        assert (both_roads.results[student]["status"] == "graded") == (student not in UNGRADABLE)


def test_formgrader_s_button_gives_the_same_without_a_traceback(both_roads: BothRoads, tmp_path: Path) -> None:
    """Every third kind, into a gradebook and a folder of its own; no judge's result is new."""
    students = list(KINDS)[::3]
    by_click = GradedClass(both_roads.folder, LESSON, database=f"sqlite:///{both_roads.folder}/button.db")
    settings = {"db_url": by_click.address, "autograded_directory": "by_button"}
    answers = click_button(both_roads.folder, "autograde", LESSON, students, tmp_path / "answers.json", **settings)
    by_button = {
        student: make_row(student, by_click.read_auto_scores(student), answers[student]["log"]) for student in students
    }
    assert by_button == {student: both_roads.read_row_of_command(student) for student in students}
    for student, answer in answers.items():
        assert answer.keys() == {"success", "log"}, student
        assert answer["success"], student
        assert "Traceback" not in answer["log"], student


@pytest.mark.parametrize("student", HONEST | SCRIPTS)
def test_an_honest_notebook_gets_its_points_whatever_became_of_it(both_roads: BothRoads, student: str) -> None:
    first, second = both_roads.read_row_of_nbgrader("as-saved").points
    assert 0 < first < 8
    assert second == 5
    assert both_roads.read_row_of_nbgrader(student).points == (first, second)


def test_no_traceback_is_shown_and_nobody_is_left_out(both_roads: BothRoads) -> None:
    assert "Traceback" not in both_roads.log
    assert "There was an error processing" not in both_roads.log
    assert {path.name for path in (both_roads.folder / "autograded").iterdir()} == set(KINDS)


def test_one_table_at_the_end_has_everybody(both_roads: BothRoads) -> None:
    table = "\n".join(line.strip() for line in both_roads.log.partition("the class in one table\n")[2].splitlines())
    for student in KINDS:
        (line,) = [line for line in table.splitlines() if line.startswith(f"{student}  ")]
        assert ("  not graded  " in line) == (student in UNGRADABLE), line
    assert re.search(r"^absent +missing +nothing handed in$", table, re.MULTILINE)
    assert re.search(r"^other +missing +nothing handed in$", table, re.MULTILINE), "of another lesson"
    graded = len(KINDS) - len(UNGRADABLE)
    assert f"{graded} graded, {len(UNGRADABLE)} not graded, 5 missing" in table


@pytest.mark.parametrize(("student", "place"), [*MISPLACED.items(), ("unreadable", "work.ipynb")])
def test_the_table_names_what_the_command_alone_grades(both_roads: BothRoads, student: str, place: str) -> None:
    """nbgrader knows work by its folder; term.md says that the two differ here."""
    assert (
        student not in MISPLACED
        or both_roads.read_row_of_command(student).points == both_roads.read_row_of_command("as-saved").points
    )
    words = " ".join(both_roads.log.split())
    wrong = f"{student}/{place} lies in the wrong place: it belongs in {student}/{LESSON}/"
    assert f"{student} missing {wrong}" in words


def test_what_was_handed_in_is_still_there(both_roads: BothRoads) -> None:
    for student in set(KINDS) - {"second-download"}:  # nbgrader knows a lesson by its file's name
        assert read_files(both_roads.folder / "submitted" / student / LESSON) == both_roads.handed_in[student], student


@pytest.mark.parametrize("student", sorted({**HONEST, **OTHERWISE_GRADED}))
def test_pages_show_every_answer_and_each_mark_once(both_roads: BothRoads, student: str) -> None:
    cells = both_roads.read_autograded_cells(student)
    names = [read_mark(cell)["grade_id"] for cell in cells if read_mark(cell)]
    assert len(names) == len(set(names)), "every mark once"
    shown = json.dumps(cells)
    if student not in ("broken-in-one-cell", "untouched"):
        assert WRONG_LINE in shown
    assert ("50 176" in shown) == ("in-one-cell" not in student)


def test_one_student_again_and_a_zero_where_the_class_wants_it(both_roads: BothRoads) -> None:
    """Runs last: the configuration's line gives no points for a file that cannot be graded, and says why."""
    ungradable = [student for student in UNGRADABLE if student.endswith("-file")]
    for student in ungradable:
        assert set(both_roads.read_auto_scores(student).values()) == {None}
        assert both_roads.read_reason(student).startswith("This notebook could not be graded: ")
    before = both_roads.read_auto_scores("renamed-file")
    both_roads.configure('c.SaveGrades.ungraded = "zero"')
    log = run_nbgrader(both_roads.folder, "autograde", LESSON, f"--student={PAGES}", "--force")
    run_nbgrader(both_roads.folder, "generate_feedback", LESSON, f"--student={PAGES}")
    assert both_roads.read_auto_scores("renamed-file") == before
    assert f"1 graded, {len(ungradable)} not graded, 0 missing" in log
    for student in ungradable:
        assert set(both_roads.read_auto_scores(student).values()) == {0.0}
        page = both_roads.read_feedback(student)
        assert page.count("This notebook could not be graded: ") == 1
        assert "Not graded, no points: " in page
        assert str(KINDS[student].reason) in page
        assert "No response." not in page
