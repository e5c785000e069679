"""`layer_norm`: LayerNorm by hand.

The oracle is torch's own ``F.layer_norm``. The known mistakes normalize with one of torch's own functions, or by a
plain formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_gradients_of_inputs, expect_left_alone
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
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


TOKEN = "04_block, What LayerNorm does to one token"
AXIS = "04_block, Which axis?"
EPS = "04_block, What eps is for"


def _over(x: Tensor, axes: tuple[int, ...], weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return (x - mean) * (variance + eps).rsqrt() * weight + bias


@layer_norm.misconception("You have seven deviations. By which number does your variance divide?", TOKEN)
def divided_by_one_less(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The variance divides by embed_dim - 1, which is what torch's var and std do unless told otherwise."""
    variance, mean = torch.var_mean(x, -1, keepdim=True)
    return torch.addcmul(bias, (x - mean) * (variance + eps).rsqrt(), weight)


@layer_norm.misconception("Is it the variance or the standard deviation that a token is divided by?", TOKEN)
def divided_by_the_variance(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The deviations are divided by the variance itself, so a token that varies much comes out too small."""
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) / (variance + eps), weight)


@layer_norm.misconception("What is the mean of the deviations from a mean, before anything is squared?", TOKEN)
def deviations_never_squared(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The variance is taken as the mean of the plain deviations, which is zero for any token."""
    return torch.addcmul(bias, (x - x.mean(-1, keepdim=True)) / eps**0.5, weight)


@layer_norm.misconception("Add 10 to all numbers of a token. Should the result change?", TOKEN)
def mean_left_in(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The mean is not subtracted; dividing by the root of the mean square alone is RMSNorm, another layer."""
    return F.rms_norm(x, x.shape[-1:], weight, eps) + bias


@layer_norm.misconception("Where is a token's mean when you have divided, and where should it be?", TOKEN)
def divided_but_not_centered(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The token is divided by its standard deviation, but its mean was not subtracted."""
    variance = torch.var_mean(x, -1, correction=0, keepdim=True)[0]
    return torch.addcmul(bias, x * (variance + eps).rsqrt(), weight)


@layer_norm.misconception("Should a token of more numbers have a larger variance?", TOKEN)
def squares_summed_not_averaged(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The squared deviations are summed, so the longer a token is, the smaller it comes out."""
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * (variance * x.shape[-1] + eps).rsqrt(), weight)


@layer_norm.misconception("What are weight and bias given to the function for?", TOKEN)
def weight_and_bias_never_used(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The token is normalized, and weight and bias are left out."""
    return F.layer_norm(x, x.shape[-1:], eps=eps)


@layer_norm.misconception("What becomes of a token of equal numbers when it has been multiplied by the weight?", TOKEN)
def bias_left_out(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The normalized token is multiplied by the weight, and the bias is never added."""
    return F.layer_norm(x, x.shape[-1:], weight, None, eps)


@layer_norm.misconception("Which of your four arguments does no line of yours read?", TOKEN)
def weight_left_out(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The bias is added to the normalized token, and the weight never multiplies it."""
    return F.layer_norm(x, x.shape[-1:], None, bias, eps)


@layer_norm.misconception("In y = weight · z + bias, is the bias multiplied by the weight?", TOKEN)
def bias_added_before_the_weight(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The bias is added first, so that the weight multiplies it too."""
    return F.layer_norm(x, x.shape[-1:], weight, weight * bias, eps)


@layer_norm.misconception("Under the root, or beside it: where does the formula have its eps?", EPS)
def eps_outside_the_root(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """eps is added to the standard deviation, after the root; for tokens of small variance that is another number."""
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) / (variance.sqrt() + eps), weight)


@layer_norm.misconception("Which two things does torch's std plus eps do that the formula does not?", EPS)
def std_plus_eps(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The token is divided by torch's std plus eps: a variance over one number less, and eps outside the root."""
    deviation, mean = torch.std_mean(x, -1, keepdim=True)
    return torch.addcmul(bias, (x - mean) / (deviation + eps), weight)


@layer_norm.misconception("What is 0 divided by 0, and which token makes you compute it?", EPS)
def eps_left_out(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """eps is never used, so a token of equal numbers is divided by zero."""
    return _over(x, (-1,), weight, bias, 0.0)


@layer_norm.misconception("Which numbers belong to one token: a row of x, or a column?", AXIS)
def statistics_over_the_tokens(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Mean and variance run over the tokens, one pair for each dimension, so the tokens of an image mix."""
    return _over(x, (-2,), weight, bias, eps)


@layer_norm.misconception("Which axis of x is the first one, and which one is a token's?", AXIS)
def statistics_over_the_first_axis(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Mean and variance run over the first axis, so the images of a batch mix."""
    return _over(x, (0,), weight, bias, eps)


@layer_norm.misconception("Would a token come out alike if its neighbors in the image were others?", AXIS)
def one_mean_for_a_whole_image(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """All tokens of an image share one mean and one variance, where each should have its own."""
    return _over(x, tuple(range(1, x.ndim)), weight, bias, eps)


@layer_norm.misconception("Would an image come out alike if it were alone in its batch?", AXIS)
def batch_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Each dimension is normalized over all images and tokens, which is BatchNorm."""
    return _over(x, tuple(range(x.ndim - 1)), weight, bias, eps)


@layer_norm.misconception("What does mean() average over when no axis is named?", AXIS)
def one_mean_for_everything(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """One mean and one variance are taken over the whole tensor, all images and tokens together."""
    return _over(x, tuple(range(x.ndim)), weight, bias, eps)


@layer_norm.misconception("Which number names the last axis, however many there are?", AXIS)
def axis_counted_from_the_front(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The axis is written as 2, which is the last one only for tensors of three axes."""
    return _over(x, (2,), weight, bias, eps)


@layer_norm.misconception("How many axes had x, and how many has what you return?", AXIS)
def tokens_left_in_one_long_row(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The leading axes are joined to reach each token, and never parted again."""
    return F.layer_norm(x.flatten(0, -2), x.shape[-1:], weight, bias, eps)


@layer_norm.misconception("Which dtype did x have, and which has what you return?", TOKEN)
def float32_whatever_the_input(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The token is turned into float32 on the way and stays so."""
    return F.layer_norm(x.float(), x.shape[-1:], weight.float(), bias.float(), eps)


@layer_norm.misconception("Is the tensor that you subtract the mean from yours, or the caller's?", TOKEN)
def x_changed_in_place(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """x itself is overwritten, so the caller's tokens are gone."""
    return x.copy_(F.layer_norm(x, x.shape[-1:], weight, bias, eps))


@layer_norm.misconception("How many digits are left when you subtract 1000000.0 from 1000001.0 in float32?", TOKEN)
def variance_by_the_mean_of_the_squares(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The variance is the mean of the squares less the square of the mean, which loses digits for a large mean."""
    mean, square = x.mean(-1, keepdim=True), x.square().mean(-1, keepdim=True)
    return torch.addcmul(bias, (x - mean) * (square - mean.square() + eps).rsqrt(), weight)


@layer_norm.misconception("Does the mean of a token change when one of its numbers does?", TOKEN)
def statistics_out_of_the_graph(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Mean and variance are taken as constants, by detach, no_grad or .item(), so part of x's gradient is missing."""
    variance, mean = torch.var_mean(x.detach(), -1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * (variance + eps).rsqrt(), weight)


@layer_norm.misconception("What does squeeze do to a batch of one?", AXIS)
def first_axis_squeezed(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """A squeeze takes the first axis away where it has the size 1, as a batch of one image has."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps).squeeze(0)


@layer_norm.misconception("Which of your four arguments does no line of yours read?", EPS)
def eps_of_its_own(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The eps is torch's own 1e-5, whatever eps the caller names."""
    return F.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


Axes = tuple[int, ...]


def _made(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    *,
    axes: Callable[[int], Axes] = lambda ndim: (-1,),
    correction: int = 0,
    variance: Callable[[Tensor, Tensor, Axes], Tensor] = lambda found, x, over: found,
    centered: bool = True,
    divisor: Callable[[Tensor, float], Tensor] = lambda variance, eps: (variance + eps).sqrt(),
    applied: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda z, weight, bias: torch.addcmul(bias, z, weight),
    postprocess: Callable[[Tensor, Tensor], Any] = lambda result, x: result,
) -> Any:
    over = axes(x.ndim)
    found, mean = torch.var_mean(x, over, correction=correction, keepdim=True)
    found = variance(found, x, over)
    return postprocess(applied((x - mean if centered else x) / divisor(found, eps), weight, bias), x)


def _summed(found: Tensor, x: Tensor, over: Axes) -> Tensor:
    return found * math.prod(x.shape[axis] for axis in over)


declare(
    layer_norm,
    Parts(
        _made,
        {
            divided_by_one_less: {"correction": 1},
            divided_by_the_variance: {"divisor": lambda variance, eps: variance + eps},
            deviations_never_squared: {"variance": lambda found, x, over: 0 * found},
            divided_but_not_centered: {"centered": False},
            mean_left_in: {
                "centered": False,
                "variance": lambda found, x, over: x.square().mean(over, keepdim=True),
            },
            squares_summed_not_averaged: {"variance": _summed},
            weight_and_bias_never_used: {"applied": lambda z, weight, bias: z},
            bias_left_out: {"applied": lambda z, weight, bias: z * weight},
            weight_left_out: {"applied": lambda z, weight, bias: z + bias},
            bias_added_before_the_weight: {"applied": lambda z, weight, bias: (z + bias) * weight},
            eps_outside_the_root: {"divisor": lambda variance, eps: variance.sqrt() + eps},
            std_plus_eps: {"divisor": lambda variance, eps: variance.sqrt() + eps, "correction": 1},
            eps_left_out: {"divisor": lambda variance, eps: variance.sqrt()},
            statistics_over_the_tokens: {"axes": lambda ndim: (-2,)},
            statistics_over_the_first_axis: {"axes": lambda ndim: (0,)},
            one_mean_for_a_whole_image: {"axes": lambda ndim: tuple(range(1, ndim))},
            batch_norm: {"axes": lambda ndim: tuple(range(ndim - 1))},
            one_mean_for_everything: {"axes": lambda ndim: tuple(range(ndim))},
            axis_counted_from_the_front: {"axes": lambda ndim: (2,)},
            tokens_left_in_one_long_row: {"postprocess": lambda result, x: result.flatten(0, -2)},
            float32_whatever_the_input: {"postprocess": lambda result, x: result.float()},
            x_changed_in_place: {"postprocess": lambda result, x: x.copy_(result)},
        },
        quick=True,
    ),
)
