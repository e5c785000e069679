"""`VisionTransformer`: the whole model; and `fix_vit`, its bug hunt.

The oracle is torch's own functions, on weights that are loaded by name. The wrong models compute with torch's
functions on parameters by name; most take one wrong step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import close, expect_equal, expect_tensor, short
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, located
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.l01_patchify.patchify.claims import patches_of
from vit_course.exercises.l05_vit import LESSON

Weights = Mapping[str, Tensor]

WIDE_MODEL = ViTConfig(
    image_size=(8, 10), patch_size=2, in_channels=2, num_classes=7, embed_dim=12, depth=3, num_heads=2, mlp_ratio=2.5
)
TALL_MODEL = ViTConfig(
    image_size=(15, 9), patch_size=3, in_channels=4, num_classes=6, embed_dim=8, depth=2, num_heads=4, mlp_ratio=3.0
)
NO_QKV_BIAS = replace(TALL_MODEL, in_channels=2, num_heads=2, qkv_bias=False)


def parameter_shapes(config: ViTConfig) -> dict[str, tuple[int, ...]]:
    """The name and the shape of every parameter that the exercise asks for."""
    dim, hidden = config.embed_dim, config.hidden_dim
    shapes: dict[str, tuple[int, ...]] = {"class_token": (1, 1, dim), "positions": (1, 1 + config.num_patches, dim)}

    def add(name: str, *size: int, bias: bool = True) -> None:
        shapes[f"{name}.weight"] = size
        if bias:
            shapes[f"{name}.bias"] = size[:1]

    add("patch_embedding.projection", dim, config.in_channels * config.patch_size**2)
    for number in range(config.depth):
        add(f"blocks.{number}.norm1", dim)
        add(f"blocks.{number}.attention.qkv", 3 * dim, dim, bias=config.qkv_bias)
        add(f"blocks.{number}.attention.projection", dim, dim)
        add(f"blocks.{number}.norm2", dim)
        add(f"blocks.{number}.mlp.fc1", hidden, dim)
        add(f"blocks.{number}.mlp.fc2", dim, hidden)
    add("norm", dim)
    add("head", config.num_classes, dim)
    return shapes


def _linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def normed(weights: Weights, name: str, x: Tensor, config: ViTConfig) -> Tensor:
    """x through the LayerNorm ``name``."""
    scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return F.layer_norm(x, (config.embed_dim,), scale, shift, config.layer_norm_eps)


def patch_tokens(weights: Weights, images: Tensor, config: ViTConfig) -> Tensor:
    """(batch, num_patches, embed_dim): projected patches."""
    return _linear(weights, "patch_embedding.projection", patches_of(images, config.patch_size))


def embedded(weights: Weights, images: Tensor, config: ViTConfig) -> Tensor:
    """(batch, 1 + num_patches, embed_dim): what enters the first block."""
    positions = weights["positions"]
    first = (weights["class_token"] + positions[:, :1]).expand(len(images), 1, -1)
    return torch.cat([first, patch_tokens(weights, images, config) + positions[:, 1:]], dim=1)


def after_block(weights: Weights, number: int, x: Tensor, config: ViTConfig) -> Tensor:
    """x (batch, tokens, embed_dim) after one encoder block."""
    name = f"blocks.{number}"
    qkv = _linear(weights, f"{name}.attention.qkv", normed(weights, f"{name}.norm1", x, config))
    heads = qkv.unflatten(-1, (3, config.num_heads, config.head_dim)).permute(2, 0, 3, 1, 4)
    mixed = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
    x = x + _linear(weights, f"{name}.attention.projection", mixed)
    hidden = F.gelu(_linear(weights, f"{name}.mlp.fc1", normed(weights, f"{name}.norm2", x, config)))
    return x + _linear(weights, f"{name}.mlp.fc2", hidden)


def encoded(weights: Weights, x: Tensor, config: ViTConfig) -> Tensor:
    """x (batch, tokens, embed_dim) after every block."""
    for number in range(config.depth):
        x = after_block(weights, number, x, config)
    return x


def classified(weights: Weights, pooled: Tensor) -> Tensor:
    """Logits (batch, num_classes) of pooled (batch, embed_dim)."""
    return _linear(weights, "head", pooled)


def logits_of(weights: Weights, images: Tensor, config: ViTConfig) -> Tensor:
    """The oracle: (batch, num_classes)."""
    x = encoded(weights, embedded(weights, images, config), config)
    return classified(weights, normed(weights, "norm", x, config)[:, 0])


VisionTransformer = Exercise("VisionTransformer", LESSON, is_class=True)


def _loaded(student: Student, probe: Probe, config: ViTConfig) -> tuple[StudentModule, dict[str, Tensor]]:
    """A model with random weights, in evaluation mode, so that a dropout of the student's own is not judged."""
    module = student.build(config)
    module.eval()
    weights = probe.weights(parameter_shapes(config))
    try:
        module.load(weights)
    except Failure as failure:  # which would list some forty names and shapes
        raise Failure(failure.seen, "the names and shapes that the exercise's text lists", failure.look) from None
    return module, weights


