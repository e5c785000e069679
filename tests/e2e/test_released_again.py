"""A lesson changed after students have handed it in: by what nbgrader can do, and by what it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.e2e.commands import ROOT, run_nbgrader, run_vit_course
from tests.journeys.graded_class import GradedClass, read_table
from tests.machine import needs_sandbox
from tests.outline import POINTS

pytestmark = [pytest.mark.proof, needs_sandbox]

LESSON, CHECK, QUESTION = "00_start", "check-normalize_images", "loss-proves-little"
ALL = "{0:g} of {0:g}".format(sum(POINTS[LESSON].values()))
AGAIN = f"nbgrader generate_assignment {LESSON} --force"


def run_build(folder: Path, settings: str) -> str:
    """Return what `vit-course build` says in a class with these settings."""
    (folder / "class.toml").write_text(settings)
    return run_vit_course("build", cwd=folder).stdout


@pytest.fixture(scope="module")
def class_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = new_class(tmp_path_factory.mktemp("again") / "class", ROOT).path
    run_nbgrader(folder, "generate_assignment", LESSON)
    right = read_model_answers(folder, LESSON)
    written = write_submissions(folder, LESSON, {"ada": right, "ben": {}, "eve": right})
    edited = written["eve"].read_text("utf-8").replace('check(\\"normalize_images\\"', 'chek(\\"normalize_images\\"')
    written["eve"].write_text(edited, "utf-8")
    table = read_table(run_nbgrader(folder, "autograde", LESSON))
    assert table["ada"] == ALL
    assert table["eve"].startswith(f"{ALL} [test-cell-edited]")
    return folder


def test_points_changed_after_release_count_and_flag_nobody(class_folder: Path) -> None:
    said = run_build(class_folder, f"[points]\nnormalize_images = 4\n{QUESTION} = 2\n")
    assert f"{LESSON} was released as it was before. Next: {AGAIN}; then nbgrader autograde {LESSON}" in said
    run_nbgrader(class_folder, *AGAIN.split()[1:])
    table = read_table(run_nbgrader(class_folder, "autograde", LESSON))
    assert (table["ada"], table["ben"]) == (
        "4 of 4 its points are others now: graded again",
        "0 of 4 its points are others now: graded again",
    )
    assert "[test-cell-edited]" in table["eve"], (
        "a check that was changed is compared with the release that it came from"
    )
    graded = GradedClass(class_folder, LESSON)
    question = graded.read_auto_scores("ben")[QUESTION], graded.read_max_scores()[QUESTION]
    assert question == (0.0, 2.0), "left as it was released, of that release"


def test_a_cell_that_goes_is_refused_and_nothing_is_removed(class_folder: Path) -> None:
    released = class_folder / "release" / LESSON / f"{LESSON}.ipynb"
    before = released.read_bytes()
    refusal = f"nbgrader can neither add nor remove cells of {LESSON}, because students have handed it in"
    assert refusal in run_build(class_folder, f'leave_out = ["{QUESTION}"]\n')
    log = run_nbgrader(class_folder, *AGAIN.split()[1:], status=1)
    assert f"{refusal} (without {QUESTION})" in log
    assert "Traceback" not in log
    assert released.read_bytes() == before


def test_the_way_round_works_as_it_is_written(class_folder: Path) -> None:
    run_nbgrader(class_folder, "db", "assignment", "remove", LESSON, "--force")
    run_nbgrader(class_folder, *AGAIN.split()[1:])
    table = read_table(run_nbgrader(class_folder, "autograde", LESSON))
    assert table["ada"].startswith(ALL)
    assert table["3"].startswith("graded, 0 not graded")
