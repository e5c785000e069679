"""`Mlp`: two Linears and a GELU.

The oracle is ``F.linear``, and for the exact GELU the normal distribution ``torch.special.ndtr``. The wrong MLPs
hold the right parameters and use them in a wrong way.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_gradients_of_inputs, gradient_of
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l04_block import LESSON
from vit_course.exercises.l04_block.layer_norm.claims import TOKEN_AXES
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


read_mistakes(Mlp, __name__)
