"""`train_one_epoch`: one epoch of training; and `fix_training`, its bug hunt.

The oracle is the gradient of softmax regression as textbooks give it, and SGD with momentum written out: no
autograd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import are_close
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
    Weights,
    draw_batch_sizes,
    draw_setting,
    expect_batches_on_device,
    expect_one_number,
    expect_right_number,
    features_of,
    logits_of,
    losses_of,
)

train_one_epoch = Exercise("train_one_epoch", LESSON, in_training=InTraining.MISREAD)


def compute_gradients(weights: Weights, images: Tensor, labels: Tensor) -> Weights:
    """Of the mean cross-entropy of a batch in training mode, by the parameter's name."""
    surplus = logits_of(weights, images, True).softmax(-1) - F.one_hot(labels, len(weights["classifier.bias"]))
    surplus = surplus / len(labels)
    return {
        "classifier.weight": surplus.T @ features_of(weights, images, True),
        "classifier.bias": surplus.sum(0),
    }


def compute_weights_after_epoch(given: Setting, rate: float, momentum: float) -> tuple[Weights, list[Tensor]]:
    """The weights that an epoch of SGD leaves, and the losses of each batch's images on the way."""
    weights = {name: tensor.double() for name, tensor in given.weights.items()}
    speed: Weights = {}
    losses = []
    for images, labels in given.batches:
        losses.append(losses_of(logits_of(weights, images, True), labels))
        for name, gradient in compute_gradients(weights, images, labels).items():
            speed[name] = momentum * speed[name] + gradient if name in speed else gradient
            weights[name] = weights[name] - rate * speed[name]
    return {name: weights[name].float() for name in speed}, losses


def _run_epoch(student: Student, given: Setting, rate: float, *judged: str, **fields: Any) -> dict[str, Any]:
    settings = {"training": True, "learning_rate": rate} | fields
    return student.run_fixture("loop", *judged, weights=given.weights, batches=given.batches, **settings)


def _draw_learning_rate(probe: Probe) -> float:
    return float(probe.uniform(1, low=0.01, high=0.05)) if probe.is_secret else 0.5


def _run_epoch_and_read_loss(student: Student, given: Setting, rate: float) -> float:
    returned = _run_epoch(student, given, rate)["returned"]
    student.forget()
    try:
        return expect_one_number(returned, f"{student.name} gave", "one number, the mean loss")
    except Failure as odd:
        student.note(("odd", odd.seen))
        raise


@train_one_epoch.check(guard=True)
def it_gives_one_number(student: Student, probe: Probe) -> None:
    """It gives one number, the mean loss."""
    _run_epoch_and_read_loss(student, draw_setting(probe), 0.0)


@train_one_epoch.check(points=0.25, first="an_epoch_makes_a_step_for_every_batch")
def every_batch_is_used_once(student: Student, probe: Probe) -> None:
    """The model sees every batch of the loader once, the last one too."""
    given = draw_setting(probe)
    seen = [count for _, _, count in _run_epoch(student, given, _draw_learning_rate(probe))["forwards"]]
    student.note_instead(("images", tuple(seen)))
    if seen != given.batch_sizes:
        sizes, wanted = (", ".join(map(str, each)) or "none" for each in (seen, given.batch_sizes))
        raise Failure(
            f"the model saw batches of these numbers of images: {sizes}",
            f"{wanted}",
            "How far is your `return` indented?"
            if len(seen) == 1
            else "Which batches does your loop leave out, or repeat?",
        )


@train_one_epoch.check(points=0.5)
def a_batch_makes_one_step(student: Student, probe: Probe) -> None:
    """A batch moves the weights by one step against its own gradient, and no gradient from before is in it."""
    look = "Which gradient does the step see: none, that of this batch's loss, or an older one too?"
    _expect_one_step_per_batch(student, probe, probe.sizes(1, shown=(7,)), look)


