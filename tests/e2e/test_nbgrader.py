"""nbgrader's own commands, in a class folder as `new-class` makes it, on a real lesson and without the internet."""

from __future__ import annotations

import copy
import csv
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from vit_course.grading.class_folder import new_class
from vit_course.grading.conventions import CODE_STUB, RUBRIC
from vit_course.grading.sample_class import model_answers, write_submissions

pytestmark = pytest.mark.xdist_group("nbgrader")  # the class is graded once, in one worker
ROOT = Path(__file__).parents[2]
LESSON = "01_patchify"

PATCHIFY_BY_COLUMNS = """
def patchify(images, patch_size):
    batch, channels, height, width = images.shape
    if height % patch_size or width % patch_size:
        raise ValueError(f"height {height} or width {width} is not divisible by patch_size {patch_size}")
    rows, columns = height // patch_size, width // patch_size
    grid = images.reshape(batch, channels, rows, patch_size, columns, patch_size)
    return grid.permute(0, 4, 2, 1, 3, 5).reshape(batch, rows * columns, channels * patch_size**2)
"""
ENDLESS = """
def fix_patchify(images, patch_size):
    while True:
        pass
"""
SHORT_TIMEOUT = 15


@dataclass(frozen=True)
class GradedClass:
    """A class after release, grading, feedback and export."""

    folder: Path

    def notebook(self, step: str, student: str = ".") -> nbformat.NotebookNode:
        return nbformat.read(self.folder / step / student / LESSON / f"{LESSON}.ipynb", as_version=4)

    def feedback(self, student: str) -> str:
        return (self.folder / "feedback" / student / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")

    def auto_scores(self, student: str) -> dict[str, float | None]:
        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as gradebook:
            submission = gradebook.find_submission_notebook(LESSON, LESSON, student)
            return {grade.name: grade.auto_score for grade in submission.grades}

    def max_scores(self) -> dict[str, float]:
        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as gradebook:
            return {cell.name: cell.max_score for cell in gradebook.find_notebook(LESSON, LESSON).grade_cells}


def nbgrader(folder: Path, *command: str, status: int = 0) -> str:
    """Run one of nbgrader's commands as an instructor does and give its log; fail with it on another exit status."""
    scripts = str(Path(sys.executable).parent)
    offline = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "PIP_NO_INDEX": "1"}
    environment = {**os.environ, **offline, "PATH": os.pathsep.join([scripts, os.environ["PATH"]])}
    done = subprocess.run(
        ["nbgrader", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    log = f"nbgrader {' '.join(command)}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, log
    return log


def tear(path: Path) -> None:
    """What happens to notebooks: cells deleted, one copied, a run added that raises."""
    notebook = nbformat.read(path, as_version=4)
    lost = {"setup", "patchify", "check-patchify"}
    cells = [cell for cell in notebook.cells if grade_id(cell) not in lost]
    place = next(index for index, cell in enumerate(cells) if grade_id(cell) == "unpatchify")
    twin = copy.deepcopy(cells[place])
    twin.id = "twin"
    notebook.cells = [*cells[:place], twin, *cells[place:]]
    notebook.cells.append(nbformat.v4.new_code_cell("1 / 0", metadata={"tags": ["experiment"]}))
    nbformat.write(notebook, path)


def grade_id(cell: nbformat.NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id")


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> GradedClass:
    folder = new_class(tmp_path_factory.mktemp("nbgrader") / "a class of 2025", ROOT).path
    nbgrader(folder, "generate_assignment", LESSON)
    right = model_answers(folder, LESSON)
    answers = {
        "ada": right,
        "ben": {name: right[name] for name in ("patchify", "unpatchify")},
        "cleo": right | {"patchify": PATCHIFY_BY_COLUMNS},
        "dan": {},
        "eve": right,
        "fay": {},
        "gus": right | {"fix_patchify": ENDLESS},
    }
    written = write_submissions(folder, LESSON, answers)
    tear(written["eve"])
    written["eve"].rename(written["eve"].with_stem(f"{LESSON} (1)"))
    written["fay"].write_text("<html>not a notebook</html>", encoding="utf-8")
    log = nbgrader(folder, "autograde", LESSON, f"--Execute.timeout={SHORT_TIMEOUT}", status=1)
    assert [line for line in log.splitlines() if "for student" in line] == [
        f"[AutogradeApp | ERROR] There was an error processing assignment '{LESSON}' for student 'fay'"
    ]
    assert "SAWarning" not in log, "a warning that the instructor can do nothing about"
    nbgrader(folder, "generate_feedback", LESSON)
    nbgrader(folder, "export")
    return GradedClass(folder)


def test_what_nbgrader_releases_is_the_course_s_own_student_notebook(graded):
    released = (graded.folder / "release" / LESSON / f"{LESSON}.ipynb").read_bytes()
    assert released.rstrip() == (ROOT / "notebooks" / f"{LESSON}.ipynb").read_bytes().rstrip()


def test_right_answers_earn_every_point_that_needs_no_person(graded):
    worth = graded.max_scores()
    for name, score in graded.auto_scores("ada").items():
        assert score == (worth[name] if name.startswith("check-") else None), name


def test_half_of_the_exercises_earn_their_points(graded):
    worth = graded.max_scores()
    earned = {name: score for name, score in graded.auto_scores("ben").items() if score}
    assert earned == {name: worth[name] for name in ("check-patchify", "check-unpatchify")}


def test_a_classic_mistake_earns_part_of_the_points_and_is_named(graded):
    worth, scores = graded.max_scores(), graded.auto_scores("cleo")
    assert 0 < scores["check-patchify"] < worth["check-patchify"]
    assert scores["check-unpatchify"] == worth["check-unpatchify"]
    named = "This looks like <em>column order</em>"
    assert named in graded.feedback("cleo")
    assert named not in graded.feedback("ada")


def test_an_untouched_notebook_earns_nothing(graded):
    assert set(graded.auto_scores("dan").values()) == {0.0}


def test_a_torn_notebook_is_mended_and_graded(graded):
    worth, scores = graded.max_scores(), graded.auto_scores("eve")
    assert scores["check-patchify"] == 0
    assert scores["check-unpatchify"] == worth["check-unpatchify"]
    cells = graded.notebook("autograded", "eve").cells
    released = [grade_id(cell) for cell in graded.notebook("release").cells if grade_id(cell)]
    assert [grade_id(cell) for cell in cells if grade_id(cell)] == released
    assert CODE_STUB.split("\n")[0] in next(cell.source for cell in cells if grade_id(cell) == "patchify")


def test_experiments_are_not_run(graded):
    experiment = graded.notebook("autograded", "eve").cells[-1]
    assert experiment.source == "1 / 0"
    assert experiment.outputs == []


def test_a_loop_that_never_ends_costs_one_exercise_and_is_told(graded):
    worth, scores = graded.max_scores(), graded.auto_scores("gus")
    assert scores["check-fix_patchify"] == 0
    assert scores["check-patchify"] == worth["check-patchify"]
    assert "never ends?" in graded.feedback("gus")
    assert "never ends?" not in graded.feedback("ada")


def test_what_is_no_notebook_waits_for_the_instructor(graded):
    assert set(graded.auto_scores("fay").values()) == {None}
    assert not (graded.folder / "autograded" / "fay" / LESSON).exists()


@pytest.mark.parametrize("student", ["ada", "ben", "cleo", "dan", "eve", "gus"])
def test_feedback_shows_the_reports_and_no_answer(graded, student):
    page = graded.feedback(student)
    assert "checks pass" in page or "is not written yet" in page
    assert RUBRIC.strip("*") not in page
    assert "SOLUTION" not in page


def test_the_export_has_every_student_s_points(graded):
    with (graded.folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    expected = {student: sum(filter(None, graded.auto_scores(student).values())) for student in rows}
    assert rows == pytest.approx(expected)
    assert rows["dan"] == 0 < rows["ben"] < rows["cleo"] < rows["ada"]
