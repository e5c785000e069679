"""Hidden checks of ``PatchEmbedding``."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, listed, shape, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure

AXES = ("image", "token", "dimension")
LOOK = "Follow one patch on its way into a token: at which step does it go elsewhere?"


def _weights(probe, channels, patch_size, embed_dim):
    shapes = {"projection.weight": (embed_dim, channels * patch_size**2), "projection.bias": (embed_dim,)}
    return probe.weights(shapes)


def _pair(student, reference, probe, channels, patch_size, embed_dim):
    """The student's module and the right one, with the same weights."""
    right = Student({"PatchEmbedding": reference.PatchEmbedding})
    modules = tuple(each.build(channels, patch_size, embed_dim) for each in (student, right))
    weights = _weights(probe, channels, patch_size, embed_dim)
    for module in modules:
        module.load(weights)
    return modules


def _expect_right(module, right, images, described="", look=LOOK):
    """The module's tokens; Failure unless they are those of the right module."""
    output = module(images)
    name = f"the embedding{described} of images {shape(images)}"
    expect_equal(output, right(images), name, AXES, look=look)
    return output


@pytest.mark.exercise("PatchEmbedding", points=1.3)
def test_a_token_is_its_projected_patch(student, reference, probe):
    """Every token is the projection of one patch; the patches come row by row, in tall images and in wide ones."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    module, right = _pair(student, reference, probe, channels, patch_size, probe.choice((6, 8, 9)))
    look = "Which patch does token 1 belong to, and in which order does it hold that patch's numbers?"
    for down, across in ((rows, columns), (columns, rows)):
        images = probe.images(batch, channels, down * patch_size, across * patch_size)
        _expect_right(module, right, images, look=look)


@pytest.mark.exercise("PatchEmbedding", points=0.8)
def test_images_and_patches_of_any_size_are_right(student, reference, probe):
    """One image or many, one channel or many, any grid, any patch_size and embed_dim: all are embedded alike."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    for held, depth, down, across, side, embed_dim in (
        (1, probe.choice((4, 6, 7)), rows, columns, 3, 11),
        (batch, 1, columns, rows, 5, 2),
        (channels, channels, rows, 1, 1, 1),
    ):
        module, right = _pair(student, reference, probe, depth, side, embed_dim)
        _expect_right(module, right, probe.images(held, depth, down * side, across * side))


@pytest.mark.exercise("PatchEmbedding", points=0.4)
def test_its_tokens_follow_its_weights(student, reference, probe):
    """Each embedding has weights of its own, and with other weights it gives other tokens."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    images = probe.images(batch, channels, rows * patch_size, columns * patch_size)
    module, right = _pair(student, reference, probe, channels, patch_size, 6)
    twin, twin_right = _pair(student, reference, probe, channels, patch_size, 6)
    _pair(student, reference, probe, channels, patch_size + 1, 5)
    _expect_right(module, right, images, ", after others were built,")
    _expect_right(twin, twin_right, images, ", built second,")
    weights = _weights(probe, channels, patch_size, 6)
    for each in (module, right):
        each.load(weights)
    _expect_right(module, right, images, ", with new weights loaded,")


@pytest.mark.exercise("PatchEmbedding", points=0.7)
def test_every_parameter_learns(student, reference, probe):
    """The gradients of the projection's weight and bias are right."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    module, right = _pair(student, reference, probe, channels, patch_size, 6)
    images = probe.images(batch, channels, rows * patch_size, columns * patch_size)
    found = module.gradients(_expect_right(module, right, images))
    for name, gradient in right.gradients(right(images)).items():
        if found.get(name) is None:
            look = "Which step hands on bare numbers, and forgets where they came from?"
            raise Failure(f"no gradient reaches `{name}`", "one for every parameter", look)
        expect_equal(found[name], gradient, f"the gradient of `{name}`")


@pytest.mark.exercise("PatchEmbedding", points=0.4)
def test_training_and_evaluation_are_alike(student, reference, probe):
    """It gives the same tokens in training and in evaluation mode."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    module, right = _pair(student, reference, probe, channels, patch_size, 6)
    images = probe.images(batch, channels, rows * patch_size, columns * patch_size)
    module.eval()
    _expect_right(module, right, images, " in evaluation mode")
    module.train()
    _expect_right(module, right, images, " in training mode")


@pytest.mark.exercise("PatchEmbedding", points=0.4)
def test_it_follows_its_dtype(student, reference, probe):
    """After `.to(torch.float64)` all of it is float64, and it embeds float64 images."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    module, right = _pair(student, reference, probe, channels, patch_size, 6)
    for each in (module, right):
        each.to(torch.float64)
    images = probe.images(batch, channels, rows * patch_size, columns * patch_size, dtype=torch.float64)
    _expect_right(module, right, images / 3, " in float64")
    left = {name: tensor.dtype for name, tensor in module.tensors().items() if tensor.dtype == torch.float32}
    if left:
        kinds = listed([f"`{name}` {short(dtype)}" for name, dtype in left.items()])
        raise Failure(f"after .to(torch.float64) it still holds {kinds}", "float64 everywhere")


@pytest.mark.exercise("PatchEmbedding", points=0.2)
def test_every_call_stands_alone(student, reference, probe, device):
    """Every call answers for the images at hand, on their device and in any memory layout, and leaves them alone."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    module, right = _pair(student, reference, probe, channels, patch_size, 6)
    for each in (module, right):
        each.to(device)
    height, width = rows * patch_size, columns * patch_size
    for _ in range(2):
        _expect_right(module, right, probe.images(batch, channels, height, width).to(device))
    turned = probe.normal(width, channels, height, batch).permute(3, 1, 2, 0)
    _expect_right(module, right, turned.to(device), " (with permuted axes)")
    expect_left_alone(student)


@pytest.mark.exercise("PatchEmbedding", points=0.4)
def test_one_embedding_takes_any_images(student, reference, probe):
    """One and the same embedding takes many images or one, of any size, and the same images twice."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    module, right = _pair(student, reference, probe, channels, 3, 6)
    sizes = (batch, rows, columns), (rows, columns, batch), (1, columns, rows)
    held = [probe.images(images, channels, 3 * down, 3 * across) for images, down, across in sizes]
    for images in (*held, held[0]):
        _expect_right(module, right, images)


@pytest.mark.exercise("PatchEmbedding", points=0.25)
def test_it_computes_where_the_images_are(student, reference, probe):
    """Moved to another device, it gives tokens that lie there."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    images = probe.images(batch, channels, 3 * rows, 3 * columns)
    _expect_right(*_pair(student, reference, probe, channels, 3, 6), images)
    expect_device_of_input(student, images, arguments=(channels, 3, 6))


@pytest.mark.exercise("PatchEmbedding", points=0.15)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    module, right = _pair(student, reference, probe, channels, 4, 10)
    _expect_right(module, right, probe.images(batch, channels, 4 * rows, 4 * columns))
    expect_example(student)
