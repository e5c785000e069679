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
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect, add_graded_suspects, draw_setting
from vit_course.exercises.l10_modern.is_rotary.right_suspects import (
    MORE_RIGHT,
    RIGHT,
    angles_of,
    axial_angles_of,
    count_tokens_in_front,
    make_rotate_and_change,
    make_rotate_by_rule,
    make_rotate_by_two_rules,
    make_rotate_of_known_mistake,
    make_rotate_that_grows,
    make_rule_with_speeds,
    reversed_angles_of,
    shift_images_by_one,
    zero_angles_of,
)
from vit_course.exercises.l10_modern.rotary_2d.claims import Grid, Pair, turn_pairs_by_angles


def _make_suspects_of_other_results(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the key first and then the query", make_rotate_of_known_mistake("key before query")),
        Suspect("gives both as (…, head_dim, tokens)", make_rotate_and_change(lambda query, key: (query.mT, key.mT))),
    ]


def _make_more_suspects_of_other_results(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives both with an axis more, of size 1",
            make_rotate_and_change(lambda query, key: (query[None], key[None])),
        ),
        Suspect("gives the patches alone, without the tokens in front of them", _rotate_and_return_patches_only),
    ]


def _rotate_and_return_patches_only(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    front = count_tokens_in_front(query, grid_size)
    query, key = make_rotate_by_rule(axial_angles_of)(query, key, grid_size)
    return query[..., front:, :], key[..., front:, :]


def _make_suspects_of_disagreement(probe: Probe) -> list[Suspect]:
    return [
        Suspect("turns the query and leaves the key as it is", make_rotate_of_known_mistake("the key left alone")),
        Suspect(
            "turns the key and leaves the query as it is", make_rotate_by_two_rules(zero_angles_of, axial_angles_of)
        ),
        Suspect("turns the key the other way than the query", make_rotate_of_known_mistake("the key turned back")),
    ]


def _make_more_suspects_of_disagreement(probe: Probe) -> list[Suspect]:
    faster = float(probe.uniform(1, low=1.2, high=1.6))
    return [
        Suspect(
            f"turns the key {faster:.2f} times as fast as the query",
            make_rotate_by_two_rules(
                axial_angles_of, lambda row, column, speeds: axial_angles_of(row, column, faster * speeds)
            ),
        ),
        Suspect(
            "turns the key by the column where it turns the query by the row",
            make_rotate_by_two_rules(axial_angles_of, lambda row, column, speeds: axial_angles_of(column, row, speeds)),
        ),
    ]


def _make_suspects_of_one_axis(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns the first half by the row, and nothing by the column",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row, 0 * column, speeds)),
        ),
        Suspect(
            "turns the second half by the column, and nothing by the row",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(0 * row, column, speeds)),
        ),
        Suspect("turns both halves by the row", make_rotate_of_known_mistake("the row in both halves")),
    ]


def _make_more_suspects_of_one_axis(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns all numbers by the column",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(column, column, speeds)),
        ),
        Suspect("leaves query and key as they are", make_rotate_by_rule(zero_angles_of)),
    ]


def _make_suspects_of_axes_together(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns both halves by the number of the patch, as if all patches stood in one row",
            make_rotate_of_known_mistake("one long row"),
        ),
        Suspect(
            "turns both halves by the sum of row and column",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row + column, row + column, speeds)),
        ),
        Suspect(
            "turns the first half by the sum of row and column, and leaves the second half as it is",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row + column, 0 * column, speeds)),
        ),
    ]


def _make_more_suspects_of_axes_together(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns all numbers by the row minus the column",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row - column, row - column, speeds)),
        )
    ]


def _make_suspects_of_other_places(probe: Probe) -> list[Suspect]:
    right = make_rotate_by_rule(axial_angles_of)
    return [
        Suspect("takes grid_size for (columns, rows)", lambda query, key, grid: right(query, key, grid[::-1])),
        Suspect(
            "takes the first of all tokens for the patch at row 0 and column 0",
            make_rotate_of_known_mistake("counted from the class token"),
        ),
    ]


def _make_more_suspects_of_other_places(probe: Probe) -> list[Suspect]:
    return [
        Suspect("takes the patches to stand column by column", make_rotate_of_known_mistake("patches column by column"))
    ]


def _make_suspects_of_sums(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "adds sines and cosines of the place to query and key",
            make_rotate_by_rule(axial_angles_of, lambda x, angles: x + _replace_by_sines_and_cosines(x, angles)),
        ),
        Suspect(
            "adds sines of the place to query and key, and gives them their lengths back",
            make_rotate_by_rule(axial_angles_of, _add_sines_and_keep_length),
        ),
    ]


def _replace_by_sines_and_cosines(x: Tensor, angles: Tensor) -> Tensor:
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(x.dtype)


def _add_sines_and_keep_length(x: Tensor, angles: Tensor) -> Tensor:
    moved = x + angles.sin().repeat_interleave(2, dim=-1).to(x.dtype)
    return F.normalize(moved, dim=-1) * x.norm(dim=-1, keepdim=True)


