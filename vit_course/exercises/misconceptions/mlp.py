"""Known mistakes of lesson 04, the MLP. The wrong MLPs hold the right parameters and use them in a wrong way."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.exercises.checks.mlp import Mlp

GATE = "04_block, A soft gate"
ROAD = "04_block, The road and its branches"


class _Linears(nn.Module):
    """What the wrong MLPs have in common: the right parameters, and a right step wherever none is overridden."""

    def __init__(self, embed_dim: int, hidden_dim: int) -> None:
        super().__init__()
        for name, sizes in (("fc1", (embed_dim, hidden_dim)), ("fc2", (hidden_dim, embed_dim))):
            self.add_module(name, nn.Linear(*sizes))

    def up(self, x: Tensor) -> Tensor:
        return F.linear(x, self.get_parameter("fc1.weight"), self.get_parameter("fc1.bias"))

    def down(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.get_parameter("fc2.weight"), self.get_parameter("fc2.bias"))

    def begin(self, x: Tensor) -> Tensor:
        return x

    def gate(self, hidden: Tensor) -> Tensor:
        return F.gelu(hidden)

    def end(self, result: Tensor, x: Tensor) -> Tensor:
        return result

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self.down(self.gate(self.up(self.begin(x)))), x)


@Mlp.misconception("What does a branch look like whose every number is above -0.17?", GATE)
class ActivationAfterTheLastLayer(_Linears):
    """A second GELU follows fc2, so the MLP can hardly write a negative number."""

    def end(self, result: Tensor, x: Tensor) -> Tensor:
        return F.gelu(super().end(result, x))


@Mlp.misconception("What is a linear map after a linear map?", GATE)
class NoActivation(_Linears):
    """The two Linears follow one another directly, and together they are no more than one."""

    def gate(self, hidden: Tensor) -> Tensor:
        return hidden


@Mlp.misconception("What does the activation give for -0.5?", GATE)
class ReluForGelu(_Linears):
    """The activation is a ReLU, a hard gate."""

    def gate(self, hidden: Tensor) -> Tensor:
        return hidden.clamp_min(0)


@Mlp.misconception("Which form of GELU does torch use when its argument approximate is left alone?", GATE)
class TheTanhForm(_Linears):
    """The GELU is its tanh approximation, which differs from it in the fourth decimal."""

    def gate(self, hidden: Tensor) -> Tensor:
        return F.gelu(hidden, approximate="tanh")


@Mlp.misconception("Is the gate of a GELU a sigmoid, or the normal distribution's?", GATE)
class SigmoidForTheGate(_Linears):
    """The gate is the sigmoid of 1.702 · x, a quick approximation of GELU that is off by up to 0.02."""

    def gate(self, hidden: Tensor) -> Tensor:
        return hidden * torch.sigmoid(1.702 * hidden)


@Mlp.misconception("Is the gate of a GELU as steep as a plain sigmoid?", GATE)
class SiluForGelu(_Linears):
    """The activation is x · sigmoid(x), known as SiLU or Swish: a softer gate than GELU's."""

    def gate(self, hidden: Tensor) -> Tensor:
        return F.silu(hidden)


@Mlp.misconception("Does the gate belong before fc1 or behind it?", GATE)
class ActivationBeforeTheFirstLayer(_Linears):
    """The activation comes first, on the token itself, and the two Linears follow directly."""

    def begin(self, x: Tensor) -> Tensor:
        return F.gelu(x)

    def gate(self, hidden: Tensor) -> Tensor:
        return hidden


@Mlp.misconception("What is a linear map after a linear map, before your activation comes?", GATE)
class ActivationAfterBothLayers(_Linears):
    """The one activation comes after fc2, and nothing stands between the Linears."""

    def gate(self, hidden: Tensor) -> Tensor:
        return hidden

    def end(self, result: Tensor, x: Tensor) -> Tensor:
        return F.gelu(super().end(result, x))


@Mlp.misconception("Who adds a branch to the stream, the MLP or the block?", ROAD)
class ResidualInsideTheMlp(_Linears):
    """The MLP adds its own input to its result; that addition is the block's business."""

    def end(self, result: Tensor, x: Tensor) -> Tensor:
        return x + super().end(result, x)


@Mlp.misconception("Where did you use hidden_dim?", GATE)
class HiddenDimFixedAtFour(_Linears):
    """The hidden layer is 4 · embed_dim wide, whatever hidden_dim says."""

    def __init__(self, embed_dim: int, hidden_dim: int) -> None:
        super().__init__(embed_dim, 4 * embed_dim)


@Mlp.misconception("Which line cuts a layer off from the gradient?", GATE)
class FirstLayerDetached(_Linears):
    """The hidden layer is taken out of the graph by detach or .data, so fc1 never learns."""

    def up(self, x: Tensor) -> Tensor:
        return super().up(x).detach()


@Mlp.misconception("What would you see if you ran the MLP twice on the same tokens?", GATE)
class DropoutNotAskedFor(_Linears):
    """The MLP has a dropout that the exercise does not ask for, so each run gives another answer."""

    def end(self, result: Tensor, x: Tensor) -> Tensor:
        return F.dropout(super().end(result, x), 0.1)


@Mlp.misconception("Who learns through the tokens that you have cut off?", GATE)
class TokensOutOfTheGraph(_Linears):
    """The tokens are detached before fc1 reads them, so no layer below the MLP ever learns."""

    def begin(self, x: Tensor) -> Tensor:
        return x.detach()


@Mlp.misconception("What does squeeze do to a batch of one?", ROAD)
class BatchOfOneSqueezedAway(_Linears):
    """A squeeze takes the axis of the batch away when there is one image in it."""

    def end(self, result: Tensor, x: Tensor) -> Tensor:
        return super().end(result, x).squeeze(0)


@Mlp.misconception("How many axes had x, and how many has what you return?", ROAD)
class TokensLeftInOneLongRow(_Linears):
    """The leading axes are joined to reach each token, and never parted again."""

    def end(self, result: Tensor, x: Tensor) -> Tensor:
        return super().end(result, x).reshape(-1, x.shape[-1])
