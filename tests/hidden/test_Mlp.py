"""Hidden checks of ``Mlp``."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_gradients_of_inputs
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.repeatability import expect_one_kind, kinds_of_results

AXES = {1: ("dimension",), 2: ("token", "dimension"), 3: ("image", "token", "dimension")}
# of outputs of order 1: the tanh form is off by up to 2e-3, the nearest other gate by more than 1e-2
ROUGHLY = 5e-3
# in float64: a constant that was rounded to float32 is off by 1e-8, the tanh form by 1e-4
EXACTLY = 1e-6


def _pair(student, reference, probe):
    """The student's MLP and the right one with the same random weights, and their embed_dim."""
    embed_dim, hidden_dim = probe.sizes(2, low=5, high=20)
    mlp = student.build(embed_dim, hidden_dim)
    twin = Student({"reference": reference.Mlp}).build(embed_dim, hidden_dim)
    weights = probe.weights(twin.parameter_shapes())
    for each in (mlp, twin):
        each.load(weights)
        each.eval()
    return mlp, twin, embed_dim


def _expect_near(actual, expected, tolerance, name, look):
    """Fail in words when a number is off by more than ``tolerance``."""
    tensor = expect_tensor(actual, expected.shape, name)
    off = (tensor.detach().double() - expected.detach().double()).abs().max()
    if not off <= tolerance or tensor.dtype != expected.dtype:
        expect_equal(tensor, expected, name, AXES.get(expected.ndim, ()), look=look)


@pytest.mark.exercise("Mlp", points=1)
def test_a_gelu_stands_between_two_linears(student, reference, probe):
    """fc1, a GELU, fc2, and nothing after it: of any widths, the hidden one larger or smaller than the outer."""
    batch, tokens = probe.sizes(2)
    look = "Follow one number from fc1 to the result: what is done to it on the way, and what if it is negative?"
    for _ in range(2):
        mlp, twin, embed_dim = _pair(student, reference, probe)
        x = probe.normal(batch, tokens, embed_dim, scale=2.0)
        _expect_near(mlp(x), twin(x), ROUGHLY, "the MLP's output", look)


@pytest.mark.exercise("Mlp", points=0.5)
def test_the_gelu_is_the_exact_one(student, reference, probe, device):
    """The gate is the exact GELU; in float64, to which the MLP is cast, an approximation shows."""
    batch, tokens = probe.sizes(2)
    mlp, twin, embed_dim = _pair(student, reference, probe)
    for each in (mlp, twin):
        each.to(device)
        each.double()
    x = probe.normal(batch, tokens, embed_dim, scale=2.0, dtype=torch.float64).to(device)
    look = "If the numbers are nearly right, what is left is the gate. Which forms of GELU does torch know?"
    _expect_near(mlp(x), twin(x), EXACTLY, "the MLP's output in float64", look)


@pytest.mark.exercise("Mlp", points=0.25)
def test_every_token_is_treated_alone(student, reference, probe):
    """A token alone, a row, a batch of one and a grid, in any memory layout, give what each of their tokens gives."""
    mlp, twin, embed_dim = _pair(student, reference, probe)
    rows, columns, tokens = probe.sizes(3, high=5)
    look = "Does your forward ask how many axes stand in front of the last one?"
    for front in ((), (tokens,), (1, tokens), (2, rows, columns)):
        x = probe.normal(*front, embed_dim)
        _expect_near(mlp(x), twin(x), ROUGHLY, f"the output for a tensor of {x.ndim} axes", look)
    x = probe.normal(tokens, embed_dim, rows).transpose(1, 2)
    _expect_near(mlp(x), twin(x), ROUGHLY, "the output for tokens out of order in memory", look)


@pytest.mark.exercise("Mlp", points=0.5)
def test_both_linears_learn(student, reference, probe):
    """Weights and biases of both Linears get the gradient that is theirs."""
    batch, tokens = probe.sizes(2)
    mlp, twin, embed_dim = _pair(student, reference, probe)
    x = probe.normal(batch, tokens, embed_dim)
    output, right = mlp(x), twin(x)
    found = mlp.gradients(expect_tensor(output, right.shape, "the MLP's output"))
    for name, wanted in twin.gradients(right).items():
        if found[name] is None:
            raise Failure(f"no gradient reaches {name}", "one for every parameter", "Which step cuts it off?")
        scale = max(1.0, float(wanted.abs().max()))
        look = "Does all that the layer computes end up in the result, once?"
        _expect_near(found[name], wanted, 2 * ROUGHLY * scale, f"the gradient of {name}", look)


@pytest.mark.exercise("Mlp", points=0.25)
def test_training_and_evaluation_agree(student, reference, probe):
    """The same tokens give the same result twice, while training and afterward: nobody asked for a dropout."""
    batch, tokens = probe.sizes(2, low=4)
    mlp, twin, embed_dim = _pair(student, reference, probe)
    x = probe.normal(batch, tokens, embed_dim)
    look = "Which layer of yours draws random numbers, and who asked for it?"
    _expect_near(mlp(x), twin(x), ROUGHLY, "the MLP's output after .eval()", look)
    mlp.train()
    for _ in range(2):
        _expect_near(mlp(x), twin(x), ROUGHLY, "the MLP's output while training", look)
    expect_one_kind(kinds_of_results(student, lambda: mlp(x), x.shape))


@pytest.mark.exercise("Mlp", points=0.25)
def test_the_tokens_get_their_gradient(student, reference, probe):
    """The tokens that go in get the gradient that is theirs."""
    batch, tokens = probe.sizes(2)
    mlp, twin, embed_dim = _pair(student, reference, probe)
    x = probe.normal(batch, tokens, embed_dim)
    _expect_near(mlp(x), twin(x), ROUGHLY, "the MLP's output", "The numbers come first: what does the first check say?")
    (found,), (wanted,) = mlp.input_gradients(x), twin.input_gradients(x)
    if found is None or not (found - wanted).abs().max() <= 2 * ROUGHLY * max(1.0, float(wanted.abs().max())):
        expect_gradients_of_inputs([found], [wanted], ["the tokens"])


@pytest.mark.exercise("Mlp", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    batch, tokens = probe.sizes(2)
    mlp, twin, embed_dim = _pair(student, reference, probe)
    x = probe.normal(batch, tokens, embed_dim)
    _expect_near(mlp(x), twin(x), ROUGHLY, "the MLP's output", "The numbers come first: what does the first check say?")
    expect_example(student)