def _make_more_suspects_of_sums(probe: Probe) -> list[Suspect]:
    share = float(probe.uniform(1, low=0.4, high=0.8))
    return [
        Suspect("adds the angle to both numbers of a pair", make_rotate_by_rule(axial_angles_of, _add_angles)),
        Suspect("multiplies by the cosines alone", make_rotate_by_rule(axial_angles_of, _multiply_by_cosines)),
        Suspect(
            f"takes {share:.2f} of the rotated numbers, and the rest of those before",
            make_rotate_by_rule(
                axial_angles_of, lambda x, angles: (1 - share) * x + share * turn_pairs_by_angles(x, angles)
            ),
        ),
    ]


def _add_angles(x: Tensor, angles: Tensor) -> Tensor:
    return x + angles.repeat_interleave(2, dim=-1).to(x.dtype)


def _multiply_by_cosines(x: Tensor, angles: Tensor) -> Tensor:
    return x * angles.cos().repeat_interleave(2, dim=-1).to(x.dtype)


def _make_suspects_of_other_lengths(probe: Probe) -> list[Suspect]:
    factor = draw_setting(probe, 1.05, 1.2, shown=1.1)
    return [
        Suspect(
            "makes (a cos t + b sin t, a sin t + b cos t) of a pair",
            make_rotate_of_known_mistake("the minus forgotten"),
        ),
        Suspect(
            "makes queries longer from patch to patch and keys shorter, beside turning them",
            make_rotate_that_grows(factor),
        ),
    ]


def _make_more_suspects_of_other_lengths(probe: Probe) -> list[Suspect]:
    little = float(probe.uniform(1, low=1.002, high=1.004))
    return [
        Suspect(
            f"makes queries {little:.3f} times as long with each step, and keys shorter by as much",
            make_rotate_that_grows(little),
        ),
        Suspect(
            "gives every token the length 1",
            make_rotate_and_change(lambda query, key: (F.normalize(query, dim=-1), F.normalize(key, dim=-1))),
        ),
        Suspect(
            "forgets the sines of the second number of a pair",
            make_rotate_by_rule(axial_angles_of, _turn_without_second_sine),
        ),
    ]


def _turn_without_second_sine(x: Tensor, angles: Tensor) -> Tensor:
    return torch.stack(
        [turn_pairs_by_angles(x, angles)[..., ::2], _multiply_by_cosines(x, angles)[..., 1::2]], dim=-1
    ).flatten(-2)


def _make_suspects_of_other_speeds(probe: Probe) -> list[Suspect]:
    speed = draw_setting(probe, 0.3, 1.0, shown=1.0)

    def angles_with_one_column_speed(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return torch.cat([row * speeds, column * torch.full_like(speeds, speed)], dim=1)

    def angles_of_first_pairs_only(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return axial_angles_of(row, column, speeds * (torch.arange(len(speeds)) == 0))

    return [
        Suspect("turns all pairs at one speed", make_rotate_of_known_mistake("one speed for all pairs")),
        Suspect(
            "turns all pairs that turn by the column at one speed", make_rotate_by_rule(angles_with_one_column_speed)
        ),
        Suspect(
            "turns the first pair of each half and leaves the others as they are",
            make_rotate_by_rule(angles_of_first_pairs_only),
        ),
    ]


def _make_more_suspects_of_other_speeds(probe: Probe) -> list[Suspect]:
    speed = float(probe.uniform(1, low=0.3, high=1.0))

    def angles_with_one_row_speed(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
        return torch.cat([row * torch.full_like(speeds, speed), column * speeds], dim=1)

    return [
        Suspect(
            f"turns all pairs by {speed:.2f} radians with each step",
            make_rotate_by_rule(make_rule_with_speeds(lambda pairs: torch.full((pairs,), speed, dtype=torch.float64))),
        ),
        Suspect(
            f"turns all pairs of the row by {speed:.2f} radians with each row",
            make_rotate_by_rule(angles_with_one_row_speed),
        ),
    ]


def _make_suspects_of_other_starts(probe: Probe) -> list[Suspect]:
    angle = draw_setting(probe, 0.5, 2.0, shown=1.0)
    radians = f"{angle:.2f} radians" if probe.is_secret else "1 radian"

    def rotate_tokens_in_front_too(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
        angles = angles_of(query, grid_size, axial_angles_of)
        angles[: count_tokens_in_front(query, grid_size)] = angle
        return turn_pairs_by_angles(query, angles), turn_pairs_by_angles(key, angles)

    return [
        Suspect("counts rows and columns from 1", make_rotate_of_known_mistake("counted from one")),
        Suspect(
            "mirrors each pair, which makes (a cos t + b sin t, a sin t - b cos t) of it", _rotate_mirrored_patches
        ),
        Suspect(f"turns the tokens in front of the patches by {radians}", rotate_tokens_in_front_too),
    ]


def _rotate_mirrored_patches(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    front = count_tokens_in_front(query, grid_size)
    signs = torch.tensor([1.0, -1.0], dtype=query.dtype, device=query.device).repeat(query.shape[-1] // 2)
    before, after = (torch.cat([each[..., :front, :], each[..., front:, :] * signs], dim=-2) for each in (query, key))
    return make_rotate_by_rule(axial_angles_of)(before, after, grid_size)


def _make_more_suspects_of_other_starts(probe: Probe) -> list[Suspect]:
    first = 2 + int(probe.integers(1, high=2))
    return [
        Suspect(
            f"counts rows and columns from {first}",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row + first, column + first, speeds)),
        ),
        Suspect(
            "counts rows and columns from the middle of the grid", make_rotate_by_rule(_angles_from_middle_of_grid)
        ),
    ]


def _angles_from_middle_of_grid(row: Tensor, column: Tensor, speeds: Tensor) -> Tensor:
    return axial_angles_of(row - row.max() / 2, column - column.max() / 2, speeds)


def _make_suspects_of_mixed_images(probe: Probe) -> list[Suspect]:
    angle = draw_setting(probe, 0.3, 0.8, shown=1.0)

    def turn_each_image_further(x: Tensor) -> Tensor:
        if x.ndim < 3:
            return x
        images = torch.arange(len(x), dtype=torch.float64, device=x.device).reshape(-1, *(1,) * (x.ndim - 1))
        return turn_pairs_by_angles(x, angle * images * torch.ones(x.shape[-2], x.shape[-1] // 2, device=x.device))

    return [
        Suspect(
            "turns each image of a batch further than the one before",
            make_rotate_and_change(lambda query, key: (turn_each_image_further(query), turn_each_image_further(key))),
        ),
        Suspect(
            "gives each image the query and key of another one",
            make_rotate_and_change(lambda query, key: (shift_images_by_one(query), shift_images_by_one(key))),
        ),
        Suspect("turns every other image of a batch the other way round", _rotate_every_second_image_back),
    ]


def _rotate_every_second_image_back(query: Tensor, key: Tensor, grid_size: Grid) -> Pair:
    forward, back = (
        make_rotate_by_rule(axial_angles_of)(query, key, grid_size),
        make_rotate_by_rule(reversed_angles_of)(query, key, grid_size),
    )
    if query.ndim < 3:
        return forward
    even = (torch.arange(len(query), device=query.device) % 2 == 0).reshape(-1, *(1,) * (query.ndim - 1))
    return torch.where(even, forward[0], back[0]), torch.where(even, forward[1], back[1])


def _make_more_suspects_of_mixed_images(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives each image the key of another one",
            make_rotate_and_change(lambda query, key: (query, shift_images_by_one(key))),
        )
    ]


def _make_suspects_of_uneven_steps(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "turns by the square of the row, and by the column",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row**2, column, speeds)),
        ),
        Suspect(
            "turns by the row, and by the square of the column",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row, column**2, speeds)),
        ),
    ]


