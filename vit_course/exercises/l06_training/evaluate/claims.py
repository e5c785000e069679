"""`evaluate`: the loss and the accuracy of a model.

The oracle adds up the losses and the right answers of all images, one by one, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, describe_kind
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training import LESSON
from vit_course.exercises.l06_training.loop_cases import (
    CPU,
    Setting,
    draw_setting,
    expect_batches_on_device,
    expect_one_number,
    expect_right_number,
    logits_of,
    losses_of,
)

RIGHT_ANSWERS = (5, 2, 1)  # of the images of a batch, in turn

evaluate = Exercise("evaluate", LESSON, in_training=InTraining.MISREAD)


def draw_setting_with_known_accuracy(probe: Probe, sizes: Sequence[int] = ()) -> Setting:
    """A setting in which the model is right about ``RIGHT_ANSWERS`` images of each batch, out of training."""
    given = draw_setting(probe, sizes)
    for (images, labels), right in zip(given.batches, cycle(RIGHT_ANSWERS), strict=False):
        order = logits_of(given.weights, images, False).argsort(dim=-1, descending=True)
        labels.copy_(torch.cat([order[:right, 0], order[right:, probe.choice((-1, -2), shown=2)]]))
    return given


def _draw_settings_of_many_sizes(probe: Probe) -> Iterator[tuple[Setting, dict[str, bool]]]:
    """Batches of many sizes, in a loader or a list, and the mode of the model: in grading at times training."""
    yield draw_setting_with_known_accuracy(probe), {}
    many = probe.choice(((2, 9, 8, 9, 7),), shown=(2, 6, 5, 1))  # so that dropout, left on, changes some answer
    for sizes in (probe.sizes(1), (1, 1, 3), (1,), many):
        yield draw_setting_with_known_accuracy(probe, sizes), {"training": probe.is_secret, "plain": len(sizes) == 3}


def compute_expected_loss_and_accuracy(given: Setting) -> tuple[float, float]:
    """The oracle: mean loss and share of right answers over all images."""
    losses, right = [], []
    for images, labels in given.batches:
        logits = logits_of(given.weights, images, False)
        losses += losses_of(logits, labels).tolist()
        right += [float(row.argmax()) == float(label) for row, label in zip(logits, labels, strict=True)]
    return sum(losses) / len(losses), sum(right) / len(right)


def _run_loop_and_read_notes(student: Student, given: Setting, training: bool = False, **fields: Any) -> dict[str, Any]:
    """Return what the fixture notes; nothing goes on record yet."""
    notes = student.run_fixture("loop", weights=given.weights, batches=given.batches, training=training, **fields)
    student.forget()
    return notes


def _call_and_expect_two_numbers(student: Student, given: Setting, **fields: bool) -> tuple[float, float]:
    returned = _run_loop_and_read_notes(student, given, **fields)["returned"]
    wanted = "a pair: the mean loss and the accuracy"
    try:
        if not isinstance(returned, list | tuple) or len(returned) != 2:
            look = (
                "Does every path end in a `return`?" if returned is None else "What does your `return` line give back?"
            )
            raise Failure(f"{student.name} gave {describe_kind(returned)}", wanted, look)
        first, second = (
            expect_one_number(each, f"the {name} is", "a number")
            for each, name in zip(returned, ("first of the pair, the mean loss,", "second, the accuracy,"), strict=True)
        )
    except Failure as odd:
        student.note(("odd", odd.seen))
        raise
    return first, second


def expect_one_number_is_right(student: Student, probe: Probe) -> None:
    """The loss or the accuracy is right: a slip in one of them costs its own check, and not those of all else."""
    given = draw_setting_with_known_accuracy(probe)
    wanted = compute_expected_loss_and_accuracy(given)
    found = torch.tensor(_call_and_expect_two_numbers(student, given))
    student.note(found)
    if not torch.isclose(found, torch.tensor(wanted), rtol=1e-4, atol=1e-5).any():
        seen = f"{student.name} gave {found[0]:.4f} and {found[1]:.4f}"
        raise Failure(seen, f"{wanted[0]:.4f} and {wanted[1]:.4f}", "Which loss, and which share?")


@evaluate.check(guard=True)
def it_gives_a_loss_and_an_accuracy(student: Student, probe: Probe) -> None:
    """It gives two numbers, the mean loss and the accuracy, in this order."""
    given = draw_setting_with_known_accuracy(probe)
    loss, accuracy = _call_and_expect_two_numbers(student, given)
    right_loss, right_accuracy = compute_expected_loss_and_accuracy(given)
    swapped = are_close(torch.tensor([loss, accuracy]), torch.tensor([right_accuracy, right_loss]))
    student.note(("swapped", swapped))
    if swapped:
        raise Failure(
            "the accuracy comes first and the loss second", "the loss first", "What does the exercise ask for?"
        )


@evaluate.check(needs=it_gives_a_loss_and_an_accuracy, guard=True, points=0.1, first=expect_one_number_is_right)
def both_are_plain_floats(student: Student, probe: Probe) -> None:
    """Both numbers are plain floats."""
    pair = _run_loop_and_read_notes(student, draw_setting_with_known_accuracy(probe))["returned"]
    tensors = [name for name, each in zip(("loss", "accuracy"), pair, strict=True) if isinstance(each, Tensor)]
    student.note(("tensors", tuple(tensors)))
    if tensors:
        look = "Which method of a tensor gives its bare number?"
        raise Failure(f"the {' and the '.join(tensors)} came in a tensor", "two floats", look)


@evaluate.check(needs=it_gives_a_loss_and_an_accuracy, points=0.84)
def the_loss_is_a_mean_over_images(student: Student, probe: Probe) -> None:
    """The loss is the mean over all images: each image counts the same, in whatever batch it comes."""
    look = "By what do you multiply each batch's mean before you add it, and by what do you divide in the end?"
    for given, fields in _draw_settings_of_many_sizes(probe):
        found, _ = _call_and_expect_two_numbers(student, given, **fields)
        batch_losses = ", ".join(
            f"{float(losses_of(logits_of(given.weights, images, False), labels).mean()):.4f} (of {len(labels)} images)"
            for images, labels in given.batches
        )
        name = f"the mean losses of the batches are {batch_losses}, and {student.name} gave"
        expect_right_number(student, found, compute_expected_loss_and_accuracy(given)[0], name, look)


@evaluate.check(needs=it_gives_a_loss_and_an_accuracy, points=0.84)
def the_accuracy_is_a_share_of_images(student: Student, probe: Probe) -> None:
    """The accuracy is the share of images that the model classifies correctly, from 0 to 1."""
    look = "How many images are there in all, and about how many of them is the model right?"
    for given, fields in _draw_settings_of_many_sizes(probe):
        _, found = _call_and_expect_two_numbers(student, given, **fields)
        right_counts = ", ".join(
            f"{min(right, size)} of {size}"
            for right, size in zip(cycle(RIGHT_ANSWERS), given.batch_sizes, strict=False)
        )
        name = f"the model is right about {right_counts} images in the batches, and {student.name} gave"
        expect_right_number(student, found, compute_expected_loss_and_accuracy(given)[1], name, look)


@evaluate.check(guard=True, points=0.08, first=expect_one_number_is_right)
def it_measures_in_evaluation_mode(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """It puts the model into evaluation mode, so that nothing is dropped while it is measured."""
    forwards = _run_loop_and_read_notes(
        student, draw_setting_with_known_accuracy(probe), training=True, device=str(device)
    )["forwards"]
    modes = [training for training, _, _ in forwards]
    student.note(("training", tuple(modes)))
    if any(modes) or not modes:
        seen = f"a model that was in training measured {sum(modes)} of {len(modes)} batches with its dropout on"
        look = "Which line tells the model that it is being measured, and when?"
        raise Failure(seen if modes else "the model was never run", "evaluation mode for every batch", look)


@evaluate.check(needs=it_measures_in_evaluation_mode, guard=True, points=1.34, first=expect_one_number_is_right)
def a_model_in_training_goes_back_to_it(student: Student, probe: Probe) -> None:
    """A model that was in training mode is in training mode again when it is done."""
    _expect_mode_kept(student, probe, training=True)


@evaluate.check(guard=True, points=0.05, first=expect_one_number_is_right)
def a_model_in_evaluation_stays_in_it(student: Student, probe: Probe) -> None:
    """A model that was in evaluation mode is still in it when it is done."""
    _expect_mode_kept(student, probe, training=False)


def _expect_mode_kept(student: Student, probe: Probe, training: bool) -> None:
    after = _run_loop_and_read_notes(student, draw_setting_with_known_accuracy(probe), training)["training"]
    student.note(("training", after))
    if after is not training:
        was, now = (
            "training" if mode is True else "evaluation" if mode is False else mode for mode in (training, after)
        )
        raise Failure(
            f"a model that came in {was} mode left in {now} mode",
            f"{was} mode, as it was",
            "Which attribute of a model tells its mode, and when can you still read the old one?",
        )


@evaluate.check(
    needs=(the_loss_is_a_mean_over_images, the_accuracy_is_a_share_of_images),
    guard=True,
    points=0.05,
    first=expect_one_number_is_right,
)
def batches_go_to_the_device(student: Student, probe: Probe) -> None:
    """Images and labels go to the device of the model, wherever the loader has left them."""
    expect_batches_on_device(student, draw_setting_with_known_accuracy(probe))


@evaluate.check(guard=True, points=0.05, first=expect_one_number_is_right)
def no_graph_is_made(student: Student, probe: Probe) -> None:
    """While it measures, no gradients are recorded, which saves memory and time; afterward they are recorded again."""
    notes = _run_loop_and_read_notes(student, draw_setting_with_known_accuracy(probe))
    recorded = [recording for _, recording, _ in notes["forwards"]]
    student.note(("recorded", any(recorded), notes["recording"]))
    if any(recorded):
        raise Failure(
            f"torch recorded a graph for {sum(recorded)} of {len(recorded)} batches",
            "none: no gradient is needed here",
            "How do you tell torch that no gradient will be wanted?",
        )
    if not notes["recording"]:
        raise Failure(
            "after the call torch records no gradients any more",
            "gradients as before: the next epoch has to learn",
            "Which form of that switch switches back by itself?",
        )


@evaluate.check(guard=True, points=0.15, first=expect_one_number_is_right)
def nothing_is_learned(student: Student, probe: Probe) -> None:
    """The model's weights, their dtype and the gradients are the same after it as before, and no hook stays on it; what
    could learn before can still learn, and nothing else."""
    given = draw_setting_with_known_accuracy(probe)
    stale = {name: probe.normal(*each.shape) for name, each in given.weights.items() if "drop" not in name}
    notes = _run_loop_and_read_notes(student, given, stale=stale)
    moved = [name for name, before in stale.items() if not _is_same_tensor(notes["weights"][name], given.weights[name])]
    added = [name for name, before in stale.items() if not _is_same_tensor(notes["gradients"][name], before)]
    student.note(("changed", bool(moved), bool(added), bool(notes["frozen"]), bool(notes["hooks"])))
    if moved or added:
        what = "weights" if moved else "gradients"
        look = "Which lines of your training loop have no business here?"
        raise Failure(f"after the call the model has other {what}", f"the {what} that it had", look)
    if notes["frozen"]:
        look = "Which line changed the model's parameters, and which one changes them back?"
        seen = f"after the call `{notes['frozen'][0]}` no longer requires a gradient"
        raise Failure(seen, "parameters that go on learning in the next epoch", look)
    if notes["hooks"]:
        look = "What did the registration give you, and what can that do?"
        raise Failure("a hook stays behind on the model", "the model as it came", look)
    frozen = [probe.choice(("classifier.weight", "classifier.bias"), shown="classifier.bias")]
    afterward = _run_loop_and_read_notes(student, given, frozen=frozen)["frozen"]
    student.note(("frozen", tuple(map(str, afterward))))
    if afterward != frozen:
        look = "Which line changes what may learn, and what does it know of how the model came?"
        raise Failure(
            f"after the call other parameters learn than before: `{frozen[0]}` alone was frozen", "what it was", look
        )


def _is_same_tensor(first: Tensor | None, second: Tensor) -> bool:
    return first is not None and first.dtype == second.dtype and torch.equal(first, second)


evaluate.example(
    """
>>> log3 = 1.0986123
>>> full_batch = (torch.tensor([[log3, 0.0], [log3, 0.0]]), torch.tensor([0, 0]))
>>> short_batch = (torch.tensor([[0.0, log3]]), torch.tensor([0]))
>>> loss, accuracy = evaluate(nn.Identity(), [full_batch, short_batch], "cpu")
>>> round(loss, 3), round(accuracy, 3)
(0.654, 0.667)
""",
    points=0.5,
    first=expect_one_number_is_right,
)


read_mistakes(evaluate, __name__)
