"""`Mlp`: two Linears and a GELU.

The oracle is ``F.linear``, and for the exact GELU the normal distribution ``torch.special.ndtr``. The wrong MLPs
hold the right parameters and use them in a wrong way.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_gradients_of_inputs, gradient_of
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l04_block import LESSON
from vit_course.exercises.l04_block.layer_norm import TOKEN_AXES
from vit_course.exercises.repeatability import expect_same_in_every_run

Weights = Mapping[str, Tensor]

Mlp = Exercise("Mlp", LESSON, is_class=True)


def transformed(weights: Weights, x: Tensor, prefix: str = "") -> Tensor:
    """The oracle of the MLP; its parameters start with ``prefix``."""
    hidden = F.linear(x, weights[f"{prefix}fc1.weight"], weights[f"{prefix}fc1.bias"])
    open_gate = torch.special.ndtr(hidden)
    return F.linear(hidden * open_gate, weights[f"{prefix}fc2.weight"], weights[f"{prefix}fc2.bias"])


def expect_gradients(module: StudentModule, output: Tensor) -> None:
    """Fail when ``output`` does not depend on one of the module's parameters."""
    if names := module.without_gradient(output):
        raise Failure(
            f"no gradient reaches {', '.join(names)}",
            "one for every parameter",
            "Is each of your layers used in forward, and does what it computes end up in the result?",
        )


def _mlp(student: Student, probe: Probe, embed_dim: int = 5, hidden_dim: int = 11) -> tuple[StudentModule, Weights]:
    module = student.build(embed_dim, hidden_dim)
    shapes = {
        "fc1.weight": (hidden_dim, embed_dim),
        "fc1.bias": (hidden_dim,),
        "fc2.weight": (embed_dim, hidden_dim),
        "fc2.bias": (embed_dim,),
    }
    weights = probe.weights(shapes)
    module.load(weights)
    return module, weights


@Mlp.check(guard=True)
def its_parameters_are_two_linears(student: Student, probe: Probe) -> None:
    """Its parameters are those of two Linears: fc1 to hidden_dim, fc2 back to embed_dim."""
    for embed_dim, hidden_dim in ((5, 11), (8, 3)):
        _mlp(student, probe, embed_dim, hidden_dim)


@Mlp.check(needs=its_parameters_are_two_linears, guard=True)
def it_gives_the_same_twice(student: Student, probe: Probe) -> None:
    """The same tokens give the same result twice."""
    module, weights = _mlp(student, probe)
    x = probe.normal(2, 3, 5)
    expect_same_in_every_run(student, module, weights, x)


@Mlp.check(needs=it_gives_the_same_twice)
def a_gelu_stands_between_the_linears(student: Student, probe: Probe) -> None:
    """A token goes through fc1, a GELU and fc2, in that order."""
    module, weights = _mlp(student, probe)
    x = 2 * probe.normal(2, 3, 5)
    look = "Follow one number from fc1 to the result: what is done to it on the way, and what if it is negative?"
    expect_equal(module(x), transformed(weights, x), "the MLP's output", TOKEN_AXES, look=look)


@Mlp.check(needs=a_gelu_stands_between_the_linears, worth=0.5)
def any_tokens_and_either_mode_will_do(student: Student, probe: Probe) -> None:
    """One token, a batch of one and a grid work too, while training and after `.eval()`."""
    module, weights = _mlp(student, probe)
    for change, mode in ((module.train, "train"), (module.eval, "eval")):
        change()
        for front in ((), (1, 4), (4, 1), (2, 3, 4)):
            x = probe.normal(*front, 5)
            name = f"after {mode}() the output for a tensor of shape {tuple(x.shape)}"
            look = "Does your forward ask how many axes there are, or whether it trains?"
            expect_equal(module(x), transformed(weights, x), name, look=look)


@Mlp.check(needs=a_gelu_stands_between_the_linears, worth=0.5)
def the_gradient_reaches_the_tokens(student: Student, probe: Probe) -> None:
    """The tokens that go in get their gradient."""
    module, weights = _mlp(student, probe)
    x = probe.normal(2, 3, 5)
    wanted = gradient_of(lambda tokens: transformed(weights, tokens), x)
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the tokens"])


@Mlp.check(needs=it_gives_the_same_twice)
def nothing_follows_the_last_linear(student: Student, probe: Probe) -> None:
    """What fc2 gives is the result: with its weight at zero, the result is its bias."""
    module, weights = _mlp(student, probe)
    weights = {**weights, "fc2.weight": torch.zeros(5, 11), "fc2.bias": torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0])}
    module.load(weights)
    look = "fc2's weight is zero here. What else than fc2's bias finds its way into your result?"
    x = probe.normal(2, 3, 5)
    expect_equal(module(x), transformed(weights, x), "the MLP's output", TOKEN_AXES, look=look)


@Mlp.check(needs=it_gives_the_same_twice)
def the_gelu_is_the_exact_one(student: Student, probe: Probe) -> None:
    """The GELU is the exact one; in float64 an approximation shows."""
    module, weights = _mlp(student, probe)
    module.double()
    x = 2 * probe.normal(2, 3, 5, dtype=torch.float64)
    doubled = {name: tensor.double() for name, tensor in weights.items()}
    look = "If the checks above pass, what is left is the gate. Which forms of GELU does torch know?"
    expect_equal(module(x), transformed(doubled, x), "the MLP's output in float64", TOKEN_AXES, look=look)


@Mlp.check(needs=its_parameters_are_two_linears)
def every_layer_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches both Linears."""
    module, _ = _mlp(student, probe)
    expect_gradients(module, expect_tensor(module(probe.normal(2, 3, 5)), (2, 3, 5), "the MLP's output"))


Mlp.example("""
>>> tuple(Mlp(embed_dim=6, hidden_dim=24)(torch.zeros(2, 5, 6)).shape)
(2, 5, 6)
""")


GATE = "04_block, A soft gate: GELU"
ROAD = "04_block, The residual stream and its branches"


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


@Mlp.misconception("If no number of a branch can be below -0.17, what can the branch not add?", GATE)
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


@Mlp.misconception("Which layers get their gradient through the tokens that you have detached?", GATE)
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
