"""A lesson asks for few predictions, answers none in the next cell, and its code fits a narrow page."""

from __future__ import annotations

import re

import nbformat
import pytest

from exercise_kit.authoring.lesson import Cell, Lesson, Role, read_lesson
from exercise_kit.authoring.lint import split_solution_regions
from tests.course.test_quoted_numbers import ROOT

PREDICTIONS, COLUMNS = 4, 88
EXPERIMENTS = {"07_experiments": 4, "09_fine_tuning": 1}  # with a prediction of their own
LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("*.py"))
every_lesson = pytest.mark.parametrize("name", LESSONS)
# code, formulas, pictures' descriptions, links' addresses
NO_PROSE = re.compile(r"```.*?```|\$\$.*?\$\$|\$[^$\n]*\$|!\[[^\]]*\]\([^)]*\)|(?<=\])\([^)]*\)", re.DOTALL)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r'^predict\(\s*"([^"]+)"', re.MULTILINE)


def read_lesson_by_name(name: str) -> Lesson:
    return read_lesson(ROOT, ROOT / "solutions" / f"{name}.py")


def read_prose(cell: Cell) -> str:
    """Return what students read of a Markdown cell, folded or not."""
    return NO_PROSE.sub("", "\n".join(split_solution_regions(cell.source).outside)) if cell.is_markdown else ""


@every_lesson
def test_what_is_predicted_is_asked_for_and_seldom(name):
    """Between "Predict first" and the cell that computes the result stands a cell with predict()."""
    cells = read_lesson_by_name(name).cells
    asked = [number for number, cell in enumerate(cells) if "predict first" in read_prose(cell).lower()]
    predictions = NAMED.findall("\n".join(cell.source for cell in cells if not cell.is_markdown))
    assert len(predictions) <= PREDICTIONS + EXPERIMENTS.get(name, 0)
    assert not any("before the run:" in read_prose(cell) and cell.role is not Role.QUESTION for cell in cells)
    for number in asked:
        following = [cell for cell in cells[number + 1 :] if not cell.is_markdown][:2]  # a picture may come before
        assert any(NAMED.search(cell.source) for cell in following), cells[number].source


@every_lesson
def test_no_prediction_is_answered_in_the_next_cell_s_code(name):
    """A choice that the code reveals is computed: the same text does not stand alone beside the name."""
    for cell in read_lesson_by_name(name).cells:
        if not cell.is_markdown:
            assert not re.search(r'reveal\(\s*"[^"]+",\s*(?:"[^"]*"|[\d.]+)\s*[,)]', cell.source)


@every_lesson
@pytest.mark.parametrize("folder", ["solutions", "notebooks"])
def test_code_fits_a_narrow_page(name, folder):
    """Code, and the code and pseudo-code that stands in prose and in hints."""
    notebook = nbformat.read(ROOT / folder / f"{name}.ipynb", as_version=nbformat.NO_CONVERT)
    found = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    found += [block for cell in notebook.cells if cell.cell_type == "markdown" for block in FENCED.findall(cell.source)]
    lines = [line for each in found for line in each.split("\n")]
    assert lines
    assert [line for line in lines if len(line) > COLUMNS] == []
