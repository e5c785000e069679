"""`MultiHeadSelfAttention`: the module.

The oracle is torch's own ``nn.MultiheadAttention`` with the same weights. The attention inside the wrong modules is
torch's fused kernel.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_gradients_of_inputs,
    expect_left_alone,
    expect_value_error,
    gradient_of,
    located,
)
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l03_attention import LESSON
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import (
    WEIGHT_AXES,
    both_tensors,
    too_sharp_or_flat,
)
from vit_course.exercises.l03_attention.split_heads.claims import TOKEN_AXES, heads_of, merged
from vit_course.exercises.repeatability import expect_one_kind, kinds_of_results

MultiHeadSelfAttention = Exercise("MultiHeadSelfAttention", LESSON, is_class=True)


def _attention(
    student: Student, probe: Probe, embed_dim: int = 12, num_heads: int = 3, qkv_bias: bool = True
) -> tuple[StudentModule, nn.MultiheadAttention]:
    """The student's module and torch's, with the same random weights."""
    module = student.build(embed_dim, num_heads, qkv_bias)
    shapes = {
        "qkv.weight": (3 * embed_dim, embed_dim),
        **({"qkv.bias": (3 * embed_dim,)} if qkv_bias else {}),
        "projection.weight": (embed_dim, embed_dim),
        "projection.bias": (embed_dim,),
    }
    weights = probe.weights(shapes)
    module.load(weights)
    oracle = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)
    names = zip(("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"),
                ("qkv.weight", "qkv.bias", "projection.weight", "projection.bias"), strict=True)  # fmt: skip
    zeros = torch.zeros(3 * embed_dim)
    oracle.load_state_dict({theirs: weights.get(ours, zeros) for theirs, ours in names})
    return module, oracle


def _answer(oracle: nn.MultiheadAttention, x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        output, weights = oracle(x, x, x, average_attn_weights=False)
    return output, weights


def _between(oracle: nn.MultiheadAttention, x: Tensor) -> dict[str, Tensor]:
    """What a right module's Linears are given and give, but for its result."""
    with torch.no_grad():
        qkv = F.linear(x, oracle.in_proj_weight, oracle.in_proj_bias)
        values = heads_of(qkv[..., -x.shape[-1] :], oracle.num_heads)
        return {"qkv:in": x, "qkv:out": qkv, "projection:in": merged(_answer(oracle, x)[1] @ values)}


def _with_weights(module: StudentModule, x: Tensor) -> tuple[Tensor, Tensor]:
    result = module(x, return_weights=True)
    return both_tensors(result, "forward with return_weights=True", "the output", "the weights")


@MultiHeadSelfAttention.check(guard=True)
def its_parameters_are_two_linears(student: Student, probe: Probe) -> None:
    """Its parameters are those of two Linears, qkv and projection."""
    _attention(student, probe)


@MultiHeadSelfAttention.check(needs=its_parameters_are_two_linears, guard=True)
def tokens_go_in_and_tokens_come_out(student: Student, probe: Probe) -> None:
    """forward gives tokens of the same shape, for any batch, and with return_weights=True the weights beside them."""
    module, _ = _attention(student, probe)
    for batch, tokens in ((2, 5), (3, 7), (1, 5)):  # one module for all of them
        x = probe.normal(batch, tokens, 12)
        expect_tensor(module(x), (batch, tokens, 12), "forward's output")
        output, weights = _with_weights(module, x)
        expect_tensor(output, (batch, tokens, 12), "the output with return_weights=True")
        expect_tensor(weights, (batch, 3, tokens, tokens), "the weights tensor")


@MultiHeadSelfAttention.check(needs=tokens_go_in_and_tokens_come_out, worth=0.5, guard=True)
def nothing_is_left_to_chance(student: Student, probe: Probe) -> None:
    """The same tokens give the same result twice."""
    module, _ = _attention(student, probe)
    x = probe.normal(2, 5, 12)
    expect_one_kind(kinds_of_results(student, lambda: module(x), x.shape))


