"""Hidden checks of ``VisionTransformer``, and of ``fix_vit``, which mends a broken one.

What a model does with images of another size than its config's is not asked, for no exercise's text tells.
"""

from dataclasses import dataclass, replace

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, expect_tensor, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone, expect_modes_kept, located
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit.vision_transformer.claims import expect_start

AXES = ("image", "class")
# embed_dim is even, so that embed_dim · ratio is whole, and cutting and rounding agree
RATIOS = (0.5, 1.5, 2.0, 2.5, 3.0, 5.0)


@dataclass
class _Pair:
    """The student's model and the right one, with the same weights."""

    model: object
    twin: object
    config: ViTConfig

    def images(self, probe, batch, dtype=torch.float32):
        config = self.config
        return probe.images(batch, config.in_channels, config.height, config.width, dtype=dtype)

    def expect_same(self, images, name, look):
        """Fail unless both give the same logits; returns the right ones."""
        right = self.twin(images)
        parts = ("patch_embedding", *(f"blocks.{number}" for number in range(self.config.depth)), "norm", "head")
        where = located(self.model, self.twin, parts, images, axes=("image", "token", "dimension"))

        def describe(actual, expected):
            return _probabilities(actual, expected) or where(actual, expected)

        expect_equal(self.model(images), right, name, AXES, describe, look)
        return right


def _probabilities(actual, _):
    sums = actual.sum(dim=-1)
    if actual.min() >= 0 and torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return "no number is negative and every row sums to 1, as probabilities do", "logits, of either sign"
    return None


def _config(probe, depth, wide=None, **choices):
    """A small model: sizes pairwise distinct where they could be mistaken for one another, wide images or tall ones."""
    patch_size, rows, columns = probe.choice((2, 3, 5)), *sorted(probe.sizes(2, high=5))
    if not (probe.choice((True, False)) if wide is None else wide):
        rows, columns = columns, rows
    channels, classes, num_heads = probe.sizes(3, high=7)
    sizes = {
        "image_size": (rows * patch_size, columns * patch_size),
        "patch_size": patch_size,
        "in_channels": channels,
        "num_classes": classes + 4,
        "embed_dim": num_heads * probe.choice((2, 4)),
        "num_heads": num_heads,
        "depth": depth,
        "mlp_ratio": probe.choice(RATIOS),
    }
    return ViTConfig(**(sizes | choices))


def _pair(student, reference, probe, config):
    model = student.build(config)
    # the right one without the rates of dropout that the config may name
    still = replace(config, embedding_dropout=0.0, attention_dropout=0.0, projection_dropout=0.0, mlp_dropout=0.0)
    twin = Student({"reference": reference.VisionTransformer}).build(still)
    weights = probe.weights(twin.parameter_shapes())
    try:
        model.load(weights)
    except Failure as failure:  # which would list some forty names and shapes
        raise Failure(failure.seen, "the names and shapes that the exercise's text lists", failure.look) from None
    twin.load(weights)
    model.eval()
    return _Pair(model, twin, config)


@pytest.mark.exercise("VisionTransformer", points=1.75)
@pytest.mark.exercise("fix_vit", points=0.5)
def test_the_logits_are_right(student, reference, probe):
    """With the same weights it gives the logits of a right model, for wide images and for tall ones."""
    look = "Follow the figure of the model, and compare the first token of each stage with what it should be."
    for wide, depth in ((True, 2), (False, 1)):
        pair = _pair(student, reference, probe, _config(probe, depth=depth, wide=wide))
        pair.expect_same(pair.images(probe, probe.choice((2, 3, 4))), "the model's output", look)


@pytest.mark.exercise("VisionTransformer", points=1)
@pytest.mark.exercise("fix_vit", points=0.5)
def test_both_ends_are_right(student, reference, probe):
    """Without any block (depth 0) the logits are those of the class token, at its position, after the norm."""
    config = _config(probe, depth=0)
    pair = _pair(student, reference, probe, config)
    name = "the output of a model of depth 0"
    pair.expect_same(pair.images(probe, 3), name, "No block mixes tokens here. Which token does your head read?")


