"""`count_parameters`: how many parameters a model has.

The oracle adds up the shapes of the parameters that the model is asked to have.
"""

from __future__ import annotations

import math
from dataclasses import replace

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from exercise_kit.engine.compare import kind_of
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare
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


read_mistakes(count_parameters, __name__)


# no edit of the program: code that is not the course's own is refused for a module, before anything is compared
@count_parameters.misconception(
    "Could your function count a model that is larger than the memory?", f"{LESSON}, Where the parameters are"
)
def built_to_be_counted(config: ViTConfig) -> int:
    """The model is built and its tensors are counted; the exercise asks for a formula."""
    return sum(parameter.numel() for parameter in StandIn(parameter_shapes(config)).parameters())


declare(count_parameters, Edits(quick=True))
