"""`nbgrader validate`, as a student's button runs it: the words of `check`, and no training on the way."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from exercise_kit.nbgrader.class_folder import new_class
from tests.e2e.commands import ROOT, run_nbgrader
from tests.e2e.submissions import find_cell, make_code_cell
from tests.outline import POINTS

pytestmark = pytest.mark.proof
LESSON = "00_start"


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_class(tmp_path_factory.mktemp("validate") / "class", ROOT).path


def test_what_is_not_written_is_called_so_and_no_experiment_runs(class_folder: Path) -> None:
    notebook = json.loads((ROOT / "notebooks" / f"{LESSON}.ipynb").read_bytes())
    notebook["cells"].insert(5, make_code_cell("open('ran', 'w')", tags=["experiment"]) | {"id": "ran"})
    mine = class_folder / "mine.ipynb"
    mine.write_text(json.dumps(notebook), encoding="utf-8")
    said = run_nbgrader(class_folder, "validate", str(mine))
    assert "VALIDATION FAILED ON 2 CELL(S)" in " ".join(said.split())
    assert "normalize_images is not written yet" in said
    assert "Partial credit" not in said
    assert "it waits" not in said, "as check says it, in one sentence"
    assert not (class_folder / "ran").exists()


def test_a_wrong_answer_reads_as_check_says_it(class_folder: Path) -> None:
    notebook = json.loads((ROOT / "solutions" / f"{LESSON}.ipynb").read_bytes())
    find_cell(notebook, "normalize_images")["source"] = "def normalize_images(images, mean, std):\n    return images"
    mine = class_folder / "mine.ipynb"
    mine.write_text(json.dumps(notebook), encoding="utf-8")
    said = run_nbgrader(class_folder, "validate", str(mine))
    assert "VALIDATION FAILED ON 1 CELL(S)" in said
    assert re.search(
        rf"normalize_images: \d of \d+ checks pass, [\d.]+ of {POINTS[LESSON]['normalize_images']:g} points\n +✗ fail ",
        said,
    )
    assert "Where to look: " in said


def test_a_right_answer_passes(class_folder: Path) -> None:
    said = run_nbgrader(class_folder, "validate", f"source/{LESSON}/{LESSON}.ipynb")
    assert "Success! Your notebook passes all the tests." in said