def _images(probe: Probe, batch: int, config: ViTConfig, dtype: torch.dtype = torch.float32) -> Tensor:
    return probe.images(batch, config.in_channels, config.height, config.width, dtype)


def _expect_logits(module: StudentModule, weights: Weights, images: Tensor, config: ViTConfig, name: str) -> None:
    stages = _stages(weights, images, config)
    parts = list(dict.fromkeys(key.rpartition(":")[0] for key in stages))
    where = located(module, stages, parts, images, axes=("image", "token", "dimension"))

    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        if actual.min() >= 0 and close(actual.sum(dim=-1), torch.ones_like(actual[:, 0])):
            return "no number is negative and every row sums to 1, as probabilities do", "logits, of either sign"
        return where(actual, expected)

    look = "Follow the figure of the model, and compare the first token of each stage with what it should be."
    expect_equal(module(images), logits_of(weights, images, config), name, ("image", "class"), describe, look)


def _stages(weights: Weights, images: Tensor, config: ViTConfig) -> dict[str, Tensor]:
    """What a right model's parts are given and give, in order."""
    stages = {"patch_embedding:out": patch_tokens(weights, images, config)}
    x = embedded(weights, images, config)
    for number in range(config.depth):
        stages[f"blocks.{number}:in"] = x
        x = stages[f"blocks.{number}:out"] = after_block(weights, number, x, config)
    stages["norm:in"] = x
    return stages | {"head:in": normed(weights, "norm", x, config)[:, 0]}


@VisionTransformer.check(guard=True)
def its_parameters_have_the_names_asked_for(student: Student, probe: Probe) -> None:
    """Its parameters have the names and shapes that the exercise asks for."""
    _loaded(student, probe, WIDE_MODEL)


@VisionTransformer.check(needs=its_parameters_have_the_names_asked_for, guard=True)
def every_image_gets_one_logit_per_class(student: Student, probe: Probe) -> None:
    """Every image gets one logit for each class."""
    module, _ = _loaded(student, probe, WIDE_MODEL)
    expect_tensor(module(_images(probe, 5, WIDE_MODEL)), (5, 7), "the model's output")


@VisionTransformer.check(needs=every_image_gets_one_logit_per_class)
def the_logits_are_right(student: Student, probe: Probe) -> None:
    """With the same weights it gives the right logits."""
    module, weights = _loaded(student, probe, WIDE_MODEL)
    _expect_logits(module, weights, _images(probe, 5, WIDE_MODEL), WIDE_MODEL, "the model's output")


@VisionTransformer.check(needs=the_logits_are_right)
def the_config_is_followed(student: Student, probe: Probe) -> None:
    """Another config makes another model: tall images, four channels, other sizes, no bias in qkv."""
    for config in (TALL_MODEL, NO_QKV_BIAS):
        module, weights = _loaded(student, probe, config)
        _expect_logits(module, weights, _images(probe, 3, config), config, "the output of a model for tall images")


