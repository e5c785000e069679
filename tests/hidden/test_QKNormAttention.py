"""Hidden checks of ``QKNormAttention``."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_gradients_of_inputs,
    expect_left_alone,
    expect_value_error,
    gradient_of,
)
from vit_course.exercises.l03_attention.split_heads.claims import TOKEN_AXES
from vit_course.exercises.l04_block.mlp.claims import expect_gradients
from vit_course.exercises.l10_modern.qk_norm_attention.claims import expect_no_sharpening, expect_output, loaded, steps
from vit_course.exercises.repeatability import expect_one_kind, kinds_of_results


def _sizes(probe):
    """(embed_dim, num_heads) of two to four heads with three to six numbers each."""
    num_heads = 2 + int(probe.integers(1, high=3))
    return num_heads * (3 + int(probe.integers(1, high=4))), num_heads


@pytest.mark.exercise("QKNormAttention", points=1)
def test_queries_and_keys_are_normalized_head_by_head(student, probe):
    """The output is right, for several numbers of heads and of tokens."""
    for _ in range(3):
        expect_output(student, probe, *_sizes(probe), 2 + probe.sizes(1)[0])


@pytest.mark.exercise("QKNormAttention", points=0.5)
def test_large_tokens_do_not_sharpen_it(student, probe):
    """Queries and keys that are a hundred times as large give the same weights, and the output stays right."""
    expect_no_sharpening(student, probe, *_sizes(probe))


@pytest.mark.exercise("QKNormAttention", points=0.75)
def test_everything_learns(student, probe):
    """Every parameter gets a gradient, and the tokens get the right one."""
    embed_dim, num_heads = _sizes(probe)
    module, weights = loaded(student, probe, embed_dim, num_heads)
    x = probe.normal(2, 5, embed_dim)
    expect_gradients(module, expect_tensor(module(x), x.shape, "forward's output"))
    expect_equal(module(x), steps(weights, x, num_heads)["projection:out"], "the output", TOKEN_AXES)
    wanted = gradient_of(lambda tokens: steps(weights, tokens, num_heads)["projection:out"], x)
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the tokens"])


@pytest.mark.exercise("QKNormAttention", points=0.25)
def test_mode_and_dtype_do_not_matter(student, probe, device):
    """The output is the same in every run and mode, and right in float64; the tokens that go in are not changed."""
    embed_dim, num_heads = _sizes(probe)
    module, weights = loaded(student, probe, embed_dim, num_heads)
    x = probe.normal(2, 4, embed_dim)
    right = steps(weights, x, num_heads)["projection:out"]
    for change, mode in ((module.train, "train"), (module.eval, "eval")):
        change()
        expect_equal(module(x), right, f"after {mode}() the output", TOKEN_AXES)
    expect_left_alone(student)
    expect_one_kind(kinds_of_results(student, lambda: module(x), x.shape))
    module.to(device)
    module.double()
    doubled = {name: each.double().to(device) for name, each in weights.items()}
    x = probe.normal(2, embed_dim, 4, dtype=torch.float64).mT.to(device)
    expect_equal(module(x), steps(doubled, x, num_heads)["projection:out"], "the output in float64", TOKEN_AXES)


@pytest.mark.exercise("QKNormAttention", points=0.2)
def test_a_number_of_heads_that_does_not_fit_is_refused(student, probe):
    """If num_heads does not divide embed_dim, building it raises a ValueError that names both numbers."""
    expect_output(student, probe, *_sizes(probe), 4)
    for num_heads in (3, 5):
        embed_dim = num_heads * (2 + int(probe.integers(1, high=5))) + 1
        described = f"embed_dim {embed_dim} with {num_heads} heads"
        expect_value_error(student, (embed_dim, num_heads), (embed_dim, num_heads), described)


@pytest.mark.exercise("QKNormAttention", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    expect_output(student, probe, *_sizes(probe), 4)
    expect_example(student)


@pytest.mark.exercise("QKNormAttention", points=0.25)
def test_one_image_keeps_its_axis(student, probe):
    """A batch of one image keeps its three axes, and so does an image of one token."""
    embed_dim, num_heads = _sizes(probe)
    module, weights = loaded(student, probe, embed_dim, num_heads)
    for batch, tokens in ((1, 4), (2, 1), (1, 1)):
        x = probe.normal(batch, tokens, embed_dim)
        name = f"the output for {batch} of {tokens} tokens"
        expect_equal(module(x), steps(weights, x, num_heads)["projection:out"], name, TOKEN_AXES)
