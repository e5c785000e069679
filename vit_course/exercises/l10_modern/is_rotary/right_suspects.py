"""The right suspects of ``is_rotary``, and what right and wrong ones are made of.

All of them take query and key (..., tokens, head_dim) and the (rows, columns) of the patches, give a pair of tensors,
and refuse the sizes that ``rotary_2d`` refuses. The right ones use what ``is_rotary`` leaves free: which numbers make a
pair, which pairs turn with the row, in which direction and how fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.exercises.impostors import Suspect
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
    """Return what ``change`` makes of the right query and key."""
    right = by(axial)
    return lambda query, key, grid_size: change(*right(query, key, grid_size))


def with_speeds(speeds: Callable[[int], Tensor]) -> Rule:
    """The axial rule with other speeds, (pairs,) by the number of pairs."""
    return lambda row, column, usual: axial(row, column, speeds(len(usual)))


def by_two_rules(of_query: Rule, of_key: Rule) -> Rotate:
    """Query and key, each by a rule of its own."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        return turned(query, angles_of(query, grid_size, of_query)), turned(key, angles_of(key, grid_size, of_key))

    return rotate


def front_of(query: Tensor, grid_size: Grid) -> int:
    """Count the tokens in front of the patches."""
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


def _by_cosines_and_sines(x: Tensor, angles: Tensor) -> Tensor:
    angles = angles.repeat_interleave(2, dim=1)
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64, device=x.device).repeat(x.shape[-1] // 2)
    cos, sin = angles.cos().to(x.dtype), (signs * angles.sin()).to(x.dtype)
    return x * cos + x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2) * sin


def _a_whole_turn_more(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    front = front_of(query, grid_size)
    angles = angles_of(query, grid_size, axial).to(torch.promote_types(query.dtype, torch.float32))
    angles[front:] += 2 * math.pi
    return turned(query, angles.double()), turned(key, angles.double())


RIGHT = (
    Suspect("multiplies complex numbers", by(axial)),
    Suspect(
        "multiplies by cosines, and by sines with the numbers of each pair exchanged",
        by(axial, _by_cosines_and_sines),
    ),
    Suspect("turns each patch a whole turn further, which changes nothing but the last digits", _a_whole_turn_more),
    Suspect("turns every pair the other way round", known("both turned the other way")),
    Suspect("pairs a number with the one a quarter of head_dim further on", known("halves for pairs")),
    Suspect("pairs a number with the one half of head_dim further on", known("rotate half")),
    Suspect("turns the first half by the column and the second by the row", known("rows and columns swapped")),
    Suspect("has speeds to the base 20", by(with_speeds(lambda pairs: speeds_of(pairs, 20.0)))),
)


def _in_turns(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    return torch.stack([row * speeds, column * speeds], dim=-1).flatten(1)


def _to_and_fro(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    angles = axial(row, column, speeds)
    return angles * (1 - 2 * (torch.arange(angles.shape[1]) % 2))


def _by_matrix_exponentials(x: Tensor, angles: Tensor) -> Tensor:
    quarter_turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64, device=x.device)
    matrices = torch.matrix_exp(angles[..., None, None] * quarter_turn).to(x.dtype)
    return (x.unflatten(-1, (-1, 1, 2)) @ matrices).flatten(-3)


def _back_and_on(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    patches = grid_size[0] * grid_size[1]
    half = torch.full((patches, query.shape[-1] // 2), 0.5, dtype=torch.float64, device=query.device)
    half = F.pad(half, (0, 0, query.shape[-2] - patches, 0))
    angles = angles_of(query, grid_size, axial) - half
    return turned(turned(query, angles), half), turned(turned(key, angles), half)


def _with_outer_pairs(x: Tensor, angles: Tensor) -> Tensor:
    """The first number with the last one, the second with the last but one, and so on."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = (each.to(x.dtype) for each in (angles.cos(), angles.sin()))
    b = b.flip(-1)
    return torch.cat([a * cos - b * sin, (a * sin + b * cos).flip(-1)], dim=-1)


def _with_half_pairs(x: Tensor, angles: Tensor) -> Tensor:
    """As libraries write it: x · cos + rotate_half(x) · sin."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = (torch.cat([each, each], dim=-1).to(x.dtype) for each in (angles.cos(), angles.sin()))
    return x * cos + torch.cat([-b, a], dim=-1) * sin


def _from_patch_to_patch(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    angles = axial(row, column, speeds)
    return torch.cat([angles[:1], angles.diff(dim=0)]).cumsum(0)


def _scattered(query: Tensor, key: Tensor) -> Pair:
    return query.mT.contiguous().mT, torch.stack([key, key], dim=-1)[..., 0]


MORE_RIGHT = (
    Suspect("turns every other pair the other way round", by(_to_and_fro)),
    Suspect("turns pairs by the row and by the column in turns", by(_in_turns)),
    Suspect("has its slowest pairs first", by(lambda row, column, speeds: axial(row, column, speeds.flip(0)))),
    Suspect(
        "has speeds that are evenly spaced, from 1 to 0.25",
        by(with_speeds(lambda pairs: torch.linspace(1, 0.25, pairs, dtype=torch.float64))),
    ),
    Suspect("turns by matrix exponentials", by(axial, _by_matrix_exponentials)),
    Suspect("turns the patches half a radian back and then on", _back_and_on),
    Suspect("pairs the first number with the last one, the second with the last but one", by(axial, _with_outer_pairs)),
    Suspect(
        "has speeds to the base 50, and pairs of numbers that are half of head_dim apart",
        by(with_speeds(lambda pairs: speeds_of(pairs, 50.0)), _with_half_pairs),
    ),
    Suspect("adds up its angles from patch to patch", by(_from_patch_to_patch)),
    Suspect(
        "turns the first half by the column, backwards", by(lambda row, column, speeds: axial(-column, row, speeds))
    ),
    Suspect("gives views that are not contiguous in memory", then(_scattered)),
)
