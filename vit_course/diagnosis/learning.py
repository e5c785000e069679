"""One step of learning, with the caller's labels, optimizer and loss."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from vit_course.diagnosis.answers import NotAsked, Remarks, report_unusual, report_wrong
from vit_course.diagnosis.subject import copy_model, find_logits, remove_callers_hooks

_STEPS = 150
Loss = Callable[[Tensor, Tensor], Tensor]


class Lesson:
    """What the model is to learn with: ``images``, ``labels`` (n,), an optimizer or none, and the ``loss``."""

    def __init__(
        self, model: nn.Module, images: Tensor, labels: Tensor | None, optimizer: Optimizer | None, loss: Loss | None
    ) -> None:
        self.model, self.images, self._labels, self._optimizer = model, images, labels, optimizer
        self.loss: Loss = loss or F.cross_entropy

    @property
    def labels(self) -> Tensor:
        """The labels (NotAsked: there are none)."""
        if self._labels is None:
            raise NotAsked("no labels were given")
        return self._labels

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer (NotAsked: there is none)."""
        if self._optimizer is None:
            raise NotAsked("no optimizer was given")
        return self._optimizer

    @cached_property
    def label_problem(self) -> str:
        """How the labels differ from class numbers; "" where they are such, or probabilities."""
        labels = self.labels
        if len(labels) != len(self.images):
            return f"there are {len(labels)} labels for {len(self.images)} images"
        if labels.is_floating_point():
            return ""
        with torch.no_grad():
            classes = find_logits(copy_model(self.model).eval()(self.images)).shape[-1]
        least, most = int(labels.min()), int(labels.max())
        return f"labels run from {least} to {most}; the model has {classes} classes" * (least < 0 or most >= classes)

    def require_fitting_labels(self) -> Tensor:
        """The labels, to learn from (NotAsked: they are none for these logits)."""
        if self.label_problem:
            raise NotAsked("the labels do not fit the logits")
        return self.labels


def labels_in_range(lesson: Lesson) -> Remarks:
    """Labels are class numbers from 0, one for each image."""
    if lesson.label_problem:
        yield report_wrong(lesson.label_problem)


def optimizer_holds_all(lesson: Lesson) -> Remarks:
    """The optimizer holds every parameter once."""
    groups = lesson.optimizer.param_groups
    held = {id(each) for group in groups for each in group["params"]}
    named = {name: each for name, each in lesson.model.named_parameters() if each.requires_grad}
    missing = [name for name, each in named.items() if id(each) not in held]
    if missing:
        seen = f"{len(missing)} of {len(named)} parameters are not in the optimizer, such as `{missing[0]}`"
        seen += ": was it made before the head was replaced?"
        yield report_wrong(seen, module=missing[0].rpartition(".")[0])
    if strangers := len(held - {id(each) for each in lesson.model.parameters()}):
        yield report_wrong(f"the optimizer holds {strangers} tensors that are no parameters of this model")
    pulled = {id(each) for group in groups if group.get("weight_decay") for each in group["params"]}
    if decayed := [name for name, each in named.items() if each.ndim < 2 and id(each) in pulled]:
        yield report_unusual(
            f"weight decay also pulls {len(decayed)} norms and biases toward 0, such as `{decayed[0]}`"
        )


def step_changes_all(lesson: Lesson) -> Remarks:
    """One step changes every parameter that the optimizer holds."""
    model, mine = _copy_model_and_optimizer(lesson.model, lesson.optimizer)
    labels = lesson.require_fitting_labels()
    stale = sum(each.grad is not None for each in lesson.model.parameters())
    if stale:
        yield report_unusual(
            f"{stale} parameters still hold the gradient of an earlier step, to which the next is added"
        )
    mine.zero_grad()
    before = {name: each.detach().clone() for name, each in model.named_parameters()}
    loss = lesson.loss(find_logits(model.train()(lesson.images)), labels)
    if not bool(torch.isfinite(loss)):
        yield report_wrong(f"the loss is {float(loss)}")
        return
    loss.backward()
    mine.step()
    held = {id(each) for group in mine.param_groups for each in group["params"]}
    same = [name for name, each in model.named_parameters() if id(each) in held and torch.equal(each, before[name])]
    if same and all(group["lr"] > 0 for group in mine.param_groups):
        seen = f"a step leaves {len(same)} parameters as they were, such as `{same[0]}`: their gradient is 0"
        yield report_unusual(seen, module=same[0].rpartition(".")[0])


def learns_by_heart(lesson: Lesson) -> Remarks:
    """Sixteen images can be learned by heart."""
    labels, images = lesson.require_fitting_labels()[:16], lesson.images[:16]
    model = copy_model(lesson.model).train()
    for each in model.modules():
        if isinstance(each, nn.modules.dropout._DropoutNd):
            each.p = 0.0
    learned = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(learned, lr=1e-3, weight_decay=0.0)
    losses: list[float] = []
    for _ in range(_STEPS):
        loss = lesson.loss(find_logits(model(images)), labels)
        losses.append(float(loss))
        if losses[-1] < 0.1 * losses[0]:
            return
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    named = [(name, each.grad) for name, each in model.named_parameters()]
    dead = [name for name, grad in named if grad is not None and float(grad.abs().max()) < 1e-9]
    seen = f"after {_STEPS} steps of AdamW on {len(images)} images the loss is {losses[-1]:.2f}, from {losses[0]:.2f}"
    yield report_unusual(seen + (f"; no gradient comes to `{dead[0]}`" if dead else ""))


def _copy_model_and_optimizer(model: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Any]:
    """Copies of a model and of its optimizer that belong together."""
    ours, theirs = copy.deepcopy((model, optimizer))
    remove_callers_hooks(ours)
    return ours, theirs


PROPERTIES = (labels_in_range, optimizer_holds_all, step_changes_all, learns_by_heart)
