"""Looking into a trained model: where its heads look, how far, and what its first and last layers have learned.

Tensors in, tensors out, as :func:`record` gives them; nothing here imports a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.recording import record

__all__ = [
    "attention_rollout",
    "class_token_maps",
    "mean_attention_distance",
    "patch_filters",
    "patch_weights",
    "position_similarity",
    "predict_with_attention",
    "record",
]


def attention_rollout(weights: Sequence[Tensor]) -> Tensor:
    """How much of every input token there is in every output token, if attention alone mixed them.

    Each layer counts as the mean of its heads and, for the residual stream, an equal share of the token itself.

    Args:
        weights: one tensor per layer, first layer first: (batch, num_heads, tokens, tokens), rows are queries and
            sum to 1; each layer may have its own number of heads.

    Returns:
        (batch, tokens, tokens), rows are output tokens and sum to 1; dtype and device are those of the weights.

    Raises:
        ValueError: there is no layer, or layers differ in their number of images or tokens.

    Source: Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3.
    """
    if len(weights) == 0:
        raise ValueError("attention_rollout needs the weights of at least one layer")
    _check_attention_shapes(weights)
    itself = torch.eye(weights[0].shape[-1], dtype=weights[0].dtype, device=weights[0].device)
    rollout = itself.expand(len(weights[0]), -1, -1)  # (batch, tokens, tokens)
    for layer in weights:
        step = layer.mean(dim=1) + itself
        rollout = step / step.sum(dim=-1, keepdim=True) @ rollout
    return rollout


def _check_attention_shapes(weights: Sequence[Tensor]) -> None:
    first = weights[0]
    for number, layer in enumerate(weights):
        if layer.ndim != 4 or layer.shape[-1] != layer.shape[-2]:
            raise ValueError(f"layer {number} is not (batch, num_heads, tokens, tokens), but {tuple(layer.shape)}")
        if len(layer) != len(first) or layer.shape[-1] != first.shape[-1]:
            raise ValueError(f"layer {number} has the shape {tuple(layer.shape)}, layer 0 {tuple(first.shape)}")


def mean_attention_distance(weights: Tensor, grid_size: tuple[int, int], patch_size: int) -> Tensor:
    """How far each head looks: the mean distance in pixels from a patch to what it attends to.

    Args:
        weights: (batch, num_heads, tokens, tokens) of one layer, rows are queries and sum to 1. A class token in
            front is left out, both as a query and as a key, and the rows made to sum to 1 again.
        grid_size: (rows, columns) of patches.
        patch_size: side of a patch in pixels; distances run between the centers of patches.

    Returns:
        (num_heads,), the mean over images and query patches.

    Raises:
        ValueError: there are neither rows * columns tokens nor one more.

    Source: Dosovitskiy et al. 2020, figure 7 (right) and appendix D.7.
    """
    patches = patch_weights(weights, grid_size)
    shares = patches / patches.sum(dim=-1, keepdim=True)
    distances = patch_size * _measure_patch_distances(grid_size).to(weights)  # (num_patches, num_patches)
    return (shares * distances).sum(dim=-1).mean(dim=(0, 2))


def patch_weights(weights: Tensor, grid_size: tuple[int, int]) -> Tensor:
    """Attention among patches alone: (batch, num_heads, num_patches, num_patches), rows as they are.

    Raises:
        ValueError: the last two axes are neither rows * columns tokens long nor one longer.
    """
    rows, columns = grid_size
    num_patches, tokens = rows * columns, weights.shape[-1]
    if weights.ndim != 4 or weights.shape[-2] != tokens or tokens not in (num_patches, num_patches + 1):
        raise ValueError(
            f"weights {tuple(weights.shape)} do not fit a grid of {rows} x {columns} patches: "
            f"there are {tokens} tokens, not {num_patches}, nor {num_patches + 1} with a class token"
        )
    return weights[..., -num_patches:, -num_patches:]


def _measure_patch_distances(grid_size: tuple[int, int]) -> Tensor:
    """(num_patches, num_patches) euclidean distances between patches, in patches."""
    rows, columns = grid_size
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).double()  # (num_patches, 2)
    return torch.cdist(places, places, compute_mode="donot_use_mm_for_euclid_dist")


@torch.no_grad()
def predict_with_attention(model: nn.Module, image: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a Vision Transformer says about one image, and where its class token looks in the last block.

    The model is heard with a hook, so it may be anybody's, as long as it is built like the course's:
    ``patch_embedding`` has a ``patch_size``, and the ``attention`` of each of the ``blocks`` gives its weights when
    called with ``return_weights=True``. Its mode is put back afterward.

    Args:
        model: with a class token.
        image: (channels, height, width), normalized, of the model's dtype and on its device.

    Returns:
        probabilities (num_classes,), and a map (rows, columns) of the class token's attention to the patches, the
        mean over the heads, summing to 1.
    """
    parts: Any = model
    attention, patch_size = parts.blocks[-1].attention, parts.patch_embedding.patch_size
    recorded: list[Tensor] = []
    handle = attention.register_forward_pre_hook(lambda _, inputs: recorded.append(inputs[0]))
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        logits = model(image[None])  # (1, num_classes)
        handle.remove()
        _, weights = attention(recorded[0], return_weights=True)  # (1, num_heads, tokens, tokens)
    finally:
        handle.remove()
        for module, mode in modes.items():
            module.training = mode
    grid_size = image.shape[1] // patch_size, image.shape[2] // patch_size
    seen = class_token_maps(weights, grid_size)[0].mean(dim=0)  # (rows, columns)
    return logits[0].softmax(dim=-1), seen / seen.sum()


