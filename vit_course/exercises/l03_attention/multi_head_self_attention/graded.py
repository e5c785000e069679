"""What only grading asks of ``MultiHeadSelfAttention``."""

from __future__ import annotations

from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l03_attention.multi_head_self_attention import claims


@claims.MultiHeadSelfAttention.check(graded_only=True, points=1)
def one_of_anything_will_do(student: Student, probe: Probe) -> None:
    """One head, heads of one number, one token, a batch of one and scattered memory work too."""
    batch, tokens, num_heads, head_dim = claims.draw_sizes(probe)
    for images, seen, heads, width in (
        (batch, tokens, 1, head_dim),
        (1, tokens, num_heads, 1),
        (batch, 1, num_heads, head_dim),
    ):
        module, right = claims.build_student_and_torch_attention(student, probe, heads * width, heads, True)
        x = probe.normal(images, heads * width, seen).mT
        described = f" (batch {images}, tokens {seen}, num_heads {heads}, head_dim {width})"
        claims.expect_right_output(module, right, x, f"the output{described}")
        claims.expect_right_weights(module, right, x, f"the weights tensor{described}")


@claims.MultiHeadSelfAttention.check(graded_only=True, points=0.5)
def qkv_has_a_bias_unless_told(student: Student, probe: Probe) -> None:
    """A module that is built without a word about qkv_bias has a bias in qkv, and uses it."""
    claims.qkv_has_a_bias_unless_told(student, probe)
    batch, tokens, num_heads, head_dim = claims.draw_sizes(probe)
    module, right = claims.build_student_and_torch_attention(student, probe, num_heads * head_dim, num_heads)
    x = probe.normal(batch, tokens, num_heads * head_dim)
    claims.expect_right_output(module, right, x, "the output of a module that is built without qkv_bias")


@claims.MultiHeadSelfAttention.check(graded_only=True, points=0.5)
def one_module_serves_any_batch(student: Student, probe: Probe) -> None:
    """One and the same module takes more tokens, fewer, and other batches, one call after the other."""
    few, many, num_heads, head_dim = claims.draw_sizes(probe)
    module, right = claims.build_student_and_torch_attention(student, probe, num_heads * head_dim, num_heads, True)
    look = "What does your module keep from one call to the next?"
    for batch, tokens in ((few, many), (many, few), (1, many + 1), (few, many)):
        x = probe.normal(batch, tokens, num_heads * head_dim)
        claims.expect_right_output(module, right, x, f"the output (batch {batch}, tokens {tokens})", look)
        claims.expect_right_weights(module, right, x, look=look)
