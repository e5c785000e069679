"""`mean_attention_distance`: how far heads look.

The oracle goes from patch to patch and measures with a ruler; the known mistakes do with a ruler of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone, expect_value_error
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l08_inside import LESSON

Grid = tuple[int, int]
BATCH, HEADS, PATCH_SIZE = 5, 3, 4
# as many patches as a square grid of another side would nearly have: 12 and 14 patches, neither 3 nor 3 in a row
WIDE, TALL = (2, 6), (7, 2)


def right_distance(weights: Tensor, grid_size: Grid, patch_size: float) -> Tensor:
    """The oracle: (num_heads,)."""
    num_patches = grid_size[0] * grid_size[1]
    shares = weights.double()[..., -num_patches:, -num_patches:]
    shares = shares / shares.sum(-1, keepdim=True)
    total = torch.zeros(weights.shape[1], dtype=torch.float64, device=weights.device)
    for query in range(num_patches):
        for key in range(num_patches):
            total += shares[:, :, query, key].mean(0) * patch_size * distance(query, key, grid_size)
    return (total / num_patches).to(weights.dtype)


def distance(query: int, key: int, grid_size: Grid) -> float:
    """Between two patches, in patches, as the crow flies."""
    (row, column), (other_row, other_column) = divmod(query, grid_size[1]), divmod(key, grid_size[1])
    return math.hypot(row - other_row, column - other_column)


def attention_to(keys: list[list[int]], num_patches: int) -> Tensor:
    """Weights (1, num_heads, num_patches, num_patches): in head h, patch q looks at patch ``keys[h][q]`` alone."""
    return torch.nn.functional.one_hot(torch.tensor([keys]), num_patches).float()


def random_attention(probe: Probe, grid_size: Grid, class_token: bool, dtype: torch.dtype = torch.float32) -> Tensor:
    """(BATCH, HEADS, tokens, tokens), rows that sum to 1 and prefer some keys."""
    tokens = grid_size[0] * grid_size[1] + class_token
    return probe.normal(BATCH, HEADS, tokens, tokens, scale=2.0).softmax(-1).to(dtype)


mean_attention_distance = Exercise("mean_attention_distance", LESSON, in_training=InTraining.UNSEEN)


@mean_attention_distance.check(guard=True)
def each_head_gets_one_number(student: Student, probe: Probe) -> None:
    """Each head gets one number, however many images and patches there are."""
    for grid_size in (WIDE, TALL):
        distances = student(random_attention(probe, grid_size, class_token=False), grid_size, PATCH_SIZE)
        expect_tensor(distances, (HEADS,), student.name)


@mean_attention_distance.check(needs=each_head_gets_one_number)
def known_distances_are_found(student: Student, probe: Probe) -> None:
    """A patch that looks at itself has a distance of 0; the next row or column is patch_size pixels away."""
    rows, columns = grid_size = (2, 6)
    places = [divmod(patch, columns) for patch in range(rows * columns)]
    heads = {
        "itself": lambda row, column: (row, column),
        "the patch beside it": lambda row, column: (row, column ^ 1),
        "the patch in the other row": lambda row, column: (1 - row, column),
        "the patch three columns off": lambda row, column: (row, (column + 3) % columns),
        "the patch at an angle": lambda row, column: (1 - row, column ^ 1),
    }
    looked_at = [[key(*place) for place in places] for key in heads.values()]
    weights = attention_to([[row * columns + column for row, column in head] for head in looked_at], rows * columns)
    expected = right_distance(weights, grid_size, PATCH_SIZE)

    def describe(found: Tensor, right: Tensor) -> tuple[str, str] | None:
        for name, here, there in zip(heads, found.tolist(), right.tolist(), strict=True):
            if not math.isclose(here, there, rel_tol=1e-4, abs_tol=1e-4):
                return f"a head in which each patch looks at {name} gets {here:.4g}", f"{there:.4g} pixels"
        return None

    found = expect_tensor(student(weights, grid_size, PATCH_SIZE), (len(heads),), student.name)
    name = f"mean_attention_distance on 2 rows and 6 columns of patches of {PATCH_SIZE} pixels"
    look = "Put a ruler on the centers of two such patches. Which rows, columns and units does your code use?"
    seen_and_expected = describe(found, expected)
    if seen_and_expected:
        raise Failure(f"{name}: {seen_and_expected[0]}", seen_and_expected[1], look)
    expect_equal(found, expected, name, ("head",), look=look)


@mean_attention_distance.check(needs=each_head_gets_one_number)
def each_key_counts_by_its_weight(student: Student, probe: Probe) -> None:
    """Each key counts by its weight; all images and all query patches count the same, on wide and on tall grids."""
    for grid_size in (WIDE, TALL):
        weights = random_attention(probe, grid_size, class_token=False)
        expected = right_distance(weights, grid_size, PATCH_SIZE)
        subject = f"mean_attention_distance on {grid_size[0]} rows and {grid_size[1]} columns"
        look = "One row of weights, one row of distances: how do they become one number, and which axes remain?"
        expect_equal(student(weights, grid_size, PATCH_SIZE), expected, subject, ("head",), look=look)


@mean_attention_distance.check(needs=each_head_gets_one_number)
def a_class_token_is_left_out(student: Student, probe: Probe) -> None:
    """A class token in front is left out, and then each patch's weights are divided by their sum again."""
    weights = random_attention(probe, WIDE, class_token=True)
    expected = right_distance(weights, WIDE, PATCH_SIZE)
    subject = "mean_attention_distance with a class token in front"
    look = "Where is the class token among queries and keys, and what do the rows sum to once it is gone?"
    expect_equal(student(weights, WIDE, PATCH_SIZE), expected, subject, ("head",), look=look)


