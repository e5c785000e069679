"""Images that grow while a model learns: small at first, with few patches to look at, whole at the end."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from vit_course.pretrained import resize_positions
from vit_course.training.settings import Growth
from vit_course.vit import VisionTransformer


class Growing(nn.Module):
    """Shows a model images that are shrunk as long as a run is young; patches keep their size, so there are fewer.

    Half as wide, images have a quarter of the patches, and the model a quarter of the work. What positions have learned
    goes along: they are resized to the grid of the moment, as lesson 02 does once.

    Args:
        model: whose weights learn.
        growth: (share of the run, scale of the images) in order; from the last share on images are whole.

    Attributes:
        scale: of the images at this moment, set by `grow`. A compiled forward pass has code for each.

    Raises:
        ValueError: the model is no VisionTransformer of the course, or its patches do not fit one of these scales.

    Source: Touvron et al. 2019, "Fixing the train-test resolution discrepancy", and Tan and Le 2021, EfficientNetV2,
    section 4, for images that grow; Dosovitskiy et al. 2020, section 3.2, for the positions.
    """

    def __init__(self, model: nn.Module, growth: Growth) -> None:
        super().__init__()
        if not isinstance(model, VisionTransformer):
            kind = type(model).__name__
            raise ValueError(f"images grow for the course's VisionTransformer, not for {kind}: set growth to ()")
        self.model, self.growth = model, growth
        self.grow(0.0)
        with torch.device("meta"):  # they only lend their forward pass: every weight is the model's
            self.smaller = {scale: (_make_smaller_model(model, scale),) for _, scale in growth}

    def grow(self, share: float) -> None:
        """Set the scale for the next step; `share` of the run's steps were taken."""
        self.scale = next((scale for until, scale in self.growth if share < until), 1.0)

    def list_scales(self) -> list[float]:
        """Each scale that comes in a run, in order."""
        return [*(scale for _, scale in self.growth), 1.0]

    def forward(self, images: Tensor) -> Tensor:
        """Classify images (batch, in_channels, height, width) at the size of the moment: logits (batch, classes)."""
        if self.scale == 1.0:
            return cast(Tensor, self.model(images))
        (smaller,) = self.smaller[self.scale]
        weights = dict(chain(self.model.named_parameters(), self.model.named_buffers()))
        if "positions" in weights:
            weights["positions"] = resize_positions_for(smaller, weights["positions"], self.model)
        size = smaller.config.height, smaller.config.width
        # torch smooths no bfloat16
        shrunk = F.interpolate(images.float(), size, mode="bilinear", antialias=True, align_corners=False)
        return cast(Tensor, functional_call(smaller, weights, shrunk.to(images.dtype)))


def _make_smaller_model(model: VisionTransformer, scale: float) -> VisionTransformer:
    config = model.config
    height, width = round(scale * config.height), round(scale * config.width)
    try:
        return VisionTransformer(replace(config, image_size=(height, width)))
    except ValueError as error:
        raise ValueError(f"images cannot grow from {height} x {width} pixels: {error}") from None


def resize_positions_for(other: VisionTransformer, positions: Tensor, model: VisionTransformer) -> Tensor:
    """The positions of a model, (1, num_tokens, embed_dim), on the grid of another that differs in nothing else."""
    grids = model.config.grid_size, other.config.grid_size
    if model.class_token is not None:
        return resize_positions(positions, *grids)
    class_row = positions.new_zeros(1, 1, positions.shape[-1])
    return resize_positions(torch.cat([class_row, positions], dim=1), *grids)[:, 1:]
