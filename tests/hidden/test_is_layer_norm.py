"""Hidden checks of is_layer_norm: the student's test, asked about right and wrong layer normalization."""

import pytest

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.impostors import LineUp
from vit_course.staff.hidden_layer_norm_cases import RIGHT, WRONG


def unnamed(norm):
    return lambda x, weight, bias, eps: norm(x, weight, bias, eps)


LINE_UP = LineUp("a norm", "your own layer_norm", RIGHT, WRONG, unnamed)


@pytest.mark.exercise("is_layer_norm", points=0.25)
def test_it_catches_wrong_shapes(student, probe):
    """It catches a result of another shape, and lets right norms pass."""
    look = "Which shape do you expect, and do you look at it before you compare?"
    LINE_UP.expect_distinguished(student, probe, "shape", look)


@pytest.mark.exercise("is_layer_norm", points=0.75)
def test_it_catches_tokens_that_get_mixed(student, probe):
    """It catches a mean and a variance in which other tokens of the image take part, and lets right norms pass."""
    look = "What becomes of a token when it is alone, without its neighbors?"
    LINE_UP.expect_distinguished(student, probe, "tokens", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_images_that_get_mixed(student, probe):
    """It catches a mean and a variance in which other images take part, and lets right norms pass."""
    look = "What becomes of an image when the other images of its batch are gone?"
    LINE_UP.expect_distinguished(student, probe, "images", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_axes_counted_from_the_front(student, probe):
    """It catches axes that are counted from the front, and lets right norms pass."""
    look = "Which numbers of axes in front of the last one have you tried?"
    LINE_UP.expect_distinguished(student, probe, "axes", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_another_divisor(student, probe):
    """It catches a variance that divides by another number than embed_dim, and lets right norms pass."""
    look = "Which of your sizes agree, and how much does one less change when embed_dim is large?"
    LINE_UP.expect_distinguished(student, probe, "divisor", look)


@pytest.mark.exercise("is_layer_norm", points=1)
def test_it_catches_another_eps(student, probe):
    """It catches an eps that is ignored, or not added to the variance under the root, and lets right norms pass."""
    look = "How large is your eps, next to the variance of your tokens?"
    LINE_UP.expect_distinguished(student, probe, "eps", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_a_mean_left_in(student, probe):
    """It catches a mean that is not subtracted, from x or in the variance, and lets right norms pass."""
    look = "What are the means of your tokens? What happens when you add 10 to them?"
    LINE_UP.expect_distinguished(student, probe, "mean", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_look_alikes(student, probe):
    """It catches other numbers in place of mean and standard deviation, and lets right norms pass."""
    look = "Which other numbers are the same as the mean, or the standard deviation, of your token by accident?"
    LINE_UP.expect_distinguished(student, probe, "look-alikes", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_another_use_of_weight_and_bias(student, probe):
    """It catches a missing weight or bias, and a bias before the weight, and lets right norms pass."""
    look = "Which weight and which bias change nothing, and for which does their order make no difference?"
    LINE_UP.expect_distinguished(student, probe, "parameters", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_another_weight_or_bias(student, probe):
    """It catches a weight without its sign, one for all dimensions, or another one's, and lets right norms pass."""
    look = "Are all your weights positive, or all the same? Are two numbers of your bias?"
    LINE_UP.expect_distinguished(student, probe, "altered parameters", look)


@pytest.mark.exercise("is_layer_norm", points=0.25)
def test_it_catches_an_x_that_is_changed(student, probe):
    """It catches a norm that writes into x, and lets right norms pass."""
    look = "What does x hold after the call?"
    LINE_UP.expect_distinguished(student, probe, "inputs", look)


@pytest.mark.exercise("is_layer_norm", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and right norms pass."""
    look = "Which shape do you expect, and do you look at it before you compare?"
    LINE_UP.expect_distinguished(student, probe, "shape", look)
    expect_example(student)
