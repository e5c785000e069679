from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

from exercise_kit.conventions import BEGIN_SOLUTION, END_SOLUTION, RUBRIC
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions

ROOT = Path(__file__).parents[3]
LESSON, EXERCISE, QUESTION = "00_start", "normalize_images", "loss-proves-little"


@pytest.fixture
def class_dir(tmp_path):
    for step, home in (("source", "solutions"), ("release", "notebooks")):
        (tmp_path / "a class" / step / LESSON).mkdir(parents=True)
        shutil.copy(ROOT / home / f"{LESSON}.ipynb", tmp_path / "a class" / step / LESSON)
    return tmp_path / "a class"


def read_sources(path):
    return [each.source for each in nbformat.read(path, as_version=4).cells]


def test_model_answers_come_without_markers_and_rubric(class_dir):
    answers = read_model_answers(class_dir, LESSON)
    assert answers.keys() == {EXERCISE, QUESTION}
    assert not [word for word in (BEGIN_SOLUTION, END_SOLUTION, RUBRIC) if word in "".join(answers.values())]


def test_named_cells_are_filled_and_the_others_stay_as_released(class_dir):
    written = write_submissions(class_dir, LESSON, {"ada": {EXERCISE: "normalize_images = abs"}, "dan": {}})
    assert written == {
        student: class_dir / "submitted" / student / LESSON / f"{LESSON}.ipynb" for student in ("ada", "dan")
    }
    released = read_sources(class_dir / "release" / LESSON / f"{LESSON}.ipynb")
    assert read_sources(written["dan"]) == released
    filled = zip(read_sources(written["ada"]), released, strict=True)
    assert [mine for mine, theirs in filled if mine != theirs] == ["normalize_images = abs"]


def test_an_unknown_name_is_refused_with_the_known_ones(class_dir):
    known = f"{LESSON} has no exercise or question 'normalise'; it has {EXERCISE}, {QUESTION}"
    with pytest.raises(ValueError, match=known):
        write_submissions(class_dir, LESSON, {"ada": {"normalise": ""}})
