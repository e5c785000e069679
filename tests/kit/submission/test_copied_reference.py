"""The reference copied, in whatever clothes; and honest work, which is not."""

import inspect
import re
from dataclasses import replace
from itertools import product

import pytest

from exercise_kit.simulate.modules import load_right_variants
from exercise_kit.submission.copied_reference import describe_copy


def find_exercise_and_lesson(lessons, name):
    lesson = lessons.find_by_exercise(name)
    return next(each for each in lesson.exercises if each.name == name), lesson


def find_copied_words(lessons, name, source=None):
    wanted, lesson = find_exercise_and_lesson(lessons, name)
    return describe_copy(name, wanted.objects, source or lesson.model_answers[name], lesson)


LONG = ("resize_positions", "VisionTransformer", "count_parameters", "is_attention", "evaluate", "rotary_2d")
SAID = r"\w+ has the \d+ statements of the course's own code in their order, \d+ of .*; names and layout were not"


@pytest.mark.parametrize("name", LONG)
def test_the_model_answer_of_a_long_task_is_a_copy_of_itself(lessons, name):
    assert re.match(SAID, find_copied_words(lessons, name))
    model = find_exercise_and_lesson(lessons, name)[1].model_answers[name]
    assert find_copied_words(lessons, name, model.replace("### BEGIN SOLUTION", "x: int = 0")) is None


def test_the_package_s_own_definition_is_known_without_the_model_answer(lessons):
    from vit_course import pretrained

    wanted, lesson = find_exercise_and_lesson(lessons, "resize_positions")
    source = inspect.getsource(pretrained.resize_positions)
    assert describe_copy(wanted.name, wanted.objects, source, replace(lesson, model_answers={}))


SHORT = ("patchify", "unpatchify", "scaled_dot_product_attention", "split_heads", "train_one_epoch", "normalize_images")


@pytest.mark.parametrize("name", [*SHORT, "Mlp", "EncoderBlock", "fix_patchify"])
def test_what_a_task_forces_is_no_copy(lessons, name):
    """Of five lines that do what was asked nobody can say who wrote them, even where they are the reference's own."""
    assert find_copied_words(lessons, name) is None


def test_other_names_layout_annotations_and_imports_do_not_hide_a_copy(lessons):
    model = find_exercise_and_lesson(lessons, "resize_positions")[1].model_answers["resize_positions"]
    renamed = re.sub(r"\b(old|new|rows|columns|grid|positions)\b(?!=)", r"my_\1", model)
    assert renamed != model
    assert find_copied_words(lessons, "resize_positions", "import os, sys\n\n" + renamed)


@pytest.mark.proof
def test_right_variants_are_no_copies(lessons):
    written = {each for variants in load_right_variants().values() for objects in variants for each in objects}
    written = {each for each in written if getattr(each, "__module__", "").endswith(".variants")}
    for lesson, each in product(lessons, written):
        for wanted in lesson.exercises:
            assert describe_copy(wanted.name, wanted.objects, inspect.getsource(each), lesson) is None, each
    assert len(written) > 150


@pytest.mark.parametrize("source", ["", "def patchify(:", "x = 1", "class A: pass"])
def test_what_holds_no_function_is_no_copy(lessons, source):
    assert find_copied_words(lessons, "patchify", source or "\n") is None


@pytest.mark.parametrize(
    "body",
    ["x = a" + ".b" * 900, "x = 0x" + "f" * 6000, "x = " + "-" * 2000 + "1", "\n    ".join(["x = 1"] * 5000)],
    ids=["attributes", "digits", "signs", "lines"],
)
def test_what_no_person_writes_is_no_copy_and_no_trouble(lessons, body):
    assert find_copied_words(lessons, "patchify", f"def patchify(a):\n    {body}\n") is None


def test_functions_in_functions_are_looked_at_once(lessons):
    nested = "".join(f"{' ' * depth}def f{depth}(x):\n" for depth in range(90)) + " " * 90 + "return x\n"
    assert find_copied_words(lessons, "patchify", nested) is None
