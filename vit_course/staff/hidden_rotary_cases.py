"""Right and wrong rotary positions for the hidden checks of ``is_rotary``, with settings that are drawn.

The right ones use what the exercise leaves free: which numbers make a pair, which pairs turn with the row, in which
direction and how fast. None stands in the public checks as it is here. Every wrong one is wrong by much more than
rounding on numbers of order 1, as soon as there are two images, a token in front of the patches, two pairs in each
half, and at least three rows and three columns, not as many of both.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.impostors import Suspect

Grid = tuple[int, int]
Pair = tuple[Tensor, Tensor]
Rotate = Callable[[Tensor, Tensor, Grid], Pair]
Rule = Callable[[Tensor, Tensor, Tensor], Tensor]
Turn = Callable[[Tensor, Tensor], Tensor]


def speeds_of(pairs: int, base: float = 100.0) -> Tensor:
    """(pairs,): radians per row or column, in float64, the fastest first."""
    return torch.logspace(0, -(pairs - 1) / pairs, pairs, base=base, dtype=torch.float64)


def axial(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    """(patches, 2 · pairs): angles of the row (patches, 1) first, then those of the column (patches, 1)."""
    return torch.cat([row * speeds, column * speeds], dim=1)


def angles_of(query: Tensor, grid_size: Grid, rule: Rule, speeds: Tensor | None = None) -> Tensor:
    """(tokens, head_dim / 2) by ``rule``, zeros in front of the patches; ValueError for sizes that do not fit."""
    front, pairs = query.shape[-2] - grid_size[0] * grid_size[1], query.shape[-1] // 4
    if query.shape[-1] % 4 or front < 0:
        raise ValueError(f"{query.shape[-2]} tokens of {query.shape[-1]} numbers on a grid of {grid_size}")
    rows, columns = (torch.arange(size, dtype=torch.float64) for size in grid_size)
    row, column = (each.reshape(-1, 1) for each in torch.meshgrid(rows, columns, indexing="ij"))
    angles = rule(row, column, speeds_of(pairs) if speeds is None else speeds)
    return torch.cat([torch.zeros(front, angles.shape[1], dtype=torch.float64), angles]).to(query.device)


def rotated(x: Tensor, angles: Tensor) -> Tensor:
    """``x`` (..., tokens, head_dim) with numbers 2i and 2i + 1 turned by angle i of each token."""
    cos, sin = (each.to(x.dtype) for each in (angles.cos(), angles.sin()))
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)


def by(rule: Rule, turn: Turn = rotated) -> Rotate:
    """Query and key, both by ``turn`` and the angles of ``rule``."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        angles = angles_of(query, grid_size, rule)
        return turn(query, angles), turn(key, angles)

    return rotate


def then(change: Callable[[Tensor, Tensor], Pair]) -> Rotate:
    """What ``change`` makes of the right query and key."""
    right = by(axial)
    return lambda query, key, grid_size: change(*right(query, key, grid_size))


