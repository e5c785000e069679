"""`is_layer_norm`: a test that the student writes, tested with right and with wrong layer normalization.

The known mistakes are tests that say yes or no where they should not.
"""

from __future__ import annotations

from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from vit_course.exercises.l04_block import LESSON
from vit_course.exercises.l04_block.is_layer_norm.suspects import LINE_UP

is_layer_norm = Exercise("is_layer_norm", LESSON, in_training=InTraining.UNSEEN)


@is_layer_norm.check(guard=True)
def right_norms_pass(student: Student, probe: Probe) -> None:
    """Right layer normalization passes, however it was computed."""
    LINE_UP.expect_right_passes(student, probe)


@is_layer_norm.check(needs=right_norms_pass, points=0.25)
def it_catches_wrong_shapes(student: Student, probe: Probe) -> None:
    """It catches a result of another shape."""
    LINE_UP.expect_family_is_caught(
        student, probe, "shape", "Which shape do you expect, and do you look at it before you compare?"
    )


@is_layer_norm.check(needs=right_norms_pass, points=0.75)
def it_catches_statistics_over_the_tokens(student: Student, probe: Probe) -> None:
    """It catches a mean and a variance over the tokens, over a whole image or everything, or of another token."""
    LINE_UP.expect_family_is_caught(
        student, probe, "tokens", "What becomes of a token when it is alone, without its neighbors?"
    )


@is_layer_norm.check(needs=right_norms_pass, points=0.5)
def it_catches_statistics_over_the_batch(student: Student, probe: Probe) -> None:
    """It catches a mean and a variance in which other images take part."""
    LINE_UP.expect_family_is_caught(
        student, probe, "batch", "What becomes of an image when the other images of its batch are gone?"
    )


@is_layer_norm.check(needs=right_norms_pass, points=0.5)
def it_catches_axes_counted_from_the_front(student: Student, probe: Probe) -> None:
    """It catches axes that are counted from the front, and so are the right ones for some inputs only."""
    LINE_UP.expect_family_is_caught(
        student, probe, "axes", "Which numbers of axes in front of the last one have you tried?"
    )


@is_layer_norm.check(needs=right_norms_pass, points=0.5)
def it_catches_another_divisor(student: Student, probe: Probe) -> None:
    """It catches a variance that divides by embed_dim - 1, by the number of tokens, or by another number."""
    look = "Which of your sizes agree, and how much does one less change when embed_dim is large?"
    LINE_UP.expect_family_is_caught(student, probe, "divisor", look)


@is_layer_norm.check(needs=right_norms_pass, points=0.5)
def it_catches_eps_beside_the_variance(student: Student, probe: Probe) -> None:
    """It catches an eps that is added outside the root, more or less of it, or none where the variance is larger."""
    LINE_UP.expect_family_is_caught(
        student, probe, "eps beside", "How large is your eps, next to the variance of your tokens?"
    )


@is_layer_norm.check(needs=right_norms_pass, points=0.5)
def it_catches_an_eps_that_is_ignored(student: Student, probe: Probe) -> None:
    """It catches a norm without an eps, or with one of its own."""
    LINE_UP.expect_family_is_caught(student, probe, "eps ignored", "For which tokens does it matter what eps is?")


@is_layer_norm.check(needs=right_norms_pass, points=0.5)
def it_catches_a_mean_left_in(student: Student, probe: Probe) -> None:
    """It catches a mean that is not subtracted, from x or in the variance; an RMSNorm is one of these."""
    LINE_UP.expect_family_is_caught(
        student, probe, "mean", "What are the means of your tokens? What happens when you add 10 to them?"
    )


@is_layer_norm.check(needs=right_norms_pass, points=0.5)
def it_catches_look_alikes(student: Student, probe: Probe) -> None:
    """It catches other numbers for mean and standard deviation, and results cut off, turned or in another order."""
    look = (
        "Which other numbers are the same as the mean, or the standard deviation, of your token by accident? "
        "And what do your facts say when every sign is turned?"
    )
    LINE_UP.expect_family_is_caught(student, probe, "look-alikes", look)


@is_layer_norm.check(needs=right_norms_pass, points=0.25)
def it_catches_a_missing_weight_or_bias(student: Student, probe: Probe) -> None:
    """It catches a weight or a bias that is never used."""
    LINE_UP.expect_family_is_caught(
        student, probe, "missing", "Which weight and which bias change nothing, used or not?"
    )


@is_layer_norm.check(needs=right_norms_pass, points=0.25)
def it_catches_the_bias_before_the_weight(student: Student, probe: Probe) -> None:
    """It catches a bias that is multiplied by the weight, or subtracted, and the two in each other's places."""
    LINE_UP.expect_family_is_caught(
        student, probe, "order", "For which weight, or which bias, does the order make no difference?"
    )


@is_layer_norm.check(needs=right_norms_pass, points=0.5)
def it_catches_another_weight(student: Student, probe: Probe) -> None:
    """It catches 1 + weight, a weight without its sign, one for all dimensions, left out, or another dimension's."""
    LINE_UP.expect_family_is_caught(student, probe, "weight", "Are all your weights positive, or all the same?")


@is_layer_norm.check(needs=right_norms_pass, points=0.25)
def it_catches_an_x_that_is_changed(student: Student, probe: Probe) -> None:
    """It catches a norm that writes into x."""
    LINE_UP.expect_family_is_caught(student, probe, "in place", "What does x hold after the call?")


is_layer_norm.example(
    """
>>> is_layer_norm(lambda x, weight, bias, eps: x)
False
""",
    points=0.25,
    first=it_catches_wrong_shapes,
)


read_mistakes(is_layer_norm, __name__)
declare_pairs(is_layer_norm, Edits(slow=True))
