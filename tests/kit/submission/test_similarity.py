"""The reference copied, in whatever clothes; and honest work, which is not."""

import importlib
import inspect
import pkgutil

import pytest

from exercise_kit.submission.similarity import is_copied

RENAMED = '''
def patchify(pictures: "Tensor", side: int = 4) -> "Tensor":
    """My own work."""
    import math
    b, c, h, w = pictures.shape  # sizes
    for name, pixels in (("h", h), ("w", w)):
        if pixels % side: raise ValueError(f"bad {name}")
    r: int = h // side
    k = w // side
    p = pictures.reshape(b, c, r,
        side, k, side)
    p = p.permute(0, 2, 4, 1, 3, 5)
    return p.reshape(b, r * k, c * side**2)
'''


def exercise(lessons, name):
    lesson = lessons.of_exercise(name)
    return next(each for each in lesson.exercises if each.name == name), lesson.model_answers[name]


@pytest.mark.parametrize(
    "name",
    [
        *("normalize_images", "patchify", "unpatchify", "conv_from_linear", "sinusoidal_positions"),
        *("resize_positions", "MultiHeadSelfAttention", "is_attention", "VisionTransformer", "count_parameters"),
    ],
)
def test_the_model_answer_is_a_copy_of_itself(lessons, name):
    asked, model = exercise(lessons, name)
    assert is_copied(name, asked.objects, model, model)
    assert (
        is_copied(name, asked.objects, "import math\n" + model.replace("### BEGIN SOLUTION", "x: int = 0"), model)
        is False
    )


def test_the_package_s_own_definition_is_known_without_the_model_answer(lessons):
    from vit_course import patches

    assert is_copied("patchify", ("patchify",), inspect.getsource(patches.patchify), None)


@pytest.mark.parametrize("name", ["scaled_dot_product_attention", "split_heads", "Mlp", "EncoderBlock", "fix_patchify"])
def test_short_and_prescribed_answers_are_never_flagged(lessons, name):
    asked, model = exercise(lessons, name)
    assert not is_copied(name, asked.objects, model, model)


def test_other_names_layout_annotations_and_imports_do_not_hide_a_copy(lessons):
    asked, model = exercise(lessons, "unpatchify")
    names = {"batch": "b", "tokens": "n", "patches": "cut", "image_size": "hw", "rows": "r", "columns": "k"}
    for mine, yours in names.items():
        model_renamed = model.replace(mine, yours)
    assert is_copied("unpatchify", asked.objects, "import os, sys\n\n" + model_renamed, model)


def test_right_variants_are_no_copies(lessons):
    import tests.hidden.variants as variants

    checked = 0
    for module in pkgutil.iter_modules(variants.__path__):
        holder = importlib.import_module(f"tests.hidden.variants.{module.name}")
        for each in vars(holder).values():
            if getattr(each, "__module__", "") != holder.__name__ or not callable(each):
                continue
            for lesson in lessons:
                for asked in lesson.exercises:
                    source = inspect.getsource(each)
                    model = lesson.model_answers.get(asked.name)  # an exercise that asks for a file has none
                    assert not is_copied(asked.name, asked.objects, source, model), each
                    checked += 1
    assert checked > 500


@pytest.mark.parametrize("source", ["", "def patchify(:", "x = 1", "class A: pass"])
def test_what_holds_no_function_is_no_copy(source):
    assert not is_copied("patchify", ("patchify",), source, source)


@pytest.mark.parametrize(
    "body",
    ["x = a" + ".b" * 900, "x = 0x" + "f" * 6000, "x = " + "-" * 2000 + "1", "\n    ".join(["x = 1"] * 5000)],
    ids=["attributes", "digits", "signs", "lines"],
)
def test_what_no_person_writes_is_no_copy_and_no_trouble(body):
    assert not is_copied("patchify", ("patchify",), f"def patchify(a):\n    {body}\n", None)


def test_functions_in_functions_are_looked_at_once():
    nested = "".join(f"{' ' * depth}def f{depth}(x):\n" for depth in range(90)) + " " * 90 + "return x\n"
    assert not is_copied("patchify", ("patchify",), nested, None)
