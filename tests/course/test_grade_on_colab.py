"""docs/grade_on_colab.ipynb: cells without outputs that grade, here on the CPU, and carry the results out."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import nbformat
import pytest

from tests.machine import needs_sandbox

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "grade_on_colab.ipynb"


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


def test_it_is_a_valid_notebook_without_outputs_and_no_lesson(notebook):
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert not any("nbgrader" in cell.metadata for cell in notebook.cells)
    assert "secret" in notebook.cells[0].source
    assert not (ROOT / "notebooks" / NOTEBOOK.name).exists()


@needs_sandbox
@pytest.mark.proof
def test_its_cells_grade_a_zip_of_submissions(notebook, tmp_path, monkeypatch, capsys):
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as archive:
        archive.write(ROOT / "solutions" / "00_start.ipynb", "submitted/ann/00_start/00_start.ipynb")
        archive.write(ROOT / "notebooks" / "00_start.ipynb", "submitted/=ben/00_start/00_start.ipynb")
    course = tmp_path / "course"
    course.mkdir()
    for name in ("vit_course", "exercise_kit", "notebooks", "solutions"):
        (course / name).symlink_to(ROOT / name)
    (course / "tests").mkdir()
    (course / "tests" / "hidden").symlink_to(ROOT / "tests" / "hidden")
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for cell in (each for each in notebook.cells if each.cell_type == "code"):
        exec(compile(cell.source, cell.id, "exec"), space)
        if cell.id == "settings":
            space |= {"COURSE": str(course), "DEVICE": "cpu"}
    found = json.loads((tmp_path / "results" / "results.json").read_text("utf-8"))["submissions"]
    scores = {each["student"]: each["score"] for each in found if each["status"] == "graded"}
    assert scores == {"ann": 2.0, "=ben": 0.0}
    with (tmp_path / "results" / "results.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert rows.keys() == {"ann", "'=ben"}, "no spreadsheet takes a name for a formula"
    assert rows["ann"]["score"] == rows["ann"]["max_score"] == "2.0"
    assert zipfile.is_zipfile(tmp_path / "results.zip")
    assert "the results are in" in capsys.readouterr().out
