"""`evaluate`: the loss and the accuracy of a model.

The oracle adds up the losses and the right answers of all images, one by one, in float64. The known mistakes gather
what the model returns once, and then count it in a wrong way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import close, kind_of
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training import LESSON
from vit_course.exercises.l06_training.loop_cases import (
    RAGGED,
    Setting,
    expect_number,
    expect_on_the_device,
    logits_of,
    losses_of,
    number_in,
    setting,
)

RIGHT_ANSWERS = (5, 2, 1)  # of the images of each ragged batch

evaluate = Exercise("evaluate", LESSON, in_training=InTraining.MISREAD)


def measured_setting(probe: Probe) -> Setting:
    """A setting in which the model is right about ``RIGHT_ANSWERS`` images of each batch, out of training."""
    given = setting(probe)
    for (images, labels), right in zip(given.batches, RIGHT_ANSWERS, strict=True):
        order = logits_of(given.weights, images, False).argsort(dim=-1, descending=True)
        labels.copy_(torch.cat([order[:right, 0], order[right:, 2]]))
    return given


def loss_and_accuracy(given: Setting) -> tuple[float, float]:
    """The oracle: mean loss and share of right answers over all images."""
    losses, right = [], []
    for images, labels in given.batches:
        logits = logits_of(given.weights, images, False)
        losses += losses_of(logits, labels).tolist()
        right += [float(row.argmax()) == float(label) for row, label in zip(logits, labels, strict=True)]
    return sum(losses) / len(losses), sum(right) / len(right)


def _measured(student: Student, given: Setting, training: bool = False, **fields: Any) -> dict[str, Any]:
    """What the fixture notes; nothing goes on record yet."""
    notes = student.run_fixture("loop", weights=given.weights, batches=given.batches, training=training, **fields)
    del student.record[-1]
    return notes


def _pair(student: Student, given: Setting) -> tuple[float, float]:
    returned = _measured(student, given)["returned"]
    wanted = "a pair: the mean loss and the accuracy"
    try:
        if not isinstance(returned, list | tuple) or len(returned) != 2:
            look = (
                "Does every path end in a `return`?" if returned is None else "What does your `return` line give back?"
            )
            raise Failure(f"{student.name} gave {kind_of(returned)}", wanted, look)
        first, second = (
            number_in(each, f"the {name} is", "a number")
            for each, name in zip(returned, ("first of the pair, the mean loss,", "second, the accuracy,"), strict=True)
        )
    except Failure as odd:
        student.record.append(("odd", odd.seen))
        raise
    return first, second


@evaluate.check(guard=True)
def it_gives_a_loss_and_an_accuracy(student: Student, probe: Probe) -> None:
    """It gives two numbers, the mean loss and the accuracy, in this order."""
    given = measured_setting(probe)
    loss, accuracy = _pair(student, given)
    right_loss, right_accuracy = loss_and_accuracy(given)
    swapped = close(torch.tensor([loss, accuracy]), torch.tensor([right_accuracy, right_loss]))
    student.record.append(("swapped", swapped))
    if swapped:
        raise Failure(
            "the accuracy comes first and the loss second", "the loss first", "What does the exercise ask for?"
        )


@evaluate.check(needs=it_gives_a_loss_and_an_accuracy, guard=True)
def both_are_plain_floats(student: Student, probe: Probe) -> None:
    """Both numbers are plain floats."""
    expect_floats(student, _measured(student, measured_setting(probe))["returned"])


def expect_floats(student: Student, pair: Sequence[Any]) -> None:
    """Fail when a number of the pair is a tensor."""
    tensors = [name for name, each in zip(("loss", "accuracy"), pair, strict=True) if isinstance(each, Tensor)]
    student.record.append(("tensors", tuple(tensors)))
    if tensors:
        look = "Which method of a tensor gives its bare number?"
        raise Failure(f"the {' and the '.join(tensors)} came in a tensor", "two floats", look)


@evaluate.check(needs=it_gives_a_loss_and_an_accuracy)
def the_loss_is_a_mean_over_images(student: Student, probe: Probe) -> None:
    """The loss is the mean over all images: each image counts the same, in whatever batch it comes."""
    given = measured_setting(probe)
    found, _ = _pair(student, given)
    means = [
        float(losses_of(logits_of(given.weights, images, False), labels).mean()) for images, labels in given.batches
    ]
    batch_losses = ", ".join(f"{mean:.4f} (of {size} images)" for mean, size in zip(means, RAGGED, strict=True))
    name = f"the mean losses of the batches are {batch_losses}, and {student.name} gave"
    look = "By what do you multiply each batch's mean before you add it, and by what do you divide in the end?"
    expect_number(student, found, loss_and_accuracy(given)[0], name, look)


@evaluate.check(needs=it_gives_a_loss_and_an_accuracy)
def the_accuracy_is_a_share_of_images(student: Student, probe: Probe) -> None:
    """The accuracy is the share of images that the model classifies correctly, from 0 to 1."""
    given = measured_setting(probe)
    _, found = _pair(student, given)
    right_counts = ", ".join(f"{right} of {size}" for right, size in zip(RIGHT_ANSWERS, RAGGED, strict=True))
    name = f"the model is right about {right_counts} images in the three batches, and {student.name} gave"
    look = "How many images are there in all, and about how many of them is the model right?"
    expect_number(student, found, loss_and_accuracy(given)[1], name, look)


@evaluate.check(guard=True)
def it_measures_in_evaluation_mode(student: Student, probe: Probe) -> None:
    """It puts the model into evaluation mode, so that nothing is dropped while it is measured."""
    forwards = _measured(student, measured_setting(probe), training=True)["forwards"]
    modes = [training for training, _, _ in forwards]
    student.record.append(("training", any(modes), bool(modes)))
    if any(modes) or not modes:
        seen = f"a model that was in training measured {sum(modes)} of {len(modes)} batches with its dropout on"
        look = "Which line tells the model that it is being measured, and when?"
        raise Failure(seen if modes else "the model was never run", "evaluation mode for every batch", look)


@evaluate.check(needs=it_measures_in_evaluation_mode, guard=True)
def a_model_in_training_goes_back_to_it(student: Student, probe: Probe) -> None:
    """A model that was in training mode is in training mode again when it is done."""
    _expect_mode_kept(student, probe, training=True)


@evaluate.check(guard=True)
def a_model_in_evaluation_stays_in_it(student: Student, probe: Probe) -> None:
    """A model that was in evaluation mode is still in it when it is done."""
    _expect_mode_kept(student, probe, training=False)


def _expect_mode_kept(student: Student, probe: Probe, training: bool) -> None:
    after = _measured(student, measured_setting(probe), training)["training"]
    student.record.append(("training", after))
    if after is not training:
        was, now = (
            "training" if mode is True else "evaluation" if mode is False else mode for mode in (training, after)
        )
        raise Failure(
            f"a model that came in {was} mode left in {now} mode",
            f"{was} mode, as it was",
            "Which attribute of a model tells its mode, and when can you still read the old one?",
        )


@evaluate.check(needs=it_gives_a_loss_and_an_accuracy, guard=True)
def batches_go_to_the_device(student: Student, probe: Probe) -> None:
    """Images and labels go to the device of the model, wherever the loader has left them."""
    expect_on_the_device(student, measured_setting(probe))


@evaluate.check(guard=True)
def no_graph_is_made(student: Student, probe: Probe) -> None:
    """While it measures, no gradients are recorded, which saves memory and time; afterward they are recorded again."""
    notes = _measured(student, measured_setting(probe))
    recorded = [recording for _, recording, _ in notes["forwards"]]
    student.record.append(("recorded", any(recorded), notes["recording"]))
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


@evaluate.check(guard=True)
def nothing_is_learned(student: Student, probe: Probe) -> None:
    """The model's weights, their dtype and the gradients are the same after it as before, and no hook stays on it; it
    can still learn."""
    given = measured_setting(probe)
    stale = {name: probe.normal(*each.shape) for name, each in given.weights.items() if "drop" not in name}
    notes = _measured(student, given, stale=stale)
    moved = [name for name, before in stale.items() if not _same(notes["weights"][name], given.weights[name])]
    added = [name for name, before in stale.items() if not _same(notes["gradients"][name], before)]
    student.record.append(("changed", bool(moved), bool(added), bool(notes["frozen"]), bool(notes["hooks"])))
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


def _same(first: Tensor | None, second: Tensor) -> bool:
    return first is not None and first.dtype == second.dtype and torch.equal(first, second)


evaluate.example("""
>>> log3 = 1.0986123
>>> full_batch = (torch.tensor([[log3, 0.0], [log3, 0.0]]), torch.tensor([0, 0]))
>>> short_batch = (torch.tensor([[0.0, log3]]), torch.tensor([0]))
>>> loss, accuracy = evaluate(nn.Identity(), [full_batch, short_batch], "cpu")
>>> round(loss, 3), round(accuracy, 3)
(0.654, 0.667)
""")


MEASURING = "06_training, Evaluation"
Loader = Iterable[tuple[Tensor, Tensor]]
Said = list[tuple[Tensor, Tensor]]
Pair = tuple[Any, Any]


def _said(
    model: nn.Module,
    loader: Loader,
    before: bool | None = False,
    after: bool | None = None,
    recording: Callable[[], AbstractContextManager[Any]] = torch.no_grad,
    moved: tuple[bool, bool] = (True, True),
) -> Said:
    """Logits and labels of every batch, in the mode ``before``; then the mode ``after``, the old one unless told.

    Images and labels are ``moved`` to the model's device or not.
    """
    was = model.training
    model.train(was if before is None else before)
    home = next((each.device for each in model.parameters()), torch.device("cpu"))
    images_to, labels_to = (home if moves else torch.device("cpu") for moves in moved)
    with recording():
        said = [(model(images.to(images_to)), labels.to(labels_to)) for images, labels in loader]
    model.train(was if after is None else after)
    return said


def _loss(said: Said) -> float:
    return float(F.cross_entropy(torch.cat([x for x, _ in said]), torch.cat([y for _, y in said])).detach())


def _right(said: Said) -> list[int]:
    return [sum(int(row.argmax()) == int(label) for row, label in zip(*each, strict=True)) for each in said]


def _share(said: Said) -> float:
    return sum(_right(said)) / _images(said)


def _images(said: Said) -> int:
    return sum(len(labels) for _, labels in said)


def _batch_losses(said: Said) -> list[float]:
    return [float(F.cross_entropy(*each)) for each in said]


@evaluate.misconception("What does dropout do while the model is measured?", MEASURING)
def evaluation_never_switched_on(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """model.eval() is never called, so dropout is on while the model is measured."""
    said = _said(model, loader, before=None)
    return _loss(said), _share(said)


@evaluate.misconception("In which mode will the next epoch find the model?", MEASURING, InTraining.HIDDEN)
def never_back_to_training(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The model is left in evaluation mode, so the training that follows has no dropout."""
    said = _said(model, loader, after=False)
    return _loss(said), _share(said)