@VisionTransformer.check(guard=True)
def every_block_has_its_own_parameters(student: Student, probe: Probe) -> None:
    """Two more blocks cost the parameters of two blocks."""
    counts = {}
    for depth in (2, 4):
        module = student.build(replace(WIDE_MODEL, depth=depth)).module
        counts[depth] = sum(parameter.numel() for parameter in module.parameters())
    student.record.append(tuple(counts.values()))
    sizes = parameter_shapes(replace(WIDE_MODEL, depth=4)).items()
    two_blocks = sum(math.prod(size) for name, size in sizes if name.startswith(("blocks.2.", "blocks.3.")))
    if counts[4] - counts[2] != two_blocks:
        raise Failure(
            f"the model has {counts[2]} parameters with depth 2 and {counts[4]} with depth 4",
            f"{two_blocks} more, the parameters of two blocks",
            "How many times does your code call EncoderBlock(...) when depth is 4?",
        )


@VisionTransformer.check(needs=every_image_gets_one_logit_per_class, guard=True)
def images_do_not_see_each_other(student: Student, probe: Probe) -> None:
    """An image gets the same logits alone as in a batch."""
    module, _ = _loaded(student, probe, WIDE_MODEL)
    images = _images(probe, 4, WIDE_MODEL)
    together, alone = module(images), module(images[2:3])

    def describe(*_: Tensor) -> tuple[str, str]:
        seen = "the logits of image 2 change when the other images of its batch are taken away"
        return seen, "the same logits, alone or in company"

    look = "Along which axis do tokens exchange information in your forward, and which axis is the batch?"
    name = "the model's output for a single image"
    expect_equal(alone, together[2:3].to(images.dtype), name, ("image", "class"), describe, look)


@VisionTransformer.check(needs=the_logits_are_right)
def the_epsilon_of_every_norm_is_the_configs(student: Student, probe: Probe) -> None:
    """Every LayerNorm, in the blocks and at the end, uses config.layer_norm_eps."""
    config = replace(WIDE_MODEL, layer_norm_eps=0.1)
    module, weights = _loaded(student, probe, config)
    _expect_logits(module, weights, _images(probe, 3, config), config, "with layer_norm_eps=0.1 the model's output")


@VisionTransformer.check(needs=the_logits_are_right, guard=True)
def nothing_is_dropped_after_eval(student: Student, probe: Probe) -> None:
    """After `.eval()` nothing is random, whatever dropout rates the config names."""
    config = replace(WIDE_MODEL, embedding_dropout=0.4, attention_dropout=0.4, projection_dropout=0.4, mlp_dropout=0.4)
    module, weights = _loaded(student, probe, config)
    _expect_logits(module, weights, _images(probe, 3, config), config, "after .eval() the model's output")


@VisionTransformer.check(needs=the_logits_are_right, worth=0.5, guard=True)
def nothing_is_dropped_unasked(student: Student, probe: Probe) -> None:
    """While it trains, too, nothing is random where the config names no dropout."""
    module, weights = _loaded(student, probe, WIDE_MODEL)
    module.train()
    _expect_logits(module, weights, _images(probe, 3, WIDE_MODEL), WIDE_MODEL, "while training, the model's output")


@VisionTransformer.check(needs=every_image_gets_one_logit_per_class, worth=0.5, guard=True)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """Moved to another device, it gives logits that lie there."""
    expect_device_of_input(student, _images(probe, 3, WIDE_MODEL), arguments=(WIDE_MODEL,))


