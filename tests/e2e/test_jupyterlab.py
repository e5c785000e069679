"""A lesson in a real JupyterLab in a real browser, as a student who made a classic mistake sees it."""

import json
import re
from pathlib import Path

import playwright.sync_api as playwright
import pytest

from tests.e2e.browser import needs_chromium, open_browser, open_page, serve_jupyter_lab, take_screenshot
from tests.e2e.submissions import find_cell, find_place_of_cell, make_code_cell
from tests.waiting import GIVE_UP
from vit_course.demo import STRIPS

ROOT = Path(__file__).parents[2]
LESSON = ROOT / "notebooks" / "01_patchify.ipynb"
KERNEL_IS_READY = """async () => {
    const context = window.jupyterapp.shell.currentWidget.context.sessionContext;
    await context.ready;
    await context.session.kernel.info;
}"""

FIGURES = {
    "explore_positions": (
        "tables = {'learned': torch.randn(64, 9)}\nexplore_positions(tables, (8, 8))",
        ("patch column", "0", "Position of the patch in row 4, column 0."),
    ),
    "explore_softmax": ("explore_softmax()", ("divisor", "8", "scores divided by 8 (the root of head_dim)")),
    "explore_attention": (
        "weights = torch.rand(1, 2, 5, 5).softmax(-1)\n"
        "explore_attention(torch.rand(3, 8, 8), [weights], (2, 2), lambda layers: layers[0].mean(1))",
        ("query", "class token", "Query: the class token; block 0"),
    ),
}

pytestmark = [needs_chromium, pytest.mark.proof]


