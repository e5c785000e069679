"""What only grading asks of ``normalize_images``."""

from __future__ import annotations

import torch

from exercise_kit.engine.expect import expect_independent_results, expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l00_start.normalize_images import claims


@claims.normalize_images.check(graded_only=True, points=0.1)
def every_call_stands_alone(student: Student, probe: Probe, device: torch.device) -> None:
    """Every call answers for what it is given, and leaves images, mean and std as they were."""
    first = tuple(each.to(device) for each in claims.draw_images_and_statistics(probe))
    images, mean, std = tuple(each.to(device) for each in claims.draw_images_and_statistics(probe, *first[0].shape))
    for each, *statistics in (first, (images, mean, std), (images.mT, mean, std)):
        claims.expect_normalized(student, each, statistics[0], statistics[1])
    expect_inputs_unchanged(student)
    expect_independent_results(student, first, (images, mean, std))
