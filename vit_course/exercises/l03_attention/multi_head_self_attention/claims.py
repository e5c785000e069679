"""`MultiHeadSelfAttention`: the module.

The oracle is torch's own ``nn.MultiheadAttention`` with the same weights. The attention inside the wrong modules is
torch's fused kernel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import expect_equal, expect_tensor, format_dtype
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    compute_gradient,
    expect_device_of_input,
    expect_gradients_of_inputs,
    expect_inputs_unchanged,
    expect_modes_kept,
    expect_value_error,
    make_wrong_part_describer,
)
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l03_attention import LESSON
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import (
    WEIGHT_AXES,
    describe_too_sharp_or_flat,
    expect_pair_of_tensors,
)
from vit_course.exercises.l03_attention.split_heads.claims import TOKEN_AXES, heads_of, merged_heads_of
from vit_course.exercises.repeatability import expect_same_results, run_and_classify_results

CPU = torch.device("cpu")
OURS_AND_TORCHS = {
    "qkv.weight": "in_proj_weight",
    "qkv.bias": "in_proj_bias",
    "projection.weight": "out_proj.weight",
    "projection.bias": "out_proj.bias",
}
EVERY_LINE = "Write down the shape after every line, and which of its axes is the head's."
AFTER_THE_WEIGHTS = "Are your weights right? Then look at what happens after them: values, merging, projection."

MultiHeadSelfAttention = Exercise("MultiHeadSelfAttention", LESSON, is_class=True)


def build_student_and_torch_attention(
    student: Student, probe: Probe, embed_dim: int, num_heads: int, *qkv_bias: bool
) -> tuple[StudentModule, nn.MultiheadAttention]:
    """The student's module and torch's, with the same random weights; with a bias unless told otherwise."""
    module = student.build(embed_dim, num_heads, *qkv_bias)
    shapes = {
        "qkv.weight": (3 * embed_dim, embed_dim),
        "qkv.bias": (3 * embed_dim,),
        "projection.weight": (embed_dim, embed_dim),
        "projection.bias": (embed_dim,),
    }
    if qkv_bias == (False,):
        del shapes["qkv.bias"]
    weights = probe.weights(shapes)
    module.load(weights)
    oracle = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)
    zeros = torch.zeros(3 * embed_dim)
    oracle.load_state_dict({theirs: weights.get(ours, zeros) for ours, theirs in OURS_AND_TORCHS.items()})
    return module, oracle


def draw_sizes(probe: Probe) -> tuple[int, int, int, int]:
    """Batch, tokens, num_heads and head_dim, in grading no square, whose root is whole."""
    batch, tokens, num_heads = probe.sizes(3, high=5, shown=(2, 5, 3))
    return batch, tokens, num_heads, probe.choice((6, 7, 8), shown=4)


def build_attention_and_draw_tokens(
    student: Student, probe: Probe, qkv_bias: bool = True
) -> tuple[StudentModule, nn.MultiheadAttention, Tensor]:
    """The student's module and torch's, and tokens (batch, tokens, embed_dim) for them."""
    batch, tokens, num_heads, head_dim = draw_sizes(probe)
    embed_dim = num_heads * head_dim
    return *build_student_and_torch_attention(student, probe, embed_dim, num_heads, qkv_bias), probe.normal(
        batch, tokens, embed_dim
    )


def expect_right_output(
    module: StudentModule,
    oracle: nn.MultiheadAttention,
    x: Tensor,
    name: str = "the output",
    look: str = AFTER_THE_WEIGHTS,
) -> None:
    """Fail unless forward gives what torch's module gives."""
    where = make_wrong_part_describer(
        module, _compute_inputs_and_outputs_of_linears(oracle, x), ("qkv", "projection"), x, axes=TOKEN_AXES
    )
    expect_equal(module(x), _call_oracle(oracle, x)[0], name, TOKEN_AXES, where, look)


def expect_right_weights(
    module: StudentModule,
    oracle: nn.MultiheadAttention,
    x: Tensor,
    name: str = "the weights tensor",
    look: str = EVERY_LINE,
) -> Tensor:
    """Fail unless the weights of return_weights=True are torch's; gives the output beside them."""
    output, weights = _call_with_weights(module, x)
    expect_equal(weights, _call_oracle(oracle, x)[1], name, WEIGHT_AXES, describe_too_sharp_or_flat, look)
    return output