def _make_more_suspects_of_uneven_steps(probe: Probe) -> list[Suspect]:
    power = float(probe.uniform(1, low=1.3, high=1.8))
    return [
        Suspect(
            f"turns by the row to the power of {power:.2f}",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row**power, column, speeds)),
        ),
        Suspect(
            f"turns by the column to the power of {power:.2f}",
            make_rotate_by_rule(lambda row, column, speeds: axial_angles_of(row, column**power, speeds)),
        ),
        Suspect(
            "takes the last row for the first one",
            make_rotate_by_rule(
                lambda row, column, speeds: axial_angles_of(row % row.max().clamp(min=1), column, speeds)
            ),
        ),
        Suspect(
            "takes the last column for the first one",
            make_rotate_by_rule(
                lambda row, column, speeds: axial_angles_of(row, column % column.max().clamp(min=1), speeds)
            ),
        ),
    ]


WRONG: dict[str, Family] = {
    "returned": add_graded_suspects(_make_suspects_of_other_results, _make_more_suspects_of_other_results),
    "disagreeing": add_graded_suspects(_make_suspects_of_disagreement, _make_more_suspects_of_disagreement),
    "one axis": add_graded_suspects(_make_suspects_of_one_axis, _make_more_suspects_of_one_axis),
    "together": add_graded_suspects(_make_suspects_of_axes_together, _make_more_suspects_of_axes_together),
    "places": add_graded_suspects(_make_suspects_of_other_places, _make_more_suspects_of_other_places),
    "added": add_graded_suspects(_make_suspects_of_sums, _make_more_suspects_of_sums),
    "lengths": add_graded_suspects(_make_suspects_of_other_lengths, _make_more_suspects_of_other_lengths),
    "speeds": add_graded_suspects(_make_suspects_of_other_speeds, _make_more_suspects_of_other_speeds),
    "start": add_graded_suspects(_make_suspects_of_other_starts, _make_more_suspects_of_other_starts),
    "images": add_graded_suspects(_make_suspects_of_mixed_images, _make_more_suspects_of_mixed_images),
    "uneven": add_graded_suspects(_make_suspects_of_uneven_steps, _make_more_suspects_of_uneven_steps),
}


def _hide_name(rotate: Candidate) -> Candidate:
    return lambda query, key, grid_size: rotate(query, key, grid_size)


LINE_UP = LineUp("a rotate", "your own rotary_2d", RIGHT, MORE_RIGHT, WRONG, _hide_name)
