"""`is_layer_norm`: a test that the student writes, tested with right and with wrong layer normalization.

The known mistakes are tests that say yes or no where they should not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect
from vit_course.exercises.l04_block import LESSON, layer_norm_cases
from vit_course.exercises.l04_block.layer_norm_cases import Norm


def _described(functions: Sequence[Candidate]) -> list[Suspect]:
    return [Suspect(each.__doc__ or "", each) for each in functions]


def _family(functions: Sequence[Candidate]) -> Family:
    return lambda probe: _described(functions)


LINE_UP = LineUp(
    "a norm",
    "your own layer_norm",
    _described(layer_norm_cases.RIGHT),
    {name: _family(functions) for name, functions in layer_norm_cases.WRONG.items()},
    lambda function: function,
)

is_layer_norm = Exercise("is_layer_norm", LESSON, in_training=InTraining.UNSEEN)


@is_layer_norm.check(guard=True)
def right_norms_pass(student: Student, probe: Probe) -> None:
    """Right layer normalization passes, however it was computed."""
    LINE_UP.expect_right_passes(student, probe)


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_wrong_shapes(student: Student, probe: Probe) -> None:
    """It catches a result of another shape."""
    LINE_UP.expect_caught(
        student, probe, "shape", "Which shape do you expect, and do you look at it before you compare?"
    )


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_statistics_over_the_tokens(student: Student, probe: Probe) -> None:
    """It catches a mean and a variance over the tokens, over a whole image or everything, or of another token."""
    LINE_UP.expect_caught(student, probe, "tokens", "What becomes of a token when it is alone, without its neighbors?")


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_statistics_over_the_batch(student: Student, probe: Probe) -> None:
    """It catches a mean and a variance in which other images take part."""
    LINE_UP.expect_caught(
        student, probe, "batch", "What becomes of an image when the other images of its batch are gone?"
    )


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_axes_counted_from_the_front(student: Student, probe: Probe) -> None:
    """It catches axes that are counted from the front, and so are the right ones for some inputs only."""
    LINE_UP.expect_caught(student, probe, "axes", "Which numbers of axes in front of the last one have you tried?")


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_another_divisor(student: Student, probe: Probe) -> None:
    """It catches a variance that divides by embed_dim - 1, or by the number of tokens."""
    look = "Which of your sizes agree, and how much does one less change when embed_dim is large?"
    LINE_UP.expect_caught(student, probe, "divisor", look)


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_eps_beside_the_variance(student: Student, probe: Probe) -> None:
    """It catches an eps that is added outside the root, or not added at all where the variance is larger."""
    LINE_UP.expect_caught(student, probe, "eps beside", "How large is your eps, next to the variance of your tokens?")


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_an_eps_that_is_ignored(student: Student, probe: Probe) -> None:
    """It catches a norm without an eps, or with one of its own."""
    LINE_UP.expect_caught(student, probe, "eps ignored", "For which tokens does it matter what eps is?")


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_a_mean_left_in(student: Student, probe: Probe) -> None:
    """It catches a mean that is not subtracted, from x or in the variance; an RMSNorm is one of these."""
    LINE_UP.expect_caught(
        student, probe, "mean", "What are the means of your tokens? What happens when you add 10 to them?"
    )


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_look_alikes(student: Student, probe: Probe) -> None:
    """It catches other numbers in place of mean and standard deviation, and results that are cut off."""
    look = "Which other numbers are the same as the mean, or the standard deviation, of your token by accident?"
    LINE_UP.expect_caught(student, probe, "look-alikes", look)


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_a_missing_weight_or_bias(student: Student, probe: Probe) -> None:
    """It catches a weight or a bias that is never used."""
    LINE_UP.expect_caught(student, probe, "missing", "Which weight and which bias change nothing, used or not?")


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_the_bias_before_the_weight(student: Student, probe: Probe) -> None:
    """It catches a bias that is multiplied by the weight, and the two in each other's places."""
    LINE_UP.expect_caught(
        student, probe, "order", "For which weight, or which bias, does the order make no difference?"
    )


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_another_weight(student: Student, probe: Probe) -> None:
    """It catches 1 + weight, a weight without its sign, one weight for all dimensions, or one that is left out."""
    LINE_UP.expect_caught(student, probe, "weight", "Are all your weights positive, or all the same?")


@is_layer_norm.check(needs=right_norms_pass)
def it_catches_an_x_that_is_changed(student: Student, probe: Probe) -> None:
    """It catches a norm that writes into x."""
    LINE_UP.expect_caught(student, probe, "in place", "What does x hold after the call?")


