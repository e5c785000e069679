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
from exercise_kit.engine.expect import compute_gradient, expect_gradients_of_inputs
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l04_block import LESSON
from vit_course.exercises.l04_block.layer_norm.claims import TOKEN_AXES
from vit_course.exercises.repeatability import expect_same_in_every_run

Weights = Mapping[str, Tensor]
# of outputs of order 1: the tanh form is off by up to 2e-3, the nearest other gate by more than 1e-2
ROUGHLY = 5e-3
# in float64: a constant that was rounded to float32 is off by 1e-8, the tanh form by 1e-4
EXACTLY = 1e-6
CPU = torch.device("cpu")

Mlp = Exercise("Mlp", LESSON, is_class=True)


def compute_expected_output(weights: Weights, x: Tensor, prefix: str = "") -> Tensor:
    """The oracle of the MLP; its parameters start with ``prefix``."""
    hidden = F.linear(x, weights[f"{prefix}fc1.weight"], weights[f"{prefix}fc1.bias"])
    open_gate = torch.special.ndtr(hidden)
    return F.linear(hidden * open_gate, weights[f"{prefix}fc2.weight"], weights[f"{prefix}fc2.bias"])


def expect_gradient_of_every_parameter(module: StudentModule, output: Tensor) -> None:
    """Fail when ``output`` does not depend on one of the module's parameters."""
    if names := module.list_parameters_without_gradient(output):
        raise Failure(
            f"no gradient reaches {', '.join(names)}",
            "one for every parameter",
            "Is each of your layers used in forward, and does what it computes end up in the result?",
        )


def build_mlp_with_random_weights(student: Student, probe: Probe, *sizes: int) -> tuple[StudentModule, Weights, int]:
    """The student's MLP of ``sizes``, embed_dim and hidden_dim, with random weights; those, and embed_dim."""
    embed_dim, hidden_dim = sizes or probe.sizes(2, low=5, high=20, shown=(5, 11))
    module = student.build(embed_dim, hidden_dim)
    shapes = {
        "fc1.weight": (hidden_dim, embed_dim),
        "fc1.bias": (hidden_dim,),
        "fc2.weight": (embed_dim, hidden_dim),
        "fc2.bias": (embed_dim,),
    }
    weights = probe.weights(shapes)
    module.load(weights)
    return module, weights, embed_dim


