from __future__ import annotations

import nbformat

from exercise_kit.nbgrader.cleaning import RestoreCells
from tests.kit.nbgrader.conftest import CHECK, EXERCISE


def make_code_cell(source, **mark):
    return nbformat.v4.new_code_cell(source, metadata={"nbgrader": mark} if mark else {})


def test_a_deleted_check_comes_back_after_its_exercise(nbgrader_resources):
    cells = [
        make_code_cell("import torch"),
        make_code_cell("double = 2 .__mul__", grade_id="double"),
        make_code_cell("double(3)"),
    ]
    mended, _ = RestoreCells().preprocess(nbformat.v4.new_notebook(cells=cells), nbgrader_resources)
    assert [cell.source for cell in mended.cells] == [
        "import torch",
        "double = 2 .__mul__",
        CHECK["source"],
        "double(3)",
    ]
    mark = mended.cells[2].metadata.nbgrader
    assert (mark.grade_id, mark.grade, mark.points) == ("check-double", True, 2)


def test_where_no_mark_is_left_all_cells_come_back_and_one_line_says_so(nbgrader_resources, caplog):
    with caplog.at_level("INFO", "traitlets"):
        mended, _ = RestoreCells().preprocess(
            nbformat.v4.new_notebook(cells=[make_code_cell("x = 1")]), nbgrader_resources
        )
    assert [cell.source for cell in mended.cells] == [EXERCISE["source"], CHECK["source"], "x = 1"]
    said = "put back, for the submission lacked them: 2 marked cells (double, check-double)"
    assert [each.getMessage() for each in caplog.records if "put back" in each.getMessage()] == [said]
