"""`add_class_token`: the class token in front, and the positions added.

The oracle is plain addition, row by row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone, expect_value_error
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions import LESSON
from vit_course.exercises.l02_positions.sinusoidal_positions.claims import vector_text

TOKEN_AXES = ("image", "token", "dimension")


add_class_token = Exercise("add_class_token", LESSON)


def _token_inputs(probe: Probe, batch: int = 3, num_patches: int = 5, embed_dim: int = 8) -> tuple[Tensor, ...]:
    """Tokens, class token and positions for the student, all of order 1."""
    return (
        probe.normal(batch, num_patches, embed_dim),
        probe.normal(1, 1, embed_dim),
        probe.normal(1, 1 + num_patches, embed_dim),
    )


def with_class_token(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The oracle of add_class_token, row by row."""
    images = [[class_token[0, 0], *image] for image in tokens]
    return torch.stack([torch.stack([t + p for t, p in zip(image, positions[0], strict=True)]) for image in images])


@add_class_token.check(guard=True)
def there_is_one_token_more(student: Student, probe: Probe) -> None:
    """Every image has one token more than before: (batch, 1 + tokens, embed_dim)."""
    for batch, num_patches in ((2, 6), (3, 5)):
        name = f"add_class_token of {batch} images with {num_patches} tokens"
        result = student(*_token_inputs(probe, batch, num_patches))
        expect_tensor(result, (batch, 1 + num_patches, 8), name)


@add_class_token.check(needs=there_is_one_token_more)
def the_class_token_stands_first(student: Student, probe: Probe) -> None:
    """Token 0 of every image is the class token, and the patches follow in their order."""
    tokens, class_token, _ = _token_inputs(probe)
    nowhere = torch.zeros(1, 6, 8)
    wanted = with_class_token(tokens, class_token, nowhere)

    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str]:
        image, token = (int(index) for index in (~actual.isclose(expected, atol=1e-5)).any(2).nonzero()[0])
        alike = [other for other in range(6) if close(actual[image, token], expected[image, other])]
        names = ["the class token", *(f"patch {number}" for number in range(5))]
        seen = names[alike[0]] if alike else vector_text(actual[image, token, :3]) + ", ..."
        there = names[token] if alike else f"{names[token]}: {vector_text(expected[image, token, :3])}, ..."
        return f"token {token} of image {image} is {seen} (all positions are zero in this check)", there

    look = "Which token should the model find at index 0?"
    expect_equal(student(tokens, class_token, nowhere), wanted, "add_class_token", TOKEN_AXES, describe, look)


@add_class_token.check(needs=there_is_one_token_more)
def every_token_gets_its_own_position(student: Student, probe: Probe) -> None:
    """Row 0 of positions is added to the class token, row 1 to the first patch, and so on, in every image."""
    tokens, class_token, positions = _token_inputs(probe)
    joined = with_class_token(tokens, class_token, torch.zeros(1, 6, 8))

    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        image, token = (int(index) for index in (~actual.isclose(expected, atol=1e-5)).any(2).nonzero()[0])
        added = (actual - joined)[image, token]
        if close(added, torch.zeros(8)):
            return f"nothing was added to token {token} of image {image}", f"row {token} of positions"
        rows = [row for row in range(6) if close(added, positions[0, row])]
        if not rows:
            return None
        return f"row {rows[0]} of positions was added to token {token} of image {image}", f"row {token}"

    result, look = student(tokens, class_token, positions), "Whose position is row 0, and whose is row 1?"
    wanted = with_class_token(tokens, class_token, positions)
    expect_equal(result, wanted, "add_class_token", TOKEN_AXES, describe, look)


@add_class_token.check(needs=there_is_one_token_more, worth=0.5, guard=True)
def one_image_is_a_batch_too(student: Student, probe: Probe) -> None:
    """A batch of one image keeps its three axes."""
    inputs = _token_inputs(probe, 1, 6)
    expect_equal(student(*inputs), with_class_token(*inputs), "add_class_token of one image", TOKEN_AXES)


@add_class_token.check(needs=there_is_one_token_more)
def everything_can_be_learned(student: Student, probe: Probe) -> None:
    """Gradients find their way to the tokens, to the class token and to the positions."""
    names = ("tokens", "class_token", "positions")
    cut = []
    for index, name in enumerate(names):
        inputs = _token_inputs(probe)
        inputs[index].requires_grad_()
        result = expect_tensor(student(*inputs), (3, 6, 8), "add_class_token")
        if not result.requires_grad:
            cut.append(name)
    student.record.append(("cut off", tuple(cut)))
    if cut:
        look = "Which operation copies numbers into a new tensor and forgets where they came from?"
        raise Failure(f"no gradient reaches {', '.join(cut)}", f"one for each of {', '.join(names)}", look)


@add_class_token.check(needs=every_token_gets_its_own_position, guard=True)
def double_tokens_stay_double(student: Student, probe: Probe) -> None:
    """In float64 the result is float64, and tokens that are not contiguous in memory are read right."""
    _, class_token, positions = (each.double() for each in _token_inputs(probe))
    tokens = probe.normal(5, 8, 3, dtype=torch.float64).permute(2, 0, 1)
    wanted = with_class_token(tokens, class_token, positions)
    expect_equal(student(tokens, class_token, positions), wanted, "add_class_token in float64", TOKEN_AXES)


@add_class_token.check(needs=there_is_one_token_more, worth=0.5, guard=True)
def it_computes_where_the_tokens_are(student: Student, probe: Probe) -> None:
    """The result lies on the device of the tokens."""
    expect_device_of_input(student, *_token_inputs(probe))


@add_class_token.check(needs=there_is_one_token_more, guard=True)
def what_goes_in_is_left_alone(student: Student, probe: Probe) -> None:
    """Tokens, class token and positions are not changed."""
    student(*_token_inputs(probe))
    expect_left_alone(student)


@add_class_token.check(guard=True)
def a_wrong_number_of_positions_is_refused(student: Student, probe: Probe) -> None:
    """Where positions does not have 1 + tokens rows, ValueError names the number of its rows."""
    tokens, class_token, _ = _token_inputs(probe)
    for rows in (5, 1, 7):
        described = f"{rows} row{'s' * (rows > 1)} of positions for 1 + 5 tokens"
        expect_value_error(student, (tokens, class_token, probe.normal(1, rows, 8)), (rows,), described)


add_class_token.example("""
>>> tokens, class_token = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[9.0]]])
>>> add_class_token(tokens, class_token, torch.tensor([[[10.0], [20.0], [30.0]]])).tolist()
[[[19.0], [21.0], [32.0]]]
""")


read_mistakes(add_class_token, __name__)
declare(add_class_token, Edits(quick=True))
