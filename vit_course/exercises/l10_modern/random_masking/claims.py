"""`random_masking`: patches hidden from a masked autoencoder, other ones in each image.

There is no oracle: which patches are hidden is drawn. From the mask that comes back follows which tokens have to be
left.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import combinations
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
from vit_course.exercises.l10_modern import LESSON

# how often a patch may be hidden more or less than the others, in so many images: five standard errors
IMAGES, BOUND = 600, 0.11

random_masking = Exercise("random_masking", LESSON, in_training=InTraining.HIDDEN)


@dataclass(frozen=True)
class Case:
    """The arguments of one call, with the seed of its generator."""

    tokens: Tensor
    mask_ratio: float
    seed: int = 3

    @property
    def num_hidden(self) -> int:
        """How many patches of each image are to be hidden."""
        return round(self.mask_ratio * self.tokens.shape[1])


def draw_case_of_sizes(probe: Probe, batch: int, num_patches: int, mask_ratio: float) -> Case:
    """Tokens of which no two are alike, and a generator of any seed."""
    seed = probe.choice(range(1, 10_000), shown=3)
    return Case(probe.normal(batch, num_patches, 4), mask_ratio, seed)


def draw_case(probe: Probe, batch: int = 5, shown: tuple[int, int] = (8, 6)) -> Case:
    """In grading seven to eleven patches, of which two to all but two are hidden; in ``check`` those ``shown``."""
    num_patches = probe.choice(range(7, 12), shown=shown[0])
    num_hidden = probe.choice(range(2, num_patches - 1), shown=shown[1])
    return draw_case_of_sizes(probe, batch, num_patches, num_hidden / num_patches)


def call_and_expect_pairs(student: Student, case: Case, calls: int = 1) -> list[tuple[Tensor, Tensor]]:
    """Tokens and mask of each call, of which nothing goes on record; Failure where they are of another kind."""
    returned = student.run_fixture("masking", **asdict(case), calls=calls)["returned"]
    student.forget()
    try:
        return [_expect_tokens_and_mask(student, case, each) for each in returned]
    except Failure as odd:
        student.note(("odd", odd.seen))
        raise


def _expect_tokens_and_mask(student: Student, case: Case, returned: Any) -> tuple[Tensor, Tensor]:
    if not isinstance(returned, list | tuple) or len(returned) != 2:
        look = "Which two things does a masked autoencoder need: what it sees, and what else?"
        raise Failure(f"{student.name} gave {describe_kind(returned)}", "a pair: tokens, mask", look)
    batch, num_patches, embed_dim = case.tokens.shape
    kept = num_patches - case.num_hidden
    visible = expect_tensor(returned[0], (batch, kept, embed_dim), "the first of the two, the tokens that are left,")
    mask = expect_tensor(returned[1], (batch, num_patches), "the second of the two, the mask,")
    if mask.dtype != torch.bool:
        look = "What does `~` make of a tensor of numbers?"
        raise Failure(f"the mask has dtype {format_dtype(mask.dtype)}", "bool", look)
    if visible.dtype != case.tokens.dtype:
        wanted = format_dtype(case.tokens.dtype)
        look = "Which line chooses the dtype of what it makes?"
        raise Failure(f"for tokens of {wanted} those that are left are {format_dtype(visible.dtype)}", wanted, look)
    return visible, mask


@random_masking.check(guard=True)
def tokens_and_a_mask_come_back(student: Student, probe: Probe) -> None:
    """It gives a pair: the visible tokens of each image, and a bool mask with a place for each patch."""
    for case in (draw_case(probe), draw_case(probe, 1, (5, 2)), draw_case(probe, 3, (10, 3))):
        call_and_expect_pairs(student, case)
        call_and_expect_pairs(student, replace(case, tokens=case.tokens.double()))
    student.note(("pairs",))


@random_masking.check(needs=tokens_and_a_mask_come_back, points=0.32, first=tokens_and_a_mask_come_back)
def every_image_hides_as_many(student: Student, probe: Probe) -> None:
    """The mask is True at mask_ratio of the patches, in every image, rounded to a whole number."""
    to_be_rounded = [draw_case_of_sizes(probe, 2, *each) for each in ((7, 0.4), (10, 0.25), (6, 1 / 6))]
    for case in (draw_case(probe), draw_case(probe, 6, (10, 3)), draw_case(probe, 1, (5, 2)), *to_be_rounded):
        ((_, mask),) = call_and_expect_pairs(student, case)
        counts = mask.sum(dim=1)
        right = bool((counts == case.num_hidden).all())
        inverted = bool((counts == mask.shape[1] - case.num_hidden).all())
        student.note(("counts", right, inverted))
        if not right:
            image = int((counts != case.num_hidden).nonzero()[0])
            seen = f"with mask_ratio={case.mask_ratio:g} the mask is True at {counts[image]} of {mask.shape[1]} patches"
            look = "Does True mean hidden, or left?" if inverted else "Is the number of hidden patches left to chance?"
            raise Failure(f"{seen} of image {image}", str(case.num_hidden), look)


@random_masking.check(needs=tokens_and_a_mask_come_back, points=1.14)
def what_is_left_is_what_the_mask_leaves(student: Student, probe: Probe) -> None:
    """The visible tokens are those where the mask is False, in their order, and unchanged."""
    cases = [draw_case(probe, *each) for each in ((5, (8, 6)), (6, (10, 5)), (4, (7, 3)), (1, (9, 4)))]
    for case in (*cases, replace(cases[0], tokens=-cases[0].tokens)):
        ((visible, mask),) = call_and_expect_pairs(student, case)
        left = [tokens[~hidden] for tokens, hidden in zip(case.tokens, mask, strict=True)]
        fits = all(len(each) == visible.shape[1] for each in left)
        right = fits and are_close(visible, torch.stack(left))
        places = _find_places_of_visible(visible, case.tokens)
        known = bool((places >= 0).all())
        ordered = known and bool((places.diff(dim=1) > 0).all())
        hidden = known and bool(mask.gather(1, places.clamp(min=0)).all())
        student.note(("visible", right, known, ordered, hidden))
        if right:
            continue
        if not known:
            look = "Are the numbers of a token that is left still those that it had?"
            raise Failure("tokens came back that are none of the image's", "tokens of the image, unchanged", look)
        image = int((~(visible == torch.stack(left)).flatten(1).all(1)).nonzero()[0]) if fits else 0
        seen = f"of image {image} the patches {places[image].tolist()} came back"
        wanted = f"{(~mask[image]).nonzero()[:, 0].tolist()}, where the mask is False"
        raise Failure(seen, wanted, "Which patches are left, and in which order do they come?")


def _find_places_of_visible(visible: Tensor, tokens: Tensor) -> Tensor:
    """(batch, kept): which of its image's tokens each one is, -1 where it is none of them."""
    alike = (visible[:, :, None] == tokens[:, None]).all(dim=-1)  # (batch, kept, num_patches)
    return torch.where(alike.any(dim=-1), alike.int().argmax(dim=-1), -1)


