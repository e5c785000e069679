"""`add_class_token`: the class token in front, and the positions added.

The oracle is plain addition, row by row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from exercise_kit.engine.compare import Describe, are_close, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_inputs_unchanged,
    expect_value_error,
    ignore_wrong_numbers,
)
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from vit_course.exercises.l02_positions import LESSON
from vit_course.exercises.l02_positions.sinusoidal_positions.claims import format_vector

TOKEN_AXES = ("image", "token", "dimension")
LOOK = "Which token stands there, and which row of positions meets it?"


add_class_token = Exercise("add_class_token", LESSON)


def draw_inputs(probe: Probe, *sizes: int) -> tuple[Tensor, ...]:
    """Tokens, class token and positions for the student, all of order 1; ``sizes``: batch, num_patches, embed_dim."""
    batch, num_patches, embed_dim = sizes or probe.sizes(3, shown=(3, 5, 8))
    return (
        probe.normal(batch, num_patches, embed_dim),
        probe.normal(1, 1, embed_dim),
        probe.normal(1, 1 + num_patches, embed_dim),
    )


def compute_expected_tokens(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The oracle of add_class_token, row by row."""
    images = [[class_token[0, 0], *image] for image in tokens]
    return torch.stack([torch.stack([t + p for t, p in zip(image, positions[0], strict=True)]) for image in images])


def expect_right_tokens(
    student: Student,
    inputs: tuple[Tensor, ...],
    name: str = "add_class_token",
    describe: Describe | None = None,
    look: str = LOOK,
) -> None:
    """Every token with its position, in every image."""
    expect_equal(student(*inputs), compute_expected_tokens(*inputs), name, TOKEN_AXES, describe, look)


def _find_first_wrong_token(actual: Tensor, expected: Tensor) -> tuple[int, ...]:
    """The first image and token where two results differ."""
    return tuple(int(index) for index in (~actual.isclose(expected, atol=1e-5)).any(2).nonzero()[0])


@add_class_token.check(guard=True)
def there_is_one_token_more(student: Student, probe: Probe) -> None:
    """Every image has one token more than before: (batch, 1 + tokens, embed_dim)."""
    for batch, num_patches in ((2, 6), (3, 5)):
        name = f"add_class_token of {batch} images with {num_patches} tokens"
        result = student(*draw_inputs(probe, batch, num_patches, 8))
        expect_tensor(result, (batch, 1 + num_patches, 8), name)


@add_class_token.check(needs=there_is_one_token_more, points=0.9)
def the_class_token_stands_first(student: Student, probe: Probe) -> None:
    """Token 0 of every image is the class token, and the patches follow in their order."""
    tokens, class_token, positions = draw_inputs(probe)
    names = ["the class token", *(f"patch {number}" for number in range(tokens.shape[1]))]

    def describe_first_wrong_token(actual: Tensor, expected: Tensor) -> tuple[str, str]:
        image, token = _find_first_wrong_token(actual, expected)
        alike = [
            name for name, right in zip(names, expected[image], strict=True) if are_close(actual[image, token], right)
        ]
        seen = alike[0] if alike else format_vector(actual[image, token, :3]) + ", ..."
        there = names[token] if alike else f"{names[token]}: {format_vector(expected[image, token, :3])}, ..."
        return f"token {token} of image {image} is {seen} (all positions are zero in this check)", there

    inputs, look = (tokens, class_token, torch.zeros_like(positions)), "Which token should the model find at index 0?"
    expect_right_tokens(student, inputs, describe=describe_first_wrong_token, look=look)


