"""What only grading asks of ``add_class_token``."""

from __future__ import annotations

import torch

from exercise_kit.engine.expect import expect_independent_results, expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l02_positions.add_class_token import claims


@claims.add_class_token.check(graded_only=True, points=0.5)
def sizes_of_any_kind_are_right(student: Student, probe: Probe) -> None:
    """One image or many, one token or many, one dimension or many, equal numbers of all three: all come out right."""
    batch, num_patches = probe.sizes(2, low=4)
    long = probe.choice((11, 17, 19))
    for sizes in ((1, num_patches, long), (batch, 1, 2), (batch, long, 1), (batch, batch, batch)):
        claims.expect_right_tokens(student, claims.draw_inputs(probe, *sizes))


@claims.add_class_token.check(graded_only=True, points=0.15)
def every_call_stands_alone(student: Student, probe: Probe, device: torch.device) -> None:
    """Every call answers for what it is given, on its device, and leaves all three inputs as they were."""
    batch, *sizes = probe.sizes(3)
    draws = [claims.draw_inputs(probe, held, *sizes) for held in (batch, batch, 1)]
    first, other, one = (tuple(each.to(device) for each in inputs) for inputs in draws)
    for inputs in (first, other, one):
        claims.expect_right_tokens(student, inputs)
    expect_inputs_unchanged(student)
    expect_independent_results(student, first, other)