def draw_tokens(probe: Probe, embed_dim: int, scale: float = 2.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Tokens (batch, tokens, embed_dim)."""
    batch, tokens = probe.sizes(2, shown=(2, 3))
    return probe.normal(batch, tokens, embed_dim, scale=scale, dtype=dtype)


def expect_near(actual: object, expected: Tensor, name: str, look: str, tolerance: float = ROUGHLY) -> None:
    """Fail in words where a number is off by more than ``tolerance``."""
    tensor = expect_tensor(actual, expected.shape, name)
    off = (tensor.detach().double() - expected.double()).abs().max()
    if not off <= tolerance or tensor.dtype != expected.dtype:
        axes = TOKEN_AXES[3 - expected.ndim :] if expected.ndim <= 3 else ()
        expect_equal(tensor, expected, name, axes, look=look)


@Mlp.check(guard=True)
def its_parameters_are_two_linears(student: Student, probe: Probe) -> None:
    """Its parameters are those of two Linears: fc1 to hidden_dim, fc2 back to embed_dim."""
    for sizes in ((5, 11), (8, 3)):
        build_mlp_with_random_weights(student, probe, *sizes)


@Mlp.check(needs=its_parameters_are_two_linears, guard=True, points=0.15, first="a_gelu_stands_between_the_linears")
def it_gives_the_same_twice(student: Student, probe: Probe) -> None:
    """The same tokens give the same result twice."""
    module, weights, embed_dim = build_mlp_with_random_weights(student, probe)
    expect_same_in_every_run(student, module, weights, draw_tokens(probe, embed_dim, 1.0))


@Mlp.check(needs=it_gives_the_same_twice, points=0.25)
def a_gelu_stands_between_the_linears(student: Student, probe: Probe) -> None:
    """A token goes through fc1, a GELU and fc2, in that order."""
    look = "Follow one number from fc1 to the result: what is done to it on the way, and what if it is negative?"
    for sizes in (probe.sizes(2, low=5, high=20, shown=(5, 11)), probe.sizes(2, low=5, high=20, shown=(8, 3))):
        module, weights, embed_dim = build_mlp_with_random_weights(student, probe, *sizes)
        x = draw_tokens(probe, embed_dim)
        expect_near(module(x), compute_expected_output(weights, x), "the MLP's output", look)


@Mlp.check(needs=a_gelu_stands_between_the_linears, worth=0.5, points=1)
def any_tokens_and_either_mode_will_do(student: Student, probe: Probe) -> None:
    """One token, a batch of one, a grid and tokens out of order work too, while training and after `.eval()`."""
    module, weights, embed_dim = build_mlp_with_random_weights(student, probe)
    rows, columns, tokens = probe.sizes(3, high=5, shown=(2, 3, 4))
    look = "Does your forward ask how many axes there are, or whether it trains?"
    for change, mode in ((module.train, "train"), (module.eval, "eval")):
        change()
        for front in ((), (tokens,), (1, tokens), (tokens, 1), (rows, columns, tokens)):
            x = probe.normal(*front, embed_dim)
            name = f"after {mode}() the output for a tensor of shape {tuple(x.shape)}"
            expect_near(module(x), compute_expected_output(weights, x), name, look)
        x = probe.normal(tokens, embed_dim, rows).mT
        expect_near(
            module(x), compute_expected_output(weights, x), "the output for tokens out of order in memory", look
        )


@Mlp.check(needs=a_gelu_stands_between_the_linears, worth=0.5, points=0.3, first=a_gelu_stands_between_the_linears)
def the_gradient_reaches_the_tokens(student: Student, probe: Probe) -> None:
    """The tokens that go in get their gradient, and every weight and bias its own."""
    module, weights, embed_dim = build_mlp_with_random_weights(student, probe)
    x = draw_tokens(probe, embed_dim, 1.0)
    found = {"the tokens": module.input_gradients(x)[0], **module.gradients(module(x))}
    wanted = {"the tokens": compute_gradient(lambda tokens: compute_expected_output(weights, tokens), x)}
    for name, weight in weights.items():

        def compute_output_with_parameter(changed: Tensor, name: str = name) -> Tensor:
            return compute_expected_output({**weights, name: changed}, x)

        wanted[name] = compute_gradient(compute_output_with_parameter, weight)
    for name, right in wanted.items():
        gradient, most = found[name], 2 * ROUGHLY * max(1.0, float(right.abs().max()))
        if gradient is None or not (gradient - right).abs().max() <= most:
            expect_gradients_of_inputs([gradient], [right], [name])


@Mlp.check(needs=it_gives_the_same_twice)
def nothing_follows_the_last_linear(student: Student, probe: Probe) -> None:
    """What fc2 gives is the result: with its weight at zero, the result is its bias."""
    module, weights, _ = build_mlp_with_random_weights(student, probe, 5, 11)
    weights = {**weights, "fc2.weight": torch.zeros(5, 11), "fc2.bias": torch.tensor([-3.0, -1.0, 0.0, 1.0, 3.0])}
    module.load(weights)
    look = "fc2's weight is zero here. What else than fc2's bias finds its way into your result?"
    x = probe.normal(2, 3, 5)
    expect_equal(module(x), compute_expected_output(weights, x), "the MLP's output", TOKEN_AXES, look=look)


@Mlp.check(needs=a_gelu_stands_between_the_linears, points=0.5)
def the_gelu_is_the_exact_one(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """The GELU is the exact one; in float64 an approximation shows."""
    module, weights, embed_dim = build_mlp_with_random_weights(student, probe)
    module.double()
    module.to(device)
    x = draw_tokens(probe, embed_dim, dtype=torch.float64)
    wanted = compute_expected_output({name: tensor.double() for name, tensor in weights.items()}, x).to(device)
    look = "If the checks above pass, what is left is the gate. Which forms of GELU does torch know?"
    expect_near(module(x.to(device)), wanted, "the MLP's output in float64", look, EXACTLY)


@Mlp.check(needs=its_parameters_are_two_linears, points=0.5)
def every_layer_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches both Linears."""
    module, _, embed_dim = build_mlp_with_random_weights(student, probe)
    x = draw_tokens(probe, embed_dim, 1.0)
    expect_gradient_of_every_parameter(module, expect_tensor(module(x), x.shape, "the MLP's output"))


Mlp.example(
    """
>>> tuple(Mlp(embed_dim=6, hidden_dim=24)(torch.zeros(2, 5, 6)).shape)
(2, 5, 6)
""",
    points=0.3,
    first=a_gelu_stands_between_the_linears,
)


read_mistakes(Mlp, __name__)