@add_class_token.check(needs=there_is_one_token_more, points=0.9)
def every_token_gets_its_own_position(student: Student, probe: Probe) -> None:
    """Row 0 of positions is added to the class token, row 1 to the first patch, and so on, in every image."""
    inputs = tokens, class_token, positions = draw_inputs(probe)
    joined = compute_expected_tokens(tokens, class_token, torch.zeros_like(positions))

    def describe_wrongly_added_position(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        image, token = _find_first_wrong_token(actual, expected)
        added = (actual - joined)[image, token]
        if are_close(added, torch.zeros_like(added)):
            return f"nothing was added to token {token} of image {image}", f"row {token} of positions"
        rows = [row for row, position in enumerate(positions[0]) if are_close(added, position)]
        if not rows:
            return None
        if are_close(actual - joined, positions[:, rows[0] : rows[0] + 1].expand_as(joined)):
            return f"row {rows[0]} of positions was added to every token", "to each token the row of its own place"
        return f"row {rows[0]} of positions was added to token {token} of image {image}", f"row {token}"

    expect_right_tokens(
        student, inputs, describe=describe_wrongly_added_position, look="Which row of positions belongs to that token?"
    )
    tokens, class_token, positions = inputs = tuple(probe.normal(*each.shape) for each in inputs)
    joined = compute_expected_tokens(tokens, class_token, torch.zeros_like(positions))
    look = "Other numbers of the same sizes came after the first. What of those is still there?"
    expect_right_tokens(student, inputs, describe=describe_wrongly_added_position, look=look)


@add_class_token.check(needs=every_token_gets_its_own_position, worth=0.5, guard=True)
def one_image_is_a_batch_too(student: Student, probe: Probe) -> None:
    """A batch of one image keeps its three axes."""
    expect_right_tokens(student, draw_inputs(probe, 1, 6, 8), "add_class_token of one image")


@add_class_token.check(needs=every_token_gets_its_own_position, points=0.5, first=every_token_gets_its_own_position)
def everything_can_be_learned(student: Student, probe: Probe) -> None:
    """The right gradients find their way to the tokens, to the class token and to the positions."""
    names = ("tokens", "class token", "positions")
    expect_input_gradients(student, draw_inputs(probe), names, compute_expected_tokens, TOKEN_AXES)


@add_class_token.check(needs=every_token_gets_its_own_position, guard=True, points=0.25)
def double_tokens_stay_double(student: Student, probe: Probe) -> None:
    """Float64 tokens stay float64 and integers integers, and tokens not contiguous in memory are read right."""
    tokens, class_token, positions = draw_inputs(probe)
    turned = probe.normal(*tokens.T.shape, dtype=torch.float64).permute(2, 1, 0)
    expect_right_tokens(student, (turned, class_token.double(), positions.double()), "add_class_token in float64")
    turned = positions.mT.contiguous().mT
    expect_right_tokens(student, (tokens[:1].expand_as(tokens), class_token, turned), "add_class_token of equal images")
    integers = tuple((100 * each).long() for each in (tokens, class_token, positions))
    expect_right_tokens(student, integers, "add_class_token of integers")


@add_class_token.check(
    needs=every_token_gets_its_own_position, worth=0.5, guard=True, points=0.2, first=every_token_gets_its_own_position
)
def it_computes_where_the_tokens_are(student: Student, probe: Probe) -> None:
    """The result lies on the device of the tokens."""
    expect_device_of_input(student, *draw_inputs(probe))


@add_class_token.check(needs=there_is_one_token_more, guard=True)
def what_goes_in_is_left_alone(student: Student, probe: Probe) -> None:
    """Tokens, class token and positions are not changed."""
    student(*draw_inputs(probe))
    expect_inputs_unchanged(student)


@add_class_token.check(guard=True, points=0.45, first=ignore_wrong_numbers(every_token_gets_its_own_position))
def a_wrong_number_of_positions_is_refused(student: Student, probe: Probe) -> None:
    """Where positions does not have 1 + tokens rows, ValueError names the number of its rows."""
    tokens, class_token, _ = draw_inputs(probe)
    _, num_patches, embed_dim = tokens.shape
    for rows in (num_patches, 1, num_patches + 2, 2 * num_patches + 2):
        described = f"{rows} row{'s' * (rows > 1)} of positions for 1 + {num_patches} tokens"
        expect_value_error(student, (tokens, class_token, probe.normal(1, rows, embed_dim)), (rows,), described)


add_class_token.example(
    """
>>> tokens, class_token = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[9.0]]])
>>> add_class_token(tokens, class_token, torch.tensor([[[10.0], [20.0], [30.0]]])).tolist()
[[[19.0], [21.0], [32.0]]]
""",
    points=0.15,
    first=every_token_gets_its_own_position,
)


read_mistakes(add_class_token, __name__)
declare_pairs(add_class_token, Edits(quick=True))
