"""Hidden checks of ``replace_head``. Which numbers the new head begins with is chance; how they are spread is not."""

from dataclasses import replace

import pytest

from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_one_device
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l05_vit.vision_transformer.claims import TALL_MODEL, WIDE_MODEL
from vit_course.exercises.l09_fine_tuning.replace_head.claims import (
    FROZEN,
    OLD_HEAD,
    expect_backbone,
    expect_dtype,
    expect_fresh_head,
    expect_frozen,
    expect_head,
    expect_left_alone,
    expect_own_memory,
    fields_of,
    notes_of,
)


def _config(probe):
    """A model of any width and number of classes."""
    embed_dim = 2 * (4 + int(probe.integers(1, high=5)))
    chosen = (WIDE_MODEL, TALL_MODEL)[int(probe.integers(1, high=2))]
    return replace(chosen, embed_dim=embed_dim, num_heads=2, num_classes=4 + int(probe.integers(1, high=6)))


def _classes(probe, config):
    return config.num_classes + 1 + int(probe.integers(1, high=9))


def _expect_right_head(student, probe, config):
    """A head of the right sizes that starts afresh, on the model's own backbone: what every other check is about."""
    expect_head(student, notes_of(student, probe, config, num_classes := _classes(probe, config)), config, num_classes)
    expect_backbone(student, probe, config, num_classes)


@pytest.mark.exercise("replace_head", points=0.75)
def test_the_head_has_the_new_sizes(student, probe):
    """The head is an nn.Linear from embed_dim to num_classes with a bias, on the backbone that was given."""
    for _ in range(2):
        _expect_right_head(student, probe, _config(probe))


@pytest.mark.exercise("replace_head", points=0.5)
def test_the_backbone_keeps_what_it_has_learned(student, probe):
    """All parameters except the head's keep their numbers."""
    config = _config(probe)
    _expect_right_head(student, probe, config)
    expect_backbone(student, probe, config, _classes(probe, config))


@pytest.mark.exercise("replace_head", points=0.5)
def test_the_head_starts_afresh(student, probe):
    """No row of the new head is a row of the old one."""
    config = _config(probe)
    _expect_right_head(student, probe, config)
    expect_fresh_head(student, probe, config)


@pytest.mark.exercise("replace_head", points=0.5)
def test_the_given_model_is_left_alone(student, probe):
    """The given model is the same as before, in either mode."""
    config = _config(probe)
    _expect_right_head(student, probe, config)
    expect_left_alone(student, probe, config, _classes(probe, config))


@pytest.mark.exercise("replace_head", points=0.5)
def test_the_two_share_no_memory(student, probe):
    """The copy's parameters are its own."""
    config = _config(probe)
    _expect_right_head(student, probe, config)
    expect_own_memory(student, probe, config, _classes(probe, config))


@pytest.mark.exercise("replace_head", points=0.25)
def test_what_learns_goes_on_learning(student, probe):
    """What is frozen in the model is frozen in the copy, and all else learns, even a new head for a frozen one."""
    config = _config(probe)
    _expect_right_head(student, probe, config)
    for frozen in ((), FROZEN, OLD_HEAD):
        expect_frozen(student, probe, config, _classes(probe, config), frozen)


@pytest.mark.exercise("replace_head", points=0.15)
def test_the_head_has_the_models_dtype(student, probe):
    """In a float64 model the new head is float64."""
    config = _config(probe)
    _expect_right_head(student, probe, config)
    expect_dtype(student, probe, config, _classes(probe, config))


@pytest.mark.exercise("replace_head", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and another model gets its head."""
    _expect_right_head(student, probe, _config(probe))
    expect_example(student)


@pytest.mark.exercise("replace_head", points=0.5)
def test_the_head_starts_as_pytorch_starts_one(student, probe):
    """The new head's numbers are as PyTorch starts those of a Linear: evenly spread up to 1 / √embed_dim."""
    config = _config(probe)
    _expect_right_head(student, probe, config)
    head = notes_of(student, probe, config, 128)["head"]
    bound = config.embed_dim**-0.5
    # 1280 numbers and more, or 128: evenly spread from -bound to bound, half of them are within half of it
    for name, least in (("weight", 0.4), ("bias", 0.25)):
        numbers = head[name].double().abs() / bound
        share, most = float((numbers < 0.5).double().mean()), float(numbers.max())
        as_usual = least < share < 1 - least and most <= 1 + 1e-6
        student.record.append((name, as_usual, most == 0))
        if not as_usual:
            what = "is all zeros" if most == 0 else f"goes up to {most * bound:.3g}, {share:.0%} below {bound / 2:.3g}"
            wanted = f"as a new nn.Linear has them: evenly spread from {-bound:.3g} to {bound:.3g}"
            look = "What does nn.Linear do with its numbers, and who touches them after it?"
            raise Failure(f"the {name} of the new head {what}", wanted, look)


@pytest.mark.exercise("replace_head", points=0.25)
def test_the_copy_is_of_the_models_class_and_device(student, probe):
    """What comes back is a model of the same class, whose new head has a bias even where the old one had none, and is
    where the model is."""
    config = _config(probe)
    _expect_right_head(student, probe, config)
    notes = notes_of(student, probe, config, num_classes := _classes(probe, config), "same class", bias=False)
    if not notes["same class"]:
        look = "What does copy.deepcopy give for an object of a class?"
        raise Failure("what comes back is of another class than the model", "a model of the same class", look)
    expect_head(student, notes, config, num_classes)
    fields = fields_of(probe, config)
    expect_one_device(student, student.run_fixture("rehead_elsewhere", num_classes=num_classes, **fields))
