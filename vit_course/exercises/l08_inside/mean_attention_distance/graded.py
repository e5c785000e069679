"""What only grading asks of ``mean_attention_distance``."""

from __future__ import annotations

from exercise_kit.engine.expect import expect_independent_results
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l08_inside.mean_attention_distance import claims


@claims.mean_attention_distance.check(graded_only=True, points=0.1, first=claims.a_class_token_is_left_out)
def every_call_stands_alone(student: Student, probe: Probe) -> None:
    """The distances are right, and no later call changes them."""
    weights, *others = claims.draw_case(probe, claims.WIDE, class_token=True)
    expect_independent_results(student, (weights, *others), (probe.normal(*weights.shape).softmax(-1), *others))
