"""Known mistakes of lesson 04, the encoder block.

The wrong blocks hold the right parameters and compute with them through torch's functions; what is wrong is
the way in which they put the parts together.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.block import EncoderBlock, attended, normed
from vit_course.exercises.checks.mlp import transformed

ROAD = "04_block, The road and its branches"
ORDER = "04_block, Before or after?"
EPS = "04_block, What eps is for"


class _Block(nn.Module):
    """What the wrong blocks have in common: the right parameters, and the right way wherever none is overridden."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        hidden_dim = int(embed_dim * mlp_ratio)
        sizes = {"attention.qkv": (embed_dim, 3 * embed_dim), "attention.projection": (embed_dim, embed_dim)}
        sizes |= {"mlp.fc1": (embed_dim, hidden_dim), "mlp.fc2": (hidden_dim, embed_dim)}
        for name, size in sizes.items():
            parent, child = name.split(".")
            if not hasattr(self, parent):
                self.add_module(parent, nn.Module())
            self.get_submodule(parent).add_module(child, nn.Linear(*size))
        for name in ("norm1", "norm2"):
            self.add_module(name, nn.LayerNorm(embed_dim))

    def norm(self, number: int, x: Tensor) -> Tensor:
        return normed(self.state_dict(keep_vars=True), f"norm{number}", x)

    def attend(self, x: Tensor) -> Tensor:
        return attended(self.state_dict(keep_vars=True), x, self.num_heads)

    def think(self, x: Tensor) -> Tensor:
        return transformed(self.state_dict(keep_vars=True), x, "mlp.")

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm(1, x))
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("To what do you add: to the stream, or to its normed copy?", ROAD)
class ResidualFromTheNormedStream(_Block):
    """The branches are added to the normed tokens and not to the stream, so each norm rewrites the stream."""

    def forward(self, x: Tensor) -> Tensor:
        for number, branch in ((1, self.attend), (2, self.think)):
            x = self.norm(number, x)
            x = x + branch(x)
        return x


@EncoderBlock.misconception("Is it one branch that leaves the stream alone, or are both?", ROAD)
class SecondNormOnTheStream(_Block):
    """The first branch leaves the stream as it is, but norm2 overwrites it before the second one is added."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(2, x + self.attend(self.norm(1, x)))
        return x + self.think(x)


@EncoderBlock.misconception("What is left of the tokens when both branches give zero?", ROAD)
class NoResidual(_Block):
    """Nothing is added to the stream: the output of each branch replaces it."""

    def forward(self, x: Tensor) -> Tensor:
        return self.think(self.norm(2, self.attend(self.norm(1, x))))


@EncoderBlock.misconception("How many plus signs does the figure have?", ROAD)
class OnlyAttentionIsAdded(_Block):
    """The second addition is missing: what the mlp gives replaces the stream."""

    def forward(self, x: Tensor) -> Tensor:
        return self.think(self.norm(2, x + self.attend(self.norm(1, x))))


@EncoderBlock.misconception("Does the stream run through a norm in your block?", ORDER)
class PostNorm(_Block):
    """The norms stand on the stream, behind each addition, as in the first Transformer."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(1, x + self.attend(x))
        return self.norm(2, x + self.think(x))


@EncoderBlock.misconception("Does a branch norm what it reads, or what it writes?", ORDER)
class NormOnTheBranchOutput(_Block):
    """Each branch reads the raw stream, and its output is normed before it is added."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.norm(1, self.attend(x))
        return x + self.norm(2, self.think(x))


@EncoderBlock.misconception("Which module of yours is made and never used?", ROAD)
class AttentionTwice(_Block):
    """The second branch calls the attention again, and the mlp is never used."""

    def forward(self, x: Tensor) -> Tensor:
        for number in (1, 2):
            x = x + self.attend(self.norm(number, x))
        return x


@EncoderBlock.misconception("Which of the two norms gets no gradient?", ROAD)
class Norm1UsedTwice(_Block):
    """Both branches read norm1 of the stream, and norm2 is never used."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm(1, x))
        return x + self.think(self.norm(1, x))


