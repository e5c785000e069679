"""`train_one_epoch`: one epoch of training; and `fix_training`, its bug hunt.

The oracle is the gradient of softmax regression as textbooks give it, and SGD with momentum written out: no
autograd.

A known mistake is a plan in letters, one for each thing that is done with a batch, in order: z clears the gradients, f
runs the model and takes the loss, b runs the backward pass, s makes a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from exercise_kit.engine.compare import close
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training import LESSON
from vit_course.exercises.l06_training.loop_cases import (
    CLASSES,
    RAGGED,
    Setting,
    Weights,
    expect_number,
    expect_on_the_device,
    features_of,
    logits_of,
    losses_of,
    number_in,
    setting,
)

RATE, MOMENTUM = 0.5, 0.9

train_one_epoch = Exercise("train_one_epoch", LESSON, in_training=InTraining.MISREAD)


def gradients_of(weights: Weights, images: Tensor, labels: Tensor) -> Weights:
    """Of the mean cross-entropy of a batch in training mode, by the parameter's name."""
    surplus = logits_of(weights, images, True).softmax(-1) - torch.eye(CLASSES)[labels]
    surplus = surplus / len(labels)
    return {
        "classifier.weight": surplus.T @ features_of(weights, images, True),
        "classifier.bias": surplus.sum(0),
    }


def after_an_epoch(given: Setting, rate: float, momentum: float) -> tuple[Weights, float]:
    """The weights that an epoch of SGD leaves, and the mean loss of the images on the way."""
    weights = {name: tensor.double() for name, tensor in given.weights.items()}
    speed: Weights = {}
    losses = []
    for images, labels in given.batches:
        losses.append(losses_of(logits_of(weights, images, True), labels))
        for name, gradient in gradients_of(weights, images, labels).items():
            speed[name] = momentum * speed[name] + gradient if name in speed else gradient
            weights[name] = weights[name] - rate * speed[name]
    return {name: weights[name].float() for name in speed}, float(torch.cat(losses).mean())


def _epoch(student: Student, given: Setting, rate: float, *judged: str, **fields: Any) -> dict[str, Any]:
    settings = {"training": True, "learning_rate": rate, "momentum": MOMENTUM} | fields
    return student.run_fixture("loop", *judged, weights=given.weights, batches=given.batches, **settings)


def _mean_loss(student: Student, given: Setting, rate: float) -> float:
    returned = _epoch(student, given, rate)["returned"]
    del student.record[-1]
    try:
        return number_in(returned, f"{student.name} gave", "one number, the mean loss")
    except Failure as odd:
        student.record.append(("odd", odd.seen))
        raise


def _stale(probe: Probe, given: Setting) -> Weights:
    """Gradients that an earlier run has left behind, as large as those to come."""
    return {name: probe.normal(*each.shape, scale=0.3) for name, each in given.weights.items() if "drop" not in name}


@train_one_epoch.check(guard=True)
def it_gives_one_number(student: Student, probe: Probe) -> None:
    """It gives one number, the mean loss."""
    _mean_loss(student, setting(probe), 0.0)


@train_one_epoch.check
def every_batch_is_used_once(student: Student, probe: Probe) -> None:
    """The model sees every batch of the loader once, the last one too."""
    seen = [count for _, _, count in _epoch(student, setting(probe), RATE)["forwards"]]
    student.record[-1:] = [("images", tuple(seen))]
    if seen != list(RAGGED):
        sizes, wanted = (", ".join(map(str, each)) or "none" for each in (seen, RAGGED))
        raise Failure(
            f"the model saw batches of these numbers of images: {sizes}",
            f"{wanted}",
            "How far is your `return` indented?"
            if len(seen) == 1
            else "Which batches does your loop leave out, or repeat?",
        )


@train_one_epoch.check
def a_batch_makes_one_step(student: Student, probe: Probe) -> None:
    """A batch moves the weights by one step against its own gradient, and no gradient from before is in it."""
    given = setting(probe, (7,))
    notes = _epoch(student, given, RATE, "weights", stale=_stale(probe, given))
    student.record.append(tuple(event for event in notes["events"] if event != "zero_grad"))
    order = ", ".join(notes["events"]) or "nothing"
    _expect_weights(
        notes["weights"],
        given,
        f"in this one batch your loop did: {order}",
        "Which gradient does the step see: none, that of this batch's loss, or an older one too?",
    )