@pytest.mark.exercise("VisionTransformer", points=1.5)
@pytest.mark.exercise("fix_vit", points=0.5)
def test_the_config_is_followed(student, reference, probe):
    """One channel or five, no bias in qkv, one head or many, one patch alone: another config makes another model."""
    patch_size, columns = probe.choice((4, 6)), probe.choice((3, 4))
    one_row = {"image_size": (patch_size, columns * patch_size), "patch_size": patch_size, "in_channels": 5}
    one_patch = {"image_size": (patch_size, patch_size), "patch_size": patch_size, "in_channels": 1, "num_heads": 1}
    look = "Which field of the config does your model not read, or read twice?"
    for choices in ({**one_row, "qkv_bias": False}, one_patch):
        pair = _pair(student, reference, probe, _config(probe, depth=1, **choices))
        pair.expect_same(pair.images(probe, 2), "the output of a model of another config", look)


@pytest.mark.exercise("VisionTransformer", points=0.75)
@pytest.mark.exercise("fix_vit", points=0.125)
def test_every_norm_has_the_configs_eps(student, reference, probe):
    """Every LayerNorm, in the blocks and at the end, uses config.layer_norm_eps."""
    eps = float(probe.uniform(1, low=0.2, high=0.9))  # so large that no norm can hide another eps
    pair = _pair(student, reference, probe, _config(probe, depth=1, layer_norm_eps=eps))
    look = "Which eps does nn.LayerNorm take when nobody names one, and who tells the blocks?"
    pair.expect_same(pair.images(probe, 3), f"with layer_norm_eps={eps:.2f} the model's output", look)


@pytest.mark.exercise("VisionTransformer", points=1)
@pytest.mark.exercise("fix_vit", points=0.25)
def test_depth_blocks_each_with_its_own_weights(student, reference, probe):
    """A deeper model has that many more blocks; each has weights of its own, and they work in their order."""
    pair = _pair(student, reference, probe, _config(probe, depth=probe.choice((4, 5))))
    look = "How many times does your code call EncoderBlock(...), and in which order does forward go through them?"
    pair.expect_same(pair.images(probe, 2), f"the output of a model of {pair.config.depth} blocks", look)
    found, wanted = (sum(each.numel() for each in which.tensors().values()) for which in (pair.model, pair.twin))
    if found < wanted:
        raise Failure(f"the model holds {found} numbers", f"at least {wanted}, for {pair.config.depth} blocks", look)


@pytest.mark.exercise("VisionTransformer", points=0.75)
@pytest.mark.exercise("fix_vit", points=0.25)
def test_images_do_not_see_each_other(student, reference, probe):
    """An image gets its own logits whether it is alone, one of many, in another place, or shown twice."""
    pair = _pair(student, reference, probe, _config(probe, depth=1))
    batch = probe.choice((4, 5))
    images = pair.images(probe, batch)
    look = "Along which axis do tokens exchange information in your forward, and which axis is the batch?"
    for order, described in (
        (torch.arange(batch), "the model's output"),
        (probe.permutation(batch), "the output for the same images in another order"),
        (probe.integers(1, high=batch), "the output for one image alone"),
        (probe.integers(1, high=batch).expand(pair.config.num_patches + 1), "the output for one image many times"),
    ):
        pair.expect_same(images[order], described, look)
    expect_left_alone(student)
    expect_modes_kept(student, (pair.config,), images)


