"""What only grading asks of ``PatchEmbedding``."""

from __future__ import annotations

import torch

from exercise_kit.engine.expect import expect_inputs_unchanged
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l01_patchify.patch_embedding import claims


@claims.PatchEmbedding.check(graded_only=True, points=0.8)
def images_and_patches_of_any_size_are_right(student: Student, probe: Probe) -> None:
    """One image or many, one channel or many, any grid, any patch_size and embed_dim: all are embedded alike."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    for held, depth, down, across, side, embed_dim in (
        (1, probe.choice((4, 6, 7)), rows, columns, 3, 11),
        (batch, 1, columns, rows, 5, 2),
        (channels, channels, rows, 1, 1, 1),
    ):
        module, weights = claims.build_with_random_weights(student, probe, depth, side, embed_dim)
        claims.expect_right_tokens(module, weights, probe.images(held, depth, down * side, across * side))


@claims.PatchEmbedding.check(graded_only=True, points=0.4)
def its_tokens_follow_its_weights(student: Student, probe: Probe) -> None:
    """Each embedding has weights of its own, and with other weights it gives other tokens."""
    images, patch_size = claims.draw_images_and_patch_size(probe)
    channels = images.shape[1]
    (module, weights), (twin, twin_weights) = (
        claims.build_with_random_weights(student, probe, channels, patch_size) for _ in range(2)
    )
    claims.build_with_random_weights(student, probe, channels, patch_size + 1, 5)
    claims.expect_right_tokens(module, weights, images, "the embedding, after others were built,")
    claims.expect_right_tokens(twin, twin_weights, images, "the embedding, built second,")
    weights = claims.draw_weights(probe, channels, patch_size, 7)
    module.load(weights)
    claims.expect_right_tokens(module, weights, images, "the embedding, with new weights loaded,")


@claims.PatchEmbedding.check(graded_only=True, points=0.4)
def training_and_evaluation_are_alike(student: Student, probe: Probe) -> None:
    """It gives the same tokens in training and in evaluation mode."""
    images, patch_size = claims.draw_images_and_patch_size(probe)
    module, weights = claims.build_with_random_weights(student, probe, images.shape[1], patch_size)
    module.eval()
    claims.expect_right_tokens(module, weights, images, "the embedding in evaluation mode")
    module.train()
    claims.expect_right_tokens(module, weights, images, "the embedding in training mode")


@claims.PatchEmbedding.check(graded_only=True, points=0.2)
def every_call_stands_alone(student: Student, probe: Probe, device: torch.device) -> None:
    """Every call answers for the images at hand, on their device and in any memory layout, and leaves them alone."""
    images, patch_size = claims.draw_images_and_patch_size(probe)
    module, weights = claims.build_with_random_weights(student, probe, images.shape[1], patch_size)
    module.to(device)
    weights = {name: each.to(device) for name, each in weights.items()}
    for others in (images, probe.images(*images.shape), images.permute(3, 1, 2, 0).contiguous().permute(3, 1, 2, 0)):
        claims.expect_right_tokens(module, weights, others.to(device), "the embedding of other images")
    expect_inputs_unchanged(student)
