"""Hidden checks of ``predict_with_attention``: small models of drawn sizes, wide and tall, against the reference.

In training mode every block of these models is the identity, so whoever asks them in it gets other numbers.
"""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, listed
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_one_device
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import both_tensors
from vit_course.exercises.l05_vit.vision_transformer.claims import parameter_shapes
from vit_course.exercises.l08_inside.predict_with_attention.claims import (
    APART,
    expect_nothing_after_an_error,
    expect_own_modes,
)


def _config(probe, wide, is_row=False):
    """A model of at least two blocks and two heads, its grid wide or tall, or of a single row or column."""
    short, long = sorted(probe.sizes(2, low=2, high=5))
    short = 1 if is_row else short
    patch_size, heads, classes = probe.choice((2, 3)), probe.choice((2, 3)), probe.choice((6, 7, 8, 9))
    rows, columns = (short, long) if wide else (long, short)
    return ViTConfig(
        image_size=(rows * patch_size, columns * patch_size),
        patch_size=patch_size,
        in_channels=probe.choice((1, 2, 4, 5)),
        num_classes=classes,
        embed_dim=heads * probe.choice((3, 4)),
        depth=probe.choice((2, 3)),
        num_heads=heads,
        mlp_ratio=2.0,
    )


def _expect(
    student,
    reference,
    probe,
    look,
    *judged,
    wide=True,
    is_row=False,
    training=False,
    apart=(),
    dtype=torch.float32,
    only=None,
):
    """Fail unless both tensors hold the right numbers; all that was noted."""
    config = _config(probe, wide, is_row)
    weights = {name: each.to(dtype) for name, each in probe.weights(parameter_shapes(config)).items()}
    image = probe.normal(config.in_channels, config.height, config.width, dtype=dtype)
    fields = {"weights": weights, "config": config, "image": image, "training": training, "apart": apart}
    notes = student.run_fixture("predict", "returned", *judged, **fields)
    found = both_tensors(notes["returned"], student.name, "the probabilities", "the map")
    right = Student({"reference": reference.predict_with_attention}).run_fixture("predict", **fields)["returned"]
    rows, columns = config.grid_size
    names = ("the probabilities tensor", f"the map of {rows} rows and {columns} columns")
    for name, here, there, axes in zip(names, found, right, (("class",), ("row", "column")), strict=True):
        if only is None or only in name:
            expect_equal(here, there, name, axes, look=look)
    return notes, found


@pytest.mark.exercise("predict_with_attention", points=0.75)
def test_the_probabilities_are_the_models(student, reference, probe):
    """The first tensor, (num_classes,), is what the softmax makes of the model's logits."""
    for wide in (True, False):
        look = "What does the model give, for how many images, and what makes probabilities of it?"
        _expect(student, reference, probe, look, wide=wide, only="the probabilities")


@pytest.mark.exercise("predict_with_attention", points=1)
def test_the_map_shows_where_the_class_token_looks(student, reference, probe):
    """The second, (rows, columns), is the class token's attention in the last block, mean over heads, summing to 1."""
    for wide, is_row in ((True, False), (False, False), (True, True), (False, True)):
        look = "Which block, which row of the weights, which tokens of it, and in which order do patches stand?"
        _expect(student, reference, probe, look, wide=wide, is_row=is_row, only="the map")


@pytest.mark.exercise("predict_with_attention", points=0.5)
def test_it_asks_in_evaluation_mode(student, reference, probe):
    """A model that comes in training mode gives what it gives in evaluation: its dropout is off."""
    look = "Which call turns dropout off, and do all of your questions come after it?"
    _expect(student, reference, probe, look, training=True)


@pytest.mark.exercise("predict_with_attention", points=0.5)
def test_the_mode_is_put_back(student, reference, probe):
    """The answer is right, and each module is in the mode that it had before, training or evaluation."""
    for training in (True, False):
        look = "What do you know about the model's mode before you change it?"
        notes, _ = _expect(student, reference, probe, look, "modes", training=training)
        if notes["modes"]:
            was = "training" if training else "evaluation"
            parts = listed([str(each) for each in notes["modes"]], 2)
            raise Failure(f"a model that came in {was} mode is in another mode afterward: {parts}", was, look)
    for training in (True, False):
        notes, _ = _expect(student, reference, probe, look, "modes", training=training, apart=APART)
        expect_own_modes(notes["modes"], training)


@pytest.mark.exercise("predict_with_attention", points=0.25)
def test_nothing_stays_behind(student, reference, probe):
    """The answer is right and keeps no graph; the model has no hook, frozen or changed parameter more than before."""
    look = "What did you register, switch off or write into, and who undoes it?"
    judged = ("hooks", "gradients", "frozen", "changed", "image_changed", "recording")
    notes, found = _expect(student, reference, probe, look, *judged)
    student.record.append(tuple(each.requires_grad for each in found))
    if any(each.requires_grad for each in found):
        raise Failure("a tensor that comes back still knows how it was computed", "tensors without a graph", look)
    for note in ("hooks", "gradients", "frozen", "changed"):
        if notes[note]:
            parts = listed([str(each) for each in notes[note]], 2)
            raise Failure(f"the model is another one afterward, in its {note}: {parts}", "the model as it came", look)
    if notes["image_changed"] or not notes["recording"]:
        seen = "the image has changed" if notes["image_changed"] else "torch records no gradients any more"
        raise Failure(f"{seen} after the call", "everything as before", look)


@pytest.mark.exercise("predict_with_attention", points=0.25)
def test_an_error_leaves_nothing_behind(student, reference, probe):
    """The answer is right, and even if an image of another size stops the model, the model is left as it was."""
    _expect(student, reference, probe, "Which of the model's numbers are they?")
    expect_nothing_after_an_error(student, probe, _config(probe, wide=True))


@pytest.mark.exercise("predict_with_attention", points=0.25)
def test_it_computes_where_the_model_is(student, reference, probe):
    """The answer is right, and a model and an image on another device are used there."""
    _expect(student, reference, probe, "Which of the model's numbers are they?")
    config = _config(probe, wide=True)
    weights = probe.weights(parameter_shapes(config))
    image = probe.normal(config.in_channels, config.height, config.width)
    notes = student.run_fixture("predict_elsewhere", weights=weights, config=config, image=image)
    expect_one_device(student, notes | {"devices": []})  # a result for the eyes may well be on the CPU


@pytest.mark.exercise("predict_with_attention", points=0.25)
def test_a_float64_model_answers_in_float64(student, reference, probe):
    """A float64 model gives float64 probabilities and a float64 map."""
    look = "Which line makes a tensor, of which dtype?"
    _expect(student, reference, probe, look, wide=False, dtype=torch.float64)


@pytest.mark.exercise("predict_with_attention", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect(student, reference, probe, "Which of the model's numbers are they?")
    expect_example(student)
