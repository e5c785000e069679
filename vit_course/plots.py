"""Tensors in, matplotlib figure out.

Each function returns a new figure and touches nothing else: no pyplot, no current axes, no settings. A
notebook shows a figure that stands on the last line of a cell, and a script saves it with `savefig`. Figures
lie on their own pale card, so that they read on a dark page too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course import card

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"  # both keep their order under colour-blindness


class Curves(Protocol):
    """What `plot_history` reads, one number per epoch each; a `vit_course.training.History` has it."""

    train_loss: list[float]
    validation_loss: list[float]
    train_accuracy: list[float]
    validation_accuracy: list[float]


def show_images(images: Tensor, titles: Sequence[str] | None = None, columns: int = 8) -> Figure:
    """Pictures in a grid, row by row.

    Args:
        images: (batch, channels, height, width) or one (channels, height, width), with 1 or 3 channels; uint8,
            or float in [0, 1].
        titles: one per image.
        columns: the most pictures in a row.

    Raises:
        ValueError: for another shape, or another number of titles.
    """
    pictures = card.as_pictures(images)
    if titles is not None and len(titles) != len(pictures):
        raise ValueError(f"{len(titles)} titles for {len(pictures)} images")
    columns = min(columns, len(pictures))
    rows = math.ceil(len(pictures) / columns)
    cell = min(3.2, max(1.1, 9 / columns))
    height, width = pictures.shape[1:3]
    figure = card.new_figure(columns * cell, rows * (cell * height / width + (0.25 if titles else 0)))
    for number, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if number < len(pictures):
            card.draw_picture(axes, pictures[number])
            axes.set_title("" if titles is None else titles[number], fontsize=9)
        else:
            axes.set_visible(False)
    return figure


def show_patches(patches: Tensor, grid_size: tuple[int, int], channels: int = 3, numbers: bool | None = None) -> Figure:
    """The patches of one image, set out with gaps: token 0 top left, then row by row.

    It draws what it is given: patches in a wrong order make a picture that is visibly wrong.

    Args:
        patches: (tokens, channels * patch_size**2) as `patchify` gives them, inside a token channel, row,
            column; uint8, or float in [0, 1].
        grid_size: (rows, columns) of patches.
        channels: 1 or 3.
        numbers: whether to write each token's number into its corner; None writes up to 64 of them.

    Raises:
        ValueError: when the sizes do not fit together.
    """
    rows, columns = grid_size
    if patches.ndim != 2 or len(patches) != rows * columns:
        raise ValueError(f"patches must be ({rows * columns}, patch_dim), not {tuple(patches.shape)}")
    patch_size = math.isqrt(patches.shape[1] // channels)
    if channels * patch_size**2 != patches.shape[1]:
        raise ValueError(f"patch_dim {patches.shape[1]} is not {channels} channels times a square")
    pictures = card.as_pictures(patches.reshape(-1, channels, patch_size, patch_size))
    opaque = F.pad(pictures, (0, 1), value=1.0).unflatten(0, grid_size)  # (rows, columns, P, P, 4)
    gap = max(1, patch_size // 8)
    picture = torch.stack([card.mosaic(channel, gap) for channel in opaque.unbind(-1)], dim=-1).nan_to_num(0.0)
    scale = 6 / max(picture.shape[:2])
    figure = card.new_figure(picture.shape[1] * scale, picture.shape[0] * scale)
    axes = figure.subplots()
    card.draw_picture(axes, picture)
    if rows * columns <= 64 if numbers is None else numbers:
        card.number_tiles(axes, rows, columns, patch_size + gap)
    return figure


def show_matrix(matrix: Tensor, row_name: str, column_name: str, title: str = "", values: bool | None = None) -> Figure:
    """A heat map with a colour bar and named axes.

    A matrix with negative entries gets a colour map that is white at zero.

    Args:
        matrix: (rows, columns).
        row_name, column_name: what runs down and what runs across, for instance "query" and "key".
        title: above the matrix.
        values: whether to write the numbers; None writes up to 100 of them.

    Raises:
        ValueError: when `matrix` has not two axes.
    """
    if matrix.ndim != 2:
        raise ValueError(f"matrix must be (rows, columns), not {tuple(matrix.shape)}")
    matrix = matrix.detach().float().cpu()
    rows, columns = matrix.shape
    scale = 5.5 / max(rows, columns)
    figure = card.new_figure(max(2.2, columns * scale) + 1.6, max(1.4, rows * scale) + 1.0)
    axes = figure.subplots()
    signed = bool((matrix < 0).any())
    limit = matrix.abs().nan_to_num().max().item()
    picture = axes.imshow(
        matrix.numpy(),
        cmap=DIVERGING if signed else SEQUENTIAL,
        vmin=-limit if signed else None,
        vmax=limit if signed else None,
        aspect="auto" if max(rows, columns) > 4 * min(rows, columns) else "equal",
        interpolation="nearest",
    )
    axes.set(xlabel=column_name, ylabel=row_name, title=title)
    axes.set_xticks(range(0, columns, math.ceil(columns / 16)))
    axes.set_yticks(range(0, rows, math.ceil(rows / 16)))
    figure.colorbar(picture, ax=axes, shrink=0.9).outline.set_visible(False)
    if matrix.numel() <= 100 if values is None else values:
        card.write_values(axes, picture, matrix)
    return figure


def plot_history(history: Curves, title: str = "") -> Figure:
    """Loss (left) and accuracy (right) after each epoch, for training and validation.

    Args:
        history: see `Curves`; losses, and accuracies in [0, 1].
        title: above both.
    """
    figure = card.new_figure(8.4, 3.2)
    if title:
        figure.suptitle(title, color=card.INK)
    left, right = figure.subplots(1, 2)
    card.draw_curves(left, history.train_loss, history.validation_loss, "loss")
    train = [100 * share for share in history.train_accuracy]
    validation = [100 * share for share in history.validation_accuracy]
    card.draw_curves(right, train, validation, "accuracy, %")
    best = max(validation)
    right.set_title(f"validation: {best:.1f} % after epoch {validation.index(best) + 1}", fontsize=9, color=card.INK)
    left.legend(frameon=False)
    return figure


def show_attention(
    images: Tensor, weights: Tensor, grid_size: tuple[int, int], titles: Sequence[str] | None = None
) -> Figure:
    """Where each head looks: the picture, and for each head the picture lit by its attention.

    With a class token (one token more than patches) it is the class token's attention to the patches; without
    one, the mean over all queries. Each map is scaled to its own maximum.

    Args:
        images: (batch, channels, height, width) or one (channels, height, width); uint8, or float in [0, 1].
        weights: (batch, num_heads, tokens, tokens), rows are queries; or (num_heads, tokens, tokens).
        grid_size: (rows, columns) of patches.
        titles: one per image, beside it.

    Raises:
        ValueError: when the sizes do not fit together.
    """
    pictures = card.as_pictures(images)
    maps = _attention_maps(weights if weights.ndim == 4 else weights[None], grid_size)
    batch, num_heads = maps.shape[:2]
    if batch != len(pictures):
        raise ValueError(f"attention weights of {batch} images for {len(pictures)} images")
    height, width = pictures.shape[1:3]
    maps = F.interpolate(maps, size=(height, width), mode="bilinear")
    light = maps / maps.amax((2, 3), keepdim=True).clamp_min(1e-12)  # (batch, num_heads, height, width)
    cell = min(2.2, 11 / (1 + num_heads))
    figure = card.new_figure((1 + num_heads) * cell, batch * cell * height / width + 0.25)
    for row, line in enumerate(figure.subplots(batch, 1 + num_heads, squeeze=False)):
        card.draw_picture(line[0], pictures[row])
        line[0].set_ylabel("" if titles is None else titles[row], fontsize=9)
        for head, axes in enumerate(line[1:]):
            card.draw_picture(axes, card.lit(pictures[row], light[row, head]))
            axes.set_title(f"head {head}" if row == 0 else "", fontsize=9)
    return figure


def _attention_maps(weights: Tensor, grid_size: tuple[int, int]) -> Tensor:
    """Attention to the patches, from the class token if there is one, or the mean over all queries.

    Args:
        weights: (batch, num_heads, tokens, tokens), rows are queries.
        grid_size: (rows, columns) of patches; tokens is rows * columns, or one more.

    Returns:
        (batch, num_heads, rows, columns) float32.
    """
    rows, columns = grid_size
    tokens = weights.shape[-1]
    if weights.ndim != 4 or tokens not in (rows * columns, rows * columns + 1):
        raise ValueError(f"weights {tuple(weights.shape)} do not fit a grid of {rows} x {columns} patches")
    weights = weights.detach().float().cpu()
    seen = weights.mean(2) if tokens == rows * columns else weights[:, :, 0, 1:]
    return seen.unflatten(-1, (rows, columns))


def show_position_similarity(positions: Tensor, grid_size: tuple[int, int]) -> Figure:
    """How alike positions are: for each patch, a small map of its cosine similarity with every patch.

    Args:
        positions: (1, tokens, embed_dim) or (tokens, embed_dim); a class token in front is left out.
        grid_size: (rows, columns) of patches.

    Raises:
        ValueError: when there are neither rows * columns positions nor one more.

    Source: the idea of the figure: Dosovitskiy et al. 2021, figure 7, centre.
    """
    rows, columns = grid_size
    table = positions.detach().float().cpu().reshape(-1, positions.shape[-1])
    if len(table) not in (rows * columns, rows * columns + 1):
        raise ValueError(f"{len(table)} positions do not fit a grid of {rows} x {columns} patches")
    table = F.normalize(table[-rows * columns :], dim=-1)
    similarity = (table @ table.T).reshape(rows, columns, rows, columns)
    gap = max(1, round(max(rows, columns) / 8))
    picture = card.mosaic(similarity, gap)
    figure = card.new_figure(6.6, max(2.5, 1 + 5.2 * picture.shape[0] / picture.shape[1]))
    axes = figure.subplots()
    drawn = axes.imshow(picture.numpy(), cmap=SEQUENTIAL, vmin=similarity.min().item(), vmax=1)
    axes.set_frame_on(False)
    card.label_centres(axes.xaxis, columns, columns + gap)
    card.label_centres(axes.yaxis, rows, rows + gap)
    axes.tick_params(length=0)
    axes.set(xlabel="column of the patch", ylabel="row of the patch")
    figure.colorbar(drawn, ax=axes, shrink=0.9, label="cosine similarity").outline.set_visible(False)
    return figure
