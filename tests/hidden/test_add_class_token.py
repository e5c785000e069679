"""Hidden checks of ``add_class_token``."""

import pytest
import torch

from exercise_kit.engine.compare import close, expect_equal, shape
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_left_alone,
    expect_result_of_its_own,
    expect_value_error,
)

AXES = ("image", "token", "dimension")
LOOK = "Which token stands there, and which row of positions meets it?"
NAMES = ("tokens", "class token", "positions")


def _draw(probe, batch, num_patches, embed_dim):
    """(tokens, class_token, positions), all of order 1."""
    sizes = (batch, num_patches, embed_dim), (1, 1, embed_dim), (1, 1 + num_patches, embed_dim)
    return tuple(probe.normal(*each) for each in sizes)


def _expect_right(student, reference, inputs, described="tokens", describe=None, look=LOOK):
    name = f"add_class_token of {described} {shape(inputs[0])}"
    expect_equal(student(*inputs), reference.add_class_token(*inputs), name, AXES, describe, look)


def _first_wrong(actual, expected):
    return tuple(int(index) for index in (~actual.isclose(expected, atol=1e-5)).any(2).nonzero()[0])


@pytest.mark.exercise("add_class_token", points=0.9)
def test_the_class_token_stands_first(student, reference, probe):
    """Token 0 of every image is the class token, and the patches follow in their order."""
    batch, num_patches, embed_dim = probe.sizes(3)
    tokens, class_token, positions = _draw(probe, batch, num_patches, embed_dim)

    def describe(actual, expected):
        image, token = _first_wrong(actual, expected)
        names = ["the class token", *(f"patch {number}" for number in range(num_patches))]
        found = [name for name, right in zip(names, expected[image], strict=True) if close(actual[image, token], right)]
        return f"token {token} of image {image} is {found[0]} (all positions are 0 here)", names[token]

    look = "Which token should the model find at index 0?"
    inputs = tokens, class_token, torch.zeros_like(positions)
    _expect_right(student, reference, inputs, "tokens", describe, look)


@pytest.mark.exercise("add_class_token", points=0.9)
def test_every_token_gets_its_own_position(student, reference, probe):
    """Row 0 of positions is added to the class token, row 1 to the first patch, and so on, in every image."""
    batch, num_patches, embed_dim = probe.sizes(3)
    inputs = tokens, class_token, positions = _draw(probe, batch, num_patches, embed_dim)
    bare = torch.cat([class_token.repeat(batch, 1, 1), tokens], dim=1)

    def describe(actual, expected):
        image, token = _first_wrong(actual, expected)
        added = (actual - bare)[image, token]
        rows = [row for row in range(num_patches + 1) if close(added, positions[0, row])]
        return f"row {rows[0]} of positions was added to token {token} of image {image}", f"row {token}"

    _expect_right(student, reference, inputs, "tokens", describe, "Whose position is row 0, and whose is row 1?")


@pytest.mark.exercise("add_class_token", points=0.5)
def test_sizes_of_any_kind_are_right(student, reference, probe):
    """One image or many, one token or many, one dimension or many, equal numbers of all three: all come out right."""
    batch, num_patches = probe.sizes(2, low=4)
    long = probe.choice((11, 17, 19))
    for sizes in ((1, num_patches, long), (batch, 1, 2), (batch, long, 1), (batch, batch, batch)):
        _expect_right(student, reference, _draw(probe, *sizes))


@pytest.mark.exercise("add_class_token", points=0.5)
def test_everything_can_be_learned(student, reference, probe):
    """The right gradients reach the tokens, the class token and the positions."""
    inputs = _draw(probe, *probe.sizes(3))
    expect_input_gradients(student, inputs, NAMES, reference.add_class_token, AXES)


@pytest.mark.exercise("add_class_token", points=0.25)
def test_dtype_and_memory_layout_do_not_matter(student, reference, probe):
    """Double and integer tokens keep their dtype, and tokens that do not lie in order in memory are read right."""
    batch, num_patches, embed_dim = probe.sizes(3)
    _, class_token, positions = (each.double() for each in _draw(probe, batch, num_patches, embed_dim))
    turned = probe.normal(embed_dim, num_patches, batch, dtype=torch.float64).permute(2, 1, 0)
    _expect_right(student, reference, (turned, class_token, positions), "double tokens with permuted axes")
    one = probe.normal(1, num_patches, embed_dim).expand(batch, -1, -1)
    turned = positions.float().mT.contiguous().mT
    _expect_right(student, reference, (one, class_token.float(), turned), "equal images' tokens")
    integers = tuple((100 * each).long() for each in _draw(probe, batch, num_patches, embed_dim))
    _expect_right(student, reference, integers, "integer tokens")


@pytest.mark.exercise("add_class_token", points=0.15)
def test_every_call_stands_alone(student, reference, probe, device):
    """Every call answers for what it is given, on its device, and leaves all three inputs as they were."""
    sizes = probe.sizes(3)
    for held in (sizes[0], sizes[0], 1):
        _expect_right(student, reference, tuple(each.to(device) for each in _draw(probe, held, *sizes[1:])))
    expect_left_alone(student)
    first, other = (tuple(each.to(device) for each in _draw(probe, *sizes)) for _ in range(2))
    expect_result_of_its_own(student, first, other)


@pytest.mark.exercise("add_class_token", points=0.45)
def test_a_wrong_number_of_positions_is_refused(student, reference, probe):
    """Where positions does not have 1 + tokens rows, ValueError names the number of its rows."""
    batch, num_patches, embed_dim = probe.sizes(3, low=3)
    tokens, class_token, positions = _draw(probe, batch, num_patches, embed_dim)
    _expect_right(student, reference, (tokens, class_token, positions))
    for rows in (num_patches, num_patches + 2, 1, 2 * num_patches + 2):
        described = f"{rows} row{'s' * (rows > 1)} of positions for 1 + {num_patches} tokens"
        wrong = probe.normal(1, rows, embed_dim)
        expect_value_error(student, (tokens, class_token, wrong), (rows,), described)


@pytest.mark.exercise("add_class_token", points=0.2)
def test_it_computes_where_the_tokens_are(student, reference, probe):
    """The result lies on the device of the tokens."""
    inputs = _draw(probe, *probe.sizes(3))
    _expect_right(student, reference, inputs)
    expect_device_of_input(student, *inputs)


@pytest.mark.exercise("add_class_token", points=0.15)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect_right(student, reference, _draw(probe, *probe.sizes(3)))
    expect_example(student)
