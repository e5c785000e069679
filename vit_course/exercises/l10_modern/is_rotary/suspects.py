"""The suspects of ``is_rotary``: right and wrong rotary positions for a student's test to judge.

All of them take query and key (..., tokens, head_dim) and the (rows, columns) of the patches, give a pair of tensors,
and refuse the sizes that ``rotary_2d`` refuses. The right ones use what ``is_rotary`` leaves free: which numbers make a
pair, which pairs turn with the row, in which direction and how fast. Every wrong one is wrong by much more than
rounding on numbers of order 1, as soon as there are two images, a token in front of the patches, two pairs in each
half, and at least three rows and three columns, not as many of both. Some are known mistakes of an earlier exercise.
``check`` asks about these; grading draws their settings, and adds others.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect, drawn
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


def with_speeds(speeds: Callable[[int], Tensor]) -> Rule:
    """The axial rule with other speeds, (pairs,) by the number of pairs."""
    return lambda row, column, usual: axial(row, column, speeds(len(usual)))


def apart(of_query: Rule, of_key: Rule) -> Rotate:
    """Query and key, each by a rule of its own."""

    def rotate(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        return rotated(query, angles_of(query, grid_size, of_query)), rotated(key, angles_of(key, grid_size, of_key))

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
    Suspect("multiplies complex numbers", by(axial, turned)),
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


def _of_other_results(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the key first and then the query", known("key before query")),
        Suspect("gives both as (…, head_dim, tokens)", then(lambda query, key: (query.mT, key.mT))),
    ]


def _of_disagreement(probe: Probe) -> list[Suspect]:
    return [
        Suspect("turns the query and leaves the key as it is", known("the key left alone")),
        Suspect("turns the key and leaves the query as it is", apart(not_at_all, axial)),
        Suspect("turns the key the other way than the query", known("the key turned back")),
    ]


def _of_one_axis(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns the first half by the row, and nothing by the column",
            by(lambda row, column, speeds: axial(row, 0 * column, speeds)),
        ),
        Suspect(
            "turns the second half by the column, and nothing by the row",
            by(lambda row, column, speeds: axial(0 * row, column, speeds)),
        ),
        Suspect("turns both halves by the row", known("the row in both halves")),
    ]


def _of_axes_together(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns both halves by the number of the patch, as if all patches stood in one row", known("one long row")
        ),
        Suspect(
            "turns both halves by the sum of row and column",
            by(lambda row, column, speeds: axial(row + column, row + column, speeds)),
        ),
        Suspect(
            "turns the first half by the sum of row and column, and leaves the second half as it is",
            by(lambda row, column, speeds: axial(row + column, 0 * column, speeds)),
        ),
    ]


def _of_other_places(probe: Probe) -> list[Suspect]:
    right = by(axial)
    return [
        Suspect("takes grid_size for (columns, rows)", lambda query, key, grid: right(query, key, grid[::-1])),
        Suspect(
            "takes the first of all tokens for the patch at row 0 and column 0", known("counted from the class token")
        ),
    ]


def _of_sums(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "adds sines and cosines of the place to query and key", by(axial, lambda x, angles: x + _waves(x, angles))
        ),
        Suspect("adds sines of the place to query and key, and gives them their lengths back", by(axial, _sines_added)),
    ]


def _waves(x: Tensor, angles: Tensor) -> Tensor:
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(x.dtype)


def _sines_added(x: Tensor, angles: Tensor) -> Tensor:
    moved = x + angles.sin().repeat_interleave(2, dim=-1).to(x.dtype)
    return F.normalize(moved, dim=-1) * x.norm(dim=-1, keepdim=True)


def _of_other_lengths(probe: Probe) -> list[Suspect]:
    factor = drawn(probe, 1.05, 1.2, shown=1.1)
    return [
        Suspect("makes (a cos t + b sin t, a sin t + b cos t) of a pair", known("the minus forgotten")),
        Suspect("makes queries longer from patch to patch and keys shorter, beside turning them", growing(factor)),
    ]


def _of_other_speeds(probe: Probe) -> list[Suspect]:
    speed = drawn(probe, 0.3, 1.0, shown=1.0)

    def slow_columns(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return torch.cat([row * speeds, column * torch.full_like(speeds, speed)], dim=1)

    def first_pairs(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return axial(row, column, speeds * (torch.arange(len(speeds)) == 0))

    return [
        Suspect("turns all pairs at one speed", known("one speed for all pairs")),
        Suspect("turns all pairs that turn by the column at one speed", by(slow_columns)),
        Suspect("turns the first pair of each half and leaves the others as they are", by(first_pairs)),
    ]


def _of_other_starts(probe: Probe) -> list[Suspect]:
    angle = drawn(probe, 0.5, 2.0, shown=1.0)
    radians = f"{angle:.2f} radians" if probe.is_secret else "1 radian"

    def front_turned(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        angles = angles_of(query, grid_size, axial)
        angles[: front_of(query, grid_size)] = angle
        return rotated(query, angles), rotated(key, angles)

    return [
        Suspect("counts rows and columns from 1", known("counted from one")),
        Suspect("mirrors each pair, which makes (a cos t + b sin t, a sin t - b cos t) of it", _mirrored),
        Suspect(f"turns the tokens in front of the patches by {radians}", front_turned),
    ]


def _mirrored(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    front = front_of(query, grid_size)
    signs = torch.tensor([1.0, -1.0], dtype=query.dtype, device=query.device).repeat(query.shape[-1] // 2)
    before, after = (torch.cat([each[..., :front, :], each[..., front:, :] * signs], dim=-2) for each in (query, key))
    return by(axial)(before, after, grid_size)


def _of_mixed_images(probe: Probe) -> list[Suspect]:
    angle = drawn(probe, 0.3, 0.8, shown=1.0)

    def further(x: Tensor) -> Tensor:
        if x.ndim < 3:
            return x
        images = torch.arange(len(x), dtype=torch.float64, device=x.device).reshape(-1, *(1,) * (x.ndim - 1))
        return rotated(x, angle * images * torch.ones(x.shape[-2], x.shape[-1] // 2, device=x.device))

    return [
        Suspect(
            "turns each image of a batch further than the one before",
            then(lambda query, key: (further(query), further(key))),
        ),
        Suspect(
            "gives each image the query and key of another one", then(lambda query, key: (rolled(query), rolled(key)))
        ),
        Suspect("turns every other image of a batch the other way round", _images_to_and_fro),
    ]


def _images_to_and_fro(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    forward, back = by(axial)(query, key, grid_size), by(backwards)(query, key, grid_size)
    if query.ndim < 3:
        return forward
    even = (torch.arange(len(query), device=query.device) % 2 == 0).reshape(-1, *(1,) * (query.ndim - 1))
    return torch.where(even, forward[0], back[0]), torch.where(even, forward[1], back[1])


def _of_uneven_steps(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns by the square of the row, and by the column",
            by(lambda row, column, speeds: axial(row**2, column, speeds)),
        ),
        Suspect(
            "turns by the row, and by the square of the column",
            by(lambda row, column, speeds: axial(row, column**2, speeds)),
        ),
    ]


WRONG: dict[str, Family] = {
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


def _unnamed(rotate: Candidate) -> Candidate:
    return lambda query, key, grid_size: rotate(query, key, grid_size)


LINE_UP = LineUp("a rotate", "your own rotary_2d", RIGHT, WRONG, _unnamed)
