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
from vit_course.exercises.l10_modern.rotary_2d.claims import Grid, Pair, rotary_2d, turn_pairs_by_angles

Rotate = Callable[[Tensor, Tensor, Grid], Pair]
Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
Turn = Callable[[Tensor, Tensor], Tensor]


def speeds_of(pairs: int, base: float = 100.0) -> Tensor:
    """(pairs,): radians per row or column, in float64, the fastest first."""
    return torch.logspace(0, -(pairs - 1) / pairs, pairs, base=base, dtype=torch.float64)


def axial_angles_of(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
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


def make_rotate_by_rule(rule: Rule, turn: Turn = turn_pairs_by_angles) -> Rotate:
    """Query and key, both turned by the angles of ``rule``; neighbors are pairs unless ``turn`` has others."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        angles = angles_of(query, grid_size, rule)
        return turn(query, angles), turn(key, angles)

    return rotate


def make_rotate_and_change(change: Callable[[Tensor, Tensor], Pair]) -> Rotate:
    """Return what ``change`` makes of the right query and key."""
    right = make_rotate_by_rule(axial_angles_of)
    return lambda query, key, grid_size: change(*right(query, key, grid_size))


def make_rule_with_speeds(speeds: Callable[[int], Tensor]) -> Rule:
    """The axial rule with other speeds, (pairs,) by the number of pairs."""
    return lambda row, column, usual: axial_angles_of(row, column, speeds(len(usual)))


def make_rotate_by_two_rules(of_query: Rule, of_key: Rule) -> Rotate:
    """Query and key, each by a rule of its own."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        return turn_pairs_by_angles(query, angles_of(query, grid_size, of_query)), turn_pairs_by_angles(
            key, angles_of(key, grid_size, of_key)
        )

    return rotate


def count_tokens_in_front(query: Tensor, grid_size: Grid) -> int:
    """Count the tokens in front of the patches."""
    return query.shape[-2] - grid_size[0] * grid_size[1]


