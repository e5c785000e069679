"""Public checks of lesson 02, second part: the class token, and positions for another grid.

The oracles: plain addition row by row, and ``F.grid_sample``, which looks up a picture at given places.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor, shape
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_left_alone,
    expect_value_error,
)
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.checks.positions import GRIDS, LESSON, in_words

TOKEN_AXES = ("image", "token", "dimension")
PATCH_AXES = ("image", "patch", "dimension")

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


@add_class_token.check
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
        seen = names[alike[0]] if alike else in_words(actual[image, token, :3]) + ", ..."
        there = names[token] if alike else f"{names[token]}: {in_words(expected[image, token, :3])}, ..."
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


@add_class_token.check(needs=there_is_one_token_more, worth=0.5)
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


@add_class_token.check(needs=every_token_gets_its_own_position)
def double_tokens_stay_double(student: Student, probe: Probe) -> None:
    """In float64 the result is float64, and tokens that are not contiguous in memory are read right."""
    _, class_token, positions = (each.double() for each in _token_inputs(probe))
    tokens = probe.normal(5, 8, 3, dtype=torch.float64).permute(2, 0, 1)
    wanted = with_class_token(tokens, class_token, positions)
    expect_equal(student(tokens, class_token, positions), wanted, "add_class_token in float64", TOKEN_AXES)


@add_class_token.check(needs=there_is_one_token_more, worth=0.5)
def it_computes_where_the_tokens_are(student: Student, probe: Probe) -> None:
    """The result lies on the device of the tokens."""
    expect_device_of_input(student, *_token_inputs(probe))


@add_class_token.check(needs=there_is_one_token_more)
def what_goes_in_is_left_alone(student: Student, probe: Probe) -> None:
    """Tokens, class token and positions are not changed."""
    student(*_token_inputs(probe))
    expect_left_alone(student)


@add_class_token.check
def a_wrong_number_of_positions_is_refused(student: Student, probe: Probe) -> None:
    """Where positions has not 1 + tokens rows, ValueError is raised and names the number of its rows."""
    tokens, class_token, _ = _token_inputs(probe)
    for rows in (5, 1, 7):
        described = f"{rows} row{'s' * (rows > 1)} of positions for 1 + 5 tokens"
        expect_value_error(student, (tokens, class_token, probe.normal(1, rows, 8)), (rows,), described)


add_class_token.example("""
>>> tokens, class_token = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[9.0]]])
>>> add_class_token(tokens, class_token, torch.tensor([[[10.0], [20.0], [30.0]]])).tolist()
[[[19.0], [21.0], [32.0]]]
""")

resize_positions = Exercise("resize_positions", LESSON, in_training=InTraining.HIDDEN)


def resized(positions: Tensor, old_grid: tuple[int, int], new_grid: tuple[int, int]) -> Tensor:
    """The oracle of resize_positions: the old grid looked up at the centres of the new patches."""
    picture = positions[:, 1:].mT.unflatten(2, old_grid)  # (1, embed_dim, rows, columns)
    down, across = ((torch.arange(size, dtype=positions.dtype) + 0.5) / size * 2 - 1 for size in new_grid)
    places = torch.stack(torch.broadcast_tensors(across, down[:, None]), dim=-1)  # (rows, columns, 2)
    found = F.grid_sample(picture, places[None], mode="bicubic", padding_mode="border", align_corners=False)
    return torch.cat([positions[:, :1], found.flatten(2).mT], dim=1)


def _table(probe: Probe, grid: tuple[int, int], embed_dim: int = 6) -> Tensor:
    """Positions (1, 1 + rows * columns, embed_dim) of order 1."""
    return probe.normal(1, 1 + grid[0] * grid[1], embed_dim)


@resize_positions.check
def every_new_patch_has_a_row(student: Student, probe: Probe) -> None:
    """The result has one row for the class token and one for each patch of the new grid."""
    for old, new in (((4, 4), (5, 7)), ((6, 5), (4, 2))):
        name = f"resize_positions from {old} to {new}"
        expect_tensor(student(_table(probe, old), old, new), (1, 1 + new[0] * new[1], 6), name)


@resize_positions.check(needs=every_new_patch_has_a_row)
def the_class_tokens_row_stays(student: Student, probe: Probe) -> None:
    """Row 0, the class token's, comes out as it went in."""
    positions = _table(probe, (3, 4))
    result = expect_tensor(student(positions, (3, 4), (5, 7)), (1, 36, 6), "resize_positions")
    if not close(result[:, 0], positions[:, 0]):
        seen, wanted = (in_words(each[0, 0, :3]) + ", ..." for each in (result, positions))
        raise Failure(f"row 0 was {wanted} and became {seen}", "the same numbers", "Where on the picture is row 0?")


