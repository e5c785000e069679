"""`mean_attention_distance`: how far heads look.

The oracle goes from patch to patch and measures with a ruler.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone, expect_value_error
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
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


read_mistakes(mean_attention_distance, __name__)
