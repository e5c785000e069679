"""The suspects of ``is_rotary``: right and wrong rotary positions for a student's test to judge.

The right ones use what ``is_rotary`` leaves free: which numbers make a pair, which pairs turn with the row, in which
direction and how fast. Every wrong one is wrong by much more than rounding on numbers of order 1, as soon as there are
two images, a token in front of the patches, two pairs in each half, and at least three rows and three columns, not as
many of both. Some are known mistakes of an earlier exercise. Grading asks about all of them, with settings drawn, and
``check`` about those that are not ``in_grading``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect, drawn, in_grading
from vit_course.exercises.l10_modern.is_rotary import rotations
from vit_course.exercises.l10_modern.is_rotary.rotations import (
    angles_of,
    apart,
    axial,
    by,
    front_of,
    growing,
    known,
    not_at_all,
    rolled,
    speeds_of,
    then,
    with_speeds,
)
from vit_course.exercises.l10_modern.rotary_2d.claims import Grid, Pair, turned

RIGHT = (
    Suspect("multiplies complex numbers", by(axial)),
    Suspect(
        "multiplies by cosines, and by sines with the numbers of each pair exchanged",
        by(axial, rotations.by_cosines_and_sines),
    ),
    Suspect(
        "turns each patch a whole turn further, which changes nothing but the last digits", rotations.a_whole_turn_more
    ),
    Suspect("turns every pair the other way round", known("both turned the other way")),
    Suspect("pairs a number with the one a quarter of head_dim further on", known("halves for pairs")),
    Suspect("pairs a number with the one half of head_dim further on", known("rotate half")),
    Suspect("turns the first half by the column and the second by the row", known("rows and columns swapped")),
    Suspect("has speeds to the base 20", by(with_speeds(lambda pairs: speeds_of(pairs, 20.0)))),
    *in_grading(
        Suspect("turns every other pair the other way round", by(rotations.to_and_fro)),
        Suspect("turns pairs by the row and by the column in turns", by(rotations.in_turns)),
        Suspect("has its slowest pairs first", by(lambda row, column, speeds: axial(row, column, speeds.flip(0)))),
        Suspect(
            "has speeds that are evenly spaced, from 1 to 0.25",
            by(with_speeds(lambda pairs: torch.linspace(1, 0.25, pairs, dtype=torch.float64))),
        ),
        Suspect("turns by matrix exponentials", by(axial, rotations.by_matrix_exponentials)),
        Suspect("turns the patches half a radian back and then on", rotations.back_and_on),
        Suspect(
            "pairs the first number with the last one, the second with the last but one",
            by(axial, rotations.with_outer_pairs),
        ),
        Suspect(
            "has speeds to the base 50, and pairs of numbers that are half of head_dim apart",
            by(with_speeds(lambda pairs: speeds_of(pairs, 50.0)), rotations.with_half_pairs),
        ),
        Suspect("adds up its angles from patch to patch", by(rotations.from_patch_to_patch)),
        Suspect(
            "turns the first half by the column, backwards", by(lambda row, column, speeds: axial(-column, row, speeds))
        ),
        Suspect("gives views that are not contiguous in memory", then(rotations.scattered)),
    ),
)


def _of_other_results(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the key first and then the query", known("key before query")),
        Suspect("gives both as (…, head_dim, tokens)", then(lambda query, key: (query.mT, key.mT))),
        *in_grading(
            Suspect("gives both with an axis more, of size 1", then(lambda query, key: (query[None], key[None]))),
            Suspect("gives the patches alone, without the tokens in front of them", rotations.patches_alone),
        ),
    ]


def _of_disagreement(probe: Probe) -> list[Suspect]:
    faster = drawn(probe, 1.2, 1.6, shown=1.5)
    return [
        Suspect("turns the query and leaves the key as it is", known("the key left alone")),
        Suspect("turns the key and leaves the query as it is", apart(not_at_all, axial)),
        Suspect("turns the key the other way than the query", known("the key turned back")),
        *in_grading(
            Suspect(
                f"turns the key {faster:.2f} times as fast as the query",
                apart(axial, lambda row, column, speeds: axial(row, column, faster * speeds)),
            ),
            Suspect(
                "turns the key by the column where it turns the query by the row",
                apart(axial, lambda row, column, speeds: axial(column, row, speeds)),
            ),
        ),
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
        *in_grading(
            Suspect("turns all numbers by the column", by(lambda row, column, speeds: axial(column, column, speeds))),
            Suspect("leaves query and key as they are", by(not_at_all)),
        ),
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
        *in_grading(
            Suspect(
                "turns all numbers by the row minus the column",
                by(lambda row, column, speeds: axial(row - column, row - column, speeds)),
            )
        ),
    ]


def _of_other_places(probe: Probe) -> list[Suspect]:
    right = by(axial)
    return [
        Suspect("takes grid_size for (columns, rows)", lambda query, key, grid: right(query, key, grid[::-1])),
        Suspect(
            "takes the first of all tokens for the patch at row 0 and column 0", known("counted from the class token")
        ),
        *in_grading(Suspect("takes the patches to stand column by column", known("patches column by column"))),
    ]


def _of_sums(probe: Probe) -> list[Suspect]:
    share = drawn(probe, 0.4, 0.8, shown=0.5)
    return [
        Suspect("adds sines and cosines of the place to query and key", by(axial, rotations.waves_added)),
        Suspect(
            "adds sines of the place to query and key, and gives them their lengths back",
            by(axial, rotations.sines_added),
        ),
        *in_grading(
            Suspect("adds the angle to both numbers of a pair", by(axial, rotations.angles_added)),
            Suspect("multiplies by the cosines alone", by(axial, rotations.times_cosines)),
            Suspect(
                f"takes {share:.2f} of the rotated numbers, and the rest of those before",
                by(axial, lambda x, angles: (1 - share) * x + share * turned(x, angles)),
            ),
        ),
    ]


def _of_other_lengths(probe: Probe) -> list[Suspect]:
    factor, little = drawn(probe, 1.05, 1.2, shown=1.1), drawn(probe, 1.002, 1.004, shown=1.003)
    return [
        Suspect("makes (a cos t + b sin t, a sin t + b cos t) of a pair", known("the minus forgotten")),
        Suspect("makes queries longer from patch to patch and keys shorter, beside turning them", growing(factor)),
        *in_grading(
            Suspect(
                f"makes queries {little:.3f} times as long with each step, and keys shorter by as much",
                growing(little),
            ),
            Suspect(
                "gives every token the length 1",
                then(lambda query, key: (F.normalize(query, dim=-1), F.normalize(key, dim=-1))),
            ),
            Suspect("forgets the sines of the second number of a pair", by(axial, rotations.without_second_sine)),
        ),
    ]


def _of_other_speeds(probe: Probe) -> list[Suspect]:
    speed = drawn(probe, 0.3, 1.0, shown=1.0)

    def slow_rows(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return torch.cat([row * torch.full_like(speeds, speed), column * speeds], dim=1)

    def slow_columns(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return torch.cat([row * speeds, column * torch.full_like(speeds, speed)], dim=1)

    def first_pairs(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return axial(row, column, speeds * (torch.arange(len(speeds)) == 0))

    return [
        Suspect("turns all pairs at one speed", known("one speed for all pairs")),
        Suspect("turns all pairs that turn by the column at one speed", by(slow_columns)),
        Suspect("turns the first pair of each half and leaves the others as they are", by(first_pairs)),
        *in_grading(
            Suspect(
                f"turns all pairs by {speed:.2f} radians with each step",
                by(with_speeds(lambda pairs: torch.full((pairs,), speed, dtype=torch.float64))),
            ),
            Suspect(f"turns all pairs of the row by {speed:.2f} radians with each row", by(slow_rows)),
        ),
    ]


def _of_other_starts(probe: Probe) -> list[Suspect]:
    angle, first = drawn(probe, 0.5, 2.0, shown=1.0), probe.choice((2, 3), shown=2)
    radians = f"{angle:.2f} radians" if probe.is_secret else "1 radian"

    def front_turned(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        angles = angles_of(query, grid_size, axial)
        angles[: front_of(query, grid_size)] = angle
        return turned(query, angles), turned(key, angles)

    return [
        Suspect("counts rows and columns from 1", known("counted from one")),
        Suspect("mirrors each pair, which makes (a cos t + b sin t, a sin t - b cos t) of it", rotations.mirrored),
        Suspect(f"turns the tokens in front of the patches by {radians}", front_turned),
        *in_grading(
            Suspect(
                f"counts rows and columns from {first}",
                by(lambda row, column, speeds: axial(row + first, column + first, speeds)),
            ),
            Suspect("counts rows and columns from the middle of the grid", by(rotations.from_the_middle)),
        ),
    ]


def _of_mixed_images(probe: Probe) -> list[Suspect]:
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
        Suspect("turns every other image of a batch the other way round", rotations.images_to_and_fro),
        *in_grading(Suspect("gives each image the key of another one", then(lambda query, key: (query, rolled(key))))),
    ]


def _of_uneven_steps(probe: Probe) -> list[Suspect]:
    power = drawn(probe, 1.3, 1.8, shown=1.5)
    return [
        Suspect(
            "turns by the square of the row, and by the column",
            by(lambda row, column, speeds: axial(row**2, column, speeds)),
        ),
        Suspect(
            "turns by the row, and by the square of the column",
            by(lambda row, column, speeds: axial(row, column**2, speeds)),
        ),
        *in_grading(
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
