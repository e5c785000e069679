"""`PatchEmbedding`: patches into tokens, by a Linear.

The oracle is ``F.linear`` on the patches of torch's own ``F.unfold``.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import (
    are_close,
    expect_equal,
    expect_tensor,
    format_dtype,
    format_shape,
    join_names,
)
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input, expect_gradients_of_inputs
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify import LESSON
from vit_course.exercises.l01_patchify.patchify.claims import patches_of

TOKEN_AXES = ("image", "token", "dimension")
LOOK = "Follow one patch on its way into a token: at which step does it go elsewhere?"

PatchEmbedding = Exercise("PatchEmbedding", LESSON, is_class=True)


def build_with_random_weights(
    student: Student, probe: Probe, channels: int, patch_size: int, embed_dim: int = 7
) -> tuple[StudentModule, dict[str, Tensor]]:
    """The student's module, and the weights that it was given."""
    module = student.build(channels, patch_size, embed_dim)
    weights = draw_weights(probe, channels, patch_size, embed_dim)
    module.load(weights)
    return module, weights


def draw_weights(probe: Probe, channels: int, patch_size: int, embed_dim: int) -> dict[str, Tensor]:
    """Weight and bias of the projection, by name."""
    shapes = {"projection.weight": (embed_dim, channels * patch_size**2), "projection.bias": (embed_dim,)}
    return probe.weights(shapes)


def compute_expected_tokens(weights: dict[str, Tensor], images: Tensor) -> Tensor:
    """The oracle of PatchEmbedding, (batch, tokens, embed_dim)."""
    weight, bias = weights["projection.weight"], weights["projection.bias"]
    patch_size = math.isqrt(weight.shape[1] // images.shape[1])
    return F.linear(patches_of(images, patch_size), weight, bias)


def expect_right_tokens(
    module: StudentModule, weights: dict[str, Tensor], images: Tensor, name: str = "the embedding", look: str = LOOK
) -> None:
    """The tokens of the images, right."""
    expect_equal(module(images), compute_expected_tokens(weights, images), name, TOKEN_AXES, look=look)


def draw_images_and_patch_size(probe: Probe, dtype: torch.dtype = torch.float32) -> tuple[Tensor, int]:
    """(batch, channels, rows * patch_size, columns * patch_size) and patch_size, which is never 2: 2 * 2 is 2**2."""
    batch, channels, rows, columns, size = probe.sizes(5, low=3, high=7, shown=(2, 5, 4, 6, 3))
    return probe.images(batch, channels, rows * size, columns * size, dtype=dtype), size


@PatchEmbedding.check(guard=True)
def its_parameters_are_one_linear(student: Student, probe: Probe) -> None:
    """Its parameters are those of one Linear called projection."""
    for channels, patch_size in ((3, 4), (2, 3)):  # 2**patch_size is patch_size**2 for 2 and 4
        build_with_random_weights(student, probe, channels, patch_size)


@PatchEmbedding.check(needs=its_parameters_are_one_linear, points=1.3)
def tokens_are_projected_patches(student: Student, probe: Probe) -> None:
    """A token is the projection of its patch, for tall and wide images alike."""
    images, patch_size = draw_images_and_patch_size(probe)
    module, weights = build_with_random_weights(
        student, probe, images.shape[1], patch_size, probe.choice((6, 8, 9), shown=7)
    )
    look = "Which patch is the first token that differs, and in which order does it hold that patch's numbers?"
    expect_right_tokens(module, weights, images, look=look)
    batch, channels, height, width = images.shape
    expect_right_tokens(module, weights, probe.images(batch, channels, width, height), look=look)


@PatchEmbedding.check(needs=its_parameters_are_one_linear, points=0.7)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches the weight and the bias of the projection, and it is the right one."""
    images, patch_size = draw_images_and_patch_size(probe)
    module, weights = build_with_random_weights(student, probe, images.shape[1], patch_size)
    expected = compute_expected_tokens(weights, images)
    output = expect_tensor(module(images), expected.shape, "the embedding")
    if asleep := module.list_parameters_without_gradient(output):
        look = "Is the projection called in forward, and does what it gives stay in torch's graph, up to the result?"
        raise Failure(f"no gradient reaches {join_names(asleep)}", "one for each parameter", look)

    def compute_tokens_from_parameters(*values: Tensor) -> Tensor:
        return compute_expected_tokens(dict(zip(weights, values, strict=True)), images)

    if are_close(output, expected):  # other numbers have other gradients
        found, wanted = (
            module.gradients(output),
            Student({"right": compute_tokens_from_parameters}).input_gradients(*weights.values()),
        )
        expect_gradients_of_inputs([found[name] for name in weights], wanted, list(weights))


@PatchEmbedding.check(needs=tokens_are_projected_patches, points=0.4)
def one_embedding_takes_any_images(student: Student, probe: Probe) -> None:
    """One and the same embedding takes many images or one, of any size, the same images twice and others after them."""
    batch, channels, rows, columns = probe.sizes(4, high=6, shown=(3, 4, 2, 5))
    module, weights = build_with_random_weights(student, probe, channels, 3)
    sizes = (batch, rows, columns), (rows, columns, batch), (1, columns, rows), (rows, 1, columns)
    held = [probe.images(images, channels, 3 * down, 3 * across) for images, down, across in sizes]
    for images in (*held, held[0], probe.images(*held[0].shape)):
        name = f"an embedding that is used several times, of images {format_shape(images)},"
        expect_right_tokens(module, weights, images, name)


@PatchEmbedding.check(
    needs=tokens_are_projected_patches, worth=0.5, guard=True, points=0.25, first=tokens_are_projected_patches
)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """Moved to another device, it gives tokens that lie there."""
    images, patch_size = draw_images_and_patch_size(probe)
    expect_device_of_input(student, images, arguments=(images.shape[1], patch_size, 7))


@PatchEmbedding.check(needs=its_parameters_are_one_linear, guard=True, points=0.4, first=every_parameter_learns)
def it_follows_its_dtype(student: Student, probe: Probe) -> None:
    """After `.double()` all of it is float64, and it embeds float64 images."""
    images, patch_size = draw_images_and_patch_size(probe, torch.float64)
    module, weights = build_with_random_weights(student, probe, images.shape[1], patch_size)
    module.double()
    doubled = {name: tensor.double() for name, tensor in weights.items()}
    expected = compute_expected_tokens(doubled, images)
    output = expect_tensor(module(images), expected.shape, "the embedding in float64")
    if output.dtype != torch.float64 or are_close(output.float(), expected.float()):  # other numbers fail another claim
        expect_equal(output, expected, "the embedding in float64", TOKEN_AXES, look=LOOK)
    left = {name: tensor.dtype for name, tensor in module.tensors().items() if tensor.dtype == torch.float32}
    if left:
        kinds = join_names([f"`{name}` {format_dtype(dtype)}" for name, dtype in left.items()])
        raise Failure(f"after .double() it still holds {kinds}", "float64 everywhere")


PatchEmbedding.example(
    """
>>> tuple(PatchEmbedding(3, 4, 10)(torch.zeros(2, 3, 8, 12)).shape)
(2, 6, 10)
""",
    points=0.15,
    first=tokens_are_projected_patches,
)

read_mistakes(PatchEmbedding, __name__)
