"""`MultiHeadSelfAttention`: the module.

The oracle is torch's own ``nn.MultiheadAttention`` with the same weights. The attention inside the wrong modules is
torch's fused kernel.
"""

from __future__ import annotations

import math

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
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l03_attention import LESSON
from vit_course.exercises.l03_attention.scaled_dot_product_attention import (
    ROOT,
    TOKENS,
    WEIGHT_AXES,
    both_tensors,
    too_sharp_or_flat,
    weights_of,
)
from vit_course.exercises.l03_attention.split_heads import HEADS, TOKEN_AXES, heads_of, merged
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


MATMUL = "03_attention, All heads in one matmul"
SHUFFLE = "03_attention, Shuffle the tokens"
THIRDS = "In which order do the rows of qkv make queries, keys and values?"


class _Attention(nn.Module):
    """What the wrong modules below have in common: the right parameters, and attention from torch's fused kernel."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"{embed_dim} numbers cannot be shared by {num_heads} heads")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)

    def parts(self, x: Tensor) -> list[Tensor]:
        """Query, key and value, (batch, num_heads, tokens, head_dim) each."""
        return [heads_of(part, self.num_heads) for part in self.qkv(x).tensor_split(3, dim=-1)]

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, key)

    def mix(self, weights: Tensor, value: Tensor) -> Tensor:
        return torch.einsum("bhqk,bhkd->bhqd", weights, value)

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.projection(merged(heads))

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        query, key, value = self.parts(x)
        weights = self.weights(query, key)
        output = self.finish(self.mix(weights, value), x)
        return (output, weights) if return_weights else output


@MultiHeadSelfAttention.misconception("Over how many terms does one head's dot product sum?", ROOT)
class RootOfEmbedDim(_Attention):
    """The scores are divided by the root of embed_dim, but a head's dot product has only head_dim terms."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, key, scale=(self.num_heads * query.shape[-1]) ** -0.5)


@MultiHeadSelfAttention.misconception("How large does a dot product get when head_dim grows?", ROOT)
class HeadsNotScaled(_Attention):
    """The scores go into the softmax without any scaling."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, key, scale=1.0)


@MultiHeadSelfAttention.misconception(
    "Whose weights have to sum to one: those of each query, or those of each key?", TOKENS
)
class SoftmaxDownTheQueries(_Attention):
    """The softmax runs over the queries, so a token's weights do not sum to one."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(key, query).mT


@MultiHeadSelfAttention.misconception("Do the heads compete with each other, or do the keys?", TOKENS)
class SoftmaxOverTheHeads(_Attention):
    """The softmax runs over the axis of the heads, so the weights of one pair of tokens sum to one over the heads."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        scores = (query.unsqueeze(-2) * key.unsqueeze(-3)).sum(-1) * query.shape[-1] ** -0.5
        return scores.softmax(dim=1)


@MultiHeadSelfAttention.misconception("Which number follows which in memory, and whose is it?", HEADS)
class HeadsSplitByView(_Attention):
    """A view without a transpose gives each head a few whole tokens, and not a part of every token."""

    def parts(self, x: Tensor) -> list[Tensor]:
        batch, tokens, embed_dim = x.shape
        size = (batch, self.num_heads, tokens, embed_dim // self.num_heads)
        return [part.reshape(size) for part in self.qkv(x).tensor_split(3, dim=-1)]


@MultiHeadSelfAttention.misconception("Which number follows which in memory, and whose is it?", HEADS)
class HeadsSplitAndMergedByView(HeadsSplitByView):
    """A view there and a view back: each head gets a few whole tokens, and the round trip looks right."""

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.projection(heads.reshape(x.shape))


@MultiHeadSelfAttention.misconception("Which two axes does your attention work on, and whose are they?", HEADS)
class HeadsTalkToEachOther(_Attention):
    """The heads stand behind the tokens, so attention runs between the heads of one token."""

    def parts(self, x: Tensor) -> list[Tensor]:
        return [part.transpose(1, 2) for part in super().parts(x)]

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        return super().finish(heads.transpose(1, 2), x)


@MultiHeadSelfAttention.misconception("Where in your forward does the number of heads come in?", HEADS)
class OneHeadForEverything(_Attention):
    """The tokens are never split, so there is one head of embed_dim numbers, whatever num_heads says."""

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        query, key, value = self.qkv(x).tensor_split(3, dim=-1)
        weights = weights_of(query, key)
        output = self.projection(torch.einsum("bqk,bkd->bqd", weights, value))
        return (output, weights) if return_weights else output


@MultiHeadSelfAttention.misconception("Whose pieces lie next to each other when you join the heads?", HEADS)
class HeadsMergedByView(_Attention):
    """The heads are reshaped away while the tokens still stand behind them, so each token gets pieces of others."""

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.projection(heads.reshape(x.shape))


@MultiHeadSelfAttention.misconception("Which part of your module reads what the other heads found?", MATMUL)
class ProjectionNotUsed(_Attention):
    """The projection is made, but forward never calls it."""

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        return merged(heads)


@MultiHeadSelfAttention.misconception("What mixes the heads' findings at the end?", MATMUL)
class NoProjection(_Attention):
    """There is no output projection, so what a head found stays in its own slice of the token."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True) -> None:
        super().__init__(embed_dim, num_heads, qkv_bias)
        del self.projection


