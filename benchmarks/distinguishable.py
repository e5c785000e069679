"""Can training tell a wrong model from the right one? Asked before hours are spent on the answer."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from wrong_models import WrongModel

from vit_course.config import ViTConfig
from vit_course.vit import VisionTransformer

TOLERANCE = 1e-5  # of the largest number; float32 rounds by up to 2e-6 here, the nearest mistake differs by 4e-5
IMAGES = 6
SAME, RIGHT_MODEL = "same logits and gradients as ", "the right model"


@dataclass(frozen=True)
class Trace:
    """What one step of training sees of a model: its logits, and the gradient of each parameter that has one."""

    logits: Tensor
    gradients: dict[str, Tensor]

    def equals(self, other: Trace) -> bool:
        """Say whether both would take the same step, up to rounding."""
        return (
            self.gradients.keys() == other.gradients.keys()
            and _are_close(self.logits, other.logits)
            and all(_are_close(gradient, other.gradients[name]) for name, gradient in self.gradients.items())
        )


def sort_out_distinguishable(wrong: list[WrongModel], config: ViTConfig) -> tuple[list[WrongModel], dict[str, str]]:
    """The wrong models that are worth training, and why each of the others is not, by key."""
    right = make_random_model(config)
    traces = {RIGHT_MODEL: trace_first_step(copy.deepcopy(right), config)}
    worth, reasons = [], {}
    for each in wrong:
        try:
            seen = trace_first_step(each.build(right), config)
        except Exception as error:  # whatever a mistake ends in, it is what the table tells of it
            reasons[each.key] = f"stops with {type(error).__name__}: {str(error).splitlines()[0]}"
            continue
        same = next((name for name, known in traces.items() if known.equals(seen)), None)
        if same:
            reasons[each.key] = f"{SAME}{same}"
        else:
            traces[each.key] = seen
            worth.append(each)
    return worth, reasons


def make_random_model(config: ViTConfig) -> VisionTransformer:
    """The right model with no parameter at 0 or 1, so that none can hide, and a small stream, so that eps tells."""
    torch.manual_seed(0)
    model = VisionTransformer(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_scale = "norm" in name and name.endswith("weight")
            parameter.normal_(*(1.0, 0.1) if is_scale else (0.0, 0.03))
    return model


def trace_first_step(model: nn.Module, config: ViTConfig) -> Trace:
    """The first step of training, on random images, without the update."""
    generator = torch.Generator().manual_seed(1)
    images = 0.1 * torch.randn(IMAGES, config.in_channels, config.height, config.width, generator=generator)
    labels = torch.randint(config.num_classes, (IMAGES,), generator=generator)
    logits = model(images)
    F.cross_entropy(logits, labels).backward()
    gradients = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return Trace(logits.detach(), gradients)


def _are_close(first: Tensor, second: Tensor) -> bool:
    if first.numel() != second.numel():
        return False
    largest = max(float(first.abs().max()), float(second.abs().max()))
    return float((first.flatten() - second.flatten()).abs().max()) <= TOLERANCE * largest