@evaluate.misconception("In which mode was the model when you got it?", MEASURING, InTraining.UNSEEN)
def always_back_to_training(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The model is put into training mode at the end, even when it came in evaluation mode."""
    said = _said(model, loader, after=True)
    return _loss(said), _share(said)


@evaluate.misconception("Is a gradient of this loss ever needed?", MEASURING, InTraining.UNSEEN)
def gradients_recorded(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """Torch records a graph for every batch, which takes memory and time, and is never used."""
    said = _said(model, loader, recording=nullcontext)
    return _loss(said), _share(said)


@evaluate.misconception("Which line switches the gradients on again?", MEASURING, InTraining.STOPS)
def gradients_switched_off_for_good(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """Gradients are switched off and never on again, so the next epoch cannot learn."""
    torch.set_grad_enabled(False)
    said = _said(model, loader)
    return _loss(said), _share(said)


@evaluate.misconception(
    "Which two lines of the training loop should not be copied here?", MEASURING, InTraining.FLATTERED
)
def it_goes_on_learning(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The backward pass, or even the step, was copied from the training loop, so measuring changes the model."""
    said = _said(model, loader, recording=nullcontext)
    F.cross_entropy(*said[-1]).backward()
    return _loss(said), _share(said)


@evaluate.misconception("Does every batch hold as many images as the others?", MEASURING)
def mean_of_batch_means(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The batches' mean losses are averaged, so each image of a short last batch counts for more."""
    said = _said(model, loader)
    return sum(_batch_losses(said)) / len(said), _share(said)


@evaluate.misconception("Over how many images is your sum?", MEASURING)
def loss_never_divided(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The losses of all images are added and never divided."""
    said = _said(model, loader)
    return _loss(said) * _images(said), _share(said)


@evaluate.misconception("What do you get when you add the means of three batches?", MEASURING)
def sum_of_batch_means(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The batches' mean losses are added and never divided."""
    said = _said(model, loader)
    return sum(_batch_losses(said)), _share(said)


@evaluate.misconception(
    "By what must each batch's mean be multiplied before it is added?", MEASURING, InTraining.FLATTERED
)
def batch_means_over_images(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The batches' mean losses are added and divided by the number of images, so the loss looks far too small."""
    said = _said(model, loader)
    return sum(_batch_losses(said)) / _images(said), _share(said)


@evaluate.misconception("What does the name `loss` hold when the loop is over?", MEASURING)
def loss_of_the_last_batch(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The loss that is returned is that of the last batch alone."""
    said = _said(model, loader)
    return _batch_losses(said)[-1], _share(said)


@evaluate.misconception("How far is your return indented?", MEASURING)
def only_the_first_batch(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The return stands in the loop, so only the first batch is measured."""
    said = _said(model, [next(iter(loader))])
    return _loss(said), _share(said)


@evaluate.misconception("What does cross_entropy do to its first argument before it takes the logarithm?", MEASURING)
def softmax_before_the_loss(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The logits go through a softmax, and cross_entropy applies another softmax to the result."""
    said = _said(model, loader)
    return _loss([(logits.softmax(dim=-1), labels) for logits, labels in said]), _share(said)


@evaluate.misconception("Which loss is asked for, and with which options?", MEASURING)
def labels_smoothed(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The loss smooths the labels by 0.1, as some trainings do; a measurement asks for the plain cross-entropy."""
    said = _said(model, loader)
    logits, labels = (torch.cat(each) for each in zip(*said, strict=True))
    return float(F.cross_entropy(logits, labels, label_smoothing=0.1)), _share(said)


@evaluate.misconception("Which method of a tensor gives its bare number?", MEASURING, InTraining.UNSEEN)
def tensors_for_floats(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The numbers are right, but they are tensors, and floats were asked for."""
    said = _said(model, loader)
    return torch.tensor(_loss(said)), torch.tensor(_share(said))


@evaluate.misconception("Which of the two numbers is still a tensor?", MEASURING, InTraining.UNSEEN)
def the_accuracy_in_a_tensor(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The right answers are added up in a tensor, so the accuracy is a tensor, too, and a float was asked for."""
    said = _said(model, loader)
    return _loss(said), torch.tensor(_share(said))


@evaluate.misconception("Does a list of batches have what you use of the loader?", MEASURING, InTraining.UNSEEN)
def more_asked_of_the_loader_than_batches(model: nn.Module, loader: Any, device: Any) -> Pair:
    """The loader is asked for more than batches, its dataset or batch_size for instance, which a list does not have."""
    said = _said(model, loader)
    return _loss(said), sum(_right(said)) / len(loader.dataset)


@evaluate.misconception("Can the model learn again when you are done?", MEASURING, InTraining.STOPS)
def the_parameters_left_frozen(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """requires_grad is switched off for the parameters, and never on again."""
    said = _said(model.requires_grad_(False), loader)
    return _loss(said), _share(said)


@evaluate.misconception("Does an accuracy of 1 mean all images, or one in a hundred?", MEASURING)
def accuracy_in_percent(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The accuracy is given in percent, where a share from 0 to 1 is asked for."""
    said = _said(model, loader)
    return _loss(said), 100 * _share(said)


@evaluate.misconception("Is the last batch as large as the first?", MEASURING)
def mean_of_batch_accuracies(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The batches' accuracies are averaged, so each image of a short last batch counts for more."""
    said = _said(model, loader)
    shares = [right / len(labels) for right, (_, labels) in zip(_right(said), said, strict=True)]
    return _loss(said), sum(shares) / len(shares)


@evaluate.misconception("A share of what is the accuracy: of batches, or of images?", MEASURING)
def right_answers_per_batch(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The number of right answers is divided by the number of batches, and not by the number of images."""
    said = _said(model, loader)
    return _loss(said), sum(_right(said)) / len(said)


@evaluate.misconception("How many images did you count, and how many did you divide by?", MEASURING)
def right_answers_counted(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The right answers are counted, and the count is not divided by the number of images."""
    said = _said(model, loader)
    return _loss(said), sum(_right(said))


@evaluate.misconception("Which line runs for every batch, and which one only when the loop is over?", MEASURING)
def accuracy_of_the_last_batch(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The accuracy that is returned is that of the last batch alone."""
    said = _said(model, loader)
    return _loss(said), _right(said)[-1] / len(said[-1][1])


@evaluate.misconception("Along which axis do the classes lie?", MEASURING, InTraining.STOPS)
def best_image_of_each_class(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The argmax runs over the images: it finds the best image for a class, and not the best class for an image."""
    said = _said(model, loader)
    right = sum(int((logits.argmax(0) == labels).sum()) for logits, labels in said)
    return _loss(said), right / _images(said)


@evaluate.misconception("What do you compare with the label: a logit, or its index?", MEASURING)
def no_answer_counts_as_right(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The accuracy is 0: the largest logit itself was compared with the label, or // has rounded the share down."""
    said = _said(model, loader)
    right = sum(int((logits.amax(-1) == labels).sum()) for logits, labels in said)
    return _loss(said), right / _images(said)


@evaluate.misconception("Is the last batch as large as the first?", MEASURING)
def every_batch_taken_for_full(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """Sums are divided by batches times batch size, which is too many images when the last batch is not full."""
    said = _said(model, loader)
    thought = len(said) * len(said[0][1])
    return _loss(said) * _images(said) / thought, sum(_right(said)) / thought


@evaluate.misconception("Which of the two numbers does the exercise name first?", MEASURING)
def accuracy_before_loss(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The pair comes in the wrong order, the accuracy first."""
    said = _said(model, loader)
    return _share(said), _loss(said)


@evaluate.misconception("How many numbers does the exercise ask for?", MEASURING, InTraining.STOPS)
def accuracy_alone(model: nn.Module, loader: Loader, device: Any) -> float:
    """Only the accuracy is returned; the loss is missing."""
    return _share(_said(model, loader))


@evaluate.misconception("Where is the model, and where does the loader leave its batches?", MEASURING, InTraining.STOPS)
def batches_left_where_they_are(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """Images and labels are not moved to the device, which works until there is a GPU."""
    said = _said(model, loader, moved=(False, False))
    return _loss(said), _share(said)


@evaluate.misconception("Which two tensors does a batch hold, and which one did you move?", MEASURING, InTraining.STOPS)
def labels_left_behind(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The images are moved to the device and the labels are not, so on a GPU they cannot be compared."""
    said = _said(model, loader, moved=(True, False))
    return _loss(said), _share(said)


def _evaluated(
    model: nn.Module,
    loader: Loader,
    device: Any,
    *,
    before: bool | None = False,
    after: bool | None = None,
    recording: Callable[[], Any] = torch.no_grad,
    moved: tuple[bool, bool] = (True, True),
    batches: Callable[[Loader], Any] = lambda loader: loader,
    for_good: bool = False,
    loss: Callable[[Said], float] = _loss,
    share: Callable[[Said], float] = _share,
    postprocess: Callable[[float, float], Any] = lambda loss, share: (loss, share),
) -> Any:
    if for_good:
        torch.set_grad_enabled(False)
    said = _said(model, batches(loader), before, after, recording, moved)
    return postprocess(loss(said), share(said))


def _in_mean(said: Said) -> float:
    shares = [right / len(labels) for right, (_, labels) in zip(_right(said), said, strict=True)]
    return sum(shares) / len(shares)


def _answers(said: Said, judge: Callable[[Tensor, Tensor], Tensor]) -> float:
    return sum(int(judge(*each).sum()) for each in said) / _images(said)


declare(
    evaluate,
    Parts(
        _evaluated,
        {
            evaluation_never_switched_on: {"before": None},
            never_back_to_training: {"after": False},
            always_back_to_training: {"after": True},
            gradients_recorded: {"recording": nullcontext},
            gradients_switched_off_for_good: {"for_good": True},
            mean_of_batch_means: {"loss": lambda said: sum(_batch_losses(said)) / len(said)},
            loss_never_divided: {"loss": lambda said: _loss(said) * _images(said)},
            sum_of_batch_means: {"loss": lambda said: sum(_batch_losses(said))},
            batch_means_over_images: {"loss": lambda said: sum(_batch_losses(said)) / _images(said)},
            loss_of_the_last_batch: {"loss": lambda said: _batch_losses(said)[-1]},
            only_the_first_batch: {"batches": lambda loader: [next(iter(loader))]},
            softmax_before_the_loss: {
                "loss": lambda said: _loss([(logits.softmax(dim=-1), labels) for logits, labels in said])
            },
            accuracy_in_percent: {"share": lambda said: 100 * _share(said)},
            mean_of_batch_accuracies: {"share": _in_mean},
            right_answers_per_batch: {"share": lambda said: sum(_right(said)) / len(said)},
            right_answers_counted: {"share": lambda said: sum(_right(said))},
            accuracy_of_the_last_batch: {"share": lambda said: _right(said)[-1] / len(said[-1][1])},
            best_image_of_each_class: {
                "share": lambda said: _answers(said, lambda logits, labels: logits.argmax(0) == labels)
            },
            no_answer_counts_as_right: {
                "share": lambda said: _answers(said, lambda logits, labels: logits.amax(-1) == labels)
            },
            accuracy_before_loss: {"postprocess": lambda loss, share: (share, loss)},
            accuracy_alone: {"postprocess": lambda loss, share: share},
            batches_left_where_they_are: {"moved": (False, False)},
            labels_left_behind: {"moved": (True, False)},
        },
    ),
)
