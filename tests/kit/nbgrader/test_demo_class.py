from __future__ import annotations

import nbformat
import pytest

from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions

LESSON = "01_double"


def make_marked_cell(kind, grade_id, source, *, solution):
    made = nbformat.v4.new_code_cell(source) if kind == "code" else nbformat.v4.new_markdown_cell(source)
    made.metadata["nbgrader"] = {"grade_id": grade_id, "solution": solution}
    return made


@pytest.fixture
def class_dir(tmp_path):
    answer = "def double(n):\n    ### BEGIN SOLUTION\n    return 2 * n\n    ### END SOLUTION"
    written = "Why?\n\n### BEGIN SOLUTION\nA pair.\n\n**Rubric.** All for the pair.\n### END SOLUTION"
    stub = "def double(n):\n    raise NotImplementedError"
    for step, code, text in (("source", answer, written), ("release", stub, "Why?\n\n*Your answer here.*")):
        cells = [
            nbformat.v4.new_markdown_cell("# Title"),
            make_marked_cell("code", "double", code, solution=True),
            make_marked_cell("code", "check-double", 'check("double", double)', solution=False),
            make_marked_cell("markdown", "why", text, solution=True),
        ]
        folder = tmp_path / "a class" / step / LESSON
        folder.mkdir(parents=True)
        nbformat.write(nbformat.v4.new_notebook(cells=cells), folder / f"{LESSON}.ipynb")
    return tmp_path / "a class"


def read_sources(path):
    return [each.source for each in nbformat.read(path, as_version=4).cells]


def test_model_answers_come_without_markers_and_rubric(class_dir):
    assert read_model_answers(class_dir, LESSON) == {
        "double": "def double(n):\n    return 2 * n",
        "why": "Why?\n\nA pair.",
    }


def test_named_cells_are_filled_and_the_others_stay_as_released(class_dir):
    written = write_submissions(class_dir, LESSON, {"ada": {"double": "double = 2 .__mul__"}, "dan": {}})
    assert written == {
        student: class_dir / "submitted" / student / LESSON / f"{LESSON}.ipynb" for student in ("ada", "dan")
    }
    released = read_sources(class_dir / "release" / LESSON / f"{LESSON}.ipynb")
    assert read_sources(written["dan"]) == released
    assert read_sources(written["ada"]) == [released[0], "double = 2 .__mul__", *released[2:]]


def test_an_unknown_name_is_refused_with_the_known_ones(class_dir):
    with pytest.raises(ValueError, match="01_double has no exercise or question 'duoble'; it has double, why"):
        write_submissions(class_dir, LESSON, {"ada": {"duoble": ""}})
