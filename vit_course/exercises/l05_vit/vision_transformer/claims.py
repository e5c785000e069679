"""`VisionTransformer`: the whole model; and `fix_vit`, its bug hunt.

The oracle is torch's own functions, on weights that are loaded by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import are_close, expect_equal, expect_tensor, format_dtype
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input, expect_gradients_of_inputs, make_wrong_part_describer
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.l01_patchify.patchify.claims import patches_of
from vit_course.exercises.l05_vit import LESSON
from vit_course.exercises.l05_vit.small_models import StandIn, draw_config

Weights = Mapping[str, Tensor]
AXES = ("image", "class")
CPU = torch.device("cpu")

# of positions, some 7,000: their mean and spread are right within 0.0003, those of a row or column within 0.002 or so;
# cut at two standard deviations, their spread is 0.0176
_MEAN, _SPREADS, _SPREAD_OF_A_LINE, _FAR_TOO_LARGE = 0.002, (0.016, 0.024), 0.01, 0.1
_FOLLOW = "Follow the figure of the model, and compare the first token of each stage with what it should be."
_RANDOM = "Which of your layers draws random numbers, and when should it?"
_FARTHEST = 1.9  # spreads from 0; evenly distributed numbers end at 1.73

WIDE_MODEL = ViTConfig(
    image_size=(8, 10), patch_size=2, in_channels=2, num_classes=7, embed_dim=12, depth=3, num_heads=2, mlp_ratio=2.5
)
TALL_MODEL = ViTConfig(
    image_size=(15, 9), patch_size=3, in_channels=4, num_classes=6, embed_dim=8, depth=2, num_heads=4, mlp_ratio=3.0
)
MANY_TOKENS = replace(WIDE_MODEL, image_size=(16, 18), embed_dim=96, depth=1)
NO_QKV_BIAS = replace(TALL_MODEL, in_channels=2, num_heads=2, qkv_bias=False)
ONE_PATCH = replace(TALL_MODEL, image_size=4, patch_size=4, in_channels=1, num_heads=1, depth=1)


def list_parameter_shapes(config: ViTConfig) -> dict[str, tuple[int, ...]]:
    """The name and the shape of every parameter that the exercise asks for."""
    dim, hidden = config.embed_dim, config.hidden_dim
    shapes: dict[str, tuple[int, ...]] = {"class_token": (1, 1, dim), "positions": (1, 1 + config.num_patches, dim)}

    def add_layer_shapes(name: str, *size: int, bias: bool = True) -> None:
        shapes[f"{name}.weight"] = size
        if bias:
            shapes[f"{name}.bias"] = size[:1]

    add_layer_shapes("patch_embedding.projection", dim, config.in_channels * config.patch_size**2)
    for number in range(config.depth):
        add_layer_shapes(f"blocks.{number}.norm1", dim)
        add_layer_shapes(f"blocks.{number}.attention.qkv", 3 * dim, dim, bias=config.qkv_bias)
        add_layer_shapes(f"blocks.{number}.attention.projection", dim, dim)
        add_layer_shapes(f"blocks.{number}.norm2", dim)
        add_layer_shapes(f"blocks.{number}.mlp.fc1", hidden, dim)
        add_layer_shapes(f"blocks.{number}.mlp.fc2", dim, hidden)
    add_layer_shapes("norm", dim)
    add_layer_shapes("head", config.num_classes, dim)
    return shapes


def _apply_linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def apply_layer_norm(weights: Weights, name: str, x: Tensor, config: ViTConfig) -> Tensor:
    """x through the LayerNorm ``name``."""
    scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return F.layer_norm(x, (config.embed_dim,), scale, shift, config.layer_norm_eps)


def embed_patches(weights: Weights, images: Tensor, config: ViTConfig) -> Tensor:
    """(batch, num_patches, embed_dim): projected patches."""
    return _apply_linear(weights, "patch_embedding.projection", patches_of(images, config.patch_size))


def embed_images(weights: Weights, images: Tensor, config: ViTConfig) -> Tensor:
    """(batch, 1 + num_patches, embed_dim): what enters the first block."""
    positions = weights["positions"]
    first = (weights["class_token"] + positions[:, :1]).expand(len(images), 1, -1)
    return torch.cat([first, embed_patches(weights, images, config) + positions[:, 1:]], dim=1)


def apply_block(weights: Weights, number: int, x: Tensor, config: ViTConfig) -> Tensor:
    """x (batch, tokens, embed_dim) after one encoder block."""
    name = f"blocks.{number}"
    qkv = _apply_linear(weights, f"{name}.attention.qkv", apply_layer_norm(weights, f"{name}.norm1", x, config))
    heads = qkv.unflatten(-1, (3, config.num_heads, config.head_dim)).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    x = x + _apply_linear(weights, f"{name}.attention.projection", mixed)
    hidden = F.gelu(_apply_linear(weights, f"{name}.mlp.fc1", apply_layer_norm(weights, f"{name}.norm2", x, config)))
    return x + _apply_linear(weights, f"{name}.mlp.fc2", hidden)


def apply_all_blocks(weights: Weights, x: Tensor, config: ViTConfig) -> Tensor:
    """x (batch, tokens, embed_dim) after every block."""
    for number in range(config.depth):
        x = apply_block(weights, number, x, config)
    return x


def apply_head(weights: Weights, pooled: Tensor) -> Tensor:
    """Logits (batch, num_classes) of pooled (batch, embed_dim)."""
    return _apply_linear(weights, "head", pooled)


def logits_of(weights: Weights, images: Tensor, config: ViTConfig) -> Tensor:
    """The oracle: (batch, num_classes)."""
    x = apply_all_blocks(weights, embed_images(weights, images, config), config)
    return apply_head(weights, apply_layer_norm(weights, "norm", x, config)[:, 0])


VisionTransformer = Exercise("VisionTransformer", LESSON, is_class=True)


def _map_exercises_to_points(own: float, mended: float) -> dict[str, float]:
    """The points of a claim in VisionTransformer, and in fix_vit."""
    return {"VisionTransformer": own, "fix_vit": mended}


def build_with_random_weights(
    student: Student, probe: Probe, config: ViTConfig
) -> tuple[StudentModule, dict[str, Tensor]]:
    """A model with random weights, in evaluation mode, so that a dropout of the student's own is not judged."""
    module = student.build(config)
    module.eval()
    weights = probe.weights(list_parameter_shapes(config))
    try:
        module.load(weights)
    except Failure as failure:  # which would list some forty names and shapes
        raise Failure(failure.seen, "the names and shapes that the exercise's text lists", failure.look) from None
    return module, weights


