"""What only grading asks of ``QKNormAttention``."""

from __future__ import annotations

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l03_attention.split_heads.claims import TOKEN_AXES
from vit_course.exercises.l10_modern.qk_norm_attention import claims


@claims.QKNormAttention.check(graded_only=True, points=0.2)
def one_image_keeps_its_axis(student: Student, probe: Probe) -> None:
    """A batch of one image keeps its three axes, and so does an image of one token."""
    module, weights, x, num_heads = claims.build_module_and_draw_tokens(student, probe)
    for batch, tokens in ((1, 4), (2, 1), (1, 1)):
        x = probe.normal(batch, tokens, x.shape[-1])
        right = claims.compute_inputs_and_outputs_of_parts(weights, x, num_heads)["projection:out"]
        expect_equal(module(x), right, f"the output for {batch} of {tokens} tokens", TOKEN_AXES)
