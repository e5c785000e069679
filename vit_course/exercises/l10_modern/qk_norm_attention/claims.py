"""`QKNormAttention`: attention whose queries and keys are normalized, head by head.

The oracle writes every step out.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    compute_gradient,
    expect_gradients_of_inputs,
    expect_inputs_unchanged,
    expect_value_error,
    make_wrong_part_describer,
)
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from vit_course.exercises.l03_attention.split_heads.claims import TOKEN_AXES, heads_of, merged_heads_of
from vit_course.exercises.l04_block.mlp.claims import expect_gradient_of_every_parameter
from vit_course.exercises.l10_modern import LESSON
from vit_course.exercises.repeatability import expect_same_results, run_and_classify_results

Weights = Mapping[str, Tensor]
CPU = torch.device("cpu")
PARTS = ("qkv", "query_norm", "key_norm", "projection")

QKNormAttention = Exercise("QKNormAttention", LESSON, is_class=True, in_training=InTraining.HIDDEN)


def list_parameter_shapes(embed_dim: int, num_heads: int) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter by its name."""
    head_dim = embed_dim // num_heads
    return {
        "qkv.weight": (3 * embed_dim, embed_dim),
        "qkv.bias": (3 * embed_dim,),
        **{f"{name}.{part}": (head_dim,) for name in ("query_norm", "key_norm") for part in ("weight", "bias")},
        "projection.weight": (embed_dim, embed_dim),
        "projection.bias": (embed_dim,),
    }


def compute_inputs_and_outputs_of_parts(weights: Weights, x: Tensor, num_heads: int) -> dict[str, Tensor]:
    """The oracle: what the parts are given and give, in their order."""
    qkv = F.linear(x, weights["qkv.weight"], weights["qkv.bias"])
    query, key, value = (heads_of(part, num_heads) for part in qkv.tensor_split(3, dim=-1))
    normed = [_apply_layer_norm(each, weights, name) for each, name in ((query, "query_norm"), (key, "key_norm"))]
    scores = torch.einsum("bhqd,bhkd->bhqk", *normed) / query.shape[-1] ** 0.5
    heads = merged_heads_of(torch.einsum("bhqk,bhkd->bhqd", scores.softmax(dim=-1), value))
    output = F.linear(heads, weights["projection.weight"], weights["projection.bias"])
    return {
        "qkv:in": x,
        "qkv:out": qkv,
        "query_norm:in": query,
        "query_norm:out": normed[0],
        "key_norm:in": key,
        "key_norm:out": normed[1],
        "projection:in": heads,
        "projection:out": output,
    }


