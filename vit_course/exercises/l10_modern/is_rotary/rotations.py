"""What the suspects of ``is_rotary`` are made of: rules for the angles, ways to turn, and what else can be done.

All rotations take query and key (..., tokens, head_dim) and the (rows, columns) of the patches, give a pair of tensors,
and refuse the sizes that ``rotary_2d`` refuses. A rule gives angles for rows (patches, 1) and columns (patches, 1); a
turn takes one of query and key and the angles (tokens, head_dim / 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.exercises.l10_modern.rotary_2d.claims import Grid, Pair, rotary_2d, turned

Rotate = Callable[[Tensor, Tensor, Grid], Pair]
Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
Turn = Callable[[Tensor, Tensor], Tensor]


def speeds_of(pairs: int, base: float = 100.0) -> Tensor:
    """(pairs,): radians per row or column, in float64, the fastest first."""
    return torch.logspace(0, -(pairs - 1) / pairs, pairs, base=base, dtype=torch.float64)


def axial(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """(patches, 2 · pairs): angles of the row (patches, 1) first, then those of the column (patches, 1)."""
    return torch.cat([row * speeds, column * speeds], dim=1)


def angles_of(query: Tensor, grid_size: Grid, rule: Rule) -> Tensor:
    """(tokens, head_dim / 2) by ``rule``, zeros in front of the patches; ValueError for sizes that do not fit."""
    front, pairs = query.shape[-2] - grid_size[0] * grid_size[1], query.shape[-1] // 4
    if query.shape[-1] % 4 or front < 0:
        raise ValueError(f"{query.shape[-2]} tokens of {query.shape[-1]} numbers on a grid of {grid_size}")
    rows, columns = (torch.arange(size, dtype=torch.float64) for size in grid_size)
    row, column = (each.reshape(-1, 1) for each in torch.meshgrid(rows, columns, indexing="ij"))
    angles = rule(row, column, speeds_of(pairs))
    return torch.cat([torch.zeros(front, angles.shape[1], dtype=torch.float64), angles]).to(query.device)


def by(rule: Rule, turn: Turn = turned) -> Rotate:
    """Query and key, both turned by the angles of ``rule``; neighbors are pairs unless ``turn`` has others."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        angles = angles_of(query, grid_size, rule)
        return turn(query, angles), turn(key, angles)

    return rotate


def then(change: Callable[[Tensor, Tensor], Pair]) -> Rotate:
    """What ``change`` makes of the right query and key."""
    right = by(axial)
    return lambda query, key, grid_size: change(*right(query, key, grid_size))


def with_speeds(speeds: Callable[[int], Tensor]) -> Rule:
    """The axial rule with other speeds, (pairs,) by the number of pairs."""
    return lambda row, column, usual: axial(row, column, speeds(len(usual)))


def apart(of_query: Rule, of_key: Rule) -> Rotate:
    """Query and key, each by a rule of its own."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        return turned(query, angles_of(query, grid_size, of_query)), turned(key, angles_of(key, grid_size, of_key))

    return rotate


def front_of(query: Tensor, grid_size: Grid) -> int:
    """How many tokens stand in front of the patches."""
    return query.shape[-2] - grid_size[0] * grid_size[1]


def backwards(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """The axial rule with every pair turned the other way round."""
    return axial(-row, -column, speeds)


def not_at_all(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """A rule by which nothing turns."""
    return axial(0 * row, 0 * column, speeds)


def growing(factor: float) -> Rotate:
    """Queries ``factor`` times as long with each row and column, keys as many times shorter, and both turned."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        places = angles_of(query, grid_size, lambda row, column, speeds: row + column)
        growth = (factor**places).to(query.dtype)
        query, key = by(axial)(query, key, grid_size)
        return query * growth, key / growth

    return rotate


def rolled(x: Tensor) -> Tensor:
    """In the place of each image the one before it."""
    return x if x.ndim < 3 else x.roll(1, dims=0)


def known(name: str) -> Rotate:
    """A known mistake in rotary positions; what ``is_rotary`` leaves free makes some of them right."""
    return lambda query, key, grid_size: rotary_2d.mistake(name).objects[0](query, key, grid_size)


