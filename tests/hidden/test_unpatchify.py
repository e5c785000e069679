"""Hidden checks of ``unpatchify``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l01_patchify.unpatchify import claims

RIGHT = claims.every_pixel_returns_to_its_place
test_every_pixel_returns_to_its_place = as_hidden(RIGHT, unpatchify=0.45)
test_one_image_comes_back_as_a_batch = as_hidden(claims.one_image_comes_back_as_a_batch, unpatchify=0.65)
test_dtypes_are_kept = as_hidden(claims.dtypes_are_kept, unpatchify=0.7)
test_every_number_gets_its_gradient = as_hidden(claims.every_number_gets_its_gradient, unpatchify=0.35)
test_it_computes_where_the_patches_are = as_hidden(claims.it_computes_where_the_patches_are, RIGHT, unpatchify=0.25)


@pytest.mark.exercise("unpatchify", points=1.1)
def test_every_patch_returns_to_its_place(student, probe):
    """Patches are laid row by row, each row from left to right, in tall images and in wide ones."""
    batch, channels, rows, columns, size = probe.sizes(5, high=6)
    look = "Where does the second patch go, and where the first one of the next row?"
    for down, across in ((4 * rows, rows), (rows, columns), (columns, rows)):  # a square of as many tokens is none
        patches = probe.normal(batch, down * across, 1).expand(-1, -1, channels * size**2).contiguous()
        inputs = patches, size, (down * size, across * size)
        claims.expect_images(student, inputs, "unpatchify of patches of one color", look=look)


@pytest.mark.exercise("unpatchify", points=1.1)
def test_a_token_is_read_channel_row_column(student, probe):
    """Inside a patch the numbers are read as channel, then pixel row, then pixel column."""
    batch, patch_size, channels = probe.sizes(3, low=3, high=7)
    look = "Which pixel does the second number of a token belong to?"
    for size, held in ((patch_size, channels), (2, probe.choice((4, 6)))):
        inputs = probe.normal(batch, 1, held * size**2), size, (size, size)
        claims.expect_images(student, inputs, "unpatchify of single patches", look=look)


@pytest.mark.exercise("unpatchify", points=0.2)
def test_every_call_stands_alone(student, probe, device):
    """Every call answers for the patches and the size at hand, on their device, and leaves the patches as they were."""
    patches, patch_size, (height, width) = claims.some_patches(probe)
    first, other = patches.to(device), probe.normal(*patches.shape).to(device)
    for held, size in ((first, (height, width)), (other, (height, width)), (other, (width, height))):
        claims.expect_images(student, (held, patch_size, size))
    expect_left_alone(student)
    expect_result_of_its_own(student, (first, patch_size, size), (other, patch_size, size))


@pytest.mark.exercise("unpatchify", points=0.2)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
