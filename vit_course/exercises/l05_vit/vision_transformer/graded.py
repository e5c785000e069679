"""What only grading asks of ``VisionTransformer``.

What a model does with images of another size than its config's is not asked, for no exercise's text tells.
"""

from __future__ import annotations

from exercise_kit.engine.expect import expect_inputs_unchanged, expect_modes_kept
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l05_vit.small_models import draw_config
from vit_course.exercises.l05_vit.vision_transformer import claims


@claims.VisionTransformer.check(graded_only=True, points={"VisionTransformer": 1, "fix_vit": 0.5})
def both_ends_are_right(student: Student, probe: Probe) -> None:
    """Without any block (depth 0) the logits are those of the class token, at its position, after the norm."""
    config = draw_config(probe, claims.WIDE_MODEL, depth=0)
    look = "No block mixes tokens here. Which token does your head read?"
    claims.expect_right_logits(student, probe, config, "the output of a model of depth 0", look)


@claims.VisionTransformer.check(
    graded_only=True, points={"VisionTransformer": 0.75, "fix_vit": 0.25}, first=claims.the_logits_are_right
)
def every_call_stands_alone(student: Student, probe: Probe) -> None:
    """An image gets the same logits alone as in a batch; a call changes neither the images nor the model's mode."""
    claims.images_do_not_see_each_other(student, probe)
    expect_inputs_unchanged(student)
    config = draw_config(probe, claims.WIDE_MODEL)
    expect_modes_kept(student, (config,), claims.draw_images_for(probe, 2, config))