@MultiHeadSelfAttention.check(needs=nothing_is_left_to_chance)
def every_head_attends_by_itself(student: Student, probe: Probe) -> None:
    """Each head has its own weights, made from its own part of the queries and keys."""
    for embed_dim, num_heads in ((12, 3), (8, 4)):
        module, oracle = _attention(student, probe, embed_dim, num_heads)
        x = probe.normal(2, 5, embed_dim)
        _, weights = _with_weights(module, x)
        name = f"the weights tensor, with an embed_dim of {embed_dim} and {num_heads} heads,"
        look = "Write down the shape after every line, and which of its axes is the head's."
        expect_equal(weights, _answer(oracle, x)[1], name, WEIGHT_AXES, too_sharp_or_flat, look)


@MultiHeadSelfAttention.check(needs=nothing_is_left_to_chance)
def the_output_is_right(student: Student, probe: Probe) -> None:
    """The output is right, for several numbers of heads and of tokens."""
    for embed_dim, num_heads, tokens in ((12, 3, 5), (8, 4, 7)):
        module, oracle = _attention(student, probe, embed_dim, num_heads)
        x = probe.normal(2, tokens, embed_dim)
        name = f"the output with {num_heads} heads and {tokens} tokens"
        look = "Are your weights right? Then look at what happens after them: values, merging, projection."
        where = located(module, _between(oracle, x), ("qkv", "projection"), x, axes=TOKEN_AXES)
        expect_equal(module(x), _answer(oracle, x)[0], name, TOKEN_AXES, where, look)


@MultiHeadSelfAttention.check(needs=the_output_is_right)
def the_bias_of_qkv_can_be_left_out(student: Student, probe: Probe) -> None:
    """With qkv_bias=False there is no bias in qkv, and the projection keeps its own."""
    module, oracle = _attention(student, probe, qkv_bias=False)
    x = probe.normal(2, 5, 12)
    expect_equal(module(x), _answer(oracle, x)[0], "the output without qkv_bias", TOKEN_AXES)


@MultiHeadSelfAttention.check(needs=its_parameters_are_two_linears, worth=0.5, guard=True)
def qkv_has_a_bias_unless_told(student: Student, probe: Probe) -> None:
    """Where qkv_bias is not given, qkv has a bias."""
    if "qkv.bias" not in student.build(12, 3).parameter_shapes():
        look = "Which value has qkv_bias when nobody gives one?"
        raise Failure("a module that is built without qkv_bias has no bias in qkv", "a bias in qkv", look)


@MultiHeadSelfAttention.check(needs=the_output_is_right, worth=0.5, guard=True)
def nothing_depends_on_the_mode(student: Student, probe: Probe) -> None:
    """Output and weights are the same while training and after `.eval()`."""
    module, oracle = _attention(student, probe)
    for change, mode in ((module.train, "train"), (module.eval, "eval")):
        change()
        x = probe.normal(2, 5, 12)
        right_output, right_weights = _answer(oracle, x)
        output, weights = _with_weights(module, x)
        look = "Which line of yours does something else in training than in evaluation?"
        expect_equal(weights, right_weights, f"after {mode}() the weights tensor", WEIGHT_AXES, look=look)
        expect_equal(output, right_output, f"after {mode}() the output", TOKEN_AXES, look=look)
        expect_equal(module(x), right_output, f"after {mode}() the output", TOKEN_AXES, look=look)


@MultiHeadSelfAttention.check(needs=nothing_is_left_to_chance, guard=True)
def asking_for_weights_changes_nothing(student: Student, probe: Probe) -> None:
    """The output is the same whether the weights are asked for or not."""
    module, _ = _attention(student, probe)
    x = probe.normal(2, 5, 12)
    plain = expect_tensor(module(x), x.shape, "forward's output").detach()
    output, _ = _with_weights(module, x)
    expect_equal(output, plain.to(x.dtype), "the output with return_weights=True", TOKEN_AXES)


@MultiHeadSelfAttention.check(needs=nothing_is_left_to_chance, guard=True)
def an_image_does_not_see_the_others(student: Student, probe: Probe) -> None:
    """What comes out for an image does not depend on the other images of the batch."""
    module, _ = _attention(student, probe)
    x = probe.normal(4, 5, 12)
    together = expect_tensor(module(x), x.shape, "forward's output").detach()
    alone = module(x[2:3])
    look = "Along which axis do the tokens of one image lie, and along which do you attend?"
    expect_equal(alone, together[2:3].to(x.dtype), "the output for one image alone", TOKEN_AXES, look=look)


