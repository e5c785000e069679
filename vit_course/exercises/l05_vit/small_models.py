"""Small models for the checks of this lesson: a config that is drawn, and a model that computes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from exercise_kit.engine.probes import Probe
from vit_course.config import ViTConfig

_RATIOS = (0.5, 1.5, 2.0, 2.5, 3.0, 5.0)  # embed_dim is even: times any of these it is whole


def draw_config(probe: Probe, shown: ViTConfig, depth: int = 1, **choices: Any) -> ViTConfig:
    """The config that is shown, or a drawn one of the same orientation, in which no size passes for another."""
    if not probe.is_secret:
        return shown
    patch_size = probe.choice((2, 3, 5))
    rows, columns = sorted(probe.sizes(2, high=5), reverse=shown.height > shown.width)
    channels, classes, num_heads = probe.sizes(3, high=7)
    sizes: dict[str, Any] = {
        "image_size": (rows * patch_size, columns * patch_size),
        "patch_size": patch_size,
        "in_channels": channels,
        "num_classes": classes + 4,
        "embed_dim": num_heads * probe.choice((8, 10)),  # narrower tokens may be so alike in a norm that its eps shows
        "num_heads": num_heads,
        "mlp_ratio": probe.choice(_RATIOS),
    }
    return ViTConfig(**(sizes | choices), depth=depth)


class StandIn(nn.Module):
    """A model that has parameters under given names, in Linears and LayerNorms, and computes nothing.

    Args:
        shapes: dotted name → shape; a matrix called weight makes a Linear, a vector a LayerNorm.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__()
        for name, size in shapes.items():
            layer, _, last = name.rpartition(".")
            if not layer:
                self.register_parameter(name, nn.Parameter(torch.zeros(size)))
            elif last == "weight":
                bias = f"{layer}.bias" in shapes
                self._place_layer(layer, nn.Linear(size[1], size[0], bias) if len(size) == 2 else nn.LayerNorm(size))

    def _place_layer(self, layer: str, made: nn.Module) -> None:
        home: nn.Module = self
        for part, child in pairwise(layer.split(".")):
            if part not in home._modules:
                home.add_module(part, nn.ModuleList() if child.isdigit() else nn.Module())
            home = home.get_submodule(part)
        home.add_module(layer.rpartition(".")[2], made)

    def __repr__(self) -> str:
        return "the model"