@resize_positions.check(needs=every_new_patch_has_a_row)
def the_same_grid_changes_nothing(student: Student, probe: Probe) -> None:
    """From a grid to the same grid, the positions come out as they went in."""
    for grid in GRIDS:
        positions = _table(probe, grid)
        name = f"resize_positions from {grid} to {grid}"
        look = "Which step on the way in is not undone on the way out?"
        expect_equal(student(positions, grid, grid), positions, name, TOKEN_AXES, look=look)


@resize_positions.check(needs=every_new_patch_has_a_row)
def a_dimension_that_tells_the_row_still_does(student: Student, probe: Probe) -> None:
    """Where a dimension holds a patch's row and nothing else, it has one value all along each new row."""
    old, new = (3, 4), (5, 7)
    by_row = torch.arange(1.0, 4.0).repeat_interleave(4)
    positions = torch.stack([by_row, -by_row, 2 * by_row], dim=1)
    positions = torch.cat([torch.full((1, 1, 3), 9.0), positions[None]], dim=1)
    result = expect_tensor(student(positions, old, new), (1, 36, 3), "resize_positions")
    found = result[0, -35:, 0].unflatten(0, new)
    for row, values in enumerate(found):
        if not close(values, values[:1].expand(7)):
            raise Failure(
                f"dimension 0 was 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3 on 3 rows of 4 patches; on 5 rows of 7 patches, "
                f"row {row} of it is {in_words(values)}",
                "seven times the same number",
                "Which axis of your picture tells the dimension, which the row, which the column?",
            )


@resize_positions.check(needs=a_dimension_that_tells_the_row_still_does)
def the_grid_is_resampled_bicubically(student: Student, probe: Probe) -> None:
    """Growing or shrinking, the new rows are the bicubic interpolation of the old grid."""
    for old, new in (((3, 4), (5, 7)), ((6, 5), (4, 3)), ((2, 6), (3, 4)), ((2, 8), (4, 5))):
        positions = _table(probe, old)
        look = "Compare mode, align_corners and antialias with what the exercise asks for."
        name, wanted = f"resize_positions from {old} to {new}", resized(positions, old, new)
        result = expect_tensor(student(positions, old, new), wanted.shape, name)
        expect_equal(result[:, 1:], wanted[:, 1:], f"the patches' part of {name}", PATCH_AXES, look=look)


@resize_positions.check(needs=the_grid_is_resampled_bicubically, worth=0.5)
def the_new_grid_has_the_very_size_that_was_asked_for(student: Student, probe: Probe) -> None:
    """The new grid is as large as new_grid says, also where dividing the sizes leaves a rounded number."""
    for old, new in (((11, 2), (15, 3)), ((2, 13), (2, 30))):
        positions = _table(probe, old, 3)
        name = f"resize_positions from {old} to {new}"
        expect_equal(student(positions, old, new), resized(positions, old, new), name, TOKEN_AXES)


@resize_positions.check(needs=every_new_patch_has_a_row, worth=0.5)
def positions_can_still_be_learned(student: Student, probe: Probe) -> None:
    """The gradient reaches every row of positions, to another grid and to the same one."""
    for new in ((5, 7), (3, 4)):
        inputs = _table(probe, (3, 4)), (3, 4), new
        expect_input_gradients(student, inputs, ("positions",), resized, TOKEN_AXES)


@resize_positions.check(needs=every_new_patch_has_a_row, worth=0.5)
def it_computes_where_the_positions_are(student: Student, probe: Probe) -> None:
    """The result lies on the device of the positions."""
    expect_device_of_input(student, _table(probe, (3, 4)), (3, 4), (5, 7))


@resize_positions.check(needs=the_grid_is_resampled_bicubically)
def double_positions_stay_double(student: Student, probe: Probe) -> None:
    """In float64 the result is float64, and positions that are not contiguous in memory are read right."""
    positions = probe.normal(6, 13, 1, dtype=torch.float64).permute(2, 1, 0)
    wanted = resized(positions, (3, 4), (5, 7))
    expect_equal(student(positions, (3, 4), (5, 7)), wanted, "resize_positions in float64", TOKEN_AXES)


@resize_positions.check
def a_grid_that_does_not_fit_is_refused(student: Student, probe: Probe) -> None:
    """Where positions has not 1 + rows · columns rows, ValueError is raised and names the number of its rows."""
    for old in ((3, 5), (2, 4)):
        described = f"{shape((1, 13, 6))} positions for an old grid of {old}"
        expect_value_error(student, (_table(probe, (3, 4)), old, (5, 7)), (13,), described)


resize_positions.example("""
>>> positions = torch.tensor([[[9.0], [0.0], [0.0], [8.0], [8.0]]])
>>> resize_positions(positions, (2, 2), (2, 3)).flatten().round(decimals=3).tolist()
[9.0, 0.0, 0.0, 0.0, 8.0, 8.0, 8.0]
""")