def class_token_maps(weights: Tensor, grid_size: tuple[int, int]) -> Tensor:
    """Where the class token looks, head by head: (batch, num_heads, rows, columns), the shares as they are.

    Args:
        weights: (batch, num_heads, 1 + rows * columns, 1 + rows * columns) of one layer; a rollout has
            one head: ``attention_rollout(weights)[:, None]``.
        grid_size: (rows, columns) of patches.

    Raises:
        ValueError: there is no class token, or the sizes do not fit.
    """
    rows, columns = grid_size
    if weights.ndim != 4 or weights.shape[-1] != 1 + rows * columns:
        raise ValueError(
            f"weights {tuple(weights.shape)} do not fit a class token and {rows} x {columns} patches: "
            f"the last axis should have {1 + rows * columns} tokens"
        )
    return weights[:, :, 0, 1:].unflatten(-1, grid_size)


def position_similarity(positions: Tensor, grid_size: tuple[int, int]) -> Tensor:
    """Cosine similarity of every patch's position with every other's: (rows, columns, rows, columns).

    Args:
        positions: (1, tokens, embed_dim) or (tokens, embed_dim); a class token in front is left out.
        grid_size: (rows, columns) of patches.

    Raises:
        ValueError: there are neither rows * columns positions nor one more.

    Source: Dosovitskiy et al. 2020, figure 7, center.
    """
    rows, columns = grid_size
    table = positions.detach().reshape(-1, positions.shape[-1])
    if len(table) not in (rows * columns, rows * columns + 1):
        raise ValueError(f"{len(table)} positions do not fit a grid of {rows} x {columns} patches")
    table = F.normalize(table[-rows * columns :], dim=-1)
    return (table @ table.T).reshape(rows, columns, rows, columns)


def patch_filters(weight: Tensor, in_channels: int, count: int) -> tuple[Tensor, Tensor]:
    """What a patch embedding looks for: its strongest filters, as little pictures, by principal components.

    The first is the pattern to which the embedding answers most, the second the one that adds most to it, and so on.

    Args:
        weight: (embed_dim, in_channels * patch_size**2) of a Linear, or a convolution's kernels
            (embed_dim, in_channels, patch_size, patch_size).
        in_channels: of the images.
        count: how many.

    Returns:
        filters (count, in_channels, patch_size, patch_size) of norm 1, the entry of the largest size positive, and
        shares (count,) of the weight's energy that they hold, falling.

    Raises:
        ValueError: ``count`` is not between 1 and the rank that the weight can have, or no square patch fits.

    Source: Dosovitskiy et al. 2020, figure 7, left.
    """
    matrix = weight.detach().flatten(1)
    if not 1 <= count <= min(matrix.shape):
        raise ValueError(f"count {count} is not between 1 and {min(matrix.shape)}")
    patch_size = round((matrix.shape[1] / in_channels) ** 0.5)
    if in_channels * patch_size**2 != matrix.shape[1]:
        raise ValueError(f"{matrix.shape[1]} numbers are no square patch of {in_channels} channels")
    _, strengths, patterns = torch.linalg.svd(matrix, full_matrices=False)
    patterns = patterns[:count]
    largest = patterns.gather(1, patterns.abs().argmax(dim=1, keepdim=True))  # (count, 1)
    shares = strengths.square() / strengths.square().sum()
    filters = (patterns * largest.sign()).reshape(count, in_channels, patch_size, patch_size)
    return filters, shares[:count]
