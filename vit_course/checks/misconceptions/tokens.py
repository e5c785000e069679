"""Known mistakes of lesson 02, second part: the class token, and positions for another grid."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.checks.lessons.tokens import add_class_token, resize_positions, resized, with_class_token

Grid = tuple[int, int]

CLASS = "02_positions, A token that belongs to no patch"
RESIZE = "02_positions, The same picture, more patches"


def _count(tokens: Tensor, positions: Tensor) -> None:
    if positions.shape[1] != tokens.shape[1] + 1:
        raise ValueError(f"{positions.shape[1]} rows of positions for 1 + {tokens.shape[1]} tokens")


def _without_positions(tokens: Tensor, class_token: Tensor) -> Tensor:
    """The class token in front of each image's tokens."""
    return with_class_token(tokens, class_token, tokens.new_zeros(1, tokens.shape[1] + 1, tokens.shape[2]))


@add_class_token.misconception("Which index will the model read at the end?", CLASS)
def class_token_last(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token stands behind the patches, where index 0 should be its place."""
    _count(tokens, positions)
    return _without_positions(tokens, class_token).roll(-1, dims=1) + positions


@add_class_token.misconception("How many images are in tokens, and how many in class_token?", CLASS)
def class_token_not_expanded(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """One class token is concatenated with a whole batch, which torch refuses unless the batch has one image."""
    _count(tokens, positions)
    if len(tokens) > 1:
        raise RuntimeError("Sizes of tensors must match except in dimension 1.")
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
    """The positions go to the patches before the class token joins, which is left without one."""
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


@add_class_token.misconception("How long should a token be afterwards?", CLASS)
def positions_concatenated(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The positions are put beside the tokens, which makes every token twice as long."""
    _count(tokens, positions)
    joined = _without_positions(tokens, class_token)
    return torch.cat([joined, positions.expand(joined.shape)], dim=2)


@add_class_token.misconception("Along which axis do the tokens of one image lie?", CLASS)
def class_token_joined_to_the_batch(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token is concatenated along the batch, as if it were one more image."""
    _count(tokens, positions)
    raise RuntimeError("Sizes of tensors must match except in dimension 0.")


@add_class_token.misconception("Does the class token in your result still know its parameter?", CLASS)
def class_token_cut_from_its_gradient(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """The class token is copied as bare numbers, so it can never learn."""
    _count(tokens, positions)
    return with_class_token(tokens, class_token.detach(), positions)


@add_class_token.misconception("Does the table in your result still know its parameter?", CLASS)
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
    """The positions are added into the tokens that were given, so the caller's tokens are spoilt."""
    _count(tokens, positions)
    result = with_class_token(tokens, class_token, positions)
    tokens.data.add_(positions.data[:, 1:])
    return result


@add_class_token.misconception("What does broadcasting make of a table with a single row?", CLASS)
def positions_never_counted(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """Nothing counts the rows of positions, and a single row is spread over all tokens in silence."""
    rows = torch.broadcast_shapes((tokens.shape[1] + 1,), (positions.shape[1],))[0]
    return with_class_token(tokens, class_token, positions.expand(1, rows, -1))


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
def nearest_neighbour(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """Each new patch takes over the nearest old one's row, F.interpolate's default."""
    return _resampled(positions, old_grid, new_grid, "nearest")


@resize_positions.misconception("Do the outermost patches' centres lie on the edge of the picture?", RESIZE)
def corners_aligned(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The centres of the corner patches are laid on each other, as align_corners=True does."""
    return _resampled(positions, old_grid, new_grid, "bicubic", align_corners=True)


@resize_positions.misconception("What does the exercise say about antialias?", RESIZE)
def smoothed_before_shrinking(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The grid is smoothed before it shrinks, as antialias=True does."""
    return _resampled(positions, old_grid, new_grid, "bicubic", antialias=True)


@resize_positions.misconception(
    "Are two rows that stand next to each other in the table neighbours in the image?", RESIZE
)
def stretched_as_a_line(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The rows are resampled as one long line, though they come from a grid."""
    _fit(positions, old_grid)
    line = F.interpolate(positions[:, 1:].mT, new_grid[0] * new_grid[1], mode="linear").mT
    return torch.cat([positions[:, :1], line], dim=1)


@resize_positions.misconception("Which axis does F.interpolate take for the channels?", RESIZE)
def reshaped_into_a_picture(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The table is reshaped to (1, embed_dim, rows, columns) where its axes should be permuted."""
    _fit(positions, old_grid)
    patches = positions[:, 1:]
    scrambled = patches.reshape(1, patches.shape[2], -1).mT
    return resized(torch.cat([positions[:, :1], scrambled], dim=1), old_grid, new_grid)


@resize_positions.misconception("After F.interpolate, which axis holds the dimensions?", RESIZE)
def reshaped_into_a_table(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The resized picture is reshaped to (1, new patches, embed_dim) where its axes should be permuted."""
    _fit(positions, old_grid)
    right = resized(positions, old_grid, new_grid)
    return torch.cat([positions[:, :1], right[:, 1:].mT.reshape(1, -1, positions.shape[2])], dim=1)


@resize_positions.misconception("On the way in and on the way out: reshape, or permute?", RESIZE)
def reshaped_both_ways(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The table is reshaped into a picture and back, and the dimensions are taken for places both times."""
    there = reshaped_into_a_picture(positions, old_grid, new_grid)
    return torch.cat([positions[:, :1], there[:, 1:].mT.reshape(1, -1, positions.shape[2])], dim=1)


@resize_positions.misconception("What is first in old_grid, and what is first in a picture's size?", RESIZE)
def old_rows_and_columns_swapped(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """old_grid is read as (columns, rows)."""
    return resized(positions, (old_grid[1], old_grid[0]), new_grid)


@resize_positions.misconception("What is first in new_grid?", RESIZE)
def new_rows_and_columns_swapped(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """new_grid is read as (columns, rows)."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, (new_grid[1], new_grid[0]))


@resize_positions.misconception("Where does old_grid tell you the sides, when they are not equal?", RESIZE)
def square_grid_assumed(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The side of the old grid is taken to be the root of the number of patches."""
    side = int((positions.shape[1] - 1) ** 0.5)
    if side * side != positions.shape[1] - 1:
        raise RuntimeError(f"shape '[1, {side}, {side}, -1]' is invalid for this input")
    return resized(positions, (side, side), new_grid)


@resize_positions.misconception("How many rows does the new table need, and for whom is the first?", RESIZE)
def class_token_lost(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The class token's row is set aside and never put back."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid)[:, 1:]


@resize_positions.misconception("At which end of the table does the class token's row belong?", RESIZE)
def class_token_put_back_last(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The class token's row is put behind the patches' rows."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid).roll(-1, dims=1)


@resize_positions.misconception("How many patches does the grid have, and how many rows the table?", RESIZE)
def class_token_taken_for_a_patch(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """All rows are laid out as a grid, the class token's too, and there is one too many."""
    raise RuntimeError("shape is invalid for input of this size")


@resize_positions.misconception("Which dtype does your new tensor get, and which had the positions?", RESIZE)
def positions_as_float32(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The result is float32, whatever the dtype of the positions."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid).float()


@resize_positions.misconception("Who notices when the table does not belong to the old grid?", RESIZE)
def rows_never_counted(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """Nothing compares the table with the old grid, so the error comes from torch and says little."""
    if positions.shape[1] != 1 + old_grid[0] * old_grid[1]:
        raise RuntimeError("shape is invalid for input of this size")
    return resized(positions, old_grid, new_grid)
