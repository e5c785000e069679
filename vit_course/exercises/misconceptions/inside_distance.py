"""Known mistakes of lesson 07: how far heads look. Each goes from patch to patch with a ruler of its own."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.exercises.checks.inside_distance import Grid, distance, mean_attention_distance, right_distance

FAR = "07_inside, How far do heads look?"
Ruler = Callable[[int, int, Grid], float]


def _patches_alone(weights: Tensor, grid_size: Grid) -> Tensor:
    """Attention among patches, as it is; ValueError where the grid does not fit."""
    rows, columns = grid_size
    tokens, num_patches = weights.shape[-1], rows * columns
    if tokens not in (num_patches, num_patches + 1):
        raise ValueError(f"{tokens} tokens do not fit {rows} rows and {columns} columns")
    return weights[..., -num_patches:, -num_patches:]


def _shared_out(weights: Tensor) -> Tensor:
    return F.normalize(weights, p=1.0, dim=-1)


def _by_patch(patches: Tensor, grid_size: Grid, ruler: Ruler = distance) -> Tensor:
    """(batch, num_heads, num_patches): for each query patch the sum of its weights times the ruler's lengths."""
    numbers = range(patches.shape[-1])
    lengths = [[ruler(query, key, grid_size) for key in numbers] for query in numbers]
    return F.linear(patches, torch.tensor(lengths, dtype=patches.dtype)).diagonal(dim1=-2, dim2=-1)


def _measured(weights: Tensor, grid_size: Grid, patch_size: float, ruler: Ruler) -> Tensor:
    """All as it should be but for the ruler."""
    patches = _shared_out(_patches_alone(weights, grid_size))
    return _by_patch(patches, grid_size, ruler).mean((0, 2)) * patch_size


