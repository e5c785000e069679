"""Hidden checks of is_rotary: the student's test, asked about right and wrong rotary positions.

Beside those that ``check`` asks about, with settings drawn, there are others here that no student sees beforehand.
"""

import pytest
import torch
import torch.nn.functional as F

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.impostors import Suspect
from vit_course.exercises.l10_modern.is_rotary import suspects
from vit_course.exercises.l10_modern.is_rotary.suspects import (
    angles_of,
    apart,
    axial,
    by,
    front_of,
    growing,
    known,
    not_at_all,
    rolled,
    rotated,
    speeds_of,
    then,
    with_speeds,
)


def _in_turns(row, column, speeds):
    return torch.stack([row * speeds, column * speeds], dim=-1).flatten(1)


def _to_and_fro(row, column, speeds):
    angles = axial(row, column, speeds)
    return angles * (1 - 2 * (torch.arange(angles.shape[1]) % 2))


def _by_matrix_exponentials(x, angles):
    quarter_turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64, device=x.device)
    matrices = torch.matrix_exp(angles[..., None, None] * quarter_turn).to(x.dtype)
    return (x.unflatten(-1, (-1, 1, 2)) @ matrices).flatten(-3)


def _back_and_on(query, key, grid_size):
    patches = grid_size[0] * grid_size[1]
    half = torch.full((patches, query.shape[-1] // 2), 0.5, dtype=torch.float64, device=query.device)
    half = F.pad(half, (0, 0, query.shape[-2] - patches, 0))
    angles = angles_of(query, grid_size, axial) - half
    return rotated(rotated(query, angles), half), rotated(rotated(key, angles), half)


def _with_outer_pairs(x, angles):
    """The first number with the last one, the second with the last but one, and so on."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = (each.to(x.dtype) for each in (angles.cos(), angles.sin()))
    b = b.flip(-1)
    return torch.cat([a * cos - b * sin, (a * sin + b * cos).flip(-1)], dim=-1)


def _with_half_pairs(x, angles):
    """As libraries write it: x · cos + rotate_half(x) · sin."""
    a, b = x.chunk(2, dim=-1)
    cos, sin = (torch.cat([each, each], dim=-1).to(x.dtype) for each in (angles.cos(), angles.sin()))
    return x * cos + torch.cat([-b, a], dim=-1) * sin


def _from_patch_to_patch(row, column, speeds):
    angles = axial(row, column, speeds)
    return torch.cat([angles[:1], angles.diff(dim=0)]).cumsum(0)


def _scattered(query, key):
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


def _of_other_results(probe):
    return [
        Suspect("gives both with an axis more, of size 1", then(lambda query, key: (query[None], key[None]))),
        Suspect("gives the patches alone, without the tokens in front of them", _patches_alone),
    ]


def _patches_alone(query, key, grid_size):
    front = front_of(query, grid_size)
    query, key = by(axial)(query, key, grid_size)
    return query[..., front:, :], key[..., front:, :]


def _of_disagreement(probe):
    faster = float(probe.uniform(1, low=1.2, high=1.6))
    return [
        Suspect(
            f"turns the key {faster:.2f} times as fast as the query",
            apart(axial, lambda row, column, speeds: axial(row, column, faster * speeds)),
        ),
        Suspect(
            "turns the key by the column where it turns the query by the row",
            apart(axial, lambda row, column, speeds: axial(column, row, speeds)),
        ),
    ]


def _of_one_axis(probe):
    return [
        Suspect("turns all numbers by the column", by(lambda row, column, speeds: axial(column, column, speeds))),
        Suspect("leaves query and key as they are", by(not_at_all)),
    ]


def _of_axes_together(probe):
    return [
        Suspect(
            "turns all numbers by the row minus the column",
            by(lambda row, column, speeds: axial(row - column, row - column, speeds)),
        )
    ]


def _of_other_places(probe):
    return [Suspect("takes the patches to stand column by column", known("patches column by column"))]


def _of_sums(probe):
    share = float(probe.uniform(1, low=0.4, high=0.8))
    return [
        Suspect("adds the angle to both numbers of a pair", by(axial, _angles_added)),
        Suspect("multiplies by the cosines alone", by(axial, _times_cosines)),
        Suspect(
            f"takes {share:.2f} of the rotated numbers, and the rest of those before",
            by(axial, lambda x, angles: (1 - share) * x + share * rotated(x, angles)),
        ),
    ]


def _angles_added(x, angles):
    return x + angles.repeat_interleave(2, dim=-1).to(x.dtype)


def _times_cosines(x, angles):
    return x * angles.cos().repeat_interleave(2, dim=-1).to(x.dtype)


def _of_other_lengths(probe):
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


def _without_second_sine(x, angles):
    return torch.stack([rotated(x, angles)[..., ::2], _times_cosines(x, angles)[..., 1::2]], dim=-1).flatten(-2)


def _of_other_speeds(probe):
    speed = float(probe.uniform(1, low=0.3, high=1.0))

    def slow_rows(row, column, speeds):
        return torch.cat([row * torch.full_like(speeds, speed), column * speeds], dim=1)

    return [
        Suspect(
            f"turns all pairs by {speed:.2f} radians with each step",
            by(with_speeds(lambda pairs: torch.full((pairs,), speed, dtype=torch.float64))),
        ),
        Suspect(f"turns all pairs of the row by {speed:.2f} radians with each row", by(slow_rows)),
    ]


def _of_other_starts(probe):
    first = 2 + int(probe.integers(1, high=2))
    return [
        Suspect(
            f"counts rows and columns from {first}",
            by(lambda row, column, speeds: axial(row + first, column + first, speeds)),
        ),
        Suspect("counts rows and columns from the middle of the grid", by(_from_the_middle)),
    ]


def _from_the_middle(row, column, speeds):
    return axial(row - row.max() / 2, column - column.max() / 2, speeds)


def _of_mixed_images(probe):
    return [Suspect("gives each image the key of another one", then(lambda query, key: (query, rolled(key))))]


def _of_uneven_steps(probe):
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


LINE_UP = suspects.LINE_UP.joined_by(
    RIGHT,
    {
        "returned": (("returned",), _of_other_results),
        "disagreeing": (("disagreeing",), _of_disagreement),
        "one axis": (("one axis",), _of_one_axis),
        "together": (("together",), _of_axes_together),
        "places": (("places",), _of_other_places),
        "added": (("added",), _of_sums),
        "lengths": (("lengths",), _of_other_lengths),
        "speeds": (("speeds",), _of_other_speeds),
        "start": (("start",), _of_other_starts),
        "images": (("images",), _of_mixed_images),
        "uneven": (("uneven",), _of_uneven_steps),
    },
)


@pytest.mark.exercise("is_rotary", points=0.2)
def test_it_catches_what_comes_back_wrong(student, probe):
    """It catches a query and a key that trade places or have another shape, and lets right rotations pass."""
    look = "How do you know which of the two tensors is the query, and which shape it should have?"
    LINE_UP.expect_distinguished(student, probe, "returned", look)


@pytest.mark.exercise("is_rotary", points=0.4)
def test_it_catches_queries_and_keys_that_disagree(student, probe):
    """It catches queries and keys that are not rotated by the same rule, and lets right rotations pass."""
    look = "Query and key move by the same number of rows and columns: what becomes of their dot product?"
    LINE_UP.expect_distinguished(student, probe, "disagreeing", look)


@pytest.mark.exercise("is_rotary", points=0.3)
def test_it_catches_an_axis_that_does_not_count(student, probe):
    """It catches rotations that ignore the row or the column, and lets right rotations pass."""
    look = "What has to change when a patch moves one row down, or one column on?"
    LINE_UP.expect_distinguished(student, probe, "one axis", look)


@pytest.mark.exercise("is_rotary", points=0.4)
def test_it_catches_rows_and_columns_taken_together(student, probe):
    """It catches rows and columns that turn the same numbers, and lets right rotations pass."""
    look = "Which numbers does a step down turn, which ones a step to the right, and may a number be among both?"
    LINE_UP.expect_distinguished(student, probe, "together", look)


@pytest.mark.exercise("is_rotary", points=0.3)
def test_it_catches_patches_at_other_places(student, probe):
    """It catches patches that are taken to be at another row or column, and lets right rotations pass."""
    look = "Are there tokens in front of your patches, and could rows and columns of your grid trade places unseen?"
    LINE_UP.expect_distinguished(student, probe, "places", look)


@pytest.mark.exercise("is_rotary", points=0.2)
def test_it_catches_positions_that_are_added(student, probe):
    """It catches positions that are added or multiplied instead of rotated, and lets right rotations pass."""
    look = "Which dot products stay the same after a rotation, and not after an addition?"
    LINE_UP.expect_distinguished(student, probe, "added", look)


@pytest.mark.exercise("is_rotary", points=0.25)
def test_it_catches_other_lengths(student, probe):
    """It catches tokens that come back longer or shorter, and lets right rotations pass."""
    look = "What does a rotation never change about a vector?"
    LINE_UP.expect_distinguished(student, probe, "lengths", look)


@pytest.mark.exercise("is_rotary", points=0.35)
def test_it_catches_pairs_of_one_speed(student, probe):
    """It catches pairs of one half that turn at the same speed or not at all, and lets right rotations pass."""
    look = "Which query, all zeros but for one number, shows how far its pair has turned?"
    LINE_UP.expect_distinguished(student, probe, "speeds", look)


@pytest.mark.exercise("is_rotary", points=0.2)
def test_it_catches_another_start(student, probe):
    """It catches tokens that are rotated where they should stay as they are, and lets right rotations pass."""
    look = "Which tokens turn by an angle of 0, in front of the patches and among them?"
    LINE_UP.expect_distinguished(student, probe, "start", look)


@pytest.mark.exercise("is_rotary", points=0.15)
def test_it_catches_mixed_images(student, probe):
    """It catches images of a batch that get mixed or are not rotated alike, and lets right rotations pass."""
    look = "Does an image come back in a batch as it does alone, in every place?"
    LINE_UP.expect_distinguished(student, probe, "images", look)


@pytest.mark.exercise("is_rotary", points=0.2)
def test_it_catches_uneven_steps(student, probe):
    """It catches angles that do not grow by the same amount with each step, and lets right rotations pass."""
    look = "Is a step from row 0 to row 1 the same as one from row 1 to row 2, and how is it with columns?"
    LINE_UP.expect_distinguished(student, probe, "uneven", look)


@pytest.mark.exercise("is_rotary", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The example in the docstring comes out as it stands there, and right rotations pass."""
    LINE_UP.expect_distinguished(student, probe, "one axis", "What has to change when a patch moves?")
    expect_example(student)