@train_one_epoch.check
def an_epoch_makes_a_step_for_every_batch(student: Student, probe: Probe) -> None:
    """An epoch makes one step for every batch, each with the gradient of that batch alone."""
    given = setting(probe)
    notes = _epoch(student, given, RATE, "weights", stale=_stale(probe, given))
    student.record.append(tuple(event for event in notes["events"] if event != "zero_grad"))
    steps = notes["events"].count("step")
    _expect_weights(
        notes["weights"],
        given,
        f"for {len(RAGGED)} batches your loop made {steps} step{'' if steps == 1 else 's'}",
        "Print the norm of a gradient right before each step. Does it grow from batch to batch?",
    )


def _expect_weights(found: Weights, given: Setting, context: str, look: str) -> None:
    right, _ = after_an_epoch(given, RATE, MOMENTUM)
    if all(close(found[name], right[name]) for name in right):
        return
    expected = "the weights that one step of SGD for each batch leaves"
    moved, should = (
        torch.cat([(after[name] - given.weights[name]).flatten() for name in right]) for after in (found, right)
    )
    if close(moved, torch.zeros_like(moved)):
        raise Failure(f"no weight has moved; {context}", expected, look)
    factor = float((moved * should).sum() / should.square().sum())
    if close(moved, factor * should):
        seen = f"the weights have moved in the right direction, but {factor:.3g} times as far; {context}"
        raise Failure(seen, expected, "What stretches or shrinks the loss, or its gradient, before the step?")
    raise Failure(f"the weights have moved, but to other values; {context}", expected, look)


@train_one_epoch.check(needs=(it_gives_one_number, an_epoch_makes_a_step_for_every_batch), guard=True)
def the_number_is_a_plain_float(student: Student, probe: Probe) -> None:
    """The number is a plain float, and not a tensor that may keep the graphs of all batches in memory."""
    expect_float(student, _epoch(student, setting(probe), 0.0)["returned"])


def expect_float(student: Student, returned: Any) -> None:
    """Fail when the mean loss is a tensor; what stands last on record is left out."""
    kind = "a number"
    if isinstance(returned, Tensor):
        kind = "a tensor that knows how it was made" if returned.requires_grad else "a tensor"
    student.record[-1:] = [("kind", kind)]
    if kind != "a number":
        look = "Which method of a tensor gives its bare number?"
        if isinstance(returned, Tensor) and returned.requires_grad:
            look = "What do you add up: the number of the loss, or the loss with all that it was made from?"
        raise Failure(f"{student.name} gave {kind}", "a float", look)


@train_one_epoch.check(needs=an_epoch_makes_a_step_for_every_batch)
def it_switches_training_on(student: Student, probe: Probe) -> None:
    """It puts the model into training mode, so that dropout drops even after an evaluation."""
    forwards = _epoch(student, setting(probe), RATE, training=False)["forwards"]
    modes = [training for training, _, _ in forwards]
    student.record[-1:] = [("training", all(modes))]
    if not all(modes):
        raise Failure(
            f"a model in evaluation mode trained on {modes.count(False)} of {len(modes)} batches with its dropout off",
            "training mode before the first batch, whatever came before",
            "Who tells the model that it is being trained, and when?",
        )


@train_one_epoch.check(needs=(it_gives_one_number, an_epoch_makes_a_step_for_every_batch))
def the_mean_is_over_images(student: Student, probe: Probe) -> None:
    """The mean is over all images of the epoch: a batch of 2 does not count as much as one of 6."""
    given = setting(probe)
    found = _mean_loss(student, given, 0.0)
    right = after_an_epoch(given, 0.0, MOMENTUM)[1]
    means = [
        float(losses_of(logits_of(given.weights, images, True), labels).mean()) for images, labels in given.batches
    ]
    batch_losses = ", ".join(f"{mean:.4f} (of {size} images)" for mean, size in zip(means, RAGGED, strict=True))
    name = f"with a learning rate of 0, the mean losses of the batches are {batch_losses}, and {student.name} gave"
    look = "By what do you multiply each batch's mean before you add it, and by what do you divide in the end?"
    expect_number(student, found, right, name, look)


