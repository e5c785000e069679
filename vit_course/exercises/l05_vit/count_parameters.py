"""`count_parameters`: how many parameters a model has.

The oracle adds up the shapes of the parameters that the model is asked to have. The known mistakes add up the right
shapes and leave one out, or count one too many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from exercise_kit.engine.compare import kind_of
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit import LESSON
from vit_course.exercises.l05_vit.vision_transformer.claims import (
    NO_QKV_BIAS,
    TALL_MODEL,
    WIDE_MODEL,
    StandIn,
    parameter_shapes,
)
from vit_course.recipes.presets import PRESETS

count_parameters = Exercise("count_parameters", LESSON, in_training=InTraining.UNSEEN)


def number_of_parameters(config: ViTConfig) -> int:
    """The oracle: the numbers in all tensors of :func:`parameter_shapes`."""
    return sum(math.prod(size) for size in parameter_shapes(config).values())


def _expect_count(student: Student, config: ViTConfig, described: str) -> None:
    found, wanted = _whole(student(config)), number_of_parameters(config)
    if found != wanted:
        off = f"{abs(found - wanted):,} too {'many' if found > wanted else 'few'}"
        raise Failure(
            f"count_parameters gave {found:,} for {described}",
            f"{wanted:,}: yours is {off}",
            _where(abs(found - wanted), wanted, config.embed_dim),
        )


def _where(off: int, wanted: int, embed_dim: int) -> str:
    if 2 * off > wanted:
        return "List the parameters of a small VisionTransformer by name and shape, and tick off what your formula has."
    return f"Which part of the model has {off:,} parameters when embed_dim is {embed_dim}?"


def _whole(result: object) -> int:
    if isinstance(result, int) and not isinstance(result, bool):
        return result
    look = "Which number in your formula is not whole by nature?" if isinstance(result, float) else ""
    raise Failure(f"count_parameters gave {kind_of(result)}", "an int", look)


@count_parameters.check(guard=True)
def the_count_is_an_int(student: Student, probe: Probe) -> None:
    """The count is an int."""
    _whole(student(WIDE_MODEL))


@count_parameters.check(needs=the_count_is_an_int)
def every_part_is_counted_once(student: Student, probe: Probe) -> None:
    """Every part of a small model is counted once."""
    for config, described in (
        (replace(WIDE_MODEL, mlp_ratio=4.0), "a small model (embed_dim 12, depth 3, 2 x 8 x 10 pixels)"),
        (replace(TALL_MODEL, mlp_ratio=4.0), "a small model (embed_dim 8, depth 2, 4 x 15 x 9 pixels)"),
    ):
        _expect_count(student, config, described)


@count_parameters.check(needs=the_count_is_an_int)
def a_block_costs_what_it_should(student: Student, probe: Probe) -> None:
    """Five more blocks cost five times the parameters of a block."""
    shallow, deep = (replace(WIDE_MODEL, mlp_ratio=4.0, depth=depth) for depth in (3, 8))
    found = _whole(student(deep)) - _whole(student(shallow))
    wanted = number_of_parameters(deep) - number_of_parameters(shallow)
    if found != wanted:
        raise Failure(
            f"from depth 3 to depth 8, with embed_dim 12, your count grows by {found:,}",
            f"{wanted:,}: {wanted // 5:,} for each block",
            "List the parameters of one block with their shapes. How many tensors are there?",
        )


@count_parameters.check(needs=the_count_is_an_int)
def the_configs_choices_count(student: Student, probe: Probe) -> None:
    """mlp_ratio and qkv_bias change the count as they should."""
    _expect_count(student, WIDE_MODEL, "a model with mlp_ratio 2.5")
    _expect_count(student, replace(NO_QKV_BIAS, mlp_ratio=4.0), "a model with qkv_bias=False")


@count_parameters.check(needs=the_count_is_an_int)
def vit_b_16_has_as_many_as_it_is_known_for(student: Student, probe: Probe) -> None:
    """ViT-B/16 has 86,567,656 parameters, as torchvision's page says."""
    _expect_count(student, PRESETS["vit_base_16"], "ViT-B/16")


@count_parameters.check(guard=True)
def nothing_is_built(student: Student, probe: Probe) -> None:
    """It counts without building a model."""
    built: list[nn.Module] = []
    handle = register_module_parameter_registration_hook(lambda module, *_: built.append(module))
    try:
        student(WIDE_MODEL)
    finally:
        handle.remove()
    student.record.append(bool(built))
    if built:
        raise Failure(
            f"count_parameters built {len(built)} parameters to count them",
            "a formula: a model of a trillion parameters should be counted in no time",
        )


count_parameters.example("""
>>> count_parameters(ViTConfig((2, 4), 2, in_channels=1, num_classes=2, embed_dim=3, depth=0, num_heads=1))
41
""")


COUNT = "05_vit, Where the parameters are"


def _only(config: ViTConfig, *parts: str) -> int:
    """The numbers in the tensors whose name contains one of ``parts``."""
    shapes = parameter_shapes(config).items()
    return sum(math.prod(size) for name, size in shapes if any(part in name for part in parts))


@count_parameters.misconception("Which parts outside of the blocks are one vector of embed_dim numbers?", COUNT)
def one_vector_forgotten(config: ViTConfig) -> int:
    """One vector of embed_dim numbers is missing: the class token, its row in the positions, or a bias."""
    return number_of_parameters(config) - _only(config, "class_token")


@count_parameters.misconception("By what does the model know where a patch was, and is that learned?", COUNT)
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


@count_parameters.misconception("Which layer mixes the heads after attention?", COUNT)
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
    """A pixel is counted as one number, as if all pictures were gray."""
    projection = _only(config, "patch_embedding.projection.weight")
    return number_of_parameters(config) - projection + projection // config.in_channels


@count_parameters.misconception("How many rows of patches has a tall image, and how many columns?", COUNT)
def square_image_counted(config: ViTConfig) -> int:
    """The number of positions is counted from the height alone, as if every image were square."""
    return number_of_parameters(replace(config, image_size=config.height))


@count_parameters.misconception("Which field of the config decides how wide the MLP is?", COUNT)
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


@count_parameters.misconception("Could your function count a model that is larger than the memory?", COUNT)
def built_to_be_counted(config: ViTConfig) -> int:
    """The model is built and its tensors are counted; the exercise asks for a formula."""
    return sum(parameter.numel() for parameter in StandIn(parameter_shapes(config)).parameters())


Count = Callable[[ViTConfig], int]

_COUNTS = (
    one_vector_forgotten,
    positions_forgotten,
    biases_forgotten,
    norms_forgotten,
    norms_without_shift,
    final_norm_forgotten,
    qkv_counted_as_one_map,
    qkv_counted_for_every_head,
    attention_projection_forgotten,
    head_forgotten,
    patch_size_not_squared,
    channels_forgotten,
    square_image_counted,
    four_times_whatever_the_ratio,
    qkv_bias_always_counted,
)


def _counted(config: ViTConfig, *, postprocess: Callable[[int], Any] = int, **counts: Count) -> Any:
    """What each of ``counts`` misses is missing, and what it counts too much is too much."""
    right = number_of_parameters(config)
    return postprocess(right + sum(count(config) - right for count in counts.values()))


declare(
    count_parameters,
    Parts(
        _counted,
        {**{each: {each.__name__: each} for each in _COUNTS}, a_float_came_out: {"postprocess": float}},
        quick=True,
    ),
)
