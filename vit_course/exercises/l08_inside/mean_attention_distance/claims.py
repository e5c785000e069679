"""`mean_attention_distance`: how far heads look.

The oracle goes from patch to patch and measures with a ruler.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_inputs_unchanged,
    expect_value_error,
    ignore_wrong_numbers,
)
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l08_inside import LESSON

Grid = tuple[int, int]
BATCH, HEADS, PATCH_SIZE = 5, 3, 4
# as many patches as a square grid of another side would nearly have: 12 and 14 patches, neither 3 nor 3 in a row
WIDE, TALL = (2, 6), (7, 2)


def compute_expected_distances(weights: Tensor, grid_size: Grid, patch_size: float) -> Tensor:
    """The oracle: (num_heads,)."""
    num_patches = grid_size[0] * grid_size[1]
    shares = weights.double()[..., -num_patches:, -num_patches:]
    shares = shares / shares.sum(-1, keepdim=True)
    total = torch.zeros(weights.shape[1], dtype=torch.float64, device=weights.device)
    for query in range(num_patches):
        for key in range(num_patches):
            total += shares[:, :, query, key].mean(0) * patch_size * distance_between_patches(query, key, grid_size)
    return (total / num_patches).to(weights.dtype)


def distance_between_patches(query: int, key: int, grid_size: Grid) -> float:
    """Between two patches, in patches, as the crow flies."""
    (row, column), (other_row, other_column) = divmod(query, grid_size[1]), divmod(key, grid_size[1])
    return math.hypot(row - other_row, column - other_column)


def make_attention_to_keys(keys: list[list[int]], num_patches: int) -> Tensor:
    """Weights (1, num_heads, num_patches, num_patches): in head h, patch q looks at patch ``keys[h][q]`` alone."""
    return torch.nn.functional.one_hot(torch.tensor([keys]), num_patches).float()


def draw_case(
    probe: Probe,
    shown: Grid,
    class_token: bool = False,
    dtype: torch.dtype = torch.float32,
    images: int | None = None,
    num_heads: int | None = None,
) -> tuple[Tensor, Grid, int]:
    """Weights (batch, num_heads, tokens, tokens) that prefer some keys, the grid of their patches, and patch_size.

    The grid is the one that is shown, or in grading another one that is as wide or tall.
    """
    batch, heads = probe.sizes(2, high=5, shown=(BATCH, HEADS))
    rows, columns = grid_size = draw_grid(probe, shown)
    tokens = rows * columns + class_token
    weights = probe.normal(images or batch, num_heads or heads, tokens, tokens, scale=2.0).softmax(-1).to(dtype)
    return weights, grid_size, probe.choice((2, 3, 5, 8), shown=PATCH_SIZE)


def draw_grid(probe: Probe, shown: Grid) -> Grid:
    """The one that is shown, or in grading another one that is as wide or tall."""
    short, long = sorted(probe.sizes(2, high=7, shown=shown))
    return (short, long) if shown[0] < shown[1] else (long, short)


mean_attention_distance = Exercise("mean_attention_distance", LESSON, in_training=InTraining.UNSEEN)


@mean_attention_distance.check(guard=True)
def each_head_gets_one_number(student: Student, probe: Probe) -> None:
    """Each head gets one number, however many images and patches there are."""
    for shown in (WIDE, TALL):
        weights, *others = draw_case(probe, shown)
        expect_tensor(student(weights, *others), weights.shape[1:2], student.name)


@mean_attention_distance.check(needs=each_head_gets_one_number, points=0.5)
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
    weights = make_attention_to_keys(
        [[row * columns + column for row, column in head] for head in looked_at], rows * columns
    )
    expected = compute_expected_distances(weights, grid_size, PATCH_SIZE)

    def describe_first_wrong_head(found: Tensor, right: Tensor) -> tuple[str, str] | None:
        for name, here, there in zip(heads, found.tolist(), right.tolist(), strict=True):
            if not math.isclose(here, there, rel_tol=1e-4, abs_tol=1e-4):
                return f"a head in which each patch looks at {name} gets {here:.4g}", f"{there:.4g} pixels"
        return None

    found = expect_tensor(student(weights, grid_size, PATCH_SIZE), (len(heads),), student.name)
    name = f"mean_attention_distance on 2 rows and 6 columns of patches of {PATCH_SIZE} pixels"
    look = "Put a ruler on the centers of two such patches. Which rows, columns and units does your code use?"
    seen_and_expected = describe_first_wrong_head(found, expected)
    if seen_and_expected:
        raise Failure(f"{name}: {seen_and_expected[0]}", seen_and_expected[1], look)
    expect_equal(found, expected, name, ("head",), look=look)
    grid_size = draw_grid(probe, probe.choice((WIDE, TALL), shown=TALL))
    patches = grid_size[0] * grid_size[1]
    weights = make_attention_to_keys([probe.permutation(patches).tolist() for _ in range(3)], patches)
    _expect_right_distances(student, (weights, grid_size, probe.choice((2, 4, 7))), _describe_grid(grid_size), look)


def _describe_grid(grid_size: Grid) -> str:
    return f"on {grid_size[0]} rows and {grid_size[1]} columns"


def _expect_right_distances(student: Student, case: tuple[Tensor, Grid, int], described: str, look: str) -> None:
    expect_equal(student(*case), compute_expected_distances(*case), f"{student.name} {described}", ("head",), look=look)


@mean_attention_distance.check(needs=each_head_gets_one_number, points=0.75)
def each_key_counts_by_its_weight(student: Student, probe: Probe) -> None:
    """Each key counts by its weight; all images and all query patches count the same, on wide and on tall grids."""
    look = "One row of weights, one row of distances: how do they become one number, and which axes remain?"
    for shown in (WIDE, TALL):
        for images, num_heads in ((None, None), (None, 1), (1, None)):
            case = draw_case(probe, shown, images=images, num_heads=num_heads)
            _expect_right_distances(student, case, _describe_grid(case[1]), look)
    _expect_right_distances(
        student, (case[0].roll(1, -1), *case[1:]), _describe_grid(case[1]), look
    )  # other numbers of the same sizes


@mean_attention_distance.check(needs=each_head_gets_one_number, points=0.5)
def a_class_token_is_left_out(student: Student, probe: Probe) -> None:
    """A class token in front is left out, and then each patch's weights are divided by their sum again."""
    look = "Where is the class token among queries and keys, and what do the rows sum to once it is gone?"
    for shown in (WIDE, TALL):
        _expect_right_distances(student, draw_case(probe, shown, class_token=True), "with a class token in front", look)