def expect_right_in_both_modes(student: Student, probe: Probe, look: str) -> None:
    """Output and weights are right while it trains and in evaluation, for any number of images and tokens."""
    module, oracle, x = build_attention_and_draw_tokens(student, probe)
    for change, mode in ((module.train, "train"), (module.eval, "eval"), (module.train, "train")):
        change()
        batch, tokens = probe.sizes(2, shown=(2, 5))
        x = probe.normal(batch, tokens, x.shape[-1])
        output = expect_right_weights(module, oracle, x, f"after {mode}() the weights tensor", look)
        expect_equal(output, _call_oracle(oracle, x)[0], f"after {mode}() the output", TOKEN_AXES, look=look)
        expect_right_output(module, oracle, x, f"after {mode}() the output", look)


def _call_oracle(oracle: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        output, weights = oracle(x, x, x, average_attn_weights=False)
    return output, weights


def _compute_inputs_and_outputs_of_linears(oracle: nn.MultiheadAttention, x: Tensor) -> dict[str, Tensor]:
    """Compute what a right module's Linears are given and give, but for its result."""
    with torch.no_grad():
        qkv = F.linear(x, oracle.in_proj_weight, oracle.in_proj_bias)
        values = heads_of(qkv[..., -x.shape[-1] :], oracle.num_heads)
        return {"qkv:in": x, "qkv:out": qkv, "projection:in": merged_heads_of(_call_oracle(oracle, x)[1] @ values)}


def _call_with_weights(module: StudentModule, x: Tensor) -> tuple[Tensor, Tensor]:
    result = module(x, return_weights=True)
    return expect_pair_of_tensors(result, "forward with return_weights=True", "the output", "the weights")


def _draw_sizes_with_more_and_fewer_heads(probe: Probe) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """(num_heads, head_dim, tokens) with more heads than tokens, and with fewer."""
    least, lower, upper, most = sorted(probe.sizes(4, shown=(2, 3, 4, 5)))
    return (upper, least, lower), (lower, most, upper)


def expect_output_and_weights_right(student: Student, probe: Probe) -> None:
    """Output and weights are right in both modes."""
    expect_right_in_both_modes(student, probe, "The numbers come first: what do the checks above say?")


@MultiHeadSelfAttention.check(guard=True)
def its_parameters_are_two_linears(student: Student, probe: Probe) -> None:
    """Its parameters are those of two Linears, qkv and projection."""
    build_attention_and_draw_tokens(student, probe)


@MultiHeadSelfAttention.check(needs=its_parameters_are_two_linears, guard=True)
def tokens_go_in_and_tokens_come_out(student: Student, probe: Probe) -> None:
    """forward gives tokens of the same shape, for any batch, and with return_weights=True the weights beside them."""
    module, _ = build_student_and_torch_attention(student, probe, 12, 3, True)
    for batch, tokens in ((2, 5), (3, 7), (1, 5)):  # one module for all of them
        x = probe.normal(batch, tokens, 12)
        expect_tensor(module(x), (batch, tokens, 12), "forward's output")
        output, weights = _call_with_weights(module, x)
        expect_tensor(output, (batch, tokens, 12), "the output with return_weights=True")
        expect_tensor(weights, (batch, 3, tokens, tokens), "the weights tensor")


@MultiHeadSelfAttention.check(
    needs=tokens_go_in_and_tokens_come_out, worth=0.5, guard=True, points=0.125, first=expect_output_and_weights_right
)
def nothing_is_left_to_chance(student: Student, probe: Probe) -> None:
    """The same tokens give the same result twice."""
    module, _, x = build_attention_and_draw_tokens(student, probe)
    expect_same_results(run_and_classify_results(student, lambda: module(x), x.shape))


@MultiHeadSelfAttention.check(needs=nothing_is_left_to_chance, points=1.5)
def every_head_attends_by_itself(student: Student, probe: Probe) -> None:
    """Each head has its own weights, made from its own part of the queries and keys."""
    for num_heads, head_dim, tokens in _draw_sizes_with_more_and_fewer_heads(probe):
        embed_dim = num_heads * head_dim
        module, oracle = build_student_and_torch_attention(student, probe, embed_dim, num_heads, True)
        name = f"the weights tensor, with an embed_dim of {embed_dim} and {num_heads} heads,"
        expect_right_weights(module, oracle, probe.normal(2, tokens, embed_dim), name)


@MultiHeadSelfAttention.check(needs=nothing_is_left_to_chance, points=1.75)
def the_output_is_right(student: Student, probe: Probe) -> None:
    """The output is right, for several numbers of heads and of tokens."""
    batch, num_heads, more = probe.sizes(3, shown=(6, 3, 2))
    for heads, head_dim, tokens in (*_draw_sizes_with_more_and_fewer_heads(probe), (num_heads, 4, 20 + more)):
        module, oracle = build_student_and_torch_attention(student, probe, heads * head_dim, heads, True)
        name = f"the output with {heads} heads and {tokens} tokens"
        for again in ("", ", given other numbers of the same sizes"):
            expect_right_output(module, oracle, probe.normal(batch, tokens, heads * head_dim), f"{name}{again}")


@MultiHeadSelfAttention.check(needs=the_output_is_right, points=0.5)
def the_bias_of_qkv_can_be_left_out(student: Student, probe: Probe) -> None:
    """With qkv_bias=False there is no bias in qkv, and the projection keeps its own."""
    module, oracle, x = build_attention_and_draw_tokens(student, probe, qkv_bias=False)
    expect_right_output(module, oracle, x, "the output without qkv_bias")
    expect_right_weights(module, oracle, x, "the weights tensor without qkv_bias")


@MultiHeadSelfAttention.check(needs=its_parameters_are_two_linears, worth=0.5, guard=True)
def qkv_has_a_bias_unless_told(student: Student, probe: Probe) -> None:
    """Where qkv_bias is not given, qkv has a bias."""
    _, _, num_heads, head_dim = draw_sizes(probe)
    if "qkv.bias" not in student.build(num_heads * head_dim, num_heads).parameter_shapes():
        look = "Which value has qkv_bias when nobody gives one?"
        raise Failure("a module that is built without qkv_bias has no bias in qkv", "a bias in qkv", look)


@MultiHeadSelfAttention.check(needs=the_output_is_right, worth=0.5, guard=True, points=0.85)
def nothing_depends_on_the_mode(student: Student, probe: Probe) -> None:
    """Output and weights are the same while training and after `.eval()`, and forward leaves every part in its mode."""
    expect_right_in_both_modes(
        student, probe, "Which line of yours does something else in training than in evaluation?"
    )
    batch, tokens, num_heads, head_dim = draw_sizes(probe)
    embed_dim = num_heads * head_dim
    expect_modes_kept(student, (embed_dim, num_heads), probe.normal(batch, tokens, embed_dim))


@MultiHeadSelfAttention.check(
    needs=nothing_is_left_to_chance, guard=True, points=0.125, first=expect_output_and_weights_right
)
def asking_for_weights_changes_nothing(student: Student, probe: Probe) -> None:
    """The output is the same whether the weights are asked for or not."""
    for num_heads, head_dim, tokens in _draw_sizes_with_more_and_fewer_heads(probe):
        module, _ = build_student_and_torch_attention(student, probe, num_heads * head_dim, num_heads, True)
        x = probe.normal(2, tokens, num_heads * head_dim)
        plain = expect_tensor(module(x), x.shape, "forward's output").detach()
        output, _ = _call_with_weights(module, x)
        expect_equal(output, plain.to(x.dtype), "the output with return_weights=True", TOKEN_AXES)


@MultiHeadSelfAttention.check(
    needs=nothing_is_left_to_chance, guard=True, points=0.05, first=expect_output_and_weights_right
)
def an_image_does_not_see_the_others(student: Student, probe: Probe) -> None:
    """What comes out for an image does not depend on the other images of the batch."""
    module, _, x = build_attention_and_draw_tokens(student, probe)
    together = expect_tensor(module(x), x.shape, "forward's output").detach()
    look = "Along which axis do the tokens of one image lie, and along which do you attend?"
    expect_equal(module(x[-1:]), together[-1:].to(x.dtype), "the output for one image alone", TOKEN_AXES, look=look)


@MultiHeadSelfAttention.check(
    needs=nothing_is_left_to_chance, guard=True, points=0.1, first=expect_output_and_weights_right
)
def shuffled_tokens_come_out_shuffled(student: Student, probe: Probe) -> None:
    """Tokens that go in in another order come out in that order, otherwise unchanged."""
    module, _, x = build_attention_and_draw_tokens(student, probe)
    order = probe.permutation(x.shape[1])
    plain = expect_tensor(module(x), x.shape, "forward's output").detach()
    look = "What in your module treats the first token differently from the last?"
    shuffled = plain[:, order].to(x.dtype)
    expect_equal(module(x[:, order]), shuffled, "the output for shuffled tokens", TOKEN_AXES, look=look)


@MultiHeadSelfAttention.check(needs=its_parameters_are_two_linears, points=0.5)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches both Linears, and in qkv the rows of queries, keys and values."""
    module, _, x = build_attention_and_draw_tokens(student, probe)
    if names := module.list_parameters_without_gradient(expect_tensor(module(x), x.shape, "forward's output")):
        look = "Is each of your Linears called in forward, and does what it gives end up in the result?"
        raise Failure(f"no gradient reaches {', '.join(names)}", "one for every parameter", look)
    gradient = module.gradients(module(x))["qkv.weight"]
    thirds = zip(("queries", "keys", "values"), gradient.chunk(3) if gradient is not None else (), strict=False)
    asleep = [name for name, rows in thirds if not rows.abs().max() > 0]
    student.note(("rows of qkv without gradient", tuple(asleep)))
    if asleep:
        look = "Which line leaves torch's graph: detach, .data, no_grad, a detour through numpy?"
        raise Failure(f"no gradient reaches qkv's rows of {' and '.join(asleep)}", "one for all of its rows", look)


@MultiHeadSelfAttention.check(needs=the_output_is_right, worth=0.5, points=0.75, first=expect_output_and_weights_right)
def the_gradient_reaches_the_tokens(student: Student, probe: Probe) -> None:
    """The tokens and all parameters get the gradient of attention, through queries, keys and values."""
    module, oracle, x = build_attention_and_draw_tokens(student, probe)
    wanted = compute_gradient(lambda tokens: oracle(tokens, tokens, tokens)[0], x)
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the tokens"])
    for answer in (module, lambda tokens: _call_with_weights(module, tokens)[0]):
        found = module.gradients(answer(x))
        for ours, theirs in OURS_AND_TORCHS.items():

            def call_oracle_with_parameter(weight: Tensor, name: str = theirs) -> Tensor:
                return torch.func.functional_call(oracle, {name: weight}, (x, x, x))[0]

            wanted = compute_gradient(call_oracle_with_parameter, oracle.get_parameter(theirs))
            expect_gradients_of_inputs([found[ours]], [wanted], [f"`{ours}`"])


@MultiHeadSelfAttention.check(
    needs=the_output_is_right, worth=0.5, guard=True, points=0.5, first=expect_output_and_weights_right
)
def it_computes_where_the_tokens_lie(student: Student, probe: Probe) -> None:
    """Moved to another device, it computes there."""
    batch, tokens, num_heads, head_dim = draw_sizes(probe)
    x = probe.normal(batch, tokens, num_heads * head_dim)
    arguments = num_heads * head_dim, num_heads
    expect_device_of_input(student, x, arguments=arguments, options={"return_weights": True})


@MultiHeadSelfAttention.check(needs=the_output_is_right, guard=True, points=0.5, first=expect_output_and_weights_right)
def it_follows_its_dtype(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """After `.double()` it computes in float64, also on non-contiguous tokens."""
    batch, tokens, num_heads = probe.sizes(3, shown=(2, 5, 3))
    # the root is exact, so that a scale kept as a float32 buffer is right too
    embed_dim = num_heads * probe.choice((4, 16), shown=4)
    module, oracle = build_student_and_torch_attention(student, probe, embed_dim, num_heads, True)
    module.double()
    for each in (module, oracle.double()):
        each.to(device)
    x = probe.normal(batch, embed_dim, tokens, dtype=torch.float64).mT.to(device)
    look = "Which tensor of yours does torch not know about, or which line chooses a dtype or device of its own?"
    expect_right_output(module, oracle, x, "the output in float64", look)
    for name, tensor in module.tensors().items():
        if tensor.is_floating_point() and tensor.dtype != torch.float64:
            raise Failure(f"after .double() `{name}` has dtype {format_dtype(tensor.dtype)}", "float64", look)


@MultiHeadSelfAttention.check(
    needs=its_parameters_are_two_linears, guard=True, points=0.1, first=expect_output_and_weights_right
)
def the_tokens_are_left_alone(student: Student, probe: Probe) -> None:
    """The tokens that go in are not changed."""
    module, _, x = build_attention_and_draw_tokens(student, probe)
    module(x)
    expect_inputs_unchanged(student)


@MultiHeadSelfAttention.check(guard=True, points=0.4, first=every_parameter_learns)
def a_number_of_heads_that_does_not_fit_is_refused_when_built(student: Student, probe: Probe) -> None:
    """If num_heads does not divide embed_dim, building it raises a ValueError that names both numbers."""
    few, width = probe.sizes(2, low=3, shown=(3, 4))
    for embed_dim, num_heads in ((few * width + 1, few), (few, few * width)):
        described = f"embed_dim {embed_dim} with {num_heads} heads"
        expect_value_error(student, (embed_dim, num_heads), (embed_dim, num_heads), described)


MultiHeadSelfAttention.example(
    """
>>> attention = MultiHeadSelfAttention(embed_dim=6, num_heads=2)
>>> tuple(attention(torch.zeros(4, 5, 6)).shape)
(4, 5, 6)
>>> output, weights = attention(torch.zeros(4, 5, 6), return_weights=True)
>>> weights[0, 1, 2]  # all tokens alike: each gets a fifth
tensor([0.2000, 0.2000, 0.2000, 0.2000, 0.2000], grad_fn=<SelectBackward0>)
""",
    points=0.25,
    first=expect_output_and_weights_right,
)


read_mistakes(MultiHeadSelfAttention, __name__)
