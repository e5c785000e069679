"""The worked examples that are checks are those of the docstrings, and another result is reported with them."""

import ast
import doctest
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from exercise_kit.engine.examples import EXAMPLES, expect_docstring_example
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from exercise_kit.hidden_checks.checks import make_reference_student
from vit_course.exercises.catalog import EXERCISES

SOLUTIONS = Path(__file__).parents[2] / "solutions"
CELL = re.compile(r'^# %% exercise="\w+"\n(.*?)(?=^# %%)', re.DOTALL | re.MULTILINE)


def _parse_doctest(text):
    """The statements, however their lines are broken, and what they print."""
    examples = doctest.DocTestParser().get_examples(text)
    return [(ast.unparse(ast.parse(each.source)), each.want) for each in examples]


def _read_lesson_doctests():
    """The doctest of every function and class in an exercise's cell, by its name."""
    cells = (cell for path in sorted(SOLUTIONS.glob("*.py")) for cell in CELL.findall(path.read_text("utf-8")))
    nodes = (
        node for cell in cells for node in ast.parse(cell).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    return {node.name: examples for node in nodes if (examples := _parse_doctest(ast.get_docstring(node) or ""))}


def test_the_examples_are_those_of_the_lessons():
    lessons = _read_lesson_doctests()
    # a class's own exercises bring examples of their own into the process that imports them
    ours = {name for each in EXERCISES.values() for name in each.objects} & EXAMPLES.keys()
    assert {name: _parse_doctest(EXAMPLES[name]) for name in ours} == {name: lessons[name] for name in ours}


def test_a_whole_number_and_a_number_of_numpy_are_numbers_too():
    right = make_reference_student("warmup_cosine")
    expect_docstring_example(Student({"warmup_cosine": lambda *steps: np.float64(right(*steps))}))
    expect_docstring_example(
        Student({"warmup_cosine": lambda *steps: right(*steps) if right(*steps) % 1 else int(right(*steps))})
    )
    with pytest.raises(Failure, match=re.escape("gave `[0, 0,")):
        expect_docstring_example(Student({"warmup_cosine": lambda *_: 0}))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda images, patch_size: images, "gave `[[[0, 1, 2, 3],"),
        (lambda images, patch_size: images.reshape(1, 4, 4).float(), "gave `[[0.0, 1.0,"),
        (lambda images, patch_size: None, "raised TypeError"),
    ],
)
def test_another_result_is_reported_with_the_example(answer, words):
    with pytest.raises(Failure, match=re.escape(words)):
        expect_docstring_example(Student({"patchify": answer}))


def test_a_result_of_several_lines_is_reported_whole():
    with pytest.raises(Failure, match=re.escape("gave `tensor([[[1., 0.], [0., 1.]]])`")):
        expect_docstring_example(Student({"attention_rollout": lambda weights: torch.eye(2)[None]}))
