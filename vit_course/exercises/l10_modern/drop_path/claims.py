"""`DropPath`: a branch left out for some images, while training.

There is no oracle: which images lose their branch is drawn. A check reads from ones that go in by which number each
image was multiplied, and asks for what holds whatever was drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_tensor, format_dtype
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input, expect_value_error
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l10_modern import LESSON

# images from which a share is read: the bound below is five standard errors or more
IMAGES = 1000
BOUND = 0.08
# as many of 40 coins in all of so many calls: about once in a hundred million
CALLS = 9

DropPath = Exercise("DropPath", LESSON, is_class=True, in_training=InTraining.HIDDEN)


@dataclass(frozen=True)
class Case:
    """A branch (batch, ...) without zeros, with which probability it is dropped, and how it is tried."""

    branch: Tensor
    probability: float
    training: bool = True
    calls: int = 1
    seed: int = 0
    recording: bool = True


def draw_case(
    probe: Probe, *sizes: int, probability: float = 0.3, training: bool = True, calls: int = 1, seed: int = 1
) -> Case:
    """A branch of these sizes, whose numbers are all between 1/2 and 3/2 or between the negatives of these."""
    drawn = probe.normal(*sizes)
    branch = torch.where(drawn < 0, -1.0, 1.0) * (1 + 0.5 * drawn.tanh())
    return Case(branch, probability, training, calls, seed)


def draw_probability(probe: Probe, low: float, shown: float) -> float:
    """From ``low`` to 0.2 more in grading, ``shown`` in ``check``."""
    return probe.choice([low + hundredths / 100 for hundredths in range(21)], shown=shown)


def call_and_read_factors(student: Student, case: Case) -> list[Tensor]:
    """By which numbers each call multiplied the branch, of which nothing goes on record; Failure in words."""
    fields = {"probability": case.probability, "branch": case.branch, "training": case.training, "calls": case.calls}
    notes = student.run_fixture("dropping", **fields, global_seed=case.seed, recording=case.recording)
    student.forget()
    if notes["changed"]:
        student.note(("changed",))
        look = "Which operation works in place: `*=`, a name that ends in an underscore, an assignment to a slice?"
        raise Failure("forward changed the branch that it was given", "a new tensor", look)
    if notes["parameters"]:
        student.note(("parameters",))
        look = "What is there to learn in a coin that is tossed?"
        raise Failure(f"DropPath has the parameter {notes['parameters'][0]}", "no parameters", look)
    return [_divide_output_by_branch(student, case.branch, each) for each in notes["returned"]]


def _divide_output_by_branch(student: Student, branch: Tensor, returned: Any) -> Tensor:
    try:
        tensor = expect_tensor(returned, branch.shape, "forward's output")
    except Failure as odd:
        student.note(("odd", odd.seen))
        raise
    if tensor.dtype != branch.dtype:
        student.note(("dtype", format_dtype(tensor.dtype)))
        look = "Which line chooses the dtype of what it makes?"
        raise Failure(f"for a branch of {format_dtype(branch.dtype)} the output is {format_dtype(tensor.dtype)}",
                      format_dtype(branch.dtype), look)  # fmt: skip
    return (tensor / branch).double()


def expect_one_factor_per_image(student: Student, factors: Tensor) -> Tensor:
    """(batch,): by which number each image was multiplied; Failure where it was not one number."""
    flat = factors.flatten(1)
    is_one = bool((flat.amax(1) - flat.amin(1) < 1e-3).all())
    tokens = factors.flatten(2) if factors.ndim > 2 else factors[:, :, None]
    is_one_of_token = bool((tokens.amax(2) - tokens.amin(2) < 1e-3).all())
    student.note(("one number", is_one, is_one_of_token))
    if not is_one:
        part = "different numbers" if is_one_of_token else "different numbers within a token"
        look = "How many random numbers do you draw, and which shape have they?"
        raise Failure(f"parts of one image's branch are multiplied by {part}", "one number for each image", look)
    return flat[:, 0]


@DropPath.check(guard=True, points=0.08, first="an_image_is_dropped_whole_or_kept")
def a_branch_keeps_its_shape(student: Student, probe: Probe) -> None:
    """A branch of any shape comes back in that shape, and in its dtype."""
    first, second, third = probe.sizes(3, low=5, shown=(5, 4, 6))
    for sizes in ((4, first), (3, second, third), (2, first, second, third), (1, third, second)):
        case = draw_case(probe, *sizes, probability=draw_probability(probe, 0.25, 0.3))
        call_and_read_factors(student, case)
        call_and_read_factors(student, replace(case, branch=case.branch.double()))
    student.note(("shapes",))


@DropPath.check(needs=a_branch_keeps_its_shape, points=0.1)
def an_image_is_dropped_whole_or_kept(student: Student, probe: Probe) -> None:
    """While training, the whole branch of an image is multiplied by one number, which is 0 for some of the images."""
    for shown in ((3, 4), (5,), (2, 3, 4)):
        sizes = probe.sizes(len(shown), shown=shown)
        case = draw_case(probe, 60, *sizes, probability=draw_probability(probe, 0.4, 0.3))
        (factors,) = call_and_read_factors(student, case)
        gone = expect_one_factor_per_image(student, factors).abs() < 1e-6
        student.note(("gone", bool(gone.any()), bool(gone.all())))
        if not gone.any() or gone.all():
            seen = "all images are dropped" if gone.all() else "no image is dropped"
            look = _ask_about_factors(student, factors)
            raise Failure(f"of {len(gone)} images with probability={case.probability:g} {seen}", "some of them", look)
    crowd = replace(draw_case(probe, 60, 4, probability=draw_probability(probe, 0.4, 0.5)), recording=False)
    _expect_some_images_dropped(student, crowd, "without gradients")


def _ask_about_factors(student: Student, factors: Tensor) -> str:
    """Where to look when all images are dropped, or none is; how many factors there are goes on record."""
    seen = sorted({round(each, 2) for each in factors.flatten().tolist()})
    student.note(("factors", min(len(seen), 3)))
    if len(seen) == 2:
        return f"An image is multiplied by {seen[0]:g} or by {seen[1]:g}. Which of the two should be 0?"
    return "Does each image have its own random number?"


def _expect_some_images_dropped(student: Student, case: Case, when: str) -> None:
    """Fail unless, in all calls together, some images are dropped and some are not."""
    gone = (
        torch.cat([expect_one_factor_per_image(student, each) for each in call_and_read_factors(student, case)]).abs()
        < 1e-6
    )
    student.note(("gone", bool(gone.any()), bool(gone.all())))
    if not gone.any() or gone.all():
        look = "What decides whether your module drops: that it trains, or something else?"
        seen = f"while training, {when}, an image is {'always' if gone.all() else 'never'} dropped"
        raise Failure(seen, f"with a probability of {case.probability:g}", look)


@DropPath.check(needs=an_image_is_dropped_whole_or_kept, points=0.18)
def the_others_make_up_for_it(student: Student, probe: Probe) -> None:
    """What is kept is divided by the probability of being kept, so that the mean stays."""
    for low, shown in ((0.25, 0.2), (0.55, 0.75)):
        case = draw_case(probe, 60, 4, probability=draw_probability(probe, low, shown))
        (factors,) = call_and_read_factors(student, case)
        found = expect_one_factor_per_image(student, factors)
        kept = found[found.abs() > 1e-6]
        wanted = 1 / (1 - case.probability)
        alike = len(kept) > 0 and are_close(kept.float(), torch.full_like(kept, wanted).float())
        seen = round(float(kept[0]), 2) if len(kept) else 0.0
        student.note(("kept", alike, seen))
        if not alike:
            look = "If 3 of 4 images are dropped, by how much must the fourth grow for the mean to stay?"
            said = f"with probability={case.probability:g} a branch that is kept is multiplied by {seen:g}"
            raise Failure(said, f"{wanted:.3g}", look)


@DropPath.check(needs=an_image_is_dropped_whole_or_kept, worth=0.5, points=0.2, first=the_others_make_up_for_it)
def the_gradient_goes_with_the_branch(student: Student, probe: Probe) -> None:
    """The gradient of an image's branch is multiplied by the number by which the branch is: 0 where it is dropped."""
    case = draw_case(probe, 40, 3, probability=draw_probability(probe, 0.4, 0.5))
    notes = student.run_fixture(
        "dropping_gradients", probability=case.probability, branch=case.branch, global_seed=case.seed
    )
    student.forget()
    factors = _divide_output_by_branch(student, case.branch, notes["returned"])
    gradient = notes["gradient"].double()
    right = are_close(gradient.float(), factors.float())
    gone = factors.abs() < 1e-6
    student.note(("gradient", right, not gradient.any(), bool(gradient[gone].all()), bool(gradient[gone].any())))
    if not right:
        look = "Which line leaves torch's graph: detach, .data, no_grad, a detour through numpy?"
        if not gradient.any():
            raise Failure("no gradient reaches the branch", "one for each image that keeps its branch", look)
        seen = "the gradient of a branch is not multiplied by the number by which the branch is"
        raise Failure(seen, "0 for an image that is dropped, and the number of the others for these", look)


