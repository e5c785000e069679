"""Known mistakes of lesson 06: the loop. A plan in letters says what is done with a batch, and in which order.

z clears the gradients, f runs the model and takes the loss, b runs the backward pass, s makes a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.training_loop import train_one_epoch

LOOP = "06_cifar, The loop"
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


@train_one_epoch.misconception("How many batches does your clearing of the gradients serve?", LOOP, InTraining.STUCK)
def gradients_cleared_once(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The gradients are cleared once before the loop, and from then on they add up from batch to batch."""
    optimizer.zero_grad()
    return _mean(_planned(model.train(), loader, optimizer, "fbs"))


@train_one_epoch.misconception(
    "Which gradient does the very first step see, if somebody else has left one?", LOOP, InTraining.UNSEEN
)
def gradients_cleared_too_late(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The gradients are cleared after the step, so the first step still sees what was there before the epoch."""
    return _mean(_planned(model.train(), loader, optimizer, "fbsz"))


@train_one_epoch.misconception("What is left of the gradient when the step comes?", LOOP, InTraining.STUCK)
def gradients_cleared_before_the_step(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The gradients are cleared between backward() and step(), so no step ever sees one."""
    return _mean(_planned(model.train(), loader, optimizer, "fbzs"))


@train_one_epoch.misconception("Whose gradient does a step see that comes before backward()?", LOOP, InTraining.STUCK)
def step_before_backward(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The step comes before backward(), so it sees no gradient of its own batch."""
    return _mean(_planned(model.train(), loader, optimizer, "fzsb"))


@train_one_epoch.misconception(
    "For which batch is the gradient that is there when the step comes?", LOOP, InTraining.STOPS
)
def a_batch_too_late(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """Each step comes before the gradients are cleared and made anew, so it follows the batch before."""
    return _mean(_planned(model.train(), loader, optimizer, "fszb"))


@train_one_epoch.misconception("Which line changes the weights?", LOOP, InTraining.STUCK)
def no_step(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The gradients are computed, and no step uses them."""
    return _mean(_planned(model.train(), loader, optimizer, "fzb"))


@train_one_epoch.misconception("Which line computes the gradients?", LOOP, InTraining.STUCK)
def no_backward(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """Nobody computes a gradient, so there is nothing to step along."""
    return _mean(_planned(model.train(), loader, optimizer, "fzs"))


@train_one_epoch.misconception("How far is your step indented?", LOOP, InTraining.STUCK)
def one_step_for_the_whole_epoch(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The step stands behind the loop, so an epoch makes one step along the sum of all gradients."""
    optimizer.zero_grad()
    noted = _planned(model.train(), loader, optimizer, "fb")
    optimizer.step()
    return _mean(noted)


@train_one_epoch.misconception("How far is your return indented?", LOOP, InTraining.STUCK)
def return_inside_the_loop(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The return stands in the loop, so the epoch ends after its first batch."""
    return _mean(_planned(model.train(), [next(iter(loader))], optimizer))


@train_one_epoch.misconception("What becomes of the images that do not fill a batch?", LOOP, InTraining.HIDDEN)
def last_batch_left_out(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """Only full batches are used; the images of the last one never teach anything."""
    batches = list(loader)
    return _mean(_planned(model.train(), [each for each in batches if len(each[1]) == len(batches[0][1])], optimizer))


@train_one_epoch.misconception(
    "In which mode was the model when you got it, and who may have changed that?", LOOP, InTraining.HIDDEN
)
def training_never_switched_on(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """Nobody calls model.train(), so after the first evaluation the model trains without its dropout."""
    return _mean(_planned(model, loader, optimizer))


@train_one_epoch.misconception("Does every batch hold as many images as the others?", LOOP)
def mean_of_batch_means(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The mean of the batches' means is taken, in which each image of a short last batch counts for more."""
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
    "By what has each batch's mean to be multiplied before it is added?", LOOP, InTraining.FLATTERED
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
    """After the epoch all batches are measured again, which costs as much and tells of another model."""
    batches = list(loader)
    _planned(model.train(), batches, optimizer)
    return _mean(_planned(model, batches, optimizer, "f"))


@train_one_epoch.misconception("What hangs on a loss that has not been turned into a number?", LOOP, InTraining.UNSEEN)
def losses_kept_with_their_graphs(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> Tensor:
    """The loss tensors themselves are added up, and with them the graph of every batch stays in memory."""
    noted = _planned(model.train(), loader, optimizer)
    return torch.stack([loss * count for loss, count in noted]).sum() / sum(count for _, count in noted)


@train_one_epoch.misconception("Which method of a tensor gives its bare number?", LOOP, InTraining.UNSEEN)
def a_tensor_for_a_float(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> Tensor:
    """The mean is right, but it is a tensor, and a float was asked for."""
    return torch.tensor(_mean(_planned(model.train(), loader, optimizer)))


@train_one_epoch.misconception("Has a list of batches what you ask of the loader?", LOOP, InTraining.UNSEEN)
def more_asked_of_the_loader_than_batches(model: nn.Module, loader: Any, optimizer: Optimizer, device: Any) -> float:
    """The loader is asked for more than batches, its dataset or batch_size for instance, which a list does not have."""
    noted = _planned(model.train(), loader, optimizer)
    return sum(float(loss) * count for loss, count in noted) / len(loader.dataset)


@train_one_epoch.misconception("Which loss did the exercise ask for, and with which options?", LOOP, InTraining.HIDDEN)
def labels_smoothed(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The cross-entropy smooths the labels by 0.1, which nobody asked for, and is another loss."""
    return _mean(
        _planned(model.train(), loader, optimizer, criterion=lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1))
    )


@train_one_epoch.misconception("How many numbers does the exercise ask for?", LOOP, InTraining.STOPS)
def a_list_of_losses(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> list[float]:
    """All batches' losses are returned, one by one."""
    return [float(loss) for loss, _ in _planned(model.train(), loader, optimizer)]


@train_one_epoch.misconception("What does a function give whose last line is no return?", LOOP, InTraining.STOPS)
def nothing_returned(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> None:
    """The model is trained, and nothing is returned."""
    _planned(model.train(), loader, optimizer)


@train_one_epoch.misconception(
    "What does cross_entropy do to its first argument before it takes the logarithm?", LOOP, InTraining.WORSE
)
def softmax_before_the_loss(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The logits pass a softmax, and cross_entropy takes another one of that, which makes the gradients faint."""
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
    "Which optimiser were you given, and which one does your loop use?", LOOP, InTraining.HIDDEN
)
def an_optimizer_of_its_own(model: nn.Module, loader: Loader, optimizer: Optimizer, device: Any) -> float:
    """The loop makes an optimiser of its own, and the one that it is given, with its learning rate, does nothing."""
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
