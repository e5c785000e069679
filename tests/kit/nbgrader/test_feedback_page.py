"""A student's feedback page opens with the points and what was found first; what everybody was given is folded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from exercise_kit.engine.rendering import REPORT_MIME
from exercise_kit.engine.verdict import Cause, CheckResult, Verdict
from exercise_kit.judge.result import ExerciseResult
from exercise_kit.nbgrader.cleaning import sanitize_markdown
from exercise_kit.nbgrader.feedback import FeedbackPages
from exercise_kit.nbgrader.page_head import TOLD, ShowHead

LESSON, STUDENT = "01_x", "ada"
COLUMN = Cause("column order", "It runs <down>.", "", "")
FAILED = CheckResult("test_rows", "Tokens run row by row.", Verdict.FAIL, "token 1 is wrong", causes=(COLUMN,))
PASSED = CheckResult("test_a", "It holds.", Verdict.PASS)
REPORTS = [
    ExerciseResult("patchify", 1.0, 4.0, "column order", (FAILED, PASSED)),
    ExerciseResult("unpatchify", 2.0, 2.0, checks=(PASSED,)),
]
GIVEN = ["# A lesson\n\nIts text.", "import vit_course  # set-up", "## More of it"]


def make_mark(name: str, grade: bool, points: float = 0.0) -> dict[str, Any]:
    made = {"grade_id": name, "grade": grade, "solution": not grade or name == "why", "locked": False}
    return {"nbgrader": {**made, "schema_version": 3, "points": points, "task": False}}


def make_cells(answered: bool) -> list[Any]:
    """Of the lesson: as it was released, or as it was graded."""
    first, setup, second = GIVEN
    read = sanitize_markdown if answered else str
    made = [new_markdown_cell(read(first)), new_code_cell(setup)]
    made += [new_code_cell("guess = 270" if answered else "guess = ...")]
    for each in REPORTS:
        data = {"text/plain": str(each.score), "text/html": "<p>The whole report.</p>", REPORT_MIME: each.as_dict()}
        output = [new_output("execute_result", data, execution_count=None)] if answered else []
        made.append(new_code_cell(f"def {each.name}(): pass", metadata=make_mark(each.name, False)))
        points = make_mark(f"check-{each.name}", True, each.max_score)
        made.append(new_code_cell(f'check("{each.name}")', metadata=points, outputs=output))
        made.append(new_markdown_cell(read(second)))
    return [*made, new_markdown_cell("Because.", metadata=make_mark("why", True, 1.0))]


@dataclass(frozen=True)
class Class:
    """A class of one student, whose lesson was graded."""

    folder: Path
    config: Config

    def page(self) -> str:
        FeedbackPages(CourseDirectory(config=self.config), config=self.config).start()
        return (self.folder / "feedback" / STUDENT / LESSON / f"{LESSON}.html").read_text("utf-8")

    def on_top(self) -> list[str]:
        """The lines that the page opens with, as a reader sees them."""
        body = self.page().partition("<body>")[2].partition('id="notebook"')[0].rpartition("<")[0]
        lines = (unescape(re.sub(r"<[^>]+>", " ", each)) for each in re.split("</?(?:div|p)[ >]", body))
        return [" ".join(each.partition('">')[2].split()) if '">' in each else " ".join(each.split()) for each in lines]


@pytest.fixture
def graded_class(tmp_path: Path) -> Class:
    for place, answered in (("release", False), (f"autograded/{STUDENT}", True)):
        file = tmp_path / place / LESSON / f"{LESSON}.ipynb"
        file.parent.mkdir(parents=True)
        nbformat.write(new_notebook(cells=make_cells(answered)), file)
    url = f"sqlite:///{tmp_path}/gradebook.db"
    with Gradebook(url) as gradebook:
        gradebook.add_assignment(LESSON)
        gradebook.add_notebook(LESSON, LESSON)
        for name, points in (("check-patchify", 4.0), ("check-unpatchify", 2.0), ("why", 1.0)):
            kind = "markdown" if name == "why" else "code"
            gradebook.add_grade_cell(name, LESSON, LESSON, cell_type=kind, max_score=points)
            gradebook.add_source_cell(name, LESSON, LESSON, cell_type=kind, source="", checksum="", locked=False)
        for name in ("patchify", "unpatchify", "why"):
            gradebook.add_solution_cell(name, LESSON, LESSON)
        gradebook.add_student(STUDENT)
        gradebook.add_submission(LESSON, STUDENT)
        for each in REPORTS:
            grade = gradebook.find_grade(f"check-{each.name}", LESSON, LESSON, STUDENT)
            grade.auto_score, grade.needs_manual_grade = each.score, False
        gradebook.find_comment("patchify", LESSON, LESSON, STUDENT).manual_comment = "Draw it, *then* permute."
        gradebook.db.commit()
    config = Config({"CourseDirectory": {"root": str(tmp_path), "assignment_id": LESSON, "db_url": url}})
    return Class(tmp_path, config)


ROWS = [
    "patchify 1 of 4 ✗ This looks like column order : It runs <down>. Comment: Draw it, then permute.",
    "unpatchify 2 of 2 ✓ 1 check passes",
]


@pytest.mark.parametrize(
    ("points", "title", "row"),
    [
        (None, "01_x: 3 of 7 points so far, 1 not graded yet", "why – of 1 ○ not graded yet: it waits for a person"),
        (0.5, "01_x: 3.5 of 7 points", "why 0.5 of 1 points given by hand"),
    ],
)
def test_a_page_opens_with_each_exercise_its_points_and_its_first_cause(
    graded_class: Class, points: float | None, title: str, row: str
) -> None:
    with Gradebook(graded_class.config.CourseDirectory.db_url) as gradebook:
        grade = gradebook.find_grade("why", LESSON, LESSON, STUDENT)
        grade.manual_score, grade.needs_manual_grade = points, points is None
        gradebook.db.commit()
    assert list(filter(None, graded_class.on_top())) == [title, *ROWS, row]
    for name in ("check-patchify", "check-unpatchify", "why"):
        page = graded_class.page()
        assert page.count(f'<a href="#{name}">') == page.count(f'<a name="{name}"></a>') == 1, name
    assert page.count('name="viewport"') == 1, "a phone shows it in its own width"


def test_what_everybody_was_given_is_folded_and_the_student_s_own_is_not(graded_class: Class) -> None:
    page = graded_class.page()
    folded = re.findall(r'<details class="given"><summary>([^<]*)</summary>(.*?)</details>', page, re.DOTALL)
    assert [summary for summary, _ in folded] == [
        "2 cells of the lesson: A lesson",
        *["1 cell of the lesson: More of it"] * 2,
    ]
    inside, outside = (
        " ".join(text for _, text in folded),
        re.sub(r"<details class.*?</details>", "", page, flags=re.DOTALL),
    )
    assert "Its text." in inside
    assert "set-up" in inside
    for own in ("270", "patchify", "The whole report.", "Because."):
        assert own in outside, own


def test_without_the_released_lesson_all_of_a_page_is_shown(
    graded_class: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    (graded_class.folder / "release" / LESSON / f"{LESSON}.ipynb").unlink()
    assert "<details class" not in graded_class.page()


def test_formgrader_s_page_has_the_same_head_and_what_the_student_is_told(graded_class: Class) -> None:
    notebook = new_notebook(cells=make_cells(True), metadata={TOLD: "Not graded yet: <patchify>."})
    whose = {"submission_id": "7", "notebook_id": LESSON, "assignment_id": LESSON, "student": STUDENT}
    shown, _ = ShowHead(config=graded_class.config).preprocess(notebook, whose)
    head = graded_class.page().partition('<section aria-label="Points"')[2].partition("</section>")[0]
    told = "<p><strong>Not graded yet: &lt;patchify&gt;.</strong></p>"
    assert shown.cells[0].source.replace(told, "").partition('<section aria-label="Points"')[2] == f"{head}</section>"
    feedback, _ = ShowHead(config=graded_class.config).preprocess(new_notebook(), {})
    assert not feedback.cells