@mean_attention_distance.check(needs=each_key_counts_by_its_weight, guard=True)
def the_dtype_is_kept(student: Student, probe: Probe) -> None:
    """float64 weights give float64 distances, to the last digits."""
    weights = random_attention(probe, TALL, class_token=True, dtype=torch.float64)
    subject = "mean_attention_distance of float64 weights"
    expect_equal(student(weights, TALL, PATCH_SIZE), right_distance(weights, TALL, PATCH_SIZE), subject, ("head",))


@mean_attention_distance.check(needs=each_head_gets_one_number, worth=0.5, guard=True)
def it_computes_where_the_weights_are(student: Student, probe: Probe) -> None:
    """The distances lie on the device of the weights."""
    expect_device_of_input(student, random_attention(probe, WIDE, class_token=True), WIDE, PATCH_SIZE)


@mean_attention_distance.check(needs=each_head_gets_one_number, guard=True)
def the_weights_are_left_alone(student: Student, probe: Probe) -> None:
    """The weights that go in are not changed."""
    student(random_attention(probe, WIDE, class_token=True), WIDE, PATCH_SIZE)
    expect_left_alone(student)


@mean_attention_distance.check(needs=each_head_gets_one_number, guard=True)
def a_grid_that_does_not_fit_is_refused(student: Student, probe: Probe) -> None:
    """If there are neither as many tokens as patches nor one more, a ValueError names tokens, rows and columns."""
    for grid_size in ((4, 5), (2, 5)):
        weights = random_attention(probe, WIDE, class_token=False)
        described = f"12 tokens for {grid_size[0]} rows and {grid_size[1]} columns"
        expect_value_error(student, (weights, grid_size, PATCH_SIZE), (12, *grid_size), described)


mean_attention_distance.example("""
>>> mean_attention_distance(torch.tensor([[[[0.5, 0.5], [0.0, 1.0]]]]), (1, 2), 16)
tensor([4.])
""")


FAR = "08_inside, How far do heads look?"
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


def _by_patch(patches: Tensor, grid_size: Grid, ruler: Ruler = distance, device: torch.device | None = None) -> Tensor:
    """(batch, num_heads, num_patches): for each query patch the sum of its weights times the ruler's lengths."""
    numbers = range(patches.shape[-1])
    lengths = [[ruler(query, key, grid_size) for key in numbers] for query in numbers]
    return F.linear(patches, torch.tensor(lengths, dtype=patches.dtype, device=device or patches.device)).diagonal(
        dim1=-2, dim2=-1
    )


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


