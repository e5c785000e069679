"""`resize_positions`: learned positions for another grid of patches.

The oracle is ``F.grid_sample``, which looks up a picture at given places.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor, shape
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_input_gradients, expect_value_error
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify.patchify.claims import on_the_cpu
from vit_course.exercises.l02_positions import LESSON
from vit_course.exercises.l02_positions.add_class_token import TOKEN_AXES
from vit_course.exercises.l02_positions.sinusoidal_positions import vector_text
from vit_course.exercises.l02_positions.sinusoidal_positions_2d import GRIDS

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

RESIZE = "02_positions, The same picture, more patches"


def _fit(positions: Tensor, grid: Grid) -> None:
    if positions.shape[1] != 1 + grid[0] * grid[1]:
        raise ValueError(f"{positions.shape[1]} rows for a grid of {grid}")


def _resampled(positions: Tensor, old_grid: Grid, new_grid: Grid, mode: str, **options: bool) -> Tensor:
    """The grid's rows under another mode or option of torch's interpolation."""
    _fit(positions, old_grid)
    columns = [positions[0, 1:, dimension].reshape(1, 1, *old_grid) for dimension in range(positions.shape[2])]
    made = [F.interpolate(column, new_grid, mode=mode, **options).flatten() for column in columns]
    return torch.cat([positions[:, :1], torch.stack(made, dim=1)[None]], dim=1)


@resize_positions.misconception("Which mode did the exercise ask for?", RESIZE)
def bilinear_for_bicubic(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The grid is resampled with bilinear interpolation."""
    return _resampled(positions, old_grid, new_grid, "bilinear")


