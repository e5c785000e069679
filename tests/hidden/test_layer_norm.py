"""Hidden checks of ``layer_norm``."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, shape
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_gradients_of_inputs, expect_left_alone, expect_result_of_its_own
from exercise_kit.engine.student import Student

AXES = {1: ("dimension",), 2: ("token", "dimension"), 3: ("image", "token", "dimension")}
# below the rounding of float64 for tokens of variance 1, so that where it is added is the business of its own check
TINY = 1e-16
# of the largest number, in float32; dividing by one less is off by 2e-2
ROUNDING = 1e-4
# of the largest number, of tokens with a mean of 1000 and a variance of 1: float32 gives the mean to 1e-4, and the
# difference of mean square and squared mean to 1e-1
LARGE_MEAN = 1e-2
# of float16, which keeps three digits through five steps; a wrong formula is off by more than the token's spread
HALF = 5e-2


def _tokens(probe, *sizes, spread=1.0):
    """Tokens (..., embed_dim), each with a mean and a spread of its own."""
    each = (*sizes[:-1], 1)
    spreads = spread * probe.uniform(*each, low=0.5, high=4.0)
    return spreads * (probe.normal(*each) + probe.normal(*sizes))


def _weight_and_bias(probe, embed_dim):
    """Of either sign, and far from 1 and 0."""
    return probe.normal(embed_dim, scale=2.0), probe.normal(embed_dim, scale=2.0)


def _expect_right(student, reference, inputs, described, look):
    x = inputs[0]
    found, wanted = student(*inputs), reference.layer_norm(*inputs)
    if not _near(found, wanted, ROUNDING if x.dtype == torch.float32 else 0):
        expect_equal(
            found, wanted, f"{student.name} of {described} of shape {shape(x)}", AXES.get(x.ndim, ()), look=look
        )


def _near(found, wanted, share):
    """Whether a result of the right kind is off by no more than ``share`` of the largest number."""
    if not isinstance(found, torch.Tensor) or (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return False
    return float((found - wanted).detach().float().abs().max()) <= share * float(wanted.float().abs().max())


@pytest.mark.exercise("layer_norm", points=1)
def test_every_token_is_normalized(student, reference, probe):
    """Every token is centered on its own mean and divided by the root of its own variance, the mean of the squares."""
    look = "Follow one token of three numbers by hand. Whose mean, whose variance, and by what does that divide?"
    for low, high in ((5, 9), (10, 24)):
        batch, tokens, embed_dim = probe.sizes(3, low, high)
        x = _tokens(probe, batch, tokens, embed_dim)
        _expect_right(student, reference, (x, torch.ones(embed_dim), torch.zeros(embed_dim), TINY), "tokens", look)


@pytest.mark.exercise("layer_norm", points=0.75)
def test_every_dimension_has_its_weight_and_bias(student, reference, probe):
    """The normalized number is multiplied by its dimension's weight, which may be negative; then the bias is added."""
    batch, tokens, embed_dim = probe.sizes(3, low=5)
    x = _tokens(probe, batch, tokens, embed_dim)
    look = "What becomes of a normalized 1 when its weight is -2 and its bias 3?"
    _expect_right(student, reference, (x, *_weight_and_bias(probe, embed_dim), TINY), "tokens", look)


@pytest.mark.exercise("layer_norm", points=0.75)
def test_however_many_axes_stand_in_front(student, reference, probe):
    """A token lies along the last axis: one token alone, a row, a batch of one, a grid, and where all sizes agree."""
    embed_dim, batch, rows, columns = probe.sizes(4, low=5)
    look = "How do you name the last axis when you do not know how many there are?"
    for front in ((), (rows,), (1, 1), (embed_dim, embed_dim), (batch, rows, columns)):
        inputs = _tokens(probe, *front, embed_dim), *_weight_and_bias(probe, embed_dim), TINY
        _expect_right(student, reference, inputs, "a tensor", look)


@pytest.mark.exercise("layer_norm", points=0.75)
def test_eps_is_added_to_the_variance(student, reference, probe):
    """eps, whatever it is, is added to the variance before the root is taken; quiet tokens tell."""
    batch, tokens, embed_dim = probe.sizes(3, low=5)
    for _ in range(2):
        eps = float(probe.uniform(1, low=0.05, high=0.5))
        x = _tokens(probe, batch, tokens, embed_dim, spread=0.1)
        look = "A token of variance 0.3 and an eps of 0.1: by what do you divide?"
        inputs = x, *_weight_and_bias(probe, embed_dim), eps
        _expect_right(student, reference, inputs, f"quiet tokens, eps {eps:.3f},", look)


