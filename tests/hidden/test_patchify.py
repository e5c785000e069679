"""Hidden checks of ``patchify``, and of ``fix_patchify``, which mends a broken one."""

import re

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own, expect_value_error
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l01_patchify.patchify import claims

RIGHT = claims.tall_and_wide_images_are_right
test_tokens_run_row_by_row = as_hidden(claims.tokens_run_row_by_row, patchify=1.75, fix_patchify=0.55)
test_a_token_goes_channel_row_column = as_hidden(
    claims.a_token_goes_channel_row_column, patchify=1.5, fix_patchify=0.45
)
test_tall_and_wide_images_are_right = as_hidden(RIGHT, patchify=1.5, fix_patchify=0.5)
test_dtype_and_memory_layout_do_not_matter = as_hidden(
    claims.dtype_and_memory_layout_do_not_matter, patchify=1.25, fix_patchify=0.35
)
test_every_pixel_gets_its_gradient = as_hidden(claims.every_pixel_gets_its_gradient, patchify=0.5, fix_patchify=0.15)
test_it_computes_where_the_images_are = as_hidden(
    claims.it_computes_where_the_images_are, RIGHT, patchify=0.3, fix_patchify=0.15
)
test_sizes_that_do_not_fit_are_refused = as_hidden(
    claims.sizes_that_do_not_fit_are_refused, RIGHT, patchify=0.5, fix_patchify=0.45
)


@pytest.mark.exercise("patchify", points=0.25)
@pytest.mark.exercise("fix_patchify", points=0.1)
def test_every_call_stands_alone(student, probe, device):
    """Every call answers for the images at hand, on their device, and leaves them as they were."""
    ask_first(RIGHT, student, probe)
    images, patch_size = claims.some_images(probe)
    images = images.to(device)
    student(images, patch_size)
    expect_left_alone(student)
    expect_result_of_its_own(student, (images, patch_size), (probe.images(*images.shape), patch_size))


@pytest.mark.exercise("patchify", points=0.25)
@pytest.mark.exercise("fix_patchify", points=0.2)
def test_two_sides_that_do_not_fit_are_refused(student, probe):
    """Where patch_size divides neither height nor width, ValueError names one of the two, and patch_size."""
    ask_first(RIGHT, student, probe)
    batch, channels, rows, columns = probe.sizes(4, low=2, high=8)
    patch_size = probe.choice((6, 8))
    height, width = rows * patch_size + 2, (columns + 1) * patch_size - 2  # in sum they fit
    inputs = probe.images(batch, channels, height, width), patch_size
    error = student.error_of(*inputs)
    named = re.findall(r"\d+", error.words) if error else []
    side, number = ("width", width) if str(width) in named else ("height", height)
    described = f"{height} x {width} images with patch_size {patch_size}"
    expect_value_error(student, inputs, (number, patch_size), described, side)


@pytest.mark.exercise("patchify", points=0.2)
@pytest.mark.exercise("fix_patchify", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