def apart(of_query: Rule, of_key: Rule) -> Rotate:
    """Query and key, each by a rule of its own."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        return rotated(query, angles_of(query, grid_size, of_query)), rotated(key, angles_of(key, grid_size, of_key))

    return rotate


def with_speeds(speeds: Callable[[int], Tensor]) -> Rule:
    """The axial rule with other speeds, (pairs,) by the number of pairs."""
    return lambda row, column, usual: axial(row, column, speeds(len(usual)))


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
    return rotated(rotated(query, angles), half), rotated(rotated(key, angles), half)


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


RIGHT = (
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


def _of_other_results(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the key first and then the query", then(lambda query, key: (key, query))),
        Suspect("gives both as (…, head_dim, tokens)", then(lambda query, key: (query.mT, key.mT))),
        Suspect("gives both with an axis more, of size 1", then(lambda query, key: (query[None], key[None]))),
        Suspect("gives the patches alone, without the tokens in front of them", _patches_alone),
    ]


def _patches_alone(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    front = query.shape[-2] - grid_size[0] * grid_size[1]
    query, key = by(axial)(query, key, grid_size)
    return query[..., front:, :], key[..., front:, :]


def _of_disagreement(probe: Probe) -> list[Suspect]:
    faster = float(probe.uniform(1, low=1.2, high=1.6))
    return [
        Suspect("turns the query and leaves the key as it is", apart(axial, _not_at_all)),
        Suspect("turns the key and leaves the query as it is", apart(_not_at_all, axial)),
        Suspect("turns the key the other way than the query", apart(axial, _backwards)),
        Suspect(
            f"turns the key {faster:.2f} times as fast as the query",
            apart(axial, lambda row, column, speeds: axial(row, column, faster * speeds)),
        ),
        Suspect(
            "turns the key by the column where it turns the query by the row",
            apart(axial, lambda row, column, speeds: axial(column, row, speeds)),
        ),
    ]


def _not_at_all(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    return axial(0 * row, 0 * column, speeds)


def _backwards(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    return axial(-row, -column, speeds)


def _of_one_axis(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns by the row alone, half of the numbers", by(lambda row, column, speeds: axial(row, 0 * row, speeds))
        ),
        Suspect(
            "turns by the column alone, half of the numbers",
            by(lambda row, column, speeds: axial(0 * row, column, speeds)),
        ),
        Suspect("turns all numbers by the row", by(lambda row, column, speeds: axial(row, row, speeds))),
        Suspect("turns all numbers by the column", by(lambda row, column, speeds: axial(column, column, speeds))),
        Suspect("leaves query and key as they are", by(_not_at_all)),
    ]


def _of_axes_together(probe: Probe) -> list[Suspect]:
    def difference(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return axial(row - column, row - column, speeds)

    return [
        Suspect("turns all numbers by the number of the patch", by(_in_one_row)),
        Suspect(
            "turns all numbers by the sum of row and column",
            by(lambda row, column, speeds: axial(row + column, row + column, speeds)),
        ),
        Suspect("turns all numbers by the row minus the column", by(difference)),
        Suspect(
            "turns half of the numbers by the sum of row and column, and the others not at all",
            by(lambda row, column, speeds: axial(row + column, 0 * row, speeds)),
        ),
    ]


def _in_one_row(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    number = torch.arange(len(row), dtype=torch.float64)[:, None]
    return axial(number, number, speeds)


def _of_other_places(probe: Probe) -> list[Suspect]:
    right = by(axial)
    return [
        Suspect("takes grid_size for (columns, rows)", lambda query, key, grid: right(query, key, grid[::-1])),
        Suspect("takes the patches to stand column by column", _column_by_column),
        Suspect("takes the first of all tokens for the first patch", _from_the_first_token),
    ]


def _column_by_column(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    rows = grid_size[0]

    def rule(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        number = torch.arange(len(row), dtype=torch.float64)[:, None]
        return axial(number % rows, number.div(rows, rounding_mode="floor"), speeds)

    return by(rule)(query, key, grid_size)


def _from_the_first_token(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    front = query.shape[-2] - grid_size[0] * grid_size[1]
    angles = angles_of(query, grid_size, axial)
    angles = torch.cat([angles[front:], angles[:front]])
    return rotated(query, angles), rotated(key, angles)


def _of_sums(probe: Probe) -> list[Suspect]:
    share = float(probe.uniform(1, low=0.4, high=0.8))

    def blended(x: Tensor, angles: Tensor) -> Tensor:
        return (1 - share) * x + share * rotated(x, angles)

    return [
        Suspect("adds the sines and cosines of all angles", by(axial, lambda x, angles: x + _waves(x, angles))),
        Suspect("adds the sines of all angles and keeps the lengths", by(axial, _sines_added)),
        Suspect("adds the angle to both numbers of a pair", by(axial, _angles_added)),
        Suspect("multiplies by the cosines alone", by(axial, _times_cosines)),
        Suspect(f"takes {share:.2f} of the rotated numbers, and the rest of those before", by(axial, blended)),
    ]


def _waves(x: Tensor, angles: Tensor) -> Tensor:
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(x.dtype)


def _sines_added(x: Tensor, angles: Tensor) -> Tensor:
    moved = x + angles.sin().repeat_interleave(2, dim=-1).to(x.dtype)
    return F.normalize(moved, dim=-1) * x.norm(dim=-1, keepdim=True)


def _angles_added(x: Tensor, angles: Tensor) -> Tensor:
    return x + angles.repeat_interleave(2, dim=-1).to(x.dtype)


def _times_cosines(x: Tensor, angles: Tensor) -> Tensor:
    return x * angles.cos().repeat_interleave(2, dim=-1).to(x.dtype)


def _of_other_lengths(probe: Probe) -> list[Suspect]:
    factors = float(probe.uniform(1, low=1.05, high=1.2)), float(probe.uniform(1, low=1.002, high=1.004))

    return [
        Suspect("makes (a cos t + b sin t, a sin t + b cos t) of a pair", by(axial, _without_minus)),
        *map(_growing, factors),
        Suspect(
            "gives every token the length 1",
            then(lambda query, key: (F.normalize(query, dim=-1), F.normalize(key, dim=-1))),
        ),
        Suspect("forgets the sines of the second number of a pair", by(axial, _without_second_sine)),
    ]


def _growing(factor: float) -> Suspect:
    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        places = angles_of(query, grid_size, lambda row, column, speeds: row + column)
        growth = (factor**places).to(query.dtype)
        query, key = by(axial)(query, key, grid_size)
        return query * growth, key / growth

    return Suspect(f"makes queries {factor:.3f} times as long with each step, and keys shorter by as much", rotate)


def _without_minus(x: Tensor, angles: Tensor) -> Tensor:
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = (each.to(x.dtype) for each in (angles.cos(), angles.sin()))
    return torch.stack([a * cos + b * sin, a * sin + b * cos], dim=-1).flatten(-2)


def _without_second_sine(x: Tensor, angles: Tensor) -> Tensor:
    return torch.stack([rotated(x, angles)[..., ::2], _times_cosines(x, angles)[..., 1::2]], dim=-1).flatten(-2)


def _of_other_speeds(probe: Probe) -> list[Suspect]:
    speed = float(probe.uniform(1, low=0.3, high=1.0))

    def slow_rows(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return torch.cat([row * torch.full_like(speeds, speed), column * speeds], dim=1)

    def slow_columns(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return torch.cat([row * speeds, column * torch.full_like(speeds, speed)], dim=1)

    def first_pairs(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return axial(row, column, speeds * (torch.arange(len(speeds)) == 0))

    return [
        Suspect(
            f"turns all pairs by {speed:.2f} radians with each step",
            by(with_speeds(lambda pairs: torch.full((pairs,), speed, dtype=torch.float64))),
        ),
        Suspect(f"turns all pairs of the row by {speed:.2f} radians with each row", by(slow_rows)),
        Suspect(f"turns all pairs of the column by {speed:.2f} radians with each column", by(slow_columns)),
        Suspect("turns the first pair of each half alone", by(first_pairs)),
    ]


def _of_other_starts(probe: Probe) -> list[Suspect]:
    first = 1 + int(probe.integers(1, high=3))
    angle = float(probe.uniform(1, low=0.5, high=2.0))

    def front_turned(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        front = query.shape[-2] - grid_size[0] * grid_size[1]
        angles = angles_of(query, grid_size, axial)
        angles[:front] = angle
        return rotated(query, angles), rotated(key, angles)

    return [
        Suspect(
            f"counts rows and columns from {first}",
            by(lambda row, column, speeds: axial(row + first, column + first, speeds)),
        ),
        Suspect("counts rows and columns from the middle of the grid", by(_from_the_middle)),
        Suspect("mirrors each pair", _mirrored),
        Suspect(f"turns the tokens in front of the patches by {angle:.2f} radians", front_turned),
    ]


def _from_the_middle(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    return axial(row - row.max() / 2, column - column.max() / 2, speeds)


def _mirrored(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    front = query.shape[-2] - grid_size[0] * grid_size[1]
    signs = torch.tensor([1.0, -1.0], dtype=query.dtype, device=query.device).repeat(query.shape[-1] // 2)
    before, after = (torch.cat([each[..., :front, :], each[..., front:, :] * signs], dim=-2) for each in (query, key))
    return by(axial)(before, after, grid_size)


def _of_mixed_images(probe: Probe) -> list[Suspect]:
    angle = float(probe.uniform(1, low=0.3, high=0.8))

    def further(x: Tensor) -> Tensor:
        if x.ndim < 3:
            return x
        images = torch.arange(len(x), dtype=torch.float64, device=x.device).reshape(-1, *(1,) * (x.ndim - 1))
        return rotated(x, angle * images * torch.ones(x.shape[-2], x.shape[-1] // 2, device=x.device))

    def rolled(x: Tensor) -> Tensor:
        return x if x.ndim < 3 else x.roll(1, dims=0)

    return [
        Suspect(
            f"turns each image of a batch {angle:.2f} radians further than the one before",
            then(lambda query, key: (further(query), further(key))),
        ),
        Suspect(
            "gives each image the query and key of another one", then(lambda query, key: (rolled(query), rolled(key)))
        ),
        Suspect("turns every other image of a batch the other way round", _images_to_and_fro),
        Suspect("gives each image the key of another one", then(lambda query, key: (query, rolled(key)))),
    ]


def _images_to_and_fro(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    forward, back = by(axial)(query, key, grid_size), by(_backwards)(query, key, grid_size)
    if query.ndim < 3:
        return forward
    even = (torch.arange(len(query), device=query.device) % 2 == 0).reshape(-1, *(1,) * (query.ndim - 1))
    return torch.where(even, forward[0], back[0]), torch.where(even, forward[1], back[1])


def _of_uneven_steps(probe: Probe) -> list[Suspect]:
    power = float(probe.uniform(1, low=1.3, high=1.8))
    return [
        Suspect(
            f"turns by the row to the power of {power:.2f}",
            by(lambda row, column, speeds: axial(row**power, column, speeds)),
        ),
        Suspect(
            f"turns by the column to the power of {power:.2f}",
            by(lambda row, column, speeds: axial(row, column**power, speeds)),
        ),
        Suspect(
            "takes the last row for the first one",
            by(lambda row, column, speeds: axial(row % row.max().clamp(min=1), column, speeds)),
        ),
        Suspect(
            "takes the last column for the first one",
            by(lambda row, column, speeds: axial(row, column % column.max().clamp(min=1), speeds)),
        ),
    ]


WRONG: dict[str, Callable[[Probe], list[Suspect]]] = {
    "returned": _of_other_results,
    "disagreeing": _of_disagreement,
    "one axis": _of_one_axis,
    "together": _of_axes_together,
    "places": _of_other_places,
    "added": _of_sums,
    "lengths": _of_other_lengths,
    "speeds": _of_other_speeds,
    "start": _of_other_starts,
    "images": _of_mixed_images,
    "uneven": _of_uneven_steps,
}
