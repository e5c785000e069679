"""Predictions in a lesson: the author's guess stays in the solution, and each is revealed; the outline of a course."""

from __future__ import annotations

import ast
import json

import nbformat
import pytest

from exercise_kit.authoring.build import build
from exercise_kit.authoring.lesson import read_lesson
from exercise_kit.authoring.lint import find_problems
from exercise_kit.authoring.predictions import remove_guesses
from exercise_kit.engine.course_named import read_package_name

from .conftest import GOOD

PREDICT = 'predict("sum", 6)  # a whole number\n'
REVEAL = 'reveal("sum", sum(numbers))\n'
CODE = "numbers = [1, 2, 3]\n"


def read_lesson_with_prediction(repository, predicted=PREDICT, revealed=REVEAL):
    text = GOOD.replace(CODE, f"{CODE}\n# %%\n{predicted}\n# %%\n{revealed}")
    assert text != GOOD
    return read_lesson(repository.root, repository.write(text))


@pytest.mark.parametrize(
    ("guess", "options"),
    [
        ("6", ""),
        ("-0.5", ""),
        ('"rows, or \\"more\\""', ', choices=("rows", "columns")'),
        ('"größer"', ""),
        ("1 + 2", ""),
    ],
)
def test_a_guess_becomes_three_dots_and_the_rest_of_the_cell_stays(guess, options):
    cell = "é = 1; {}  # ä (a, b)\nother = predict_with_attention(1, 2)\n{}"
    two = [f'predict("a", {each}{options})' for each in (guess, "...")]
    assert remove_guesses(cell.format(two[0], two[0])) == cell.format(two[1], two[1])


@pytest.mark.parametrize(
    "source", ["predict(", "%predict('a', 1)", 'predict("a")', "# predict('a', 1)", "x.predict(1, 2)"]
)
def test_what_is_no_prediction_stays(source):
    assert remove_guesses(source) == source


def test_students_get_no_guess_and_solutions_keep_it(repository):
    read_lesson_with_prediction(repository)
    build(repository.root)
    for folder, wanted in (("solutions", PREDICT), ("notebooks", PREDICT.replace("6", "..."))):
        notebook = nbformat.read(repository.root / folder / "01_double.ipynb", as_version=4)
        assert [cell.source for cell in notebook.cells if cell.source.startswith("predict")] == [wanted.strip()]
        assert all(ast.parse(cell.source) for cell in notebook.cells if cell.source.startswith("predict"))


@pytest.mark.parametrize(
    ("predicted", "revealed", "message"),
    [
        (PREDICT, CODE, "is never revealed"),
        (CODE, REVEAL, "which no cell above predicts"),
        (PREDICT + PREDICT, REVEAL, "a second prediction"),
        (PREDICT.replace("6", "..."), REVEAL, "a number or a text"),
        (PREDICT.replace("6", "[6]"), REVEAL, "a number or a text"),
        ('predict("sum")', REVEAL, "a name and a guess"),
        ('predict("sum", "six")', REVEAL, "one of its choices"),
        ('predict("sum", "six", choices=("five", "seven"))', REVEAL, "one of its choices"),
        ('predict("sum", "six", choices=names)', REVEAL, "one of its choices"),
        ('predict("sum", "six", choices=6)', REVEAL, "one of its choices"),
    ],
)
def test_a_prediction_that_cannot_work_is_reported(repository, predicted, revealed, message):
    (problem,) = find_problems(read_lesson_with_prediction(repository, predicted, revealed), repository.root)
    assert message in str(problem)


def test_the_outline_has_titles_points_and_the_minutes_of_the_table(repository):
    table = "# | exercise | minutes | points |\n# |---|---|---|\n# | `double` | 10 | 3 |\n# | more | 1 to 5 | – |\n"
    text = GOOD.replace("# What a number", f"{table}#\n# What a number").replace("# # Doubling", "# # 01 · Doubling")
    home = repository.root / read_package_name() / "exercises"
    home.mkdir(parents=True)
    repository.write(text)
    build(repository.root)
    found = json.loads((home / "outline.json").read_bytes())
    assert found == {
        "01_double": {"title": "Doubling", "minutes": 15, "points": {"double": 3}, "questions": {"why-two": 1.5}}
    }
