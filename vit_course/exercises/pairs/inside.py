"""Parts of looking inside: attention rollout, the distance that heads look, and a prediction with its map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.two_mistakes import Parts, declare
from vit_course.exercises.checks.inside_distance import Grid, distance, mean_attention_distance
from vit_course.exercises.checks.inside_prediction import predict_with_attention
from vit_course.exercises.checks.inside_rollout import attention_rollout, followed
from vit_course.exercises.checks.vit import logits_of
from vit_course.exercises.misconceptions import inside_distance as far
from vit_course.exercises.misconceptions import inside_prediction as asked
from vit_course.exercises.misconceptions import inside_rollout as wrong

Steps = list[Tensor]


def _rolled(
    weights: Sequence[Tensor],
    *,
    heads: Callable[[Tensor], Tensor] = lambda layer: layer.mean(1),
    itself: Callable[[Tensor], Tensor] = wrong._itself,
    shared: Callable[[Tensor], Tensor] = wrong._shared_out,
    ordered: Callable[[Steps], Steps] = list,
    product: Callable[[Steps], Tensor] = followed,
    told: Callable[[Tensor, Sequence[Tensor]], Tensor] = lambda rollout, weights: rollout,
) -> Tensor:
    layers = [heads(layer.double()) for layer in wrong._layers(weights)]
    rollout = product(ordered([shared(layer + itself(layer)) for layer in layers]))
    return told(rollout.to(weights[0].dtype), weights)


def _overwritten(rollout: Tensor, weights: Sequence[Tensor]) -> Tensor:
    for layer in weights:
        layer += torch.eye(layer.shape[-1], dtype=layer.dtype)
    return rollout


declare(
    attention_rollout,
    Parts(
        _rolled,
        {
            wrong.identity_forgotten: {"itself": torch.zeros_like},
            wrong.rows_not_shared_out_again: {"shared": lambda step: step},
            wrong.earlier_layers_on_the_left: {"ordered": lambda steps: steps[::-1]},
            wrong.strongest_head_only: {"heads": lambda layer: layer.amax(1)},
            wrong.heads_summed: {"heads": lambda layer: layer.sum(1)},
            wrong.layers_averaged: {"product": lambda steps: torch.stack(steps).mean(0)},
            wrong.last_layer_only: {"product": lambda steps: steps[-1]},
            wrong.multiplied_place_by_place: {"product": lambda steps: torch.stack(steps).prod(0)},
            wrong.columns_sum_to_one: {"shared": lambda step: wrong._shared_out(step.mT).mT},
            wrong.averaged_over_the_images: {"heads": lambda layer: layer.mean(0)},
            wrong.first_image_only: {"told": lambda rollout, weights: rollout[0]},
            wrong.written_into_the_weights: {"told": _overwritten},
        },
    ),
)

Means = Callable[[Tensor], Tensor]


def _measured(
    weights: Tensor,
    grid_size: Grid,
    patch_size: int,
    *,
    unit: Callable[[int], float] = float,
    ruler: far.Ruler = distance,
    chosen: Callable[[Tensor, Grid], Tensor] = far._patches_alone,
    shared: Callable[[Tensor], Tensor] = far._shared_out,
    peaked: Callable[[Tensor], Tensor] = lambda patches: patches,
    mean: Means = lambda by_patch: by_patch.mean((0, 2)),
    told: Callable[[Tensor, Tensor], Tensor] = lambda distances, weights: distances,
) -> Tensor:
    far._patches_alone(weights, grid_size)
    patches = peaked(shared(chosen(weights, grid_size)))
    return told(mean(far._by_patch(patches, grid_size, ruler)) * unit(patch_size), weights)


def _around_the_corner(query: int, key: int, grid: Grid) -> float:
    (row, column), (other_row, other_column) = divmod(query, grid[1]), divmod(key, grid[1])
    return abs(row - other_row) + abs(column - other_column)


def _without_the_last(weights: Tensor, grid_size: Grid) -> Tensor:
    num_patches = grid_size[0] * grid_size[1]
    return weights[..., :num_patches, :num_patches]


def _on_a_square(query: int, key: int, grid: Grid) -> float:
    side = int((grid[0] * grid[1]) ** 0.5)
    return distance(query, key, (side, side))


def _strongest(patches: Tensor) -> Tensor:
    return F.one_hot(patches.argmax(-1), patches.shape[-1]).to(patches.dtype)


declare(
    mean_attention_distance,
    Parts(
        _measured,
        {
            far.in_patches_not_pixels: {"unit": lambda patch_size: 1.0},
            far.rows_plus_columns: {"ruler": _around_the_corner},
            far.rows_and_columns_swapped: {"ruler": lambda query, key, grid: distance(query, key, grid[::-1])},
            far.square_grid_assumed: {"ruler": _on_a_square},
            far.distance_along_the_sentence: {"ruler": lambda query, key, grid: abs(query - key)},
            far.share_of_the_class_token_lost: {"shared": lambda patches: patches},
            far.last_token_dropped: {"chosen": _without_the_last},
            far.averaged_over_the_heads: {"mean": lambda by_patch: by_patch.mean((1, 2))},
            far.images_kept_apart: {"mean": lambda by_patch: by_patch.mean(2)},
            far.query_patches_summed: {"mean": lambda by_patch: by_patch.mean(0).sum(1)},
            far.strongest_key_only: {"peaked": _strongest},
            far.always_float32: {"told": lambda distances, weights: distances.float()},
        },
    ),
)


def _predicted(
    model: Any,
    image: Tensor,
    *,
    likely: Callable[[Tensor], Tensor] = lambda logits: F.softmax(logits, dim=0),
    block: int = -1,
    row: Callable[[Tensor], Tensor] = lambda heads: heads[:, 0].mean(0),
    drawn: Callable[[Tensor], Tensor] = lambda row: F.normalize(row[1:], p=1.0, dim=0),
    laid: Callable[[Tensor, Grid], Tensor] = lambda patches, grid: patches.unflatten(0, grid),
    left: Callable[[Any], object] = lambda model: None,
    told: Callable[[Tensor, Tensor], Any] = lambda probabilities, seen: (probabilities, seen),
) -> Any:
    logits = logits_of(asked._weights(model), image[None], asked._config(model, image))[0]
    seen = laid(drawn(row(asked._attention(model, image, block))), asked._config(model, image).grid_size)
    left(model)
    return told(likely(logits), seen)


def _largest_one(row: Tensor) -> Tensor:
    return row[1:] / row[1:].max()


def _column_by_column(patches: Tensor, grid: Grid) -> Tensor:
    return patches.unflatten(0, (grid[1], grid[0])).mT


declare(
    predict_with_attention,
    Parts(
        _predicted,
        {
            asked.softmax_forgotten: {"likely": lambda logits: logits},
            asked.softmax_over_the_batch: {"likely": torch.ones_like},
            asked.left_in_evaluation_mode: {"left": lambda model: model.eval()},
            asked.always_put_into_training_mode: {"left": lambda model: model.train()},
            asked.hook_left_behind: {
                "left": lambda model: model.blocks[-1].attention.register_forward_hook(lambda *_: None)
            },
            asked.parameters_frozen: {"left": lambda model: model.requires_grad_(False)},
            asked.map_before_probabilities: {"told": lambda probabilities, seen: (seen, probabilities)},
            asked.batch_axis_left: {"told": lambda probabilities, seen: (probabilities[None], seen[None])},
            asked.first_blocks_attention: {"block": 0},
            asked.first_head_only: {"row": lambda heads: heads[0, 0]},
            asked.strongest_head_only: {"row": lambda heads: heads[:, 0].amax(0)},
            asked.column_in_place_of_the_row: {"row": lambda heads: heads[:, :, 0].mean(0)},
            asked.mean_over_all_queries: {"row": lambda heads: heads.mean((0, 1))},
            asked.share_of_the_class_token_lost: {"drawn": lambda row: row[1:]},
            asked.class_token_on_the_map: {"drawn": lambda row: F.normalize(row[:-1], p=1.0, dim=0)},
            asked.softmax_of_the_map: {"drawn": lambda row: F.softmax(row[1:], 0)},
            asked.divided_by_the_largest: {"drawn": _largest_one},
            asked.map_column_by_column: {"laid": _column_by_column},
            asked.rows_and_columns_swapped: {"laid": lambda patches, grid: patches.unflatten(0, grid[::-1])},
        },
    ),
)
