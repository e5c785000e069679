"""Hidden checks of ``count_parameters``."""

import math
from dataclasses import replace

import pytest

from exercise_kit.engine.compare import kind_of
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig


def _config(probe, **choices):
    """A config without surprises in its blocks, wide or tall, its sizes pairwise distinct."""
    patch_size, rows, columns, channels, num_heads, head_dim = probe.sizes(6, high=11)
    sizes = {
        "image_size": (rows * patch_size, columns * patch_size),
        "patch_size": patch_size,
        "in_channels": channels,
        "num_classes": probe.choice((12, 13, 14, 15)),
        "embed_dim": 2 * num_heads * head_dim,  # even, so that embed_dim · ratio is whole: cutting and rounding agree
        "num_heads": num_heads,
        "depth": probe.choice((2, 3, 4, 6)),
    }
    return ViTConfig(**(sizes | choices))


def _count(student, config):
    """The student's count, whole; a float or a tensor of one number counts too, but for the check of its kind."""
    result = student(config)
    item = getattr(result, "item", None)
    number = item() if callable(item) and getattr(result, "ndim", None) == 0 else result
    if not isinstance(number, int | float) or isinstance(number, bool) or not math.isfinite(number):
        raise Failure(f"count_parameters gave {kind_of(result)}", "an int", "What does your `return` line give back?")
    return number


def _figure(number):
    """A count as it is told: a float without the digits that rounding left behind."""
    return f"{round(number, 2):,g}" if abs(number) < 1e6 else f"{round(number):,}"


def _expect_count(student, reference, config, described):
    found, wanted = _count(student, config), reference.count_parameters(config)
    if found != wanted:
        many = "many" if found > wanted else "few"
        found, off = _figure(found), _figure(abs(found - wanted))
        raise Failure(
            f"count_parameters gave {found} for {described}",
            f"{wanted:,}: yours is {off} too {many}",
            f"Which part of the model has {off} parameters when embed_dim is {config.embed_dim}?",
        )


@pytest.mark.exercise("count_parameters", points=0.5)
def test_a_whole_model_is_counted(student, reference, probe):
    """Every part of a small model is counted once, for wide images and for tall ones, one channel and many."""
    height, width = probe.sizes(2)
    for image_size, channels in (((height, width), 1), ((width, height), 5)):
        config = _config(probe, in_channels=channels)
        sides = (image_size[0] * config.patch_size, image_size[1] * config.patch_size)
        config = replace(config, image_size=sides)
        described = f"a model of {channels} x {sides[0]} x {sides[1]} pixels, patches of {config.patch_size}"
        _expect_count(student, reference, config, described)


@pytest.mark.exercise("count_parameters", points=0.5)
def test_both_ends_are_counted(student, reference, probe):
    """Without any block (depth 0) there remain patch embedding, class token, positions, norm and head."""
    config = _config(probe, depth=0)
    _expect_count(student, reference, config, f"a model of depth 0, embed_dim {config.embed_dim}")


@pytest.mark.exercise("count_parameters", points=0.5)
def test_a_block_costs_what_it_should(student, reference, probe):
    """So many more blocks cost so many times the parameters of one."""
    config, (more,) = _config(probe), probe.sizes(1)
    deep = replace(config, depth=config.depth + more)
    found = _count(student, deep) - _count(student, config)
    wanted = reference.count_parameters(deep) - reference.count_parameters(config)
    if found != wanted:
        raise Failure(
            f"{more} more blocks of embed_dim {config.embed_dim} let your count grow by {found:,}",
            f"{wanted:,}: {wanted // more:,} for each block",
            "List the parameters of one block with their shapes. How many tensors are there?",
        )


@pytest.mark.exercise("count_parameters", points=0.5)
def test_qkv_bias_and_mlp_ratio_count(student, reference, probe):
    """qkv_bias and mlp_ratio, whatever they are, change the count as they should."""
    without_bias = _config(probe, qkv_bias=False)
    _expect_count(student, reference, without_bias, "a model with qkv_bias=False")
    # the last gives a width that is not whole, and nearer to the next number
    ratios = (probe.choice((0.5, 1.5)), probe.choice((2.0, 3.0, 3.5, 5.0)), 2.3)
    for ratio in ratios:
        whole = ratio == ratios[-1]
        config = _config(probe, mlp_ratio=ratio, **({"embed_dim": 6, "num_heads": 3} if whole else {}))
        described = f"a model with embed_dim {config.embed_dim} and mlp_ratio {ratio}"
        _expect_count(student, reference, config, described)


@pytest.mark.exercise("count_parameters", points=0.5)
def test_nothing_is_built(student, reference, probe):
    """A model that no machine can hold is counted like any other."""
    # The very first matrix, whichever that is, needs more than 2^47 bytes, more than a process can address: building
    # fails at once. The count stays below 2^53, so that arithmetic in floats is exact too.
    num_heads = probe.choice((4, 5, 6))
    config = ViTConfig(
        image_size=(probe.choice((2, 4)), probe.choice((6, 8))),
        patch_size=2,
        in_channels=2**21 * probe.choice((5, 6, 7)),
        num_classes=2**23 + probe.choice((1, 3, 5)),
        embed_dim=2**20 * num_heads,
        num_heads=num_heads,
        depth=probe.choice((7, 8, 9, 10)),
    )
    _expect_count(student, reference, config, f"a model with embed_dim {config.embed_dim:,}")


@pytest.mark.exercise("count_parameters", points=0.25)
def test_the_count_is_an_int(student, reference, probe):
    """The count is an int, and the right one."""
    config = _config(probe, mlp_ratio=float(probe.choice((2, 3))))
    result = student(config)
    if not isinstance(result, int) or isinstance(result, bool):
        look = "Which number in your formula is not whole by nature?" if isinstance(result, float) else ""
        raise Failure(f"count_parameters gave {kind_of(result)}", "an int", look)
    _expect_count(student, reference, config, f"a model with embed_dim {config.embed_dim}")


@pytest.mark.exercise("count_parameters", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect_count(student, reference, _config(probe, mlp_ratio=2.0), "a small model")
    expect_example(student)
