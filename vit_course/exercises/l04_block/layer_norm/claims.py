"""`layer_norm`: LayerNorm by hand.

The oracle is torch's own ``F.layer_norm``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import Describe, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_gradients_of_inputs, expect_inputs_unchanged
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l04_block import LESSON

TOKEN_AXES = ("image", "token", "dimension")
AXES = {1: TOKEN_AXES[2:], 2: TOKEN_AXES[1:], 3: TOKEN_AXES, 4: ("image", "row", "column", "dimension")}
# a thousandth: the nearest misconception, dividing by embed_dim - 1, is off by 1/7
MEAN_AND_VARIANCE = 1e-3
# an eps below the rounding of float64 for tokens of variance 1: where it is added is the business of its own check
TINY = 1e-16
# shares of the largest number. In float32 dividing by one less is off by 2e-2
ROUNDING = 1e-4
# float32 gives a mean of 1000 to 1e-4, and the difference of mean square and squared mean to 1e-1
LARGE_MEAN = 1e-2
# float16 keeps three digits through five steps; a wrong formula is off by more than the token's spread
HALF = 5e-2
CPU = torch.device("cpu")
FOLLOW = "Follow one token of three numbers by hand. Whose mean, whose variance, and by what does that divide?"

layer_norm = Exercise("layer_norm", LESSON)


def _draw_tokens(probe: Probe, *shape: int, spread: float = 1.0) -> Tensor:
    """Tokens (..., embed_dim) of which each has a mean and a spread of its own, beside which no usual eps counts."""
    each = (*shape[:-1], 1)
    spreads = spread * (2.0 + 6.0 * probe.uniform(*each))
    return spreads * (probe.normal(*each, scale=2.0) + probe.normal(*shape))


def _make_neutral_weight_and_bias(embed_dim: int) -> tuple[Tensor, Tensor]:
    """A weight and a bias that change nothing."""
    return torch.ones(embed_dim), torch.zeros(embed_dim)


def _draw_weight_and_bias(probe: Probe, embed_dim: int) -> tuple[Tensor, Tensor]:
    """Of either sign, and far from 1 and 0."""
    return probe.normal(embed_dim, scale=2.0), probe.normal(embed_dim, scale=2.0)


def draw_inputs(probe: Probe, eps: float = TINY, spread: float = 1.0) -> tuple[Tensor, Tensor, Tensor, float]:
    """x (batch, tokens, embed_dim), weight, bias and eps."""
    batch, tokens, embed_dim = probe.sizes(3, low=5, shown=(3, 5, 7))
    return _draw_tokens(probe, batch, tokens, embed_dim, spread=spread), *_draw_weight_and_bias(probe, embed_dim), eps


def _normalize_by_torch(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def _normalize_in_float64(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Computed in float64, rounded to the dtype of x."""
    return _normalize_by_torch(x.double(), weight.double(), bias.double(), eps).to(x.dtype)