@pytest.fixture(scope="module")
def jupyter_lab_address(tmp_path_factory):
    """JupyterLab with the lesson, half done: its address."""
    student_folder = tmp_path_factory.mktemp("a student's folder")
    notebook = json.loads(LESSON.read_text(encoding="utf-8"))
    find_cell(notebook, "patchify")["source"] = STRIPS
    notebook["cells"] = notebook["cells"][: find_place_of_cell(notebook, "check-unpatchify") + 1]
    (student_folder / "lesson.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    cells = [f"import torch\nfrom vit_course.explore import {name}\n{cell}" for name, (cell, _) in FIGURES.items()]
    (student_folder / "figures.ipynb").write_text(_write_notebook(cells), encoding="utf-8")
    # settings of its own: the dark theme below must not become the user's
    with serve_jupyter_lab(student_folder, tmp_path_factory.mktemp("settings")) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def lesson_page(browser, jupyter_lab_address):
    """The lesson, opened in JupyterLab, with all its cells run."""
    opened = _open_notebook(browser, f"{jupyter_lab_address}/lab/tree/lesson.ipynb")
    _run_all(opened)
    return opened


def test_a_failing_check_says_which_mistake_it_was(lesson_page):
    report = lesson_page.locator('section[aria-label^="patchify"]')
    report.scroll_into_view_if_needed()
    take_screenshot(lesson_page, "failing-check-light")
    words = report.inner_text()
    assert "strips not squares" in words
    assert (
        words.index("Seen:") < words.index("Expected:") < words.index("Likely cause:") < words.index("Where to look:")
    )
    assert "permute" not in words, "the message gives the answer away"
    assert report.locator('a[href$="/strips-not-squares.html"]').first.inner_text() == "strips not squares"


def test_every_figure_shows_and_has_a_text_equivalent(lesson_page):
    pictures = lesson_page.evaluate(
        """() => [...document.querySelectorAll('.jp-MarkdownOutput img')]
                 .map(each => ({width: each.naturalWidth, alt: each.alt}))"""
    )
    assert len(pictures) >= 2
    assert all(picture["width"] > 0 and len(picture["alt"]) > 10 for picture in pictures)


def test_a_slider_moved_by_keyboard_changes_the_picture_and_the_sentence(lesson_page):
    cell = _find_cell_with_controls(lesson_page)
    cell.scroll_into_view_if_needed()
    sentence, picture = cell.locator("[role=status]"), cell.locator("img:visible")
    before, drawn = sentence.inner_text(), picture.get_attribute("src")
    assert before.startswith("Patches of 16: 12 × 12 = 144 tokens")
    cell.locator(".noUi-handle").first.focus()
    lesson_page.keyboard.press("ArrowRight")
    cell.get_by_text("Patches of 24: 8 × 8 = 64 tokens").first.wait_for()
    assert picture.get_attribute("src") != drawn
    assert picture.get_attribute("alt").startswith("A picture cut into patches")
    cell.locator(".noUi-handle").nth(1).focus()
    lesson_page.keyboard.press("End")
    cell.get_by_text("The pixel in row 188").first.wait_for()
    named = cell.get_by_label("pixel column")  # what a screen reader calls it
    named.fill("4")
    named.press("Enter")
    cell.get_by_text("The pixel in row 188, column 4 lies in token 56").first.wait_for()
    take_screenshot(lesson_page, "controls-light")


def test_every_other_figure_follows_its_controls(browser, jupyter_lab_address):
    page = _open_notebook(browser, f"{jupyter_lab_address}/lab/tree/figures.ipynb")
    for number in range(len(FIGURES)):
        _run_next(page, number)
    for number, (name, (_, (label, value, expected))) in enumerate(FIGURES.items()):
        cell = page.locator(".jp-CodeCell").nth(number)
        cell.locator("[role=status]").wait_for()
        picture = cell.locator("img:visible")
        drawn = picture.get_attribute("src")
        assert len(picture.get_attribute("alt")) > 40, name
        control = cell.get_by_label(label, exact=True)
        if control.evaluate("each => each.tagName") == "SELECT":
            control.select_option(value)
        else:
            control.fill(value)
            control.press("Enter")
        cell.locator("[role=status]", has_text=expected).wait_for()
        assert picture.get_attribute("src") != drawn, name
    shown = cell.get_by_label("head", exact=True).evaluate("each => each.selectedOptions[0]?.text")
    assert shown.split() == ["mean", "of", "the", "heads"]  # whose spaces do not break
    assert cell.get_by_label("patch row", exact=True).is_disabled(), "the class token lies in no patch"
    take_screenshot(page, "other-controls")


def test_the_still_figure_is_hidden_while_the_widget_shows(lesson_page):
    cell = _find_cell_with_controls(lesson_page)
    assert cell.locator("img").count() == 2
    assert cell.locator("img:visible").count() == 1
    assert cell.locator("[class^=still]").is_hidden()


def test_the_report_can_be_read_on_a_dark_theme(lesson_page):
    _run_lab_command(lesson_page, "apputils:change-theme", {"theme": "JupyterLab Dark"})
    lesson_page.wait_for_function("document.body.dataset.jpThemeLight === 'false'")
    report = lesson_page.locator('section[aria-label^="patchify"]')
    report.scroll_into_view_if_needed()
    take_screenshot(lesson_page, "failing-check-dark")
    sentence = _find_cell_with_controls(lesson_page).locator("[role=status]")
    sentence.scroll_into_view_if_needed()
    take_screenshot(lesson_page, "controls-dark")
    for text in (report.locator("li").first, sentence):
        color = text.evaluate("each => getComputedStyle(each).color")
        red, green, blue = (int(part) for part in re.findall(r"\d+", color)[:3])
        assert min(red, green, blue) > 150, f"dark text on a dark theme: {color}"


def test_a_notebook_opened_again_without_its_kernel_shows_the_still_figure(lesson_page):
    _run_lab_command(lesson_page, "docmanager:save")
    lesson_page.evaluate("window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
    lesson_page.goto(lesson_page.url.partition("?")[0] + "?reset")
    cell = _find_cell_with_controls(lesson_page)
    cell.get_by_text("model not found").wait_for()
    still = cell.locator("[class^=still]")
    assert still.text_content().startswith("Patches of 16: 12 × 12 = 144 tokens")
    # its style, and not whether it is seen: JupyterLab hides the cells out of view
    assert still.evaluate("each => getComputedStyle(each).display") == "block"
    assert still.locator("img").evaluate("each => each.complete && each.naturalWidth > 0")
    take_screenshot(lesson_page, "controls-gone")


def _write_notebook(cells):
    """A notebook of these cells, in the lesson's kernel."""
    notebook = json.loads(LESSON.read_text(encoding="utf-8"))
    notebook["cells"] = [make_code_cell(each) | {"id": f"cell-{number}"} for number, each in enumerate(cells)]
    return json.dumps(notebook)


def _open_notebook(browser, address):
    """A notebook in JupyterLab, its kernel ready."""
    page = open_page(browser, viewport={"width": 1200, "height": 1400})
    page.goto(f"{address}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.evaluate(KERNEL_IS_READY)
    return page


def _run_next(page, number):
    """Run the selected cell, which has this number, and select the next one."""
    _run_lab_command(page, "notebook:run-cell-and-select-next")
    page.locator(".jp-CodeCell").nth(number).locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]")).wait_for()


def _find_cell_with_controls(page):
    return page.locator(".jp-CodeCell", has_text="explore_patches(own_picture")


def _run_all(page):
    """Run every cell; asked again where JupyterLab, still settling, lets the request fall."""
    last = page.locator('section[aria-label^="unpatchify"]')
    for _ in range(GIVE_UP // 120):
        _run_lab_command(page, "notebook:run-all-cells")
        try:
            last.wait_for(timeout=120_000)
        except playwright.TimeoutError:
            continue
        return
    take_screenshot(page, "never-finished")
    raise AssertionError("JupyterLab did not run the notebook")


def _run_lab_command(page, name, arguments=None):
    """Run one of JupyterLab's own commands."""
    page.evaluate("([name, given]) => window.jupyterapp.commands.execute(name, given)", [name, arguments or {}])
