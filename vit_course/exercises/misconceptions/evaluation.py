"""Known mistakes of lesson 06: measuring. What the model says is gathered once, and then counted in a wrong way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.evaluation import evaluate

MEASURING = "06_cifar, Measuring"
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
    """Nobody calls model.eval(), so dropout drops while the model is measured."""
    said = _said(model, loader, before=None)
    return _loss(said), _share(said)


@evaluate.misconception("In which mode will the next epoch find the model?", MEASURING, InTraining.HIDDEN)
def never_back_to_training(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The model is left in evaluation mode, so all that comes after trains without dropout."""
    said = _said(model, loader, after=False)
    return _loss(said), _share(said)


@evaluate.misconception("Was the model in training when you got it?", MEASURING, InTraining.UNSEEN)
def always_back_to_training(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The model is put into training mode at the end, even when it came in evaluation mode."""
    said = _said(model, loader, after=True)
    return _loss(said), _share(said)


@evaluate.misconception("Who will ask for a gradient of this loss?", MEASURING, InTraining.UNSEEN)
def gradients_recorded(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """Torch records a graph for every batch, which takes memory and time, and nobody uses it."""
    said = _said(model, loader, recording=nullcontext)
    return _loss(said), _share(said)


@evaluate.misconception("Who switches the gradients on again?", MEASURING, InTraining.STOPS)
def gradients_switched_off_for_good(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """Gradients are switched off and never on again, so the next epoch cannot learn."""
    torch.set_grad_enabled(False)
    said = _said(model, loader)
    return _loss(said), _share(said)


@evaluate.misconception(
    "Which two lines of the training loop should not be copied here?", MEASURING, InTraining.FLATTERED
)
def it_goes_on_learning(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The backward pass, or even the step, was copied from the training loop, so measuring leaves its mark."""
    said = _said(model, loader, recording=nullcontext)
    F.cross_entropy(*said[-1]).backward()
    return _loss(said), _share(said)


@evaluate.misconception("Does every batch hold as many images as the others?", MEASURING)
def mean_of_batch_means(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The mean of the batches' mean losses is taken, in which each image of a short last batch counts for more."""
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
    "By what has each batch's mean to be multiplied before it is added?", MEASURING, InTraining.FLATTERED
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
    """The logits pass a softmax, and cross_entropy takes another one of that."""
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
    """The right answers are added up as a tensor, so the accuracy is one too, and a float was asked for."""
    said = _said(model, loader)
    return _loss(said), torch.tensor(_share(said))


@evaluate.misconception("Has a list of batches what you ask of the loader?", MEASURING, InTraining.UNSEEN)
def more_asked_of_the_loader_than_batches(model: nn.Module, loader: Any, device: Any) -> Pair:
    """The loader is asked for more than batches, its dataset or batch_size for instance, which a list does not have."""
    said = _said(model, loader)
    return _loss(said), sum(_right(said)) / len(loader.dataset)


@evaluate.misconception("Can the model learn again when you are done?", MEASURING, InTraining.STOPS)
def the_parameters_left_frozen(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The parameters are told to ask for no gradient, and nobody tells them otherwise afterwards."""
    said = _said(model.requires_grad_(False), loader)
    return _loss(said), _share(said)


@evaluate.misconception("Does an accuracy of 1 mean all images, or one in a hundred?", MEASURING)
def accuracy_in_percent(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The accuracy is given in percent, where a share from 0 to 1 is asked for."""
    said = _said(model, loader)
    return _loss(said), 100 * _share(said)


@evaluate.misconception("Is the last batch as large as the first?", MEASURING)
def mean_of_batch_accuracies(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The mean of the batches' accuracies is taken, in which each image of a short last batch counts for more."""
    said = _said(model, loader)
    shares = [right / len(labels) for right, (_, labels) in zip(_right(said), said, strict=True)]
    return _loss(said), sum(shares) / len(shares)


@evaluate.misconception("A share of what is the accuracy: of batches, or of images?", MEASURING)
def right_answers_per_batch(model: nn.Module, loader: Loader, device: Any) -> Pair:
    """The number of right answers is divided by the number of batches, and not by that of images."""
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


@evaluate.misconception("What do you compare with the label: a logit, or the place where it stands?", MEASURING)
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