@train_one_epoch.check(points=1)
def an_epoch_makes_a_step_for_every_batch(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """An epoch makes one step for every batch, each with the gradient of that batch alone."""
    look = "Print the norm of a gradient right before each step. Does it grow from batch to batch?"
    for plain, sizes in enumerate((draw_batch_sizes(probe), (1, *probe.sizes(2, high=6), 1))):
        _expect_one_step_per_batch(student, probe, sizes, look, str(device), bool(plain))


def _expect_one_step_per_batch(
    student: Student, probe: Probe, sizes: Sequence[int], look: str, device: str = "cpu", plain: bool = False
) -> None:
    """Fail unless each batch makes its step; in grading the model comes as an evaluation has left it."""
    given, rate, momentum = (
        draw_setting(probe, sizes),
        _draw_learning_rate(probe),
        probe.choice((0.0, 0.5, 0.9), shown=0.9),
    )
    # gradients that an earlier run has left behind, as large as those to come
    stale = {name: probe.normal(*each.shape, scale=0.3) for name, each in given.weights.items() if "drop" not in name}
    fields = {"training": not probe.is_secret, "momentum": momentum, "stale": stale, "device": device, "plain": plain}
    notes = _run_epoch(student, given, rate, "weights", **fields)
    student.note(tuple(event for event in notes["events"] if event != "zero_grad"))
    steps = notes["events"].count("step")
    context = f"for {len(sizes)} batches your loop made {steps} step{'' if steps == 1 else 's'}"
    if len(sizes) == 1:
        context = f"in this one batch your loop did: {', '.join(notes['events']) or 'nothing'}"
    right, _ = compute_weights_after_epoch(given, rate, momentum)
    _expect_right_weights(notes["weights"], given, right, context, look)


def _expect_right_weights(found: Weights, given: Setting, right: Weights, context: str, look: str) -> None:
    if all(are_close(found[name], right[name]) for name in right):
        return
    expected = "the weights that one step of SGD for each batch leaves"
    moved, should = (
        torch.cat([(after[name] - given.weights[name]).flatten() for name in right]) for after in (found, right)
    )
    if are_close(moved, torch.zeros_like(moved)):
        raise Failure(f"no weight has moved; {context}", expected, look)
    factor = float((moved * should).sum() / should.square().sum())
    if are_close(moved, factor * should):
        seen = f"the weights have moved in the right direction, but {factor:.3g} times as far; {context}"
        raise Failure(seen, expected, "What stretches or shrinks the loss, or its gradient, before the step?")
    raise Failure(f"the weights have moved, but to other values; {context}", expected, look)


@train_one_epoch.check(
    needs=(it_gives_one_number, an_epoch_makes_a_step_for_every_batch),
    guard=True,
    points=0.25,
    first="the_mean_is_over_images",
)
def the_number_is_a_plain_float(student: Student, probe: Probe) -> None:
    """The number is a plain float, and not a tensor that may keep the graphs of all batches in memory."""
    returned = _run_epoch(student, draw_setting(probe), 0.0)["returned"]
    kind = "a number"
    if isinstance(returned, Tensor):
        kind = "a tensor that knows how it was made" if returned.requires_grad else "a tensor"
    student.note_instead(("kind", kind))
    if kind != "a number":
        look = "Which method of a tensor gives its bare number?"
        if isinstance(returned, Tensor) and returned.requires_grad:
            look = "What do you add up: the number of the loss, or the loss with all that it was made from?"
        raise Failure(f"{student.name} gave {kind}", "a float", look)


@train_one_epoch.check(
    needs=an_epoch_makes_a_step_for_every_batch,
    points=0.25,
    first=an_epoch_makes_a_step_for_every_batch,
)
def it_switches_training_on(student: Student, probe: Probe) -> None:
    """It puts the model into training mode, so that dropout drops even after an evaluation."""
    forwards = _run_epoch(student, draw_setting(probe), _draw_learning_rate(probe), training=False)["forwards"]
    modes = [training for training, _, _ in forwards]
    student.note_instead(("training", all(modes)))
    if not all(modes):
        raise Failure(
            f"a model in evaluation mode trained on {modes.count(False)} of {len(modes)} batches with its dropout off",
            "training mode before the first batch, whatever came before",
            "Who tells the model that it is being trained, and when?",
        )


@train_one_epoch.check(
    needs=(it_gives_one_number, an_epoch_makes_a_step_for_every_batch),
    points=1.1,
)
def the_mean_is_over_images(student: Student, probe: Probe) -> None:
    """The mean is over all images of the epoch: a batch of 2 does not count as much as one of 6."""
    given, rate = draw_setting(probe), _draw_learning_rate(probe) if probe.is_secret else 0.0
    losses = compute_weights_after_epoch(given, rate, 0.0)[1]
    means = ", ".join(f"{each.mean():.4f} (of {len(each)} images)" for each in losses)
    name = f"with a learning rate of {rate:.2g}, the mean losses of the batches are {means}, and {student.name} gave"
    look = "By what do you multiply each batch's mean before you add it, and by what do you divide in the end?"
    expect_right_number(
        student, _run_epoch_and_read_loss(student, given, rate), float(torch.cat(losses).mean()), name, look
    )


@train_one_epoch.check(needs=the_mean_is_over_images, points=0.25)
def the_loss_is_noted_on_the_way(student: Student, probe: Probe) -> None:
    """A batch's loss is taken before its step: it is the loss whose gradient the step uses."""
    given, rate = draw_setting(probe, probe.sizes(1, shown=(7,))), _draw_learning_rate(probe)
    (losses,) = compute_weights_after_epoch(given, rate, 0.0)[1]
    name = f"for a single batch, after a step with a learning rate of {rate:.2g}, {student.name} gave"
    look = "Which loss belongs into the mean: the one that made the step, or one that was measured later?"
    expect_right_number(student, _run_epoch_and_read_loss(student, given, rate), float(losses.mean()), name, look)


@train_one_epoch.check(
    needs=an_epoch_makes_a_step_for_every_batch,
    guard=True,
    points=0.15,
    first=an_epoch_makes_a_step_for_every_batch,
)
def batches_go_to_the_device(student: Student, probe: Probe) -> None:
    """Images and labels go to the device of the model, wherever the loader has left them."""
    expect_batches_on_device(student, draw_setting(probe), _draw_learning_rate(probe))


# The broken loop does all the rest right, so that this earns only when a bug is mended.
fix_training = Exercise("fix_training", LESSON, misconceptions=train_one_epoch.misconceptions)
_BUGS = (an_epoch_makes_a_step_for_every_batch, the_mean_is_over_images)
fix_training.check(worth=2, points=0.75)(an_epoch_makes_a_step_for_every_batch)
fix_training.check(worth=2, points=0.875)(the_mean_is_over_images)
for _kept, _points, _first in (
    (the_number_is_a_plain_float, 0.125, the_mean_is_over_images),
    (it_switches_training_on, 0.25, an_epoch_makes_a_step_for_every_batch),
    (every_batch_is_used_once, 0.25, an_epoch_makes_a_step_for_every_batch),
    (the_loss_is_noted_on_the_way, 0, None),
    (batches_go_to_the_device, 0.125, an_epoch_makes_a_step_for_every_batch),
):
    fix_training.check(needs=_BUGS, worth=0.4, points=_points, first=_first)(_kept)
fix_training.check(graded_only=True, points=0.5)(a_batch_makes_one_step)

train_one_epoch.example(
    """
>>> model = nn.Linear(2, 2, bias=False)
>>> _ = nn.init.zeros_(model.weight)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
>>> batch = (torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
>>> round(train_one_epoch(model, [batch], optimizer, "cpu"), 4)
0.6931
>>> model.weight.tolist()
[[0.5, 0.0], [-0.5, 0.0]]
""",
    points=0.25,
    first=the_mean_is_over_images,
)

fix_training.example(
    """
>>> model = nn.Linear(1, 2, bias=False)
>>> _ = nn.init.zeros_(model.weight)
>>> batches = [(torch.ones(2, 1), torch.tensor([0, 1])), (torch.ones(1, 1), torch.tensor([0]))]
>>> round(fix_training(model, batches, torch.optim.SGD(model.parameters(), lr=0.0), "cpu"), 3)
0.693
""",
    points=0.125,
    first=the_mean_is_over_images,
)


read_mistakes(train_one_epoch, __name__)
