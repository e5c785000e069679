"""What only grading asks of ``patchify``."""

from __future__ import annotations

import re

import torch

from exercise_kit.engine.expect import (
    expect_independent_results,
    expect_inputs_unchanged,
    expect_value_error,
    ignore_wrong_numbers,
)
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l01_patchify.patchify import claims


@claims.patchify.check(
    graded_only=True, points={"patchify": 0.25, "fix_patchify": 0.1}, first=claims.tall_and_wide_images_are_right
)
def every_call_stands_alone(student: Student, probe: Probe, device: torch.device) -> None:
    """Every call answers for the images at hand, on their device, and leaves them as they were."""
    images, patch_size = claims.draw_images_and_patch_size(probe)
    images = images.to(device)
    student(images, patch_size)
    expect_inputs_unchanged(student)
    expect_independent_results(student, (images, patch_size), (probe.images(*images.shape), patch_size))


@claims.patchify.check(
    graded_only=True,
    points={"patchify": 0.25, "fix_patchify": 0.2},
    first=ignore_wrong_numbers(claims.tall_and_wide_images_are_right),
)
def two_sides_that_do_not_fit_are_refused(student: Student, probe: Probe) -> None:
    """Where patch_size divides neither height nor width, ValueError names one of the two, and patch_size."""
    batch, channels, rows, columns = probe.sizes(4, low=2, high=8)
    patch_size = probe.choice((6, 8))
    height, width = rows * patch_size + 2, (columns + 1) * patch_size - 2  # in sum they fit
    inputs = probe.images(batch, channels, height, width), patch_size
    error = student.catch_error(*inputs)
    named = re.findall(r"\d+", error.words) if error else []
    side, number = ("width", width) if str(width) in named else ("height", height)
    described = f"{height} x {width} images with patch_size {patch_size}"
    expect_value_error(student, inputs, (number, patch_size), described, side)
