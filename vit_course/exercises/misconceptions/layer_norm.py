"""Known mistakes of lesson 04, LayerNorm. Each normalises with one of torch's own functions, or by a plain formula."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.exercises.checks.layer_norm import layer_norm

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
def divided_but_not_centred(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
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
    """The token is normalised, and weight and bias are left out."""
    return F.layer_norm(x, x.shape[-1:], eps=eps)


@layer_norm.misconception("What becomes of a token of equal numbers when it has been multiplied by the weight?", TOKEN)
def bias_left_out(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The normalised token is multiplied by the weight, and the bias is never added."""
    return F.layer_norm(x, x.shape[-1:], weight, None, eps)


@layer_norm.misconception("Which of your four arguments does no line of yours read?", TOKEN)
def weight_left_out(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The bias is added to the normalised token, and the weight never multiplies it."""
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


@layer_norm.misconception("Would a token come out alike if its neighbours in the image were others?", AXIS)
def one_mean_for_a_whole_image(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """All tokens of an image share one mean and one variance, where each should have its own."""
    return _over(x, tuple(range(1, x.ndim)), weight, bias, eps)


@layer_norm.misconception("Would an image come out alike if it were alone in its batch?", AXIS)
def batch_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Each dimension is normalised over all images and tokens, which is BatchNorm."""
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
    """The variance is the mean of the squares less the square of the mean: true on paper, but a large mean eats it."""
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
