"""A trained model for a task of one's own: another head, features taken once, a linear probe, two learning rates."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.config import ViTConfig
from vit_course.training.loop import evaluating

LBFGS_STEPS = 300


def replace_head(model: nn.Module, num_classes: int) -> nn.Module:
    """A copy of a model with a new head; the model itself stays as it is.

    Args:
        model: whose ``head`` is an ``nn.Linear``.
        num_classes: of the new head, which starts as ``nn.Linear`` does, on the device and in the dtype of the old one.

    Returns:
        The copy. Its other parameters have the numbers of the model's, and share no memory with them.
    """
    copied = copy.deepcopy(model)
    old = copied.get_submodule("head")
    assert isinstance(old, nn.Linear)
    copied.head = nn.Linear(old.in_features, num_classes, device=old.weight.device, dtype=old.weight.dtype)
    if isinstance(config := getattr(copied, "config", None), ViTConfig):
        vars(copied)["config"] = replace(config, num_classes=num_classes)
    return copied


def extract_features(
    model: nn.Module, loader: Iterable[tuple[Tensor, Tensor]], device: torch.device | str
) -> tuple[Tensor, Tensor]:
    """Compute what the head of a model reads of every image: (batch, embed_dim) a batch, in evaluation mode.

    Args:
        model: on ``device``, with a ``head``.
        loader: batches of images and labels, which may lie on another device.
        device: where the model is.

    Returns:
        features (images, embed_dim) and labels (images,), both on the CPU and without a graph.
    """
    seen: list[Tensor] = []
    labels: list[Tensor] = []
    hook = model.get_submodule("head").register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].cpu()))
    try:
        with evaluating(model), torch.no_grad():
            for images, some_labels in loader:
                model(images.to(device))
                labels.append(some_labels.cpu())
    finally:
        hook.remove()
    return torch.cat(seen), torch.cat(labels)


def linear_probe(features: Tensor, labels: Tensor, num_classes: int, weight_decay: float = 1e-3) -> nn.Linear:
    """The linear classifier of features with the lowest cross-entropy, its weight held back by a decay.

    Args:
        features: (images, embed_dim), floating point.
        labels: (images,) int64.
        num_classes: of the classifier.
        weight_decay: of the weight; the bias is free.

    Returns:
        The classifier for which mean cross-entropy plus half the decay times the sum of its squared weights is lowest,
        of the dtype and on the device of the features.
    """
    probe = nn.Linear(features.shape[1], num_classes, device=features.device, dtype=features.dtype)
    nn.init.zeros_(probe.weight)
    nn.init.zeros_(probe.bias)
    optimizer = torch.optim.LBFGS(probe.parameters(), max_iter=LBFGS_STEPS, line_search_fn="strong_wolfe")

    def compute_loss() -> Tensor:
        optimizer.zero_grad()
        penalty = weight_decay / 2 * probe.weight.square().sum()
        objective = F.cross_entropy(probe(features), labels) + penalty
        objective.backward()
        return objective

    optimizer.step(compute_loss)
    return probe


def fine_tuning_groups(model: nn.Module, backbone_lr: float, head_lr: float) -> list[dict[str, Any]]:
    """Two groups of parameters for an optimizer: the backbone with its rate, then the head with its own.

    Args:
        model: with a ``head``.
        backbone_lr: learning rate of everything but the head.
        head_lr: learning rate of the head.

    Returns:
        Two dicts with "params" and "lr"; every parameter, frozen or not, is in one of them, once.
    """
    head = list(model.get_submodule("head").parameters())
    known = {id(parameter) for parameter in head}
    backbone = [parameter for parameter in model.parameters() if id(parameter) not in known]
    return [{"params": backbone, "lr": backbone_lr}, {"params": head, "lr": head_lr}]
