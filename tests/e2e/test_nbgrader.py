"""nbgrader's own commands with our judge, in a class folder as `new-class` makes it, on a real lesson and offline."""

from __future__ import annotations

import base64
import copy
import os
import re
from html import escape
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from exercise_kit.conventions import CODE_STUB, RUBRIC, STILL
from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.answers import write_answer_cell
from tests.e2e.attacks.folders import plant_forged_class_files
from tests.e2e.browser import needs_chromium, open_browser
from tests.e2e.commands import ROOT, run_nbgrader, run_nbgrader_in_turn
from tests.e2e.submissions import find_cell, forge_marks, read_mark
from tests.journeys.graded_class import GradedClass
from vit_course.explore import explore_softmax

LESSON = "01_patchify"

PATCHIFY_BY_COLUMNS = write_answer_cell("patchify", "column order")
ENDLESS = """
def fix_patchify(images, patch_size):
    while True:
        pass
"""
DUE, LATE = "2030-01-31 23:59:00 UTC", "2030-02-01 08:00:00 UTC"
EXPLORE = "explore_patches(own_picture"
LIVE = "<script>document.title = 'attacked'</script>"


def damage_notebook(path: Path) -> None:
    """Do what happens to notebooks: cells deleted, one copied, a run added that raises."""
    notebook = nbformat.read(path, as_version=4)
    lost = {"setup", "patchify", "check-patchify"}
    cells = [cell for cell in notebook.cells if read_grade_id(cell) not in lost]
    place = next(index for index, cell in enumerate(cells) if read_grade_id(cell) == "unpatchify")
    twin = copy.deepcopy(cells[place])
    twin.id = "twin"
    notebook.cells = [*cells[:place], twin, *cells[place:]]
    notebook.cells.append(nbformat.v4.new_code_cell("1 / 0", metadata={"tags": ["experiment"]}))
    nbformat.write(notebook, path)


def forge_notebook(path: Path) -> None:
    """Write what a cheat writes into a notebook's metadata and its check."""
    notebook = nbformat.read(path, as_version=4)
    forge_marks(notebook)
    find_cell(notebook, "check-patchify")["source"] = "1000.0"
    for cell in notebook.cells:
        cell.metadata["tags"] = [f'"{LIVE}']
    notebook.metadata["title"] = LIVE
    notebook.cells.append(nbformat.v4.new_raw_cell(LIVE))
    notebook.cells.append(nbformat.v4.new_markdown_cell(LIVE + " ![x](attachment:none.png)"))
    nbformat.write(notebook, path)


def add_still_picture(path: Path, html: str) -> None:
    """Leave what a kernel leaves in a notebook of a figure with controls, or a cheat in its place."""
    notebook = nbformat.read(path, as_version=4)
    cell = next(cell for cell in notebook.cells if EXPLORE in cell.source)
    shown = f'<div class="{STILL}{"0" * 32}">{html}</div>', LIVE
    cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": each}) for each in shown]
    nbformat.write(notebook, path)


def read_grade_id(cell: nbformat.NotebookNode) -> str | None:
    return read_mark(cell).get("grade_id")


UNGRADABLE = {"fay": "not JSON", "hal": "not JSON", "joe": "more than 32 MB"}
STUDENTS = ["ada", "ben", "cleo", "dan", "eve", "gus", "ivy", "kim", "lea", "uma", "éva 🙂"]


def hand_in_hostile_files(folder: Path, class_dir: Path) -> None:
    """Hand in beside a right notebook, as a cheat: a page, links to what is the instructor's, folders without end."""
    (folder / "proof.html").write_text(LIVE)
    (folder / "timestamp.txt").write_text("9" * 10_000)
    for number in range(4):
        (folder / f"s{number}").mkdir()
        (folder / f"s{number}" / "secret").symlink_to(class_dir / ".vit_course" / "secret")
        (folder / f"s{number}" / "classmate").symlink_to(class_dir / "submitted" / "ada" / LESSON / f"{LESSON}.ipynb")
        here = os.open(folder, os.O_RDONLY)
        for name in (f"q{number}", *["d" * 200] * 25):
            os.mkdir(name, dir_fd=here)
            below = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)


