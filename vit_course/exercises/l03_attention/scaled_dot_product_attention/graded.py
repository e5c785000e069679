"""What only grading asks of ``scaled_dot_product_attention``."""

from __future__ import annotations

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.expect import expect_independent_results, expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l03_attention.scaled_dot_product_attention import claims


@claims.scaled_dot_product_attention.check(graded_only=True, points=0.4)
def nobody_else_is_looked_at(student: Student, probe: Probe) -> None:
    """An image alone gets the answer it gets in a batch, and shuffled keys and values change no output."""
    batch, heads, *sizes = probe.sizes(6)
    query, key, value = claims.draw_query_key_value(probe, (batch, heads), sizes)
    output = claims.expect_right_output_and_weights(student, (query, key, value)).detach()
    alone, _ = claims.call_and_expect_pair(student, *(each[batch - 1 :] for each in (query, key, value)))
    look = "Along which axes do you sum, and whom do they join?"
    expect_equal(alone, output[batch - 1 :], "the output of an image alone", claims.OUTPUT_AXES, look=look)
    order = probe.permutation(sizes[1])
    shuffled, _ = claims.call_and_expect_pair(student, query, key[:, :, order], value[:, :, order])
    look = "Where do you use the number of a key, where only what it holds should count?"
    expect_equal(shuffled, output, "the output for shuffled keys and values", claims.OUTPUT_AXES, look=look)


@claims.scaled_dot_product_attention.check(graded_only=True, points=0.25)
def the_inputs_are_left_alone(student: Student, probe: Probe) -> None:
    """query, key and value are not changed, and each call answers for its own inputs, with results of its own."""
    batch, *sizes = probe.sizes(5)
    one, other = (claims.draw_query_key_value(probe, (batch,), sizes) for _ in range(2))
    for inputs in (one, other):
        claims.expect_right_output_and_weights(student, inputs)
        expect_inputs_unchanged(student)
    expect_independent_results(student, one, other)