# both norms start alike, so it trains as "norm1 used twice" does, which was measured
@EncoderBlock.misconception("Which of the two norms gets no gradient?", ROAD, InTraining.HIDDEN)
class Norm2UsedTwice(_Block):
    """Both branches read norm2 of the stream, and norm1 is never used."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm(2, x))
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("How many LayerNorms does your __init__ make?", ROAD)
class OneNormUnderTwoNames(_Block):
    """norm1 and norm2 are one and the same module, so what one learns the other learns."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__(embed_dim, num_heads, mlp_ratio)
        self.add_module("norm2", self.get_submodule("norm1"))


@EncoderBlock.misconception("What does the mlp read: the stream, or a normed copy of it?", ORDER)
class Norm2Forgotten(_Block):
    """The mlp reads the raw stream, and norm2 is never used."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm(1, x))
        return x + self.think(x)


@EncoderBlock.misconception("What stands at the start of each branch in the figure?", ROAD)
class NormsNeverUsed(_Block):
    """Both branches read the raw stream: the norms are made, and forward never calls them."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(x)
        return x + self.think(x)


@EncoderBlock.misconception("Which branch does a token meet first in the figure?", ROAD)
class MlpBeforeAttention(_Block):
    """The mlp's branch comes first and the attention's second."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.think(self.norm(2, x))
        return x + self.attend(self.norm(1, x))


@EncoderBlock.misconception("Does the mlp know what attention has found?", ROAD)
class BothBranchesFromTheInput(_Block):
    """Both branches read the block's input, side by side."""

    def forward(self, x: Tensor) -> Tensor:
        return x + self.attend(self.norm(1, x)) + self.think(self.norm(2, x))


@EncoderBlock.misconception("Is what attention wrote still in the stream at the end?", ROAD)
class SecondResidualFromTheInput(_Block):
    """The mlp's output is added to the block's input, so what attention wrote is dropped from the stream."""

    def forward(self, x: Tensor) -> Tensor:
        return x + self.think(self.norm(2, x + self.attend(self.norm(1, x))))


@EncoderBlock.misconception("What does the second norm read: the branch, or the whole stream?", ROAD)
class MlpReadsAttentionAlone(_Block):
    """The mlp reads what attention wrote, and not the stream that it was added to."""

    def forward(self, x: Tensor) -> Tensor:
        attention = self.attend(self.norm(1, x))
        return x + attention + self.think(self.norm(2, attention))


@EncoderBlock.misconception("What would you see if you ran the block twice on the same tokens?", ROAD)
class DropoutNobodyAskedFor(_Block):
    """Both branches pass a dropout that the exercise does not ask for, so every run gives another answer."""

    def attend(self, x: Tensor) -> Tensor:
        return F.dropout(super().attend(x), 0.1)

    def think(self, x: Tensor) -> Tensor:
        return F.dropout(super().think(x), 0.1)


@EncoderBlock.misconception("Which eps does the exercise ask for, and which one is torch's default?", EPS)
class TheEpsOfTorch(_Block):
    """The norms keep torch's own eps of 1e-5, which is not the one that ViT's weights were trained with."""

    def norm(self, number: int, x: Tensor) -> Tensor:
        return normed(self.state_dict(keep_vars=True), f"norm{number}", x, 1e-5)


@EncoderBlock.misconception("What is the difference between x = x + y and x += y for the one who passed you x?", ROAD)
class StreamChangedInPlace(_Block):
    """The branches are added by +=, which writes into the caller's tokens and into what the gradient needs."""

    def forward(self, x: Tensor) -> Tensor:
        x += self.attend(self.norm(1, x))
        x += self.think(self.norm(2, x))
        return x