@DropPath.check(needs=an_image_is_dropped_whole_or_kept, points=0.24)
def as_many_are_dropped_as_the_probability_says(student: Student, probe: Probe) -> None:
    """The share of the images that are dropped is the probability."""
    for low, shown in ((0.1, 0.15), (0.6, 0.6)):
        case = draw_case(probe, IMAGES, 2, probability=draw_probability(probe, low, shown))
        (factors,) = call_and_read_factors(student, case)
        gone = float((expect_one_factor_per_image(student, factors).abs() < 1e-6).double().mean())
        off = gone - case.probability
        student.note(("share", (off > BOUND) - (off < -BOUND)))
        if abs(off) > BOUND:
            look = "Is probability the chance of being dropped, or of being kept?"
            seen = f"with probability={case.probability:g} the share that is dropped is {gone:.2f}"
            raise Failure(seen, f"about {case.probability:g}", look)


@DropPath.check(needs=an_image_is_dropped_whole_or_kept, points=1.01, first=the_others_make_up_for_it)
def chance_decides_anew_in_every_call(student: Student, probe: Probe) -> None:
    """Which images lose their branch, and how many, is drawn anew in every call, by torch's global generator."""
    seed = probe.choice(range(1, 1000), shown=1)
    case = draw_case(probe, 40, 3, probability=0.5, calls=CALLS, seed=seed)
    calls = call_and_read_factors(student, case)
    gone = [expect_one_factor_per_image(student, each).abs() < 1e-6 for each in calls]
    again = [expect_one_factor_per_image(student, each).abs() < 1e-6 for each in call_and_read_factors(student, case)]
    anew = not all(torch.equal(gone[0], each) for each in gone[1:])
    seeded = all(map(torch.equal, gone, again))
    counts = {int(each.sum()) for each in gone}
    student.note(("drawn", anew, seeded, len(counts) > 1))
    look = "Where do you draw: in __init__ or in forward? And from which generator?"
    if not anew:
        raise Failure(f"{case.calls} calls in a row dropped the same images", "others in every call", look)
    if not seeded:
        seen = "after torch.manual_seed with the same number other images were dropped"
        raise Failure(seen, "the same ones", look)
    if len(counts) == 1:
        look = "Does one image's chance depend on what happens to the others of its batch?"
        seen = f"each of {case.calls} calls dropped {counts.pop()} of {len(gone[0])} images"
        raise Failure(seen, "now more of them and now fewer, as each image has its own chance", look)
    alone = draw_case(probe, 1, 4, probability=draw_probability(probe, 0.4, 0.5), calls=60)
    _expect_some_images_dropped(student, alone, "alone in its batch")


