"""`DropPath`: a branch left out for some images, while training.

There is no oracle: which images lose their branch is drawn. A check reads from ones that go in by which number each
image was multiplied, and asks for what holds whatever was drawn. The known mistakes draw by ``torch.bernoulli``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import close, expect_tensor, short
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_value_error
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l10_modern import LESSON

# images from which a share is read: the bound below is five standard errors or more
IMAGES = 1000
BOUND = 0.08

DropPath = Exercise("DropPath", LESSON, is_class=True, in_training=InTraining.HIDDEN)


@dataclass(frozen=True)
class Case:
    """A branch (batch, ...) without zeros, with which probability it is dropped, and how it is tried."""

    branch: Tensor
    probability: float
    training: bool = True
    calls: int = 1
    seed: int = 0


def case_of(
    probe: Probe, *sizes: int, probability: float = 0.3, training: bool = True, calls: int = 1, seed: int = 1
) -> Case:
    """A branch of these sizes, whose numbers are all between 1/2 and 3/2 or between the negatives of these."""
    drawn = probe.normal(*sizes)
    branch = torch.where(drawn < 0, -1.0, 1.0) * (1 + 0.5 * drawn.tanh())
    return Case(branch, probability, training, calls, seed)


def factors_of(student: Student, case: Case) -> list[Tensor]:
    """By which numbers each call multiplied the branch, of which nothing goes on record; Failure in words."""
    fields = {"probability": case.probability, "branch": case.branch, "training": case.training, "calls": case.calls}
    notes = student.run_fixture("dropping", **fields, global_seed=case.seed)
    del student.record[-1]
    if notes["changed"]:
        student.record.append(("changed",))
        look = "Which operation works in place: `*=`, a name that ends in an underscore, an assignment to a slice?"
        raise Failure("forward changed the branch that it was given", "a new tensor", look)
    if notes["parameters"]:
        student.record.append(("parameters",))
        look = "What is there to learn in a coin that is tossed?"
        raise Failure(f"DropPath has the parameter {notes['parameters'][0]}", "no parameters", look)
    return [_factors(student, case.branch, each) for each in notes["returned"]]


def _factors(student: Student, branch: Tensor, returned: Any) -> Tensor:
    try:
        tensor = expect_tensor(returned, branch.shape, "forward's output")
    except Failure as odd:
        student.record.append(("odd", odd.seen))
        raise
    if tensor.dtype != branch.dtype:
        student.record.append(("dtype", short(tensor.dtype)))
        look = "Which line chooses the dtype of what it makes?"
        raise Failure(f"for a branch of {short(branch.dtype)} the output is {short(tensor.dtype)}",
                      short(branch.dtype), look)  # fmt: skip
    return (tensor / branch).double()


def of_images(student: Student, factors: Tensor) -> Tensor:
    """(batch,): by which number each image was multiplied; Failure where it was not one number."""
    flat = factors.flatten(1)
    is_one = bool((flat.amax(1) - flat.amin(1) < 1e-3).all())
    tokens = factors.flatten(2) if factors.ndim > 2 else factors[:, :, None]
    is_one_of_token = bool((tokens.amax(2) - tokens.amin(2) < 1e-3).all())
    student.record.append(("one number", is_one, is_one_of_token))
    if not is_one:
        part = "different numbers" if is_one_of_token else "different numbers within a token"
        look = "How many random numbers do you draw, and which shape have they?"
        raise Failure(f"parts of one image's branch are multiplied by {part}", "one number for each image", look)
    return flat[:, 0]


@DropPath.check(guard=True)
def a_branch_keeps_its_shape(student: Student, probe: Probe) -> None:
    """A branch of any shape comes back in that shape, and in its dtype."""
    expect_shapes(student, [case_of(probe, *sizes) for sizes in ((4, 5), (3, 4, 6), (2, 3, 4, 5), (1, 3, 2))])


def expect_shapes(student: Student, cases: Sequence[Case]) -> None:
    """Fail unless each branch, and that branch in float64, comes back in its shape and dtype."""
    for case in cases:
        factors_of(student, case)
        factors_of(student, Case(case.branch.double(), case.probability))
    student.record.append(("shapes",))


@DropPath.check(needs=a_branch_keeps_its_shape)
def an_image_is_dropped_whole_or_kept(student: Student, probe: Probe) -> None:
    """While training, the whole branch of an image is multiplied by one number, which is 0 for some of the images."""
    expect_whole(student, case_of(probe, 60, 3, 4))


def expect_whole(student: Student, case: Case) -> None:
    """Fail unless some images are dropped as a whole, and some are not."""
    (factors,) = factors_of(student, case)
    found = of_images(student, factors)
    gone = found.abs() < 1e-6
    student.record.append(("gone", bool(gone.any()), bool(gone.all())))
    look = "Does each image have its own random number?"
    if not gone.any() or gone.all():
        seen = "all images are dropped" if gone.all() else "no image is dropped"
        raise Failure(f"of {len(gone)} images with probability={case.probability:g} {seen}", "some of them", look)


@DropPath.check(needs=an_image_is_dropped_whole_or_kept)
def the_others_make_up_for_it(student: Student, probe: Probe) -> None:
    """What is kept is divided by the probability of being kept, so that the mean stays."""
    expect_rescaled(student, [case_of(probe, 60, 4, probability=each) for each in (0.2, 0.75)])


def expect_rescaled(student: Student, cases: Sequence[Case]) -> None:
    """Fail unless the images that are kept are multiplied by 1 / (1 - probability)."""
    for case in cases:
        (factors,) = factors_of(student, case)
        found = of_images(student, factors)
        kept = found[found.abs() > 1e-6]
        wanted = 1 / (1 - case.probability)
        alike = len(kept) > 0 and close(kept.float(), torch.full_like(kept, wanted).float())
        seen = round(float(kept[0]), 2) if len(kept) else 0.0
        student.record.append(("kept", alike, seen))
        if not alike:
            look = "If 3 of 4 images are dropped, by how much must the fourth grow for the mean to stay?"
            said = f"with probability={case.probability:g} a branch that is kept is multiplied by {seen:g}"
            raise Failure(said, f"{wanted:.3g}", look)


@DropPath.check(needs=an_image_is_dropped_whole_or_kept)
def as_many_are_dropped_as_the_probability_says(student: Student, probe: Probe) -> None:
    """The share of the images that are dropped is the probability."""
    expect_share(student, [case_of(probe, IMAGES, 2, probability=each) for each in (0.15, 0.6)])


def expect_share(student: Student, cases: Sequence[Case]) -> None:
    """Fail unless about as many images are dropped as the probability says."""
    for case in cases:
        (factors,) = factors_of(student, case)
        gone = float((of_images(student, factors).abs() < 1e-6).double().mean())
        off = gone - case.probability
        student.record.append(("share", (off > BOUND) - (off < -BOUND)))
        if abs(off) > BOUND:
            look = "Is probability the chance of being dropped, or of being kept?"
            seen = f"with probability={case.probability:g} the share that is dropped is {gone:.2f}"
            raise Failure(seen, f"about {case.probability:g}", look)


@DropPath.check(needs=an_image_is_dropped_whole_or_kept)
def chance_decides_anew_in_every_call(student: Student, probe: Probe) -> None:
    """Which images lose their branch is drawn anew in every call, by torch's global generator."""
    expect_new_draws(student, case_of(probe, 40, 3, probability=0.5, calls=3))