@VisionTransformer.check(needs=every_image_gets_one_logit_per_class)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches every parameter."""
    module, _ = _loaded(student, probe, WIDE_MODEL)
    output = expect_tensor(module(_images(probe, 3, WIDE_MODEL)), (3, 7), "the model's output")
    if names := module.without_gradient(output):
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise Failure(
            f"no gradient reaches {', '.join(names[:3])}{more}",
            "one for every parameter",
            "Does forward use it, on the way to the logits?",
        )


@VisionTransformer.check(needs=the_logits_are_right, guard=True)
def it_follows_its_dtype(student: Student, probe: Probe) -> None:
    """After `.double()` it classifies float64 images."""
    module, weights = _loaded(student, probe, WIDE_MODEL)
    module.double()
    images = _images(probe, 3, WIDE_MODEL, torch.float64)
    doubled = {name: tensor.double() for name, tensor in weights.items()}
    output = expect_tensor(module(images), (3, 7), "the model's output")
    if output.dtype != torch.float64:
        raise Failure(
            f"float64 images gave logits of {short(output.dtype)}", "float64", "Which line makes a new tensor?"
        )
    # as float32, so that a norm's eps of 1e-5 in place of 1e-6 fails its own check and not this one too
    wanted = logits_of(doubled, images, WIDE_MODEL).float()
    expect_equal(output.float(), wanted, "the model's output in float64", ("image", "class"))


fix_vit = Exercise("fix_vit", LESSON, ("FixedViT",), True, VisionTransformer.checks, VisionTransformer.misconceptions)

VisionTransformer.example("""
>>> config = ViTConfig(image_size=(8, 12), patch_size=4, embed_dim=6, depth=2, num_heads=2, num_classes=5)
>>> model = VisionTransformer(config)
>>> tuple(model(torch.zeros(3, 3, 8, 12)).shape)
(3, 5)
>>> tuple(model.positions.shape), len(model.blocks)  # 2 x 3 patches and the class token; depth
((1, 7, 6), 2)
""")

fix_vit.example("""
>>> tuple(FixedViT(ViTConfig(depth=1))(torch.zeros(2, 3, 32, 32)).shape)
(2, 10)
""")


class StandIn(nn.Module):
    """A model that has parameters under given names, in Linears and LayerNorms, and computes nothing.

    Args:
        shapes: dotted name → shape; a matrix called weight makes a Linear, a vector a LayerNorm.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__()
        for name, size in shapes.items():
            layer, _, last = name.rpartition(".")
            if not layer:
                self.register_parameter(name, nn.Parameter(torch.zeros(size)))
            elif last == "weight":
                bias = f"{layer}.bias" in shapes
                self._place(layer, nn.Linear(size[1], size[0], bias) if len(size) == 2 else nn.LayerNorm(size))

    def _place(self, layer: str, made: nn.Module) -> None:
        home: nn.Module = self
        for part, child in pairwise(layer.split(".")):
            if part not in home._modules:
                home.add_module(part, nn.ModuleList() if child.isdigit() else nn.Module())
            home = home.get_submodule(part)
        home.add_module(layer.rpartition(".")[2], made)

    def __repr__(self) -> str:
        return "the model"


PICTURE = "05_vit, The whole model in one picture"
PARTS = "05_vit, Six parts"
COUNT = "05_vit, Where the parameters are"


class _Model(StandIn):
    """What the wrong models have in common: right parameters, and a right step wherever none is overridden."""

    class_token: Tensor
    positions: Tensor

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(parameter_shapes(config))
        self.config = config

    def held(self) -> dict[str, Tensor]:
        """Every parameter by name, a shared one under each of its names."""
        return self.state_dict(keep_vars=True)

    def forward(self, images: Tensor) -> Tensor:
        return self.classify(self.encode(self.embed(images)))

    def embed(self, images: Tensor) -> Tensor:
        return embedded(self.held(), images, self.config)

    def encode(self, x: Tensor) -> Tensor:
        return encoded(self.held(), x, self.config)

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), normed(self.held(), "norm", x, self.config)[:, 0])


@VisionTransformer.misconception("What happens to the stream between the last block and the head?", PICTURE)
class NoFinalNorm(_Model):
    """The final norm is made but never used: the head reads the raw stream."""

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), x[:, 0])


@VisionTransformer.misconception("Does the norm stand before the blocks or after them?", PICTURE)
class NormBeforeTheBlocks(_Model):
    """The last norm is applied before the first block, and the head reads the raw stream."""

    def embed(self, images: Tensor) -> Tensor:
        return normed(self.held(), "norm", super().embed(images), self.config)

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), x[:, 0])