def in_turns(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """A rule by which pairs turn by the row and by the column in turns."""
    return torch.stack([row * speeds, column * speeds], dim=-1).flatten(1)


def to_and_fro(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """A rule by which every other pair turns the other way round."""
    angles = axial(row, column, speeds)
    return angles * (1 - 2 * (torch.arange(angles.shape[1]) % 2))


def from_patch_to_patch(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """The axial rule, its angles added up from patch to patch."""
    angles = axial(row, column, speeds)
    return torch.cat([angles[:1], angles.diff(dim=0)]).cumsum(0)


def from_the_middle(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """The axial rule with places counted from the middle of the grid."""
    return axial(row - row.max() / 2, column - column.max() / 2, speeds)


def by_cosines_and_sines(x: Tensor, angles: Tensor) -> Tensor:
    """A right turn by cosines, and by sines with the numbers of each pair exchanged."""
    angles = angles.repeat_interleave(2, dim=1)
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64, device=x.device).repeat(x.shape[-1] // 2)
    cos, sin = angles.cos().to(x.dtype), (signs * angles.sin()).to(x.dtype)
    return x * cos + x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2) * sin


def by_matrix_exponentials(x: Tensor, angles: Tensor) -> Tensor:
    """A right turn by matrices of 2 x 2."""
    quarter_turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64, device=x.device)
    matrices = torch.matrix_exp(angles[..., None, None] * quarter_turn).to(x.dtype)
    return (x.unflatten(-1, (-1, 1, 2)) @ matrices).flatten(-3)


def with_outer_pairs(x: Tensor, angles: Tensor) -> Tensor:
    """A turn of the first number with the last one, of the second with the last but one, and so on."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = (each.to(x.dtype) for each in (angles.cos(), angles.sin()))
    b = b.flip(-1)
    return torch.cat([a * cos - b * sin, (a * sin + b * cos).flip(-1)], dim=-1)


def with_half_pairs(x: Tensor, angles: Tensor) -> Tensor:
    """A turn as libraries write it: x · cos + rotate_half(x) · sin."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = (torch.cat([each, each], dim=-1).to(x.dtype) for each in (angles.cos(), angles.sin()))
    return x * cos + torch.cat([-b, a], dim=-1) * sin


def waves_added(x: Tensor, angles: Tensor) -> Tensor:
    """Sines and cosines added, as those of the table in lesson 02 are."""
    return x + torch.cat([angles.sin(), angles.cos()], dim=-1).to(x.dtype)


def sines_added(x: Tensor, angles: Tensor) -> Tensor:
    """Sines added, and then the length that there was."""
    moved = x + angles.sin().repeat_interleave(2, dim=-1).to(x.dtype)
    return F.normalize(moved, dim=-1) * x.norm(dim=-1, keepdim=True)


def angles_added(x: Tensor, angles: Tensor) -> Tensor:
    """The angle added to both numbers of a pair."""
    return x + angles.repeat_interleave(2, dim=-1).to(x.dtype)


def times_cosines(x: Tensor, angles: Tensor) -> Tensor:
    """Both numbers of a pair times the cosine."""
    return x * angles.cos().repeat_interleave(2, dim=-1).to(x.dtype)


def without_second_sine(x: Tensor, angles: Tensor) -> Tensor:
    """The right first number of each pair, and a second one that lacks its sine."""
    return torch.stack([turned(x, angles)[..., ::2], times_cosines(x, angles)[..., 1::2]], dim=-1).flatten(-2)


def a_whole_turn_more(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Right up to the last digits."""
    front = front_of(query, grid_size)
    angles = angles_of(query, grid_size, axial).to(torch.promote_types(query.dtype, torch.float32))
    angles[front:] += 2 * math.pi
    return turned(query, angles.double()), turned(key, angles.double())


def back_and_on(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Right: half a radian less, and then half a radian."""
    half = angles_of(query, grid_size, lambda row, column, speeds: 0 * axial(row, column, speeds) + 0.5)
    angles = angles_of(query, grid_size, axial) - half
    return turned(turned(query, angles), half), turned(turned(key, angles), half)


def scattered(query: Tensor, key: Tensor) -> Pair:
    """The same numbers, in views that are not contiguous in memory."""
    return query.mT.contiguous().mT, torch.stack([key, key], dim=-1)[..., 0]


def patches_alone(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Right, without the tokens in front of the patches."""
    front = front_of(query, grid_size)
    query, key = by(axial)(query, key, grid_size)
    return query[..., front:, :], key[..., front:, :]


def mirrored(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Pairs of patches mirrored before they are turned."""
    front = front_of(query, grid_size)
    signs = torch.tensor([1.0, -1.0], dtype=query.dtype, device=query.device).repeat(query.shape[-1] // 2)
    before, after = (torch.cat([each[..., :front, :], each[..., front:, :] * signs], dim=-2) for each in (query, key))
    return by(axial)(before, after, grid_size)


def images_to_and_fro(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    """Every other image of a batch turned the other way round."""
    forward, back = by(axial)(query, key, grid_size), by(backwards)(query, key, grid_size)
    if query.ndim < 3:
        return forward
    even = (torch.arange(len(query), device=query.device) % 2 == 0).reshape(-1, *(1,) * (query.ndim - 1))
    return torch.where(even, forward[0], back[0]), torch.where(even, forward[1], back[1])
