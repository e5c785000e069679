"""A class's own exercises: found in its folder, with their answers, and a sentence for each file that is broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from exercise_kit.engine import own_parts
from exercise_kit.engine.class_exercises import find_class_files, set_class_in_use
from exercise_kit.engine.course import course
from exercise_kit.engine.lesson_answers import load_right_objects
from exercise_kit.engine.run import check
from exercise_kit.hidden_checks.checks import gather_right_objects as references_of

pytestmark = pytest.mark.usefixtures("reset_class_in_use")
LESSON = "20_own"
CHECKS = """
from exercise_kit.engine.exercise import Exercise

{name} = Exercise("{name}", "20_own")


@{name}.check
def it_doubles(student, probe):
    '''It doubles.'''
    assert student(2) == 4
"""
TEXT = """
# %% exercise="double"
FACTOR = 2
UNUSED = nothing_of_that_name


def double(number):
    return FACTOR * number


# %% exercise="patchy"
def patchify(images):
    return "the class's own"


print(never_run)
"""


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    for name in ("exercises", "lessons"):
        (tmp_path / name).mkdir()
    (tmp_path / "exercises" / "double.py").write_text(CHECKS.format(name="double"))
    (tmp_path / "lessons" / f"{LESSON}.py").write_text(TEXT)
    return tmp_path


def test_they_stand_behind_those_of_the_course_while_the_class_is_served(class_folder):
    before = list(course().exercises)
    set_class_in_use(class_folder)
    assert list(course().exercises) == [*before, "double"]
    assert LESSON in course().lessons
    assert check("double", lambda number: number * 2).passed
    set_class_in_use(None)
    assert "double" not in course().exercises


def test_an_answer_comes_out_of_the_lesson_and_no_other_line_of_it_is_run(class_folder):
    set_class_in_use(class_folder)
    (double,) = course().references()["double"]
    assert double(4) == 8


def test_a_name_that_the_course_has_too_stays_the_courses_for_its_own_exercises(class_folder):
    text = CHECKS.format(name="patchy").replace('"20_own")', '"20_own", objects=("patchify",))')
    (class_folder / "exercises" / "patchy.py").write_text(text)
    set_class_in_use(class_folder)
    assert references_of("patchy").patchify(None) == "the class's own"
    assert references_of("patchify").patchify.__module__ == "vit_course.patches"


def test_parts_that_somebody_has_kept_are_in_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(own_parts, "own", lambda *names: pytest.fail("it was asked for a student's own part"))
    lesson = tmp_path / "20_own.py"
    lesson.write_text("from vit_course import own\npart = own('patchify')\ndef answer():\n    return part\n")
    (answer,) = load_right_objects(lesson, ["answer"], "vit_course")
    assert answer().__module__ == "vit_course.patches"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("double", "\nnothing\n", r"exercises/double.py:2: NameError: name 'nothing' is not defined"),
        ("double", "if True\n", r"exercises/double.py:1: SyntaxError: expected ':'"),
        ("double", "raise SystemExit(3)", r"exercises/double.py:1: SystemExit: 3"),
        ("double", "double = 3", r'it has to define double = Exercise\("double", LESSON\)'),
        ("double", CHECKS.format(name="double").replace("20_own", "own"), "is called NN_topic"),
        (
            "double",
            "from exercise_kit.engine.exercise import Exercise\ndouble = Exercise('double', '20_own')",
            "no public",
        ),
        ("patchify", CHECKS.format(name="patchify"), "the course has an exercise called 'patchify'"),
    ],
    ids=["name", "syntax", "exit", "no exercise", "lesson", "no check", "clash"],
)
def test_a_file_that_cannot_be_used_is_a_sentence_and_spoils_no_other(class_folder, file, text, message):
    (class_folder / "exercises" / "third.py").write_text(CHECKS.format(name="third"))
    (class_folder / "exercises" / f"{file}.py").write_text(text)
    set_class_in_use(class_folder)
    own = course().own
    assert list(own.problems) == [file]
    (words,) = own.problems.values()
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(words)
    assert course().exercises["third"].checks
    assert course().exercises["patchify"].lesson == "01_patchify"
    if file == "double":
        assert "cannot be checked until its author has repaired it" in str(check("double", abs))


def test_a_variant_adds_to_itself_alone_and_keeps_what_is_forbidden(class_folder):
    patchify = course().exercises["patchify"]
    known = len(patchify.checks)
    (class_folder / "exercises" / "tiles.py").write_text(
        "from vit_course.exercises.l01_patchify.patchify.claims import patchify as original\n"
        "tiles = original.variant('tiles', '20_own')\n"
        "@tiles.check\ndef more(student, probe):\n    '''More.'''\n"
    )
    set_class_in_use(class_folder)
    tiles = course().exercises["tiles"]
    assert (len(tiles.checks), len(patchify.checks)) == (known + 1, known)
    assert tiles.objects == ("patchify",)
    assert course().rules.get("tiles") == course().rules.get("patchify")


def test_its_stats_change_with_exercises_and_lessons_and_a_class_without_has_none(class_folder, tmp_path):
    before = find_class_files(class_folder)
    (class_folder / "lessons" / f"{LESSON}.py").write_text(TEXT + "\n")
    assert find_class_files(class_folder) != before
    assert find_class_files(tmp_path / "nowhere").digest == ""