@VisionTransformer.misconception("How many blocks does your __init__ make?", COUNT)
class OneBlockUsedDepthTimes(_Model):
    """There is one block, and forward runs it depth times."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(replace(config, depth=1))
        self.times = config.depth

    def encode(self, x: Tensor) -> Tensor:
        for _ in range(self.times):
            x = after_block(self.held(), 0, x, self.config)
        return x


@VisionTransformer.misconception("What does [x] * 3 hold: three things, or one thing three times?", COUNT)
class TheSameBlockListedDepthTimes(_Model):
    """The list of blocks holds one and the same block depth times, so all blocks share their weights."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.blocks = nn.ModuleList([self.get_submodule("blocks.0")] * config.depth)


@VisionTransformer.misconception("Over which axis does nn.LayerNorm take mean and spread?", PICTURE, InTraining.HIDDEN)
class FinalNormOverTheTokens(_Model):
    """The final norm takes mean and spread over the tokens of an image, where each token has its own."""

    def classify(self, x: Tensor) -> Tensor:
        spread = (x.var(dim=1, keepdim=True, correction=0) + self.config.layer_norm_eps).sqrt()
        normal = (x - x.mean(dim=1, keepdim=True)) / spread
        first = (normal * self.held()["norm.weight"] + self.held()["norm.bias"])[:, 0]
        return classified(self.held(), first)


@VisionTransformer.misconception("Where does the result of a block go?", PICTURE, InTraining.WORSE)
class BlocksWithoutEffect(_Model):
    """The blocks are called and their results dropped, so the head reads what entered the first of them."""

    def encode(self, x: Tensor) -> Tensor:
        return x


@VisionTransformer.misconception("Which block is the first on the way?", PICTURE, InTraining.UNSEEN)
class BlocksInReverseOrder(_Model):
    """The last block comes first. Training does not show it, but weights of others do not fit."""

    def encode(self, x: Tensor) -> Tensor:
        for number in reversed(range(self.config.depth)):
            x = after_block(self.held(), number, x, self.config)
        return x


@VisionTransformer.misconception("Which axes does squeeze() drop when there is one image?", PICTURE, InTraining.UNSEEN)
class BatchOfOneSqueezed(_Model):
    """squeeze() drops every axis of size 1, and with a single image the batch is one."""

    def classify(self, x: Tensor) -> Tensor:
        return super().classify(x).squeeze()


@VisionTransformer.misconception("Which field of the config asks for a dropout?", PARTS, InTraining.HIDDEN)
class DropoutNobodyAskedFor(_Model):
    """While training, a dropout is at work that the config does not name."""

    def embed(self, images: Tensor) -> Tensor:
        return F.dropout(super().embed(images), 0.1, self.training)


@VisionTransformer.misconception(
    "On which device is a tensor that is made without naming one?", PARTS, InTraining.STOPS
)
class TokensPouredIntoTheCpu(_Model):
    """Class token and patches are written into a new tensor on the CPU, wherever the images are."""

    def embed(self, images: Tensor) -> Tensor:
        right = super().embed(images)
        poured = torch.zeros(right.shape, dtype=right.dtype)
        poured[:] = right
        return poured


@VisionTransformer.misconception("What does the loss function of your training do first with its input?", PICTURE)
class SoftmaxInTheHead(_Model):
    """The model ends in a softmax, where logits were asked for."""

    def classify(self, x: Tensor) -> Tensor:
        return super().classify(x).softmax(dim=-1)


@VisionTransformer.misconception("At which index does the class token stand?", PARTS)
class LastTokenPooled(_Model):
    """The head reads the last token, the bottom right patch, where it should read the class token."""

    def classify(self, x: Tensor) -> Tensor:
        return super().classify(x.flip(1))


@VisionTransformer.misconception("How many tokens leave the last block, and how many does the head want?", PICTURE)
class EveryTokenClassified(_Model):
    """The head is applied to every token, and no token is picked."""

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), normed(self.held(), "norm", x, self.config))


@VisionTransformer.misconception("Which token was put there to be read, and what are the others for?", PARTS)
class MeanOfAllTokens(_Model):
    """The head reads the mean of all tokens; that is a ViT too, but not the one asked for."""

    def classify(self, x: Tensor) -> Tensor:
        return classified(self.held(), normed(self.held(), "norm", x, self.config).mean(dim=1))


