"""Hidden checks of ``PatchEmbedding``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l01_patchify.patch_embedding import claims

RIGHT = claims.tokens_are_projected_patches
test_tokens_are_projected_patches = as_hidden(RIGHT, PatchEmbedding=1.3)
test_every_parameter_learns = as_hidden(claims.every_parameter_learns, PatchEmbedding=0.7)
test_it_follows_its_dtype = as_hidden(claims.it_follows_its_dtype, PatchEmbedding=0.4)
test_one_embedding_takes_any_images = as_hidden(claims.one_embedding_takes_any_images, PatchEmbedding=0.4)
test_it_computes_where_the_images_are = as_hidden(claims.it_computes_where_the_images_are, RIGHT, PatchEmbedding=0.25)


@pytest.mark.exercise("PatchEmbedding", points=0.8)
def test_images_and_patches_of_any_size_are_right(student, probe):
    """One image or many, one channel or many, any grid, any patch_size and embed_dim: all are embedded alike."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    for held, depth, down, across, side, embed_dim in (
        (1, probe.choice((4, 6, 7)), rows, columns, 3, 11),
        (batch, 1, columns, rows, 5, 2),
        (channels, channels, rows, 1, 1, 1),
    ):
        module, weights = claims.embedding(student, probe, depth, side, embed_dim)
        claims.expect_embedded(module, weights, probe.images(held, depth, down * side, across * side))


@pytest.mark.exercise("PatchEmbedding", points=0.4)
def test_its_tokens_follow_its_weights(student, probe):
    """Each embedding has weights of its own, and with other weights it gives other tokens."""
    images, patch_size = claims.some_images(probe)
    channels = images.shape[1]
    (module, weights), (twin, twin_weights) = (claims.embedding(student, probe, channels, patch_size) for _ in range(2))
    claims.embedding(student, probe, channels, patch_size + 1, 5)
    claims.expect_embedded(module, weights, images, "the embedding, after others were built,")
    claims.expect_embedded(twin, twin_weights, images, "the embedding, built second,")
    weights = claims.some_weights(probe, channels, patch_size, 7)
    module.load(weights)
    claims.expect_embedded(module, weights, images, "the embedding, with new weights loaded,")


@pytest.mark.exercise("PatchEmbedding", points=0.4)
def test_training_and_evaluation_are_alike(student, probe):
    """It gives the same tokens in training and in evaluation mode."""
    images, patch_size = claims.some_images(probe)
    module, weights = claims.embedding(student, probe, images.shape[1], patch_size)
    module.eval()
    claims.expect_embedded(module, weights, images, "the embedding in evaluation mode")
    module.train()
    claims.expect_embedded(module, weights, images, "the embedding in training mode")


@pytest.mark.exercise("PatchEmbedding", points=0.2)
def test_every_call_stands_alone(student, probe, device):
    """Every call answers for the images at hand, on their device and in any memory layout, and leaves them alone."""
    images, patch_size = claims.some_images(probe)
    module, weights = claims.embedding(student, probe, images.shape[1], patch_size)
    module.to(device)
    weights = {name: each.to(device) for name, each in weights.items()}
    for others in (images, probe.images(*images.shape), images.permute(3, 1, 2, 0).contiguous().permute(3, 1, 2, 0)):
        claims.expect_embedded(module, weights, others.to(device), "the embedding of other images")
    expect_left_alone(student)


@pytest.mark.exercise("PatchEmbedding", points=0.15)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
