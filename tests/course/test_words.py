"""A lesson is short: few words before its first exercise and in all, short sentences and lines, few predictions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import nbformat
import pytest

from exercise_kit.authoring.lesson import Cell, Lesson, Role, read_lesson
from exercise_kit.authoring.lint import split_regions
from tests.course.test_quoted_numbers import ROOT

WORDS_TO_THE_FIRST_EXERCISE, WORDS, WORDS_IN_A_SENTENCE, PREDICTIONS = 450, 3500, 35, 4
EXPERIMENTS = {"07_experiments": 4, "09_fine_tuning": 1}  # with a prediction of their own
WORDS_OF_THE_COURSE, COLUMNS = 30_000, 88
LESSONS = sorted(path.stem for path in (ROOT / "solutions").glob("*.py"))
every_lesson = pytest.mark.parametrize("name", LESSONS)
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
# code, formulas, pictures' descriptions, links' addresses
NO_PROSE = re.compile(r"```.*?```|\$\$.*?\$\$|\$[^$\n]*\$|!\[[^\]]*\]\([^)]*\)|(?<=\])\([^)]*\)", re.DOTALL)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"\n\s*\n|\n(?=- |> |\||#|\d\. )|<[^>]+>")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_`]*\s+(?=[^a-z])")
NAMED = re.compile(r'^predict\(\s*"([^"]+)"', re.MULTILINE)


def lesson(name: str) -> Lesson:
    return read_lesson(ROOT, ROOT / "solutions" / f"{name}.py")


def prose(cell: Cell) -> str:
    """Return what students read of a Markdown cell, folded or not."""
    return NO_PROSE.sub("", "\n".join(split_regions(cell.source).outside)) if cell.is_markdown else ""


def words(text: str) -> int:
    return sum(bool(re.search(r"\w", each)) for each in text.split())


def visible_words(cells: list[Cell]) -> int:
    return sum(words(BLOCK.sub(" ", FOLDED.sub("", prose(cell)))) for cell in cells)


def sentences(text: str) -> Iterator[str]:
    for block in BLOCK.split(text):
        for part in block.split("|"):
            yield from SENTENCE_END.split(" ".join(part.split()))


@every_lesson
def test_the_first_exercise_comes_soon(name):
    cells = list(lesson(name).cells)
    first = next(number for number, cell in enumerate(cells) if cell.role is Role.EXERCISE)
    assert visible_words(cells[:first]) <= WORDS_TO_THE_FIRST_EXERCISE


@every_lesson
def test_a_lesson_can_be_read_in_twenty_minutes(name):
    assert visible_words(list(lesson(name).cells)) <= WORDS


def test_the_course_can_be_read_in_three_hours():
    assert sum(visible_words(list(lesson(name).cells)) for name in LESSONS) <= WORDS_OF_THE_COURSE


@every_lesson
def test_no_sentence_is_long(name):
    found = [each for cell in lesson(name).cells for each in sentences(prose(cell))]
    assert [each for each in found if words(each) > WORDS_IN_A_SENTENCE] == []


@every_lesson
def test_what_is_predicted_is_asked_for_and_seldom(name):
    """Between "Predict first" and the cell that computes the result stands a cell with predict()."""
    cells = lesson(name).cells
    asked = [number for number, cell in enumerate(cells) if "predict first" in prose(cell).lower()]
    predictions = NAMED.findall("\n".join(cell.source for cell in cells if not cell.is_markdown))
    assert len(predictions) <= PREDICTIONS + EXPERIMENTS.get(name, 0)
    assert not any("before the run:" in prose(cell) and cell.role is not Role.QUESTION for cell in cells)
    for number in asked:
        following = [cell for cell in cells[number + 1 :] if not cell.is_markdown][:2]  # a picture may come before
        assert any(NAMED.search(cell.source) for cell in following), cells[number].source


@every_lesson
def test_no_prediction_is_answered_in_the_next_cell_s_code(name):
    """A choice that the code reveals is computed: the same text does not stand alone beside the name."""
    for cell in lesson(name).cells:
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
