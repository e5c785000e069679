"""`count_parameters`: how many parameters a model has.

The oracle adds up the shapes of the parameters that the model is asked to have.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from exercise_kit.engine.compare import describe_kind
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit import LESSON
from vit_course.exercises.l05_vit.small_models import StandIn, draw_config
from vit_course.exercises.l05_vit.vision_transformer.claims import (
    NO_QKV_BIAS,
    TALL_MODEL,
    WIDE_MODEL,
    list_parameter_shapes,
)
from vit_course.recipes.presets import PRESETS

count_parameters = Exercise("count_parameters", LESSON, in_training=InTraining.UNSEEN)


def number_of_parameters(config: ViTConfig) -> int:
    """The oracle: the numbers in all tensors of :func:`list_parameter_shapes`."""
    return sum(math.prod(size) for size in list_parameter_shapes(config).values())


def expect_right_count(student: Student, config: ViTConfig, described: str) -> None:
    """Fail unless the count of a config's model is right."""
    found, wanted = _call_and_expect_number(student, config), number_of_parameters(config)
    if found != wanted:
        off = abs(found - wanted)
        each = (
            f", or each block {_format_count(off / config.depth)},"
            if config.depth > 1 and not off % config.depth
            else ""
        )
        look = (
            f"Which part of the model has {_format_count(off)} parameters{each} when embed_dim is {config.embed_dim}?"
        )
        if 2 * off > wanted:
            look = "List the parameters of a small VisionTransformer by name and shape, and tick off what you have."
        look = _ask_about_depth(student, config) or look
        many = "many" if found > wanted else "few"
        seen = f"count_parameters gave {_format_count(found)} for {described}"
        raise Failure(seen, f"{wanted:,}: yours is {_format_count(off)} too {many}", look)


def _ask_about_depth(student: Student, config: ViTConfig) -> str:
    """Where to look when a count is right for one block and wrong for more; else ""."""
    one_block = replace(config, depth=1)
    if config.depth == 1 or _call_and_expect_number(student, one_block) != number_of_parameters(one_block):
        return ""
    return "With one block your count is right. Which of its terms does your formula multiply by depth?"


def _call_and_expect_number(student: Student, config: ViTConfig) -> float:
    """The student's count, whole; a float or a tensor of one number counts too, but for the check of its kind."""
    result = student(config)
    number = result.item() if isinstance(result, Tensor) and result.ndim == 0 else result
    if not isinstance(number, int | float) or isinstance(number, bool) or not math.isfinite(number):
        raise Failure(
            f"count_parameters gave {describe_kind(result)}", "an int", "What does your `return` line give back?"
        )
    return number


def _format_count(number: float) -> str:
    """A count as it is told: a float without the digits that rounding left behind."""
    return f"{round(number, 2):,g}" if abs(number) < 1e6 else f"{round(number):,}"


def draw_plain_config(probe: Probe, shown: ViTConfig, **choices: Any) -> ViTConfig:
    """A config without surprises in its blocks."""
    depth = choices.pop("depth", probe.choice((2, 3, 4, 6)))
    return draw_config(probe, replace(shown, mlp_ratio=4.0), depth, mlp_ratio=4.0, **choices)


@count_parameters.check(guard=True, points=0.25, first="the_configs_choices_count")
def the_count_is_an_int(student: Student, probe: Probe) -> None:
    """The count is an int."""
    result = student(draw_plain_config(probe, WIDE_MODEL))
    if not isinstance(result, int) or isinstance(result, bool):
        look = "What does your `return` line give back?"
        if isinstance(result, float):
            look = "Which number in your formula is not whole by nature?"
        raise Failure(f"count_parameters gave {describe_kind(result)}", "an int", look)


@count_parameters.check(needs=the_count_is_an_int, points=0.5)
def every_part_is_counted_once(student: Student, probe: Probe) -> None:
    """Every part of a small model is counted once."""
    for shown, channels in ((WIDE_MODEL, 1), (TALL_MODEL, 5)):
        config = draw_plain_config(probe, shown, in_channels=channels)
        pixels = f"{config.in_channels} x {config.height} x {config.width} pixels"
        described = f"a small model (embed_dim {config.embed_dim}, depth {config.depth}, {pixels})"
        expect_right_count(student, config, described)


