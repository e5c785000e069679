"""`resize_positions`: learned positions for another grid of patches.

The oracle is ``F.grid_sample``, which looks up a picture at given places.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_equal, expect_tensor, format_dtype, format_shape
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_value_error,
    ignore_wrong_numbers,
)
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions import LESSON
from vit_course.exercises.l02_positions.add_class_token.claims import TOKEN_AXES
from vit_course.exercises.l02_positions.sinusoidal_positions.claims import format_vector

PATCH_AXES = ("image", "patch", "dimension")
LOOK = "Lay one dimension out on the old grid, resize it, and read it row by row. Where do you go another way?"


resize_positions = Exercise("resize_positions", LESSON, in_training=InTraining.HIDDEN)


def compute_expected_positions(positions: Tensor, old_grid: tuple[int, int], new_grid: tuple[int, int]) -> Tensor:
    """The oracle of resize_positions: the old grid looked up at the centers of the new patches."""
    picture = positions[:, 1:].mT.unflatten(2, old_grid)  # (1, embed_dim, rows, columns)
    down, across = ((torch.arange(size).to(positions) + 0.5) / size * 2 - 1 for size in new_grid)
    places = torch.stack(torch.broadcast_tensors(across, down[:, None]), dim=-1)  # (rows, columns, 2)
    found = F.grid_sample(picture, places[None], mode="bicubic", padding_mode="border", align_corners=False)
    return torch.cat([positions[:, :1], found.flatten(2).mT], dim=1)


def draw_positions(probe: Probe, grid: tuple[int, int], embed_dim: int = 6) -> Tensor:
    """Positions (1, 1 + rows * columns, embed_dim) of order 1."""
    return probe.normal(1, 1 + grid[0] * grid[1], embed_dim)


def draw_positions_and_two_grids(probe: Probe) -> tuple[Tensor, tuple[int, int], tuple[int, int]]:
    """Positions of a grid, that grid, and another one."""
    rows, columns, embed_dim = probe.sizes(3, low=3, high=7, shown=(3, 4, 6))
    return draw_positions(probe, (rows, columns), embed_dim), (rows, columns), (columns + 1, rows + 4)


def expect_right_positions(
    student: Student, positions: Tensor, old: tuple[int, int], new: tuple[int, int], look: str = LOOK
) -> None:
    """Every row right, the class token's too."""
    name = f"resize_positions from {old} to {new}"
    expect_equal(
        student(positions, old, new), compute_expected_positions(positions, old, new), name, TOKEN_AXES, look=look
    )


@resize_positions.check(guard=True)
def every_new_patch_has_a_row(student: Student, probe: Probe) -> None:
    """The result has one row for the class token and one for each patch of the new grid."""
    for old, new in (((4, 4), (5, 7)), ((6, 5), (4, 2))):
        name = f"resize_positions from {old} to {new}"
        expect_tensor(student(draw_positions(probe, old), old, new), (1, 1 + new[0] * new[1], 6), name)


@resize_positions.check(needs=every_new_patch_has_a_row, points=0.5)
def the_class_tokens_row_stays(student: Student, probe: Probe) -> None:
    """Row 0, the class token's, is returned unchanged."""
    rows, columns, length = probe.sizes(3, low=3, high=8, shown=(3, 4, 6))
    for old, new in (((rows, columns), (columns + 1, rows + 4)), ((columns, rows), (rows - 1, columns - 1))):
        positions = draw_positions(probe, old, length)
        result = expect_tensor(student(positions, old, new), (1, 1 + new[0] * new[1], length), "resize_positions")
        if not are_close(result[:, 0], positions[:, 0]):
            seen, wanted = (format_vector(each[0, 0, :3]) + ", ..." for each in (result, positions))
            raise Failure(f"row 0 was {wanted} and became {seen}", "the same numbers", "Where on the picture is row 0?")


