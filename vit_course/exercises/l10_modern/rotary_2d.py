"""`rotary_2d`: queries and keys turned by the place of their patch.

The oracle is complex numbers: a pair of numbers is one of them, and turning it is a multiplication. The known mistakes
turn by a matrix for each token.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from exercise_kit.engine.compare import close, expect_equal, expect_tensor, kind_of, short
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_left_alone,
    expect_value_error,
)
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


def turned(x: Tensor, angles: Tensor) -> Tensor:
    """The oracle for one of the two: numbers 2i and 2i + 1 are a complex number."""
    numbers = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)))
    return torch.view_as_real(numbers * torch.polar(torch.ones_like(angles), angles)).flatten(-2).to(x.dtype)


def oracle(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The right answer."""
    angles = angles_of(query.shape[-2], grid_size, query.shape[-1])
    return turned(query, angles), turned(key, angles)


def drawn(probe: Probe, grid_size: Grid, in_front: int = 1, head_dim: int = 8) -> Pair:
    """Queries and keys of two images and three heads, all of order 1."""
    sizes = (2, 3, in_front + grid_size[0] * grid_size[1], head_dim)
    return probe.normal(*sizes), probe.normal(*sizes)


def both(student: Student, query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """What the student's function gives; Failure where it is no pair of tensors of these shapes."""
    returned = student(query, key, grid_size)
    if not isinstance(returned, list | tuple) or len(returned) != 2:
        look = "What goes into attention: how many tensors have you turned, and how many do you return?"
        raise Failure(f"{student.name} gave {kind_of(returned)}", "a pair: query, key", look)
    first = expect_tensor(returned[0], query.shape, "the first of the two, the query,")
    return first, expect_tensor(returned[1], key.shape, "the second of the two, the key,")


@rotary_2d.check(guard=True)
def query_and_key_come_back(student: Student, probe: Probe) -> None:
    """It gives a pair: query and key, of the shapes that they had."""
    for grid_size, in_front, head_dim in (((2, 3), 1, 8), ((4, 2), 5, 12), ((1, 3), 0, 4)):
        both(student, *drawn(probe, grid_size, in_front, head_dim), grid_size)


@rotary_2d.check(needs=query_and_key_come_back)
def nothing_changes_its_length(student: Student, probe: Probe) -> None:
    """Every token keeps its length, even a patch that is turned."""
    expect_lengths(student, *drawn(probe, (3, 4)), (3, 4))


def expect_lengths(student: Student, query: Tensor, key: Tensor, grid_size: Grid) -> None:
    """Fail unless every token is as long as before, and patches behind the first are other ones than before."""
    for name, before, found in zip(("query", "key"), (query, key), both(student, query, key, grid_size), strict=True):
        if not close(found.double().norm(dim=-1), before.double().norm(dim=-1)):
            look = "Is (a cos t - b sin t, a sin t + b cos t) what you compute, with one and the same t?"
            raise Failure(f"tokens of the {name} have another length than before", "the same length", look)
        if close(found[..., -1, :].double(), before[..., -1, :].double()):
            raise Failure(f"the last patch of the {name} is not turned", "turned by its row and column", LOOK)


@rotary_2d.check(needs=query_and_key_come_back, guard=True)
def what_stands_in_front_is_not_turned(student: Student, probe: Probe) -> None:
    """A class token and registers, which stand in front of the patches, come out unchanged."""
    for in_front in (1, 4):
        expect_front(student, *drawn(probe, (3, 4), in_front), (3, 4))


def expect_front(student: Student, query: Tensor, key: Tensor, grid_size: Grid) -> None:
    """Fail when a token in front of the patches has changed."""
    count = query.shape[-2] - grid_size[0] * grid_size[1]
    look = "How many tokens stand in front of the patches? They are at no place of the image."
    for name, before, found in zip(("query", "key"), (query, key), both(student, query, key, grid_size), strict=True):
        what = f"the {name}, before the patches,"
        if one_for_one := _in_other_places(found[..., :count, :], before[..., :count, :]):
            raise one_for_one
        expect_equal(found[..., :count, :], before[..., :count, :], what, AXES, look=look)


def _in_other_places(found: Tensor, before: Tensor) -> Failure | None:
    """A failure for tokens whose numbers are those that they had, in another order."""
    first, second = (each.double().sort(dim=-1).values for each in (found, before))
    if not before.numel() or close(found, before) or not close(first, second):
        return None
    look = "You have taken the pairs apart. In which order do their numbers go back together?"
    seen = "the numbers of a token in front of the patches stand in other places than before"
    return Failure(seen, "each number in its place", look)


@rotary_2d.check(needs=query_and_key_come_back)
def dot_products_tell_how_far_apart(student: Student, probe: Probe) -> None:
    """The dot product of two patches depends on their numbers and on the offset between them, not on their places."""
    expect_offsets(student, probe.normal(8), probe.normal(8), (4, 5))


def expect_offsets(student: Student, query: Tensor, key: Tensor, grid_size: Grid) -> None:
    """Fail unless the dot products of one query and one key at all places follow from rows and columns between them."""
    rows, columns = grid_size
    everywhere = [each.expand(1, 1, rows * columns, -1) for each in (query, key)]
    turned_query, turned_key = both(student, everywhere[0], everywhere[1], grid_size)
    scores = (turned_query.double() @ turned_key.double().mT)[0, 0].float().reshape(rows, columns, rows, columns)
    same = close(scores[1:, :, 1:], scores[:-1, :, :-1]) and close(scores[:, 1:, :, 1:], scores[:, :-1, :, :-1])
    student.record.append(("offsets", same))
    look = "Query and key of one patch: are both turned, in the same direction and by the same angle?"
    if not same:
        raise Failure("two pairs of patches at the same distance have different dot products", "the same ones", look)
    if close(scores, scores[0, 0, 0, 0].expand(scores.shape)):
        raise Failure("all pairs of patches have the same dot product", "one that tells how far apart they are", look)


@rotary_2d.check(needs=query_and_key_come_back)
def every_pair_is_turned_by_its_angle(student: Student, probe: Probe) -> None:
    """Every pair of numbers is turned by the angle of its place: rows in the first half, columns in the second."""
    for grid_size, in_front, head_dim in (((3, 5), 1, 8), ((6, 2), 3, 16), ((1, 4), 0, 4)):
        expect_angles(student, *drawn(probe, grid_size, in_front, head_dim), grid_size)


def expect_angles(student: Student, query: Tensor, key: Tensor, grid_size: Grid) -> None:
    """Fail unless both are what the oracle gives."""
    found = both(student, query, key, grid_size)
    head_dim = query.shape[-1]
    for name, one, right in zip(("query", "key"), found, oracle(query, key, grid_size), strict=True):
        what = f"the {name} on a grid of {grid_size[0]} rows and {grid_size[1]} columns, with a head_dim of {head_dim},"
        expect_equal(one, right, what, AXES, look=LOOK)


@rotary_2d.check(needs=every_pair_is_turned_by_its_angle)
def gradients_reach_query_and_key(student: Student, probe: Probe) -> None:
    """Query and key get their gradients."""
    expect_input_gradients(student, (*drawn(probe, (2, 3)), (2, 3)), ("query", "key"), oracle, AXES)


@rotary_2d.check(needs=every_pair_is_turned_by_its_angle, worth=0.5)
def both_keep_their_dtype(student: Student, probe: Probe) -> None:
    """Queries and keys of float64 stay in float64, to the last digit."""
    expect_dtype(student, *drawn(probe, (3, 4)), (3, 4))


def expect_dtype(student: Student, query: Tensor, key: Tensor, grid_size: Grid) -> None:
    """Fail unless float64 comes back as float64, and right; what is wrong in float32 too is reported as that."""
    expect_angles(student, query, key, grid_size)
    inputs = query.double(), key.double()
    found = both(student, *inputs, grid_size)
    for name, one, right in zip(("query", "key"), found, oracle(*inputs, grid_size), strict=True):
        if one.dtype != right.dtype:
            look = "Which dtype have your cosines and sines?"
            raise Failure(f"the {name} of a float64 one is {short(one.dtype)}", "float64", look)
        expect_equal(one, right, f"the {name} in float64", AXES, look="Which dtype have your angles?")


@rotary_2d.check(needs=query_and_key_come_back, worth=0.5, guard=True)
def what_went_in_is_left_alone(student: Student, probe: Probe) -> None:
    """The queries and keys that go in are not changed."""
    both(student, *drawn(probe, (2, 3)), (2, 3))
    expect_left_alone(student)


@rotary_2d.check(guard=True)
def sizes_that_do_not_fit_are_refused(student: Student, probe: Probe) -> None:
    """A head_dim that 4 does not divide, or fewer tokens than patches, raises a ValueError that names the number."""
    for head_dim in (6, 9):
        inputs = (*drawn(probe, (2, 3), 1, head_dim), (2, 3))
        expect_value_error(student, inputs, (head_dim,), f"a head_dim of {head_dim}")
    query, key = drawn(probe, (2, 3), 1)
    expect_value_error(student, (query[..., :5, :], key[..., :5, :], (2, 3)), (5,), "5 tokens for 6 patches")


@rotary_2d.check(needs=query_and_key_come_back, worth=0.5, guard=True)
def it_computes_where_the_query_is(student: Student, probe: Probe) -> None:
    """The result is on the device of the query."""
    expect_device_of_input(student, *drawn(probe, (2, 3)), (2, 3))


rotary_2d.example("""
>>> query = torch.tensor([[1.0, 0.0, 1.0, 0.0]]).repeat(4, 1)  # four patches: a pair for rows, one for columns
>>> turned, _ = rotary_2d(query, query, (2, 2))
>>> [round(number, 2) for number in turned[1].tolist()]  # row 0, column 1: the second pair, by 1 radian
[1.0, 0.0, 0.54, 0.84]
""")


TURN = "10_modern, Positions as rotations"


def _places(grid_size: Grid) -> list[tuple[int, int]]:
    rows, columns = grid_size
    return [(row, column) for row in range(rows) for column in range(columns)]


def _axial(row: float, column: float, pairs: int, base: float = 100.0, step: float = 1.0) -> list[float]:
    """The angles of one patch, those of its row first."""
    return [place * base ** (-step * pair / pairs) for place in (row, column) for pair in range(pairs)]


def _refuse(query: Tensor, grid_size: Grid) -> None:
    tokens, head_dim = query.shape[-2:]
    if head_dim % 4 or tokens < len(_places(grid_size)):
        raise ValueError(f"{tokens} tokens with a head_dim of {head_dim} do not fit a grid of {grid_size}")


def _angles(query: Tensor, grid_size: Grid, code: Callable[[int, int, int], list[float]] = _axial) -> Tensor:
    """(tokens, head_dim / 2) by ``code(row, column, pairs)``; zeros for what stands in front."""
    _refuse(query, grid_size)
    pairs = query.shape[-1] // 4
    places = [code(row, column, pairs) for row, column in _places(grid_size)]
    front = [[0.0] * (2 * pairs)] * (query.shape[-2] - len(places))
    return torch.tensor(front + places, dtype=torch.float64, device=query.device)


def _rotated(x: Tensor, angles: Tensor) -> Tensor:
    """By a matrix for each pair of each token."""
    cos, sin = torch.cos(angles), torch.sin(angles)
    matrices = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2).to(x)
    return torch.einsum("tpij,...tpj->...tpi", matrices, x.unflatten(-1, (-1, 2))).flatten(-2)