def _is_near(found: object, wanted: Tensor, share: float) -> bool:
    """Say whether a result of the right kind is off by no more than ``share`` of the largest number."""
    if not isinstance(found, Tensor) or (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return False
    return float((found - wanted).detach().float().abs().max()) <= share * float(wanted.float().abs().max())


def expect_right_result(
    student: Student,
    inputs: tuple[Tensor, Tensor, Tensor, float],
    name: str = "layer_norm",
    look: str = FOLLOW,
    describe: Describe | None = None,
) -> None:
    """Fail unless layer_norm of (x, weight, bias, eps) is right."""
    found, wanted = student(*inputs), _normalize_by_torch(*inputs)
    if not _is_near(found, wanted, ROUNDING if wanted.dtype == torch.float32 else 0):
        expect_equal(found, wanted, name, AXES.get(wanted.ndim, ()), describe, look)


@layer_norm.check(guard=True)
def the_shape_stays(student: Student, probe: Probe) -> None:
    """The result has the shape of x."""
    inputs = draw_inputs(probe)
    expect_tensor(student(*inputs), inputs[0].shape, "layer_norm")


@layer_norm.check(needs=the_shape_stays, points=1)
def every_token_gets_mean_zero_and_variance_one(student: Student, probe: Probe) -> None:
    """With a weight of ones and a bias of zeros, each token has mean 0 and variance 1 afterward."""
    few, many = probe.sizes(3, low=5, high=9, shown=(3, 5, 7)), probe.sizes(3, low=10, high=24, shown=(2, 4, 12))
    for sizes in (few, many):
        x = _draw_tokens(probe, *sizes)
        result = expect_tensor(
            student(x, *_make_neutral_weight_and_bias(sizes[2]), TINY), x.shape, "layer_norm"
        ).detach()
        mean, variance = result.double().mean(-1), result.double().var(-1, correction=0)
        off = ~((mean.abs() < MEAN_AND_VARIANCE) & ((variance - 1).abs() < MEAN_AND_VARIANCE))
        if off.any():
            image, token = (int(index) for index in off.nonzero()[0])
            found = " and ".join(
                f"{name} {round(float(each[image, token]), 3) + 0.0:g}"
                for name, each in (("mean", mean), ("variance", variance))
            )
            raise Failure(
                f"token {token} of image {image}, {sizes[2]} numbers, comes out with {found}",
                "mean 0 and variance 1, the variance being the mean of the squared deviations",
                "Whose mean do you subtract, and what do you divide by? Do a token of two numbers by hand.",
            )


@layer_norm.check(needs=every_token_gets_mean_zero_and_variance_one, points=1.1)
def weight_multiplies_then_bias_is_added(student: Student, probe: Probe) -> None:
    """Each dimension is multiplied by its own weight, then its own bias is added."""
    look = "What becomes of a token of mean 0 and variance 1 when the weight is 2 and the bias is 3?"
    few, many = probe.sizes(3, low=5, high=9, shown=(3, 5, 7)), probe.sizes(3, low=10, high=24, shown=(2, 4, 12))
    for sizes in (few, many, few):
        expect_right_result(
            student, (_draw_tokens(probe, *sizes), *_draw_weight_and_bias(probe, sizes[2]), TINY), look=look
        )


@layer_norm.check(needs=weight_multiplies_then_bias_is_added, points=0.6)
def only_the_last_axis_counts(student: Student, probe: Probe) -> None:
    """Mean and variance run over the last axis, also when x has one axis, two or four, or an axis of size 1."""
    embed_dim, batch, rows, columns = probe.sizes(4, low=5, shown=(7, 2, 3, 5))
    look = "How do you name the last axis when you do not know how many there are?"
    for front in ((), (columns,), (1, columns), (1, 1), (embed_dim, embed_dim), (batch, rows, columns)):
        x = _draw_tokens(probe, *front, embed_dim)
        name = f"layer_norm of a tensor of shape {tuple(x.shape)}"
        expect_right_result(student, (x, *_draw_weight_and_bias(probe, embed_dim), TINY), name, look)


@layer_norm.check(needs=every_token_gets_mean_zero_and_variance_one, points=0.8)
def eps_is_added_to_the_variance(student: Student, probe: Probe) -> None:
    """eps is added to the variance, before the root is taken; tokens of small variance tell."""
    batch, tokens, embed_dim = probe.sizes(3, low=5, shown=(3, 5, 7))
    for eps in (probe.choice((0.05, 0.1, 0.2), shown=0.1), probe.choice((0.3, 0.4, 0.5), shown=0.4)):
        x = _draw_tokens(probe, batch, tokens, embed_dim, spread=0.03)

        def describe_deviation_of_worst_token(
            actual: Tensor, expected: Tensor, x: Tensor = x, wanted: str = f"for an eps of {eps:g}"
        ) -> tuple[str, str] | None:
            token = int((actual - expected).abs().amax(-1)[0].argmax())
            before, here, there = (float(each[0, token].double().std(correction=0)) for each in (x, actual, expected))
            if abs(here - there) < 0.01 * there:  # what is wrong is not the size of the token
                return None
            seen = f"token {token} of image 0, of variance {before**2:.3g}, comes out with a standard deviation of"
            return f"{seen} {here:.3g}", f"{there:.3g} {wanted}"

        look = f"A token of variance 0.3 and an eps of {eps:g}: what do you divide by?"
        expect_right_result(
            student,
            (x, *_make_neutral_weight_and_bias(embed_dim), eps),
            look=look,
            describe=describe_deviation_of_worst_token,
        )


@layer_norm.check(needs=weight_multiplies_then_bias_is_added, points=0.2)
def a_token_of_equal_numbers_becomes_the_bias(student: Student, probe: Probe) -> None:
    """A token whose numbers are all equal becomes the bias, and no NaN; so does one of a single number."""
    batch, tokens = probe.sizes(2, shown=(2, 3))
    # of one number the variance is 0, up to the rounding of a square less a square, above which eps lies
    for embed_dim, eps in ((probe.choice((4, 8, 16), shown=8), 1e-5), (1, 1e-2)):
        x = _draw_tokens(probe, batch, tokens, embed_dim)
        x[:, 1] = (probe.integers(batch, 1, high=9) - 4) / 4  # so that sum and mean are exact, however one adds
        name, look = (
            f"layer_norm with an embed_dim of {embed_dim}",
            "The variance is 0. What stands in the denominator?",
        )
        expect_right_result(student, (x, *_draw_weight_and_bias(probe, embed_dim), eps), name, look)


@layer_norm.check(needs=only_the_last_axis_counts, guard=True, points=0.2)
def float64_and_any_memory_layout_are_fine(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """float64 keeps its dtype and its precision, half stays half, and a non-contiguous tensor is read right."""
    batch, tokens, embed_dim = probe.sizes(3, low=12, high=24, shown=(3, 5, 7))
    turned = _draw_tokens(probe, tokens, batch, embed_dim).double().transpose(0, 1)
    x, weight, bias = (each.to(device).double() for each in (turned, *_draw_weight_and_bias(probe, embed_dim)))
    look = "Which line makes a new tensor, of which dtype, and on which device?"
    expect_right_result(student, (x, weight, bias, TINY), "layer_norm in float64", look)
    half = probe.normal(batch, tokens, embed_dim).to(device, torch.float16), weight.half(), bias.half(), 1e-3
    found, wanted = student(*half), _normalize_in_float64(*half)
    if not _is_near(found, wanted, HALF):
        expect_equal(found, wanted, "layer_norm in half precision", TOKEN_AXES, look=look)


@layer_norm.check(needs=weight_multiplies_then_bias_is_added, points=0.3, first=weight_multiplies_then_bias_is_added)
def a_large_mean_does_no_harm(student: Student, probe: Probe) -> None:
    """Tokens whose numbers lie around 1000 or -1000 are normalized as exactly as others."""
    batch, tokens, embed_dim = probe.sizes(3, low=5, high=12, shown=(3, 5, 7))
    for mean in (1000.0, -1000.0):
        inputs = mean + probe.normal(batch, tokens, embed_dim), *_draw_weight_and_bias(probe, embed_dim), 1e-6
        found, wanted = student(*inputs), _normalize_in_float64(*inputs)
        is_right = _is_near(found, wanted, LARGE_MEAN)
        # what a wrong formula makes of such numbers is rounding
        student.note_instead(("right for a large mean", is_right))
        if not is_right:
            look = "Which of your steps subtracts two large numbers that are nearly equal?"
            expect_equal(found, wanted, f"layer_norm of tokens with a mean of {mean:g}", TOKEN_AXES, look=look)


@layer_norm.check(needs=weight_multiplies_then_bias_is_added, points=0.35, first=weight_multiplies_then_bias_is_added)
def the_gradient_takes_every_way(student: Student, probe: Probe) -> None:
    """x, weight and bias get their gradients, that of x through the mean and the variance too."""
    inputs = draw_inputs(probe, 1e-6, spread=4.0)  # far above eps, which is the business of its own check
    wanted = Student({"layer_norm": _normalize_by_torch}).input_gradients(*inputs)
    expect_gradients_of_inputs(student.input_gradients(*inputs)[:3], wanted[:3], ("x", "weight", "bias"))


@layer_norm.check(needs=the_shape_stays, guard=True)
def nothing_that_goes_in_is_changed(student: Student, probe: Probe) -> None:
    """x, weight and bias are left as they were."""
    student(*draw_inputs(probe))
    expect_inputs_unchanged(student)


layer_norm.example(
    """
>>> token = torch.tensor([[1.0, 1.0, 5.0, 5.0]])
>>> layer_norm(token, torch.ones(4), torch.zeros(4), 0.0).tolist()
[[-1.0, -1.0, 1.0, 1.0]]
>>> layer_norm(token, torch.ones(4), torch.zeros(4), 12.0).tolist()
[[-0.5, -0.5, 0.5, 0.5]]
""",
    points=0.25,
    first=weight_multiplies_then_bias_is_added,
)


read_mistakes(layer_norm, __name__)
declare_pairs(layer_norm, Edits(quick=True))