def _apply_layer_norm(x: Tensor, weights: Weights, name: str) -> Tensor:
    centered = x - x.mean(dim=-1, keepdim=True)
    deviation = (centered.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    return centered / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def build_with_random_weights(
    student: Student, probe: Probe, embed_dim: int, num_heads: int
) -> tuple[StudentModule, Weights]:
    """The student's module with random weights, and these."""
    module = student.build(embed_dim, num_heads)
    weights = probe.weights(list_parameter_shapes(embed_dim, num_heads))
    module.load(weights)
    return module, weights


def build_module_and_draw_tokens(
    student: Student, probe: Probe, shown: tuple[int, ...] = (2, 3, 5)
) -> tuple[StudentModule, Weights, Tensor, int]:
    """The student's module with random weights, these, tokens for it, and its number of heads.

    ``shown`` are batch, num_heads and tokens of a probe that is not secret.
    """
    batch, num_heads, tokens = probe.sizes(3, high=5, shown=shown)
    head_dim = probe.choice((6, 7, 8), shown=4)  # of few numbers some lie so close that float32 has no good gradient
    module, weights = build_with_random_weights(student, probe, num_heads * head_dim, num_heads)
    return module, weights, probe.normal(batch, tokens, num_heads * head_dim), num_heads


@QKNormAttention.check(guard=True)
def its_parameters_are_two_linears_and_two_norms(student: Student, probe: Probe) -> None:
    """Its parameters are those of qkv, of projection, and of two LayerNorms over head_dim."""
    for embed_dim, num_heads in ((12, 3), (8, 4)):
        build_with_random_weights(student, probe, embed_dim, num_heads)


@QKNormAttention.check(
    needs=its_parameters_are_two_linears_and_two_norms, guard=True, points=0.05, first="the_output_is_right"
)
def tokens_go_in_and_tokens_come_out(student: Student, probe: Probe) -> None:
    """forward gives tokens of the same shape, and for the same tokens the same result twice."""
    module, _, x, _ = build_module_and_draw_tokens(student, probe)
    for tokens in (x, probe.normal(1, 7, x.shape[-1])):
        expect_tensor(module(tokens), tokens.shape, "forward's output")
    expect_same_results(run_and_classify_results(student, lambda: module(x), x.shape))


@QKNormAttention.check(needs=tokens_go_in_and_tokens_come_out, points=0.41)
def the_output_is_right(student: Student, probe: Probe) -> None:
    """The output is right, for several numbers of heads and of tokens."""
    for shown in ((2, 3, 5), (2, 2, 6), (3, 5, 2)):
        module, weights, x, num_heads = build_module_and_draw_tokens(student, probe, shown)
        right = compute_inputs_and_outputs_of_parts(weights, x, num_heads)
        where = make_wrong_part_describer(module, right, PARTS, x, axes=TOKEN_AXES)
        look = (
            "Go on by hand from the last tensor that is right: heads, norms, scores, weights, tokens. What comes next?"
        )
        expect_equal(module(x), right["projection:out"], f"the output with {num_heads} heads", TOKEN_AXES, where, look)
        turned = right["projection:out"].flip(1)
        expect_equal(module(x.flip(1)), turned, "the output for the tokens in reversed order", TOKEN_AXES, look=look)


@QKNormAttention.check(needs=its_parameters_are_two_linears_and_two_norms, points=0.72, first=the_output_is_right)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches every parameter, those of both norms too."""
    module, _, x, _ = build_module_and_draw_tokens(student, probe)
    expect_gradient_of_every_parameter(module, expect_tensor(module(x), x.shape, "forward's output"))


@QKNormAttention.check(needs=the_output_is_right, worth=0.5, points=0.3, first=the_output_is_right)
def the_gradient_reaches_the_tokens(student: Student, probe: Probe) -> None:
    """The tokens get their gradient, through queries, keys and values."""
    module, weights, x, num_heads = build_module_and_draw_tokens(student, probe)
    wanted = compute_gradient(
        lambda tokens: compute_inputs_and_outputs_of_parts(weights, tokens, num_heads)["projection:out"], x
    )
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the tokens"])


@QKNormAttention.check(needs=the_output_is_right, worth=0.5, guard=True, points=0.55, first=the_output_is_right)
def either_mode_and_float64_will_do(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """The output is the same after `.eval()`, and right in float64."""
    module, weights, x, num_heads = build_module_and_draw_tokens(student, probe)
    module.eval()
    expect_equal(
        module(x),
        compute_inputs_and_outputs_of_parts(weights, x, num_heads)["projection:out"],
        "after eval() the output",
        TOKEN_AXES,
    )
    module.to(device)
    module.double()
    doubled = {name: each.double().to(device) for name, each in weights.items()}
    x = probe.normal(2, x.shape[-1], 4, dtype=torch.float64).mT.to(device)  # not contiguous
    expect_equal(
        module(x),
        compute_inputs_and_outputs_of_parts(doubled, x, num_heads)["projection:out"],
        "the output in float64",
        TOKEN_AXES,
    )


@QKNormAttention.check(needs=the_output_is_right, points=0.47)
def large_tokens_do_not_sharpen_it(student: Student, probe: Probe) -> None:
    """Queries and keys that are a hundred times as large give the same weights."""
    module, weights, x, num_heads = build_module_and_draw_tokens(student, probe)
    embed_dim = x.shape[-1]
    large = torch.cat([torch.full((2 * embed_dim,), 100.0), torch.ones(embed_dim)])
    grown = {**weights, "qkv.weight": weights["qkv.weight"] * large[:, None], "qkv.bias": weights["qkv.bias"] * large}
    module.load(grown)
    right = compute_inputs_and_outputs_of_parts(grown, x, num_heads)["projection:out"]
    look = "What does a norm do to the size of what goes in? Which tensors go through yours?"
    name = "the output with queries and keys a hundred times as large"
    expect_equal(module(x), right, name, TOKEN_AXES, look=look)
    module.eval()
    expect_equal(module(x), right, f"after eval() {name}", TOKEN_AXES, look=look)


@QKNormAttention.check(
    needs=tokens_go_in_and_tokens_come_out, worth=0.5, guard=True, points=0.1, first=the_output_is_right
)
def the_tokens_are_left_alone(student: Student, probe: Probe) -> None:
    """The tokens that go in are not changed."""
    module, _, x, _ = build_module_and_draw_tokens(student, probe)
    module(x)
    expect_inputs_unchanged(student)


@QKNormAttention.check(guard=True, points=0.15, first=every_parameter_learns)
def a_number_of_heads_that_does_not_fit_is_refused(student: Student, probe: Probe) -> None:
    """If num_heads does not divide embed_dim, building it raises a ValueError that names both numbers."""
    for num_heads, shown in ((4, 10), (3, 14), (5, 12)):
        embed_dim = probe.choice(range(2 * num_heads + 1, 7 * num_heads, num_heads), shown=shown)
        described = f"embed_dim {embed_dim} with {num_heads} heads"
        expect_value_error(student, (embed_dim, num_heads), (embed_dim, num_heads), described)


QKNormAttention.example(
    """
>>> attention = QKNormAttention(embed_dim=12, num_heads=3)
>>> tuple(attention(torch.zeros(2, 5, 12)).shape), tuple(attention.query_norm.weight.shape)
((2, 5, 12), (4,))
""",
    points=0.05,
    first=the_output_is_right,
)


read_mistakes(QKNormAttention, __name__)