def _both(query: Tensor, key: Tensor, angles: Tensor) -> Pair:
    return _rotated(query, angles), _rotated(key, angles)


@rotary_2d.misconception("Which half of head_dim is for the row?", TURN)
def rows_and_columns_swapped(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The first half encodes the column and the second half the row."""
    return _both(query, key, _angles(query, grid_size, lambda row, column, pairs: _axial(column, row, pairs)))


@rotary_2d.misconception("From one patch to the next: which number grows, row or column?", TURN)
def patches_column_by_column(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The patches are taken to run down the columns of the grid; they run along its rows."""
    rows = grid_size[0]

    def code(row: int, column: int, pairs: int) -> list[float]:
        other_column, other_row = divmod(row * grid_size[1] + column, rows)
        return _axial(other_row, other_column, pairs)

    return _both(query, key, _angles(query, grid_size, code))


@rotary_2d.misconception("Which two numbers make a pair: neighbors, or two that are a quarter of head_dim apart?", TURN)
def halves_for_pairs(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """A number is paired with the one a quarter of head_dim further on, as in some libraries, not with its neighbor."""
    angles = _angles(query, grid_size)

    def woven(x: Tensor) -> Tensor:
        return x.unflatten(-1, (2, 2, -1)).transpose(-1, -2).flatten(-3)

    def back(x: Tensor) -> Tensor:
        return x.unflatten(-1, (2, -1, 2)).transpose(-1, -2).flatten(-3)

    return back(_rotated(woven(query), angles)), back(_rotated(woven(key), angles))


@rotary_2d.misconception("Which two numbers make a pair: neighbors, or those half of head_dim apart?", TURN)
def rotate_half(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """A number is paired with the one half of head_dim further on, as by rotate_half in many libraries."""
    angles = _angles(query, grid_size)

    def woven(x: Tensor) -> Tensor:
        return x.unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2)

    def back(x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)

    return back(_rotated(woven(query), angles)), back(_rotated(woven(key), angles))


@rotary_2d.misconception("With which number is number 0 paired, and which two numbers have its angle?", TURN)
def two_pairings_mixed(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Partners are half of head_dim apart, as by rotate_half, but neighbors have the same angle: nothing is rotated."""
    angles = _angles(query, grid_size).repeat_interleave(2, dim=-1)
    cos, sin = angles.cos().to(query), angles.sin().to(query)

    def mixed(x: Tensor) -> Tensor:
        signs = torch.where(torch.arange(x.shape[-1], device=x.device) < x.shape[-1] // 2, -1.0, 1.0).to(x)
        return x * cos + x.roll(x.shape[-1] // 2, dims=-1) * signs * sin

    return mixed(query), mixed(key)


@rotary_2d.misconception("Where do the two numbers of a pair stand in what comes back?", TURN)
def pairs_not_put_together(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The numbers are right, but their order is not: the first numbers of all pairs come before the second ones."""
    first, second = _both(query, key, _angles(query, grid_size))
    return tuple(each.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2) for each in (first, second))


@rotary_2d.misconception("Which patch is at row 0 and column 0, if token 0 is no patch?", TURN)
def counted_from_the_class_token(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Places are counted from token 0, so that with a class token every patch has the place of its neighbor."""
    _refuse(query, grid_size)
    pairs, columns = query.shape[-1] // 4, grid_size[1]
    places = [_axial(*divmod(token, columns), pairs) for token in range(query.shape[-2])]
    return _both(query, key, torch.tensor(places, dtype=torch.float64, device=query.device))


@rotary_2d.misconception("How many axes has an image, and how many has your place?", TURN)
def one_long_row(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Both halves encode the number of the patch, so the patch below seems a whole row of patches away."""
    columns = grid_size[1]

    def code(row: int, column: int, pairs: int) -> list[float]:
        return _axial(row * columns + column, row * columns + column, pairs)

    return _both(query, key, _angles(query, grid_size, code))


@rotary_2d.misconception("Which of your angles depend on the column?", TURN)
def the_row_in_both_halves(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Both halves encode the row, and nothing encodes the column."""
    return _both(query, key, _angles(query, grid_size, lambda row, column, pairs: _axial(row, row, pairs)))


@rotary_2d.misconception("Which of the two is turned, and on what does their dot product depend then?", TURN)
def the_key_left_alone(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Only the query is turned, so a dot product depends on the query's place, not on the distance to the key."""
    return _rotated(query, _angles(query, grid_size)), key.clone()


@rotary_2d.misconception("In which direction is the key turned?", TURN)
def the_key_turned_back(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The key is turned by the opposite angle, so dot products depend on the sum of two places, not the difference."""
    angles = _angles(query, grid_size)
    return _rotated(query, angles), _rotated(key, -angles)


@rotary_2d.misconception("Which of the four terms has the minus?", TURN)
def both_turned_the_other_way(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Both are turned by the opposite angle: attention would be the same, but it is not what was asked for."""
    return _both(query, key, -_angles(query, grid_size))


@rotary_2d.misconception("How far is (a cos t + b sin t, a sin t + b cos t) from zero, if a = b?", TURN)
def the_minus_forgotten(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """All four terms have a plus, so nothing is turned, and lengths change."""
    angles = _angles(query, grid_size)
    cos, sin = angles.cos().to(query), angles.sin().to(query)

    def mixed(x: Tensor) -> Tensor:
        pairs = x.unflatten(-1, (-1, 2))
        return (pairs * cos[..., None] + pairs.flip(-1) * sin[..., None]).flatten(-2)

    return mixed(query), mixed(key)


@rotary_2d.misconception("Are the places added, or do they turn?", TURN)
def angles_added(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Sines and cosines of the place are added, as the tables of lesson 02 are."""
    angles = _angles(query, grid_size)
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).to(query)
    waves[: query.shape[-2] - len(_places(grid_size))] = 0
    return query + waves, key + waves


@rotary_2d.misconception("Do all pairs turn at the same speed?", TURN)
def one_speed_for_all_pairs(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """All pairs are turned by the place itself, and none of them slower."""
    return _both(query, key, _angles(query, grid_size, lambda row, column, pairs: _axial(row, column, pairs, 1.0)))


@rotary_2d.misconception("Which base does the exercise name?", TURN)
def the_base_of_texts(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The base is 10,000, which suits texts: on a small grid most pairs hardly turn."""
    return _both(query, key, _angles(query, grid_size, lambda row, column, pairs: _axial(row, column, pairs, 1e4)))


@rotary_2d.misconception("How many pairs share the speeds: those of one half, or of both?", TURN)
def speeds_over_both_halves(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The exponent is divided by head_dim / 2, so the slowest pair is ten times too fast."""
    code = lambda row, column, pairs: _axial(row, column, pairs, step=0.5)  # noqa: E731
    return _both(query, key, _angles(query, grid_size, code))


@rotary_2d.misconception("At which number do your rows and columns begin?", TURN)
def counted_from_one(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Rows and columns are counted from 1, so the patch in the corner is turned too."""
    code = lambda row, column, pairs: _axial(row + 1, column + 1, pairs)  # noqa: E731
    return _both(query, key, _angles(query, grid_size, code))


@rotary_2d.misconception("How many tensors does your return line name?", TURN, InTraining.STOPS)
def the_query_alone(query: Tensor, key: Tensor, grid_size: Grid) -> Tensor:
    """Only the turned query comes back."""
    return _rotated(query, _angles(query, grid_size))


@rotary_2d.misconception("Which tensors go on to attention?", TURN)
def key_before_query(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The turned key comes back first and the query second."""
    angles = _angles(query, grid_size)
    return _rotated(key, angles), _rotated(query, angles)


@rotary_2d.misconception("Which dtype have your cosines, and which had the query?", TURN)
def always_float32(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Both come back in float32, whatever they were."""
    first, second = _both(query, key, _angles(query, grid_size))
    return first.float(), second.float()


@rotary_2d.misconception("Which operations leave torch's graph?", TURN, InTraining.STUCK)
def cut_from_the_gradient(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The turned numbers have no graph, so queries and keys never learn."""
    return _both(query.detach(), key.detach(), _angles(query, grid_size))


@rotary_2d.misconception("Whose tensors do you write into?", TURN)
def turned_in_place(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The turned numbers are written into the given tensors."""
    result = _both(query, key, _angles(query, grid_size))
    query.data.copy_(result[0].data)
    key.data.copy_(result[1].data)
    return result


@rotary_2d.misconception("Which sizes can be cut into four equal parts?", TURN, InTraining.UNSEEN)
def sizes_not_tested(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Nothing tests the sizes, so numbers that are left over come back as they were, without an error."""
    head_dim, tokens = query.shape[-1] // 4 * 4, len(_places(grid_size))
    if query.shape[-2] < tokens:
        return query + 0.0, key + 0.0
    parts = [each[..., :head_dim] for each in (query, key)]
    turned_parts = _both(parts[0], parts[1], _angles(parts[0], grid_size))
    first, second = (
        torch.cat([part, each[..., head_dim:]], dim=-1) for part, each in zip(turned_parts, (query, key), strict=True)
    )
    return first, second


@rotary_2d.misconception("On which device are your angles?", TURN, InTraining.STOPS)
def angles_on_the_cpu(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """The angles are made on the CPU, wherever the query is."""
    _refuse(query, grid_size)
    angles = angles_of(query.shape[-2], grid_size, query.shape[-1])
    cos, sin = angles.cos().to(query.dtype), angles.sin().to(query.dtype)

    def mixed(x: Tensor) -> Tensor:
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)

    return mixed(query), mixed(key)