@pytest.fixture(scope="module")
def graded_class(tmp_path_factory: pytest.TempPathFactory) -> GradedClass:
    folder = new_class(tmp_path_factory.mktemp("nbgrader") / "a class of 2025", ROOT).path
    run_nbgrader(folder, "generate_assignment", LESSON)
    right = read_model_answers(folder, LESSON)
    answers = {
        "ada": right,
        "ben": {name: right[name] for name in ("patchify", "unpatchify")},
        "cleo": right | {"patchify": PATCHIFY_BY_COLUMNS},
        "dan": {},
        "eve": right,
        "fay": {},
        "gus": right | {"fix_patchify": ENDLESS},
        "hal": {},
        "ivy": right | {"patchify": "", "unpatchify": "def unpatchify(:"},
        "joe": {},
        "kim": right | {"patches-or-pixels": f"Because {LIVE}", "patchify": right["patchify"] + f"\nprint({LIVE!r})"},
        "lea": right,
        "uma": right,
        "éva 🙂": right,
    }
    written = write_submissions(folder, LESSON, answers)
    damage_notebook(written["eve"])
    written["eve"].rename(written["eve"].with_stem(f"{LESSON} (1)"))
    written["fay"].write_text("<html>not a notebook</html>", encoding="utf-8")
    written["hal"].write_bytes(written["hal"].read_bytes()[:5000])
    with written["joe"].open("a", encoding="utf-8") as file:
        file.write(" " * (60 << 20))
    forge_notebook(written["kim"])
    add_still_picture(written["ada"], explore_softmax().picture_html())
    forged = base64.b64encode(LIVE.encode()).decode()
    add_still_picture(written["kim"], f'<img src="data:image/png;base64,{forged}">')
    plant_forged_class_files(written["cleo"].parent)
    hand_in_hostile_files(written["uma"].parent, folder)
    written["lea"].with_name("timestamp.txt").write_text(LATE)
    run_nbgrader(folder, "db", "assignment", "add", LESSON, f"--duedate={DUE}")
    graded = GradedClass(folder, LESSON)
    graded.configure('c.LateSubmissionPlugin.penalty_method = "zero"')
    log = run_nbgrader_in_turn(folder, ["autograde", LESSON], ["generate_feedback", LESSON], ["export"])
    ungraded_lines = [line.partition("] ")[2] for line in log.splitlines() if "NOT GRADED" in line]
    assert [line.partition(":")[0] for line in ungraded_lines] == list(UNGRADABLE)
    assert "Traceback" not in log
    assert [line for line in log.splitlines() if "check-files" in line and "cleo" in line]
    assert "SAWarning" not in log, "a warning that the instructor can do nothing about"
    return graded


@pytest.mark.proof
def test_what_nbgrader_releases_is_the_course_s_own_student_notebook(graded_class):
    released = (graded_class.folder / "release" / LESSON / f"{LESSON}.ipynb").read_bytes()
    assert released.rstrip() == (ROOT / "notebooks" / f"{LESSON}.ipynb").read_bytes().rstrip()


def test_a_classic_mistake_earns_part_of_the_points_and_is_named(graded_class):
    worth, scores = graded_class.read_max_scores(), graded_class.read_auto_scores("cleo")
    assert 0 < scores["check-patchify"] < worth["check-patchify"]
    assert scores["check-unpatchify"] == worth["check-unpatchify"]
    assert not list(Path("/tmp").glob("attacked-*")), "the class's files that she handed in were used"
    named = re.compile(r'This looks like <em><a href="[^"]+/column-order\.html"[^>]*>column order</a></em>')
    assert named.search(graded_class.read_feedback("cleo"))
    assert not named.search(graded_class.read_feedback("ada"))


def test_a_torn_notebook_is_mended_and_graded(graded_class):
    worth, scores = graded_class.read_max_scores(), graded_class.read_auto_scores("eve")
    assert scores["check-patchify"] == 0
    assert scores["check-unpatchify"] == worth["check-unpatchify"]
    cells = graded_class.read_notebook("eve").cells
    released = [read_grade_id(cell) for cell in graded_class.read_notebook(".", "release").cells if read_grade_id(cell)]
    assert [read_grade_id(cell) for cell in cells if read_grade_id(cell)] == released
    assert CODE_STUB.split("\n")[0] in next(cell.source for cell in cells if read_grade_id(cell) == "patchify")


def test_experiments_are_not_run(graded_class):
    experiment = graded_class.read_notebook("eve").cells[-1]
    assert experiment.source == "1 / 0"
    assert experiment.outputs == []


def test_a_loop_that_never_ends_costs_one_exercise_and_is_reported(graded_class):
    worth, scores = graded_class.read_max_scores(), graded_class.read_auto_scores("gus")
    assert scores["check-fix_patchify"] == 0
    assert scores["check-patchify"] == worth["check-patchify"]
    assert "within 10 seconds" in graded_class.read_feedback("gus")
    assert "within 10 seconds" not in graded_class.read_feedback("ada")


def test_an_empty_and_a_broken_cell_cost_their_exercises_alone(graded_class):
    worth, scores = graded_class.read_max_scores(), graded_class.read_auto_scores("ivy")
    assert scores["check-patchify"] == scores["check-unpatchify"] == 0
    assert scores["check-conv_from_linear"] == worth["check-conv_from_linear"]


def test_forged_metadata_and_checks_change_nothing(graded_class):
    assert graded_class.read_auto_scores("kim") == graded_class.read_auto_scores("ada")


def test_nothing_of_a_student_s_is_live_on_a_page(graded_class):
    notebook = nbformat.writes(graded_class.read_notebook("kim"))
    assert "attacked" in notebook, "what they wrote is there"
    assert LIVE not in graded_class.read_feedback("kim").replace(escape(LIVE), "")
    cells = [cell for cell in graded_class.read_notebook("kim").cells if cell.cell_type != "code"]
    assert all("<script>" not in cell.source for cell in cells)


