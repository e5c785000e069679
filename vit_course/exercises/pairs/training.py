"""Parts of training and measuring: what is done with a batch, in which mode, by which loss, and what is added up."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from exercise_kit.engine.two_mistakes import Parts, declare
from vit_course.exercises.checks.evaluation import evaluate
from vit_course.exercises.checks.training_loop import train_one_epoch
from vit_course.exercises.misconceptions import evaluation as measured
from vit_course.exercises.misconceptions import training_loop as wrong
from vit_course.exercises.misconceptions.evaluation import Said
from vit_course.exercises.misconceptions.training_loop import Loader, Losses


def _trained(
    model: nn.Module,
    loader: Loader,
    optimizer: Optimizer,
    device: Any,
    *,
    plan: str = wrong._PLAN,
    before: str = "",
    after: str = "",
    batches: Callable[[Loader], Any] = lambda loader: loader,
    mode: Callable[[nn.Module], Any] = nn.Module.train,
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy,
    moved: tuple[bool, bool] = (True, True),
    own: bool = False,
    mean: Callable[[Losses], Any] = wrong._mean,
) -> Any:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3) if own else optimizer
    steps: dict[str, Callable[[], Any]] = {"z": optimizer.zero_grad, "s": optimizer.step}
    mode(model)
    for letter in before:
        steps[letter]()
    noted = wrong._planned(model, batches(loader), optimizer, plan, loss, moved)
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
            wrong.gradients_never_cleared: {"plan": "fbs"},
            wrong.gradients_cleared_once: {"plan": "fbs", "before": "z"},
            wrong.gradients_cleared_too_late: {"plan": "fbsz"},
            wrong.gradients_cleared_before_the_step: {"plan": "fbzs"},
            wrong.step_before_backward: {"plan": "fzsb"},
            wrong.a_batch_too_late: {"plan": "fszb"},
            wrong.no_step: {"plan": "fzb"},
            wrong.no_backward: {"plan": "fzs"},
            wrong.one_step_for_the_whole_epoch: {"plan": "fb", "before": "z", "after": "s"},
            wrong.return_inside_the_loop: {"batches": lambda loader: [next(iter(loader))]},
            wrong.last_batch_left_out: {"batches": _full},
            wrong.training_never_switched_on: {"mode": lambda model: None},
            wrong.mean_of_batch_means: {"mean": lambda noted: sum(_floats(noted)) / len(noted)},
            wrong.every_batch_taken_for_full: {"mean": lambda noted: _summed(noted) / (len(noted) * noted[0][1])},
            wrong.sum_over_images_for_a_mean: {"mean": _summed},
            wrong.sum_of_batch_means: {"mean": lambda noted: sum(_floats(noted))},
            wrong.batch_means_over_images: {"mean": lambda noted: sum(_floats(noted)) / _images(noted)},
            wrong.loss_of_the_last_batch: {"mean": lambda noted: _floats(noted)[-1]},
            wrong.losses_kept_with_their_graphs: {
                "mean": lambda noted: torch.stack([loss * count for loss, count in noted]).sum() / _images(noted)
            },
            wrong.a_list_of_losses: {"mean": _floats},
            wrong.nothing_returned: {"mean": lambda noted: None},
            wrong.softmax_before_the_loss: {"loss": lambda x, y: F.cross_entropy(x.softmax(dim=-1), y)},
            wrong.an_optimizer_of_its_own: {"own": True},
            wrong.batches_left_where_they_are: {"moved": (False, False)},
            wrong.labels_left_behind: {"moved": (True, False)},
        },
    ),
)


def _measured(
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
    loss: Callable[[Said], float] = measured._loss,
    share: Callable[[Said], float] = measured._share,
    told: Callable[[float, float], Any] = lambda loss, share: (loss, share),
) -> Any:
    if for_good:
        torch.set_grad_enabled(False)
    said = measured._said(model, batches(loader), before, after, recording, moved)
    return told(loss(said), share(said))


def _in_mean(said: Said) -> float:
    shares = [right / len(labels) for right, (_, labels) in zip(measured._right(said), said, strict=True)]
    return sum(shares) / len(shares)


def _answers(said: Said, judge: Callable[[Tensor, Tensor], Tensor]) -> float:
    return sum(int(judge(*each).sum()) for each in said) / measured._images(said)


declare(
    evaluate,
    Parts(
        _measured,
        {
            measured.evaluation_never_switched_on: {"before": None},
            measured.never_back_to_training: {"after": False},
            measured.always_back_to_training: {"after": True},
            measured.gradients_recorded: {"recording": nullcontext},
            measured.gradients_switched_off_for_good: {"for_good": True},
            measured.mean_of_batch_means: {"loss": lambda said: sum(measured._batch_losses(said)) / len(said)},
            measured.loss_never_divided: {"loss": lambda said: measured._loss(said) * measured._images(said)},
            measured.sum_of_batch_means: {"loss": lambda said: sum(measured._batch_losses(said))},
            measured.batch_means_over_images: {
                "loss": lambda said: sum(measured._batch_losses(said)) / measured._images(said)
            },
            measured.loss_of_the_last_batch: {"loss": lambda said: measured._batch_losses(said)[-1]},
            measured.only_the_first_batch: {"batches": lambda loader: [next(iter(loader))]},
            measured.softmax_before_the_loss: {
                "loss": lambda said: measured._loss([(logits.softmax(dim=-1), labels) for logits, labels in said])
            },
            measured.accuracy_in_percent: {"share": lambda said: 100 * measured._share(said)},
            measured.mean_of_batch_accuracies: {"share": _in_mean},
            measured.right_answers_per_batch: {"share": lambda said: sum(measured._right(said)) / len(said)},
            measured.right_answers_counted: {"share": lambda said: sum(measured._right(said))},
            measured.accuracy_of_the_last_batch: {"share": lambda said: measured._right(said)[-1] / len(said[-1][1])},
            measured.best_image_of_each_class: {
                "share": lambda said: _answers(said, lambda logits, labels: logits.argmax(0) == labels)
            },
            measured.no_answer_counts_as_right: {
                "share": lambda said: _answers(said, lambda logits, labels: logits.amax(-1) == labels)
            },
            measured.accuracy_before_loss: {"told": lambda loss, share: (share, loss)},
            measured.accuracy_alone: {"told": lambda loss, share: share},
            measured.batches_left_where_they_are: {"moved": (False, False)},
            measured.labels_left_behind: {"moved": (True, False)},
        },
    ),
)
