"""`is_attention`: a test that the student writes, tested with right and with wrong attention.

The known mistakes are tests that say yes or no where they should not.
"""

from __future__ import annotations

from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from vit_course.exercises.l03_attention import LESSON
from vit_course.exercises.l03_attention.is_attention.suspects import LINE_UP

is_attention = Exercise("is_attention", LESSON, in_training=InTraining.UNSEEN)


@is_attention.check(guard=True)
def right_attention_passes(student: Student, probe: Probe) -> None:
    """Right attention passes, however it was computed."""
    LINE_UP.expect_right_passes(student, probe)


@is_attention.check(needs=right_attention_passes, points=0.5)
def it_catches_wrong_shapes(student: Student, probe: Probe) -> None:
    """It catches output or weights of a wrong shape."""
    LINE_UP.expect_family_is_caught(
        student, probe, "shape", "Which shapes do you expect when queries, keys and both dimensions all differ in size?"
    )


@is_attention.check(needs=right_attention_passes, points=0.75)
def it_catches_a_wrong_axis(student: Student, probe: Probe) -> None:
    """It catches a softmax over the queries, over everything, or none at all: rows that do not sum to one."""
    LINE_UP.expect_family_is_caught(
        student, probe, "axis", "Which sums of the weights do you know without computing any attention?"
    )


@is_attention.check(needs=right_attention_passes, points=0.25)
def it_catches_missing_scaling(student: Student, probe: Probe) -> None:
    """It catches scores that were not scaled."""
    LINE_UP.expect_family_is_caught(
        student, probe, "no scale", "For which small query and keys can you work out the weights with pencil and paper?"
    )


@is_attention.check(needs=right_attention_passes, points=1)
def it_catches_other_scaling(student: Student, probe: Probe) -> None:
    """It catches scores that were scaled by something else than the root of head_dim."""
    LINE_UP.expect_family_is_caught(
        student, probe, "other scale", "Which of your sizes are equal by accident, so that one can stand for the other?"
    )


@is_attention.check(needs=right_attention_passes, points=0.5)
def it_catches_altered_queries_and_keys(student: Student, probe: Probe) -> None:
    """It catches scores in which a number of each query and key is left out or counts more, or a length is lost."""
    look = "Which numbers could be missing from the scores of your pencil example, and nothing would change?"
    LINE_UP.expect_family_is_caught(student, probe, "altered", look)


@is_attention.check(needs=right_attention_passes, points=1)
def it_catches_other_values(student: Student, probe: Probe) -> None:
    """It catches an output that is no mean of the values under the weights."""
    LINE_UP.expect_family_is_caught(
        student, probe, "values", "When you know weights and values, what must the output be?"
    )


@is_attention.check(needs=right_attention_passes, points=1.25)
def it_catches_a_mask(student: Student, probe: Probe) -> None:
    """It catches a mask, or anything else that treats queries and keys by their place."""
    LINE_UP.expect_family_is_caught(
        student,
        probe,
        "mask",
        "What happens to right attention when the keys are shuffled, together with their values?",
    )


@is_attention.check(needs=right_attention_passes, points=0.75)
def it_catches_foreign_weights(student: Student, probe: Probe) -> None:
    """It catches weights that do not belong to the output."""
    LINE_UP.expect_family_is_caught(
        student, probe, "belonging", "Does your test look at output and weights apart, or also at the two together?"
    )


@is_attention.check(needs=right_attention_passes, points=0.75)
def it_catches_mixed_batches(student: Student, probe: Probe) -> None:
    """It catches images of a batch that get mixed."""
    LINE_UP.expect_family_is_caught(
        student, probe, "batch", "Does the answer for one image change when the other images of the batch do?"
    )


@is_attention.check(needs=right_attention_passes, points=0.25)
def it_catches_a_constant_output(student: Student, probe: Probe) -> None:
    """It catches an output that does not depend on the query."""
    LINE_UP.expect_family_is_caught(student, probe, "constant", "Which numbers would tell two different queries apart?")


@is_attention.check(needs=right_attention_passes, points=0.75)
def it_catches_what_is_no_softmax(student: Student, probe: Probe) -> None:
    """It catches weights that sum to one but are no softmax of the scores."""
    LINE_UP.expect_family_is_caught(
        student, probe, "not a softmax", "Which one example, worked out by hand, would nail down the numbers?"
    )


is_attention.example(
    """
>>> is_attention(lambda query, key, value: (value, query))
False
""",
    points=0.25,
    first=it_catches_wrong_shapes,
)


read_mistakes(is_attention, __name__)
declare_pairs(is_attention, Edits(slow=True))
