"""Models and data sets that train in milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from vit_course.config import ViTConfig
from vit_course.data import ImageDataset
from vit_course.vit import VisionTransformer

TINY = ViTConfig(image_size=8, patch_size=4, in_channels=1, embed_dim=24, depth=2, num_heads=3)

RandomDataset = Callable[..., ImageDataset]
TinyModel = Callable[..., VisionTransformer]


@pytest.fixture
def random_dataset() -> RandomDataset:
    def make(count: int = 50) -> ImageDataset:
        generator = torch.Generator().manual_seed(0)
        images = torch.randint(0, 256, (count, 1, 8, 8), generator=generator, dtype=torch.uint8)
        labels = torch.randint(0, 10, (count,), generator=generator)
        return ImageDataset(images, labels, tuple("0123456789"), "random")

    return make


@pytest.fixture
def tiny_model() -> TinyModel:
    def make(seed: int = 0, **changes: object) -> VisionTransformer:
        torch.manual_seed(seed)
        return VisionTransformer(replace(TINY, **changes))

    return make
