"""The suspects of ``is_rotary``: right and wrong rotary positions for a student's test to judge.

Every wrong one is wrong by much more than rounding on numbers of order 1, as soon as there are two images, a token in
front of the patches, two pairs in each half, and at least three rows and three columns, not as many of both. Some are
known mistakes of an earlier exercise. ``check`` asks about the first of each family; grading draws their settings, and
asks about the others too.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect, drawn, family
from vit_course.exercises.l10_modern.is_rotary.right_suspects import (
    MORE_RIGHT,
    RIGHT,
    angles_of,
    axial,
    backwards,
    by,
    by_two_rules,
    front_of,
    growing,
    known,
    not_at_all,
    rolled,
    then,
    with_speeds,
)
from vit_course.exercises.l10_modern.rotary_2d.claims import Grid, Pair, turned


def _make_suspects_of_other_results(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the key first and then the query", known("key before query")),
        Suspect("gives both as (…, head_dim, tokens)", then(lambda query, key: (query.mT, key.mT))),
    ]


def _make_more_suspects_of_other_results(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives both with an axis more, of size 1", then(lambda query, key: (query[None], key[None]))),
        Suspect("gives the patches alone, without the tokens in front of them", _patches_alone),
    ]


def _patches_alone(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    front = front_of(query, grid_size)
    query, key = by(axial)(query, key, grid_size)
    return query[..., front:, :], key[..., front:, :]


def _make_suspects_of_disagreement(probe: Probe) -> list[Suspect]:
    return [
        Suspect("turns the query and leaves the key as it is", known("the key left alone")),
        Suspect("turns the key and leaves the query as it is", by_two_rules(not_at_all, axial)),
        Suspect("turns the key the other way than the query", known("the key turned back")),
    ]


def _make_more_suspects_of_disagreement(probe: Probe) -> list[Suspect]:
    faster = float(probe.uniform(1, low=1.2, high=1.6))
    return [
        Suspect(
            f"turns the key {faster:.2f} times as fast as the query",
            by_two_rules(axial, lambda row, column, speeds: axial(row, column, faster * speeds)),
        ),
        Suspect(
            "turns the key by the column where it turns the query by the row",
            by_two_rules(axial, lambda row, column, speeds: axial(column, row, speeds)),
        ),
    ]


def _make_suspects_of_one_axis(probe: Probe) -> list[Suspect]:
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


def _make_more_suspects_of_one_axis(probe: Probe) -> list[Suspect]:
    return [
        Suspect("turns all numbers by the column", by(lambda row, column, speeds: axial(column, column, speeds))),
        Suspect("leaves query and key as they are", by(not_at_all)),
    ]


def _make_suspects_of_axes_together(probe: Probe) -> list[Suspect]:
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


def _make_more_suspects_of_axes_together(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns all numbers by the row minus the column",
            by(lambda row, column, speeds: axial(row - column, row - column, speeds)),
        )
    ]


def _make_suspects_of_other_places(probe: Probe) -> list[Suspect]:
    right = by(axial)
    return [
        Suspect("takes grid_size for (columns, rows)", lambda query, key, grid: right(query, key, grid[::-1])),
        Suspect(
            "takes the first of all tokens for the patch at row 0 and column 0", known("counted from the class token")
        ),
    ]


def _make_more_suspects_of_other_places(probe: Probe) -> list[Suspect]:
    return [Suspect("takes the patches to stand column by column", known("patches column by column"))]


def _make_suspects_of_sums(probe: Probe) -> list[Suspect]:
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


def _make_more_suspects_of_sums(probe: Probe) -> list[Suspect]:
    share = float(probe.uniform(1, low=0.4, high=0.8))
    return [
        Suspect("adds the angle to both numbers of a pair", by(axial, _angles_added)),
        Suspect("multiplies by the cosines alone", by(axial, _times_cosines)),
        Suspect(
            f"takes {share:.2f} of the rotated numbers, and the rest of those before",
            by(axial, lambda x, angles: (1 - share) * x + share * turned(x, angles)),
        ),
    ]


def _angles_added(x: Tensor, angles: Tensor) -> Tensor:
    return x + angles.repeat_interleave(2, dim=-1).to(x.dtype)


def _times_cosines(x: Tensor, angles: Tensor) -> Tensor:
    return x * angles.cos().repeat_interleave(2, dim=-1).to(x.dtype)


def _make_suspects_of_other_lengths(probe: Probe) -> list[Suspect]:
    factor = drawn(probe, 1.05, 1.2, shown=1.1)
    return [
        Suspect("makes (a cos t + b sin t, a sin t + b cos t) of a pair", known("the minus forgotten")),
        Suspect("makes queries longer from patch to patch and keys shorter, beside turning them", growing(factor)),
    ]


def _make_more_suspects_of_other_lengths(probe: Probe) -> list[Suspect]:
    little = float(probe.uniform(1, low=1.002, high=1.004))
    return [
        Suspect(
            f"makes queries {little:.3f} times as long with each step, and keys shorter by as much", growing(little)
        ),
        Suspect(
            "gives every token the length 1",
            then(lambda query, key: (F.normalize(query, dim=-1), F.normalize(key, dim=-1))),
        ),
        Suspect("forgets the sines of the second number of a pair", by(axial, _without_second_sine)),
    ]


def _without_second_sine(x: Tensor, angles: Tensor) -> Tensor:
    return torch.stack([turned(x, angles)[..., ::2], _times_cosines(x, angles)[..., 1::2]], dim=-1).flatten(-2)


def _make_suspects_of_other_speeds(probe: Probe) -> list[Suspect]:
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


def _make_more_suspects_of_other_speeds(probe: Probe) -> list[Suspect]:
    speed = float(probe.uniform(1, low=0.3, high=1.0))

    def slow_rows(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return torch.cat([row * torch.full_like(speeds, speed), column * speeds], dim=1)

    return [
        Suspect(
            f"turns all pairs by {speed:.2f} radians with each step",
            by(with_speeds(lambda pairs: torch.full((pairs,), speed, dtype=torch.float64))),
        ),
        Suspect(f"turns all pairs of the row by {speed:.2f} radians with each row", by(slow_rows)),
    ]


def _make_suspects_of_other_starts(probe: Probe) -> list[Suspect]:
    angle = drawn(probe, 0.5, 2.0, shown=1.0)
    radians = f"{angle:.2f} radians" if probe.is_secret else "1 radian"

    def front_turned(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        angles = angles_of(query, grid_size, axial)
        angles[: front_of(query, grid_size)] = angle
        return turned(query, angles), turned(key, angles)

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


def _make_more_suspects_of_other_starts(probe: Probe) -> list[Suspect]:
    first = 2 + int(probe.integers(1, high=2))
    return [
        Suspect(
            f"counts rows and columns from {first}",
            by(lambda row, column, speeds: axial(row + first, column + first, speeds)),
        ),
        Suspect("counts rows and columns from the middle of the grid", by(_from_the_middle)),
    ]


def _from_the_middle(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    return axial(row - row.max() / 2, column - column.max() / 2, speeds)


def _make_suspects_of_mixed_images(probe: Probe) -> list[Suspect]:
    angle = drawn(probe, 0.3, 0.8, shown=1.0)

    def further(x: Tensor) -> Tensor:
        if x.ndim < 3:
            return x
        images = torch.arange(len(x), dtype=torch.float64, device=x.device).reshape(-1, *(1,) * (x.ndim - 1))
        return turned(x, angle * images * torch.ones(x.shape[-2], x.shape[-1] // 2, device=x.device))

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


def _make_more_suspects_of_mixed_images(probe: Probe) -> list[Suspect]:
    return [Suspect("gives each image the key of another one", then(lambda query, key: (query, rolled(key))))]


def _make_suspects_of_uneven_steps(probe: Probe) -> list[Suspect]:
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


def _make_more_suspects_of_uneven_steps(probe: Probe) -> list[Suspect]:
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


WRONG: dict[str, Family] = {
    "returned": family(_make_suspects_of_other_results, _make_more_suspects_of_other_results),
    "disagreeing": family(_make_suspects_of_disagreement, _make_more_suspects_of_disagreement),
    "one axis": family(_make_suspects_of_one_axis, _make_more_suspects_of_one_axis),
    "together": family(_make_suspects_of_axes_together, _make_more_suspects_of_axes_together),
    "places": family(_make_suspects_of_other_places, _make_more_suspects_of_other_places),
    "added": family(_make_suspects_of_sums, _make_more_suspects_of_sums),
    "lengths": family(_make_suspects_of_other_lengths, _make_more_suspects_of_other_lengths),
    "speeds": family(_make_suspects_of_other_speeds, _make_more_suspects_of_other_speeds),
    "start": family(_make_suspects_of_other_starts, _make_more_suspects_of_other_starts),
    "images": family(_make_suspects_of_mixed_images, _make_more_suspects_of_mixed_images),
    "uneven": family(_make_suspects_of_uneven_steps, _make_more_suspects_of_uneven_steps),
}


def _unnamed(rotate: Candidate) -> Candidate:
    return lambda query, key, grid_size: rotate(query, key, grid_size)


LINE_UP = LineUp("a rotate", "your own rotary_2d", RIGHT, MORE_RIGHT, WRONG, _unnamed)
