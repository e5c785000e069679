from __future__ import annotations

import nbformat
import pytest
from nbgrader.api import Gradebook

from vit_course.grading.restore import RestoreCells, find_renamed

LESSON = "01_double"
# what nbgrader notes of a released lesson: an exercise and the cell that checks it
EXERCISE = {"name": "double", "cell_type": "code", "source": "raise NotImplementedError", "locked": False}
CHECK = {"name": "check-double", "cell_type": "code", "source": 'check("double", double)', "locked": True}


def hand_in(folder, *names):
    paths = [folder / "submitted" / "ada" / LESSON / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    return [str(path) for path in paths]


@pytest.mark.parametrize("name", ["01_double (1).ipynb", "01_double-Copy1.ipynb", "ada 01_double.ipynb"])
def test_a_renamed_notebook_gets_its_lesson_s_name_back(tmp_path, name):
    notebooks = hand_in(tmp_path, name)
    find_renamed(notebooks=notebooks, assignment=LESSON, student="*")
    (folder,) = (tmp_path / "submitted" / "ada").iterdir()
    assert [path.name for path in folder.iterdir()] == ["01_double.ipynb"]
    assert notebooks == [str(folder / "01_double.ipynb")]
    assert (folder / "01_double.ipynb").read_text() == name


@pytest.mark.parametrize(
    "names", [["01_double.ipynb"], ["02_triple.ipynb"], ["01_double.ipynb", "01_double (1).ipynb"], []]
)
def test_what_is_in_place_unknown_or_one_of_two_is_left(tmp_path, names):
    notebooks = hand_in(tmp_path, *names)
    find_renamed(notebooks=notebooks, assignment=LESSON, student="*")
    assert notebooks == hand_in(tmp_path, *names)
    assert sorted(path.name for path in tmp_path.rglob("*.ipynb")) == sorted(names)


@pytest.fixture
def resources(tmp_path):
    address = f"sqlite:///{tmp_path}/gradebook.db"
    with Gradebook(address) as gradebook:
        gradebook.add_assignment(LESSON)
        gradebook.add_notebook(LESSON, LESSON)
        gradebook.add_solution_cell("double", LESSON, LESSON)
        gradebook.add_grade_cell("check-double", LESSON, LESSON, max_score=2, cell_type="code")
        for cell in (EXERCISE, CHECK):
            gradebook.add_source_cell(notebook=LESSON, assignment=LESSON, **cell)
    return {"nbgrader": {"db_url": address, "notebook": LESSON, "assignment": LESSON}}


def code(source, **mark):
    return nbformat.v4.new_code_cell(source, metadata={"nbgrader": mark} if mark else {})


def test_a_deleted_check_comes_back_after_its_exercise(resources):
    cells = [code("import torch"), code("double = 2 .__mul__", grade_id="double"), code("double(3)")]
    mended, _ = RestoreCells().preprocess(nbformat.v4.new_notebook(cells=cells), resources)
    assert [cell.source for cell in mended.cells] == [
        "import torch",
        "double = 2 .__mul__",
        CHECK["source"],
        "double(3)",
    ]
    mark = mended.cells[2].metadata.nbgrader
    assert (mark.grade_id, mark.grade, mark.points) == ("check-double", True, 2)


def test_another_notebook_in_the_lesson_s_place_is_refused_in_words(resources):
    other = nbformat.v4.new_notebook(cells=[code("double = 2 .__mul__"), code("1", grade_id="setup")])
    with pytest.raises(ValueError, match=r"no cell of 01_double .*; was another notebook handed in\?"):
        RestoreCells().preprocess(other, resources)