def expect_new_draws(student: Student, case: Case) -> None:
    """Fail when calls in a row drop the same images, or the same seed of the global generator others."""
    calls = factors_of(student, case)
    gone = [of_images(student, each).abs() < 1e-6 for each in calls]
    again = [of_images(student, each).abs() < 1e-6 for each in factors_of(student, case)]
    anew = not all(torch.equal(gone[0], each) for each in gone[1:])
    seeded = all(map(torch.equal, gone, again))
    student.record.append(("drawn", anew, seeded))
    look = "Where do you draw: in __init__ or in forward? And from which generator?"
    if not anew:
        raise Failure(f"{case.calls} calls in a row dropped the same images", "others in every call", look)
    if not seeded:
        seen = "after torch.manual_seed with the same number other images were dropped"
        raise Failure(seen, "the same ones", look)


@DropPath.check(needs=a_branch_keeps_its_shape, guard=True)
def in_evaluation_nothing_is_dropped(student: Student, probe: Probe) -> None:
    """In evaluation mode the branch is returned unchanged."""
    expect_identity(student, [case_of(probe, 50, 3, probability=0.6, training=False)])


@DropPath.check(needs=a_branch_keeps_its_shape, worth=0.5, guard=True)
def with_a_probability_of_zero_nothing_is_dropped(student: Student, probe: Probe) -> None:
    """With a probability of 0 the branch is returned unchanged, while training too."""
    expect_identity(student, [case_of(probe, 50, 3, probability=0.0)])


