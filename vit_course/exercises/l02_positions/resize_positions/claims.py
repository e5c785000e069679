"""`resize_positions`: learned positions for another grid of patches.

The oracle is ``F.grid_sample``, which looks up a picture at given places.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor, shape
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_input_gradients, expect_value_error
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions import LESSON
from vit_course.exercises.l02_positions.add_class_token.claims import TOKEN_AXES
from vit_course.exercises.l02_positions.sinusoidal_positions.claims import vector_text
from vit_course.exercises.l02_positions.sinusoidal_positions_2d.claims import GRIDS

PATCH_AXES = ("image", "patch", "dimension")


resize_positions = Exercise("resize_positions", LESSON, in_training=InTraining.HIDDEN)


def resized(positions: Tensor, old_grid: tuple[int, int], new_grid: tuple[int, int]) -> Tensor:
    """The oracle of resize_positions: the old grid looked up at the centers of the new patches."""
    picture = positions[:, 1:].mT.unflatten(2, old_grid)  # (1, embed_dim, rows, columns)
    down, across = ((torch.arange(size).to(positions) + 0.5) / size * 2 - 1 for size in new_grid)
    places = torch.stack(torch.broadcast_tensors(across, down[:, None]), dim=-1)  # (rows, columns, 2)
    found = F.grid_sample(picture, places[None], mode="bicubic", padding_mode="border", align_corners=False)
    return torch.cat([positions[:, :1], found.flatten(2).mT], dim=1)


def _table(probe: Probe, grid: tuple[int, int], embed_dim: int = 6) -> Tensor:
    """Positions (1, 1 + rows * columns, embed_dim) of order 1."""
    return probe.normal(1, 1 + grid[0] * grid[1], embed_dim)


@resize_positions.check(guard=True)
def every_new_patch_has_a_row(student: Student, probe: Probe) -> None:
    """The result has one row for the class token and one for each patch of the new grid."""
    for old, new in (((4, 4), (5, 7)), ((6, 5), (4, 2))):
        name = f"resize_positions from {old} to {new}"
        expect_tensor(student(_table(probe, old), old, new), (1, 1 + new[0] * new[1], 6), name)


@resize_positions.check(needs=every_new_patch_has_a_row)
def the_class_tokens_row_stays(student: Student, probe: Probe) -> None:
    """Row 0, the class token's, is returned unchanged."""
    positions = _table(probe, (3, 4))
    result = expect_tensor(student(positions, (3, 4), (5, 7)), (1, 36, 6), "resize_positions")
    if not close(result[:, 0], positions[:, 0]):
        seen, wanted = (vector_text(each[0, 0, :3]) + ", ..." for each in (result, positions))
        raise Failure(f"row 0 was {wanted} and became {seen}", "the same numbers", "Where on the picture is row 0?")


@resize_positions.check(needs=every_new_patch_has_a_row)
def the_same_grid_changes_nothing(student: Student, probe: Probe) -> None:
    """From a grid to the same grid, the positions are returned unchanged."""
    for grid in GRIDS:
        positions = _table(probe, grid)
        name = f"resize_positions from {grid} to {grid}"
        look = "Which step on the way in is not undone on the way out?"
        expect_equal(student(positions, grid, grid), positions, name, TOKEN_AXES, look=look)


@resize_positions.check(needs=every_new_patch_has_a_row, guard=True)
def a_dimension_that_tells_the_row_still_does(student: Student, probe: Probe) -> None:
    """Where a dimension holds a patch's row and nothing else, it has one value all along each new row."""
    old, new = (3, 4), (5, 7)
    by_row = torch.arange(1.0, 4.0).repeat_interleave(4)
    positions = torch.stack([by_row, -by_row, 2 * by_row], dim=1)
    positions = torch.cat([torch.full((1, 1, 3), 9.0), positions[None]], dim=1)
    result = expect_tensor(student(positions, old, new), (1, 36, 3), "resize_positions")
    found = result[0, -35:, 0].unflatten(0, new)
    for row, values in enumerate(found):
        if not close(values.to(positions.dtype), values[:1].expand(7).to(positions.dtype)):
            raise Failure(
                f"dimension 0 was 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3 on 3 rows of 4 patches; on 5 rows of 7 patches, "
                f"row {row} of it is {vector_text(values)}",
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


@resize_positions.check(needs=every_new_patch_has_a_row, worth=0.5, guard=True)
def positions_can_still_be_learned(student: Student, probe: Probe) -> None:
    """The gradient reaches every row of positions, to another grid and to the same one."""
    for new in ((5, 7), (3, 4)):
        inputs = _table(probe, (3, 4)), (3, 4), new
        expect_input_gradients(student, inputs, ("positions",), resized, TOKEN_AXES)


@resize_positions.check(needs=every_new_patch_has_a_row, worth=0.5, guard=True)
def it_computes_where_the_positions_are(student: Student, probe: Probe) -> None:
    """The result lies on the device of the positions."""
    expect_device_of_input(student, _table(probe, (3, 4)), (3, 4), (5, 7))


@resize_positions.check(needs=the_grid_is_resampled_bicubically, guard=True)
def double_positions_stay_double(student: Student, probe: Probe) -> None:
    """In float64 the result is float64, and positions that are not contiguous in memory are read right."""
    positions = probe.normal(6, 13, 1, dtype=torch.float64).permute(2, 1, 0)
    wanted = resized(positions, (3, 4), (5, 7))
    expect_equal(student(positions, (3, 4), (5, 7)), wanted, "resize_positions in float64", TOKEN_AXES)


@resize_positions.check(guard=True)
def a_grid_that_does_not_fit_is_refused(student: Student, probe: Probe) -> None:
    """Where positions does not have 1 + rows · columns rows, ValueError names the number of its rows."""
    for old in ((3, 5), (2, 4)):
        described = f"{shape((1, 13, 6))} positions for an old grid of {old}"
        expect_value_error(student, (_table(probe, (3, 4)), old, (5, 7)), (13,), described)


resize_positions.example("""
>>> positions = torch.tensor([[[9.0], [0.0], [0.0], [8.0], [8.0]]])
>>> resize_positions(positions, (2, 2), (2, 3)).flatten().round(decimals=3).tolist()
[9.0, 0.0, 0.0, 0.0, 8.0, 8.0, 8.0]
""")


Grid = tuple[int, int]


read_mistakes(resize_positions, __name__)
declare(resize_positions, Edits(quick=True))