@count_parameters.check(needs=the_count_is_an_int, points=0.5)
def a_block_costs_what_it_should(student: Student, probe: Probe) -> None:
    """Five more blocks cost five times the parameters of a block."""
    shallow = draw_plain_config(probe, WIDE_MODEL)
    deep = replace(shallow, depth=shallow.depth + 5)
    found = _call_and_expect_number(student, deep) - _call_and_expect_number(student, shallow)
    wanted = number_of_parameters(deep) - number_of_parameters(shallow)
    if found != wanted:
        depths = f"from depth {shallow.depth} to depth {deep.depth}, with embed_dim {deep.embed_dim}"
        raise Failure(
            f"{depths}, your count grows by {_format_count(found)}",
            f"{wanted:,}: {wanted // 5:,} for each block",
            _ask_about_depth(student, shallow)
            or "List the parameters of one block with their shapes. How many tensors are there?",
        )


@count_parameters.check(needs=the_count_is_an_int, points=0.5)
def the_configs_choices_count(student: Student, probe: Probe) -> None:
    """mlp_ratio and qkv_bias change the count as they should."""
    for ratio in (probe.choice((0.5, 1.5), shown=2.5), probe.choice((2.0, 3.0, 3.5, 5.0))):
        config = replace(draw_plain_config(probe, WIDE_MODEL), mlp_ratio=ratio)
        expect_right_count(student, config, f"a model with mlp_ratio {ratio}")
    # 13.8: a width that is not whole, and nearer to the next number
    config = replace(draw_plain_config(probe, WIDE_MODEL), mlp_ratio=2.3, embed_dim=6, num_heads=3)
    expect_right_count(student, config, "a model with embed_dim 6 and mlp_ratio 2.3")
    expect_right_count(student, draw_plain_config(probe, NO_QKV_BIAS, qkv_bias=False), "a model with qkv_bias=False")


@count_parameters.check(needs=the_count_is_an_int)
def vit_b_16_has_as_many_as_it_is_known_for(student: Student, probe: Probe) -> None:
    """ViT-B/16 has 86,567,656 parameters, as torchvision's page says."""
    expect_right_count(student, PRESETS["vit_base_16"], "ViT-B/16")


@count_parameters.check(guard=True, points=0.5)
def nothing_is_built(student: Student, probe: Probe) -> None:
    """It counts without building a model."""
    built: list[nn.Module] = []
    handle = register_module_parameter_registration_hook(lambda module, *_: built.append(module))
    try:
        student(WIDE_MODEL)
    finally:
        handle.remove()
    student.note(bool(built))
    if built:
        raise Failure(
            f"count_parameters built {len(built)} parameters to count them",
            "a formula: a model of a trillion parameters should be counted in no time",
        )
    if probe.is_secret:
        config = _draw_too_large_config(probe)
        expect_right_count(student, config, f"a model with embed_dim {config.embed_dim:,}")


def _draw_too_large_config(probe: Probe) -> ViTConfig:
    """A model whose first matrix, whichever that is, needs more than 2^47 bytes, more than a process can address.

    Building fails at once. The count stays below 2^53, so that arithmetic in floats is exact too.
    """
    num_heads = probe.choice((4, 5, 6))
    return ViTConfig(
        image_size=(probe.choice((2, 4)), probe.choice((6, 8))),
        patch_size=2,
        in_channels=2**21 * probe.choice((5, 6, 7)),
        num_classes=2**23 + probe.choice((1, 3, 5)),
        embed_dim=2**20 * num_heads,
        num_heads=num_heads,
        depth=probe.choice((7, 8, 9, 10)),
    )


count_parameters.example(
    """
>>> count_parameters(ViTConfig((2, 4), 2, in_channels=1, num_classes=2, embed_dim=3, depth=0, num_heads=1))
41
""",
    points=0.25,
    first=the_configs_choices_count,
)


read_mistakes(count_parameters, __name__)


# no edit of the program: code that is not the course's own is refused for a module, before anything is compared
@count_parameters.misconception(
    "Could your function count a model that is larger than the memory?", f"{LESSON}, Where the parameters are"
)
def built_to_be_counted(config: ViTConfig) -> int:
    """The model is built and its tensors are counted; the exercise asks for a formula."""
    return sum(parameter.numel() for parameter in StandIn(list_parameter_shapes(config)).parameters())


declare_pairs(count_parameters, Edits(quick=True))