@resize_positions.check(needs=every_new_patch_has_a_row, points=0.35, first="the_grid_is_resampled_bicubically")
def the_same_grid_changes_nothing(student: Student, probe: Probe) -> None:
    """From a grid to the same grid, the positions are returned unchanged."""
    rows, columns, length = probe.sizes(3, low=3, high=7, shown=(3, 5, 6))
    for grid in ((rows, columns), (columns + 1, rows + 1)):
        look = "Which step on the way in is not undone on the way out?"
        expect_right_positions(student, draw_positions(probe, grid, length), grid, grid, look)


@resize_positions.check(needs=every_new_patch_has_a_row, guard=True, points=0.65)
def a_dimension_that_tells_the_row_still_does(student: Student, probe: Probe) -> None:
    """Where a dimension holds a patch's row (or column) and nothing else, it has one value all along each new one."""
    rows, columns, more = probe.sizes(3, low=3, high=7, shown=(3, 4, 2))
    old, new = (rows, columns), (rows + more, columns + 3)
    by_row = torch.arange(1.0, rows + 1).repeat_interleave(columns)
    by_column = 3 * probe.normal(columns).cumsum(0).repeat(rows)
    positions = torch.stack([by_row, -by_row, by_column], dim=1)
    positions = torch.cat([torch.full((1, 1, 3), 9.0), positions[None]], dim=1)
    result = expect_tensor(student(positions, old, new), (1, 1 + new[0] * new[1], 3), "resize_positions")
    on_grid = f"on {rows} rows of {columns} patches; on {new[0]} rows of {new[1]} patches"
    look = "Which axis of your picture tells the dimension, which the row, which the column?"
    for dimension, kind in enumerate(("row", "row", "column")):
        picture = result[0, 1:, dimension].unflatten(0, new)
        for place, values in enumerate(picture if kind == "row" else picture.T):
            if not are_close(values.to(positions.dtype), values[:1].expand_as(values).to(positions.dtype)):
                was = format_vector(positions[0, 1:, dimension])
                seen = f"dimension {dimension} was {was} {on_grid}, {kind} {place} of it is {format_vector(values)}"
                raise Failure(seen, f"{len(values)} times the same number", look)
    if not result[0, 1:, 0].amax() - result[0, 1:, 0].amin() > 1:
        raise Failure("dimension 0 is the same in every row of the new grid", "a value a row", look)


@resize_positions.check(needs=a_dimension_that_tells_the_row_still_does, points=1.75)
def the_grid_is_resampled_bicubically(student: Student, probe: Probe) -> None:
    """Growing or shrinking, the new rows are the bicubic interpolation of the old grid."""
    rows, columns, half, length = probe.sizes(4, low=3, high=8, shown=(3, 4, 2, 6))
    for old, new, embed_dim in (
        ((rows, columns), (rows + 2, columns + 3), length),
        ((rows + 3, columns + 1), (rows + 1, columns - 1), length),
        ((rows, columns), (rows + 3, columns - 1), length),
        ((half, 2 * rows), (2 * half, rows), length),  # as many patches as before
        ((half, 4 * half), (columns, columns + 1), length),  # as many patches as a square has
        ((rows, rows), (rows + 2, rows + 2), length),
        ((1, 2 * rows), (3, rows), length),
        ((2 * rows, half), (half, 2 * rows), 1),
        ((columns, half), (1, 1), 2),
        ((rows, columns), (rows + 2, columns + 3), length),  # other numbers of the first sizes
    ):
        positions = draw_positions(probe, old, embed_dim)
        look = "Compare mode, align_corners and antialias with what the exercise asks for."
        name, wanted = f"resize_positions from {old} to {new}", compute_expected_positions(positions, old, new)
        result = expect_tensor(student(positions, old, new), wanted.shape, name)
        expect_equal(result[:, 1:], wanted[:, 1:], f"the patches' part of {name}", PATCH_AXES, look=look)


