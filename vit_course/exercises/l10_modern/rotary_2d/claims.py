"""`rotary_2d`: queries and keys turned by the place of their patch.

The oracle is complex numbers: a pair of numbers is one of them, and turning it is a multiplication.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, describe_kind, expect_equal, expect_tensor, format_dtype
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_inputs_unchanged,
    expect_value_error,
    ignore_wrong_numbers,
)
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l10_modern import LESSON

AXES = ("image", "head", "token", "dimension")
LOOK = "Take one token and one pair of its numbers: by which angle is it turned, and by which should it be?"
Grid = tuple[int, int]
Pair = tuple[Tensor, Tensor]

rotary_2d = Exercise("rotary_2d", LESSON, in_training=InTraining.HIDDEN)


def angles_of(tokens: int, grid_size: Grid, head_dim: int) -> Tensor:
    """(tokens, head_dim / 2): by which angle each pair of each token is turned, in float64."""
    rows, columns = grid_size
    quarter = head_dim // 4
    angles = torch.zeros(tokens, 2 * quarter, dtype=torch.float64)
    for patch in range(rows * columns):
        place = divmod(patch, columns)
        for pair in range(2 * quarter):
            angles[tokens - rows * columns + patch, pair] = place[pair // quarter] * 100 ** -(pair % quarter / quarter)
    return angles


def turn_pairs_by_angles(x: Tensor, angles: Tensor) -> Tensor:
    """The oracle for one of the two: numbers 2i and 2i + 1 are a complex number."""
    numbers = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)))
    return torch.view_as_real(numbers * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)


def compute_expected_pair(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The right answer."""
    angles = angles_of(query.shape[-2], grid_size, query.shape[-1])
    return turn_pairs_by_angles(query, angles), turn_pairs_by_angles(key, angles)


def draw_query_and_key(probe: Probe, grid_size: Grid, in_front: int = 1, head_dim: int = 8) -> Pair:
    """Queries and keys of two images and three heads, all of order 1."""
    sizes = (2, 3, in_front + grid_size[0] * grid_size[1], head_dim)
    return probe.normal(*sizes), probe.normal(*sizes)


def draw_inputs_with_grid(
    probe: Probe, in_front: int = 1, head_dim: int = 8, shown: Grid = (3, 4)
) -> tuple[Tensor, Tensor, Grid]:
    """Queries, keys and the grid of their patches, which has not as many rows as columns."""
    rows, columns = probe.sizes(2, high=5, shown=shown)
    return *draw_query_and_key(probe, (rows, columns), in_front, head_dim), (rows, columns)


