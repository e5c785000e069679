"""One step of learning, with the caller's labels, optimizer and loss."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from vit_course.diagnosis.answers import NotAsked, Remarks, unusual, wrong
from vit_course.diagnosis.subject import logits_of, twin, unhook

_STEPS = 150
Loss = Callable[[Tensor, Tensor], Tensor]


class Lesson:
    """What the model is to learn with: ``labels`` (n,), the ``optimizer`` or None, the ``loss``."""

    def __init__(
        self, model: nn.Module, images: Tensor, labels: Tensor | None, optimizer: Optimizer | None, loss: Loss | None
    ) -> None:
        self.model, self.images, self.labels, self.optimizer = model, images, labels, optimizer
        self.loss: Loss = loss or F.cross_entropy


def labels_in_range(lesson: Lesson) -> Remarks:
    """Labels are class numbers from 0, one for each image."""
    if lesson.labels is None:
        raise NotAsked("no labels were given")
    with torch.no_grad():
        logits = logits_of(twin(lesson.model).eval()(lesson.images))
    labels = lesson.labels
    if labels.is_floating_point():
        return
    if len(labels) != len(lesson.images):
        yield wrong(f"there are {len(labels)} labels for {len(lesson.images)} images")
    elif int(labels.min()) < 0 or int(labels.max()) >= logits.shape[-1]:
        yield wrong(
            f"labels run from {int(labels.min())} to {int(labels.max())}; the model has {logits.shape[-1]} classes"
        )


def optimizer_holds_all(lesson: Lesson) -> Remarks:
    """The optimizer holds every parameter once."""
    optimizer = _optimizer(lesson)
    held = [id(each) for group in optimizer.param_groups for each in group["params"]]
    named = {name: each for name, each in lesson.model.named_parameters() if each.requires_grad}
    missing = [name for name, each in named.items() if id(each) not in held]
    if missing:
        yield wrong(
            f"{len(missing)} of {len(named)} parameters are not in the optimizer, such as `{missing[0]}`: "
            "was it made before the head was replaced?",
            module=missing[0].rpartition(".")[0],
        )
    if strangers := len(set(held) - {id(each) for each in lesson.model.parameters()}):
        yield wrong(f"the optimizer holds {strangers} tensors that are no parameters of this model")
    decayed = [
        name
        for name, each in named.items()
        if each.ndim < 2
        for group in optimizer.param_groups
        if group.get("weight_decay") and any(each is one for one in group["params"])
    ]
    if decayed:
        yield unusual(f"weight decay also pulls {len(decayed)} norms and biases toward 0, such as `{decayed[0]}`")


def step_changes_all(lesson: Lesson) -> Remarks:
    """One step changes every parameter that the optimizer holds."""
    optimizer = _optimizer(lesson)
    if lesson.labels is None:
        raise NotAsked("no labels were given")
    model, mine = _both_copied(lesson.model, optimizer)
    stale = [name for name, each in lesson.model.named_parameters() if each.grad is not None]
    if stale:
        yield unusual(f"{len(stale)} parameters still hold a gradient of an earlier step, to which the next is added")
    mine.zero_grad()
    before = {name: each.detach().clone() for name, each in model.named_parameters()}
    loss = lesson.loss(logits_of(model.train()(lesson.images)), lesson.labels)
    if not bool(torch.isfinite(loss)):
        yield wrong(f"the loss is {float(loss)}")
        return
    loss.backward()
    mine.step()
    held = {id(each) for group in mine.param_groups for each in group["params"]}
    same = [name for name, each in model.named_parameters() if id(each) in held and torch.equal(each, before[name])]
    if same and all(group["lr"] > 0 for group in mine.param_groups):
        yield unusual(
            f"a step leaves {len(same)} parameters as they were, such as `{same[0]}`: their gradient is 0",
            module=same[0].rpartition(".")[0],
        )


def learns_by_heart(lesson: Lesson) -> Remarks:
    """Sixteen images can be learned by heart."""
    if lesson.labels is None:
        raise NotAsked("no labels were given")
    model, images, labels = twin(lesson.model).train(), lesson.images[:16], lesson.labels[:16]
    for each in model.modules():
        if isinstance(each, nn.modules.dropout._DropoutNd):
            each.p = 0.0
    optimizer = torch.optim.AdamW(
        [each for each in model.parameters() if each.requires_grad], lr=1e-3, weight_decay=0.0
    )
    first = None
    for _ in range(_STEPS):
        loss = lesson.loss(logits_of(model(images)), labels)
        first = first if first is not None else float(loss)
        if float(loss) < 0.1 * first:
            return
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dead = [
        name for name, each in model.named_parameters() if each.grad is not None and float(each.grad.abs().max()) < 1e-9
    ]
    yield unusual(
        f"after {_STEPS} steps of AdamW on {len(images)} images the loss is {float(loss):.2f}, from {first:.2f}"
        + (f"; no gradient comes to `{dead[0]}`" if dead else "")
    )


def _optimizer(lesson: Lesson) -> Optimizer:
    if lesson.optimizer is None:
        raise NotAsked("no optimizer was given")
    return lesson.optimizer


def _both_copied(model: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Any]:
    """Copies of a model and of its optimizer that belong together."""
    ours, theirs = copy.deepcopy((model, optimizer))
    unhook(ours)
    return ours, theirs


PROPERTIES = (labels_in_range, optimizer_holds_all, step_changes_all, learns_by_heart)
