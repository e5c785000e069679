"""`layer_norm`: LayerNorm by hand.

The oracle is torch's own ``F.layer_norm``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_gradients_of_inputs, expect_left_alone
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l04_block import LESSON

TOKEN_AXES = ("image", "token", "dimension")
AXES = {2: TOKEN_AXES[1:], 3: TOKEN_AXES, 4: ("image", "row", "column", "dimension")}
# a thousandth: the nearest misconception, dividing by embed_dim - 1, is off by 1/7
MEAN_AND_VARIANCE = 1e-3
# of numbers of order 1: see the check that uses it
LARGE_MEAN = 1e-2

layer_norm = Exercise("layer_norm", LESSON)


def _tokens(probe: Probe, *shape: int, spread: float = 1.0) -> Tensor:
    """Tokens (..., embed_dim) of which each has a mean and a spread of its own."""
    each = (*shape[:-1], 1)
    spreads = spread * (0.5 + 3.5 * probe.uniform(*each))
    return spreads * (probe.normal(*each, scale=2.0) + probe.normal(*shape))


def _plain(embed_dim: int) -> tuple[Tensor, Tensor]:
    """A weight and a bias that change nothing."""
    return torch.ones(embed_dim), torch.zeros(embed_dim)


def _weight_and_bias(probe: Probe, embed_dim: int) -> tuple[Tensor, Tensor]:
    drawn = probe.weights({"weight": (embed_dim,), "bias": (embed_dim,)})
    return drawn["weight"], drawn["bias"]


def _normalized(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


@layer_norm.check(guard=True)
def the_shape_stays(student: Student, probe: Probe) -> None:
    """The result has the shape of x."""
    expect_tensor(student(_tokens(probe, 3, 5, 7), *_plain(7), 1e-6), (3, 5, 7), "layer_norm")


@layer_norm.check(needs=the_shape_stays)
def every_token_gets_mean_zero_and_variance_one(student: Student, probe: Probe) -> None:
    """With a weight of ones and a bias of zeros, each token has mean 0 and variance 1 afterward."""
    result = expect_tensor(student(_tokens(probe, 3, 5, 7), *_plain(7), 1e-6), (3, 5, 7), "layer_norm").detach()
    mean, variance = result.double().mean(-1), result.double().var(-1, correction=0)
    off = ~((mean.abs() < MEAN_AND_VARIANCE) & ((variance - 1).abs() < MEAN_AND_VARIANCE))
    if off.any():
        image, token = (int(index) for index in off.nonzero()[0])
        found = " and ".join(
            f"{name} {round(float(each[image, token]), 3) + 0.0:g}"
            for name, each in (("mean", mean), ("variance", variance))
        )
        raise Failure(
            f"token {token} of image {image}, 7 numbers, comes out with {found}",
            "mean 0 and variance 1, the variance being the mean of the squared deviations",
            "Whose mean do you subtract, and what do you divide by? Do a token of two numbers by hand.",
        )


@layer_norm.check(needs=every_token_gets_mean_zero_and_variance_one)
def weight_multiplies_then_bias_is_added(student: Student, probe: Probe) -> None:
    """Each dimension is multiplied by its own weight, then its own bias is added."""
    x, (weight, bias) = _tokens(probe, 3, 5, 7), _weight_and_bias(probe, 7)
    look = "What becomes of a token of mean 0 and variance 1 when the weight is 2 and the bias is 3?"
    expect_equal(
        student(x, weight, bias, 1e-6), _normalized(x, weight, bias, 1e-6), "layer_norm", TOKEN_AXES, look=look
    )


@layer_norm.check(needs=weight_multiplies_then_bias_is_added)
def only_the_last_axis_counts(student: Student, probe: Probe) -> None:
    """Mean and variance run over the last axis, also when x has two axes or four, or an axis of size 1."""
    weight, bias = _weight_and_bias(probe, 7)
    for shape in ((5, 7), (2, 3, 5, 7), (1, 5, 7)):
        x = _tokens(probe, *shape)
        name = f"layer_norm of a tensor of shape {shape}"
        look = "How do you name the last axis when you do not know how many there are?"
        expect_equal(
            student(x, weight, bias, 1e-6), _normalized(x, weight, bias, 1e-6), name, AXES[len(shape)], look=look
        )


@layer_norm.check(needs=the_shape_stays)
def eps_is_added_to_the_variance(student: Student, probe: Probe) -> None:
    """eps is added to the variance, before the root is taken; tokens of small variance tell."""
    x, (weight, bias) = _tokens(probe, 3, 5, 7, spread=0.1), _plain(7)

    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        token = int((actual - expected).abs().amax(-1)[0].argmax())
        before, here, there = (float(each[0, token].double().std(correction=0)) for each in (x, actual, expected))
        if abs(here - there) < 0.01 * there:  # what is wrong is not the size of the token
            return None
        return (
            f"token {token} of image 0, of variance {before**2:.3g}, comes out with a standard deviation of {here:.3g}",
            f"{there:.3g} for an eps of 0.1",
        )

    look = "A token of variance 0.3 and an eps of 0.1: what do you divide by?"
    expect_equal(
        student(x, weight, bias, 0.1), _normalized(x, weight, bias, 0.1), "layer_norm", TOKEN_AXES, describe, look
    )


@layer_norm.check(needs=weight_multiplies_then_bias_is_added)
def a_token_of_equal_numbers_becomes_the_bias(student: Student, probe: Probe) -> None:
    """A token whose numbers are all equal becomes the bias, and no NaN; so does one of a single number."""
    look = "The variance is 0. What stands in the denominator?"
    for embed_dim in (8, 1):
        weight, bias = _weight_and_bias(probe, embed_dim)
        x = torch.tensor([[3.0], [-2.0], [0.0]]).repeat(2, 1, embed_dim)
        name = f"layer_norm with an embed_dim of {embed_dim}"
        expect_equal(student(x, weight, bias, 1e-3), bias.expand(2, 3, embed_dim), name, TOKEN_AXES, look=look)


@layer_norm.check(needs=only_the_last_axis_counts, guard=True)
def float64_and_any_memory_layout_are_fine(student: Student, probe: Probe) -> None:
    """A float64 tensor keeps its dtype and its precision, and a non-contiguous one is read right."""
    weight, bias = (each.double() for each in _weight_and_bias(probe, 7))
    x = _tokens(probe, 3, 7, 5).double().transpose(1, 2)
    expect_equal(
        student(x, weight, bias, 1e-6), _normalized(x, weight, bias, 1e-6), "layer_norm in float64", TOKEN_AXES
    )


@layer_norm.check(needs=weight_multiplies_then_bias_is_added)
def a_large_mean_does_no_harm(student: Student, probe: Probe) -> None:
    """Tokens whose numbers lie around 1000 are normalized as exactly as others."""
    weight, bias = _weight_and_bias(probe, 7)
    x = 1000 + probe.normal(3, 5, 7)
    wanted = _normalized(x.double(), weight.double(), bias.double(), 1e-6).float()
    found = student(x, weight, bias, 1e-6)
    # the mean of such numbers is right to 1e-4 in float32, and a difference of mean squares to 1e-1
    has_shape = isinstance(found, Tensor) and found.shape == x.shape
    is_right = has_shape and bool((found - wanted).abs().max() <= LARGE_MEAN)
    # what a wrong formula makes of such numbers is rounding
    student.record[-1:] = [("right for a large mean", is_right)]
    if not is_right:
        look = "Which of your steps subtracts two large numbers that are nearly equal?"
        expect_equal(found, wanted, "layer_norm of tokens with a mean of 1000", TOKEN_AXES, look=look)


@layer_norm.check(needs=weight_multiplies_then_bias_is_added)
def the_gradient_takes_every_way(student: Student, probe: Probe) -> None:
    """x, weight and bias get their gradients, that of x through the mean and the variance too."""
    inputs = _tokens(probe, 3, 5, 7), *_weight_and_bias(probe, 7)
    wanted = Student({"layer_norm": _normalized}).input_gradients(*inputs, 1e-6)
    expect_gradients_of_inputs(student.input_gradients(*inputs, 1e-6)[:3], wanted[:3], ("x", "weight", "bias"))


@layer_norm.check(needs=the_shape_stays, guard=True)
def nothing_that_goes_in_is_changed(student: Student, probe: Probe) -> None:
    """x, weight and bias are left as they were."""
    student(_tokens(probe, 3, 5, 7), *_weight_and_bias(probe, 7), 1e-6)
    expect_left_alone(student)


layer_norm.example("""
>>> token = torch.tensor([[1.0, 1.0, 5.0, 5.0]])
>>> layer_norm(token, torch.ones(4), torch.zeros(4), 0.0).tolist()
[[-1.0, -1.0, 1.0, 1.0]]
>>> layer_norm(token, torch.ones(4), torch.zeros(4), 12.0).tolist()
[[-0.5, -0.5, 0.5, 0.5]]
""")


read_mistakes(layer_norm, __name__)
declare(layer_norm, Edits(quick=True))
