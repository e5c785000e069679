"""Hidden checks of ``fine_tuning_groups``: models of other sizes, and other rates."""

import pytest

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.l06_training.parameter_groups.claims import VIT
from vit_course.exercises.l09_fine_tuning.fine_tuning_groups.claims import (
    FROZEN,
    HEAD_FIRST,
    MANY_HEADS,
    expect_each_once,
    expect_order,
    expect_rates,
    expect_two_groups,
)


def _rates(probe):
    """Two rates, the head's the larger one."""
    low = (1 + int(probe.integers(1, high=9))) / 10_000
    return low, low * (3 + int(probe.integers(1, high=7)))


def _second_block(parts):
    """The same model with a block more."""
    return parts | {name.replace("blocks.0", "blocks.1"): made for name, made in parts.items() if "blocks.0" in name}


@pytest.mark.exercise("fine_tuning_groups", points=1.25)
def test_the_head_has_its_own_rate(student, probe):
    """The head's parameters get head_lr, and all others backbone_lr."""
    expect_rates(student, _second_block(VIT), _rates(probe))


@pytest.mark.exercise("fine_tuning_groups", points=0.5)
def test_every_parameter_is_in_one_group(student, probe):
    """Every parameter is in one group, once, frozen or not, and the params are lists."""
    expect_rates(student, VIT, _rates(probe), frozen=FROZEN)
    expect_two_groups(student, VIT)
    expect_each_once(student, _second_block(VIT))


@pytest.mark.exercise("fine_tuning_groups", points=0.25)
def test_the_backbone_comes_first(student, probe):
    """The backbone is the first group, the head the second."""
    expect_rates(student, VIT, _rates(probe))
    expect_order(student, VIT)


@pytest.mark.exercise("fine_tuning_groups", points=0.75)
def test_other_names_with_head_are_backbone(student, probe):
    """Parameters whose names merely contain the word head belong to the backbone; the head may have several layers."""
    expect_rates(student, _second_block(MANY_HEADS), _rates(probe))
    expect_rates(student, _second_block(HEAD_FIRST), _rates(probe))


@pytest.mark.exercise("fine_tuning_groups", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other models are dealt out too."""
    expect_rates(student, VIT, _rates(probe))
    expect_example(student)
