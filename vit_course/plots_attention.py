"""Pictures of what attention does in a trained model: tensors in, matplotlib figure out.

Made like those of :mod:`vit_course.plots`. A map is (rows, columns) of a grid of patches, no number negative; it is
drawn as light on the picture, each scaled to its own maximum.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor

from vit_course import plots
from vit_course.training.checkpoints import CannotWriteError, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_attention_distance", "save_every_head", "show_every_head", "show_filters", "show_lit", "show_maps"]


def show_every_head(image: Tensor, maps: Sequence[Tensor]) -> Figure:
    """One picture as every head of every block sees it: a line for each block, a column for each head.

    Args:
        image: (channels, height, width); uint8, or float in [0, 1].
        maps: for each block (num_heads, rows, columns).

    Raises:
        ValueError: there is no block, a map is negative or of another shape, or the image is none.
    """
    if len(maps) == 0:
        raise ValueError("there is no block to show")
    picture = _convert_to_picture(image)
    lights = [_resize_maps_to_light(each, picture) for each in maps]
    num_heads = max(map(len, lights))
    height, width = picture.shape[:2]
    cell = min(1.7, 9 / (1 + num_heads))
    figure = plots.new_figure((1 + num_heads) * cell, len(lights) * cell * height / width + 0.3)
    for block, line in enumerate(figure.subplots(len(lights), 1 + num_heads, squeeze=False)):
        for axes in line:
            axes.set(xticks=[], yticks=[])
            axes.set_frame_on(False)
        if block == 0:
            plots.draw_picture(line[0], picture)
        line[0].set_ylabel(f"block {block}", fontsize=9)
        for head, light in enumerate(lights[block]):
            plots.draw_picture(line[1 + head], plots.shine_light_on(picture, light))
            line[1 + head].set_title(f"head {head}" if block == 0 else "", fontsize=9)
    return figure


def show_maps(image: Tensor, maps: Mapping[str, Tensor], columns: int = 6) -> Figure:
    """One picture, and beside it the same picture in the light of each map.

    Args:
        image: (channels, height, width); uint8, or float in [0, 1].
        maps: title → (rows, columns).
        columns: the most pictures in a line.

    Raises:
        ValueError: a map is negative or of another shape, or the image is none.
    """
    picture = _convert_to_picture(image)
    pictures = [("", picture)]
    pictures += [
        (title, plots.shine_light_on(picture, _resize_maps_to_light(each[None], picture)[0]))
        for title, each in maps.items()
    ]
    columns = min(columns, len(pictures))
    lines = math.ceil(len(pictures) / columns)
    cell = min(2.4, 9 / columns)
    height, width = picture.shape[:2]
    figure = plots.new_figure(columns * cell, lines * (cell * height / width + 0.3))
    for number, axes in enumerate(figure.subplots(lines, columns, squeeze=False).flat):
        if number < len(pictures):
            plots.draw_picture(axes, pictures[number][1])
            axes.set_title(pictures[number][0], fontsize=9)
        else:
            axes.set_visible(False)
    return figure


def show_lit(images: Tensor, maps: Tensor, titles: Sequence[str]) -> Figure:
    """Pictures in a line, and below each the same picture in the light of its map.

    Args:
        images: (batch, channels, height, width); uint8, or float in [0, 1].
        maps: (batch, rows, columns).
        titles: one for each picture.

    Raises:
        ValueError: there are not as many maps and titles as images, or a map is negative.
    """
    pictures = plots.convert_to_pictures(images)
    if not len(pictures) == len(maps) == len(titles):
        raise ValueError(f"{len(pictures)} images, {len(maps)} maps and {len(titles)} titles")
    height, width = pictures.shape[1:3]
    cell = min(2.0, 9 / len(pictures))
    figure = plots.new_figure(len(pictures) * cell, 2 * cell * height / width + 0.3)
    above, below = figure.subplots(2, len(pictures), squeeze=False)
    for number, picture in enumerate(pictures):
        plots.draw_picture(above[number], picture)
        above[number].set_title(titles[number], fontsize=9)
        plots.draw_picture(
            below[number], plots.shine_light_on(picture, _resize_maps_to_light(maps[number, None], picture)[0])
        )
    return figure


def save_every_head(image: Tensor, maps: Sequence[Tensor], folder: Path | str) -> list[Path]:
    """Write the picture in the light of every head, one PNG each, into a folder that is made where it is missing.

    Args:
        image: (channels, height, width); uint8, or float in [0, 1].
        maps: for each block (num_heads, rows, columns).
        folder: gets block_0_head_0.png and so on; files of these names are written over.

    Returns:
        The files, block by block.

    Raises:
        ValueError: a map is negative or of another shape, or the image is none.
        CannotWriteError: the folder or a file cannot be written.
    """
    from matplotlib.image import imsave

    picture = _convert_to_picture(image)
    enlarged = math.ceil(224 / max(picture.shape[:2]))  # a picture of 32 pixels is too small to look at
    picture = picture.repeat_interleave(enlarged, 0).repeat_interleave(enlarged, 1)
    folder, written = Path(folder), []
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteError(f"cannot make the folder {folder}: {error.strerror}. Choose another place") from error
    for block, of_heads in enumerate(maps):
        for head, light in enumerate(_resize_maps_to_light(of_heads, picture)):
            path = folder / f"block_{block}_head_{head}.png"
            imsave(png := io.BytesIO(), plots.shine_light_on(picture, light).clamp(0, 1).numpy(), format="png")
            write_atomically(path, png.getvalue())
            written.append(path)
    return written


def plot_attention_distance(
    distances: Mapping[str, Sequence[Tensor]], everywhere: float | None = None, title: str = ""
) -> Figure:
    """Show how far heads look, block by block, a mark for each head.

    Args:
        distances: name of a model → for each block (num_heads,), in pixels; up to three models.
        everywhere: the distance of a head that looks at all patches alike, as a dashed line.
        title: above the plot.

    Raises:
        ValueError: there are no models, or more than three.

    Source: the idea of the figure: Dosovitskiy et al. 2020, figure 7, right.
    """
    looks = (("o", plots.BLUE, 0.0), ("^", plots.ORANGE, 0.18), ("s", plots.GRAY, -0.18))
    if not 1 <= len(distances) <= len(looks):
        raise ValueError(f"one to three models can be told apart, not {len(distances)}")
    figure = plots.new_figure(6.6, 3.2)
    axes = figure.subplots()
    for (name, blocks), (marker, color, shift) in zip(distances.items(), looks, strict=False):
        for block, heads in enumerate(blocks):
            label = name if block == 0 else None
            places = [block + shift] * len(heads)
            axes.plot(places, heads.detach().cpu().tolist(), marker, color=color, alpha=0.75, label=label)
    if everywhere is not None:
        axes.axhline(everywhere, color=plots.INK, linewidth=1, linestyle=(0, (4, 3)), label="looks everywhere alike")
    axes.set(xlabel="block", ylabel="mean distance, pixels", title=title, facecolor=plots.BACKGROUND)
    axes.margins(y=0.12)
    axes.locator_params(axis="x", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=plots.GRAY, alpha=0.2)
    figure.legend(frameon=False, fontsize=8, loc="outside upper center", ncols=4)
    return figure


def show_filters(filters: Tensor, titles: Sequence[str] | None = None, columns: int = 14) -> Figure:
    """Filters as little pictures: gray is zero, a channel above zero shines, one below zero is dark.

    Args:
        filters: (count, channels, patch_size, patch_size), 1 or 3 channels; each is scaled by its largest size.
        titles: one for each.
        columns: the most filters in a line.

    Raises:
        ValueError: for another shape, or another number of titles.
    """
    from vit_course.plots import show_images

    if filters.ndim != 4:
        raise ValueError(f"filters must be (count, channels, patch_size, patch_size), not {tuple(filters.shape)}")
    filters = filters.detach().float().cpu()
    largest = filters.abs().amax((1, 2, 3), keepdim=True).clamp_min(1e-12)
    return show_images(0.5 + 0.5 * filters / largest, titles, columns)


def _convert_to_picture(image: Tensor) -> Tensor:
    """(height, width, 3) in [0, 1]."""
    if image.ndim != 3:
        raise ValueError(f"one image (channels, height, width) is needed, not {tuple(image.shape)}")
    return plots.convert_to_pictures(image)[0]


def _resize_maps_to_light(maps: Tensor, picture: Tensor) -> Tensor:
    """Maps (count, rows, columns) as light in [0, 1] on every pixel: (count, height, width)."""
    if maps.ndim != 3:
        raise ValueError(f"maps must be (num_heads, rows, columns), not {tuple(maps.shape)}")
    maps = maps.detach().float().cpu()
    if not bool((maps >= 0).all()):
        raise ValueError("a map holds negative numbers or NaN; attention weights are shares from 0 to 1")
    height, width = picture.shape[:2]
    fine = F.interpolate(maps[None], size=(height, width), mode="bilinear")[0]
    return fine / fine.amax((1, 2), keepdim=True).clamp_min(1e-12)
