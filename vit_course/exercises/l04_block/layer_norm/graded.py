"""What only grading asks of ``layer_norm``."""

from __future__ import annotations

from exercise_kit.engine.expect import expect_independent_results, expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l04_block.layer_norm import claims


@claims.layer_norm.check(graded_only=True, points=0.2)
def what_goes_in_stays_as_it_is(student: Student, probe: Probe) -> None:
    """x, weight and bias are the same after the call as before, and so is a result after the next call."""
    inputs = x, *others = claims.draw_inputs(probe)
    claims.expect_right_result(student, inputs)
    expect_inputs_unchanged(student)
    expect_independent_results(student, inputs, (x + 1, *others))