is_layer_norm.example("""
>>> is_layer_norm(lambda x, weight, bias, eps: x)
False
""")


TEST = "04_block, A test for LayerNorm"
EPS = "04_block, What eps is for"


class _Case(NamedTuple):
    """What a norm is given: x (..., embed_dim), weight and bias (embed_dim,), and eps."""

    x: Tensor
    weight: Tensor
    bias: Tensor
    eps: float

    @property
    def right(self) -> Tensor:
        """The right result."""
        variance, mean = torch.var_mean(self.x, -1, correction=0, keepdim=True)
        return (self.x - mean) * (variance + self.eps).rsqrt() * self.weight + self.bias


@cache
def _case(*front: int, embed_dim: int = 7, eps: float = 0.5) -> _Case:
    """Tokens (*front, embed_dim) that are the same at every call, each with a mean and a spread of its own."""
    generator = torch.Generator().manual_seed(0)
    sizes = (*front, embed_dim), (embed_dim,), (embed_dim,), (*front, 1), (*front, 1)
    x, weight, bias, mean, spread = (torch.randn(*size, generator=generator) for size in sizes)
    return _Case(2 * mean + (0.3 + spread.abs()) * x, weight, bias, eps)


def _plain(case: _Case) -> _Case:
    """With a weight of ones and a bias of zeros."""
    return case._replace(weight=torch.ones_like(case.weight), bias=torch.zeros_like(case.bias))


def _given(norm: Norm, case: _Case) -> Tensor:
    """What ``norm`` gives for copies, for some norms write into x."""
    return norm(case.x.clone(), case.weight.clone(), case.bias.clone(), case.eps)


def _near(first: Tensor, second: Tensor, within: float = 1e-4) -> bool:
    return first.shape == second.shape and torch.allclose(first, second, atol=within)


def _as_by_hand(norm: Norm, case: _Case) -> bool:
    return _near(_given(norm, case), case.right)


def _leaves_x(norm: Norm, case: _Case) -> bool:
    x = case.x.clone()
    norm(x, case.weight, case.bias, case.eps)
    return torch.equal(x, case.x)


def _is_right(norm: Norm, case: _Case) -> bool:
    return _as_by_hand(norm, case) and _leaves_x(norm, case)


@is_layer_norm.misconception("For which wrong norm does your test return False?", TEST)
def never_says_no(norm: Norm) -> bool:
    """The test returns True for everything."""
    return True


@is_layer_norm.misconception("Which of your facts does your own layer_norm fail, and by how much?", TEST)
def never_says_yes(norm: Norm) -> bool:
    """The test returned False for everything, right or wrong: a fact is wrong, or too strict."""
    return False


@is_layer_norm.misconception("What do your `return` lines say when a fact holds: True or False?", TEST)
def answer_turned_round(norm: Norm) -> bool:
    """The test returns True for wrong norms and False for right ones."""
    return not _is_right(norm, _case(2, 3, 5))


@is_layer_norm.misconception("Can two tensors of one shape hold different numbers?", TEST)
def shapes_only(norm: Norm) -> bool:
    """The test looks at the shape and never at a number."""
    return _given(norm, _case(2, 3, 5)).shape == (2, 3, 5, 7)


@is_layer_norm.misconception("How many tokens have mean 0 and variance 1 without being the right one?", TEST)
def mean_and_variance_of_the_result_only(norm: Norm) -> bool:
    """The test asks for mean 0 and variance 1, with a tiny eps, a weight of ones and a bias of zeros."""
    case = _plain(_case(2, 3, 5, eps=1e-6))
    result = _given(norm, case)
    variance, mean = torch.var_mean(result, -1, correction=0)
    right_size = result.shape == case.x.shape
    return right_size and _near(mean, torch.zeros(2, 3, 5)) and _near(variance, torch.ones(2, 3, 5), 1e-3)


@is_layer_norm.misconception("What does torch's var divide by, unless you say otherwise?", TEST)
def variance_as_torch_takes_it(norm: Norm) -> bool:
    """The test takes its variance with torch's var, which divides by one less, and wants 1."""
    case = _plain(_case(2, 3, 5, eps=0.0))
    result = _given(norm, case)
    return result.shape == case.x.shape and _near(result.var(-1), torch.ones(2, 3, 5))


@is_layer_norm.misconception("Which weight and which bias make no difference?", TEST)
def weight_of_ones_and_bias_of_zeros(norm: Norm) -> bool:
    """All tests have a weight of ones and a bias of zeros, so nobody sees whether and how they are used."""
    return _is_right(norm, _plain(_case(2, 3, 5)))


