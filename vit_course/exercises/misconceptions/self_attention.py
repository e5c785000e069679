"""Known mistakes of lesson 03's MultiHeadSelfAttention; the attention inside them is torch's fused kernel."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.exercises.checks.attention import weights_of
from vit_course.exercises.checks.heads import heads_of, merged
from vit_course.exercises.checks.self_attention import MultiHeadSelfAttention
from vit_course.exercises.misconceptions.attention import ASKS, ROOT
from vit_course.exercises.misconceptions.heads import HEADS

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


@MultiHeadSelfAttention.misconception("Who shares out its attention: each query, or each key?", ASKS)
class SoftmaxDownTheQueries(_Attention):
    """The softmax runs over the queries, so a token's weights do not sum to one."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(key, query).mT


@MultiHeadSelfAttention.misconception("Do the heads compete with each other, or do the keys?", ASKS)
class SoftmaxOverTheHeads(_Attention):
    """The softmax runs over the axis of the heads, so they share out each pair of tokens among themselves."""

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
    """The heads stand behind the tokens, so those of one token attend to each other, and no token hears another."""

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
    """The first third of qkv is taken for the keys and the second for the queries, so everybody answers who asks."""

    def parts(self, x: Tensor) -> list[Tensor]:
        query, key, value = super().parts(x)
        return [key, query, value]


@MultiHeadSelfAttention.misconception("Where does the argument qkv_bias go?", MATMUL)
class QkvBiasIgnored(_Attention):
    """qkv has a bias whatever qkv_bias says."""

    def __init__(self, embed_dim: int, num_heads: int, qkv_bias: bool = True) -> None:
        super().__init__(embed_dim, num_heads)


@MultiHeadSelfAttention.misconception("Which of the two Linears does qkv_bias speak of?", MATMUL)
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


@MultiHeadSelfAttention.misconception("Which number has to be shared out among the heads without a rest?", HEADS)
class LeftoverDimensionsAccepted(_Attention):
    """A num_heads that does not divide embed_dim is accepted in silence when the module is built."""

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


@MultiHeadSelfAttention.misconception("Which of your tensors tells what a token has to offer?", ASKS)
class QueriesComparedWithQueries(_Attention):
    """The scores are products of queries with queries, so no key is ever read."""

    def weights(self, query: Tensor, key: Tensor) -> Tensor:
        return weights_of(query, query)


@MultiHeadSelfAttention.misconception("Which of your tensors tells what a token asks?", ASKS)
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


@MultiHeadSelfAttention.misconception("Who learns through the tokens that you have cut off?", MATMUL)
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


@MultiHeadSelfAttention.misconception("Does the way out with the weights pass the projection too?", MATMUL)
class ProjectionLeftOutBesideTheWeights(_Attention):
    """The output that comes with the weights is returned before the projection has seen it."""

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        if not return_weights:
            return super().forward(x)
        query, key, value = self.parts(x)
        weights = self.weights(query, key)
        return merged(self.mix(weights, value)), weights