@DropPath.check(needs=a_branch_keeps_its_shape, guard=True)
def in_evaluation_nothing_is_dropped(student: Student, probe: Probe) -> None:
    """In evaluation mode the branch is returned unchanged."""
    expect_unchanged_branch(
        student, draw_case(probe, 50, 3, probability=draw_probability(probe, 0.4, 0.6), training=False)
    )


@DropPath.check(
    needs=a_branch_keeps_its_shape, worth=0.5, guard=True, points=0.07, first=an_image_is_dropped_whole_or_kept
)
def with_a_probability_of_zero_nothing_is_dropped(student: Student, probe: Probe) -> None:
    """With a probability of 0 the branch is returned unchanged, while training too."""
    expect_unchanged_branch(student, draw_case(probe, 50, 3, probability=0.0))


def expect_unchanged_branch(student: Student, case: Case) -> None:
    """Fail unless every number is returned unchanged."""
    (factors,) = call_and_read_factors(student, case)
    right = bool((factors - 1).abs().max() < 1e-5)
    alike = bool(factors.max() - factors.min() < 1e-5)
    seen = round(float(factors.max()), 2) if alike else "different numbers"
    student.note(("identity", right, seen, sorted({f"{each:.1f}" for each in factors.flatten().tolist()})))
    if not right:
        mode = "training" if case.training else "evaluation"
        said = f"in {mode} mode, with probability={case.probability:g}, the branch is multiplied by {seen}"
        raise Failure(said, "the branch as it was", "How does a module know whether it is training?")


@DropPath.check(guard=True, points=0.05, first=an_image_is_dropped_whole_or_kept)
def a_probability_out_of_range_is_refused(student: Student, probe: Probe) -> None:
    """A probability below 0, or of 1 and more, raises a ValueError that names it when DropPath is made."""
    for probability in (-1, probe.choice(range(-8, -1), shown=-2), 1, probe.choice(range(2, 9), shown=3)):
        expect_value_error(student, (probability,), (probability,), f"probability {probability}")


@DropPath.check(
    needs=the_others_make_up_for_it, worth=0.5, guard=True, points=0.05, first=an_image_is_dropped_whole_or_kept
)
def it_draws_where_the_branch_is(student: Student, probe: Probe) -> None:
    """What it draws is on the device of the branch, and in half precision where the branch is."""
    tokens, embed_dim = probe.sizes(2, shown=(3, 2))
    case = draw_case(probe, 4, tokens, embed_dim, probability=draw_probability(probe, 0.25, 0.3))
    call_and_read_factors(student, replace(case, branch=case.branch.half()))
    student.note(("half",))
    expect_device_of_input(student, probe.normal(4, tokens, embed_dim), arguments=(0.5,))


DropPath.example(
    """
>>> drop_path = DropPath(0.5)
>>> branch = torch.ones(1000, 2, 3)
>>> sorted(set(drop_path(branch).flatten().tolist()))
[0.0, 2.0]
>>> torch.equal(drop_path.eval()(branch), branch)
True
""",
    points=0.05,
    first=an_image_is_dropped_whole_or_kept,
)


read_mistakes(DropPath, __name__)