def draw_images_for(probe: Probe, batch: int, config: ViTConfig) -> Tensor:
    """Images (batch, in_channels, height, width) of a config."""
    return probe.images(batch, config.in_channels, config.height, config.width)


def expect_right_logits(
    student: Student, probe: Probe, config: ViTConfig, name: str, look: str = _FOLLOW, trains: bool = False
) -> None:
    """Fail unless a model with random weights gives the right logits."""
    module, weights = build_with_random_weights(student, probe, config)
    if trains:
        module.train()
    images = draw_images_for(probe, probe.choice((2, 3, 4), shown=3), config)
    stages = _compute_inputs_and_outputs_of_parts(weights, images, config)
    parts = list(dict.fromkeys(key.rpartition(":")[0] for key in stages))
    where = make_wrong_part_describer(module, stages, parts, images, axes=("image", "token", "dimension"))

    def describe_probabilities_or_wrong_part(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        if actual.min() >= 0 and are_close(actual.sum(dim=-1), torch.ones_like(actual[:, 0])):
            return "no number is negative and every row sums to 1, as probabilities do", "logits, of either sign"
        return where(actual, expected)

    expect_equal(
        module(images), logits_of(weights, images, config), name, AXES, describe_probabilities_or_wrong_part, look
    )


def _compute_inputs_and_outputs_of_parts(weights: Weights, images: Tensor, config: ViTConfig) -> dict[str, Tensor]:
    """Compute what a right model's parts are given and give, in order."""
    stages = {"patch_embedding:out": embed_patches(weights, images, config)}
    x = embed_images(weights, images, config)
    for number in range(config.depth):
        stages[f"blocks.{number}:in"] = x
        x = stages[f"blocks.{number}:out"] = apply_block(weights, number, x, config)
    stages["norm:in"] = x
    return stages | {"head:in": apply_layer_norm(weights, "norm", x, config)[:, 0]}


@VisionTransformer.check(guard=True)
def its_parameters_have_the_names_asked_for(student: Student, probe: Probe) -> None:
    """Its parameters have the names and shapes that the exercise asks for."""
    build_with_random_weights(student, probe, WIDE_MODEL)


@VisionTransformer.check(needs=its_parameters_have_the_names_asked_for, guard=True)
def every_image_gets_one_logit_per_class(student: Student, probe: Probe) -> None:
    """Every image gets one logit for each class."""
    module, _ = build_with_random_weights(student, probe, WIDE_MODEL)
    expect_tensor(module(draw_images_for(probe, 5, WIDE_MODEL)), (5, 7), "the model's output")


@VisionTransformer.check(
    needs=its_parameters_have_the_names_asked_for,
    worth=0.5,
    guard=True,
    points=_map_exercises_to_points(0.5, 0.125),
    first="the_logits_are_right",
)
def class_token_and_positions_start_as_asked(student: Student, probe: Probe) -> None:
    """The class token starts with zeros, the positions with N(0, 0.02²)."""
    config = draw_config(probe, MANY_TOKENS, patch_size=2, image_size=(16, 18), embed_dim=96, num_heads=2)
    build_with_random_weights(student, probe, config)
    _expect_initial_values(student, config)


def _expect_initial_values(student: Student, config: ViTConfig) -> None:
    """Fail unless a new model's class token and positions, 73 of 96 numbers, start as the table asks."""
    tensors = student.build(config).tensors()
    token, positions = tensors["class_token"].double(), tensors["positions"].double()
    fault = _describe_initial_positions_fault(positions)
    student.note(("start", bool(token.any()), fault))
    if token.any():
        seen = f"the class token of a new model starts with numbers up to {token.abs().max():.3g}"
        raise Failure(seen, "zeros", "With which function of torch do you make the class token?")
    if fault:
        seen = (
            f"the positions of a new model have mean {positions.mean():.2g}, standard deviation {positions.std():.2g}"
        )
        wanted = "numbers of a normal distribution, with mean 0 and standard deviation 0.02"
        raise Failure(f"{seen}: {fault}", wanted, "With which numbers does the table let your positions start?")


def _describe_initial_positions_fault(positions: Tensor) -> str:
    """Say what is wrong with the first values of positions (1, tokens, embed_dim), nothing ("") where all is right."""
    low, high = _SPREADS
    spread, lines = float(positions.std()), torch.cat([positions.std(dim=1), positions.std(dim=2)], 1)
    faults = {
        "all tokens have the same one": bool((positions - positions[:, :1]).abs().lt(1e-6).all()),
        "many times too large": spread > _FAR_TOO_LARGE,
        "not what the table says": not (low < spread < high and abs(float(positions.mean())) < _MEAN),
        "some tokens or dimensions hardly differ": bool(lines.lt(_SPREAD_OF_A_LINE).any()),
        "no number is far from the mean": not positions.abs().gt(_FARTHEST * spread).any(),
    }
    return next((fault for fault, found in faults.items() if found), "")


@VisionTransformer.check(needs=every_image_gets_one_logit_per_class, points=_map_exercises_to_points(1.5, 0.5))
def the_logits_are_right(student: Student, probe: Probe) -> None:
    """With the same weights it gives the right logits."""
    wide = draw_config(probe, WIDE_MODEL, depth=probe.choice((4, 5)))
    for config in (wide, draw_config(probe, replace(TALL_MODEL, depth=1))):
        expect_right_logits(student, probe, config, "the model's output")


@VisionTransformer.check(needs=the_logits_are_right, points=_map_exercises_to_points(2, 0.5))
def the_config_is_followed(student: Student, probe: Probe) -> None:
    """Another config makes another model: tall images, four channels, other sizes, no bias in qkv."""
    patch_size, columns = probe.choice((4, 6)), probe.choice((3, 4))
    one_row: dict[str, Any] = {"image_size": (patch_size, columns * patch_size), "patch_size": patch_size}
    for config in (
        draw_config(probe, TALL_MODEL, depth=2, in_channels=4),
        draw_config(probe, NO_QKV_BIAS, **one_row, in_channels=5, qkv_bias=False),
        draw_config(probe, ONE_PATCH, image_size=patch_size, patch_size=patch_size, in_channels=1, num_heads=1),
    ):
        look = "Which field of the config does your model not read, or read twice?"
        expect_right_logits(student, probe, config, "the output of a model of another config", look)


@VisionTransformer.check(guard=True)
def every_block_has_its_own_parameters(student: Student, probe: Probe) -> None:
    """Two more blocks cost the parameters of two blocks."""
    counts = {}
    for depth in (2, 4):
        module = student.build(replace(WIDE_MODEL, depth=depth))
        weights = probe.weights(module.parameter_shapes())
        module.load(weights)
        held = module.tensors()  # a parameter with several names holds what was loaded last, and counts once
        kept = (each.numel() for name, each in weights.items() if torch.equal(held[name].float(), each))
        counts[depth] = sum(kept)
    student.note(tuple(counts.values()))
    sizes = list_parameter_shapes(replace(WIDE_MODEL, depth=4)).items()
    two_blocks = sum(math.prod(size) for name, size in sizes if name.startswith(("blocks.2.", "blocks.3.")))
    if counts[4] - counts[2] != two_blocks:
        shared = (counts[4] - counts[2]) % (two_blocks // 2) == 0
        look = "How many times does your code call EncoderBlock(...) when depth is 4?"
        raise Failure(
            f"the model has {counts[2]} parameters with depth 2 and {counts[4]} with depth 4",
            f"{two_blocks} more, the parameters of two blocks",
            look
            if shared
            else "Which shapes have the parameters of one block of yours? Which field tells each of them?",
        )


@VisionTransformer.check(needs=every_image_gets_one_logit_per_class, guard=True)
def images_do_not_see_each_other(student: Student, probe: Probe) -> None:
    """An image gets the same logits alone as in a batch."""
    config = draw_config(probe, WIDE_MODEL)
    module, _ = build_with_random_weights(student, probe, config)
    images = draw_images_for(probe, probe.choice((4, 5), shown=4), config)
    together = module(images)
    one = probe.choice(range(len(images)), shown=2)
    for order, described, change in (
        ([one], "a single image", "the other images of its batch are taken away"),
        (probe.permutation(len(images)).tolist(), "the same images in another order", "the images change places"),
        ([one] * (config.num_patches + 1), "one image many times", "it stands in the batch many times"),
    ):
        first = order[0]

        def describe_changed_logits(*_: Tensor, first: int = first, change: str = change) -> tuple[str, str]:
            return f"the logits of image {first} change when {change}", "the same logits, alone or in company"

        look = "Along which axis do tokens exchange information in your forward, and which axis is the batch?"
        right = together[order].to(images.dtype)
        expect_equal(
            module(images[order]), right, f"the model's output for {described}", AXES, describe_changed_logits, look
        )


@VisionTransformer.check(needs=the_logits_are_right, points=_map_exercises_to_points(1, 0.25))
def the_epsilon_of_every_norm_is_the_configs(student: Student, probe: Probe) -> None:
    """Every LayerNorm, in the blocks and at the end, uses config.layer_norm_eps."""
    eps = 0.01 * probe.choice(range(20, 90), shown=10)  # so large that no norm can hide another eps
    config = replace(draw_config(probe, WIDE_MODEL), layer_norm_eps=eps)
    look = "Which eps does nn.LayerNorm take when nobody names one, and who tells the blocks?"
    expect_right_logits(student, probe, config, f"with layer_norm_eps={eps:.3g} the model's output", look)


@VisionTransformer.check(needs=the_logits_are_right, guard=True, points=_map_exercises_to_points(0.5, 0.125))
def nothing_is_dropped_after_eval(student: Student, probe: Probe) -> None:
    """After `.eval()` nothing is random, whatever dropout rates the config names."""
    names = ("embedding_dropout", "attention_dropout", "projection_dropout", "mlp_dropout")
    rates = dict(zip(names, probe.uniform(4, low=0.3, high=0.6).tolist(), strict=True))
    config = replace(draw_config(probe, WIDE_MODEL), **rates)
    expect_right_logits(student, probe, config, "after .eval() the model's output", _RANDOM)


@VisionTransformer.check(needs=the_logits_are_right, worth=0.5, guard=True, points=_map_exercises_to_points(0.5, 0.125))
def nothing_is_dropped_unasked(student: Student, probe: Probe) -> None:
    """While it trains, too, nothing is random where the config names no dropout."""
    config = draw_config(probe, WIDE_MODEL)
    expect_right_logits(student, probe, config, "while training, the model's output", _RANDOM, trains=True)


@VisionTransformer.check(
    needs=the_logits_are_right,
    worth=0.5,
    guard=True,
    points=_map_exercises_to_points(0.5, 0.125),
    first=the_logits_are_right,
)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """Moved to another device, it gives logits that lie there."""
    config = draw_config(probe, WIDE_MODEL)
    expect_device_of_input(student, draw_images_for(probe, 3, config), arguments=(config,))


@VisionTransformer.check(
    needs=every_image_gets_one_logit_per_class, points=_map_exercises_to_points(1, 0.25), first=the_logits_are_right
)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches every parameter, and it is the right one."""
    config = draw_config(probe, WIDE_MODEL, depth=2)
    module, weights = build_with_random_weights(student, probe, config)
    images = draw_images_for(probe, 3, config)
    output = expect_tensor(module(images), (3, config.num_classes), "the model's output")
    if names := module.list_parameters_without_gradient(output):
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise Failure(
            f"no gradient reaches {', '.join(names[:3])}{more}",
            "one for every parameter",
            "Does forward use it, on the way to the logits?",
        )

    def compute_logits_from_parameters(*values: Tensor) -> Tensor:
        return logits_of(dict(zip(weights, values, strict=True)), images, config)

    if are_close(output, compute_logits_from_parameters(*weights.values())):  # other numbers have other gradients
        found, wanted = (
            module.gradients(output),
            Student({"right": compute_logits_from_parameters}).input_gradients(*weights.values()),
        )
        expect_gradients_of_inputs([found[name] for name in weights], wanted, list(weights))


@VisionTransformer.check(needs=the_logits_are_right, guard=True, points=_map_exercises_to_points(0.5, 0.125))
def it_follows_its_dtype(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """After `.double()` it classifies float64 images, in whatever order they lie in memory."""
    config = draw_config(probe, WIDE_MODEL)
    module, weights = build_with_random_weights(student, probe, config)
    module.to(device)
    module.double()
    drawn = probe.normal(3, config.height, config.width, config.in_channels, dtype=torch.float64)
    images = drawn.permute(0, 3, 1, 2)
    output = expect_tensor(module(images.to(device)), (3, config.num_classes), "the model's output")
    if output.dtype != torch.float64:
        look = "Which line makes a new tensor?"
        raise Failure(f"float64 images gave logits of {format_dtype(output.dtype)}", "float64", look)
    # as float32, so that a norm's eps of 1e-5 in place of 1e-6 fails its own check and not this one too
    wanted = logits_of({name: each.double() for name, each in weights.items()}, images, config).float()
    expect_equal(output.float(), wanted.to(device), "the model's output in float64", AXES)


fix_vit = VisionTransformer.share_checks("fix_vit", objects=("FixedViT",))

VisionTransformer.example(
    """
>>> config = ViTConfig(image_size=(8, 12), patch_size=4, embed_dim=6, depth=2, num_heads=2, num_classes=5)
>>> model = VisionTransformer(config)
>>> tuple(model(torch.zeros(3, 3, 8, 12)).shape)
(3, 5)
>>> tuple(model.positions.shape), len(model.blocks)  # 2 x 3 patches and the class token; depth
((1, 7, 6), 2)
""",
    points=_map_exercises_to_points(0.25, 0.125),
    first=the_logits_are_right,
)

fix_vit.example("""
>>> tuple(FixedViT(ViTConfig(depth=1))(torch.zeros(2, 3, 32, 32)).shape)
(2, 10)
""")


read_mistakes(VisionTransformer, __name__)


# no edit of the program: code that is not the course's own is refused for such a call, before anything is compared
@VisionTransformer.misconception(
    "Where does that layer put its norms, and which activation has it?", f"{LESSON}, Six parts"
)
class LibraryLayersForTheBlocks(StandIn):
    """The blocks are nn.TransformerEncoderLayers, which by default are post-norm with a ReLU."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(list_parameter_shapes(config))
        sizes = config.embed_dim, config.num_heads, config.hidden_dim
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(*sizes, batch_first=True) for _ in range(config.depth))