@train_one_epoch.check(needs=the_mean_is_over_images)
def the_loss_is_noted_on_the_way(student: Student, probe: Probe) -> None:
    """A batch's loss is taken before its step: it is the loss whose gradient the step uses."""
    given = setting(probe, (7,))
    right = after_an_epoch(given, RATE, MOMENTUM)[1]
    name = f"for a single batch, after a step with a learning rate of {RATE}, {student.name} gave"
    look = "Which loss belongs into the mean: the one that made the step, or one that was measured later?"
    expect_number(student, _mean_loss(student, given, RATE), right, name, look)


@train_one_epoch.check(needs=an_epoch_makes_a_step_for_every_batch, guard=True)
def batches_go_to_the_device(student: Student, probe: Probe) -> None:
    """Images and labels go to the device of the model, wherever the loader has left them."""
    expect_on_the_device(student, setting(probe), RATE)


# The broken loop does all the rest right, so that this earns only when a bug is mended.
fix_training = Exercise("fix_training", LESSON, misconceptions=train_one_epoch.misconceptions)
_BUGS = (an_epoch_makes_a_step_for_every_batch, the_mean_is_over_images)
for _mended in _BUGS:
    fix_training.check(worth=2)(_mended)
for _kept in (
    the_number_is_a_plain_float,
    it_switches_training_on,
    every_batch_is_used_once,
    the_loss_is_noted_on_the_way,
    batches_go_to_the_device,
):
    fix_training.check(needs=_BUGS, worth=0.4)(_kept)

train_one_epoch.example("""
>>> model = nn.Linear(2, 2, bias=False)
>>> _ = nn.init.zeros_(model.weight)
>>> optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
>>> batch = (torch.tensor([[1.0, 0.0]]), torch.tensor([0]))
>>> round(train_one_epoch(model, [batch], optimizer, "cpu"), 4)
0.6931
>>> model.weight.tolist()
[[0.5, 0.0], [-0.5, 0.0]]
""")

fix_training.example("""
>>> model = nn.Linear(1, 2, bias=False)
>>> _ = nn.init.zeros_(model.weight)
>>> batches = [(torch.ones(2, 1), torch.tensor([0, 1])), (torch.ones(1, 1), torch.tensor([0]))]
>>> round(fix_training(model, batches, torch.optim.SGD(model.parameters(), lr=0.0), "cpu"), 3)
0.693
""")


LOOP = "06_training, The loop"
Loader = Iterable[tuple[Tensor, Tensor]]
Losses = list[tuple[Tensor, int]]
_PLAN = "fzbs"


def _planned(
    model: nn.Module,
    loader: Loader,
    optimizer: Optimizer,
    plan: str = _PLAN,
    criterion: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    moved: tuple[bool, bool] = (True, True),
) -> Losses:
    """Do as planned with every batch, its images and labels moved or not; mean loss and number of images of each."""
    noted: Losses = []
    home = next(model.parameters()).device
    for batch in loader:
        images, labels = (each.to(home) if moves else each for each, moves in zip(batch, moved, strict=True))
        for letter in plan:
            if letter == "f":
                noted.append((criterion(model(images), labels), len(labels)))
            elif letter == "b":
                noted[-1][0].backward()
            else:
                (optimizer.step if letter == "s" else optimizer.zero_grad)()
    return noted


def _mean(noted: Losses) -> float:
    images = sum(count for _, count in noted)
    return sum(float(loss) * count for loss, count in noted) / images


