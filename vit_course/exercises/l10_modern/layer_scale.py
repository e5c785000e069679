"""`LayerScale`: a learned number for each dimension of a branch.

The oracle is one multiplication. The wrong ones hold a parameter that is used, or made, in a wrong way.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_gradients_of_inputs, expect_left_alone, gradient_of
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from exercise_kit.reasons import Reason
from vit_course.exercises.l04_block.layer_norm import TOKEN_AXES
from vit_course.exercises.l04_block.mlp.claims import expect_gradients
from vit_course.exercises.l10_modern import LESSON

LayerScale = Exercise("LayerScale", LESSON, is_class=True, in_training=InTraining.HIDDEN)


def loaded(student: Student, probe: Probe, embed_dim: int = 5) -> tuple[StudentModule, Mapping[str, Tensor]]:
    """A module of the student's with random numbers in gamma, and these."""
    module = student.build(embed_dim, 0.1)
    weights = probe.weights({"gamma": (embed_dim,)})
    module.load(weights)
    return module, weights


@LayerScale.check(guard=True)
def gamma_is_its_one_parameter(student: Student, probe: Probe) -> None:
    """Its one parameter is gamma, with embed_dim numbers."""
    for embed_dim in (5, 8):
        loaded(student, probe, embed_dim)


@LayerScale.check(needs=gamma_is_its_one_parameter, guard=True)
def all_of_gamma_starts_at_initial(student: Student, probe: Probe) -> None:
    """All numbers of gamma start at initial."""
    for embed_dim, initial in ((4, 0.25), (6, 1e-3)):
        expect_start(student, embed_dim, initial)


def expect_start(student: Student, embed_dim: int, initial: float) -> None:
    """Fail unless gamma starts with ``initial`` everywhere."""
    found = student.build(embed_dim, initial).tensors()["gamma"]
    wanted = torch.full((embed_dim,), initial)
    look = "Which number do you write into the parameter when it is made?"
    student.record.append(("starts", tuple(round(each, 5) for each in found.flatten().tolist())))
    expect_equal(found, wanted, f"gamma of LayerScale({embed_dim}, initial={initial:g})", ("dimension",), look=look)


@LayerScale.check(needs=gamma_is_its_one_parameter)
def each_dimension_has_its_own_number(student: Student, probe: Probe) -> None:
    """Dimension i of every token is multiplied by number i of gamma, and nothing else happens."""
    module, weights = loaded(student, probe)
    x = probe.normal(2, 3, 5)
    look = "Follow the last number of one token: with which number of gamma does it meet, and by which operation?"
    expect_equal(module(x), x * weights["gamma"], "the output", TOKEN_AXES, look=look)


@LayerScale.check(needs=each_dimension_has_its_own_number, worth=0.5)
def any_tokens_and_either_mode_will_do(student: Student, probe: Probe) -> None:
    """One token, a batch and a grid work too, while training and after `.eval()`, in float64 too."""
    module, weights = loaded(student, probe)
    look = "Does your forward ask how many axes there are, or whether it trains?"
    for change, mode in ((module.train, "train"), (module.eval, "eval")):
        change()
        for front in ((), (4,), (1, 4), (2, 3, 4)):
            x = probe.normal(*front, 5)
            name = f"after {mode}() the output for a tensor of shape {tuple(x.shape)}"
            expect_equal(module(x), x * weights["gamma"], name, look=look)
    module.double()
    x = probe.normal(2, 3, 5, dtype=torch.float64)
    expect_equal(module(x), x * weights["gamma"].double(), "the output in float64", TOKEN_AXES, look=look)


