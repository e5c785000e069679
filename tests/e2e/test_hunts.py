"""A submission with bug hunts in it, graded by the real judge: hunting costs nothing, and helps nobody to points."""

from __future__ import annotations

import json

import pytest

from exercise_kit.nbgrader.class_folder import new_class
from tests.e2e.commands import ROOT, run_vit_course
from tests.outline import POINTS
from vit_course.hunts import hunt

LESSON = "01_patchify"
ALL_POINTS = sum(POINTS[LESSON].values())
FROM_A_GROUND = """
from vit_course.hunts import hunt
try:
    from vit_course.exercises.l01_patchify.patchify.program import patchify as mended
    from vit_course.hunts.choose import list_hunting_grounds
except ImportError:
    mended = hunt("patchify", 1).program
fix_patchify = mended
"""


def hunter(cells):
    """Another seed, a look at the symptoms, and the program pasted as it was found."""
    drawn, mended = (next(cell for cell in cells if begin in cell["source"]) for begin in ("SEED = 1", "mended = None"))
    symptoms = cells[cells.index(drawn) + 2]
    assert "suspect(picture" in symptoms["source"]
    drawn["source"] = drawn["source"].replace("SEED = 1", "SEED = 4")
    symptoms["source"] += "\nsuspect(picture, 16), suspect.program(picture, 16)"
    mended["source"] = f"{hunt('patchify', 4).code}\nsuspect.check(suspect_patchify)"


def thief(cells):
    """The bug hunt's exercise, taken from a ground."""
    cell = next(cell for cell in cells if cell["source"].startswith("def fix_patchify"))
    cell["source"] = FROM_A_GROUND


@pytest.fixture
def graded_results(tmp_path):
    """Student → what the judge found."""
    folder = new_class(tmp_path / "a class", ROOT).path
    for student in (hunter, thief):
        notebook = json.loads((ROOT / "solutions" / f"{LESSON}.ipynb").read_bytes())
        for cell in notebook["cells"]:
            cell["source"] = "".join(cell["source"])
        student(notebook["cells"])
        target = folder / "submitted" / student.__name__ / LESSON / f"{LESSON}.ipynb"
        target.parent.mkdir(parents=True)
        target.write_text(json.dumps(notebook), encoding="utf-8")
    done = run_vit_course("grade", "submitted", "--json", "-", cwd=folder)
    return {each["student"]: each for each in json.loads(done.stdout)["submissions"]}


@pytest.mark.proof
def test_hunting_loses_no_point_and_gains_none(graded_results):
    assert (graded_results["hunter"]["status"], graded_results["hunter"]["score"]) == ("graded", ALL_POINTS), (
        graded_results["hunter"]
    )
    assert graded_results["hunter"]["flags"] == [
        "reference-copied"
    ]  # of conv_from_linear, which is the solution's; no hunt has one
    scores = {each["name"]: each["score"] for each in graded_results["thief"]["exercises"]}
    assert scores.pop("fix_patchify") == 0
    assert sum(scores.values()) == ALL_POINTS - POINTS[LESSON]["fix_patchify"]
