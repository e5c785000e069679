"""`PatchEmbedding`: patches into tokens, by a Linear.

The oracle is ``F.linear`` on the patches of torch's own ``F.unfold``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor, shape
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import TALL, WIDE, Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify import LESSON
from vit_course.exercises.l01_patchify.patchify.claims import patches_of

TOKEN_AXES = ("image", "token", "dimension")

PatchEmbedding = Exercise("PatchEmbedding", LESSON, is_class=True)


def _embedding(
    student: Student, probe: Probe, channels: int, patch_size: int
) -> tuple[StudentModule, dict[str, Tensor]]:
    module = student.build(channels, patch_size, 7)
    weights = probe.weights({"projection.weight": (7, channels * patch_size**2), "projection.bias": (7,)})
    module.load(weights)
    return module, weights


def _embedded(weights: dict[str, Tensor], images: Tensor, patch_size: int) -> Tensor:
    return F.linear(patches_of(images, patch_size), weights["projection.weight"], weights["projection.bias"])


@PatchEmbedding.check(guard=True)
def its_parameters_are_one_linear(student: Student, probe: Probe) -> None:
    """Its parameters are those of one Linear called projection."""
    for channels, patch_size in ((3, 4), (2, 3)):  # 2**patch_size is patch_size**2 for 2 and 4
        _embedding(student, probe, channels, patch_size)


@PatchEmbedding.check(needs=its_parameters_are_one_linear)
def tokens_are_projected_patches(student: Student, probe: Probe) -> None:
    """A token is the projection of its patch, for tall and wide images alike."""
    for (height, width), channels, patch_size in ((TALL, 3, 4), (WIDE, 5, 2)):
        module, weights = _embedding(student, probe, channels, patch_size)
        images = probe.images(2, channels, height, width)
        expect_equal(module(images), _embedded(weights, images, patch_size), "the embedding", TOKEN_AXES)


@PatchEmbedding.check(needs=its_parameters_are_one_linear)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches the weight and the bias of the projection."""
    module, _ = _embedding(student, probe, 3, 2)
    output = expect_tensor(module(probe.images(2, 3, 4, 6)), (2, 6, 7), "the embedding")
    if names := module.without_gradient(output):
        raise Failure(f"no gradient reaches {', '.join(names)}", "one for every parameter")


@PatchEmbedding.check(needs=tokens_are_projected_patches)
def one_embedding_takes_any_images(student: Student, probe: Probe) -> None:
    """One and the same embedding takes many images or one, of any size, and the same images twice."""
    module, weights = _embedding(student, probe, 3, 2)
    first = probe.images(3, 3, 4, 6)
    for images in (first, probe.images(2, 3, 8, 4), probe.images(1, 3, 4, 6), first):
        name = f"an embedding that is used several times, of images {shape(images)},"
        expect_equal(module(images), _embedded(weights, images, 2), name, TOKEN_AXES)


@PatchEmbedding.check(needs=tokens_are_projected_patches, worth=0.5, guard=True)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """Moved to another device, it gives tokens that lie there."""
    expect_device_of_input(student, probe.images(2, 3, 4, 6), arguments=(3, 2, 7))


@PatchEmbedding.check(needs=its_parameters_are_one_linear, guard=True)
def it_follows_its_dtype(student: Student, probe: Probe) -> None:
    """After `.double()` it embeds float64 images."""
    module, weights = _embedding(student, probe, 3, 2)
    module.double()
    images = probe.images(2, 3, 4, 6, dtype=torch.float64)
    doubled = {name: tensor.double() for name, tensor in weights.items()}
    expect_equal(module(images), _embedded(doubled, images, 2), "the embedding in float64", TOKEN_AXES)


PatchEmbedding.example("""
>>> tuple(PatchEmbedding(3, 4, 10)(torch.zeros(2, 3, 8, 12)).shape)
(2, 6, 10)
""")

read_mistakes(PatchEmbedding, __name__)
