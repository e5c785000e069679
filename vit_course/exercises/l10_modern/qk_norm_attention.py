"""`QKNormAttention`: attention whose queries and keys are normalized, head by head.

The oracle writes every step out. The wrong modules hold the right parameters and use them in a wrong way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import (
    expect_gradients_of_inputs,
    expect_left_alone,
    expect_value_error,
    gradient_of,
    located,
)
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from vit_course.exercises.l03_attention.split_heads.claims import TOKEN_AXES, heads_of, merged
from vit_course.exercises.l04_block.mlp.claims import expect_gradients
from vit_course.exercises.l10_modern import LESSON
from vit_course.exercises.repeatability import expect_one_kind, kinds_of_results

Weights = Mapping[str, Tensor]
PARTS = ("qkv", "query_norm", "key_norm", "projection")

QKNormAttention = Exercise("QKNormAttention", LESSON, is_class=True, in_training=InTraining.HIDDEN)


def shapes_of(embed_dim: int, num_heads: int) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter by its name."""
    head_dim = embed_dim // num_heads
    return {
        "qkv.weight": (3 * embed_dim, embed_dim),
        "qkv.bias": (3 * embed_dim,),
        **{f"{name}.{part}": (head_dim,) for name in ("query_norm", "key_norm") for part in ("weight", "bias")},
        "projection.weight": (embed_dim, embed_dim),
        "projection.bias": (embed_dim,),
    }


def steps(weights: Weights, x: Tensor, num_heads: int) -> dict[str, Tensor]:
    """The oracle: what the parts are given and give, in their order."""
    qkv = F.linear(x, weights["qkv.weight"], weights["qkv.bias"])
    query, key, value = (heads_of(part, num_heads) for part in qkv.tensor_split(3, dim=-1))
    normed = [_normed(each, weights, name) for each, name in ((query, "query_norm"), (key, "key_norm"))]
    scores = torch.einsum("bhqd,bhkd->bhqk", *normed) / query.shape[-1] ** 0.5
    heads = merged(torch.einsum("bhqk,bhkd->bhqd", scores.softmax(dim=-1), value))
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


