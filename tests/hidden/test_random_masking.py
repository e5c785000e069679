"""Hidden checks of ``random_masking``. What is hidden is drawn; what is checked holds whatever it is."""

from dataclasses import replace

import pytest

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.l10_modern.random_masking.claims import (
    IMAGES,
    case_of,
    expect_counts,
    expect_fairness,
    expect_gradients_of_the_visible,
    expect_on_the_device_of_the_tokens,
    expect_own_chance,
    expect_own_patches,
    expect_pairs,
    expect_refusals,
    expect_unchanged,
    expect_visible,
)


def _case(probe, batch=4):
    """Five to ten patches of each image, of which two to all but one are hidden, and a generator of any seed."""
    num_patches = 5 + int(probe.integers(1, high=6))
    hidden = 2 + int(probe.integers(1, high=num_patches - 3))
    seed = int(probe.integers(1, high=10_000))
    return case_of(probe, batch, num_patches, hidden / num_patches, seed)


def _half(probe, batch, num_patches):
    return case_of(probe, batch, num_patches, 0.5, int(probe.integers(1, high=10_000)))


@pytest.mark.exercise("random_masking", points=0.5)
def test_tokens_and_a_mask_come_back(student, probe):
    """It gives the visible tokens and a bool mask, which is True at as many patches as the ratio says."""
    cases = [
        _case(probe),
        _case(probe, 1),
        case_of(probe, 2, 7, 0.4),
        case_of(probe, 2, 6, 1 / 6),
        case_of(probe, 2, 10, 0.25),
    ]
    expect_pairs(student, cases)
    expect_counts(student, cases)


@pytest.mark.exercise("random_masking", points=0.9)
def test_what_is_left_is_what_the_mask_leaves(student, probe):
    """The visible tokens are those where the mask is False, in their order."""
    expect_visible(student, [_case(probe) for _ in range(4)])


@pytest.mark.exercise("random_masking", points=0.75)
def test_each_image_hides_other_patches(student, probe):
    """Which patches are hidden is drawn for each image, anew in each call."""
    expect_own_patches(student, _half(probe, 6, 24))


@pytest.mark.exercise("random_masking", points=0.5)
def test_every_patch_is_hidden_as_often(student, probe):
    """Each place of the image is hidden as often as any other, and each two of them together."""
    expect_fairness(student, _half(probe, IMAGES, 6))


@pytest.mark.exercise("random_masking", points=0.5)
def test_all_chance_is_the_generators(student, probe):
    """The given generator decides what is hidden, and no other generator is moved."""
    expect_own_chance(student, _half(probe, 6, 12))


@pytest.mark.exercise("random_masking", points=0.5)
def test_gradients_reach_what_is_left(student, probe):
    """The visible tokens get their gradient, and the hidden ones get none."""
    expect_gradients_of_the_visible(student, _case(probe))


@pytest.mark.exercise("random_masking", points=0.1)
def test_what_went_in_is_left_alone(student, probe):
    """The tokens that go in are not changed."""
    expect_visible(student, [_case(probe)])
    expect_unchanged(student, _case(probe))


@pytest.mark.exercise("random_masking", points=0.1)
def test_a_ratio_that_hides_all_or_nothing_is_refused(student, probe):
    """A mask_ratio that would hide no patch, or all of them, raises a ValueError that names it."""
    expect_visible(student, [_case(probe)])
    beyond = 2 + int(probe.integers(1, high=7))
    expect_refusals(student, [replace(_case(probe), mask_ratio=ratio) for ratio in (0, 1, beyond, 0.04, 0.96)])


@pytest.mark.exercise("random_masking", points=0.1)
def test_it_computes_where_the_tokens_are(student, probe):
    """The visible tokens and the mask are on the device of the tokens that go in."""
    expect_visible(student, [_case(probe)])
    expect_on_the_device_of_the_tokens(student, _case(probe))


@pytest.mark.exercise("random_masking", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other tokens are hidden too."""
    expect_visible(student, [_case(probe)])
    expect_example(student)
