"""`LayerScale`: a learned number for each dimension of a branch.

The oracle is one multiplication.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, format_shape
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import compute_gradient, expect_gradients_of_inputs, expect_inputs_unchanged
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from exercise_kit.reasons import Reason
from vit_course.exercises.l04_block.layer_norm.claims import TOKEN_AXES
from vit_course.exercises.l04_block.mlp.claims import expect_gradient_of_every_parameter
from vit_course.exercises.l10_modern import LESSON

CPU = torch.device("cpu")

LayerScale = Exercise("LayerScale", LESSON, is_class=True, in_training=InTraining.HIDDEN)


def build_with_random_gamma(
    student: Student, probe: Probe, embed_dim: int
) -> tuple[StudentModule, Mapping[str, Tensor]]:
    """A module of the student's with random numbers in gamma, and these."""
    module = student.build(embed_dim, 0.1)
    weights = probe.weights({"gamma": (embed_dim,)})
    module.load(weights)
    return module, weights


def build_module_and_draw_branch(student: Student, probe: Probe) -> tuple[StudentModule, Tensor, Tensor]:
    """A module of the student's, the random numbers in its gamma, and a branch for it."""
    batch, tokens, embed_dim = probe.sizes(3, low=5, shown=(2, 3, 5))
    module, weights = build_with_random_gamma(student, probe, embed_dim)
    return module, weights["gamma"], probe.normal(batch, tokens, embed_dim)


@LayerScale.check(guard=True)
def gamma_is_its_one_parameter(student: Student, probe: Probe) -> None:
    """Its one parameter is gamma, with embed_dim numbers."""
    for embed_dim in (5, 8):
        build_with_random_gamma(student, probe, embed_dim)


@LayerScale.check(needs=gamma_is_its_one_parameter, guard=True, points=0.57, first="each_dimension_has_its_own_number")
def all_of_gamma_starts_at_initial(student: Student, probe: Probe) -> None:
    """All numbers of gamma start at initial."""
    sizes = probe.sizes(3, low=3, shown=(4, 6, 5))
    for embed_dim, shown in zip(sizes, (0.25, 1e-3, 0.0), strict=True):
        initial = shown and probe.choice([thousandths / 1000 for thousandths in range(1, 401)], shown=shown)
        found = student.build(embed_dim, initial).tensors()["gamma"]
        wanted = torch.full((embed_dim,), initial)
        look = "Which number do you write into the parameter when it is made?"
        student.note(("starts", tuple(round(each, 5) for each in found.flatten().tolist())))
        name = f"gamma of LayerScale({embed_dim}, initial={initial:g})"
        expect_equal(found, wanted, name, ("dimension",), look=look)
        if not initial and found.any():
            raise Failure(f"{name} starts with {float(found.max()):g}", "0", "Is 0 a number like any other there?")


@LayerScale.check(needs=gamma_is_its_one_parameter, points=0.1)
def each_dimension_has_its_own_number(student: Student, probe: Probe) -> None:
    """Dimension i of every token is multiplied by number i of gamma, and nothing else happens."""
    module, gamma, x = build_module_and_draw_branch(student, probe)
    look = "Follow the last number of one token: with which number of gamma does it meet, and by which operation?"
    expect_equal(module(x), x * gamma, "the output", TOKEN_AXES, look=look)


@LayerScale.check(
    needs=each_dimension_has_its_own_number, worth=0.5, points=0.24, first=each_dimension_has_its_own_number
)
def any_tokens_and_either_mode_will_do(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """One token, a batch and a grid work too, while training and after `.eval()`, in float64 too."""
    embed_dim, rows, columns = probe.sizes(3, low=5, shown=(5, 3, 4))
    module, weights = build_with_random_gamma(student, probe, embed_dim)
    look = "Does your forward ask how many axes there are, or whether it trains?"
    for change, mode in ((module.train, "train"), (module.eval, "eval")):
        change()
        for front in ((), (columns,), (1, columns), (2, rows, columns), (embed_dim,)):
            x = probe.normal(*front, embed_dim)
            name = f"after {mode}() the output for a tensor of shape {format_shape(x)}"
            expect_equal(module(x), x * weights["gamma"], name, look=look)
    module.to(device)
    module.double()
    x = probe.normal(rows, embed_dim, 2, dtype=torch.float64).permute(2, 0, 1).to(device)  # not contiguous
    gamma = weights["gamma"].double().to(device)
    expect_equal(module(x), x * gamma, "the output in float64", TOKEN_AXES, look=look)


@LayerScale.check(needs=gamma_is_its_one_parameter, points=0.67, first=each_dimension_has_its_own_number)
def gamma_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches gamma."""
    module, _, x = build_module_and_draw_branch(student, probe)
    output = module(x)
    if not isinstance(output, Tensor) or output.shape != x.shape:
        seen = "forward gave something else than a tensor of its input's shape"
        raise Failure(seen, "one number for each number", reason=Reason.KIND)
    expect_gradient_of_every_parameter(module, output)


@LayerScale.check(
    needs=each_dimension_has_its_own_number, worth=0.5, points=0.26, first=each_dimension_has_its_own_number
)
def the_gradient_reaches_the_branch(student: Student, probe: Probe) -> None:
    """The branch gets its gradient."""
    module, gamma, x = build_module_and_draw_branch(student, probe)
    wanted = compute_gradient(lambda branch: branch * gamma, x)
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the branch"])


@LayerScale.check(
    needs=gamma_is_its_one_parameter, worth=0.5, guard=True, points=0.06, first=each_dimension_has_its_own_number
)
def the_branch_is_left_alone(student: Student, probe: Probe) -> None:
    """The branch that goes in is not changed."""
    module, _, x = build_module_and_draw_branch(student, probe)
    module(x)
    expect_inputs_unchanged(student)


LayerScale.example(
    """
>>> scale = LayerScale(embed_dim=4, initial=0.5)
>>> scale(torch.ones(2, 3, 4))[0, 0].tolist()
[0.5, 0.5, 0.5, 0.5]
""",
    points=0.1,
    first=each_dimension_has_its_own_number,
)


read_mistakes(LayerScale, __name__)