@random_masking.check(needs=every_image_hides_as_many, points=1)
def each_image_hides_other_patches(student: Student, probe: Probe) -> None:
    """Which patches are hidden is drawn for each image, and anew in each call."""
    masks = [mask for _, mask in call_and_expect_pairs(student, draw_case_of_sizes(probe, 6, 24, 0.5), 3)]
    of_images = not bool((masks[0] == masks[0][:1]).all())
    of_calls = not torch.equal(masks[0], masks[1]) and not torch.equal(masks[0], masks[2])
    pairs = combinations(range(len(masks[0])), 2)  # alike in every call: in one that may be chance
    twins = [pair for pair in pairs if all(torch.equal(*mask[list(pair)]) for mask in masks)]
    student.note(("own patches", of_images, of_calls, not twins))
    if not of_images:
        look = "How many orders do you draw: one, or one for each image?"
        raise Failure("all images of a batch hide the same patches", "other patches in each image", look)
    if not of_calls:
        look = "Where does chance come from in your code, and does it move on from call to call?"
        raise Failure("batches in a row hide the same patches", "other patches in each call", look)
    if twins:
        look = "How many orders do you draw for a batch?"
        seen = f"the images {twins[0][0]} and {twins[0][1]} of a batch hide the same patches"
        raise Failure(seen, "other patches in each image", look)


@random_masking.check(needs=every_image_hides_as_many, points=0.7)
def every_patch_is_hidden_as_often(student: Student, probe: Probe) -> None:
    """Each place of the image is hidden as often as any other, and each two of them together."""
    case = draw_case_of_sizes(probe, IMAGES, 6, 0.5)
    ((_, mask),) = call_and_expect_pairs(student, case)
    share = mask.double().mean(dim=0)
    off = share - case.num_hidden / mask.shape[1]
    apart = _measure_patches_hidden_together(mask)
    together = bool(apart.abs().max() < BOUND)
    student.note(("fair", int((off > BOUND).sum()), int((off < -BOUND).sum()), together))
    place = int(off.abs().argmax())
    if off.abs().max() > BOUND:
        seen = f"in {len(mask)} images patch {place} is hidden in a share of {share[place]:.2f}"
        look = "Can every place be hidden? Draw a few masks and look."
        raise Failure(seen, f"about {case.mask_ratio:g}, as any other", look)
    if not together:
        first, second = divmod(int(apart.abs().argmax()), mask.shape[1])
        often = "more" if apart[first, second] > 0 else "less"
        look = "Does it matter for one patch whether another one is hidden? Draw a few masks and look."
        seen = f"the patches {first} and {second} are hidden together {often} often than others are"
        raise Failure(seen, "each two patches as often as any other two", look)


def _measure_patches_hidden_together(mask: Tensor) -> Tensor:
    """(num_patches, num_patches): by how much each two patches are hidden together in a larger share than others."""
    shares = mask.double().T @ mask.double() / len(mask)
    others = ~torch.eye(mask.shape[1], dtype=torch.bool)
    return torch.where(others, shares - shares[others].mean(), 0.0)


