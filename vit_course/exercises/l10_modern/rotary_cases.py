"""Right and wrong rotary positions for a student's ``is_rotary`` to judge.

All of them take query and key (..., tokens, head_dim) and the (rows, columns) of the patches, give a pair of tensors,
and refuse the sizes that ``rotary_2d`` refuses. Every wrong one is wrong by much more than rounding on numbers of
order 1, as soon as there are two images, a token in front of the patches, two pairs in each half, and at least three
rows and three columns, not as many of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.exercises.l10_modern.rotary_2d.claims import Grid, Pair, turned

Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
BASE = 100.0


def axial(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """(patches, head_dim / 2): the angles of every patch, those of its row first.

    Args:
        row: (patches, 1).
        column: (patches, 1).
        speeds: (head_dim / 4,).
    """
    return torch.cat([row * speeds, column * speeds], dim=1)


def angles_by(query: Tensor, grid_size: Grid, rule: Rule = axial, base: float = BASE) -> Tensor:
    """(tokens, head_dim / 2): the angles of every token by ``rule``, in float64; zeros in front of the patches."""
    tokens, head_dim = query.shape[-2:]
    rows, columns = grid_size
    if head_dim % 4 or tokens < rows * columns:
        raise ValueError(f"{tokens} tokens with a head_dim of {head_dim} do not fit a grid of {grid_size}")
    pairs = head_dim // 4
    speeds = base ** (-torch.arange(pairs, dtype=torch.float64, device=query.device) / pairs)
    patch = torch.arange(rows * columns, dtype=torch.float64, device=query.device)[:, None]
    angles = rule(patch.div(columns, rounding_mode="floor"), patch % columns, speeds)
    return F.pad(angles, (0, 0, tokens - rows * columns, 0))


def both(query: Tensor, key: Tensor, angles: Tensor) -> Pair:
    """Both turned by the same angles, in float64, and rounded at the end; neighbors are pairs."""
    return turned(query, angles), turned(key, angles)


def both_in_pairs(query: Tensor, key: Tensor, angles: Tensor, order: Tensor) -> Pair:
    """The same where numbers ``order[2 * i]`` and ``order[2 * i + 1]`` are a pair."""
    first, second = (turned(each[..., order], angles)[..., order.argsort()] for each in (query, key))
    return first, second


def halves_order(head_dim: int) -> Tensor:
    """The numbers in pairs of which one is half of head_dim further on than the other."""
    return torch.arange(head_dim).reshape(2, -1).T.flatten()


def by_complex_numbers(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """multiplies complex numbers"""
    return both(query, key, angles_by(query, grid_size))


def by_cosines_and_sines(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """multiplies by cosines, and by sines with the numbers of each pair exchanged"""
    angles = angles_by(query, grid_size).repeat_interleave(2, dim=1)
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64, device=query.device).repeat(query.shape[-1] // 2)
    cos, sin = angles.cos().to(query.dtype), (signs * angles.sin()).to(query.dtype)
    first, second = (each * cos + each.unflatten(-1, (-1, 2)).flip(-1).flatten(-2) * sin for each in (query, key))
    return first, second


def a_whole_turn_more(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns each patch a whole turn further, which changes nothing but the last digits"""
    patches = grid_size[0] * grid_size[1]
    angles = angles_by(query, grid_size).to(torch.promote_types(query.dtype, torch.float32))
    angles[angles.shape[0] - patches :] += 2 * math.pi
    return both(query, key, angles.double())