@pytest.mark.exercise("VisionTransformer", points=1)
@pytest.mark.exercise("fix_vit", points=0.25)
def test_every_parameter_learns(student, reference, probe):
    """Every parameter, class token and positions too, gets the gradient that is its own."""
    pair = _pair(student, reference, probe, _config(probe, depth=2))
    images = pair.images(probe, 3)
    output, right = pair.model(images), pair.twin(images)
    found = pair.model.gradients(expect_tensor(output, right.shape, "the model's output"))
    look = "Does forward use it, once, on the way to the logits, and does nothing cut it off?"
    for name, wanted in pair.twin.gradients(right).items():
        if found.get(name) is None:
            raise Failure(f"no gradient reaches {name}", "one for every parameter", look)
        # a relative tolerance of the largest, for sums over many tokens that nearly cancel
        scale = max(1.0, float(wanted.abs().max()))
        expect_equal(found[name] / scale, wanted / scale, f"the gradient of {name}", look=look)


@pytest.mark.exercise("VisionTransformer", points=0.5)
@pytest.mark.exercise("fix_vit", points=0.125)
def test_nothing_is_left_to_chance(student, reference, probe):
    """After `.eval()` no dropout is at work, whatever the config says; and none while training, if it names none."""
    rates = probe.uniform(4, low=0.3, high=0.6).tolist()
    names = ("embedding_dropout", "attention_dropout", "projection_dropout", "mlp_dropout")
    config = _config(probe, depth=1)
    look = "Which of your layers draws random numbers, and when should it?"
    pair = _pair(student, reference, probe, replace(config, **dict(zip(names, rates, strict=True))))
    pair.expect_same(pair.images(probe, 2), "after .eval() the model's output", look)
    pair = _pair(student, reference, probe, config)
    pair.model.train()
    pair.expect_same(pair.images(probe, 2), "while training, without dropout in the config, the model's output", look)


@pytest.mark.exercise("VisionTransformer", points=0.5)
@pytest.mark.exercise("fix_vit", points=0.125)
def test_it_follows_device_and_dtype(student, reference, probe, device):
    """Moved, and cast to float64, it classifies there, in float64, also images that lie out of order in memory."""
    pair = _pair(student, reference, probe, _config(probe, depth=1))
    for each in (pair.model, pair.twin):
        each.to(device)
        each.double()
    config = pair.config
    images = probe.normal(3, config.height, config.width, config.in_channels, dtype=torch.float64)
    images = images.permute(0, 3, 1, 2).to(device)
    right = pair.twin(images)
    output = expect_tensor(pair.model(images), right.shape, "the model's output")
    look = "Which line makes a new tensor, of which dtype, and on which device?"
    if output.dtype != right.dtype:
        raise Failure(f"float64 images gave logits of {short(output.dtype)}", "float64", look)
    # as float32, so that a norm's eps of 1e-5 in place of 1e-6 fails its own check and not this one too
    expect_equal(output.float(), right.float(), "the model's output in float64", AXES, look=look)


@pytest.mark.exercise("VisionTransformer", points=0.5)
@pytest.mark.exercise("fix_vit", points=0.125)
def test_it_computes_where_the_images_are(student, reference, probe):
    """The logits are right, and moved to another device it computes there."""
    pair = _pair(student, reference, probe, _config(probe, depth=1))
    images = pair.images(probe, 2)
    pair.expect_same(images, "the model's output", "Which token does your head read?")
    expect_device_of_input(student, images, arguments=(pair.config,))


@pytest.mark.exercise("VisionTransformer", points=0.25)
@pytest.mark.exercise("fix_vit", points=0.125)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and the logits of a drawn model are right too."""
    pair = _pair(student, reference, probe, _config(probe, depth=1))
    pair.expect_same(pair.images(probe, 2), "the model's output", "Which token does your head read?")
    expect_example(student)


@pytest.mark.exercise("VisionTransformer", points=0.5)
@pytest.mark.exercise("fix_vit", points=0.125)
def test_a_new_model_starts_as_the_table_says(student, reference, probe):
    """The logits are right; in a new model the class token is zero, and the positions are normally distributed around
    0, with a standard deviation of 0.02."""
    pair = _pair(student, reference, probe, _config(probe, depth=1))
    pair.expect_same(pair.images(probe, 2), "the model's output", "Which token does your head read?")
    expect_start(student, _config(probe, depth=1, patch_size=2, image_size=(16, 18), embed_dim=96, num_heads=2))
