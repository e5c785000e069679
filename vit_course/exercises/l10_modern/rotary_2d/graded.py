"""What only grading asks of ``rotary_2d``."""

from __future__ import annotations

from exercise_kit.engine.expect import expect_independent_results, expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l10_modern.rotary_2d import claims


@claims.rotary_2d.check(graded_only=True, points=0.1)
def every_call_stands_alone(student: Student, probe: Probe) -> None:
    """Every call gives the result for its own inputs, and does not change query and key."""
    query, key, grid_size = claims.draw_inputs_with_grid(probe)
    claims.expect_right_pair(student, query, key, grid_size)
    expect_inputs_unchanged(student)
    expect_independent_results(student, (query, key, grid_size), (key, query, grid_size))


@claims.rotary_2d.check(graded_only=True, points=0.15)
def angles_are_computed_in_float64(student: Student, probe: Probe) -> None:
    """Also where query and key are bfloat16, the patches of a long grid are turned by their right angles."""
    long = 40 + probe.sizes(1)[0]
    for grid_size in ((long, 2), (2, long)):
        query, key = (each.bfloat16() for each in claims.draw_query_and_key(probe, grid_size, 1, 12))
        claims.expect_right_pair(student, query, key, grid_size)