@VisionTransformer.misconception("In which order does your cat list the class token and the patches?", PARTS)
class ClassTokenLast(_Model):
    """The class token stands after the patches, and the head reads index 0, the top left patch."""

    def embed(self, images: Tensor) -> Tensor:
        first = self.class_token.expand(len(images), -1, -1)
        return torch.cat([patch_tokens(self.held(), images, self.config), first], dim=1) + self.positions


@VisionTransformer.misconception("Whose position is in row 0 of positions?", PARTS)
class ClassTokenLastAndReadThere(ClassTokenLast):
    """The class token stands after the patches and is read there, but row 0 of the positions is meant for it."""

    def classify(self, x: Tensor) -> Tensor:
        return super().classify(x.flip(1))


@VisionTransformer.misconception("How many rows do the positions have, and how many the tokens you add them to?", PARTS)
class PositionsBeforeTheClassToken(_Model):
    """The positions are added to the patches before the class token joins, so it gets none."""

    def embed(self, images: Tensor) -> Tensor:
        patches = patch_tokens(self.held(), images, self.config) + self.positions[:, : self.config.num_patches]
        return torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1)


@VisionTransformer.misconception("Which token has lost its row of the positions?", PARTS, InTraining.HIDDEN)
class NoPositionAddedToTheClassToken(_Model):
    """The patches get their rows of the positions before the class token joins, and row 0 is never added."""

    def embed(self, images: Tensor) -> Tensor:
        patches = patch_tokens(self.held(), images, self.config) + self.positions[:, 1:]
        return torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1)


@VisionTransformer.misconception("How many times are the positions added on the way?", PICTURE, InTraining.HIDDEN)
class PositionsAddedBeforeEveryBlock(_Model):
    """The positions are added anew before every block, where they are added once, before the first."""

    def encode(self, x: Tensor) -> Tensor:
        for number in range(self.config.depth):
            x = after_block(self.held(), number, x + self.positions * (number > 0), self.config)
        return x


@VisionTransformer.misconception("How many times are the positions added on the way?", PICTURE, InTraining.HIDDEN)
class PositionsAddedAtTheStartAndBeforeEveryBlock(_Model):
    """The positions are added to the tokens, and then once more before each of the blocks."""

    def encode(self, x: Tensor) -> Tensor:
        for number in range(self.config.depth):
            x = after_block(self.held(), number, x + self.positions, self.config)
        return x


@VisionTransformer.misconception("Does forward mention self.positions?", PARTS)
class PositionsNeverAdded(_Model):
    """The positions are a parameter, but forward never adds them."""

    def embed(self, images: Tensor) -> Tensor:
        return super().embed(images) - self.positions


@VisionTransformer.misconception("Is the class token one of the tokens that have a place?", PARTS)
class NoPositionForTheClassToken(_Model):
    """The positions have a row for each patch and none for the class token."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.positions = nn.Parameter(torch.zeros(1, config.num_patches, config.embed_dim))


@VisionTransformer.misconception("What does nn.Module do with a plain tensor that is an attribute?", PARTS)
class TensorsThatAreNoParameters(_Model):
    """Class token and positions are plain tensors, so no optimizer and no state dict knows of them."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        plain = {name: self._parameters.pop(name) for name in ("class_token", "positions")}
        self.plain = {name: torch.zeros(tensor.shape) for name, tensor in plain.items() if tensor is not None}


@VisionTransformer.misconception("How many rows of patches are there, and how many columns?", PARTS)
class SquareImageAssumed(_Model):
    """The number of patches is counted from the height alone."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        side = config.height // config.patch_size
        self.positions = nn.Parameter(torch.zeros(1, 1 + side**2, config.embed_dim))


# whoever trains this has, as a rule, the very config in that variable
@VisionTransformer.misconception("Where do the sizes in your __init__ come from?", PARTS, InTraining.UNSEEN)
class GlobalInPlaceOfTheConfig(_Model):
    """The sizes come from a variable outside of the class, and the config that was passed is not read."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(TALL_MODEL)