def expect_identity(student: Student, cases: Sequence[Case]) -> None:
    """Fail unless every number is returned unchanged."""
    for case in cases:
        (factors,) = factors_of(student, case)
        right = bool((factors - 1).abs().max() < 1e-5)
        alike = bool(factors.max() - factors.min() < 1e-5)
        seen = round(float(factors.max()), 2) if alike else "different numbers"
        student.record.append(("identity", right, seen))
        if not right:
            mode = "training" if case.training else "evaluation"
            said = f"in {mode} mode, with probability={case.probability:g}, the branch is multiplied by {seen}"
            raise Failure(said, "the branch as it was", "How does a module know whether it is training?")


@DropPath.check(guard=True)
def a_probability_out_of_range_is_refused(student: Student, probe: Probe) -> None:
    """A probability below 0, or of 1 and more, raises a ValueError that names it when DropPath is made."""
    for probability in (-2, 1, 3):
        expect_value_error(student, (probability,), (probability,), f"probability {probability}")


@DropPath.check(needs=a_branch_keeps_its_shape, worth=0.5, guard=True)
def it_draws_where_the_branch_is(student: Student, probe: Probe) -> None:
    """What it draws is on the device of the branch, and in half precision where the branch is."""
    expect_half(student, case_of(probe, 4, 3, 2))
    expect_device_of_input(student, probe.normal(4, 3, 2), arguments=(0.5,))


def expect_half(student: Student, case: Case) -> None:
    """Fail unless a branch in float16 comes back in float16."""
    factors_of(student, replace(case, branch=case.branch.half()))
    student.record.append(("half",))


DropPath.example("""
>>> drop_path = DropPath(0.5)
>>> branch = torch.ones(1000, 2, 3)
>>> sorted(set(drop_path(branch).flatten().tolist()))
[0.0, 2.0]
>>> torch.equal(drop_path.eval()(branch), branch)
True
""")


DROP = "10_modern, A branch left out"


