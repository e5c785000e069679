"""What only grading asks of ``count_parameters``."""

from __future__ import annotations

from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l05_vit.count_parameters import claims
from vit_course.exercises.l05_vit.vision_transformer.claims import WIDE_MODEL


@claims.count_parameters.check(graded_only=True, points=0.5)
def both_ends_are_counted(student: Student, probe: Probe) -> None:
    """Without any block (depth 0) there remain patch embedding, class token, positions, norm and head."""
    config = claims.draw_plain_config(probe, WIDE_MODEL, depth=0)
    claims.expect_right_count(student, config, f"a model of depth 0, embed_dim {config.embed_dim}")
