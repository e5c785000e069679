"""How long a recipe would take on a GPU that nobody here has run it on, by counting its multiplications."""

from __future__ import annotations

from functools import cache

import torch

from vit_course.recipes.recipe import Recipe

# operations a second in half precision with float32 sums, by NVIDIA's data sheets: fp16 on a T4, dense bf16 on an H200
PEAKS = {"Tesla T4": 65e12, "H200": 989e12}
# what a narrow ViT reaches of it: memory's pace allows about a third, and a tenth is what a plain loop often gets
SHARES = (1 / 3, 1 / 10)
TRAINING_IMAGES = {"mnist": 60_000, "cifar10": 50_000, "cifar100": 50_000}


def minutes_by_calculation(recipe: Recipe) -> tuple[float, float] | None:
    """The fewest and the most minutes of training on the recipe's GPU; None for another device than a known GPU."""
    peak = PEAKS.get(recipe.hardware)
    if peak is None:
        return None
    few, many = (training_operations(recipe) / (peak * share) / 60 for share in SHARES)
    return few, many


@cache
def training_operations(recipe: Recipe) -> float:
    """Multiplications and additions of all epochs; a backward pass takes twice as many as its forward pass."""
    from torch.utils.flop_counter import FlopCounterMode

    config = recipe.config
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        recipe.build(config)(torch.empty(1, config.in_channels, config.height, config.width))
    images = TRAINING_IMAGES[recipe.dataset] - recipe.num_validation
    return 3 * counter.get_total_flops() * images * recipe.settings.epochs
