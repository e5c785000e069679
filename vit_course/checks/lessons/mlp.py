"""Public checks of lesson 04: the MLP.

The oracle is ``F.linear``, and for the exact GELU the normal distribution ``torch.special.ndtr``.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.checks.compare import close, expect_equal, expect_tensor
from vit_course.checks.exercise import Exercise
from vit_course.checks.lessons.layer_norm import LESSON, TOKEN_AXES
from vit_course.checks.probes import Probe
from vit_course.checks.student import Student
from vit_course.checks.student_module import StudentModule
from vit_course.checks.verdict import Failure

Weights = Mapping[str, Tensor]

Mlp = Exercise("Mlp", LESSON, is_class=True)


def transformed(weights: Weights, x: Tensor, prefix: str = "") -> Tensor:
    """The oracle of the MLP; its parameters start with ``prefix``."""
    hidden = F.linear(x, weights[f"{prefix}fc1.weight"], weights[f"{prefix}fc1.bias"])
    open_gate = torch.special.ndtr(hidden)
    return F.linear(hidden * open_gate, weights[f"{prefix}fc2.weight"], weights[f"{prefix}fc2.bias"])


def expect_same_twice(student: Student, module: StudentModule, x: Tensor, name: str) -> None:
    """Fail when a module gives two results, called ``name``, for the same tokens x (batch, tokens, embed_dim)."""
    first, second = (expect_tensor(module(x), x.shape, name) for _ in range(2))
    same = close(first, second)
    # the numbers themselves would be others for every place that a dropout can have
    student.record[:] = [("same twice", same)]
    if not same:
        look = "Which layer of yours draws random numbers, and who asked for it?"
        raise Failure("the same tokens give two different results", "one and the same", look)


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


@Mlp.check
def its_parameters_are_two_linears(student: Student, probe: Probe) -> None:
    """Its parameters are those of two Linears: fc1 to hidden_dim, fc2 back to embed_dim."""
    for embed_dim, hidden_dim in ((5, 11), (8, 3)):
        _mlp(student, probe, embed_dim, hidden_dim)


@Mlp.check(needs=its_parameters_are_two_linears)
def it_gives_the_same_twice(student: Student, probe: Probe) -> None:
    """The same tokens give the same result twice."""
    module, _ = _mlp(student, probe)
    expect_same_twice(student, module, probe.normal(2, 3, 5), "the MLP's output")


@Mlp.check(needs=it_gives_the_same_twice)
def a_gelu_stands_between_the_linears(student: Student, probe: Probe) -> None:
    """A token goes through fc1, a GELU and fc2, in that order."""
    module, weights = _mlp(student, probe)
    x = 2 * probe.normal(2, 3, 5)
    look = "Follow one number from fc1 to the result: what is done to it on the way, and what if it is negative?"
    expect_equal(module(x), transformed(weights, x), "the MLP's output", TOKEN_AXES, look=look)


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