@MultiHeadSelfAttention.misconception("How many different questions can a token ask at once?", HEADS)
class SameWeightsForEveryHead(_Attention):
    """All heads use the weights of the first, so there might as well be one."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, key)[:, :1].expand(-1, self.num_heads, -1, -1)


@MultiHeadSelfAttention.misconception("How many maps of weights did the exercise ask for?", MATMUL)
class WeightsAveragedOverHeads(_Attention):
    """The output is right, but the weights come back as one mean over the heads."""

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        output, weights = super().forward(x, return_weights=True)
        return (output, weights.mean(dim=1)) if return_weights else output


@MultiHeadSelfAttention.misconception("Which axis do the tokens of one image lie along?", MATMUL)
class AttentionOverTheBatch(_Attention):
    """The batch axis is taken for the tokens, so the images of a batch look at each other."""

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        across = super().forward(x.transpose(0, 1))
        assert isinstance(across, Tensor)
        query, key, _ = self.parts(x)
        return (across.transpose(0, 1), weights_of(query, key)) if return_weights else across.transpose(0, 1)


@MultiHeadSelfAttention.misconception("Does a patch have to wait for those to its right?", SHUFFLE)
class CausalHeads(_Attention):
    """A token sees only itself and those before it, as in a language model."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, key, causal=True)


@MultiHeadSelfAttention.misconception(
    "What are the three thirds of qkv's rows for, and what is inside a third?", MATMUL
)
class QkvCutHeadByHead(_Attention):
    """The rows of qkv are read as one (query, key, value) for each head, where all queries come first."""

    def parts(self, x: Tensor) -> list[Tensor]:
        by_head = self.qkv(x).tensor_split(self.num_heads, dim=-1)
        return [torch.stack(part, dim=1) for part in zip(*(each.tensor_split(3, -1) for each in by_head), strict=True)]


@MultiHeadSelfAttention.misconception("Which third of qkv's rows makes the queries?", MATMUL)
class QueryAndKeySwapped(_Attention):
    """The first third of qkv is taken for the keys and the second for the queries."""

    def parts(self, x: Tensor) -> list[Tensor]:
        query, key, value = super().parts(x)
        return [key, query, value]


@MultiHeadSelfAttention.misconception("Where does the argument qkv_bias go?", MATMUL)
class QkvBiasIgnored(_Attention):
    """qkv has a bias whatever qkv_bias says."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True) -> None:
        super().__init__(embed_dim, num_heads)


@MultiHeadSelfAttention.misconception("Which of the two Linears does qkv_bias belong to?", MATMUL)
class QkvBiasForBoth(_Attention):
    """qkv_bias=False takes the projection's bias away too."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True) -> None:
        super().__init__(embed_dim, num_heads, qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim, bias=qkv_bias)


@MultiHeadSelfAttention.misconception("Is the sum with the input part of attention, or of the block around it?", MATMUL)
class ResidualInside(_Attention):
    """The input is added to the output; that belongs to the block, which is the next lesson."""

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        return super().finish(heads, x) + x


@MultiHeadSelfAttention.misconception("Should two calls with the same input agree?", MATMUL)
class DropoutOnTheOutput(_Attention):
    """A dropout that nobody asked for sets some of the output to zero, other entries in every call."""

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        return F.dropout(super().finish(heads, x), 0.1)


@MultiHeadSelfAttention.misconception("What should forward return when nobody asks for the weights?", MATMUL)
class WeightsAlwaysReturned(_Attention):
    """forward returns the pair (output, weights) even when only tokens were asked for."""

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        return super().forward(x, return_weights=True)