@LayerScale.check(needs=gamma_is_its_one_parameter)
def gamma_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches gamma."""
    module, _ = loaded(student, probe)
    x = probe.normal(2, 3, 5)
    expect_gradients(module, expect_sizes(module(x), x))


def expect_sizes(output: object, x: Tensor) -> Tensor:
    """The output, where it is a tensor of the shape of ``x``; Failure otherwise."""
    if not isinstance(output, Tensor) or output.shape != x.shape:
        seen = "forward gave something else than a tensor of its input's shape"
        raise Failure(seen, "one number for each number", reason=Reason.KIND)
    return output


@LayerScale.check(needs=each_dimension_has_its_own_number, worth=0.5)
def the_gradient_reaches_the_branch(student: Student, probe: Probe) -> None:
    """The branch gets its gradient."""
    module, weights = loaded(student, probe)
    x = probe.normal(2, 3, 5)
    wanted = gradient_of(lambda branch: branch * weights["gamma"], x)
    expect_gradients_of_inputs(module.input_gradients(x), [wanted], ["the branch"])


@LayerScale.check(needs=gamma_is_its_one_parameter, worth=0.5, guard=True)
def the_branch_is_left_alone(student: Student, probe: Probe) -> None:
    """The branch that goes in is not changed."""
    module, _ = loaded(student, probe)
    module(probe.normal(2, 3, 5))
    expect_left_alone(student)


LayerScale.example("""
>>> scale = LayerScale(embed_dim=4, initial=0.5)
>>> scale(torch.ones(2, 3, 4))[0, 0].tolist()
[0.5, 0.5, 0.5, 0.5]
""")


SCALE = "10_modern, A branch that starts small"


class _Scale(nn.Module):
    """What the wrong ones have in common: the right parameter, and a right step wherever none is overridden."""

    def __init__(self, embed_dim: int, initial: float) -> None:
        super().__init__()
        self.gamma = nn.Parameter(self.start(torch.ones(self.count(embed_dim)), initial))

    def count(self, embed_dim: int) -> int:
        return embed_dim

    def start(self, ones: Tensor, initial: float) -> Tensor:
        return ones * initial

    def forward(self, branch: Tensor) -> Tensor:
        return torch.mul(self.gamma, branch)


@LayerScale.misconception("How many numbers can a branch of embed_dim dimensions be scaled by?", SCALE)
class OneNumberForAllDimensions(_Scale):
    """The parameter is a single number for the whole branch."""

    def count(self, embed_dim: int) -> int:
        return 1


@LayerScale.misconception("Where did you use the argument initial?", SCALE)
class StartsAtOne(_Scale):
    """The parameter starts at 1, so the branch is as large as without it."""

    def start(self, ones: Tensor, initial: float) -> Tensor:
        return ones


@LayerScale.misconception("Where did you use the argument initial?", SCALE)
class AStartWrittenDown(_Scale):
    """The parameter starts at 1e-5, whatever the argument says."""

    def start(self, ones: Tensor, initial: float) -> Tensor:
        return ones * 1e-5


@LayerScale.misconception("Which numbers does torch.randn give, and which were asked for?", SCALE)
class StartsAtRandom(_Scale):
    """The parameter starts with random numbers of the size of initial."""

    def start(self, ones: Tensor, initial: float) -> Tensor:
        waves = torch.linspace(-1.7, 1.7, len(ones)) * (1 + 0.1 * torch.rand(len(ones)))
        return waves * initial


@LayerScale.misconception("What adds a branch to the stream, the LayerScale or the block?", SCALE)
class ResidualInside(_Scale):
    """The branch is added to its scaled self, so it is never small."""

    def forward(self, branch: Tensor) -> Tensor:
        return branch + super().forward(branch)


@LayerScale.misconception("Is gamma a factor, or something to be added?", SCALE)
class AddedAndNotMultiplied(_Scale):
    """Gamma is added to the branch, as a bias would be."""

    def forward(self, branch: Tensor) -> Tensor:
        return branch + self.gamma


@LayerScale.misconception("Does a factor of 0.1 make the branch smaller in your code?", SCALE)
class DividedByGamma(_Scale):
    """The branch is divided by gamma, so it starts large and not small."""

    def forward(self, branch: Tensor) -> Tensor:
        return torch.div(branch, self.gamma)


@LayerScale.misconception("Does a gradient reach gamma from what you multiply by?", SCALE)
class GammaDetached(_Scale):
    """The branch is multiplied by a copy of gamma without a gradient, so gamma never learns."""

    def forward(self, branch: Tensor) -> Tensor:
        return torch.mul(self.gamma.detach(), branch)


@LayerScale.misconception("Which axes has a tensor that is one token?", SCALE)
class ScaledAlongTheTokens(_Scale):
    """The mean of gamma scales the branch, so all dimensions get one and the same factor."""

    def forward(self, branch: Tensor) -> Tensor:
        return torch.mul(self.gamma.mean(), branch)


@LayerScale.misconception("Does the exercise ask for a positive factor?", SCALE)
class TheSizeOfGammaAlone(_Scale):
    """The branch is multiplied by the absolute value of gamma, so gamma cannot change a sign."""

    def forward(self, branch: Tensor) -> Tensor:
        return torch.mul(self.gamma.abs(), branch)


@LayerScale.misconception("How many axes may a branch have?", SCALE, InTraining.UNSEEN)
class ThreeAxesOnly(_Scale):
    """Gamma has three axes, so a single token is returned as a batch."""

    def forward(self, branch: Tensor) -> Tensor:
        return torch.mul(self.gamma.reshape(1, 1, -1), branch)


@LayerScale.misconception("Whose tensor is the branch that forward is given?", SCALE)
class ScaledInPlace(_Scale):
    """The scaled numbers are written into the given branch."""

    def forward(self, branch: Tensor) -> Tensor:
        scaled = super().forward(branch)
        branch.data.mul_(self.gamma.data)
        return scaled


@LayerScale.misconception("Which layers get their gradient through the branch that you have detached?", SCALE)
class BranchOutOfTheGraph(_Scale):
    """The branch is detached before it is scaled, so the layers before it never learn."""

    def forward(self, branch: Tensor) -> Tensor:
        return super().forward(branch.detach())
