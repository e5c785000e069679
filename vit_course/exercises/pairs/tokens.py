"""Parts of adding the class token and positions, and of resizing positions."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.two_mistakes import Parts, declare
from vit_course.exercises.checks.tokens import add_class_token, resize_positions
from vit_course.exercises.misconceptions import resizing, tokens

Grid = tuple[int, int]


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
    told: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda result, patches, positions: result,
) -> Tensor:
    tokens._count(patches, positions)
    first = token(class_token).expand(len(patches), -1, -1)
    if first_only:
        first = torch.cat([first[:1], torch.zeros_like(first[1:])])
    joined = torch.cat([patches, first] if last else [first, patches], dim=1)
    return told(added(joined, table(positions)), patches, positions)


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
            tokens.class_token_last: {"last": True},
            tokens.class_token_for_the_first_image_only: {"first_only": True},
            tokens.a_class_token_of_zeros: {"token": torch.zeros_like},
            tokens.positions_before_the_class_token: {"table": lambda rows: F.pad(rows[:, 1:], (0, 0, 1, 0))},
            tokens.positions_one_row_off: {"table": lambda rows: F.pad(rows[:, :-1], (0, 0, 1, 0))},
            tokens.one_position_for_all: {"table": lambda rows: rows[:, :1].expand(rows.shape)},
            tokens.positions_forgotten: {"table": lambda rows: torch.zeros_like(rows), "added": torch.add},
            tokens.positions_multiplied: {"added": torch.mul},
            tokens.positions_concatenated: {"added": _beside},
            tokens.class_token_cut_from_its_gradient: {"token": torch.Tensor.detach},
            tokens.positions_cut_from_their_gradient: {"table": lambda rows: rows.detach()},
            tokens.tokens_as_float32: {"told": lambda result, patches, positions: result.float()},
            tokens.tokens_changed_in_place: {"told": _spoilt},
        },
        quick=True,
    ),
)


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
    count: Callable[[Tensor, Grid], None] = resizing._fit,
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
            resizing.bilinear_for_bicubic: {"mode": "bilinear"},
            resizing.corners_aligned: {"corners": True},
            resizing.smoothed_before_shrinking: {"smooth": True},
            resizing.reshaped_into_a_picture: {"opened": _poured},
            resizing.reshaped_into_a_table: {"closed": lambda picture, embed_dim: picture.reshape(1, -1, embed_dim)},
            resizing.new_grid_read_column_by_column: {"closed": lambda picture, embed_dim: picture.mT.flatten(2).mT},
            resizing.old_rows_and_columns_swapped: {"old": lambda grid: (grid[1], grid[0])},
            resizing.new_rows_and_columns_swapped: {"new": lambda grid: (grid[1], grid[0])},
            resizing.class_token_lost: {"first": lambda row, rows: rows},
            resizing.class_token_put_back_last: {"first": lambda row, rows: torch.cat([rows, row], dim=1)},
            resizing.zeros_for_the_class_token: {
                "first": lambda row, rows: torch.cat([torch.zeros_like(row), rows], dim=1)
            },
            resizing.positions_as_float32: {"dtype": torch.float32},
            resizing.rows_never_counted: {"count": _uncounted},
        },
        quick=True,
    ),
)