@resize_positions.check(needs=the_grid_is_resampled_bicubically, worth=0.5, points=0.2)
def the_new_grid_has_the_very_size_that_was_asked_for(student: Student, probe: Probe) -> None:
    """The new grid is as large as new_grid says, also where dividing the sizes leaves a rounded number."""
    side, other, embed_dim = probe.sizes(3, high=6, shown=(2, 3, 4))
    for few, many in ((11, 15), (13, 15), (23, 13)):
        for old, new in (((few, side), (many, other)), ((side, few), (side, many))):
            expect_right_positions(student, draw_positions(probe, old, embed_dim), old, new)


@resize_positions.check(needs=the_grid_is_resampled_bicubically, worth=0.5, guard=True, points=0.35)
def positions_can_still_be_learned(student: Student, probe: Probe) -> None:
    """The gradient reaches every row of positions, to another grid and to the same one."""
    positions, old, another = draw_positions_and_two_grids(probe)
    for new in (another, old):
        expect_input_gradients(student, (positions, old, new), ("positions",), compute_expected_positions, TOKEN_AXES)


@resize_positions.check(
    needs=the_grid_is_resampled_bicubically, worth=0.5, guard=True, points=0.2, first=the_grid_is_resampled_bicubically
)
def it_computes_where_the_positions_are(student: Student, probe: Probe) -> None:
    """The result lies on the device of the positions."""
    expect_device_of_input(student, *draw_positions_and_two_grids(probe))


@resize_positions.check(needs=the_grid_is_resampled_bicubically, guard=True, points=0.3)
def double_positions_stay_double(student: Student, probe: Probe) -> None:
    """In float64 the result is float64, in half it is half, and positions not contiguous in memory are read right."""
    positions, old, new = draw_positions_and_two_grids(probe)
    exact = probe.normal(*positions.mT.shape, dtype=torch.float64).mT
    wanted = compute_expected_positions(exact, old, new)
    rounded = are_close(expect_tensor(student(exact, old, new), wanted.shape, student.name).float(), wanted.float())
    look = "The last digits are lost. Which line computes in another dtype than that of positions?" if rounded else LOOK
    expect_right_positions(student, exact, old, new, look)
    expect_right_positions(student, draw_positions(probe, old, 8)[..., ::2], old, new)
    name, right = "resize_positions in float16", compute_expected_positions(positions.half().double(), old, new)
    found = expect_tensor(student(positions.half(), old, new), right.shape, name)
    if found.dtype != torch.float16:
        raise Failure(
            f"{name} gives {format_dtype(found.dtype)}", "float16", "Which dtype has the result of your last line?"
        )
    # as bfloat16, in which 5e-2 is allowed: grid_sample, whose coordinates are half too, is off by 2e-2
    look = "Is it F.interpolate, as the exercise's text has it? Other functions may round more in half precision."
    expect_equal(found.bfloat16(), right.bfloat16(), name, TOKEN_AXES, look=look)


@resize_positions.check(guard=True, points=0.45, first=ignore_wrong_numbers(the_grid_is_resampled_bicubically))
def a_grid_that_does_not_fit_is_refused(student: Student, probe: Probe) -> None:
    """Where positions does not have 1 + rows · columns rows, ValueError names the number of its rows."""
    positions, (rows, columns), new = draw_positions_and_two_grids(probe)
    for held, old, wanted in (
        (positions, (rows, columns + 1), new),
        (positions, (rows - 1, columns), new),
        (positions, (1, rows * columns + 1), new),
        (positions, (rows, columns + 1), (rows, columns + 1)),  # nothing to resize, and wrong all the same
        (positions[:, 1:], (rows, columns), new),  # a grid without a class token's row
    ):
        described = f"{format_shape(held)} positions for an old grid of {old}"
        expect_value_error(student, (held, old, wanted), (held.shape[1],), described)


resize_positions.example("""
>>> positions = torch.tensor([[[9.0], [0.0], [0.0], [8.0], [8.0]]])
>>> resize_positions(positions, (2, 2), (2, 3)).flatten().round(decimals=3).tolist()
[9.0, 0.0, 0.0, 0.0, 8.0, 8.0, 8.0]
""")


read_mistakes(resize_positions, __name__)
declare_pairs(resize_positions, Edits(quick=True))
