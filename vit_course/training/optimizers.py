"""Which optimizer updates which parameter, and how the learning rates run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from torch import nn
from torch.optim import AdamW, Optimizer

from vit_course.training.muon import Muon

if TYPE_CHECKING:
    from vit_course.training.settings import TrainingSettings


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups for an optimizer: the matrices, which decay, and everything else, which does not.

    A matrix is the weight of a Linear layer or a convolution: two axes or more, and a name that ends in "weight".
    Norms, biases, the class token and positions have a scale of their own to find.

    Returns:
        [{"params": [...], "weight_decay": weight_decay}, {"params": [...], "weight_decay": 0.0}], in the model's order.
    """
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        (decayed if parameter.ndim >= 2 and name.endswith("weight") else plain).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]


def build_optimizers(model: nn.Module, settings: TrainingSettings) -> list[Optimizer]:
    """AdamW, and Muon for the matrices inside `blocks` when the settings give it a learning rate.

    Source of Muon: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
    """
    groups = parameter_groups(model, settings.weight_decay)
    if settings.muon_learning_rate is None:
        return [AdamW(groups, lr=settings.learning_rate, fused=True)]
    in_blocks = {id(parameter) for name, parameter in model.named_parameters() if "blocks" in name.split(".")}
    inner = [parameter for parameter in groups[0]["params"] if id(parameter) in in_blocks and parameter.ndim == 2]
    taken = {id(parameter) for parameter in inner}
    groups[0]["params"] = [parameter for parameter in groups[0]["params"] if id(parameter) not in taken]
    adamw = AdamW(groups, lr=settings.learning_rate, fused=True)
    if not inner:
        return [adamw]
    return [adamw, Muon(inner, lr=settings.muon_learning_rate, weight_decay=settings.weight_decay)]


def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    """Factor of the learning rate before update number `step`: up in a line to 1, down in a cosine to 0."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / max(1, total_steps - warmup_steps)))
