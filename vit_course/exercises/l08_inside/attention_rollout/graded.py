"""What only grading asks of ``attention_rollout``."""

from __future__ import annotations

from exercise_kit.engine.expect import expect_independent_results
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l08_inside.attention_rollout import claims


@claims.attention_rollout.check(graded_only=True, points=0.1, first=claims.a_later_layer_mixes_what_earlier_ones_mixed)
def every_call_stands_alone(student: Student, probe: Probe) -> None:
    """The table is right, and no later call changes it."""
    layers = claims.draw_attention_layers(probe)
    others = [probe.normal(*layer.shape).softmax(-1) for layer in layers]
    expect_independent_results(student, (layers,), (others,))
