"""Hidden checks of ``mixup``. Share and partners are drawn; what is checked holds whatever they are."""

from dataclasses import replace

import pytest

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.l07_experiments.mixup.claims import (
    Case,
    expect_a_permutation,
    expect_beta,
    expect_drawn_partners,
    expect_one_share,
    expect_own_chance,
    expect_pairs,
    expect_refusals,
    expect_same_device,
    expect_targets,
    expect_two_parts,
    expect_unchanged,
)


def _case(probe, alpha=3.0):
    """Five to eight images of any labels, and a generator of any seed."""
    batch, num_classes = 5 + int(probe.integers(1, high=4)), 3 + int(probe.integers(1, high=8))
    channels, height, width = probe.sizes(3)
    images = probe.normal(batch, 2 + channels, 2 + height, 2 + width)
    labels = probe.integers(batch, high=num_classes)
    return Case(images, labels, num_classes, alpha, int(probe.integers(1, high=10_000)))


@pytest.mark.exercise("mixup", points=0.1)
def test_images_and_targets_come_back(student, probe):
    """It gives a pair: blended images, and a target with a number for each class."""
    expect_two_parts(student, [_case(probe)])
    other = _case(probe)
    alone = replace(other, images=other.images[:1], labels=other.labels[:1])  # a batch of one is its own partner
    expect_pairs(student, [_case(probe), replace(other, images=other.images.double()), alone])


@pytest.mark.exercise("mixup", points=0.4)
def test_an_image_is_blended_with_one_other(student, probe):
    """Each image is a blend of itself and one other image; the two shares add up to 1."""
    expect_two_parts(student, [_case(probe) for _ in range(3)])


@pytest.mark.exercise("mixup", points=0.2)
def test_one_share_holds_for_the_batch(student, probe):
    """All images of a batch have the same share, and the partners are the batch in another order."""
    cases = [_case(probe) for _ in range(4)]
    expect_two_parts(student, cases)
    expect_one_share(student, cases)
    expect_a_permutation(student, cases)


@pytest.mark.exercise("mixup", points=0.5)
def test_targets_are_blended_as_the_images_are(student, probe):
    """The targets are one-hot labels, blended with the same partners and the same share as the images."""
    cases = [_case(probe) for _ in range(4)]
    expect_two_parts(student, cases)
    expect_targets(student, cases)


@pytest.mark.exercise("mixup", points=0.3)
def test_the_share_is_of_a_beta_distribution(student, probe):
    """The share is drawn from Beta(alpha, alpha)."""
    expect_beta(student, [_case(probe, alpha) for alpha in (0.25, 5.0)])


@pytest.mark.exercise("mixup", points=0.25)
def test_all_chance_is_the_generators(student, probe):
    """The given generator decides the share and the partners, anew for each batch, and no other generator is moved."""
    expect_drawn_partners(student, _case(probe))
    expect_own_chance(student, _case(probe))


@pytest.mark.exercise("mixup", points=0.1)
def test_what_went_in_is_left_alone(student, probe):
    """The batch is blended, and the images and labels that go in are not changed."""
    expect_two_parts(student, [_case(probe)])
    expect_unchanged(student, _case(probe))


@pytest.mark.exercise("mixup", points=0.05)
def test_an_alpha_of_zero_or_less_is_refused(student, probe):
    """An alpha that is not above 0 raises a ValueError that names it; others are accepted."""
    expect_two_parts(student, [_case(probe)])
    below = -2 - int(probe.integers(1, high=7))
    expect_refusals(student, [replace(_case(probe), alpha=alpha) for alpha in (below, 0)])


@pytest.mark.exercise("mixup", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and another batch is blended too."""
    expect_two_parts(student, [_case(probe)])
    expect_example(student)


@pytest.mark.exercise("mixup", points=0.05)
def test_it_computes_where_the_images_are(student, probe):
    """The result is on the device of the images."""
    expect_two_parts(student, [_case(probe)])
    expect_same_device(student, _case(probe))
