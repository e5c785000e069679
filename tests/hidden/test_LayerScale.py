"""Hidden checks of ``LayerScale``."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_gradients_of_inputs, expect_left_alone, gradient_of
from vit_course.exercises.l04_block.mlp.claims import expect_gradients
from vit_course.exercises.l10_modern.layer_scale.claims import expect_sizes, expect_start, loaded

LOOK = "Follow one number of one token: with which number of gamma does it meet, and by which operation?"


def _expect_right(student, probe, embed_dim, *front):
    module, weights = loaded(student, probe, embed_dim)
    x = probe.normal(*front, embed_dim)
    expect_equal(module(x), x * weights["gamma"], f"the output for a tensor of {x.ndim} axes", look=LOOK)
    return module, weights, x


@pytest.mark.exercise("LayerScale", points=0.5)
def test_all_of_gamma_starts_at_initial(student, probe):
    """All numbers of gamma start at initial, and the branch is multiplied by them."""
    embed_dim, other = probe.sizes(2, low=3)
    _expect_right(student, probe, embed_dim, 2, 3)
    for size in (embed_dim, other):
        expect_start(student, size, (1 + int(probe.integers(1, high=400))) / 1000)


@pytest.mark.exercise("LayerScale", points=0.75)
def test_each_dimension_has_its_own_number(student, probe):
    """Dimension i of every token is multiplied by number i of gamma, for tensors of any number of axes."""
    embed_dim, rows, columns = probe.sizes(3, low=3)
    for front in ((2, rows), (), (rows,), (1, rows), (2, rows, columns), (embed_dim,)):
        _expect_right(student, probe, embed_dim, *front)


@pytest.mark.exercise("LayerScale", points=0.5)
def test_gamma_learns(student, probe):
    """Gamma and the branch get the right gradients."""
    embed_dim, tokens = probe.sizes(2, low=3)
    module, weights, x = _expect_right(student, probe, embed_dim, 2, tokens)
    expect_gradients(module, expect_sizes(module(x), x))
    wanted = gradient_of(lambda branch: branch * weights["gamma"], x)
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the branch"])


@pytest.mark.exercise("LayerScale", points=0.15)
def test_mode_dtype_and_layout_do_not_matter(student, probe, device):
    """After eval, in float64 and for tokens out of order in memory the output is right; its input is not changed."""
    embed_dim, tokens = probe.sizes(2, low=3)
    module, weights, x = _expect_right(student, probe, embed_dim, 2, tokens)
    expect_left_alone(student)
    module.eval()
    expect_equal(module(x), x * weights["gamma"], "the output after eval()", look=LOOK)
    module.to(device)
    module.double()
    x = probe.normal(tokens, embed_dim, 2, dtype=torch.float64).permute(2, 0, 1).to(device)
    expect_equal(module(x), x * weights["gamma"].double().to(device), "the output in float64", look=LOOK)


@pytest.mark.exercise("LayerScale", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect_right(student, probe, probe.sizes(1, low=3)[0], 2, 3)
    expect_example(student)
