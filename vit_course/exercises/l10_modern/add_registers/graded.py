"""What only grading asks of ``add_registers``."""

from __future__ import annotations

import torch

from exercise_kit.engine.expect import expect_independent_results, expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l10_modern.add_registers import claims


@claims.add_registers.check(graded_only=True, points=0.05, first=claims.registers_come_behind_it_and_patches_last)
def every_call_stands_alone(student: Student, probe: Probe, device: torch.device) -> None:
    """Every call gives the result for its own inputs, on their device, and does not change them."""
    sizes = probe.sizes(4)
    first, other = (
        tuple(each.to(device) for each in claims.draw_tokens_and_registers(probe, *sizes)) for _ in range(2)
    )
    student(*first)
    expect_inputs_unchanged(student)
    expect_independent_results(student, first, other)