@MultiHeadSelfAttention.misconception("Which tensor comes first in the pair that was asked for?", MATMUL)
class WeightsComeFirst(_Attention):
    """Both tensors are right, but the pair is (weights, output)."""

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        result = super().forward(x, return_weights)
        return (result[1], result[0]) if return_weights else result


@MultiHeadSelfAttention.misconception("Which dtype came in, and which one goes out?", MATMUL)
class OutputInFloat32(_Attention):
    """The output is turned into float32, whatever the dtype of the tokens."""

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        return super().finish(heads, x).float()


@MultiHeadSelfAttention.misconception("Who else holds the tensor that you write into?", MATMUL)
class InputUsedAsScratch(_Attention):
    """The result is written into the tokens that came in, so the caller's copy is gone."""

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        output = super().finish(heads, x)
        with torch.no_grad():
            x.copy_(output)
        return output


@MultiHeadSelfAttention.misconception("Where does torch look for a module's parameters?", MATMUL)
class LinearsInPlainList(_Attention):
    """The Linears are kept in a plain Python list, where torch finds no parameters."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True) -> None:
        super().__init__(embed_dim, num_heads, qkv_bias)
        self.layers = [self.qkv, self.projection]
        del self.qkv, self.projection


@MultiHeadSelfAttention.misconception("Which number is divided among the heads, and what is left over?", HEADS)
class LeftoverDimensionsAccepted(_Attention):
    """A num_heads that does not divide embed_dim is accepted without an error when the module is built."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True) -> None:
        super().__init__(embed_dim, 1, qkv_bias)
        self.num_heads = num_heads


@MultiHeadSelfAttention.misconception("Which line takes a tensor out of the graph?", MATMUL)
class WeightsWithoutGradient(_Attention):
    """The weights are cut out of the graph, yet the values alone carry a gradient into part of qkv."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, key).detach()


@MultiHeadSelfAttention.misconception("What becomes of the last third of qkv in your forward?", MATMUL)
class ValueNotProjected(_Attention):
    """The weights mix the tokens themselves, and the third of qkv that makes the values is never read."""

    def parts(self, x: Tensor) -> list[Tensor]:
        query, key, _ = super().parts(x)
        return [query, key, heads_of(x, self.num_heads)]


@MultiHeadSelfAttention.misconception("With which of your tensors have the queries to be compared?", TOKENS)
class QueriesComparedWithQueries(_Attention):
    """The scores are products of queries with queries, so no key is ever read."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, query)


@MultiHeadSelfAttention.misconception("With which of your tensors have the keys to be compared?", TOKENS)
class KeysComparedWithKeys(_Attention):
    """The scores are products of keys with keys, so no query is ever read."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(key, key)


class _InAnotherOrder(_Attention):
    order = (0, 1, 2)

    def parts(self, x: Tensor) -> list[Tensor]:
        thirds = super().parts(x)
        return [thirds[place] for place in self.order]


@MultiHeadSelfAttention.misconception(THIRDS, MATMUL)
class ThirdsReadAsQueryValueKey(_InAnotherOrder):
    """The thirds of qkv are taken for query, value and key; the text has query, key and value."""

    order = (0, 2, 1)


@MultiHeadSelfAttention.misconception(THIRDS, MATMUL)
class ThirdsReadAsValueKeyQuery(_InAnotherOrder):
    """The thirds of qkv are taken for value, key and query; the text has query, key and value."""

    order = (2, 1, 0)


@MultiHeadSelfAttention.misconception(THIRDS, MATMUL)
class ThirdsReadAsKeyValueQuery(_InAnotherOrder):
    """The thirds of qkv are taken for key, value and query; the text has query, key and value."""

    order = (2, 0, 1)


@MultiHeadSelfAttention.misconception(THIRDS, MATMUL)
class ThirdsReadAsValueQueryKey(_InAnotherOrder):
    """The thirds of qkv are taken for value, query and key; the text has query, key and value."""

    order = (1, 2, 0)


@MultiHeadSelfAttention.misconception("How many numbers of a token does one head get to read before qkv?", HEADS)
class HeadsSeeSlicesOfTheInput(_Attention):
    """The tokens are cut into heads before qkv and not after it, so a head reads its own slice of the input alone."""

    def parts(self, x: Tensor) -> list[Tensor]:
        head_dim = x.shape[-1] // self.num_heads
        blocks = torch.block_diag(*[torch.ones(head_dim, head_dim, dtype=x.dtype)] * self.num_heads)
        seen = F.linear(x, self.qkv.weight * blocks.repeat(3, 1).to(x.device), self.qkv.bias)
        return [heads_of(part, self.num_heads) for part in seen.tensor_split(3, dim=-1)]


@MultiHeadSelfAttention.misconception("Which grows like head_dim: the scores' variance, or their size?", ROOT)
class HeadDimWithoutTheRoot(_Attention):
    """The scores are divided by head_dim itself, so the rows come out too flat."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, key, scale=1 / query.shape[-1])


