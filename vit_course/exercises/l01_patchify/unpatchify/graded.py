"""What only grading asks of ``unpatchify``."""

from __future__ import annotations

import torch

from exercise_kit.engine.expect import expect_independent_results, expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l01_patchify.unpatchify import claims


@claims.unpatchify.check(graded_only=True, points=1.1)
def every_patch_returns_to_its_place(student: Student, probe: Probe) -> None:
    """Patches are laid row by row, each row from left to right, in tall images and in wide ones."""
    batch, channels, rows, columns, size = probe.sizes(5, low=3, high=7)
    look = "Where does the second patch go, and where the first one of the next row?"
    for down, across in ((4 * rows, rows), (rows, columns), (columns, rows)):  # a square of as many tokens is none
        patches = probe.normal(batch, down * across, 1).expand(-1, -1, channels * size**2).contiguous()
        inputs = patches, size, (down * size, across * size)
        claims.expect_right_images(student, inputs, "unpatchify of patches of one color", look=look)


@claims.unpatchify.check(graded_only=True, points=1.1)
def a_token_is_read_channel_row_column(student: Student, probe: Probe) -> None:
    """Inside a patch the numbers are read as channel, then pixel row, then pixel column."""
    batch, patch_size, channels = probe.sizes(3, low=3, high=7)
    look = "Which pixel does the second number of a token belong to?"
    for size, held in ((patch_size, channels), (2, probe.choice((4, 6)))):
        inputs = probe.normal(batch, 1, held * size**2), size, (size, size)
        claims.expect_right_images(student, inputs, "unpatchify of single patches", look=look)


@claims.unpatchify.check(graded_only=True, points=0.2)
def every_call_stands_alone(student: Student, probe: Probe, device: torch.device) -> None:
    """Every call answers for the patches and the size at hand, on their device, and leaves the patches as they were."""
    patches, patch_size, (height, width) = claims.draw_patches_and_sizes(probe)
    first, other = patches.to(device), probe.normal(*patches.shape).to(device)
    for held, size in ((first, (height, width)), (other, (height, width)), (other, (width, height))):
        claims.expect_right_images(student, (held, patch_size, size))
    expect_inputs_unchanged(student)
    expect_independent_results(student, (first, patch_size, size), (other, patch_size, size))