@EncoderBlock.misconception("Which dtype has a new tensor when nobody names one?", ROAD)
class StreamInFloat32(_Block):
    """The branches are added up in a new tensor, which is float32 whatever the tokens are."""

    def forward(self, x: Tensor) -> Tensor:
        stream = torch.zeros(x.shape) + x.float()
        stream += self.attend(self.norm(1, x))
        stream += self.think(self.norm(2, stream.to(x.dtype)))
        return stream


@EncoderBlock.misconception("Where did you use mlp_ratio?", ROAD)
class RatioFixedAtFour(_Block):
    """The hidden layer is 4 · embed_dim wide, whatever mlp_ratio says."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__(embed_dim, num_heads)


@EncoderBlock.misconception("Which attributes of self does nn.Module look at when it lists its parameters?", ROAD)
class LayersInPlainList(_Block):
    """The layers lie where nn.Module does not look, in a plain list or a local variable, so it has no parameters."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__(embed_dim, num_heads, mlp_ratio)
        self.layers = [(name, self._modules.pop(name)) for name in ("attention", "mlp", "norm1", "norm2")]

    def forward(self, x: Tensor) -> Tensor:
        return x


@EncoderBlock.misconception("When does an optimiser ask a model for its parameters?", ROAD)
class LayersMadeInForward(nn.Module):
    """The layers are made in forward, so the block has no parameters until it has run."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__()
        self.sizes = (embed_dim, num_heads, mlp_ratio)

    def forward(self, x: Tensor) -> Tensor:
        for name, child in _Block(*self.sizes).named_children():
            self.add_module(name, child)
        return x


@EncoderBlock.misconception("By which way does the gradient get from the last block down to the first?", ROAD)
class StreamOutOfTheGraph(_Block):
    """The stream is detached before something is added to it, so the gradient's straight way down is cut."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach() + self.attend(self.norm(1, x))
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("Who learns through the tokens that you have cut off?", ROAD)
class TokensOutOfTheGraph(_Block):
    """The tokens are detached on the way in, so no block below this one ever learns."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.detach())


@EncoderBlock.misconception("What does squeeze do to a batch of one?", ROAD)
class BatchOfOneSqueezedAway(_Block):
    """A squeeze takes the axis of the batch away when there is one image in it."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).squeeze(0)


@EncoderBlock.misconception("Which value has mlp_ratio when nobody gives one?", ROAD)
class AnotherRatioByDefault(_Block):
    """The hidden layer is 2 · embed_dim wide where no mlp_ratio is given."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 2.0) -> None:
        super().__init__(embed_dim, num_heads, mlp_ratio)


@EncoderBlock.misconception("What does the attention read: the stream, or a normed copy of it?", ORDER)
class Norm1Forgotten(_Block):
    """The attention reads the raw stream, and norm1 is never used."""

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(x)
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("What is left of the tokens when the attention gives zero?", ROAD)
class OnlyTheMlpIsAdded(_Block):
    """The first addition is missing: what the attention gives replaces the stream."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.attend(self.norm(1, x))
        return x + self.think(self.norm(2, x))


@EncoderBlock.misconception("Which norm belongs to which branch?", ROAD)
class NormsTradePlaces(_Block):
    """The attention reads norm2 of the stream and the mlp norm1, so loaded weights land in the wrong branch."""

    def norm(self, number: int, x: Tensor) -> Tensor:
        return super().norm(3 - number, x)


@EncoderBlock.misconception("Which lines of yours run in evaluation alone, and may they change a number?", ROAD)
class Norm2SkippedInEvaluation(_Block):
    """After `.eval()` the mlp reads the raw stream."""

    def norm(self, number: int, x: Tensor) -> Tensor:
        return x if number == 2 and not self.training else super().norm(number, x)


@EncoderBlock.misconception("Which axis stands first in what you return, and which stood first in x?", ROAD)
class TokensLeftInFront(_Block):
    """The axes of batch and tokens are swapped on the way, and never swapped back."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).transpose(0, 1)
