"""Known mistakes of lesson 05: counting parameters. Each adds up the right shapes and leaves or takes too much."""

from __future__ import annotations

import math
from dataclasses import replace

from vit_course.config import ViTConfig
from vit_course.exercises.checks.parameters import count_parameters, number_of_parameters
from vit_course.exercises.checks.vit import parameter_shapes
from vit_course.exercises.checks.weights import StandIn

COUNT = "05_vit, Where the parameters live"


def _only(config: ViTConfig, *parts: str) -> int:
    """The numbers in the tensors whose name contains one of ``parts``."""
    shapes = parameter_shapes(config).items()
    return sum(math.prod(size) for name, size in shapes if any(part in name for part in parts))


@count_parameters.misconception("Which parts outside of the blocks are one vector of embed_dim numbers?", COUNT)
def one_vector_forgotten(config: ViTConfig) -> int:
    """One vector of embed_dim numbers is missing: the class token, its row in the positions, or a bias."""
    return number_of_parameters(config) - _only(config, "class_token")


@count_parameters.misconception("Who tells the model where a patch was, and is that learned?", COUNT)
def positions_forgotten(config: ViTConfig) -> int:
    """The learned positions are not counted."""
    return number_of_parameters(config) - _only(config, "positions")


@count_parameters.misconception("What does a Linear add after the matrix product?", COUNT)
def biases_forgotten(config: ViTConfig) -> int:
    """Every Linear is counted without its bias."""
    norms = _only(config, "norm.bias", "norm1.bias", "norm2.bias")
    return number_of_parameters(config) - _only(config, "bias") + norms


@count_parameters.misconception("What does a LayerNorm learn?", COUNT)
def norms_forgotten(config: ViTConfig) -> int:
    """No LayerNorm is counted."""
    return number_of_parameters(config) - _only(config, "norm")


@count_parameters.misconception("A LayerNorm scales; what else does it do?", COUNT)
def norms_without_shift(config: ViTConfig) -> int:
    """A LayerNorm is counted as one vector of embed_dim numbers."""
    return number_of_parameters(config) - _only(config, "norm.bias", "norm1.bias", "norm2.bias")


@count_parameters.misconception("What stands between the last block and the head?", COUNT)
def final_norm_forgotten(config: ViTConfig) -> int:
    """The norm after the last block is not counted."""
    final = sum(math.prod(size) for name, size in parameter_shapes(config).items() if name.startswith("norm."))
    return number_of_parameters(config) - final


@count_parameters.misconception("How many vectors does attention make of each token?", COUNT)
def qkv_counted_as_one_map(config: ViTConfig) -> int:
    """Queries, keys and values are counted as one map from embed_dim to embed_dim."""
    return number_of_parameters(config) - _only(config, "qkv") * 2 // 3


@count_parameters.misconception("Does a second head make the matrices larger, or does it share them?", COUNT)
def qkv_counted_for_every_head(config: ViTConfig) -> int:
    """The maps of queries, keys and values are counted once for every head."""
    return number_of_parameters(config) + _only(config, "qkv") * (config.num_heads - 1)


@count_parameters.misconception("Who mixes the heads after attention?", COUNT)
def attention_projection_forgotten(config: ViTConfig) -> int:
    """The projection after attention is not counted."""
    return number_of_parameters(config) - _only(config, "attention.projection")


@count_parameters.misconception("What turns the class token into logits?", COUNT)
def head_forgotten(config: ViTConfig) -> int:
    """The head is not counted."""
    return number_of_parameters(config) - _only(config, "head")


@count_parameters.misconception("How many pixels has a patch?", COUNT)
def patch_size_not_squared(config: ViTConfig) -> int:
    """A patch is counted as patch_size pixels."""
    projection = _only(config, "patch_embedding.projection.weight")
    return number_of_parameters(config) - projection + projection // config.patch_size


@count_parameters.misconception("How many numbers has a pixel?", COUNT)
def channels_forgotten(config: ViTConfig) -> int:
    """A pixel is counted as one number, as if all pictures were grey."""
    projection = _only(config, "patch_embedding.projection.weight")
    return number_of_parameters(config) - projection + projection // config.in_channels


@count_parameters.misconception("How many rows of patches has a tall image, and how many columns?", COUNT)
def square_image_counted(config: ViTConfig) -> int:
    """The number of positions is counted from the height alone, as if every image were square."""
    return number_of_parameters(replace(config, image_size=config.height))


@count_parameters.misconception("Who decides how wide the MLP is?", COUNT)
def four_times_whatever_the_ratio(config: ViTConfig) -> int:
    """The MLP is counted as four times embed_dim wide, whatever config.mlp_ratio says."""
    return number_of_parameters(replace(config, mlp_ratio=4.0))


@count_parameters.misconception("Which Linear may lose its bias by the config?", COUNT)
def qkv_bias_always_counted(config: ViTConfig) -> int:
    """The bias of queries, keys and values is counted even where config.qkv_bias is False."""
    return number_of_parameters(replace(config, qkv_bias=True))


@count_parameters.misconception("Which factor in your formula is a float?", COUNT)
def a_float_came_out(config: ViTConfig) -> float:
    """The count is right but a float, since embed_dim * mlp_ratio is one."""
    return float(number_of_parameters(config))


@count_parameters.misconception("Could your function count a model that fits into no memory?", COUNT)
def built_to_be_counted(config: ViTConfig) -> int:
    """The model is built and its tensors are counted; the exercise asks for a formula."""
    return sum(parameter.numel() for parameter in StandIn(parameter_shapes(config)).parameters())