@is_layer_norm.misconception("How much does your eps change in the result, and would your test notice?", EPS)
def an_eps_too_small_to_matter(norm: Norm) -> bool:
    """All tokens have a variance of about 1 and eps is 1e-6, so eps could be anywhere, or missing."""
    case = _case(2, 3, 5, eps=1e-6)
    deviation, mean = torch.std_mean(case.x, -1, keepdim=True)
    return _is_right(norm, case._replace(x=(case.x - mean) / deviation + 0.3 * mean))


@is_layer_norm.misconception("How far apart may two right answers be, and how far is the nearest wrong one?", TEST)
def a_tolerance_that_lets_anything_near_pass(norm: Norm) -> bool:
    """The test has hundreds of dimensions and a tolerance of 1e-2, so that one less in the divisor passes."""
    case = _case(2, 3, 5, embed_dim=768)
    return _near(_given(norm, case), case.right, 1e-2) and _leaves_x(norm, case)


@is_layer_norm.misconception("Do 0.1 + 0.2 and 0.3 agree to the last digit in a computer?", TEST)
def compared_to_the_last_digit(norm: Norm) -> bool:
    """The test asks for exact equality, but right answers differ in their last digits."""
    return torch.equal(_given(norm, _case(2, 3, 5)), _case(2, 3, 5).right)


@is_layer_norm.misconception("Which of your axes could stand for another one?", TEST)
def every_axis_of_the_same_size(norm: Norm) -> bool:
    """All axes have the same size, so the number of tokens passes for embed_dim."""
    return _is_right(norm, _case(6, 6, 6, embed_dim=6))


@is_layer_norm.misconception("How would you notice that two images were mixed up?", TEST)
def one_image_only(norm: Norm) -> bool:
    """The test tries a single image, so it cannot see what happens between the images of a batch."""
    return _is_right(norm, _case(1, 3, 5))


@is_layer_norm.misconception("How would you notice that two tokens were mixed up?", TEST)
def one_token_only(norm: Norm) -> bool:
    """The test tries a single token, so it cannot see what happens between the tokens of an image."""
    return _is_right(norm, _case())


@is_layer_norm.misconception("Is axis number 2 always the last one?", TEST)
def always_three_axes(norm: Norm) -> bool:
    """Every x has three axes, so a norm passes that works for three axes only."""
    return _is_right(norm, _case(3, 5))


@is_layer_norm.misconception("For which tokens does a norm that subtracts no mean give the right result?", TEST)
def tokens_of_mean_zero(norm: Norm) -> bool:
    """All tokens have mean 0, so nobody sees whether it is subtracted."""
    case = _case(2, 3, 5)
    return _is_right(norm, case._replace(x=case.x - case.x.mean(-1, keepdim=True)))


@is_layer_norm.misconception("Which other numbers of 1, 1, 5, 5 are 3, or 2?", TEST)
def tokens_of_two_numbers(norm: Norm) -> bool:
    """All tokens are like 1, 1, 5, 5: mean and deviation agree with the middle and with half the range."""
    case = _case(2, 3, 5, embed_dim=6)
    first, second = case.x[..., :1], case.x[..., 1:2]
    return _is_right(norm, case._replace(x=torch.cat((first, second), dim=-1).repeat_interleave(3, dim=-1)))


@is_layer_norm.misconception("Which number could stand for all your weights?", TEST)
def the_same_weight_for_all_dimensions(norm: Norm) -> bool:
    """All numbers of the weight are the same, so a norm with one weight for all dimensions passes."""
    case = _case(2, 3, 5)
    return _is_right(norm, case._replace(weight=torch.full_like(case.weight, -1.5)))


@is_layer_norm.misconception("What is the difference between your weights and their absolute values?", TEST)
def positive_weights_only(norm: Norm) -> bool:
    """All weights are positive, so nobody sees what becomes of a sign."""
    case = _case(2, 3, 5)
    return _is_right(norm, case._replace(weight=case.weight.abs()))


@is_layer_norm.misconception("What does x hold after the call?", TEST)
def x_not_looked_at(norm: Norm) -> bool:
    """The test looks at the result and never at what has become of x."""
    return _as_by_hand(norm, _case(2, 3, 5))


@is_layer_norm.misconception("What should is_layer_norm give back when a fact does not hold?", TEST)
def asserts_where_it_should_answer(norm: Norm) -> bool:
    """The test stops with an AssertionError where it should return False."""
    assert _is_right(norm, _case(2, 3, 5)), "this is no layer normalization"
    return True