def test_the_still_picture_of_a_figure_with_controls_is_in_the_feedback(graded_class):
    shown = {}
    for student in ("ada", "ben", "kim"):
        cells = graded_class.read_notebook(student).cells
        shown[student] = next(cell.outputs for cell in cells if EXPLORE in cell.source)
    (still,) = shown["ada"]
    assert list(still.data) == ["image/png"]
    assert f'src="data:image/png;base64,{still.data["image/png"].strip()}' in graded_class.read_feedback("ada")
    assert shown["ben"] == shown["kim"] == []


def test_nothing_that_lies_beside_a_notebook_is_copied(graded_class):
    assert graded_class.read_auto_scores("uma") == graded_class.read_auto_scores("ada")
    for step in ("autograded", "feedback"):
        copied = graded_class.folder / step / "uma" / LESSON
        names = {path.name for path in copied.rglob("*") if path.is_file()}
        assert names <= {f"{LESSON}.ipynb", f"{LESSON}.html", "timestamp.txt"}, names
    assert (graded_class.folder / "submitted" / "uma" / LESSON / "proof.html").is_file()


def test_late_work_costs_what_the_class_says(graded_class):
    with Gradebook(graded_class.address) as gradebook:
        late, in_time = (gradebook.find_submission(LESSON, student) for student in ("lea", "ada"))
        assert late.late_submission_penalty == late.score == in_time.score > 0
        assert not in_time.late_submission_penalty


def test_what_is_no_notebook_waits_for_the_instructor(graded_class):
    for student, reason in UNGRADABLE.items():
        page = graded_class.read_feedback(student)
        assert set(graded_class.read_auto_scores(student).values()) == {None}
        assert "This notebook could not be graded: it " in page
        assert reason in page


@pytest.mark.parametrize("student", STUDENTS)
def test_feedback_shows_the_reports_and_no_answer(graded_class, student):
    page = graded_class.read_feedback(student)
    assert not any(line in page for line in list_hidden_lines())
    assert "checks pass" in page or "is not written yet" in page
    assert RUBRIC.strip("*") not in page
    assert "test-cell-edited" not in page, "flags are for graders"
    assert "SOLUTION" not in page


@needs_chromium
def test_feedback_opens_with_the_report_on_a_screen_and_on_a_phone(graded_class):
    page = graded_class.folder / "feedback" / "cleo" / LESSON / f"{LESSON}.html"
    with open_browser() as browser:
        for width in (1200, 400):
            opened = browser.new_page(viewport={"width": width, "height": 900})
            opened.goto(page.as_uri())
            head = opened.locator('section[aria-label="Points"]')
            box = head.bounding_box()
            assert box["y"] + box["height"] < 900, "it fits a first screen"
            assert "This looks like column order" in head.inner_text()
            assert opened.evaluate("document.documentElement.scrollWidth") <= width
            assert not opened.get_by_text("Setup: run this cell first").first.is_visible(), "what was given is folded"
            head.get_by_role("link", name="fix_patchify", exact=True).click()
            assert opened.locator("a[name=check-fix_patchify]").bounding_box()["y"] < 900


def list_hidden_lines() -> set[str]:
    """Lines of code of what only grading asks."""
    files = (ROOT / "vit_course" / "exercises").rglob("graded.py")
    lines = {line.strip() for path in files for line in path.read_text("utf-8").splitlines()}
    return {line for line in lines if line.startswith(("def ", "@claims", "expect_", "claims."))}


@pytest.mark.proof
def test_a_changed_check_grades_its_exercise_again_and_keeps_what_a_person_gave(graded_class):
    """Points given by hand survive; a check that refuses the model answer is reported, and costs nobody a point."""
    with Gradebook(graded_class.address) as gradebook:
        gradebook.find_grade("patches-or-pixels", LESSON, LESSON, "ada").manual_score = 1.5
        gradebook.db.commit()
    checks = graded_class.folder / "hidden" / "test_unpatchify.py"
    with checks.open("a", encoding="utf-8") as file:
        file.write(
            'import pytest\n\n\n@pytest.mark.exercise("unpatchify", points=5)\ndef test_impossible(student):\n'
            '    """It does what nobody can."""\n    assert False\n'
        )
    before = graded_class.read_auto_scores("ada")
    log = run_nbgrader(graded_class.folder, "autograde", LESSON, "--student=ada", "--force")
    run_nbgrader(graded_class.folder, "generate_feedback", LESSON, "--student=ada", "--force")
    after = graded_class.read_auto_scores("ada")
    assert after == before
    place = r"hidden/test_unpatchify.py:\d+"
    refusal = f"ada: unpatchify, test_impossible: {place}: test_impossible refuses the lesson's model answer"
    assert re.search(refusal, log)
    assert "It does what nobody can." in graded_class.read_feedback("ada")
    with Gradebook(graded_class.address) as gradebook:
        assert gradebook.find_grade("patches-or-pixels", LESSON, LESSON, "ada").score == 1.5