@mean_attention_distance.misconception("In which unit is the answer asked for?", FAR)
def in_patches_not_pixels(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The distance is counted in patches."""
    return _measured(weights, grid_size, 1, distance)


@mean_attention_distance.misconception("How far apart are two points that differ by 3 and by 4?", FAR)
def squared_distance(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """Squares of distances are averaged, and the unit is a squared pixel."""
    return _measured(weights, grid_size, patch_size**2, lambda query, key, grid: distance(query, key, grid) ** 2)


@mean_attention_distance.misconception("Does a head have to walk along the streets?", FAR)
def rows_plus_columns(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The differences of row and column are added up: the way round the corner, where the straight one is asked."""

    def around_the_corner(query: int, key: int, grid: Grid) -> float:
        (row, column), (other_row, other_column) = divmod(query, grid[1]), divmod(key, grid[1])
        return abs(row - other_row) + abs(column - other_column)

    return _measured(weights, grid_size, patch_size, around_the_corner)


@mean_attention_distance.misconception("Which patch comes after the last one of a row?", FAR)
def rows_and_columns_swapped(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """Rows and columns of the grid are swapped, which goes unnoticed on square pictures."""
    return _measured(weights, grid_size, patch_size, lambda query, key, grid: distance(query, key, grid[::-1]))


@mean_attention_distance.misconception("Has every picture as many rows as columns?", FAR)
def square_grid_assumed(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The side of the grid is the root of the number of patches, and grid_size is not looked at."""
    side = math.isqrt(grid_size[0] * grid_size[1])
    return _measured(weights, grid_size, patch_size, lambda query, key, _: distance(query, key, (side, side)))


@mean_attention_distance.misconception("How far is it from token 11 to token 12 when a new row begins there?", FAR)
def distance_along_the_sentence(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The distance is the difference of the tokens' numbers, as if the patches stood in one long line."""
    return _measured(weights, grid_size, patch_size, lambda query, key, _: abs(query - key))


@mean_attention_distance.misconception("Where in the picture is the class token?", FAR)
def class_token_at_no_distance(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The class token stays among the tokens with a distance of 0, though it lies nowhere in the picture."""
    by_patch = _by_patch(_patches_alone(weights, grid_size), grid_size).sum(2) / weights.shape[-1]
    return by_patch.mean(0) * patch_size


@mean_attention_distance.misconception("What do the rows sum to when the class token's share is cut off?", FAR)
def share_of_the_class_token_lost(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The class token is dropped, but the rows are not made to sum to 1 again, so every distance is too short."""
    return _by_patch(_patches_alone(weights, grid_size), grid_size).mean((0, 2)) * patch_size


@mean_attention_distance.misconception("At which end of the sentence does the class token stand?", FAR)
def last_token_dropped(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The last token is dropped in place of the first, so the class token plays the top left patch."""
    _patches_alone(weights, grid_size)
    num_patches = grid_size[0] * grid_size[1]
    patches = _shared_out(weights[..., :num_patches, :num_patches])
    return _by_patch(patches, grid_size).mean((0, 2)) * patch_size


@mean_attention_distance.misconception("Which axis should be left at the end?", FAR)
def averaged_over_the_heads(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The mean runs over the heads, so that each image gets a number and not each head."""
    return _by_patch(_shared_out(_patches_alone(weights, grid_size)), grid_size).mean((1, 2)) * patch_size


@mean_attention_distance.misconception("How many images came in, and does the answer speak of each?", FAR)
def images_kept_apart(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The mean over the images is missing, so each image and head has a number."""
    return _by_patch(_shared_out(_patches_alone(weights, grid_size)), grid_size).mean(2) * patch_size


@mean_attention_distance.misconception("How large can the distance become when the grid has more patches?", FAR)
def query_patches_summed(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The query patches are added up where their mean is asked for."""
    return _by_patch(_shared_out(_patches_alone(weights, grid_size)), grid_size).mean(0).sum(1) * patch_size


@mean_attention_distance.misconception("What do the weights of one query sum to before anybody averages?", FAR)
def keys_averaged_too(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The mean is taken over the keys as well, but the weights have made a mean of them already."""
    return right_distance(weights, grid_size, patch_size / _patches_alone(weights, grid_size).shape[-1])


@mean_attention_distance.misconception("Does a head look at one patch, or a little at all of them?", FAR)
def strongest_key_only(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """Only the patch with the largest weight is measured, as if a head looked nowhere else."""
    patches = _patches_alone(weights, grid_size)
    strongest = F.one_hot(patches.argmax(-1), patches.shape[-1]).to(weights.dtype)
    return right_distance(strongest, grid_size, patch_size)


@mean_attention_distance.misconception("Does `/=` make a new tensor?", FAR)
def written_into_the_weights(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The rows are divided in the caller's own tensor."""
    distances = right_distance(weights, grid_size, patch_size)
    patches = _patches_alone(weights, grid_size)
    patches /= patches.sum(-1, keepdim=True)
    return distances


@mean_attention_distance.misconception("Which line makes a new tensor, and which dtype does it choose?", FAR)
def always_float32(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The answer is float32 whatever the weights are."""
    return right_distance(weights, grid_size, patch_size).float()


@mean_attention_distance.misconception("What would you like to read when the grid is wrong?", FAR)
def misfit_left_to_torch(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """Nothing is tested, so a grid that does not fit ends in torch's own error, or in a wrong number."""
    num_patches = grid_size[0] * grid_size[1]
    if num_patches > weights.shape[-1]:
        raise RuntimeError("The size of tensor a must match the size of tensor b at non-singleton dimension 3")
    return right_distance(weights, grid_size, patch_size)


@mean_attention_distance.misconception("On which device is a tensor that nobody has sent anywhere?", FAR)
def distances_on_the_cpu(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The table of distances is made on the CPU, wherever the weights are, and on a GPU the two do not meet."""
    patches = _shared_out(_patches_alone(weights, grid_size))
    return (_by_patch(patches, grid_size) * patch_size).mean((0, 2))