def quarters_paired(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """pairs a number with the one a quarter of head_dim further on"""
    angles = angles_by(query, grid_size)
    return both_in_pairs(query, key, angles, torch.arange(query.shape[-1]).reshape(2, 2, -1).mT.flatten())


def halves_paired(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """pairs a number with the one half of head_dim further on"""
    return both_in_pairs(query, key, angles_by(query, grid_size), halves_order(query.shape[-1]))


def columns_first(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns the first half by the column and the second by the row"""
    return both(query, key, angles_by(query, grid_size, lambda row, column, speeds: axial(column, row, speeds)))


def turned_the_other_way(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns every pair the other way round"""
    return both(query, key, -angles_by(query, grid_size))


def another_base(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """has speeds to the base 20"""
    return both(query, key, angles_by(query, grid_size, base=20.0))


def key_before_query(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """gives the key first and then the query"""
    first, second = by_complex_numbers(query, key, grid_size)
    return second, first


def axes_exchanged(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """gives both as (…, head_dim, tokens)"""
    first, second = by_complex_numbers(query, key, grid_size)
    return first.mT, second.mT


def query_alone(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns the query and leaves the key as it is"""
    return turned(query, angles_by(query, grid_size)), key


def key_alone(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns the key and leaves the query as it is"""
    return query, turned(key, angles_by(query, grid_size))


def key_turned_back(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns the key the other way than the query"""
    angles = angles_by(query, grid_size)
    return turned(query, angles), turned(key, -angles)


def columns_left_out(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns the first half by the row, and nothing by the column"""
    return both(query, key, angles_by(query, grid_size, lambda row, column, speeds: axial(row, 0 * column, speeds)))


def rows_left_out(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns the second half by the column, and nothing by the row"""
    return both(query, key, angles_by(query, grid_size, lambda row, column, speeds: axial(0 * row, column, speeds)))


def row_in_both_halves(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns both halves by the row"""
    return both(query, key, angles_by(query, grid_size, lambda row, column, speeds: axial(row, row, speeds)))


def one_long_row(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns both halves by the number of the patch, as if all patches stood in one row"""

    def rule(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        number = row * grid_size[1] + column
        return axial(number, number, speeds)

    return both(query, key, angles_by(query, grid_size, rule))


def sum_in_both_halves(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns both halves by the sum of row and column"""

    def rule(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return axial(row + column, row + column, speeds)

    return both(query, key, angles_by(query, grid_size, rule))


def sum_in_one_half(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns the first half by the sum of row and column, and leaves the second half as it is"""

    def rule(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return axial(row + column, 0 * column, speeds)

    return both(query, key, angles_by(query, grid_size, rule))


def grid_on_its_side(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """takes grid_size for (columns, rows)"""
    return by_complex_numbers(query, key, (grid_size[1], grid_size[0]))


def counted_from_the_class_token(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """takes the first of all tokens for the patch at row 0 and column 0"""
    patches = grid_size[0] * grid_size[1]
    return both(query, key, angles_by(query, grid_size).roll(patches - query.shape[-2], dims=0))


def waves(query: Tensor, grid_size: Grid) -> Tensor:
    """(tokens, head_dim): the sines and cosines of all angles."""
    angles = angles_by(query, grid_size)
    return torch.cat([angles.sin(), angles.cos()], dim=1).to(query.dtype)


def added(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """adds sines and cosines of the place to query and key"""
    positions = waves(query, grid_size)
    return query + positions, key + positions


def added_to_the_same_length(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """adds sines of the place to query and key, and gives them their lengths back"""
    angles = angles_by(query, grid_size)
    positions = torch.cat([angles.sin(), angles.sin()], dim=1).to(query.dtype)
    first, second = (F.normalize(each + positions, dim=-1) * each.norm(dim=-1, keepdim=True) for each in (query, key))
    return first, second


def minus_forgotten(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """makes (a cos t + b sin t, a sin t + b cos t) of a pair"""
    angles = angles_by(query, grid_size)
    cos, sin = angles.cos().to(query.dtype), angles.sin().to(query.dtype)
    first, second = (
        torch.stack([a * cos + b * sin, a * sin + b * cos], dim=-1).flatten(-2)
        for a, b in ((each[..., ::2], each[..., 1::2]) for each in (query, key))
    )
    return first, second


def queries_that_grow(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """makes queries longer from patch to patch and keys shorter, beside turning them"""
    return grown(query, key, grid_size, 1.1)


def grown(query: Tensor, key: Tensor, grid_size: Grid, factor: float) -> Pair:
    """Queries ``factor`` times as long with each row and column, keys as many times shorter, and both turned."""
    place = angles_by(query, grid_size, lambda row, column, speeds: row + column)
    growth = (factor**place).to(query.dtype)
    first, second = by_complex_numbers(query, key, grid_size)
    return first * growth, second / growth


def one_speed(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns all pairs at one speed"""
    return both(query, key, angles_by(query, grid_size, base=1.0))


def columns_at_one_speed(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns all pairs that turn by the column at one speed"""

    def rule(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return torch.cat([row * speeds, column.expand(-1, len(speeds))], dim=1)

    return both(query, key, angles_by(query, grid_size, rule))


def first_pairs_alone(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns the first pair of each half and leaves the others as they are"""

    def rule(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return axial(row, column, speeds * (torch.arange(len(speeds), device=speeds.device) == 0))

    return both(query, key, angles_by(query, grid_size, rule))


def counted_from_one(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """counts rows and columns from 1"""
    return both(query, key, angles_by(query, grid_size, lambda row, column, speeds: axial(row + 1, column + 1, speeds)))


def mirrored(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """mirrors each pair, which makes (a cos t + b sin t, a sin t - b cos t) of it"""
    signs = torch.tensor([1.0, -1.0], dtype=query.dtype, device=query.device).repeat(query.shape[-1] // 2)
    front = query.shape[-2] - grid_size[0] * grid_size[1]
    first, second = (torch.cat([each[..., :front, :], each[..., front:, :] * signs], dim=-2) for each in (query, key))
    return by_complex_numbers(first, second, grid_size)


def front_turned_too(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns the tokens in front of the patches by 1 radian"""
    angles = angles_by(query, grid_size)
    angles[: angles.shape[0] - grid_size[0] * grid_size[1]] = 1.0
    return both(query, key, angles)


def further_with_each_image(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns each image of a batch further than the one before"""
    first, second = by_complex_numbers(query, key, grid_size)
    if query.ndim < 3:
        return first, second
    image = torch.arange(len(query), dtype=torch.float64, device=query.device).reshape(-1, *(1,) * (query.ndim - 1))
    everywhere = torch.ones(query.shape[-2], query.shape[-1] // 2, dtype=torch.float64, device=query.device)
    return both(first, second, image * everywhere)


def images_exchanged(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """gives each image the query and key of another one"""
    first, second = by_complex_numbers(query, key, grid_size)
    return (first, second) if query.ndim < 3 else (first.roll(1, dims=0), second.roll(1, dims=0))


def every_other_image_backwards(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns every other image of a batch the other way round"""
    forward = by_complex_numbers(query, key, grid_size)
    if query.ndim < 3:
        return forward
    back = turned_the_other_way(query, key, grid_size)
    first, second = (each.clone() for each in forward)
    first[1::2], second[1::2] = back[0][1::2], back[1][1::2]
    return first, second


def rows_in_squares(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns by the square of the row, and by the column"""
    return both(query, key, angles_by(query, grid_size, lambda row, column, speeds: axial(row**2, column, speeds)))


def columns_in_squares(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """turns by the row, and by the square of the column"""
    return both(query, key, angles_by(query, grid_size, lambda row, column, speeds: axial(row, column**2, speeds)))


RIGHT = (
    by_complex_numbers,
    by_cosines_and_sines,
    a_whole_turn_more,
    turned_the_other_way,
    quarters_paired,
    halves_paired,
    columns_first,
    another_base,
)
WRONG = {
    "returned": (key_before_query, axes_exchanged),
    "disagreeing": (query_alone, key_alone, key_turned_back),
    "one axis": (columns_left_out, rows_left_out, row_in_both_halves),
    "together": (one_long_row, sum_in_both_halves, sum_in_one_half),
    "places": (grid_on_its_side, counted_from_the_class_token),
    "added": (added, added_to_the_same_length),
    "lengths": (minus_forgotten, queries_that_grow),
    "speeds": (one_speed, columns_at_one_speed, first_pairs_alone),
    "start": (counted_from_one, mirrored, front_turned_too),
    "images": (further_with_each_image, images_exchanged, every_other_image_backwards),
    "uneven": (rows_in_squares, columns_in_squares),
}