class _Wrong(nn.Module):
    """What the wrong ones have in common: a mask of the right sizes, drawn and applied rightly."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.refuse(probability)
        self.probability = probability

    def refuse(self, probability: float) -> None:
        if probability < 0 or probability >= 1:
            raise ValueError(f"{probability} is no probability below 1")

    def sizes(self, branch: Tensor) -> list[int]:
        return [branch.shape[0], *[1] * (branch.dim() - 1)]

    def survival(self) -> float:
        return 1.0 - self.probability

    def mask(self, branch: Tensor) -> Tensor:
        return torch.bernoulli(branch.new_full(self.sizes(branch), self.survival()))

    def scaled(self, kept: Tensor) -> Tensor:
        return kept / (1.0 - self.probability)

    def evaluated(self, branch: Tensor) -> Tensor:
        return branch

    def forward(self, branch: Tensor) -> Tensor:
        if not self.training:
            return self.evaluated(branch)
        return self.scaled(branch * self.mask(branch))


@DropPath.misconception("For how many images does one of your random numbers decide?", DROP)
class OneCoinForTheBatch(_Wrong):
    """One random number decides for all images of the batch, as in the paper of 2016; today each image has its own."""

    def sizes(self, branch: Tensor) -> list[int]:
        return [1] * branch.dim()


@DropPath.misconception("What is dropped here: a number, a token, or the branch of an image?", DROP)
class CoinForEachNumber(_Wrong):
    """Every number is dropped on its own: that is dropout, and not stochastic depth."""

    def sizes(self, branch: Tensor) -> list[int]:
        return list(branch.shape)


@DropPath.misconception("Which axes of your mask have length 1?", DROP)
class CoinForEachToken(_Wrong):
    """Every token is dropped on its own, so an image keeps a part of its branch."""

    def sizes(self, branch: Tensor) -> list[int]:
        return [*branch.shape[:2], *[1] * (branch.dim() - 2)]


@DropPath.misconception("How does the mean of a branch change if it is often zero?", DROP)
class NeverRescaled(_Wrong):
    """What is kept stays as it is, so the blocks that follow see smaller sums in training than in evaluation."""

    def scaled(self, kept: Tensor) -> Tensor:
        return kept


@DropPath.misconception("If a branch is rarely dropped, is it divided by nearly 1, or by nearly 0?", DROP)
class DividedByTheWrongProbability(_Wrong):
    """What is kept is divided by the probability of being dropped."""

    def scaled(self, kept: Tensor) -> Tensor:
        return kept / self.probability


@DropPath.misconception("Which way round do you divide and multiply?", DROP)
class ScaledDown(_Wrong):
    """What is kept is multiplied by its probability, which makes the mean smaller still."""

    def scaled(self, kept: Tensor) -> Tensor:
        return kept * (1.0 - self.probability)


@DropPath.misconception("Is probability the chance of being dropped, or of being kept?", DROP)
class KeptWithTheProbability(_Wrong):
    """An image keeps its branch with the probability with which it should lose it."""

    def survival(self) -> float:
        return self.probability

    def scaled(self, kept: Tensor) -> Tensor:
        return kept / self.survival()


@DropPath.misconception("How does a module know whether it is training?", DROP)
class DroppedInEvaluationToo(_Wrong):
    """Branches are dropped in evaluation too, so the same image gets another answer each time."""

    def evaluated(self, branch: Tensor) -> Tensor:
        return self.scaled(branch * self.mask(branch))


@DropPath.misconception("What is self.training while training?", DROP)
class OnlyInEvaluation(_Wrong):
    """The test of self.training is the wrong way round: branches are dropped in evaluation, and not in training."""

    def evaluated(self, branch: Tensor) -> Tensor:
        return super().scaled(branch * self.mask(branch))

    def forward(self, branch: Tensor) -> Tensor:
        return branch if self.training else self.evaluated(branch)


@DropPath.misconception("In which mode does the exercise rescale a branch?", DROP)
class RescaledInEvaluation(_Wrong):
    """The branch is rescaled in evaluation, as in the paper of 2016, and not in training."""

    def scaled(self, kept: Tensor) -> Tensor:
        return kept

    def evaluated(self, branch: Tensor) -> Tensor:
        return branch * (1.0 - self.probability)


@DropPath.misconception("Does your mode ever drop anything?", DROP)
class NeverDropped(_Wrong):
    """Nothing is dropped in either mode."""

    def forward(self, branch: Tensor) -> Tensor:
        return branch + 0.0


@DropPath.misconception("When are your random numbers drawn: when the module is made, or when it is called?", DROP)
class DrawnOnce(_Wrong):
    """The random numbers are drawn when the module is made, so the same images of every batch lose their branch."""

    def __init__(self, probability: float) -> None:
        super().__init__(probability)
        self.state = torch.get_rng_state()

    def mask(self, branch: Tensor) -> Tensor:
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.state)
            return super().mask(branch)


@DropPath.misconception("Whose tensor is the branch that forward is given?", DROP)
class DroppedInPlace(_Wrong):
    """The zeros are written into the given branch."""

    def forward(self, branch: Tensor) -> Tensor:
        if self.training:
            with torch.no_grad():
                branch.mul_(self.mask(branch) / (1.0 - self.probability))
        return branch


@DropPath.misconception("Which dtype do your random numbers have?", DROP)
class AlwaysFloat32(_Wrong):
    """The result is float32, whatever the dtype of the branch."""

    def forward(self, branch: Tensor) -> Tensor:
        return super().forward(branch).float()


@DropPath.misconception("How many axes can a branch have?", DROP, InTraining.UNSEEN)
class ThreeAxesOnly(_Wrong):
    """The mask has three axes, so it suits a branch of tokens and no other."""

    def sizes(self, branch: Tensor) -> list[int]:
        batch, _, _ = branch.shape
        return [batch, 1, 1]


@DropPath.misconception("What would a probability of 1 leave of the branch?", DROP, InTraining.UNSEEN)
class ProbabilityNotTested(_Wrong):
    """A probability of 1, or below 0, is accepted without an error."""

    def refuse(self, probability: float) -> None:
        self.accepted = probability


@DropPath.misconception("On which device are your random numbers?", DROP, InTraining.STOPS)
class DrawnOnTheCpu(_Wrong):
    """The mask is drawn on the CPU, wherever the branch is."""

    def mask(self, branch: Tensor) -> Tensor:
        return torch.bernoulli(torch.full(self.sizes(branch), self.survival(), dtype=branch.dtype))