@resize_positions.misconception("Which mode does F.interpolate take when you name none?", RESIZE)
def nearest_neighbor(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """Each new patch takes over the nearest old one's row, F.interpolate's default."""
    return _resampled(positions, old_grid, new_grid, "nearest")


@resize_positions.misconception("Do the outermost patches' centers lie on the edge of the picture?", RESIZE)
def corners_aligned(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The centers of the corner patches are laid on each other, as align_corners=True does."""
    return _resampled(positions, old_grid, new_grid, "bicubic", align_corners=True)


@resize_positions.misconception("What does the exercise say about antialias?", RESIZE)
def smoothed_before_shrinking(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The grid is smoothed before it shrinks, as antialias=True does."""
    return _resampled(positions, old_grid, new_grid, "bicubic", antialias=True)


@resize_positions.misconception(
    "Are two rows that stand next to each other in the table neighbors in the image?", RESIZE
)
def stretched_as_a_line(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The rows are resampled as one long line, though they come from a grid."""
    _fit(positions, old_grid)
    line = F.interpolate(positions[:, 1:].mT, new_grid[0] * new_grid[1], mode="linear").mT
    return torch.cat([positions[:, :1], line], dim=1)


@resize_positions.misconception("Which axis does F.interpolate take for the channels?", RESIZE)
def reshaped_into_a_picture(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """A reshape to (1, embed_dim, rows, columns) moves no number, so each picture mixes dimensions and places."""
    _fit(positions, old_grid)
    patches = positions[:, 1:]
    scrambled = patches.reshape(1, patches.shape[2], -1).mT
    return resized(torch.cat([positions[:, :1], scrambled], dim=1), old_grid, new_grid)


@resize_positions.misconception("After F.interpolate, which axis holds the dimensions?", RESIZE)
def reshaped_into_a_table(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """A reshape to (1, new patches, embed_dim) moves no number, so each row holds a strip of one dimension."""
    _fit(positions, old_grid)
    right = resized(positions, old_grid, new_grid)
    return torch.cat([positions[:, :1], right[:, 1:].mT.reshape(1, -1, positions.shape[2])], dim=1)


@resize_positions.misconception("Does a reshape ever change which numbers are neighbors in memory?", RESIZE)
def reshaped_both_ways(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The table is reshaped into a picture and back, and the dimensions are taken for places both times."""
    there = reshaped_into_a_picture(positions, old_grid, new_grid)
    return torch.cat([positions[:, :1], there[:, 1:].mT.reshape(1, -1, positions.shape[2])], dim=1)


@resize_positions.misconception(
    "Which axis of your picture does F.interpolate take for the channels?", RESIZE, InTraining.STOPS
)
def dimensions_left_last(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """F.interpolate is given (1, rows, columns, embed_dim), so it resizes columns and dimensions."""
    _fit(positions, old_grid)
    picture = positions[:, 1:].unflatten(1, old_grid)
    wrong = F.interpolate(picture, new_grid, mode="bicubic").reshape(1, -1, positions.shape[2])  # raises, as a rule
    return torch.cat([positions[:, :1], wrong], dim=1)


@resize_positions.misconception("On the way out: which axis runs fastest, the row or the column?", RESIZE)
def new_grid_read_column_by_column(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The resized picture is unrolled down its columns, where patches run along the rows."""
    _fit(positions, old_grid)
    made = resized(positions, old_grid, new_grid)
    turned = made[:, 1:].unflatten(1, new_grid).transpose(1, 2).flatten(1, 2)
    return torch.cat([made[:, :1], turned], dim=1)


@resize_positions.misconception(
    "What is first in old_grid, and what is first in a picture's size?", RESIZE, InTraining.UNSEEN
)
def old_rows_and_columns_swapped(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """old_grid is read as (columns, rows)."""
    _fit(positions, old_grid)
    return resized(positions, (old_grid[1], old_grid[0]), new_grid)


@resize_positions.misconception("What is first in new_grid?", RESIZE, InTraining.UNSEEN)
def new_rows_and_columns_swapped(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """new_grid is read as (columns, rows)."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, (new_grid[1], new_grid[0]))


@resize_positions.misconception(
    "Where does old_grid tell you the sides, when they are not equal?", RESIZE, InTraining.UNSEEN
)
def square_grid_assumed(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The side of the old grid is taken to be the root of the number of patches."""
    side = int((positions.shape[1] - 1) ** 0.5)
    positions[:, 1:].reshape(1, side, side, positions.shape[2])
    return resized(positions, (side, side), new_grid)


@resize_positions.misconception(
    "How many rows does the new table need, and for whom is the first?", RESIZE, InTraining.STOPS
)
def class_token_lost(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The class token's row is set aside and never put back."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid)[:, 1:]


@resize_positions.misconception("At which end of the table does the class token's row belong?", RESIZE)
def class_token_put_back_last(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The class token's row is put behind the patches' rows."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid).roll(-1, dims=1)


@resize_positions.misconception("Which row of positions have you not used?", RESIZE)
def zeros_for_the_class_token(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """A row of zeros is put in front, and the class token's own is not used."""
    _fit(positions, old_grid)
    made = resized(positions, old_grid, new_grid)
    return torch.cat([torch.zeros_like(made[:, :1]), made[:, 1:]], dim=1)


@resize_positions.misconception(
    "How many patches does the grid have, and how many rows the table?", RESIZE, InTraining.STOPS
)
def class_token_taken_for_a_patch(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """All rows are laid out as a grid, the class token's too, and there is one too many."""
    _fit(positions, old_grid)
    return positions.reshape(1, *old_grid, positions.shape[2])


@resize_positions.misconception(
    "Which dtype does your new tensor get, and which had the positions?", RESIZE, InTraining.UNSEEN
)
def positions_as_float32(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The result is float32, whatever the dtype of the positions."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid).float()


@resize_positions.misconception("Which line of yours compares the table with the old grid?", RESIZE, InTraining.UNSEEN)
def rows_never_counted(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """Nothing compares the table with the old grid, so the error comes from torch and says little."""
    positions[:, 1:].reshape(1, *old_grid, positions.shape[2])
    return resized(positions, old_grid, new_grid)


@resize_positions.misconception(
    "Which argument of F.interpolate takes a size in rows and columns?", RESIZE, InTraining.UNSEEN
)
def scale_factor_for_the_size(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """F.interpolate is given a scale_factor, and for some sizes the division leaves it a row or a column short."""
    _fit(positions, old_grid)
    factors = (new_grid[0] / old_grid[0], new_grid[1] / old_grid[1])
    made = F.interpolate(positions[:, 1:].mT.unflatten(2, old_grid), scale_factor=factors, mode="bicubic")
    return torch.cat([positions[:, :1], made.flatten(2).mT], dim=1)


@resize_positions.misconception("Are two grids the same when they have as many patches?", RESIZE, InTraining.UNSEEN)
def as_many_patches_taken_for_the_same_grid(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """A grid of other sides and as many patches is taken for the old one, and nothing is resampled."""
    _fit(positions, old_grid)
    if old_grid[0] * old_grid[1] == new_grid[0] * new_grid[1]:
        return positions
    return resized(positions, old_grid, new_grid)


@resize_positions.misconception(
    "By which operations does a gradient get from your result back to the positions?", RESIZE, InTraining.UNSEEN
)
def positions_cut_from_their_gradient(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The positions are copied as bare numbers, so they can no longer learn."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid).detach()


@resize_positions.misconception(
    "By which operations does a gradient get from your copy back to the positions?", RESIZE, InTraining.UNSEEN
)
def copied_without_gradient_at_the_same_grid(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """Where the grid stays, the positions are copied as bare numbers, so they can no longer learn."""
    _fit(positions, old_grid)
    return positions.detach().clone() if old_grid == new_grid else resized(positions, old_grid, new_grid)


@resize_positions.misconception(
    "On which device does your new tensor lie, and on which the positions?", RESIZE, InTraining.UNSEEN
)
def table_made_on_the_cpu(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The new table is a new tensor on the CPU, wherever the positions are."""
    _fit(positions, old_grid)
    return on_the_cpu(resized(positions, old_grid, new_grid))


def _resized(
    positions: Tensor,
    old_grid: Grid,
    new_grid: Grid,
    *,
    mode: str = "bicubic",
    corners: bool | None = None,
    smooth: bool = False,
    old: Callable[[Grid], Grid] = lambda grid: grid,
    new: Callable[[Grid], Grid] = lambda grid: grid,
    count: Callable[[Tensor, Grid], None] = _fit,
    opened: Callable[[Tensor, Grid], Tensor] = lambda rows, grid: rows.mT.unflatten(2, grid),
    closed: Callable[[Tensor, int], Tensor] = lambda picture, embed_dim: picture.flatten(2).mT,
    first: Callable[[Tensor, Tensor], Tensor] = lambda row, rows: torch.cat([row, rows], dim=1),
    dtype: torch.dtype | None = None,
) -> Tensor:
    count(positions, old_grid)
    picture = opened(positions[:, 1:].double(), old(old_grid))
    made = F.interpolate(picture, new(new_grid), mode=mode, align_corners=corners, antialias=smooth)
    rows = closed(made, positions.shape[2]).to(positions.dtype)
    return first(positions[:, :1], rows).to(dtype or positions.dtype)


def _poured(rows: Tensor, grid: Grid) -> Tensor:
    return rows.reshape(1, rows.shape[2], *grid)


def _uncounted(positions: Tensor, grid: Grid) -> None:
    positions[:, 1:].reshape(1, *grid, positions.shape[2])


declare(
    resize_positions,
    Parts(
        _resized,
        {
            bilinear_for_bicubic: {"mode": "bilinear"},
            corners_aligned: {"corners": True},
            smoothed_before_shrinking: {"smooth": True},
            reshaped_into_a_picture: {"opened": _poured},
            reshaped_into_a_table: {"closed": lambda picture, embed_dim: picture.reshape(1, -1, embed_dim)},
            new_grid_read_column_by_column: {"closed": lambda picture, embed_dim: picture.mT.flatten(2).mT},
            old_rows_and_columns_swapped: {"old": lambda grid: (grid[1], grid[0])},
            new_rows_and_columns_swapped: {"new": lambda grid: (grid[1], grid[0])},
            class_token_lost: {"first": lambda row, rows: rows},
            class_token_put_back_last: {"first": lambda row, rows: torch.cat([rows, row], dim=1)},
            zeros_for_the_class_token: {"first": lambda row, rows: torch.cat([torch.zeros_like(row), rows], dim=1)},
            positions_as_float32: {"dtype": torch.float32},
            rows_never_counted: {"count": _uncounted},
        },
        quick=True,
    ),
)
