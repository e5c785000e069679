"""What only grading asks of ``resize_positions``.

A bicubic value is a sum of 16 products of order 1: float32 gives it to 1e-6, half to 2e-3. The nearest misconception,
align_corners, is off by 1e-1.
"""

from __future__ import annotations

import torch

from exercise_kit.engine.examples import expect_docstring_example
from exercise_kit.engine.expect import expect_independent_results, expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l02_positions.resize_positions import claims


@claims.resize_positions.check(graded_only=True, points=0.15)
def every_call_stands_alone(student: Student, probe: Probe, device: torch.device) -> None:
    """Every call answers for the positions at hand, on their device, and leaves them as they were."""
    first, old, another = claims.draw_positions_and_two_grids(probe)
    first, other = first.to(device), probe.normal(*first.shape).to(device)
    for positions, new in ((first, another), (other, another), (other, old)):
        claims.expect_right_positions(student, positions, old, new)
    expect_inputs_unchanged(student)
    for new in (another, old):
        expect_independent_results(student, (first, old, new), (other, old, new))


@claims.resize_positions.check(graded_only=True, points=0.1)
def its_own_example_comes_out(student: Student, probe: Probe) -> None:
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    claims.expect_right_positions(student, *claims.draw_positions_and_two_grids(probe))
    expect_docstring_example(student)
