"""`add_class_token`: the class token in front, and the positions added.

The oracle is plain addition, row by row.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone, expect_value_error
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify.patchify.claims import on_the_cpu
from vit_course.exercises.l02_positions import LESSON
from vit_course.exercises.l02_positions.sinusoidal_positions import vector_text

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


CLASS = "02_positions, A token that belongs to no patch"


def _count(tokens: Tensor, positions: Tensor) -> None:
    if positions.shape[1] != tokens.shape[1] + 1:
        raise ValueError(f"{positions.shape[1]} rows of positions for 1 + {tokens.shape[1]} tokens")


def _without_positions(tokens: Tensor, class_token: Tensor) -> Tensor:
    """The class token in front of each image's tokens."""
    return with_class_token(tokens, class_token, tokens.new_zeros(1, tokens.shape[1] + 1, tokens.shape[2]))


@add_class_token.misconception("Which index will the model read at the end?", CLASS)
def class_token_last(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token stands behind the patches, where the model does not read it."""
    _count(tokens, positions)
    return _without_positions(tokens, class_token).roll(-1, dims=1) + positions


@add_class_token.misconception("How many images are in tokens, and how many in class_token?", CLASS)
def class_token_not_expanded(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """One class token is concatenated with a whole batch, which torch refuses unless the batch has one image."""
    _count(tokens, positions)
    if len(tokens) > 1:
        torch.cat([class_token, tokens], dim=1)  # raises
    return with_class_token(tokens, class_token, positions)


@add_class_token.misconception("Which images have a class token now?", CLASS)
def class_token_for_the_first_image_only(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The first image gets the class token, and all others get zeros."""
    _count(tokens, positions)
    joined = _without_positions(tokens, class_token)
    joined[1:, 0] = 0
    return joined + positions


@add_class_token.misconception("Which of the three inputs have you not used?", CLASS)
def a_class_token_of_zeros(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """A new token of zeros is put in front, and the one that was given is not used."""
    _count(tokens, positions)
    return _without_positions(tokens, torch.zeros_like(class_token)) + positions


@add_class_token.misconception("Is the class token a token of its own, or a part of the others?", CLASS)
def class_token_added_to_the_patches(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token is added to every patch, and no token joins them."""
    _count(tokens, positions)
    return torch.stack([torch.stack([patch + class_token[0, 0] for patch in image]) for image in tokens])


@add_class_token.misconception("Does the class token get a position too?", CLASS)
def positions_before_the_class_token(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The positions are added to the patches before the class token is put in front, so it gets none."""
    _count(tokens, positions)
    result = with_class_token(tokens, class_token, positions)
    result[:, 0] = class_token[:, 0]
    return result


@add_class_token.misconception("Whose position is row 0?", CLASS)
def positions_one_row_off(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The patches get rows 0, 1, 2 and so on, though row 0 belongs to the class token."""
    _count(tokens, positions)
    result = with_class_token(tokens, class_token, positions.roll(1, dims=1))
    result[:, 0] = class_token[:, 0]
    return result


@add_class_token.misconception("How many rows of positions do you add, and to how many tokens?", CLASS)
def one_position_for_all(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """Row 0 of positions is added to every token, so all of them stand in the same place."""
    _count(tokens, positions)
    return _without_positions(tokens, class_token) + positions[:, :1]


@add_class_token.misconception("Which of the three inputs have you not used?", CLASS)
def positions_forgotten(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token joins the patches, and no position is added."""
    _count(tokens, positions)
    return _without_positions(tokens, class_token)


@add_class_token.misconception("With which operation do positions join the tokens?", CLASS)
def positions_multiplied(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The tokens are multiplied by their positions."""
    _count(tokens, positions)
    return _without_positions(tokens, class_token) * positions


@add_class_token.misconception("How long should a token be afterward?", CLASS)
def positions_concatenated(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The positions are put beside the tokens, which makes every token twice as long."""
    _count(tokens, positions)
    joined = _without_positions(tokens, class_token)
    return torch.cat([joined, positions.expand(joined.shape)], dim=2)


@add_class_token.misconception("Along which axis do the tokens of one image lie?", CLASS)
def class_token_joined_to_the_batch(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token is concatenated along the batch, as if it were one more image."""
    _count(tokens, positions)
    return torch.cat([class_token, tokens], dim=0)


@add_class_token.misconception("How many tokens are there when you add, and how many rows of positions?", CLASS)
def positions_added_too_early(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """All rows of positions are added to the patches alone, before the class token joins, and one row is left over."""
    _count(tokens, positions)
    return tokens + positions


@add_class_token.misconception(
    "By which operations does a gradient get from your result back to the class token?", CLASS
)
def class_token_cut_from_its_gradient(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token is copied as bare numbers, so it can never learn."""
    _count(tokens, positions)
    return with_class_token(tokens, class_token.detach(), positions)


@add_class_token.misconception("By which operations does a gradient get from your result back to the positions?", CLASS)
def positions_cut_from_their_gradient(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The positions are copied as bare numbers, so they can never learn."""
    _count(tokens, positions)
    return with_class_token(tokens, class_token, positions.detach())


@add_class_token.misconception("Which dtype does your new tensor get, and which had the tokens?", CLASS)
def tokens_as_float32(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The result is written into a new float32 tensor, whatever the dtype of the tokens."""
    _count(tokens, positions)
    return with_class_token(tokens, class_token, positions).float()


@add_class_token.misconception("Is the tensor that you add to yours, or the caller's?", CLASS)
def tokens_changed_in_place(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The positions are added into the tokens that were given, so the caller's tokens are no longer the same."""
    _count(tokens, positions)
    result = with_class_token(tokens, class_token, positions)
    tokens.data.add_(positions.data[:, 1:])
    return result


@add_class_token.misconception("What does broadcasting make of a table with a single row?", CLASS)
def positions_never_counted(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """Nothing counts the rows of positions, and a single row is added to all tokens without an error."""
    rows = torch.broadcast_shapes((tokens.shape[1] + 1,), (positions.shape[1],))[0]
    return with_class_token(tokens, class_token, positions.expand(1, rows, -1))


@add_class_token.misconception(
    "On which device does your new tensor lie, and on which the tokens?", CLASS, InTraining.UNSEEN
)
def tensor_made_on_the_cpu(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The result is put together in a new tensor on the CPU, wherever the tokens are."""
    _count(tokens, positions)
    return on_the_cpu(_without_positions(tokens, class_token) + positions)


@add_class_token.misconception("How many axes has a batch of one image?", CLASS, InTraining.UNSEEN)
def batch_of_one_squeezed(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """Axes of length 1 are squeezed away, so a batch of one image loses its first axis."""
    _count(tokens, positions)
    return with_class_token(tokens, class_token, positions).squeeze()


@add_class_token.misconception(
    "By which operations does a gradient get from your result back to the tokens?", CLASS, InTraining.WORSE
)
def tokens_cut_from_their_gradient(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The tokens are copied as bare numbers, so the patch embedding in front of them can never learn."""
    _count(tokens, positions)
    return with_class_token(tokens.detach(), class_token, positions)


@add_class_token.misconception(
    "What becomes of a table that has more rows than there are tokens?", CLASS, InTraining.UNSEEN
)
def surplus_positions_cut_off(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """As many rows of positions are taken as there are tokens, and any others are dropped without an error."""
    required_cells = tokens.shape[1] + 1
    if positions.shape[1] < required_cells:
        raise ValueError(f"{positions.shape[1]} rows of positions for {required_cells} tokens")
    return with_class_token(tokens, class_token, positions[:, :required_cells])


def _joined(
    patches: Tensor,
    class_token: Tensor,
    positions: Tensor,
    *,
    token: Callable[[Tensor], Tensor] = lambda token: token,
    last: bool = False,
    table: Callable[[Tensor], Tensor] = lambda rows: rows,
    added: Callable[[Tensor, Tensor], Tensor] = torch.add,
    first_only: bool = False,
    postprocess: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda result, patches, positions: result,
) -> Tensor:
    _count(patches, positions)
    first = token(class_token).expand(len(patches), -1, -1)
    if first_only:
        first = torch.cat([first[:1], torch.zeros_like(first[1:])])
    joined = torch.cat([patches, first] if last else [first, patches], dim=1)
    return postprocess(added(joined, table(positions)), patches, positions)


def _spoilt(result: Tensor, patches: Tensor, positions: Tensor) -> Tensor:
    result = result.clone()
    patches.data.add_(positions.data[:, 1:])
    return result


def _beside(joined: Tensor, positions: Tensor) -> Tensor:
    return torch.cat([joined, positions.expand(joined.shape[0], -1, -1)], dim=2)


declare(
    add_class_token,
    Parts(
        _joined,
        {
            class_token_last: {"last": True},
            class_token_for_the_first_image_only: {"first_only": True},
            a_class_token_of_zeros: {"token": torch.zeros_like},
            positions_before_the_class_token: {"table": lambda rows: F.pad(rows[:, 1:], (0, 0, 1, 0))},
            positions_one_row_off: {"table": lambda rows: F.pad(rows[:, :-1], (0, 0, 1, 0))},
            one_position_for_all: {"table": lambda rows: rows[:, :1].expand(rows.shape)},
            positions_forgotten: {"table": lambda rows: torch.zeros_like(rows), "added": torch.add},
            positions_multiplied: {"added": torch.mul},
            positions_concatenated: {"added": _beside},
            class_token_cut_from_its_gradient: {"token": torch.Tensor.detach},
            positions_cut_from_their_gradient: {"table": lambda rows: rows.detach()},
            tokens_as_float32: {"postprocess": lambda result, patches, positions: result.float()},
            tokens_changed_in_place: {"postprocess": _spoilt},
        },
        quick=True,
    ),
)
