"""`split_indices`: which images train, and which validate.

There is no oracle: many splits are right, and each check is a fact that holds for all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import describe_kind, format_dtype, format_shape, join_names
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training import LESSON

Case = tuple[int, int, int]
# the judge looks at every one; no check asks for a thousandth of them
MOST_INDICES = 100_000


def draw_cases(probe: Probe) -> tuple[Case, ...]:
    """num_samples, num_validation, seed: a random choice of these sizes is a run of neighbors once in 10**8 times."""
    if not probe.is_secret:
        return (41, 11, 3), (60, 23, 8), (37, 25, 5)
    drawn = (probe.choice(range(40, 80)), probe.choice(range(12, 24)), probe.choice(range(10_000)))
    seeds = probe.sizes(2, low=2, high=10_000)
    return drawn, *((probe.choice(range(40, 80)), probe.choice(range(12, 24)), seed) for seed in seeds)


split_indices = Exercise("split_indices", LESSON, in_training=InTraining.HIDDEN)


def expect_two_index_lists(student: Student, returned: Any) -> tuple[list[int], list[int]]:
    """The two parts as lists; Failure when these are no two sequences of whole numbers."""
    expected = "a pair: train_indices, validation_indices"
    if not isinstance(returned, list | tuple):
        raise Failure(
            f"{student.name} gave {describe_kind(returned)}", expected, "What does your `return` line give back?"
        )
    if len(returned) != 2:
        raise Failure(f"{student.name} gave {describe_kind(returned)}", expected, "How many parts has a split?")
    train, validation = (
        _expect_indices(part, f"the {name} part") for part, name in zip(returned, ("train", "validation"), strict=True)
    )
    return train, validation


def _expect_indices(part: Any, name: str) -> list[int]:
    expected = "indices: an int64 tensor with one axis"
    if isinstance(part, Tensor):
        if part.ndim != 1:
            raise Failure(
                f"{name} is a tensor of shape {format_shape(part)}", expected, "Which call adds an axis, or drops one?"
            )
        if part.dtype == torch.bool:
            look = "A mask says of each image whether it is chosen. Which function gives the places where it is True?"
            raise Failure(f"{name} is a mask of {len(part)} bools", expected, look)
        if part.is_floating_point():
            raise Failure(f"{name} has dtype {format_dtype(part.dtype)}", "int64", "Can 3.0 be an index?")
        if len(part) > MOST_INDICES:
            raise Failure(f"{name} has {len(part):,} indices", "as many as were asked for", "Which part is which?")
        return [int(each) for each in part]
    if not isinstance(part, Sequence) or isinstance(part, str):
        look = "Is that a row of numbers, or something that holds one?"
        raise Failure(f"{name} is {describe_kind(part)}", expected, look)
    if odd := [each for each in part if not _is_whole_number(each)]:
        raise Failure(f"{name} holds {describe_kind(odd[0])}", expected, "Which line makes its elements?")
    return [int(each) for each in part]


def _is_whole_number(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0 and not value.is_floating_point() and value.dtype != torch.bool
    return hasattr(value, "__index__") and not isinstance(value, bool)


def call_and_expect_split(student: Student, case: Case, global_seed: int = 0) -> tuple[list[int], list[int]]:
    """The two parts of one call; of what they are, nothing goes on record: that is chance, and facts are not."""
    returned = student.run_fixture("chance", inputs=list(case), global_seed=global_seed)["returned"]
    student.forget()
    try:
        return expect_two_index_lists(student, returned)
    except Failure as odd:
        student.note(("odd", odd.seen))
        raise


def _format_call(case: Case) -> str:
    return "split_indices({}, {}, {})".format(*case)


def expect_whole_split(student: Student, probe: Probe) -> None:
    """The parts have their sizes, and hold every image once."""
    the_two_parts_have_the_sizes_asked_for(student, probe)
    every_image_is_used_once(student, probe)


def expect_whole_and_repeatable_split(student: Student, probe: Probe) -> None:
    """And the same seed gives the same split."""
    expect_whole_split(student, probe)
    the_same_seed_gives_the_same_split(student, probe)


@split_indices.check(guard=True)
def the_two_parts_have_the_sizes_asked_for(student: Student, probe: Probe) -> None:
    """It gives two parts: the second has num_validation indices, and the first has all others."""
    for case in draw_cases(probe):
        num_samples, num_validation, _ = case
        train, validation = call_and_expect_split(student, case)
        student.note((len(train), len(validation)))
        sizes = (num_samples - num_validation, num_validation)
        if (len(train), len(validation)) != sizes:
            if (len(validation), len(train)) == sizes:
                look = "Which part is named first in the exercise?"
            elif len({*train, *validation}) == num_samples == len(train) + len(validation):
                look = "Every image is in one part. What decides how many are in the second: its size, or chance?"
            elif len({*train}) < len(train) or len({*validation}) < len(validation):
                look = "An index stands twice in a part. Does your draw put back what it has drawn?"
            else:
                look = "Where does each part begin and end?"
            raise Failure(
                f"{_format_call(case)} gave {len(train)} train indices and {len(validation)} validation indices",
                f"{sizes[0]} and {sizes[1]}",
                look,
            )


@split_indices.check(needs=the_two_parts_have_the_sizes_asked_for, guard=True, points=0.1, first=expect_whole_split)
def the_parts_are_int64_tensors(student: Student, probe: Probe) -> None:
    """Each part is an int64 tensor, one of a single image too."""
    num_samples, num_validation, seed = draw_cases(probe)[0]
    for inputs in ([num_samples, num_validation, seed], [num_samples, 1, seed]):
        notes = student.run_fixture("chance", inputs=inputs)
        kinds = [str(kind) for kind in notes["kinds"]]
        student.note_instead(("kinds", tuple(kinds)))
        expect_two_index_lists(student, notes["returned"])
        for name, kind in zip(("train", "validation"), kinds, strict=True):
            if kind != "int64":
                has_dtype = kind.startswith(("int", "uint"))
                what = f"a tensor of dtype {kind}" if has_dtype else f"{'an' if kind == 'ndarray' else 'a'} {kind}"
                look = "Which line chooses the dtype?" if has_dtype else "What would torch.cat say to your two parts?"
                raise Failure(f"the {name} part is {what}", "an int64 tensor", look)


@split_indices.check(needs=the_two_parts_have_the_sizes_asked_for, points=0.05, first=expect_whole_split)
def no_image_is_in_both_parts(student: Student, probe: Probe) -> None:
    """No index is in both parts, so no image is used both to train and to judge the model."""
    for case in draw_cases(probe):
        train, validation = call_and_expect_split(student, case)
        both = sorted(set(train) & set(validation))
        student.note(("both", bool(both)))
        if both:
            raise Failure(
                f"{_format_call(case)} put {_format_indices(both)} into both parts",
                "none: an image that the model has learned by heart says nothing about new ones",
                "Are the two parts cut from one and the same order?",
            )


@split_indices.check(needs=the_two_parts_have_the_sizes_asked_for, points=0.1, first=expect_whole_split)
def every_image_is_used_once(student: Student, probe: Probe) -> None:
    """Every index from 0 to num_samples - 1 is there, and none stands twice in its part."""
    for case in draw_cases(probe):
        train, validation = call_and_expect_split(student, case)
        wanted = f"every index from 0 to {case[0] - 1} once"
        outside = sorted({*train, *validation} - set(range(case[0])))
        twice = sorted({each for part in (train, validation) for each in part if part.count(each) > 1})
        missing = sorted(set(range(case[0])) - {*train, *validation})
        student.note(("outside, twice, missing", bool(outside), bool(twice), bool(missing)))
        if outside:
            look = "With which number does the counting begin, and with which does it end?"
            raise Failure(f"{_format_call(case)} gave {_format_indices(outside)}", wanted, look)
        if twice:
            look = "Does your draw put back what it has drawn?"
            raise Failure(f"{_format_call(case)} put {_format_indices(twice)} into one part twice", wanted, look)
        if missing:
            raise Failure(
                f"{_format_call(case)} left out {_format_indices(missing)}", wanted, "Where do they get lost?"
            )


@split_indices.check(needs=the_two_parts_have_the_sizes_asked_for, guard=True, points=1, first=expect_whole_split)
def chance_chooses_the_validation_images(student: Student, probe: Probe) -> None:
    """Chance chooses the validation images: they are not the first ones, nor the last, nor every third."""
    for case in draw_cases(probe):
        chosen = sorted(set(call_and_expect_split(student, case)[1]))
        steps = {later - former for former, later in pairwise(chosen)}
        regular = len(steps) == 1
        student.note(("regular", (chosen[0] == 0, *steps) if regular else None))
        if regular:
            step = steps.pop()
            spaced = "one after the other" if step == 1 else f"one in {step}"
            raise Failure(
                f"{_format_call(case)} put the images {chosen[0]} to {chosen[-1]} into validation, {spaced}",
                "a random choice: data sets are often sorted, by class or by the day on which they were made",
                "What would be in validation if the first half of the images were cats, and the second half dogs?",
            )


@split_indices.check(needs=the_two_parts_have_the_sizes_asked_for, guard=True, points=0.1, first=expect_whole_split)
def the_same_seed_gives_the_same_split(student: Student, probe: Probe) -> None:
    """The same seed gives the same split, whatever was drawn before."""
    for case in draw_cases(probe)[:2]:
        first, other, again = (call_and_expect_split(student, case, global_seed=number) for number in (11, 12, 11))
        # the global generator as it was before gives the same split to whoever draws from that one
        student.note(("the same split", first == other, first == again))
        if first != other or first != again:
            raise Failure(
                f"{_format_call(case)} gave another split when it was called again",
                "the same one: otherwise tomorrow's run trains on the images that judge today's",
                "Which generator does your shuffle draw from, and who has set its seed?",
            )


@split_indices.check(needs=the_same_seed_gives_the_same_split, points=0.5, first=expect_whole_and_repeatable_split)
def another_seed_gives_another_split(student: Student, probe: Probe) -> None:
    """Another seed gives another split."""
    num_samples, num_validation, first = draw_cases(probe)[1]
    seeds = (0, 1, 42, first + 42) if probe.is_secret else (0, 1, 42)
    chosen = {frozenset(call_and_expect_split(student, (num_samples, num_validation, seed))[1]) for seed in seeds}
    student.note(("splits", len(chosen)))
    if len(chosen) < len(seeds):
        gave = "all gave the same validation images" if len(chosen) == 1 else f"gave {len(chosen)} choices of images"
        raise Failure(
            f"the seeds {', '.join(map(str, seeds[:-1]))} and {seeds[-1]} {gave}",
            f"{len(seeds)} different choices: that is how one tells luck from progress",
            "Where does seed enter your code, and is 0 a seed like the others there?",
        )


@split_indices.check(
    needs=(every_image_is_used_once, chance_chooses_the_validation_images, another_seed_gives_another_split),
    points=0.5,
    first=expect_whole_and_repeatable_split,
)
def any_image_may_be_chosen(student: Student, probe: Probe) -> None:
    """Any image may be chosen to validate, the first and the last too, and any may train."""
    (num_samples,), first = probe.sizes(1, low=5, high=8, shown=(6,)), probe.choice(range(10_000), shown=0)
    seeds = range(first, first + (60 if probe.is_secret else 36))  # a right split is told wrong once in 10**9 times
    times = Counter(
        index for seed in seeds for index in call_and_expect_split(student, (num_samples, num_samples // 2, seed))[1]
    )
    never, always = ([each for each in range(num_samples) if times[each] == count] for count in (0, len(seeds)))
    student.note(("never, always", tuple(never), tuple(always)))
    if never or always:
        image, part = (never[0], "training") if never else (always[0], "validation")
        seen = f"for {len(seeds)} seeds, image {image} of 0 to {num_samples - 1} was in {part} each time"
        raise Failure(seen, "every image sometimes in one part, sometimes in the other", "Which numbers can be drawn?")


@split_indices.check(guard=True, points=0.3, first=expect_whole_split)
def nobody_elses_chance_is_touched(student: Student, probe: Probe) -> None:
    """The global random generators are left as they were: the split draws from one of its own."""
    touched = student.run_fixture("chance", inputs=list(draw_cases(probe)[0]), global_seed=11)["touched"]
    student.note_instead(("touched", bool(touched)))
    if touched:
        names = {"torch": "torch", "numpy": "NumPy", "random": "Python's random"}
        raise Failure(
            f"the call moved the global generator of {join_names([names.get(each, '?') for each in touched])}",
            "a generator that belongs to the split alone: moving the global one changes every draw after it",
            "Which object could hold the seed, so that nobody else draws from it?",
        )


@split_indices.check(guard=True, points=0.2, first=expect_whole_split)
def a_part_that_would_be_empty_is_refused(student: Student, probe: Probe) -> None:
    """If a part would be empty, it raises a ValueError that names the value of num_validation; one image will do."""
    num_samples, few, seed = draw_cases(probe)[0] if probe.is_secret else (29, 6, 3)
    for enough in (1, num_samples - 1):
        student.run_fixture("chance", inputs=[num_samples, enough, seed])
        student.forget()
    for num_validation in (num_samples + few, num_samples, 0, -few):
        described = f"num_validation={num_validation} of num_samples={num_samples}"
        try:
            expect_value_error(student, (num_samples, num_validation, seed), [num_validation], described)
        except Failure:
            kinds = [
                entry[:1] if isinstance(entry, tuple) and entry[0] == "returned" else entry for entry in student.record
            ]
            student.note_only(*kinds)  # which split it was is chance
            raise


def _format_indices(indices: Sequence[int]) -> str:
    """ "the index 7", or "5 indices, among them 7"."""
    return f"{len(indices)} indices, among them {indices[0]}" if len(indices) > 1 else f"the index {indices[0]}"


split_indices.example("""
>>> train_indices, validation_indices = split_indices(10, 3, 0)
>>> len(train_indices), len(validation_indices)
(7, 3)
>>> sorted(torch.cat([train_indices, validation_indices]).tolist())
[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
""")


read_mistakes(split_indices, __name__)