def _normed(x: Tensor, weights: Weights, name: str) -> Tensor:
    centered = x - x.mean(dim=-1, keepdim=True)
    deviation = (centered.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    return centered / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def loaded(student: Student, probe: Probe, embed_dim: int = 12, num_heads: int = 3) -> tuple[StudentModule, Weights]:
    """The student's module with random weights, and these."""
    module = student.build(embed_dim, num_heads)
    weights = probe.weights(shapes_of(embed_dim, num_heads))
    module.load(weights)
    return module, weights


@QKNormAttention.check(guard=True)
def its_parameters_are_two_linears_and_two_norms(student: Student, probe: Probe) -> None:
    """Its parameters are those of qkv, of projection, and of two LayerNorms over head_dim."""
    for embed_dim, num_heads in ((12, 3), (8, 4)):
        loaded(student, probe, embed_dim, num_heads)


@QKNormAttention.check(needs=its_parameters_are_two_linears_and_two_norms, guard=True)
def tokens_go_in_and_tokens_come_out(student: Student, probe: Probe) -> None:
    """forward gives tokens of the same shape, and for the same tokens the same result twice."""
    module, _ = loaded(student, probe)
    for batch, tokens in ((2, 5), (1, 7)):
        x = probe.normal(batch, tokens, 12)
        expect_tensor(module(x), (batch, tokens, 12), "forward's output")
    x = probe.normal(2, 5, 12)
    expect_one_kind(kinds_of_results(student, lambda: module(x), x.shape))


@QKNormAttention.check(needs=tokens_go_in_and_tokens_come_out)
def the_output_is_right(student: Student, probe: Probe) -> None:
    """The output is right, for several numbers of heads and of tokens."""
    for embed_dim, num_heads, tokens in ((12, 3, 5), (8, 2, 6)):
        expect_output(student, probe, embed_dim, num_heads, tokens)


def expect_output(student: Student, probe: Probe, embed_dim: int, num_heads: int, tokens: int) -> None:
    """Fail unless the output for random tokens and weights is the oracle's."""
    module, weights = loaded(student, probe, embed_dim, num_heads)
    x = probe.normal(2, tokens, embed_dim)
    right = steps(weights, x, num_heads)
    where = located(module, right, PARTS, x, axes=TOKEN_AXES)
    look = "Which of query, key and value go through a norm, and which shape have they when they do?"
    expect_equal(module(x), right["projection:out"], f"the output with {num_heads} heads", TOKEN_AXES, where, look)


@QKNormAttention.check(needs=tokens_go_in_and_tokens_come_out)
def large_tokens_do_not_sharpen_it(student: Student, probe: Probe) -> None:
    """Queries and keys that are a hundred times as large give the same weights."""
    expect_no_sharpening(student, probe, 12, 3)


def expect_no_sharpening(student: Student, probe: Probe, embed_dim: int, num_heads: int) -> None:
    """Fail unless the output stays where the queries' and keys' rows of qkv grow a hundred times."""
    module, weights = loaded(student, probe, embed_dim, num_heads)
    large = torch.cat([torch.full((2 * embed_dim,), 100.0), torch.ones(embed_dim)])
    grown = {**weights, "qkv.weight": weights["qkv.weight"] * large[:, None], "qkv.bias": weights["qkv.bias"] * large}
    module.load(grown)
    x = probe.normal(2, 5, embed_dim)
    look = "What does a norm do to the size of what goes in? Which tensors go through yours?"
    name = "the output with queries and keys a hundred times as large"
    expect_equal(module(x), steps(grown, x, num_heads)["projection:out"], name, TOKEN_AXES, look=look)


@QKNormAttention.check(needs=its_parameters_are_two_linears_and_two_norms)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches every parameter, those of both norms too."""
    module, _ = loaded(student, probe)
    x = probe.normal(2, 5, 12)
    expect_gradients(module, expect_tensor(module(x), x.shape, "forward's output"))


@QKNormAttention.check(needs=the_output_is_right, worth=0.5)
def the_gradient_reaches_the_tokens(student: Student, probe: Probe) -> None:
    """The tokens get their gradient, through queries, keys and values."""
    module, weights = loaded(student, probe)
    x = probe.normal(2, 5, 12)
    wanted = gradient_of(lambda tokens: steps(weights, tokens, 3)["projection:out"], x)
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the tokens"])


@QKNormAttention.check(needs=the_output_is_right, worth=0.5, guard=True)
def either_mode_and_float64_will_do(student: Student, probe: Probe) -> None:
    """The output is the same after `.eval()`, and right in float64."""
    module, weights = loaded(student, probe)
    x = probe.normal(2, 5, 12)
    module.eval()
    expect_equal(module(x), steps(weights, x, 3)["projection:out"], "after eval() the output", TOKEN_AXES)
    module.double()
    doubled = {name: each.double() for name, each in weights.items()}
    expect_equal(module(x.double()), steps(doubled, x.double(), 3)["projection:out"], "the output in float64")


@QKNormAttention.check(needs=tokens_go_in_and_tokens_come_out, worth=0.5, guard=True)
def the_tokens_are_left_alone(student: Student, probe: Probe) -> None:
    """The tokens that go in are not changed."""
    module, _ = loaded(student, probe)
    module(probe.normal(2, 5, 12))
    expect_left_alone(student)


@QKNormAttention.check(guard=True)
def a_number_of_heads_that_does_not_fit_is_refused(student: Student, probe: Probe) -> None:
    """If num_heads does not divide embed_dim, building it raises a ValueError that names both numbers."""
    for embed_dim, num_heads in ((10, 4), (14, 3)):
        described = f"embed_dim {embed_dim} with {num_heads} heads"
        expect_value_error(student, (embed_dim, num_heads), (embed_dim, num_heads), described)


QKNormAttention.example("""
>>> attention = QKNormAttention(embed_dim=12, num_heads=3)
>>> tuple(attention(torch.zeros(2, 5, 12)).shape), tuple(attention.query_norm.weight.shape)
((2, 5, 12), (4,))
""")


NORM = "10_modern, Scores that stay bounded"


class _Wrong(nn.Module):
    """What the wrong ones have in common: the right parameters, and a right step wherever none is overridden."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.refuse(embed_dim, num_heads)
        self.heads = num_heads
        for name, sizes in (("qkv", (embed_dim, 3 * embed_dim)), ("projection", (embed_dim, embed_dim))):
            self.add_module(name, nn.Linear(*sizes))
        for name in ("query_norm", "key_norm"):
            self.add_module(name, nn.LayerNorm(self.normalized(embed_dim)))

    def refuse(self, embed_dim: int, num_heads: int) -> None:
        if embed_dim % num_heads:
            raise ValueError(f"{embed_dim} numbers cannot be shared by {num_heads} heads")

    def normalized(self, embed_dim: int) -> int:
        return embed_dim // self.heads

    def norm(self, name: str, x: Tensor) -> Tensor:
        return self.get_submodule(name)(x)

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (heads_of(part, self.heads) for part in self.get_submodule("qkv")(x).split(x.shape[-1], -1))
        return query, key, value

    def normed(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.norm("query_norm", query), self.norm("key_norm", key), value

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return torch.einsum("bhqd,bhkd->bhqk", query, key) * query.shape[-1] ** -0.5

    def weights(self, scores: Tensor) -> Tensor:
        return scores.softmax(dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.normed(*self.parts(x))
        heads = torch.einsum("bhqk,bhkd->bhqd", self.weights(self.scores(query, key)), value)
        return self.get_submodule("projection")(merged(heads))


@QKNormAttention.misconception("Over how many numbers does one head's norm go?", NORM)
class NormOverTheWholeEmbedding(_Wrong):
    """The norms go over embed_dim, before the heads are split, so that heads share one mean and one deviation."""

    def normalized(self, embed_dim: int) -> int:
        return embed_dim

    def normed(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        whole = [
            heads_of(self.norm(name, merged(each)), self.heads)
            for name, each in (("query_norm", query), ("key_norm", key))
        ]
        return whole[0], whole[1], value


@QKNormAttention.misconception("Over which axes do mean and deviation go: one head's, or all of them?", NORM)
class DeviationOverAllHeads(_Wrong):
    """Mean and deviation go over all heads of a token, and only weight and bias over one head."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = (self.get_parameter(f"{name}.{part}") for part in ("weight", "bias"))
        return heads_of(F.layer_norm(merged(x), (merged(x).shape[-1],)), self.heads) * weight + bias


@QKNormAttention.misconception("Which two tensors make the scores?", NORM)
class ValuesNormedToo(_Wrong):
    """The values go through the norm of the keys as well, so they lose their size."""

    def normed(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.norm("query_norm", query), self.norm("key_norm", key), self.norm("key_norm", value)


@QKNormAttention.misconception("Which of your two norms is never called?", NORM)
class KeysNotNormed(_Wrong):
    """The queries are normalized and the keys are not, so scores grow with the keys."""

    def normed(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.norm("query_norm", query), key, value


@QKNormAttention.misconception("Which of your two norms is never called?", NORM)
class QueriesNotNormed(_Wrong):
    """The keys are normalized and the queries are not, so scores grow with the queries."""

    def normed(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return query, self.norm("key_norm", key), value


@QKNormAttention.misconception("What do your norms do in forward?", NORM)
class NormsNeverCalled(_Wrong):
    """The norms are made and never called: this is the attention of lesson 03."""

    def normed(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return query, key, value


@QKNormAttention.misconception("Which norm do the keys go through?", NORM)
class OneNormForBoth(_Wrong):
    """Queries and keys go through the same norm, and the other one is never used."""

    def normed(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.norm("query_norm", query), self.norm("query_norm", key), value


@QKNormAttention.misconception("Which norm is for which tensor?", NORM)
class NormsSwapped(_Wrong):
    """The queries go through key_norm and the keys through query_norm."""

    def normed(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.norm("key_norm", query), self.norm("query_norm", key), value


@QKNormAttention.misconception("In which order does qkv give its three parts?", NORM)
class KeysBeforeQueries(_Wrong):
    """The first third of what qkv gives is taken for the keys, and the second for the queries."""

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = super().parts(x)
        return key, query, value


@QKNormAttention.misconception("Are normalized queries and keys of length 1?", NORM)
class NotScaled(_Wrong):
    """The division by the root of head_dim is left out, as if a norm made it unnecessary."""

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return torch.einsum("bhqd,bhkd->bhqk", query, key)


@QKNormAttention.misconception("Where does the mean of a LayerNorm go?", NORM)
class LengthsAlone(_Wrong):
    """Queries and keys are divided by their root mean square, and their means stay: that is RMSNorm."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = (self.get_parameter(f"{name}.{part}") for part in ("weight", "bias"))
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-5) * weight + bias


@QKNormAttention.misconception("Over which tokens do mean and deviation go?", NORM)
class NormOverTheTokens(_Wrong):
    """Mean and deviation are taken over the tokens, so the result for a token depends on the other tokens."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = (self.get_parameter(f"{name}.{part}") for part in ("weight", "bias"))
        return F.layer_norm(x.mT, (x.shape[-2],)).mT * weight + bias


@QKNormAttention.misconception("Along which axis do the weights of one query sum to 1?", NORM, InTraining.WORSE)
class SoftmaxOverQueries(_Wrong):
    """The softmax goes over the queries and not over the keys."""

    def weights(self, scores: Tensor) -> Tensor:
        return scores.softmax(dim=-2)


@QKNormAttention.misconception("What does the exercise normalize: queries and keys, or their dot products?", NORM)
class ScoresNormed(_Wrong):
    """The scores are normalized, and queries and keys go through their norms as well."""

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        scores = super().scores(query, key)
        return F.layer_norm(scores, (scores.shape[-1],))


@QKNormAttention.misconception("Does a gradient reach the norms?", NORM, InTraining.WORSE)
class NormsOutOfTheGraph(_Wrong):
    """The outputs of the norms are detached, so neither the norms nor queries and keys learn."""

    def norm(self, name: str, x: Tensor) -> Tensor:
        return super().norm(name, x).detach()


@QKNormAttention.misconception("Which part mixes what the heads have found?", NORM)
class NoProjection(_Wrong):
    """The output projection is made and never called."""

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.normed(*self.parts(x))
        return merged(torch.einsum("bhqk,bhkd->bhqd", self.weights(self.scores(query, key)), value))


@QKNormAttention.misconception("What does forward give back: tokens, or tokens and weights?", NORM, InTraining.STOPS)
class WeightsReturnedToo(_Wrong):
    """The weights come back beside the tokens, but only the tokens were asked for."""

    def forward(self, x: Tensor) -> Any:
        query, key, _ = self.normed(*self.parts(x))
        return super().forward(x), self.weights(self.scores(query, key))


@QKNormAttention.misconception("Which of your steps depends on the mode of the module?", NORM)
class NormsInTrainingAlone(_Wrong):
    """The norms are left out in evaluation mode."""

    def normed(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return super().normed(query, key, value) if self.training else (query, key, value)


@QKNormAttention.misconception("Whose tensor are the tokens that forward is given?", NORM)
class TokensChangedInPlace(_Wrong):
    """The given tokens are overwritten with the result."""

    def forward(self, x: Tensor) -> Tensor:
        output = super().forward(x)
        x.data.copy_(output.data)
        return output


@QKNormAttention.misconception("What is left over when 10 numbers are shared by 4 heads?", NORM, InTraining.UNSEEN)
class HeadsNotCounted(_Wrong):
    """Sizes that do not fit are accepted without an error when the module is made."""

    def refuse(self, embed_dim: int, num_heads: int) -> None:
        self.accepted = (embed_dim, num_heads)
