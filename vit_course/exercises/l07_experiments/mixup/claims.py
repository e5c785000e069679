"""`mixup`: images, and their labels, blended with those of a partner.

There is no oracle, since share and partners are drawn. A check finds by least squares how much of every image is in
each blended image, and tests only properties that hold for every draw.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, describe_kind, expect_tensor, format_dtype
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_no_device_mismatch
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import quote_first_line
from vit_course.exercises.l07_experiments import LESSON

# calls from which the share's distribution is read: the bounds below are five standard errors or more
CALLS = 150
BOUND_OF_MEAN = 0.18
NEARLY_NOTHING = 1e-4

mixup = Exercise("mixup", LESSON, in_training=InTraining.HIDDEN)


@dataclass(frozen=True)
class Case:
    """The arguments of one call, with the seed of its generator."""

    images: Tensor
    labels: Tensor
    num_classes: int
    alpha: float
    seed: int


@dataclass(frozen=True)
class Blend:
    """What one call gave.

    Attributes: ``parts`` (batch, batch), how much of image j there is in row i; ``is_blend``, whether that is all there
    is in it; ``targets`` (batch, num_classes), and the ``wanted`` ones, which follow from the parts.
    """

    parts: Tensor
    is_blend: bool
    targets: Tensor
    wanted: Tensor

    @property
    def parts_of_others(self) -> Tensor:
        """The parts without those of each image itself."""
        return self.parts - torch.diag(self.parts.diag())

    @property
    def partners_of_images(self) -> Tensor:
        """Who is whose partner: (batch, batch), a 1 where image j is that of image i; an image may be its own."""
        found = (self.parts_of_others.abs() > 1e-3).double()
        return found + torch.diag(1 - found.amax(dim=1))

    @property
    def shares_of_blended(self) -> Tensor:
        """How much is left of each image that was blended with another one; empty where each was its own partner."""
        return self.parts.diag()[self.parts_of_others.abs().amax(dim=1) > NEARLY_NOTHING]


def draw_case(probe: Probe, batch: int = 7, num_classes: int = 9, alpha: float = 3.0, seed: int = 4) -> Case:
    """Images of which none is made of the others, labels of which some are the same; in grading all sizes are drawn."""
    batch, num_classes = probe.choice((5, 6, 7, 8), shown=batch), probe.choice(range(3, 11), shown=num_classes)
    sizes = probe.sizes(3, low=4, high=11, shown=(3, 4, 5))
    labels = probe.integers(batch, high=num_classes)
    return Case(probe.normal(batch, *sizes), labels, num_classes, alpha, probe.choice(range(10_000), shown=seed))


def call_and_read_blends(student: Student, case: Case, calls: int = 1) -> list[Blend]:
    """Return what so many calls gave, of which nothing goes on record; Failure where it is no pair of such tensors."""
    returned = student.run_fixture("mixing", **asdict(case), calls=calls)["returned"]
    student.forget()
    try:
        return [_solve_for_blend(case, *_expect_pair(student, each)) for each in returned]
    except Failure as odd:
        student.note(("odd", odd.seen))
        raise


def _expect_pair(student: Student, returned: Any) -> tuple[Any, Any]:
    if not isinstance(returned, list | tuple) or len(returned) != 2:
        count = f"{describe_kind(returned)}"
        look = "Which two things does a training loop need of a batch?"
        raise Failure(f"{student.name} gave {count}", "a pair: images, targets", look)
    return returned[0], returned[1]


def _solve_for_blend(case: Case, images: Any, targets: Any) -> Blend:
    before = case.images.flatten(1).double()
    mixed = expect_tensor(images, case.images.shape, "the first of the two").flatten(1).double()
    found = expect_tensor(targets, (len(case.labels), case.num_classes), "the second of the two")
    parts = mixed @ torch.linalg.pinv(before)
    one_hot = torch.nn.functional.one_hot(case.labels, case.num_classes).double()
    return Blend(parts, bool(torch.allclose(parts @ before, mixed, atol=1e-4)), found, parts @ one_hot)


@mixup.check(guard=True, points=0.02, first="an_image_is_blended_with_one_other")
def images_and_targets_come_back(student: Student, probe: Probe) -> None:
    """It gives a pair: images of the shape they had, and a target with a number for each class."""
    small = draw_case(probe, 4, 3)
    alone = replace(small, images=small.images[:1], labels=small.labels[:1])  # it is its own partner
    for case in (draw_case(probe), small, alone):
        call_and_read_blends(student, case)
    student.note(("pairs",))


@mixup.check(
    needs=images_and_targets_come_back, worth=0.5, guard=True, points=0.02, first="an_image_is_blended_with_one_other"
)
def both_have_the_dtype_of_the_images(student: Student, probe: Probe) -> None:
    """Images and targets have the dtype of the images that went in, be it float32 or float64."""
    small = draw_case(probe, 4, 3)
    for case in (draw_case(probe), replace(small, images=small.images.double())):
        (found,) = student.run_fixture("mixing", **asdict(case))["returned"]
        student.forget()
        try:
            images, targets = _expect_pair(student, found)
            _solve_for_blend(case, images, targets)
        except Failure as odd:
            student.note(("odd", odd.seen))
            raise
        dtypes = tuple(format_dtype(each.dtype) for each in (images, targets))
        student.note(("dtypes", dtypes))
        wanted = format_dtype(case.images.dtype)
        for name, dtype in zip(("images", "targets"), dtypes, strict=True):
            if dtype != wanted:
                look = "Which line chooses the dtype of what it makes?"
                raise Failure(f"for images of {wanted} the {name} have dtype {dtype}", wanted, look)


@mixup.check(needs=images_and_targets_come_back, points=0.04)
def an_image_is_blended_with_one_other(student: Student, probe: Probe) -> None:
    """Each image is a blend of itself and one other image of the batch; the two shares add up to 1."""
    all_unchanged = True  # one batch alone may have drawn each image for its own partner
    for seed in (4, 5, 6):
        (blend,) = call_and_read_blends(student, draw_case(probe, seed=seed))
        sums, counts = blend.parts.sum(dim=1), (blend.parts_of_others.abs() > 1e-3).sum(dim=1)
        sums_to_one = bool(torch.allclose(sums, torch.ones_like(sums), atol=1e-3))
        lowest = bool((blend.parts > -1e-3).all())
        unchanged = bool(torch.allclose(blend.parts, torch.eye(len(sums)).double(), atol=1e-3))
        brighter = bool((sums > 1 + 1e-3).all())
        facts = blend.is_blend, sums_to_one, brighter, lowest, bool((counts > 1).any()), unchanged
        student.note(("blend", *facts))
        image = int((sums - 1).abs().argmax())
        look = f"Of which two images is image {image} made, and how much of each?"
        wanted = "share · image + (1 − share) · partner, with a share between 0 and 1"
        if not blend.is_blend or not lowest:
            look = "Of which two images is each one made, and how much of each?"
            raise Failure("the images that come back are no blend of those that went in", wanted, look)
        if not sums_to_one:
            raise Failure(f"the shares of image {image} and its partner add up to {sums[image]:.2f}", wanted, look)
        if (counts > 1).any():
            look = "How many images does yours take a share of, for one that comes back?"
            raise Failure("an image that comes back holds parts of more than two", wanted, look)
        all_unchanged = all_unchanged and unchanged
    if all_unchanged:
        raise Failure("every image comes back as it was", wanted, "What is blended with what?")


@mixup.check(needs=an_image_is_blended_with_one_other, points=0.06, first=an_image_is_blended_with_one_other)
def one_share_holds_for_the_batch(student: Student, probe: Probe) -> None:
    """All images of a batch have the same share."""
    for seed in (6, 7, 8, 9):
        shares = call_and_read_blends(student, draw_case(probe, seed=seed))[0].shares_of_blended
        alike = not len(shares) or bool(shares.max() - shares.min() < 1e-3)
        student.note(("one share", alike))
        if not alike:
            seen = f"of the images of one batch {shares.min():.2f} to {shares.max():.2f} is left"
            raise Failure(seen, "one share for all", "How many numbers do you draw from the Beta distribution?")


@mixup.check(needs=an_image_is_blended_with_one_other, points=0.19, first=an_image_is_blended_with_one_other)
def every_image_is_a_partner_once(student: Student, probe: Probe) -> None:
    """The partners are the same images in another order, so each image is a partner once."""
    for seed in range(8, 12):
        others = call_and_read_blends(student, draw_case(probe, seed=seed))[0].parts_of_others
        most = int((others.abs() > 1e-3).sum(dim=0).max())
        student.note(("partner of many", most > 1, most >= len(others) - 1))
        if most > 1:
            look = "Which function of a generator gives each number from 0 to n - 1 once?"
            raise Failure(f"one image is the partner of {most} others", "each image as a partner once", look)


@mixup.check(needs=an_image_is_blended_with_one_other, points=0.67)
def the_partners_are_drawn(student: Student, probe: Probe) -> None:
    """The partners are drawn anew for every batch."""
    seen = {
        tuple(each.partners_of_images.argmax(dim=1).tolist())
        for each in call_and_read_blends(student, draw_case(probe), 6)
    }
    student.note(("orders", len(seen) > 1 or seen.copy().pop()))
    if len(seen) == 1:
        look = "Where do the partners come from: from their place in the batch, or from the generator?"
        raise Failure("six batches in a row have the same partners", "partners drawn for each batch", look)


@mixup.check(needs=an_image_is_blended_with_one_other, points=0.37, first=an_image_is_blended_with_one_other)
def targets_are_blended_as_the_images_are(student: Student, probe: Probe) -> None:
    """The targets are one-hot labels, blended with the same partners and the same share as the images."""
    for seed in (12, 13, 14, 15):
        case = draw_case(probe, seed=seed)
        (blend,) = call_and_read_blends(student, case)
        found = blend.targets.double()
        right = bool(torch.allclose(found, blend.wanted, atol=1e-3))
        hard = bool(((found - found.round()).abs() < 1e-6).all())
        one_hot = torch.nn.functional.one_hot(case.labels, case.num_classes).double()
        swapped = one_hot + blend.partners_of_images @ one_hot - blend.wanted
        student.note(("targets", right, hard, bool(torch.allclose(found, swapped, atol=1e-3))))
        if not right:
            row = int((found - blend.wanted).abs().amax(dim=1).argmax())
            seen = f"of image {row} the target is {_format_row(found[row])}"
            wanted = f"{_format_row(blend.wanted[row])}, as the image is blended"
            raise Failure(seen, wanted, "Do the labels have the partners and the share that the images have?")


def _format_row(row: Tensor) -> str:
    # what solving has left at 0 is a billionth, and of either sign
    return "[" + ", ".join(f"{round(each, 3) + 0.0:.2g}" for each in row.tolist()) + "]"


@mixup.check(needs=an_image_is_blended_with_one_other, points=0.25)
def the_share_is_of_a_beta_distribution(student: Student, probe: Probe) -> None:
    """The share is drawn from Beta(alpha, alpha): near 0 or 1 for a small alpha, near 1/2 for a large one."""
    for seed, alpha in enumerate((probe.choice((0.2, 0.25), shown=0.2), probe.choice((4.0, 5.0), shown=4.0))):
        case = draw_case(probe, 8, 3, alpha, seed)
        left = [each.shares_of_blended for each in call_and_read_blends(student, case, CALLS)]
        # a batch whose images are their own partners tells nothing of the share
        shares = torch.tensor([each.mean().item() for each in left if len(each)] or [1.0])
        spread = 1 / (4 * (2 * case.alpha + 1))
        found = (shares - 0.5).square().mean().item()
        too_high = _compare_with_bounds(shares.mean().item() - 0.5, -BOUND_OF_MEAN, BOUND_OF_MEAN)
        too_wide = _compare_with_bounds(found / spread, 0.6, 1.4)
        constant = bool(shares.max() - shares.min() < 1e-4)
        student.note(("shares", too_high, too_wide, constant))
        called = f"in {CALLS} batches with alpha={case.alpha:g}"
        look = "Which distribution of the generator do you draw from, and with which two parameters?"
        if constant:
            raise Failure(f"{called} the share is {shares[0]:.2f} every time", "a share drawn for each batch", look)
        if too_high:
            raise Failure(f"{called} the share is {shares.mean():.2f} on average", "1/2 on average", look)
        if too_wide:
            seen = f"{called} the share is {found**0.5:.2f} away from 1/2, in root mean square"
            raise Failure(seen, f"{spread**0.5:.2f}", look)


def _compare_with_bounds(number: float, low: float, high: float) -> int:
    """-1 below the bounds, 1 above them, 0 between."""
    return (number > high) - (number < low)


@mixup.check(needs=an_image_is_blended_with_one_other, points=0.04)
def all_chance_is_the_generators(student: Student, probe: Probe) -> None:
    """All random numbers come from the generator: the same seed gives the same batch, and no other generator moves."""
    case = draw_case(probe)
    runs = [replace(case, seed=seed) for seed in (5, 5, 6)]
    notes = [
        student.run_fixture("mixing_by_chance", **asdict(run), global_seed=number) for number, run in enumerate(runs)
    ]
    student.forget(3)
    first, again, other = (_solve_for_blend(case, *_expect_pair(student, each["returned"])) for each in notes)
    same_partners = torch.equal(first.partners_of_images, again.partners_of_images)
    same_share = same_partners and are_close(
        first.shares_of_blended, again.shares_of_blended
    )  # each partner of another has a share
    alike = are_close(first.parts, other.parts)
    touched = tuple(str(each) for each in notes[0]["touched"])
    student.note(("chance", same_partners, same_share, alike, touched))
    look = "Which lines draw, and from what?"
    if not (same_partners and same_share):
        raise Failure("the same seed gave another batch the second time", "the same batch", look)
    if alike:
        raise Failure("two generators of different seeds gave the same batch", "two different batches", look)
    if touched:
        raise Failure(f"the call moved the global generator of {touched[0]}", "the given generator alone", look)


@mixup.check(needs=images_and_targets_come_back, guard=True, points=0.01, first=an_image_is_blended_with_one_other)
def what_went_in_is_left_alone(student: Student, probe: Probe) -> None:
    """The images and labels that go in are not changed."""
    changed = [str(each) for each in student.run_fixture("mixing", **asdict(draw_case(probe)))["changed"]]
    student.note_instead(("changed", tuple(changed)))
    if changed:
        look = "Which of your operations writes in place: a name that ends in an underscore, an assignment to a slice?"
        raise Failure(f"the call changed the {changed[0]} that it was given", "new tensors", look)


@mixup.check(needs=images_and_targets_come_back, guard=True, points=0.02, first=an_image_is_blended_with_one_other)
def an_alpha_of_zero_or_less_is_refused(student: Student, probe: Probe) -> None:
    """An alpha that is not above 0 raises a ValueError that names it."""
    for alpha in (probe.choice(range(-8, -1), shown=-3), 0):
        case = draw_case(probe, alpha=alpha)
        notes = student.run_fixture("mixing_refused", **asdict(case))
        named = str(abs(int(case.alpha))) in str(notes["words"])
        student.note_instead(("refused", notes["raised"], named))
        wanted = f"a ValueError that names {case.alpha}"
        look = "The exercise's text says which error to raise; test for it before you draw."
        if not notes["raised"]:
            raise Failure(f"{student.name} accepted alpha={case.alpha}", wanted, look)
        if not notes["is_value_error"] or not named:
            words = quote_first_line(str(notes["words"])) or "no text"
            raise Failure(f"alpha={case.alpha} raised {notes['raised']} with {words}", wanted, look)


@mixup.check(
    needs=targets_are_blended_as_the_images_are, worth=0.5, points=0.01, first=an_image_is_blended_with_one_other
)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """The result is on the device of the images."""
    case = draw_case(probe)
    call_and_read_blends(student, case)
    expect_no_device_mismatch(student, student.run_fixture("mixing_elsewhere", **asdict(case)))


mixup.example(
    """
>>> images, labels = torch.eye(2).reshape(2, 1, 1, 2), torch.tensor([0, 1])
>>> mixed, targets = mixup(images, labels, 2, 0.4, numpy.random.default_rng(0))
>>> torch.allclose(mixed.flatten(1), targets)
True
>>> targets.sum(dim=1)
tensor([1., 1.])
""",
    points=0.3,
    first=an_image_is_blended_with_one_other,
)


read_mistakes(mixup, __name__)