@MultiHeadSelfAttention.misconception("Which number is the root of 8, and what is left of it?", ROOT)
class RootCutToWholeNumbers(_Attention):
    """The root of head_dim is cut to a whole number, which is right for 4 and 64 and wrong for 8 and 32."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, key, scale=1 / math.isqrt(query.shape[-1]))


@MultiHeadSelfAttention.misconception("What does a softmax do to sums, and what does a factor after it?", ROOT)
class ScaledAfterTheSoftmax(_Attention):
    """The scaling stands behind the softmax, so the weights no longer sum to one."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, key, scale=1.0) * query.shape[-1] ** -0.5


@MultiHeadSelfAttention.misconception("Which value has qkv_bias when nobody gives one?", MATMUL)
class NoBiasUnlessAskedFor(_Attention):
    """qkv_bias is False by default, so a module that is built without it has no bias."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = False) -> None:
        super().__init__(embed_dim, num_heads, qkv_bias)


@MultiHeadSelfAttention.misconception("What does squeeze do to a batch of one?", MATMUL)
class BatchOfOneSqueezedAway(_Attention):
    """A squeeze takes the axis of the batch away when there is one image in it."""

    def finish(self, heads: Tensor, x: Tensor) -> Tensor:
        return super().finish(heads, x).squeeze(0)


@MultiHeadSelfAttention.misconception(
    "Which layers get their gradient through the tokens that you have detached?", MATMUL
)
class TokensOutOfTheGraph(_Attention):
    """The tokens are detached before qkv reads them, so no layer below this one ever learns."""

    def parts(self, x: Tensor) -> list[Tensor]:
        return super().parts(x.detach())


@MultiHeadSelfAttention.misconception("Where does torch put a new tensor when you do not say where?", MATMUL)
class MaskMadeOnTheCpu(_Attention):
    """A tensor is made on the CPU in forward and meets the scores, which lie on the GPU when the tokens do."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        nothing_hidden = torch.zeros(query.shape[-2], key.shape[-2], device="cpu", dtype=query.dtype)
        return (query @ key.mT * query.shape[-1] ** -0.5 + nothing_hidden).softmax(-1)


@MultiHeadSelfAttention.misconception("May the next call bring another number of tokens?", MATMUL)
class NumberOfTokensRemembered(_Attention):
    """What was made for the tokens of the first call is kept, and does not fit another number of them."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        if not hasattr(self, "nothing_hidden"):
            self.nothing_hidden = torch.zeros_like(query[0, 0] @ key[0, 0].mT)
        return (query @ key.mT * query.shape[-1] ** -0.5 + self.nothing_hidden).softmax(-1)


@MultiHeadSelfAttention.misconception(
    "Which lines of yours run in evaluation alone, and may they change a number?", MATMUL
)
class WeightsAveragedInEvaluation(_Attention):
    """After `.eval()` every head uses the mean of all heads' weights."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        weights = super().weights(query, key)
        return weights if self.training else weights.mean(1, keepdim=True).expand_as(weights)


@MultiHeadSelfAttention.misconception("Should two calls with the same input agree?", MATMUL)
class WeightsDropped(_Attention):
    """A dropout that nobody asked for sets some weights to zero, other ones in every call."""

    def mix(self, weights: Tensor, value: Tensor) -> Tensor:
        return super().mix(F.dropout(weights, 0.1, self.training), value)


@MultiHeadSelfAttention.misconception(
    "Does the output that comes with the weights go through the projection too?", MATMUL
)
class ProjectionLeftOutBesideTheWeights(_Attention):
    """The output that comes with the weights is returned without going through the projection."""

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        if not return_weights:
            return super().forward(x)
        query, key, value = self.parts(x)
        weights = self.weights(query, key)
        return merged(self.mix(weights, value)), weights