def reversed_angles_of(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """The axial rule with every pair turned the other way round."""
    return axial_angles_of(-row, -column, speeds)


def zero_angles_of(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """A rule by which nothing turns."""
    return axial_angles_of(0 * row, 0 * column, speeds)


def make_rotate_that_grows(factor: float) -> Rotate:
    """Queries ``factor`` times as long with each row and column, keys as many times shorter, and both turned."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        places = angles_of(query, grid_size, lambda row, column, speeds: row + column)
        growth = (factor**places).to(query.dtype)
        query, key = make_rotate_by_rule(axial_angles_of)(query, key, grid_size)
        return query * growth, key / growth

    return rotate


def shift_images_by_one(x: Tensor) -> Tensor:
    """In the place of each image the one before it."""
    return x if x.ndim < 3 else x.roll(1, dims=0)


def make_rotate_of_known_mistake(name: str) -> Rotate:
    """A known mistake in rotary positions; what ``is_rotary`` leaves free makes some of them right."""
    return lambda query, key, grid_size: rotary_2d.mistake(name).objects[0](query, key, grid_size)


def _turn_by_cosines_and_sines(x: Tensor, angles: Tensor) -> Tensor:
    angles = angles.repeat_interleave(2, dim=1)
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64, device=x.device).repeat(x.shape[-1] // 2)
    cos, sin = angles.cos().to(x.dtype), (signs * angles.sin()).to(x.dtype)
    return x * cos + x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2) * sin


def _rotate_by_whole_turn_more(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    front = count_tokens_in_front(query, grid_size)
    angles = angles_of(query, grid_size, axial_angles_of).to(torch.promote_types(query.dtype, torch.float32))
    angles[front:] += 2 * math.pi
    return turn_pairs_by_angles(query, angles.double()), turn_pairs_by_angles(key, angles.double())


RIGHT = (
    Suspect("multiplies complex numbers", make_rotate_by_rule(axial_angles_of)),
    Suspect(
        "multiplies by cosines, and by sines with the numbers of each pair exchanged",
        make_rotate_by_rule(axial_angles_of, _turn_by_cosines_and_sines),
    ),
    Suspect(
        "turns each patch a whole turn further, which changes nothing but the last digits", _rotate_by_whole_turn_more
    ),
    Suspect("turns every pair the other way round", make_rotate_of_known_mistake("both turned the other way")),
    Suspect(
        "pairs a number with the one a quarter of head_dim further on", make_rotate_of_known_mistake("halves for pairs")
    ),
    Suspect("pairs a number with the one half of head_dim further on", make_rotate_of_known_mistake("rotate half")),
    Suspect(
        "turns the first half by the column and the second by the row",
        make_rotate_of_known_mistake("rows and columns swapped"),
    ),
    Suspect(
        "has speeds to the base 20", make_rotate_by_rule(make_rule_with_speeds(lambda pairs: speeds_of(pairs, 20.0)))
    ),
)


def _interleave_row_and_column_angles(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    return torch.stack([row * speeds, column * speeds], dim=-1).flatten(1)


def _alternate_signs_of_angles(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    angles = axial_angles_of(row, column, speeds)
    return angles * (1 - 2 * (torch.arange(angles.shape[1]) % 2))


def _turn_by_matrix_exponentials(x: Tensor, angles: Tensor) -> Tensor:
    quarter_turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64, device=x.device)
    matrices = torch.matrix_exp(angles[..., None, None] * quarter_turn).to(x.dtype)
    return (x.unflatten(-1, (-1, 1, 2)) @ matrices).flatten(-3)


def _rotate_in_two_steps(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    patches = grid_size[0] * grid_size[1]
    half = torch.full((patches, query.shape[-1] // 2), 0.5, dtype=torch.float64, device=query.device)
    half = F.pad(half, (0, 0, query.shape[-2] - patches, 0))
    angles = angles_of(query, grid_size, axial_angles_of) - half
    return turn_pairs_by_angles(turn_pairs_by_angles(query, angles), half), turn_pairs_by_angles(
        turn_pairs_by_angles(key, angles), half
    )


def _turn_outer_pairs(x: Tensor, angles: Tensor) -> Tensor:
    """The first number with the last one, the second with the last but one, and so on."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = (each.to(x.dtype) for each in (angles.cos(), angles.sin()))
    b = b.flip(-1)
    return torch.cat([a * cos - b * sin, (a * sin + b * cos).flip(-1)], dim=-1)


def _turn_half_pairs(x: Tensor, angles: Tensor) -> Tensor:
    """As libraries write it: x · cos + rotate_half(x) · sin."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = (torch.cat([each, each], dim=-1).to(x.dtype) for each in (angles.cos(), angles.sin()))
    return x * cos + torch.cat([-b, a], dim=-1) * sin


def _accumulate_angles_over_patches(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    angles = axial_angles_of(row, column, speeds)
    return torch.cat([angles[:1], angles.diff(dim=0)]).cumsum(0)


def _make_noncontiguous(query: Tensor, key: Tensor) -> Pair:
    return query.mT.contiguous().mT, torch.stack([key, key], dim=-1)[..., 0]


MORE_RIGHT = (
    Suspect("turns every other pair the other way round", make_rotate_by_rule(_alternate_signs_of_angles)),
    Suspect(
        "turns pairs by the row and by the column in turns", make_rotate_by_rule(_interleave_row_and_column_angles)
    ),
    Suspect(
        "has its slowest pairs first",
        make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row, column, speeds.flip(0))),
    ),
    Suspect(
        "has speeds that are evenly spaced, from 1 to 0.25",
        make_rotate_by_rule(make_rule_with_speeds(lambda pairs: torch.linspace(1, 0.25, pairs, dtype=torch.float64))),
    ),
    Suspect("turns by matrix exponentials", make_rotate_by_rule(axial_angles_of, _turn_by_matrix_exponentials)),
    Suspect("turns the patches half a radian back and then on", _rotate_in_two_steps),
    Suspect(
        "pairs the first number with the last one, the second with the last but one",
        make_rotate_by_rule(axial_angles_of, _turn_outer_pairs),
    ),
    Suspect(
        "has speeds to the base 50, and pairs of numbers that are half of head_dim apart",
        make_rotate_by_rule(make_rule_with_speeds(lambda pairs: speeds_of(pairs, 50.0)), _turn_half_pairs),
    ),
    Suspect("adds up its angles from patch to patch", make_rotate_by_rule(_accumulate_angles_over_patches)),
    Suspect(
        "turns the first half by the column, backwards",
        make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(-column, row, speeds)),
    ),
    Suspect("gives views that are not contiguous in memory", make_rotate_and_change(_make_noncontiguous)),
)