@MultiHeadSelfAttention.check(needs=nothing_is_left_to_chance, guard=True)
def shuffled_tokens_come_out_shuffled(student: Student, probe: Probe) -> None:
    """Tokens that go in in another order come out in that order, otherwise unchanged."""
    module, _ = _attention(student, probe)
    x, order = probe.normal(2, 7, 12), probe.permutation(7)
    plain = expect_tensor(module(x), x.shape, "forward's output").detach()
    look = "What in your module treats the first token differently from the last?"
    shuffled = plain[:, order].to(x.dtype)
    expect_equal(module(x[:, order]), shuffled, "the output for shuffled tokens", TOKEN_AXES, look=look)


@MultiHeadSelfAttention.check(needs=its_parameters_are_two_linears)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches both Linears, and in qkv the rows of queries, keys and values."""
    module, _ = _attention(student, probe)
    output = expect_tensor(module(probe.normal(2, 5, 12)), (2, 5, 12), "forward's output")
    if names := module.without_gradient(output):
        look = "Is each of your Linears called in forward, and does what it gives end up in the result?"
        raise Failure(f"no gradient reaches {', '.join(names)}", "one for every parameter", look)
    gradient = module.module.get_parameter("qkv.weight").grad
    thirds = zip(("queries", "keys", "values"), gradient.chunk(3) if gradient is not None else (), strict=False)
    asleep = [name for name, rows in thirds if not rows.abs().max() > 0]
    student.record.append(("rows of qkv without gradient", tuple(asleep)))
    if asleep:
        look = "Which line leaves torch's graph: detach, .data, no_grad, a detour through numpy?"
        raise Failure(f"no gradient reaches qkv's rows of {' and '.join(asleep)}", "one for all of its rows", look)


@MultiHeadSelfAttention.check(needs=the_output_is_right, worth=0.5)
def the_gradient_reaches_the_tokens(student: Student, probe: Probe) -> None:
    """The tokens get the gradient of attention, through queries, keys and values."""
    module, oracle = _attention(student, probe)
    x = probe.normal(2, 5, 12)
    wanted = gradient_of(lambda tokens: oracle(tokens, tokens, tokens)[0], x)
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the tokens"])


@MultiHeadSelfAttention.check(needs=tokens_go_in_and_tokens_come_out, worth=0.5, guard=True)
def it_computes_where_the_tokens_lie(student: Student, probe: Probe) -> None:
    """Moved to another device, it computes there."""
    x = probe.normal(2, 5, 12)
    expect_device_of_input(student, x, arguments=(12, 3), options={"return_weights": True})


@MultiHeadSelfAttention.check(needs=the_output_is_right, guard=True)
def it_follows_its_dtype(student: Student, probe: Probe) -> None:
    """After `.double()` it computes in float64, also on non-contiguous tokens."""
    module, oracle = _attention(student, probe)
    module.double()
    x = probe.normal(2, 12, 5, dtype=torch.float64).transpose(1, 2)
    expect_equal(module(x), _answer(oracle.double(), x)[0], "the output in float64", TOKEN_AXES)


@MultiHeadSelfAttention.check(needs=its_parameters_are_two_linears, guard=True)
def the_tokens_are_left_alone(student: Student, probe: Probe) -> None:
    """The tokens that go in are not changed."""
    module, _ = _attention(student, probe)
    module(probe.normal(2, 5, 12))
    expect_left_alone(student)


@MultiHeadSelfAttention.check(guard=True)
def a_number_of_heads_that_does_not_fit_is_refused_when_built(student: Student, probe: Probe) -> None:
    """If num_heads does not divide embed_dim, building it raises a ValueError that names both numbers."""
    for embed_dim, num_heads in ((10, 4), (14, 3)):
        described = f"embed_dim {embed_dim} with {num_heads} heads"
        expect_value_error(student, (embed_dim, num_heads), (embed_dim, num_heads), described)


MultiHeadSelfAttention.example("""
>>> attention = MultiHeadSelfAttention(embed_dim=6, num_heads=2)
>>> tuple(attention(torch.zeros(4, 5, 6)).shape)
(4, 5, 6)
>>> output, weights = attention(torch.zeros(4, 5, 6), return_weights=True)
>>> weights[0, 1, 2]  # all tokens alike: each gets a fifth
tensor([0.2000, 0.2000, 0.2000, 0.2000, 0.2000], grad_fn=<SelectBackward0>)
""")


read_mistakes(MultiHeadSelfAttention, __name__)
