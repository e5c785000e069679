"""Deviations of the published notebooks from the right model, each as a change of it.

They keep the model's names and its way of being called, so that a slip costs no second model. Two of them
(`NO_PROJECTION`, `HEADS_ON_SLICES`) are written as weights of the right model that stay what they are: an identity, and
zeros. Their weights files therefore load in the right model and mean the same there. `GELU_AFTER_MLP` computes what no
right model computes; its parameters have other names, so that no right model loads them unaware.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vit_course.vit import VisionTransformer


@dataclass(frozen=True)
class Deviation:
    """A deviation of a published notebook from the model that it describes.

    Attributes:
        name: as it is listed.
        sentence: what is done, and why it matters.
        apply: changes a freshly built model in place.
    """

    name: str
    sentence: str
    apply: Callable[[VisionTransformer], None]


class _LinearAndSoftmax(nn.Linear):
    """(..., in_features) → probabilities (..., out_features)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).softmax(dim=-1)


def _add_softmax_to_head(model: VisionTransformer) -> None:
    if isinstance(model.head, nn.Sequential):
        model.head.append(nn.Softmax(dim=-1))
        return
    head = _LinearAndSoftmax(model.head.in_features, model.head.out_features)
    head.load_state_dict(model.head.state_dict())
    model.head = head


@torch.no_grad()
def _fix_projections_to_identity(model: VisionTransformer) -> None:
    for block in model.blocks:
        projection = block.attention.projection
        nn.init.eye_(projection.weight)
        nn.init.zeros_(projection.bias)
        projection.requires_grad_(False)


@torch.no_grad()
def _confine_heads_to_slices(model: VisionTransformer) -> None:
    """Zero what leads from one head's slice of the token to another's, and keep its gradient zero."""
    config = model.config
    slices = [torch.ones(config.head_dim, config.head_dim)] * config.num_heads
    mask = torch.block_diag(*slices).repeat(3, 1)  # (3 * embed_dim, embed_dim): queries, keys, values
    bound = config.head_dim**-0.5  # where torch starts a Linear of head_dim inputs
    for block in model.blocks:
        weight = block.attention.qkv.weight
        nn.init.uniform_(weight, -bound, bound).mul_(mask)
        weight.register_hook(lambda gradient: gradient * mask.to(gradient))


def _initialise_as_torch(model: VisionTransformer) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            module.reset_parameters()


def _add_activation_after_mlps(model: VisionTransformer) -> None:
    for block in model.blocks:
        block.mlp = nn.Sequential(block.mlp, nn.GELU())  # type: ignore[assignment]  # called as an Mlp is


SOFTMAX_BEFORE_LOSS = Deviation(
    "softmax before the loss",
    "The model ends in a softmax and the loss takes another: with ten classes it cannot fall below 1.46, and the "
    "gradient fades as the model grows sure.",
    _add_softmax_to_head,
)
HEADS_ON_SLICES = Deviation(
    "heads on slices",
    "Each head makes its query, key and value from its own slice of the token, where the paper lets it see all of it.",
    _confine_heads_to_slices,
)
NO_PROJECTION = Deviation(
    "no output projection",
    "Nothing mixes the heads after attention: what a head finds stays in its slice of the token.",
    _fix_projections_to_identity,
)
GELU_AFTER_MLP = Deviation(
    "GELU after the MLP",
    "A GELU follows the MLP's last layer too, so that a block can add next to nothing below zero to any token.",
    _add_activation_after_mlps,
)
TORCH_START = Deviation(
    "torch's own start",
    "Linears start as torch starts them. No mistake, but not the paper's start.",
    _initialise_as_torch,
)