@train_one_epoch.misconception("What does backward() do with a gradient that is there already?", LOOP, InTraining.STUCK)
def gradients_never_cleared(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The gradients are never cleared, so each step follows the sum of all gradients so far."""
    return _mean(_planned(model.train(), loader, optimizer, "fbs"))


@train_one_epoch.misconception("How often do you clear the gradients in one epoch?", LOOP, InTraining.STUCK)
def gradients_cleared_once(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The gradients are cleared once before the loop, and from then on they add up from batch to batch."""
    optimizer.zero_grad()
    return _mean(_planned(model.train(), loader, optimizer, "fbs"))


@train_one_epoch.misconception(
    "Which gradient does the very first step use, if there was one before the call?", LOOP, InTraining.UNSEEN
)
def gradients_cleared_too_late(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The gradients are cleared after the step, so the first step still uses what was there before the epoch."""
    return _mean(_planned(model.train(), loader, optimizer, "fbsz"))


@train_one_epoch.misconception("What is left of the gradient when the step comes?", LOOP, InTraining.STUCK)
def gradients_cleared_before_the_step(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The gradients are cleared between backward() and step(), so each step finds none."""
    return _mean(_planned(model.train(), loader, optimizer, "fbzs"))


@train_one_epoch.misconception(
    "If the step comes before backward(), which batch's gradient does it use?", LOOP, InTraining.STUCK
)
def step_before_backward(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The step comes before backward(), so it does not use the gradient of its own batch."""
    return _mean(_planned(model.train(), loader, optimizer, "fzsb"))


@train_one_epoch.misconception("When the step comes, which batch's gradient does it find?", LOOP, InTraining.STOPS)
def a_batch_too_late(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """Each step comes before the gradients are cleared and computed anew, so it uses those of the batch before."""
    return _mean(_planned(model.train(), loader, optimizer, "fszb"))


@train_one_epoch.misconception("Which line changes the weights?", LOOP, InTraining.STUCK)
def no_step(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The gradients are computed, and no step uses them."""
    return _mean(_planned(model.train(), loader, optimizer, "fzb"))


@train_one_epoch.misconception("Which line computes the gradients?", LOOP, InTraining.STUCK)
def no_backward(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """No gradient is computed, so the step has nothing to use."""
    return _mean(_planned(model.train(), loader, optimizer, "fzs"))


@train_one_epoch.misconception("How far is your step indented?", LOOP, InTraining.STUCK)
def one_step_for_the_whole_epoch(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The step comes after the loop, so an epoch makes one step along the sum of all gradients."""
    optimizer.zero_grad()
    noted = _planned(model.train(), loader, optimizer, "fb")
    optimizer.step()
    return _mean(noted)


@train_one_epoch.misconception("How far is your return indented?", LOOP, InTraining.STUCK)
def return_inside_the_loop(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The return stands in the loop, so the epoch ends after its first batch."""
    return _mean(_planned(model.train(), [next(iter(loader))], optimizer))


@train_one_epoch.misconception(
    "How many batches does the loader give, and how many does your loop use?", LOOP, InTraining.HIDDEN
)
def last_batch_left_out(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """Only full batches are used, so the images of a shorter last batch are never used."""
    batches = list(loader)
    return _mean(_planned(model.train(), [each for each in batches if len(each[1]) == len(batches[0][1])], optimizer))


@train_one_epoch.misconception("In which mode is the model after it has been evaluated?", LOOP, InTraining.HIDDEN)
def training_never_switched_on(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """model.train() is never called, so after the first evaluation the model trains without its dropout."""
    return _mean(_planned(model, loader, optimizer))


@train_one_epoch.misconception("Does every batch hold as many images as the others?", LOOP)
def mean_of_batch_means(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The batches' means are averaged, so each image of a short last batch counts for more."""
    noted = _planned(model.train(), loader, optimizer)
    return sum(float(loss) for loss, _ in noted) / len(noted)


@train_one_epoch.misconception("Is the last batch as large as the first?", LOOP)
def every_batch_taken_for_full(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The sum is divided by batches times batch size, which is too many images when the last batch is not full."""
    noted = _planned(model.train(), loader, optimizer)
    return sum(float(loss) * count for loss, count in noted) / (len(noted) * noted[0][1])


@train_one_epoch.misconception("Over how many images is your sum?", LOOP)
def sum_over_images_for_a_mean(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The losses of all images are added and never divided, so the number grows with the data set."""
    return sum(float(loss) * count for loss, count in _planned(model.train(), loader, optimizer))


@train_one_epoch.misconception("What do you get when you add the means of three batches?", LOOP)
def sum_of_batch_means(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The batches' means are added and never divided, so the number grows with the number of batches."""
    return sum(float(loss) for loss, _ in _planned(model.train(), loader, optimizer))


@train_one_epoch.misconception(
    "By what must each batch's mean be multiplied before it is added?", LOOP, InTraining.FLATTERED
)
def batch_means_over_images(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The batches' means are added and divided by the number of images, so the loss looks far too small."""
    noted = _planned(model.train(), loader, optimizer)
    return sum(float(loss) for loss, _ in noted) / sum(count for _, count in noted)


@train_one_epoch.misconception("What does the name `loss` hold when the loop is over?", LOOP)
def loss_of_the_last_batch(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """What is returned is the loss of the last batch alone."""
    return float(_planned(model.train(), loader, optimizer)[-1][0])


@train_one_epoch.misconception("What did the model look like when each loss was taken?", LOOP)
def measured_when_all_is_over(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """After the epoch all batches are measured again, which takes time and measures a model that has changed."""
    batches = list(loader)
    _planned(model.train(), batches, optimizer)
    return _mean(_planned(model, batches, optimizer, "f"))


@train_one_epoch.misconception(
    "What does a loss tensor keep in memory until it is turned into a number?", LOOP, InTraining.UNSEEN
)
def losses_kept_with_their_graphs(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> Tensor:
    """The loss tensors themselves are added up, so the graph of every batch stays in memory."""
    noted = _planned(model.train(), loader, optimizer)
    return torch.stack([loss * count for loss, count in noted]).sum() / sum(count for _, count in noted)


@train_one_epoch.misconception("Which method of a tensor gives its bare number?", LOOP, InTraining.UNSEEN)
def a_tensor_for_a_float(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> Tensor:
    """The mean is right, but it is a tensor, and a float was asked for."""
    return torch.tensor(_mean(_planned(model.train(), loader, optimizer)))


@train_one_epoch.misconception("Does a list of batches have what you use of the loader?", LOOP, InTraining.UNSEEN)
def more_asked_of_the_loader_than_batches(model: nn.Module, loader: Any, optimizer: Optimizer, device: Any) -> float:
    """The loader is asked for more than batches, its dataset or batch_size for instance, which a list does not have."""
    noted = _planned(model.train(), loader, optimizer)
    return sum(float(loss) * count for loss, count in noted) / len(loader.dataset)


@train_one_epoch.misconception("Which loss did the exercise ask for, and with which options?", LOOP, InTraining.HIDDEN)
def labels_smoothed(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The cross-entropy smooths the labels by 0.1, so it is another loss than the one that was asked for."""
    return _mean(
        _planned(model.train(), loader, optimizer, criterion=lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1))
    )


@train_one_epoch.misconception("How many numbers does the exercise ask for?", LOOP, InTraining.STOPS)
def a_list_of_losses(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> list[float]:
    """All batches' losses are returned, one by one."""
    return [float(loss) for loss, _ in _planned(model.train(), loader, optimizer)]


@train_one_epoch.misconception(
    "What does a function return if its last line is not a return statement?", LOOP, InTraining.STOPS
)
def nothing_returned(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> None:
    """The model is trained, and nothing is returned."""
    _planned(model.train(), loader, optimizer)


@train_one_epoch.misconception(
    "What does cross_entropy do to its first argument before it takes the logarithm?", LOOP, InTraining.WORSE
)
def softmax_before_the_loss(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The logits go through a softmax, and cross_entropy applies another one, which makes the gradients small."""
    return _mean(
        _planned(model.train(), loader, optimizer, criterion=lambda x, y: F.cross_entropy(x.softmax(dim=-1), y))
    )


@train_one_epoch.misconception(
    "By how much would a step grow if the batches were twice as large?", LOOP, InTraining.HIDDEN
)
def step_along_the_sum(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The losses of a batch are added before backward(), so large batches make large steps."""
    noted = _planned(model.train(), loader, optimizer, criterion=lambda x, y: F.cross_entropy(x, y, reduction="sum"))
    return sum(float(loss) for loss, _ in noted) / sum(count for _, count in noted)


@train_one_epoch.misconception(
    "Which optimizer were you given, and which one does your loop use?", LOOP, InTraining.HIDDEN
)
def an_optimizer_of_its_own(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The loop makes an optimizer of its own, so the given one and its learning rate have no effect."""
    return _mean(_planned(model.train(), loader, torch.optim.AdamW(model.parameters(), lr=1e-3)))


@train_one_epoch.misconception(
    "Where is the model, and where does the loader leave its batches?", LOOP, InTraining.STOPS
)
def batches_left_where_they_are(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """Images and labels are not moved to the device, which works until there is a GPU."""
    return _mean(_planned(model.train(), loader, optimizer, moved=(False, False)))


@train_one_epoch.misconception(
    "Which two tensors does a batch hold, and which one did you move?", LOOP, InTraining.STOPS
)
def labels_left_behind(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The images are moved to the device and the labels are not, so on a GPU the loss cannot be taken."""
    return _mean(_planned(model.train(), loader, optimizer, moved=(True, False)))


def _trained(
    model: nn.Module,
    loader: Loader,
    optimizer: Optimizer,
    device: Any,
    *,
    plan: str = _PLAN,
    before: str = "",
    after: str = "",
    batches: Callable[[Loader], Any] = lambda loader: loader,
    mode: Callable[[nn.Module], Any] = nn.Module.train,
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    moved: tuple[bool, bool] = (True, True),
    own: bool = False,
    mean: Callable[[Losses], Any] = _mean,
) -> Any:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3) if own else optimizer
    steps: dict[str, Callable[[], Any]] = {"z": optimizer.zero_grad, "s": optimizer.step}
    mode(model)
    for letter in before:
        steps[letter]()
    noted = _planned(model, batches(loader), optimizer, plan, loss, moved)
    for letter in after:
        steps[letter]()
    return mean(noted)


def _floats(noted: Losses) -> list[float]:
    return [float(loss) for loss, _ in noted]


def _images(noted: Losses) -> int:
    return sum(count for _, count in noted)


def _summed(noted: Losses) -> float:
    return sum(float(loss) * count for loss, count in noted)


def _full(loader: Loader) -> Any:
    batches = list(loader)
    return [each for each in batches if len(each[1]) == len(batches[0][1])]


declare(
    train_one_epoch,
    Parts(
        _trained,
        {
            gradients_never_cleared: {"plan": "fbs"},
            gradients_cleared_once: {"plan": "fbs", "before": "z"},
            gradients_cleared_too_late: {"plan": "fbsz"},
            gradients_cleared_before_the_step: {"plan": "fbzs"},
            step_before_backward: {"plan": "fzsb"},
            a_batch_too_late: {"plan": "fszb"},
            no_step: {"plan": "fzb"},
            no_backward: {"plan": "fzs"},
            one_step_for_the_whole_epoch: {"plan": "fb", "before": "z", "after": "s"},
            return_inside_the_loop: {"batches": lambda loader: [next(iter(loader))]},
            last_batch_left_out: {"batches": _full},
            training_never_switched_on: {"mode": lambda model: None},
            mean_of_batch_means: {"mean": lambda noted: sum(_floats(noted)) / len(noted)},
            every_batch_taken_for_full: {"mean": lambda noted: _summed(noted) / (len(noted) * noted[0][1])},
            sum_over_images_for_a_mean: {"mean": _summed},
            sum_of_batch_means: {"mean": lambda noted: sum(_floats(noted))},
            batch_means_over_images: {"mean": lambda noted: sum(_floats(noted)) / _images(noted)},
            loss_of_the_last_batch: {"mean": lambda noted: _floats(noted)[-1]},
            losses_kept_with_their_graphs: {
                "mean": lambda noted: torch.stack([loss * count for loss, count in noted]).sum() / _images(noted)
            },
            a_list_of_losses: {"mean": _floats},
            nothing_returned: {"mean": lambda noted: None},
            softmax_before_the_loss: {"loss": lambda x, y: F.cross_entropy(x.softmax(dim=-1), y)},
            an_optimizer_of_its_own: {"own": True},
            batches_left_where_they_are: {"moved": (False, False)},
            labels_left_behind: {"moved": (True, False)},
        },
    ),
)