@random_masking.check(needs=tokens_and_a_mask_come_back, points=0.34)
def all_chance_is_the_generators(student: Student, probe: Probe) -> None:
    """All random numbers come from the generator: the same seed gives the same mask, and no other generator moves."""
    case = draw_case_of_sizes(probe, 6, 12, 0.5)
    runs = [case, case, replace(case, seed=case.seed + 1)]
    notes = [student.run_fixture("masking_by_chance", **asdict(run), global_seed=each) for each, run in enumerate(runs)]
    student.forget(3)
    first, again, other = (_expect_tokens_and_mask(student, case, each["returned"])[1] for each in notes)
    touched = tuple(str(each) for each in notes[0]["touched"])
    same, alike = torch.equal(first, again), torch.equal(first, other)
    student.note(("chance", same, alike, touched))
    look = "Which lines draw, and from what?"
    if not same:
        raise Failure("the same seed gave another mask the second time", "the same mask", look)
    if alike:
        raise Failure("two generators of different seeds gave the same mask", "two different masks", look)
    if touched:
        raise Failure(f"the call moved the global generator of {touched[0]}", "the given generator alone", look)


@random_masking.check(needs=what_is_left_is_what_the_mask_leaves, worth=0.5, points=0.3)
def gradients_reach_what_is_left(student: Student, probe: Probe) -> None:
    """The visible tokens get their gradient, and the hidden ones get none."""
    case = draw_case(probe)
    call_and_expect_pairs(student, case)
    notes = student.run_fixture("masking_gradients", **asdict(case))
    student.forget()
    gradient, mask = notes["gradient"], notes["mask"]
    right = torch.equal(gradient, (~mask)[:, :, None].expand_as(gradient).to(gradient.dtype))
    student.note(("gradient", right, not gradient.any()))
    if not right:
        look = "Which line leaves torch's graph: detach, .data, no_grad, a detour through numpy?"
        seen = "no gradient reaches the tokens" if not gradient.any() else "the gradient of the tokens is another one"
        raise Failure(seen, "one for the tokens that are left", look)


@random_masking.check(
    needs=tokens_and_a_mask_come_back, worth=0.5, guard=True, points=0.05, first=what_is_left_is_what_the_mask_leaves
)
def what_went_in_is_left_alone(student: Student, probe: Probe) -> None:
    """The tokens that go in are not changed."""
    notes = student.run_fixture("masking", **asdict(draw_case(probe)))
    student.note_instead(("changed", notes["changed"]))
    if notes["changed"]:
        look = "Which of your operations writes in place: an assignment to a slice, a name that ends in an underscore?"
        raise Failure("the call changed the tokens that it was given", "new tensors", look)


@random_masking.check(
    needs=tokens_and_a_mask_come_back, guard=True, points=0.05, first=what_is_left_is_what_the_mask_leaves
)
def a_ratio_that_hides_all_or_nothing_is_refused(student: Student, probe: Probe) -> None:
    """A mask_ratio that would hide no patch, or all of them, raises a ValueError that names it."""
    for ratio in (0, 1, probe.choice(range(2, 9), shown=3), 0.04, 0.96):
        case = replace(draw_case(probe), mask_ratio=ratio)
        notes = student.run_fixture("masking_refused", **asdict(case))
        named = f"{case.mask_ratio:g}" in str(notes["words"])
        student.note_instead(("refused", notes["raised"], named))
        wanted = f"a ValueError that names {case.mask_ratio:g}"
        look = "How many patches are hidden then, and how many are left? Test for it before you draw."
        if not notes["raised"]:
            raise Failure(f"{student.name} accepted mask_ratio={case.mask_ratio:g}", wanted, look)
        if not notes["is_value_error"] or not named:
            words = quote_first_line(str(notes["words"])) or "no text"
            raise Failure(f"mask_ratio={case.mask_ratio:g} raised {notes['raised']} with {words}", wanted, look)


@random_masking.check(
    needs=what_is_left_is_what_the_mask_leaves,
    worth=0.5,
    guard=True,
    points=0.05,
    first=what_is_left_is_what_the_mask_leaves,
)
def it_computes_where_the_tokens_are(student: Student, probe: Probe) -> None:
    """The visible tokens and the mask are on the device of the tokens that go in."""
    case = draw_case(probe)
    call_and_expect_pairs(student, case)
    expect_no_device_mismatch(student, student.run_fixture("masking_elsewhere", **asdict(case)))


random_masking.example(
    """
>>> tokens = torch.arange(8.0).reshape(1, 8, 1)  # eight patches of one number
>>> visible, mask = random_masking(tokens, 0.75, torch.Generator().manual_seed(0))
>>> tuple(visible.shape), mask.sum().item()
((1, 2, 1), 6)
>>> torch.equal(visible, tokens[~mask].reshape(1, 2, 1))
True
""",
    points=0.05,
    first=what_is_left_is_what_the_mask_leaves,
)


read_mistakes(random_masking, __name__)