@mean_attention_distance.misconception("Is the distance measured straight, or along rows and columns?", FAR)
def rows_plus_columns(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The differences in row and column are added up, but the straight-line distance is asked for."""

    return _measured(weights, grid_size, patch_size, _around_the_corner)


@mean_attention_distance.misconception("Which patch comes after the last one of a row?", FAR)
def rows_and_columns_swapped(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """Rows and columns of the grid are swapped, which goes unnoticed on square pictures."""
    return _measured(weights, grid_size, patch_size, lambda query, key, grid: distance(query, key, grid[::-1]))


@mean_attention_distance.misconception("Has every picture as many rows as columns?", FAR)
def square_grid_assumed(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The side of the grid is the root of the number of patches, and grid_size is not used."""
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


@mean_attention_distance.misconception("Where among the tokens is the class token?", FAR)
def last_token_dropped(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The last token is dropped instead of the first, so the class token is taken for the top left patch."""
    _patches_alone(weights, grid_size)
    num_patches = grid_size[0] * grid_size[1]
    patches = _shared_out(weights[..., :num_patches, :num_patches])
    return _by_patch(patches, grid_size).mean((0, 2)) * patch_size


@mean_attention_distance.misconception("Which axis should be left at the end?", FAR)
def averaged_over_the_heads(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The mean runs over the heads, so that each image gets a number and not each head."""
    return _by_patch(_shared_out(_patches_alone(weights, grid_size)), grid_size).mean((1, 2)) * patch_size


@mean_attention_distance.misconception("Which axes should the answer have?", FAR)
def images_kept_apart(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The mean over the images is missing, so each image and head has a number."""
    return _by_patch(_shared_out(_patches_alone(weights, grid_size)), grid_size).mean(2) * patch_size


@mean_attention_distance.misconception("How large can the distance become when the grid has more patches?", FAR)
def query_patches_summed(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The query patches are added up where their mean is asked for."""
    return _by_patch(_shared_out(_patches_alone(weights, grid_size)), grid_size).mean(0).sum(1) * patch_size


@mean_attention_distance.misconception("What do the weights of one query sum to?", FAR)
def keys_averaged_too(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The mean is taken over the keys as well, but the weighted sum is a mean over them already."""
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
    return _measured(weights, grid_size, patch_size, distance).float()


@mean_attention_distance.misconception("What should a caller read when the grid is wrong?", FAR)
def misfit_left_to_torch(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """Nothing is tested, so a grid that does not fit ends in torch's own error, or in a wrong number."""
    num_patches = grid_size[0] * grid_size[1]
    if num_patches > weights.shape[-1]:
        raise RuntimeError("The size of tensor a must match the size of tensor b at non-singleton dimension 3")
    return right_distance(weights, grid_size, patch_size)


@mean_attention_distance.misconception("On which device is a tensor that is made without naming one?", FAR)
def distances_on_the_cpu(weights: Tensor, grid_size: Grid, patch_size: int) -> Tensor:
    """The table of distances is made on the CPU, wherever the weights are, and on a GPU the two cannot be combined."""
    patches = _shared_out(_patches_alone(weights, grid_size))
    return (_by_patch(patches, grid_size, device=torch.device("cpu")) * patch_size).mean((0, 2))


Means = Callable[[Tensor], Tensor]


def _distances(
    weights: Tensor,
    grid_size: Grid,
    patch_size: int,
    *,
    unit: Callable[[int], float] = float,
    ruler: Ruler = distance,
    chosen: Callable[[Tensor, Grid], Tensor] = _patches_alone,
    shared: Callable[[Tensor], Tensor] = _shared_out,
    peaked: Callable[[Tensor], Tensor] = lambda patches: patches,
    mean: Means = lambda by_patch: by_patch.mean((0, 2)),
    postprocess: Callable[[Tensor, Tensor], Tensor] = lambda distances, weights: distances,
) -> Tensor:
    _patches_alone(weights, grid_size)
    patches = peaked(shared(chosen(weights, grid_size)))
    return postprocess(mean(_by_patch(patches, grid_size, ruler)) * unit(patch_size), weights)


def _around_the_corner(query: int, key: int, grid: Grid) -> float:
    (row, column), (other_row, other_column) = divmod(query, grid[1]), divmod(key, grid[1])
    return abs(row - other_row) + abs(column - other_column)


def _without_the_last(weights: Tensor, grid_size: Grid) -> Tensor:
    num_patches = grid_size[0] * grid_size[1]
    return weights[..., :num_patches, :num_patches]


def _on_a_square(query: int, key: int, grid: Grid) -> float:
    side = int((grid[0] * grid[1]) ** 0.5)
    return distance(query, key, (side, side))


def _strongest(patches: Tensor) -> Tensor:
    return F.one_hot(patches.argmax(-1), patches.shape[-1]).to(patches.dtype)


declare(
    mean_attention_distance,
    Parts(
        _distances,
        {
            in_patches_not_pixels: {"unit": lambda patch_size: 1.0},
            rows_plus_columns: {"ruler": _around_the_corner},
            rows_and_columns_swapped: {"ruler": lambda query, key, grid: distance(query, key, grid[::-1])},
            square_grid_assumed: {"ruler": _on_a_square},
            distance_along_the_sentence: {"ruler": lambda query, key, grid: abs(query - key)},
            share_of_the_class_token_lost: {"shared": lambda patches: patches},
            last_token_dropped: {"chosen": _without_the_last},
            averaged_over_the_heads: {"mean": lambda by_patch: by_patch.mean((1, 2))},
            images_kept_apart: {"mean": lambda by_patch: by_patch.mean(2)},
            query_patches_summed: {"mean": lambda by_patch: by_patch.mean(0).sum(1)},
            strongest_key_only: {"peaked": _strongest},
            always_float32: {"postprocess": lambda distances, weights: distances.float()},
        },
    ),
)
