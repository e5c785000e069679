"""What only grading asks of ``EncoderBlock``."""

from __future__ import annotations

from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l04_block.encoder_block import claims


@claims.EncoderBlock.check(graded_only=True, points={"EncoderBlock": 0.25, "fix_block": 0.0625})
def a_block_of_the_usual_width_is_right(student: Student, probe: Probe) -> None:
    """Where no mlp_ratio is given, the numbers are right too."""
    claims.expect_right_in_both_modes(
        student, probe, "Which value does mlp_ratio have when nobody gives one?", without_ratio=True
    )
