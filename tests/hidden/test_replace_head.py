"""Hidden checks of ``replace_head``. What the new head begins with is its author's choice."""

from dataclasses import replace

import pytest

from exercise_kit.engine.exercise import expect_example
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


@pytest.mark.exercise("replace_head", points=1.0)
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


@pytest.mark.exercise("replace_head", points=0.75)
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