@pytest.mark.exercise("layer_norm", points=0.25)
def test_a_flat_token_becomes_the_bias(student, reference, probe):
    """A token of equal numbers becomes the bias, and no NaN, in the midst of others; so does one of a single number."""
    batch, tokens = probe.sizes(2)
    embed_dim = probe.choice((4, 8, 16))
    x = _tokens(probe, batch, tokens, embed_dim)
    x[:, 1] = (probe.integers(batch, 1, high=9) - 4) / 4  # so that sum and mean are exact, however one adds
    look = "The variance is 0. What stands in the denominator?"
    _expect_right(student, reference, (x, *_weight_and_bias(probe, embed_dim), 1e-5), "tokens, one of them flat,", look)
    single = _tokens(probe, batch, tokens, 1)
    # an eps far above the rounding of a square less a square
    _expect_right(student, reference, (single, *_weight_and_bias(probe, 1), 1e-2), "tokens of a single number", look)


@pytest.mark.exercise("layer_norm", points=0.375)
def test_a_large_mean_does_no_harm(student, reference, probe):
    """Tokens whose numbers lie around 1000 or around -1000 are normalized as exactly as others."""
    batch, tokens, embed_dim = probe.sizes(3, low=5, high=12)
    inputs = _tokens(probe, batch, tokens, embed_dim), *_weight_and_bias(probe, embed_dim), 1e-6
    _expect_right(student, reference, inputs, "tokens", "The numbers come first: what does the first check say?")
    look = "Which of your steps subtracts two large numbers that are nearly equal?"
    for mean in (1000.0, -1000.0):
        x, (weight, bias) = mean + probe.normal(batch, tokens, embed_dim), _weight_and_bias(probe, embed_dim)
        wanted = reference.layer_norm(x.double(), weight.double(), bias.double(), 1e-6).float()
        found = student(x, weight, bias, 1e-6)
        is_right = _near(found, wanted, LARGE_MEAN)
        student.record[-1:] = [("right for a large mean", is_right)]  # what a wrong formula makes of them is rounding
        if not is_right:
            name = f"{student.name} of tokens with a mean of {mean:g}"
            expect_equal(found, wanted, name, AXES[3], look=look)


@pytest.mark.exercise("layer_norm", points=0.375)
def test_the_gradient_takes_every_way(student, reference, probe):
    """x, weight and bias get their gradients, that of x through the mean and the variance too."""
    batch, tokens, embed_dim = probe.sizes(3, low=5)
    inputs = _tokens(probe, batch, tokens, embed_dim), *_weight_and_bias(probe, embed_dim), 1e-6
    _expect_right(student, reference, inputs, "tokens", "The numbers come first: what does the first check say?")
    wanted = Student({student.name: reference.layer_norm}).input_gradients(*inputs)
    expect_gradients_of_inputs(student.input_gradients(*inputs)[:3], wanted[:3], ("x", "weight", "bias"))


@pytest.mark.exercise("layer_norm", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    batch, tokens, embed_dim = probe.sizes(3, low=5)
    inputs = _tokens(probe, batch, tokens, embed_dim), *_weight_and_bias(probe, embed_dim), TINY
    _expect_right(student, reference, inputs, "tokens", "The numbers come first: what does the first check say?")
    expect_example(student)


@pytest.mark.exercise("layer_norm", points=0.25)
def test_dtype_and_memory_layout_are_followed(student, reference, probe, device):
    """float64 keeps its precision, half stays half, and a tensor whose numbers lie out of order is read right."""
    batch, tokens, embed_dim = probe.sizes(3, low=12, high=24)
    turned = _tokens(probe, batch, tokens, embed_dim).double().transpose(0, 1)
    inputs = tuple(each.to(device).double() for each in (turned, *_weight_and_bias(probe, embed_dim)))
    look = "Which line makes a new tensor, of which dtype, and on which device?"
    _expect_right(student, reference, (*inputs, TINY), "a float64 tensor, its first two axes swapped,", look)
    x, weight, bias = (each.to(device, torch.float16) for each in (probe.normal(batch, tokens, embed_dim), *inputs[1:]))
    found, wanted = student(x, weight, bias, 1e-3), reference.layer_norm(x, weight, bias, 1e-3)
    if not _near(found, wanted, HALF):
        expect_equal(found, wanted, f"{student.name} of a tensor in half precision", AXES[3], look=look)


@pytest.mark.exercise("layer_norm", points=0.25)
def test_what_goes_in_stays_as_it_is(student, reference, probe):
    """x, weight and bias are the same after the call as before, and so is a result after the next call."""
    batch, tokens, embed_dim = probe.sizes(3, low=5)
    x = _tokens(probe, batch, tokens, embed_dim)
    look = "The numbers come first: what does the first check say?"
    inputs = x, *_weight_and_bias(probe, embed_dim), TINY
    _expect_right(student, reference, inputs, "tokens", look)
    expect_left_alone(student)
    expect_result_of_its_own(student, inputs, (x + 1, *inputs[1:]))
