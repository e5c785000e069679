"""The formgrader page in a real browser: one click grades with our judge, and the page shows its verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import playwright.sync_api as playwright
import pytest
from nbgrader.api import Gradebook

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.e2e.browser import needs_chromium, open_browser, open_page, serve_jupyter_lab, take_screenshot
from tests.e2e.commands import ROOT, run_nbgrader
from tests.outline import OUTLINE
from vit_course.demo import STRIPS

pytestmark = [needs_chromium, pytest.mark.proof]
LESSON = "01_patchify"
QUESTION = "patches-or-pixels"
LIVE = "<script>document.title = 'attacked'</script>"


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = new_class(tmp_path_factory.mktemp("formgrader") / "class", ROOT).path
    run_nbgrader(made, "generate_assignment", LESSON)
    answers = read_model_answers(made, LESSON) | {"patchify": STRIPS, QUESTION: f"Because. {LIVE}"}
    written = write_submissions(made, LESSON, {"cleo": answers})
    handed_in = written["cleo"].read_text("utf-8")
    written["cleo"].write_text(handed_in.replace('check(\\"unpatchify\\"', 'chek(\\"unpatchify\\"'), "utf-8")
    return made


@pytest.fixture(scope="module")
def page(class_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[playwright.Page]:
    with (
        serve_jupyter_lab(class_folder, tmp_path_factory.mktemp("settings")) as address,
        open_browser() as browser,
    ):
        opened = open_page(browser, viewport={"width": 1200, "height": 900}, base_url=address)
        opened.goto(f"/formgrader/manage_submissions/{LESSON}")
        opened.locator("tr", has_text="cleo").locator("td.autograde a").click()
        opened.get_by_text("Successfully autograded").wait_for()
        yield opened


def test_the_submission_s_page_shows_our_words_and_runs_nothing_of_the_student_s(page: playwright.Page) -> None:
    page.goto(f"/formgrader/gradebook/{LESSON}/{LESSON}")
    page.locator("a", has_text="Submission #").first.click()
    report = page.locator('section[aria-label^="patchify"]')
    report.wait_for()
    assert "strips not squares" in report.inner_text()
    assert "attacked" not in page.title()
    assert "document.title" in page.locator("body").inner_text(), "what the student wrote is shown"
    head = page.locator('section[aria-label="Points"]').inner_text()
    assert f"{LESSON}: " in head
    assert "strips not squares" in head
    assert "not graded yet: it waits for a person" in head
    take_screenshot(page, "formgrader", report)


def test_flags_and_the_rubric_stand_beside_the_answer(page: playwright.Page) -> None:
    """On the page that the test before has opened."""
    said = page.locator("body").inner_text()
    assert "For you to look at; flags never change the points, and no student sees them." in said
    assert "unpatchify: its check cell was changed" in said
    rubric = page.locator(".text_cell_render", has_text="For graders: the rubric.").last
    assert "1 point" in rubric.inner_text()
    take_screenshot(page, "formgrader-flags", page.get_by_text("For you to look at"))
    take_screenshot(page, "formgrader-beside", page.get_by_text("its check cell was changed").last)
    take_screenshot(page, "formgrader-rubric", rubric)


def test_what_is_typed_is_saved_after_a_rest_and_a_server_that_does_not_answer_is_named(
    page: playwright.Page, class_folder: Path
) -> None:
    """On the same page, whose field nobody leaves."""
    comment, mark = page.locator(f"#{QUESTION}-comment"), page.get_by_role("status")

    def read_comment() -> str | None:
        with Gradebook(f"sqlite:///{class_folder}/gradebook.db") as gradebook:
            return gradebook.find_comment(QUESTION, LESSON, LESSON, "cleo").manual_comment

    comment.press_sequentially("Well")
    assert mark.inner_text() == "not saved yet"
    leaving = "window.dispatchEvent(new Event('beforeunload', {cancelable: true}))"
    assert page.evaluate(leaving) is False, "the page asks before it closes"
    page.get_by_text("saved", exact=True).wait_for()
    assert read_comment() == "Well"
    assert page.evaluate(leaving) is True
    page.route("**/api/comment/*", lambda route: route.abort())
    comment.press_sequentially(" put")
    page.get_by_text("Not saved: the server does not answer.").wait_for()
    assert (read_comment(), comment.input_value()) == ("Well", "Well put")
    page.unroute("**/api/comment/*")
    page.get_by_text("saved", exact=True).wait_for()
    assert read_comment() == "Well put"
    page.locator(f"#{QUESTION}").fill("0.5")
    page.get_by_text("not saved yet").wait_for()
    page.get_by_text("saved", exact=True).wait_for()
    with Gradebook(f"sqlite:///{class_folder}/gradebook.db") as gradebook:
        assert gradebook.find_grade(QUESTION, LESSON, LESSON, "cleo").manual_score == 0.5


def read_question_points(folder: Path) -> tuple[float | None, float | None]:
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as gradebook:
        grade = gradebook.find_grade(QUESTION, LESSON, LESSON, "cleo")
        return grade.manual_score, grade.extra_credit


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("0,5", 0.5), ("0.25", 0.25), (",75", 0.75), ("1", 1.0), ("0", 0.0), ("", None)],
)
def test_a_comma_is_a_decimal_sign(page: playwright.Page, class_folder: Path, typed: str, kept: float | None) -> None:
    """On the same page, whose question is worth 2 points; typed key by key, which a field for numbers would filter."""
    field = page.locator(f"#{QUESTION}")
    field.fill("0.125")
    page.get_by_text("saved", exact=True).wait_for()
    field.fill("")
    field.press_sequentially(typed)
    field.blur()
    page.get_by_text("saved", exact=True).wait_for()
    assert read_question_points(class_folder) == (kept, None)


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        (QUESTION, "5", "above 2"),
        (QUESTION, "2,01", "above 2"),
        (QUESTION, "10", "above 2"),
        (QUESTION, "-1", "below 0"),
        (QUESTION, "1.000,5", "no number"),
        (QUESTION, "half", "no number"),
        (QUESTION, "0,", "no number"),
        (QUESTION, "1e-1", "no number"),
        (f"{QUESTION}_extra_credit", "-0,5", "below 0"),
        (f"{QUESTION}_extra_credit", "x", "no number"),
    ],
)
def test_what_cannot_be_points_is_refused_beside_the_field(
    page: playwright.Page, class_folder: Path, name: str, typed: str, words: str
) -> None:
    before, field = read_question_points(class_folder), page.locator(f"#{name}")
    field.fill("")
    field.press_sequentially(typed)
    refusal = page.locator(".refusal")
    refusal.wait_for()
    assert refusal.inner_text().startswith(f"not saved: {words}")
    assert page.get_by_role("status").inner_text() == "Not saved: see beside the field."
    assert field.input_value() == typed
    assert read_question_points(class_folder) == before
    take_screenshot(page, "formgrader-refused", field)
    field.fill("0,5")
    page.get_by_text("saved", exact=True).wait_for()
    assert refusal.count() == 0
    assert read_question_points(class_folder) == ((0.5, before[1]) if name == QUESTION else (before[0], 0.5))
    field.fill("")
    page.get_by_text("saved", exact=True).wait_for()


def test_a_button_takes_the_place_of_what_was_refused(page: playwright.Page, class_folder: Path) -> None:
    page.locator(f"#{QUESTION}").fill("7")
    page.locator(".refusal").wait_for()
    page.locator(".nbgrader_cell", has=page.locator(f"#{QUESTION}")).locator(".full-credit").click()
    page.get_by_text("saved", exact=True).wait_for()
    worth = OUTLINE[LESSON]["questions"][QUESTION]
    assert read_question_points(class_folder)[0] == worth
    assert page.locator(f"#{QUESTION}").input_value() == f"{worth:g}"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        *(({"manual_score": "0,5"}, 200), ({"manual_score": "half"}, 400), ({"manual_score": 2.5}, 400)),
        *(({"manual_score": -1}, 400), ({"manual_score": True}, 400), ({"extra_credit": "-1"}, 400)),
    ],
)
def test_the_server_refuses_them_too(
    page: playwright.Page, class_folder: Path, sent: dict[str, object], status: int
) -> None:
    """Past the fields: what a page without our script would send."""
    before = read_question_points(class_folder)
    answer = page.evaluate(
        """([name, sent]) => new Promise(done => formgrader.grades.findWhere({name}).save(sent, {
          wait: true, success: (model, data, options) => done(options.xhr.status),
          error: (model, request) => done(request.status) }))""",
        [QUESTION, {"extra_credit": None, "manual_score": None} | sent],
    )
    assert answer == status
    assert read_question_points(class_folder) == ((0.5, None) if status == 200 else before)
