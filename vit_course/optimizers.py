"""Which optimiser updates which parameter, and how the learning rates run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

if TYPE_CHECKING:
    from vit_course.training import TrainingSettings


class Updates:
    """The optimisers and their schedules, stepped together."""

    def __init__(self, model: nn.Module, settings: TrainingSettings, total_steps: int) -> None:
        self.optimizers = build_optimizers(model, settings)
        self.steps, self.total_steps = 0, total_steps
        warmup_steps = round(settings.warmup * total_steps)
        self.schedulers = [
            LambdaLR(optimizer, lambda step: warmup_cosine(step, warmup_steps, total_steps))
            for optimizer in self.optimizers
        ]
        self.parameters = list(model.parameters())
        self.gradient_clip = settings.gradient_clip

    def step(self, loss: Tensor) -> None:
        """Differentiate the loss, clip, update every parameter once, and move the learning rates on."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.gradient_clip is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.gradient_clip)
        for optimizer, scheduler in zip(self.optimizers, self.schedulers, strict=True):
            optimizer.step()
            scheduler.step()
        self.steps += 1


def build_optimizers(model: nn.Module, settings: TrainingSettings) -> list[Optimizer]:
    """AdamW, and Muon for the matrices inside `model.blocks` when the settings give it a learning rate.

    Source of Muon: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks".
    """
    inner: list[nn.Parameter] = []
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_matrix = parameter.ndim >= 2 and name.endswith("weight")
        if is_matrix and name.startswith("blocks.") and settings.muon_learning_rate is not None:
            inner.append(parameter)
        else:
            (decayed if is_matrix else plain).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": settings.weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    optimizers: list[Optimizer] = [AdamW(groups, lr=settings.learning_rate)]
    if inner and settings.muon_learning_rate is not None:
        muon = torch.optim.Muon(inner, lr=settings.muon_learning_rate, weight_decay=settings.weight_decay)
        optimizers.append(muon)
    return optimizers


def warmup_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    """Factor of the learning rate before update number `step`: up in a line to 1, down in a cosine to 0."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / max(1, total_steps - warmup_steps)))
