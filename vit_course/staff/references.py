"""The right objects of every exercise: what hidden checks compare with. For staff only: it holds the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.lesson_answers import load_right_objects
from vit_course.attention import MultiHeadSelfAttention, merge_heads, scaled_dot_product_attention, split_heads
from vit_course.config import ViTConfig
from vit_course.data.splits import split_indices
from vit_course.encoder import EncoderBlock, Mlp
from vit_course.exercises.catalog import EXERCISES
from vit_course.exercises.l07_experiments.model_accuracy import vit_cifar
from vit_course.fine_tuning import extract_features, fine_tuning_groups, linear_probe, replace_head
from vit_course.interpret import attention_rollout, mean_attention_distance, predict_with_attention
from vit_course.modern import DropPath, LayerScale, QKNormAttention, add_registers, random_masking, rotary_2d
from vit_course.patches import PatchEmbedding, patchify, unpatchify
from vit_course.positions import add_class_token, sinusoidal_positions, sinusoidal_positions_2d
from vit_course.pretrained import conv_from_linear, load_torchvision, resize_positions
from vit_course.training.early_stopping import EarlyStopping
from vit_course.training.loop import evaluate, train_one_epoch
from vit_course.training.optimizers import parameter_groups, warmup_cosine
from vit_course.vit import VisionTransformer


def normalize_images(images: Tensor, mean: Tensor | Sequence[float], std: Tensor | Sequence[float]) -> Tensor:
    """Subtract each channel's mean and divide by its standard deviation.

    Args:
        images: (batch, channels, height, width), floating point.
        mean: one number per channel.
        std: one number per channel.

    Returns:
        (batch, channels, height, width), of the images' dtype.

    Raises:
        ValueError: when there are not as many means, or standard deviations, as channels.
    """
    channels = images.shape[1]
    for name, statistics in (("means", mean), ("standard deviations", std)):
        if len(statistics) != channels:
            raise ValueError(f"images have {channels} channels, but there are {len(statistics)} {name}")
    means, stds = (torch.as_tensor(each).to(images).reshape(channels, 1, 1) for each in (mean, std))
    return (images - means) / stds


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Normalize along the last axis by the biased variance plus ``eps``, then scale and shift.

    Args:
        x: (..., embed_dim).
        weight: (embed_dim,).
        bias: (embed_dim,).
        eps: added to the variance, inside the root.

    Returns:
        (..., embed_dim), of the dtype of ``x``.
    """
    deviation = x - x.mean(dim=-1, keepdim=True)
    spread = (deviation.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    return (weight * deviation / spread + bias).to(x.dtype)


def is_layer_norm(norm: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> bool:
    """Whether ``norm(x, weight, bias, eps)`` is layer normalization up to rounding, and leaves x as it was."""
    generator = torch.Generator().manual_seed(5)
    x, weight, bias = (torch.randn(*size, generator=generator) for size in ((3, 5, 4, 7), (7,), (7,)))
    right = F.layer_norm(x, (7,), weight, bias, 0.5)
    given = x.clone()
    result = norm(given, weight, bias, 0.5)
    return result.shape == x.shape and torch.equal(given, x) and torch.allclose(result, right, atol=1e-5)


def count_parameters(config: ViTConfig) -> int:
    """How many parameters a VisionTransformer of ``config`` has, by arithmetic."""
    dim, hidden = config.embed_dim, config.hidden_dim
    norm = 2 * dim
    embedding = (config.in_channels * config.patch_size**2 + 1) * dim
    sequence = (1 + 1 + config.num_patches) * dim  # the class token, and a position for it and every patch
    attention = 3 * dim * (dim + config.qkv_bias) + (dim + 1) * dim
    mlp = (dim + 1) * hidden + (hidden + 1) * dim
    head = (dim + 1) * config.num_classes
    return embedding + sequence + config.depth * (2 * norm + attention + mlp) + norm + head


def is_attention(attend: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> bool:
    """Whether ``attend(query, key, value) -> (output, weights)`` is scaled dot-product attention up to rounding."""
    generator = torch.Generator().manual_seed(5)
    for *batch, queries, keys, head_dim, value_dim in ((2, 3, 5, 7, 4, 6), (3, 6, 4, 9, 5)):
        sizes = ((queries, head_dim), (keys, head_dim), (keys, value_dim))
        query, key, value = (torch.randn(*batch, *size, generator=generator) for size in sizes)
        output, weights = attend(query, key, value)
        right = F.scaled_dot_product_attention(query, key, value)
        right_weights = F.scaled_dot_product_attention(query, key, torch.eye(keys).expand(*batch, keys, keys))
        for seen, expected in ((output, right), (weights, right_weights)):
            if seen.shape != expected.shape or not torch.allclose(seen, expected, atol=1e-5):
                return False
    return True


def is_rotary(rotate: Callable[[Tensor, Tensor, tuple[int, int]], tuple[Tensor, Tensor]]) -> bool:
    """Whether ``rotate(query, key, grid_size)`` gives rotary positions in two dimensions, up to rounding.

    As it is linear, what it does to a token is a matrix, and a step down or to the right is a matrix too. Free are the
    pairs of numbers, and by which axis, in which direction and how fast a pair turns.
    """
    rows, columns, head_dim = 4, 6, 8
    tokens, unturned = 2 + rows * columns, torch.eye(head_dim)  # two tokens stand in front of the patches
    axes = unturned[:, None].expand(-1, tokens, -1)
    query, key = torch.randn(2, 2, 3, tokens, head_dim, generator=torch.Generator().manual_seed(7))
    axes_turned, _ = rotate(axes, axes, (rows, columns))
    turned = rotate(query, key, (rows, columns))
    if any(each.shape != query.shape for each in turned):
        return False
    matrices = axes_turned.transpose(0, 1)  # (tokens, head_dim, head_dim)
    right, down = matrices[3], matrices[2 + columns]
    powers = [[torch.linalg.matrix_power(step, count) for count in range(columns)] for step in (down, right)]
    steps = [powers[0][row] @ powers[1][column] for row in range(rows) for column in range(columns)]
    facts = [
        (matrices, torch.stack([unturned, unturned, *steps])),
        *((step @ step.mT, unturned) for step in (down, right)),
        *((each, torch.einsum("...tc,tcd->...td", x, matrices)) for each, x in zip(turned, (query, key), strict=True)),
    ]
    if not all(torch.allclose(seen, expected, atol=1e-4) for seen, expected in facts):
        return False
    cosines = [step.diagonal() for step in (down, right)]
    speeds = [(each.sort().values.diff() > 1e-3).sum() for each in cosines]
    return torch.equal(cosines[0] > 0.9999, cosines[1] < 0.9999) and speeds == [2, 2]  # two pairs in each half


def mixup(
    images: Tensor, labels: Tensor, num_classes: int, alpha: float, generator: np.random.Generator
) -> tuple[Tensor, Tensor]:
    """Blend each image, and its one-hot label, with those of a random partner in the batch (Zhang et al. 2018).

    Args:
        images: (batch, channels, height, width), floating point.
        labels: (batch,) int64.
        num_classes: length of a target.
        alpha: the share of an image is drawn from Beta(alpha, alpha), once for the batch.
        generator: the only source of chance.

    Returns:
        images like ``images``, and targets (batch, num_classes) of their dtype, each row summing to 1.

    Raises:
        ValueError: when alpha is not above 0.
    """
    if not alpha > 0:
        raise ValueError(f"alpha must be above 0, not {alpha}")
    share = generator.beta(alpha, alpha)
    partners = torch.from_numpy(generator.permutation(len(images)))
    targets = F.one_hot(labels, num_classes).to(images.dtype)
    mixed_images, mixed_targets = (share * each + (1 - share) * each[partners] for each in (images, targets))
    return mixed_images, mixed_targets


REFERENCE: dict[str, tuple[Callable[..., Any], ...]] = {
    "normalize_images": (normalize_images,),
    "patchify": (patchify,),
    "fix_patchify": (patchify,),
    "unpatchify": (unpatchify,),
    "PatchEmbedding": (PatchEmbedding,),
    "conv_from_linear": (conv_from_linear,),
    "sinusoidal_positions": (sinusoidal_positions,),
    "sinusoidal_positions_2d": (sinusoidal_positions_2d,),
    "add_class_token": (add_class_token,),
    "resize_positions": (resize_positions,),
    "scaled_dot_product_attention": (scaled_dot_product_attention,),
    "split_heads": (split_heads, merge_heads),
    "MultiHeadSelfAttention": (MultiHeadSelfAttention,),
    "is_attention": (is_attention,),
    "layer_norm": (layer_norm,),
    "is_layer_norm": (is_layer_norm,),
    "Mlp": (Mlp,),
    "EncoderBlock": (EncoderBlock,),
    "fix_block": (EncoderBlock,),
    "VisionTransformer": (VisionTransformer,),
    "fix_vit": (VisionTransformer,),
    "count_parameters": (count_parameters,),
    "load_torchvision": (load_torchvision,),
    "split_indices": (split_indices,),
    "train_one_epoch": (train_one_epoch,),
    "fix_training": (train_one_epoch,),
    "evaluate": (evaluate,),
    "warmup_cosine": (warmup_cosine,),
    "parameter_groups": (parameter_groups,),
    "EarlyStopping": (EarlyStopping,),
    "mixup": (mixup,),
    "vit_cifar": (vit_cifar,),
    "attention_rollout": (attention_rollout,),
    "mean_attention_distance": (mean_attention_distance,),
    "predict_with_attention": (predict_with_attention,),
    "replace_head": (replace_head,),
    "extract_features": (extract_features,),
    "linear_probe": (linear_probe,),
    "fine_tuning_groups": (fine_tuning_groups,),
    "DropPath": (DropPath,),
    "LayerScale": (LayerScale,),
    "add_registers": (add_registers,),
    "rotary_2d": (rotary_2d,),
    "is_rotary": (is_rotary,),
    "QKNormAttention": (QKNormAttention,),
    "random_masking": (random_masking,),
}


def _iterate_lesson_answers() -> Iterator[tuple[str, tuple[Callable[..., Any], ...]]]:
    """Give every other exercise the answer of its lesson."""
    for name, exercise in EXERCISES.items():
        if name not in REFERENCE:
            lesson = Path(__file__).parents[2] / "solutions" / f"{exercise.lesson}.py"
            yield name, load_right_objects(lesson, exercise.objects, "vit_course")


REFERENCE |= _iterate_lesson_answers()
