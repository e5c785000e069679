"""The notebook that nbgrader gets of a submission: the student's cells in their order, under the lesson's marks."""

from __future__ import annotations

import json

import pytest

from exercise_kit.nbgrader.cleaning import PLACE
from exercise_kit.nbgrader.submission_exporter import NOWHERE, build_marked_notebook
from exercise_kit.submission.find import FoundFile

LESSON = "01_patchify"


def list_grade_ids_of_work(work):
    return [cell["metadata"]["nbgrader"]["grade_id"] for cell in work.cells if "nbgrader" in cell["metadata"]]


def mark_cells(work):
    return build_marked_notebook(FoundFile(work.write(), "ada", LESSON), work.lessons)


def list_grade_ids(notebook):
    return [cell.metadata.nbgrader.grade_id for cell in notebook.cells if "nbgrader" in cell.metadata]


@pytest.mark.parametrize("lost", [("metadata",), ("id",), ("metadata", "id")])
def test_marks_come_back_where_a_tool_has_stripped_them(work, lost):
    mine = work(solved=True)
    names, sources = list_grade_ids_of_work(mine), ["".join(cell["source"]) for cell in mine.cells]
    for cell in mine.cells:
        cell.update({"metadata": {}} if "metadata" in lost else {})
        cell.pop("id" if "id" in lost else "", None)
    notebook = mark_cells(mine)
    assert list_grade_ids(notebook) == names
    assert [cell.source for cell in notebook.cells] == sources
    assert [cell.metadata[PLACE] for cell in notebook.cells] == list(range(len(sources)))


@pytest.mark.parametrize("stripped", [False, True])
def test_a_deleted_check_s_mark_goes_to_no_other_check(work, stripped):
    mine = work(solved=True)
    names = list_grade_ids_of_work(mine)
    del mine.cells[mine.place("check-patchify")]
    mine.cell("check-unpatchify")["source"] += "\n# mine"
    for cell in mine.cells if stripped else ():
        cell["metadata"] = {}
        cell.pop("id")
    assert list_grade_ids(mark_cells(mine)) == [name for name in names if name != "check-patchify"]


def test_a_mark_stands_on_the_cell_that_answers(work):
    mine = work(solved=True)
    place, source = mine.place("patchify"), mine.cell("patchify")["source"]
    mine.answer(patchify="# below").add(source, at=place + 1).add("x = 1")
    notebook = mark_cells(mine)
    assert "patchify" not in list_grade_ids(notebook)[: list_grade_ids(notebook).index("setup") + 1]
    assert notebook.cells[place + 1].metadata.nbgrader.grade_id == "patchify"
    assert "nbgrader" not in notebook.cells[place].metadata
    assert notebook.cells[-1].source == "x = 1"


def test_one_cell_that_answers_all_is_named_where_the_others_would_be(work):
    mine = work(solved=True)
    names = [cell["metadata"]["nbgrader"]["grade_id"] for cell in mine.cells if is_answer(cell)]
    whole = "\n\n".join("".join(cell["source"]) for cell in mine.cells if is_answer(cell))
    mine.cells[:] = []
    notebook = mark_cells(mine.add(whole))
    assert list_grade_ids(notebook) == names
    assert [cell.metadata[PLACE] for cell in notebook.cells] == [0, *[NOWHERE] * (len(names) - 1)]
    assert notebook.cells[1].source == f"# {names[1]} is answered in the cell above."


def is_answer(cell):
    mark = cell["metadata"].get("nbgrader", {})
    return cell["cell_type"] == "code" and mark.get("solution")


@pytest.mark.parametrize("content", [b"", b"{", b"\x89PNG", json.dumps({"cells": [{}] * 3000}).encode()])
def test_of_what_cannot_be_read_there_is_no_cell(work, content):
    path = work().write()
    path.write_bytes(content)
    assert build_marked_notebook(FoundFile(path, "ada", LESSON), work().lessons).cells == []


def test_a_forged_mark_is_not_taken_over(work):
    mine = work(solved=True)
    mine.add("1000.0")
    mine.cells[-1]["metadata"] = {"nbgrader": {"grade_id": "bonus", "points": 1000}, PLACE: 3}
    assert set(list_grade_ids(mark_cells(mine))) == set(list_grade_ids_of_work(work(solved=True)))