def call_and_expect_pair(student: Student, query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Call the student's function; Failure where it is no pair of tensors of these shapes."""
    returned = student(query, key, grid_size)
    if not isinstance(returned, list | tuple) or len(returned) != 2:
        look = "What goes into attention: how many tensors have you turned, and how many do you return?"
        raise Failure(f"{student.name} gave {describe_kind(returned)}", "a pair: query, key", look)
    first = expect_tensor(returned[0], query.shape, "the first of the two, the query,")
    return first, expect_tensor(returned[1], key.shape, "the second of the two, the key,")


def _pair_inputs_with_results(
    student: Student, query: Tensor, key: Tensor, grid_size: Grid
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """("query", before, after) and ("key", before, after)."""
    return zip(("query", "key"), (query, key), call_and_expect_pair(student, query, key, grid_size), strict=True)


@rotary_2d.check(guard=True)
def query_and_key_come_back(student: Student, probe: Probe) -> None:
    """It gives a pair: query and key, of the shapes that they had."""
    for grid_size, in_front, head_dim in (((2, 3), 1, 8), ((4, 2), 5, 12), ((1, 3), 0, 4)):
        call_and_expect_pair(student, *draw_query_and_key(probe, grid_size, in_front, head_dim), grid_size)


@rotary_2d.check(needs=query_and_key_come_back)
def nothing_changes_its_length(student: Student, probe: Probe) -> None:
    """Every token keeps its length, even a patch that is turned."""
    for name, before, found in _pair_inputs_with_results(student, *draw_inputs_with_grid(probe)):
        if not are_close(found.double().norm(dim=-1), before.double().norm(dim=-1)):
            look = "Is (a cos t - b sin t, a sin t + b cos t) what you compute, with one and the same t?"
            raise Failure(f"tokens of the {name} have another length than before", "the same length", look)
        if are_close(found[..., -1, :].double(), before[..., -1, :].double()):
            raise Failure(f"the last patch of the {name} is not turned", "turned by its row and column", LOOK)


@rotary_2d.check(needs=query_and_key_come_back, guard=True, points=0.5, first="every_pair_is_turned_by_its_angle")
def what_stands_in_front_is_not_turned(student: Student, probe: Probe) -> None:
    """A class token and registers, which stand in front of the patches, come out unchanged."""
    look = "How many tokens stand in front of the patches? They are at no place of the image."
    for count in (1, probe.choice((2, 3, 4, 5), shown=4)):
        for name, before, found in _pair_inputs_with_results(student, *draw_inputs_with_grid(probe, count)):
            what = f"the {name}, before the patches,"
            if one_for_one := _find_reordered_numbers(found[..., :count, :], before[..., :count, :]):
                raise one_for_one
            expect_equal(found[..., :count, :], before[..., :count, :], what, AXES, look=look)


def _find_reordered_numbers(found: Tensor, before: Tensor) -> Failure | None:
    """A failure for tokens whose numbers are those that they had, in another order."""
    first, second = (each.double().sort(dim=-1).values for each in (found, before))
    if not before.numel() or are_close(found, before) or not are_close(first, second):
        return None
    look = "You have taken the pairs apart. In which order do their numbers go back together?"
    seen = "the numbers of a token in front of the patches stand in other places than before"
    return Failure(seen, "each number in its place", look)


@rotary_2d.check(needs=query_and_key_come_back, points=0.5)
def dot_products_tell_how_far_apart(student: Student, probe: Probe) -> None:
    """The dot product of two patches depends on their numbers and on the offset between them, not on their places."""
    rows, columns = probe.sizes(2, low=3, high=5, shown=(4, 5))
    head_dim = probe.choice((12, 16), shown=8)
    everywhere = [probe.normal(head_dim).expand(1, 1, rows * columns, -1) for _ in range(2)]
    query, key = call_and_expect_pair(student, everywhere[0], everywhere[1], (rows, columns))
    scores = (query.double() @ key.double().mT)[0, 0].float().reshape(rows, columns, rows, columns)
    same = are_close(scores[1:, :, 1:], scores[:-1, :, :-1]) and are_close(scores[:, 1:, :, 1:], scores[:, :-1, :, :-1])
    student.note(("offsets", same))
    look = "Query and key of one patch: are both turned, in the same direction and by the same angle?"
    if not same:
        raise Failure("two pairs of patches at the same distance have different dot products", "the same ones", look)
    if are_close(scores, scores[0, 0, 0, 0].expand(scores.shape)):
        raise Failure("all pairs of patches have the same dot product", "one that tells how far apart they are", look)


@rotary_2d.check(needs=query_and_key_come_back, points=1.35)
def every_pair_is_turned_by_its_angle(student: Student, probe: Probe) -> None:
    """Every pair of numbers is turned by the angle of its place: rows in the first half, columns in the second."""
    for in_front, head_dim, shown in ((3, 16, (6, 2)), (1, 8, (3, 5)), (0, 12, (4, 3)), (2, 4, (2, 3))):
        expect_right_pair(student, *draw_inputs_with_grid(probe, in_front, head_dim, shown))
    query, key, (rows, columns) = draw_inputs_with_grid(probe, 0)
    for grid_size in ((1, rows * columns), (rows * columns, 1)):
        expect_right_pair(student, query, key, grid_size)
    expect_right_pair(student, query.flip(0), key.flip(0), grid_size)  # other numbers of the same sizes


def expect_right_pair(student: Student, query: Tensor, key: Tensor, grid_size: Grid) -> None:
    """Fail unless both are what the oracle gives."""
    found = call_and_expect_pair(student, query, key, grid_size)
    head_dim = query.shape[-1]
    for name, one, right in zip(("query", "key"), found, compute_expected_pair(query, key, grid_size), strict=True):
        what = f"the {name} on a grid of {grid_size[0]} rows and {grid_size[1]} columns, with a head_dim of {head_dim},"
        expect_equal(one, right, what, AXES, look=LOOK)


@rotary_2d.check(needs=every_pair_is_turned_by_its_angle, points=0.75, first=every_pair_is_turned_by_its_angle)
def gradients_reach_query_and_key(student: Student, probe: Probe) -> None:
    """Query and key get their gradients."""
    expect_input_gradients(
        student, draw_inputs_with_grid(probe, shown=(2, 3)), ("query", "key"), compute_expected_pair, AXES
    )


@rotary_2d.check(needs=every_pair_is_turned_by_its_angle, worth=0.5, points=0.35)
def dtype_and_layout_do_not_matter(student: Student, probe: Probe) -> None:
    """Queries and keys of float64 stay in float64, to the last digit; any memory layout and a single head will do."""
    query, key, grid_size = draw_inputs_with_grid(probe, 1, probe.choice((8, 12), shown=8))
    expect_right_pair(student, query, key, grid_size)  # what is wrong in float32 too is reported as that
    inputs = query.double(), key.double()
    found = call_and_expect_pair(student, *inputs, grid_size)
    for name, one, right in zip(("query", "key"), found, compute_expected_pair(*inputs, grid_size), strict=True):
        if one.dtype != right.dtype:
            look = "Which dtype have your cosines and sines?"
            raise Failure(f"the {name} of a float64 one is {format_dtype(one.dtype)}", "float64", look)
        expect_equal(one, right, f"the {name} in float64", AXES, look="Which dtype have your angles?")
    not_contiguous = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in (query, key)]
    expect_right_pair(student, not_contiguous[0], not_contiguous[1], grid_size)
    expect_right_pair(student, query[0, 0], key[0, 0], grid_size)


@rotary_2d.check(needs=query_and_key_come_back, worth=0.5, guard=True)
def what_went_in_is_left_alone(student: Student, probe: Probe) -> None:
    """The queries and keys that go in are not changed."""
    call_and_expect_pair(student, *draw_inputs_with_grid(probe, shown=(2, 3)))
    expect_inputs_unchanged(student)


@rotary_2d.check(guard=True, points=0.15, first=ignore_wrong_numbers(every_pair_is_turned_by_its_angle))
def sizes_that_do_not_fit_are_refused(student: Student, probe: Probe) -> None:
    """A head_dim that 4 does not divide, or fewer tokens than patches, raises a ValueError that names the number."""
    query, key, grid_size = draw_inputs_with_grid(probe, shown=(2, 3))
    for head_dim in (probe.choice((2, 14, 18), shown=6), probe.choice((5, 19), shown=9)):
        inputs = *draw_query_and_key(probe, grid_size, 1, head_dim), grid_size
        expect_value_error(student, inputs, (head_dim,), f"a head_dim of {head_dim}")
    few = grid_size[0] * grid_size[1] - 1
    inputs = query[..., :few, :], key[..., :few, :], grid_size
    expect_value_error(student, inputs, (few,), f"{few} tokens for {few + 1} patches")


@rotary_2d.check(
    needs=every_pair_is_turned_by_its_angle, worth=0.5, guard=True, points=0.1, first=every_pair_is_turned_by_its_angle
)
def it_computes_where_the_query_is(student: Student, probe: Probe) -> None:
    """The result is on the device of the query."""
    expect_device_of_input(student, *draw_inputs_with_grid(probe, shown=(2, 3)))


rotary_2d.example(
    """
>>> query = torch.tensor([[1.0, 0.0, 1.0, 0.0]]).repeat(4, 1)  # four patches: a pair for rows, one for columns
>>> turned, _ = rotary_2d(query, query, (2, 2))
>>> [round(number, 2) for number in turned[1].tolist()]  # row 0, column 1: the second pair, by 1 radian
[1.0, 0.0, 0.54, 0.84]
""",
    points=0.05,
    first=every_pair_is_turned_by_its_angle,
)


read_mistakes(rotary_2d, __name__)