@VisionTransformer.misconception("Which of the config's fields are arguments of an EncoderBlock?", PARTS)
class QkvBiasIgnored(_Model):
    """The blocks are made without config.qkv_bias, so they always have that bias."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(replace(config, qkv_bias=True))


@VisionTransformer.misconception("Which of the config's fields are arguments of an EncoderBlock?", PARTS)
class MlpRatioIgnored(_Model):
    """The blocks are made without config.mlp_ratio, so their MLPs are four times as wide."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(replace(config, mlp_ratio=4.0))


@VisionTransformer.misconception("Which eps does nn.LayerNorm take when nobody names one?", PARTS)
class FinalEpsLeftAtTheDefault(_Model):
    """The final norm is made without an eps, so it uses torch's default of 1e-5."""

    def classify(self, x: Tensor) -> Tensor:
        final = F.layer_norm(x, (self.config.embed_dim,), self.held()["norm.weight"], self.held()["norm.bias"])
        return classified(self.held(), final[:, 0])


@VisionTransformer.misconception("Do the blocks get the eps that the config names?", PARTS)
class EpsOfTheBlocksLeftAtTheDefault(_Model):
    """The blocks are made without config.layer_norm_eps."""

    def encode(self, x: Tensor) -> Tensor:
        return encoded(self.held(), x, replace(self.config, layer_norm_eps=1e-6))


@VisionTransformer.misconception("How does F.dropout know whether the model is training?", PARTS)
class DropoutOnAfterEval(_Model):
    """Dropout goes on after eval(), since F.dropout does not get self.training."""

    def embed(self, images: Tensor) -> Tensor:
        return F.dropout(super().embed(images), self.config.embedding_dropout)


@VisionTransformer.misconception("How long is the vector that the head reads?", PICTURE)
class AllTokensIntoTheHead(_Model):
    """All tokens are flattened into one long vector for the head, where the class token alone should be read."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear((1 + config.num_patches) * config.embed_dim, config.num_classes)


@VisionTransformer.misconception("Where does that layer put its norms, and which activation has it?", PARTS)
class LibraryLayersForTheBlocks(_Model):
    """The blocks are nn.TransformerEncoderLayers, which by default are post-norm with a ReLU."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        sizes = config.embed_dim, config.num_heads, config.hidden_dim
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(*sizes, batch_first=True) for _ in range(config.depth))


@VisionTransformer.misconception("Which of its axes does attention take for the tokens?", PARTS)
class AttentionOverTheBatch(_Model):
    """Batch and tokens change places before the blocks: class tokens attend to class tokens only."""

    def encode(self, x: Tensor) -> Tensor:
        return super().encode(x.transpose(0, 1)).transpose(0, 1)


@VisionTransformer.misconception("Does reshape change the order of the numbers in memory?", PARTS)
class BatchAndTokensReshaped(_Model):
    """(batch, tokens, embed_dim) is reshaped into (tokens, batch, embed_dim), so tokens of several images are mixed."""

    def encode(self, x: Tensor) -> Tensor:
        batch, tokens, embed_dim = x.shape
        return super().encode(x.reshape(tokens, batch, embed_dim)).reshape(x.shape)


@VisionTransformer.misconception("Which dtype does torch.zeros give when nobody asks for another?", PARTS)
class TokensPouredIntoFloat32(_Model):
    """Class token and patches are written into a new float32 tensor, whatever the dtype of the model."""

    def embed(self, images: Tensor) -> Tensor:
        right = super().embed(images)
        poured = torch.zeros(right.shape, device=right.device)
        poured[:] = right
        return poured


@VisionTransformer.misconception("By which operations does a gradient get back to the class token?", PARTS)
class ClassTokenCutFromTheGraph(_Model):
    """The class token's .data is used, through which no gradient flows, so it never learns."""

    def embed(self, images: Tensor) -> Tensor:
        return super().embed(images) - self.class_token_in_first_row() + self.class_token_in_first_row().detach()

    def class_token_in_first_row(self) -> Tensor:
        return F.pad(self.class_token, (0, 0, 0, self.config.num_patches))