@mean_attention_distance.check(needs=each_key_counts_by_its_weight, guard=True, points=0.25)
def the_dtype_is_kept(student: Student, probe: Probe, device: str | torch.device = "cpu") -> None:
    """float64 weights give float64 distances, to the last digits."""
    weights, grid_size, patch_size = draw_case(probe, TALL, class_token=True, dtype=torch.float64)
    look = "Which line makes a tensor, of which dtype?"
    _expect_right_distances(student, (weights.to(device), grid_size, patch_size), "of float64 weights", look)


@mean_attention_distance.check(
    needs=each_key_counts_by_its_weight, worth=0.5, guard=True, points=0.25, first=a_class_token_is_left_out
)
def it_computes_where_the_weights_are(student: Student, probe: Probe) -> None:
    """The distances lie on the device of the weights."""
    expect_device_of_input(student, *draw_case(probe, WIDE, class_token=True))


@mean_attention_distance.check(
    needs=each_head_gets_one_number, guard=True, points=0.15, first=a_class_token_is_left_out
)
def the_weights_are_left_alone(student: Student, probe: Probe) -> None:
    """The weights that go in are not changed."""
    # with a class token no row sums to one over the patches, so dividing by the sum in place changes every number
    student(*draw_case(probe, WIDE, class_token=True))
    expect_inputs_unchanged(student)


@mean_attention_distance.check(
    needs=each_head_gets_one_number, guard=True, points=0.25, first=ignore_wrong_numbers(each_key_counts_by_its_weight)
)
def a_grid_that_does_not_fit_is_refused(student: Student, probe: Probe) -> None:
    """If there are neither as many tokens as patches nor one more, a ValueError names tokens, rows and columns."""
    weights, (rows, columns), patch_size = draw_case(probe, WIDE)
    for other in ((rows + 1, columns), (rows, columns - 1)):
        described = f"{rows * columns} tokens for {other[0]} rows and {other[1]} columns"
        expect_value_error(student, (weights, other, patch_size), (rows * columns, *other), described)


mean_attention_distance.example(
    """
>>> mean_attention_distance(torch.tensor([[[[0.5, 0.5], [0.0, 1.0]]]]), (1, 2), 16)
tensor([4.])
""",
    points=0.25,
    first=each_key_counts_by_its_weight,
)


read_mistakes(mean_attention_distance, __name__)
