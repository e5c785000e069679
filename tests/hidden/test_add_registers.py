"""Hidden checks of ``add_registers``."""

import pytest

from exercise_kit.engine.compare import expect_equal, shape
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_left_alone,
    expect_result_of_its_own,
)
from vit_course.exercises.l10_modern.add_registers.claims import AXES, LOOK, drawn, expect_class_token


def _expect_right(student, reference, inputs):
    tokens, registers = inputs
    name = f"add_registers of tokens {shape(tokens)} and registers {shape(registers)}"
    expect_equal(student(*inputs), reference.add_registers(*inputs), name, AXES, look=LOOK)


@pytest.mark.exercise("add_registers", points=0.5)
def test_the_class_token_stays_first(student, reference, probe):
    """Token 0 of every image is the class token, and no token is lost."""
    inputs = drawn(probe, *probe.sizes(4))
    expect_class_token(student, *inputs)
    _expect_right(student, reference, inputs)


@pytest.mark.exercise("add_registers", points=0.75)
def test_registers_come_behind_it_and_patches_last(student, reference, probe):
    """Registers and patches follow in their order, for one image or many, one register or many."""
    batch, num_patches, num_registers = probe.sizes(3, low=3)
    for sizes in (
        (batch, num_patches, num_registers, 3),
        (1, num_patches, 1, 2),
        (batch, 1, num_registers, 1),
        (batch, batch, batch, batch),
    ):
        _expect_right(student, reference, drawn(probe, *sizes))


@pytest.mark.exercise("add_registers", points=0.5)
def test_everything_can_be_learned(student, reference, probe):
    """Tokens and registers get the right gradients."""
    inputs = drawn(probe, *probe.sizes(4))
    expect_input_gradients(student, inputs, ("tokens", "registers"), reference.add_registers, AXES)


@pytest.mark.exercise("add_registers", points=0.1)
def test_dtype_and_layout_do_not_matter(student, reference, probe):
    """Double tokens, and tokens out of order in memory, come out right."""
    tokens, registers = (each.double() for each in drawn(probe, *probe.sizes(4, low=3)))
    _expect_right(student, reference, (tokens, registers))
    turned = probe.normal(*reversed(tokens.shape)).permute(2, 1, 0)
    _expect_right(student, reference, (turned, registers.float()))


@pytest.mark.exercise("add_registers", points=0.05)
def test_every_call_stands_alone(student, reference, probe, device):
    """Every call gives the result for its own inputs, on their device, and does not change them."""
    sizes = probe.sizes(4)
    first, other = (tuple(each.to(device) for each in drawn(probe, *sizes)) for _ in range(2))
    _expect_right(student, reference, first)
    expect_left_alone(student)
    expect_result_of_its_own(student, first, other)


@pytest.mark.exercise("add_registers", points=0.05)
def test_it_computes_where_the_tokens_are(student, reference, probe):
    """The result lies on the device of the tokens."""
    inputs = drawn(probe, *probe.sizes(4))
    _expect_right(student, reference, inputs)
    expect_device_of_input(student, *inputs)


@pytest.mark.exercise("add_registers", points=0.05)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect_right(student, reference, drawn(probe, *probe.sizes(4)))
    expect_example(student)
