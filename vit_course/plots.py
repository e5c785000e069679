"""Pictures of images, patches, positions and curves: tensors in, matplotlib figure out.

Each function returns a new figure and touches nothing else: no pyplot, no current axes, no settings. A notebook shows
a figure that stands on the last line of a cell, and a script saves it with `savefig`. Figures have a pale
background of their own, so that they can be read on a dark page too.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = [
    "BLUE",
    "GRAY",
    "INK",
    "ORANGE",
    "draw_matrix",
    "new_figure",
    "plot_history",
    "show_attention",
    "show_images",
    "show_matrix",
    "show_patches",
    "show_position_similarity",
]

BLUE, ORANGE, INK, GRAY, BACKGROUND = "#0072B2", "#E69F00", "#1b2733", "#6b7785", "#fbfaf7"
AMBER = (1.0, 0.76, 0.2)  # red, green, blue in [0, 1]
DOTS_PER_INCH = 120


@cache
def _make_figure_class() -> type[Figure]:
    """A Figure that a notebook can show although pyplot does not know of it."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
            return buffer.getvalue()

    return NotebookFigure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this width and height in inches."""
    return _make_figure_class()(figsize=(width, height), facecolor=BACKGROUND, layout="constrained")


def convert_to_pictures(images: Tensor) -> Tensor:
    """Images as matplotlib wants them.

    Args:
        images: (batch, channels, height, width) or (channels, height, width), 1 or 3 channels; uint8, or float
            in [0, 1] (a little over- and undershoot of a resampled picture is cut off).

    Returns:
        (batch, height, width, 3) float32 in [0, 1], on the CPU.

    Raises:
        ValueError: for another shape, dtype or range.
    """
    images = (images if images.ndim == 4 else images[None]).detach().cpu()
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise ValueError(f"images must be (batch, 1 or 3 channels, height, width), not {tuple(images.shape)}")
    if images.dtype == torch.uint8:
        images = images / 255
    if not images.is_floating_point():
        raise ValueError(f"images must be uint8 or float, not {images.dtype}")
    low, high = images.min().item(), images.max().item()
    if low < -0.25 or high > 1.25:
        raise ValueError(f"float images must lie in [0, 1], but they run from {low:.2f} to {high:.2f}")
    return images.float().clamp(0, 1).expand(-1, 3, -1, -1).permute(0, 2, 3, 1)


def arrange_tiles(tiles: Tensor, gap: int) -> Tensor:
    """Tiles side by side with gaps of NaN: (rows, columns, h, w) → (rows·(h+gap)−gap, columns·(w+gap)−gap)."""
    framed = F.pad(tiles, (gap, 0, gap, 0), value=torch.nan)  # (rows, columns, gap + h, gap + w)
    return framed.transpose(1, 2).flatten(2).flatten(0, 1)[gap:, gap:]


def draw_picture(axes: Axes, picture: Tensor) -> None:
    """Draw (height, width, 3) without ticks or frame, its pixels unblurred."""
    axes.set(xticks=[], yticks=[])
    axes.set_frame_on(False)
    axes.imshow(picture.numpy(), interpolation="nearest")


def number_tiles(axes: Axes, rows: int, columns: int, pitch: int) -> None:
    """Write 0, 1, 2, ... into the tiles of a mosaic, row by row; `pitch` is a tile's side plus a gap, in pixels."""
    box = {"facecolor": INK, "alpha": 0.6, "edgecolor": "none", "pad": 1}
    style: dict[str, Any] = {
        "textcoords": "offset points",
        "va": "top",
        "fontsize": 7,
        "color": BACKGROUND,
        "bbox": box,
    }
    for token in range(rows * columns):
        row, column = divmod(token, columns)
        axes.annotate(str(token), (column * pitch - 0.5, row * pitch - 0.5), (2, -2), **style)


def label_tile_centers(axis: Axis, count: int, pitch: int) -> None:
    """Write 0, 1, 2, ... at the centers of `count` tiles of `count` pixels each, which lie `pitch` apart."""
    axis.set_ticks([tile * pitch + (count - 1) / 2 for tile in range(count)], [str(tile) for tile in range(count)])


def shine_light_on(picture: Tensor, light: Tensor) -> Tensor:
    """A picture (height, width, 3) in dark gray, amber where `light` (height, width) in [0, 1] falls."""
    gray = picture.mean(-1, keepdim=True)
    amber = torch.tensor(AMBER) * (0.55 + 0.45 * gray)
    return torch.lerp(0.1 + 0.45 * gray.expand(-1, -1, 3), amber, light[..., None])


def draw_curves(axes: Axes, train: Sequence[float], validation: Sequence[float], name: str) -> None:
    """Draw one number per epoch for training and for validation, told apart by color, line and marker."""
    epochs = range(1, len(train) + 1)
    axes.plot(epochs, train, color=BLUE, marker="o", markersize=3, linestyle="--", label="training")
    axes.plot(epochs, validation, color=ORANGE, marker="s", markersize=3, label="validation")
    axes.set(xlabel="epoch", ylabel=name, facecolor=BACKGROUND)
    axes.locator_params(axis="x", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GRAY, alpha=0.2)


def write_matrix_values(axes: Axes, picture: AxesImage, matrix: Tensor) -> None:
    """Write each number of (rows, columns) into its cell, dark on light and light on dark."""
    whole = bool((matrix == matrix.round()).all())
    colors = picture.to_rgba(matrix.numpy())  # (rows, columns, 4)
    for row, values in enumerate(matrix.tolist()):
        for column, value in enumerate(values):
            red, green, blue, _ = colors[row, column]
            luminance = 0.299 * red + 0.587 * green + 0.114 * blue
            text = f"{value:.0f}" if whole else f"{value:.2f}"
            color = INK if luminance > 0.5 else BACKGROUND
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color=color)


SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"  # both keep their order under color-blindness


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
    pictures = convert_to_pictures(images)
    if titles is not None and len(titles) != len(pictures):
        raise ValueError(f"{len(titles)} titles for {len(pictures)} images")
    columns = min(columns, len(pictures))
    rows = math.ceil(len(pictures) / columns)
    cell = min(3.2, max(1.1, 9 / columns))
    height, width = pictures.shape[1:3]
    figure = new_figure(columns * cell, rows * (cell * height / width + (0.25 if titles else 0)))
    for number, axes in enumerate(figure.subplots(rows, columns, squeeze=False).flat):
        if number < len(pictures):
            draw_picture(axes, pictures[number])
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
    pictures = convert_to_pictures(patches.reshape(-1, channels, patch_size, patch_size))
    opaque = F.pad(pictures, (0, 1), value=1.0).unflatten(0, grid_size)  # (rows, columns, P, P, 4)
    gap = max(1, patch_size // 8)
    picture = torch.stack([arrange_tiles(channel, gap) for channel in opaque.unbind(-1)], dim=-1).nan_to_num(0.0)
    scale = 6 / max(picture.shape[:2])
    figure = new_figure(picture.shape[1] * scale, picture.shape[0] * scale)
    axes = figure.subplots()
    draw_picture(axes, picture)
    if rows * columns <= 64 if numbers is None else numbers:
        number_tiles(axes, rows, columns, patch_size + gap)
    return figure


def show_matrix(matrix: Tensor, row_name: str, column_name: str, title: str = "", values: bool | None = None) -> Figure:
    """A heat map with a color bar and named axes; see :func:`draw_matrix`.

    Args:
        matrix: (rows, columns).
        row_name, column_name: what runs down and what runs across, for instance "query" and "key".
        title: above the matrix.
        values: whether to write the numbers; None writes up to 100 of them.

    Raises:
        ValueError: when `matrix` has not two axes.
    """
    from matplotlib.ticker import MaxNLocator

    if matrix.ndim != 2:
        raise ValueError(f"matrix must be (rows, columns), not {tuple(matrix.shape)}")
    rows, columns = matrix.shape
    scale = min(0.5, 5.5 / max(rows, columns))  # inches of a cell
    figure = new_figure(max(2.2, columns * scale) + 1.6, max(1.4, rows * scale) + 1.0)
    axes = figure.subplots()
    picture = draw_matrix(axes, matrix, row_name, column_name, title, values)
    bar = figure.colorbar(picture, ax=axes, shrink=0.9)
    bar.outline.set_visible(False)
    if bool((matrix == matrix.round()).all()):
        bar.locator = MaxNLocator(integer=True)
        bar.update_ticks()
    return figure


def draw_matrix(
    axes: Axes,
    matrix: Tensor,
    row_name: str,
    column_name: str,
    title: str = "",
    values: bool | None = None,
    limits: tuple[float, float] | None = None,
) -> AxesImage:
    """Draw (rows, columns) as a heat map with named axes, on axes of a figure.

    A matrix with negative entries gets a color map that is white at zero. With ``limits``, the numbers at the ends of
    the colors, several have the same colors.
    """
    matrix = matrix.detach().float().cpu()
    rows, columns = matrix.shape
    signed = bool((matrix < 0).any())
    limit = matrix.abs().nan_to_num().max().item()
    low, high = limits or ((-limit, limit) if signed else (None, None))
    picture = axes.imshow(
        matrix.numpy(),
        cmap=DIVERGING if signed else SEQUENTIAL,
        vmin=low,
        vmax=high,
        aspect="auto" if max(rows, columns) > 4 * min(rows, columns) else "equal",
        interpolation="nearest",
    )
    axes.set(xlabel=column_name, ylabel=row_name, title=title)
    axes.set_xticks(range(0, columns, math.ceil(columns / 16)))
    axes.set_yticks(range(0, rows, math.ceil(rows / 16)))
    if matrix.numel() <= 100 if values is None else values:
        write_matrix_values(axes, picture, matrix)
    return picture


def plot_history(history: Curves, title: str = "") -> Figure:
    """Loss (left) and accuracy (right) after each epoch, for training and validation.

    Args:
        history: see `Curves`; losses, and accuracies in [0, 1].
        title: above both.
    """
    figure = new_figure(8.4, 3.2)
    if title:
        figure.suptitle(title, color=INK)
    left, right = figure.subplots(1, 2)
    draw_curves(left, history.train_loss, history.validation_loss, "loss")
    train = [100 * share for share in history.train_accuracy]
    validation = [100 * share for share in history.validation_accuracy]
    draw_curves(right, train, validation, "accuracy, %")
    best = max(validation)
    right.set_title(f"validation: {best:.1f} % after epoch {validation.index(best) + 1}", fontsize=9, color=INK)
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
    pictures = convert_to_pictures(images)
    maps = _compute_attention_maps(weights if weights.ndim == 4 else weights[None], grid_size)
    batch, num_heads = maps.shape[:2]
    if batch != len(pictures):
        raise ValueError(f"attention weights of {batch} images for {len(pictures)} images")
    height, width = pictures.shape[1:3]
    maps = F.interpolate(maps, size=(height, width), mode="bilinear")
    light = maps / maps.amax((2, 3), keepdim=True).clamp_min(1e-12)  # (batch, num_heads, height, width)
    cell = min(2.2, 11 / (1 + num_heads))
    figure = new_figure((1 + num_heads) * cell, batch * cell * height / width + 0.25)
    for row, line in enumerate(figure.subplots(batch, 1 + num_heads, squeeze=False)):
        draw_picture(line[0], pictures[row])
        line[0].set_ylabel("" if titles is None else titles[row], fontsize=9)
        for head, axes in enumerate(line[1:]):
            draw_picture(axes, shine_light_on(pictures[row], light[row, head]))
            axes.set_title(f"head {head}" if row == 0 else "", fontsize=9)
    return figure


def _compute_attention_maps(weights: Tensor, grid_size: tuple[int, int]) -> Tensor:
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
    """Show how alike positions are: for each patch, a small map of its cosine similarity with every patch.

    Args:
        positions: (1, tokens, embed_dim) or (tokens, embed_dim); a class token in front is left out.
        grid_size: (rows, columns) of patches.

    Raises:
        ValueError: when there are neither rows * columns positions nor one more.

    Source: the idea of the figure: Dosovitskiy et al. 2021, figure 7, center.
    """
    rows, columns = grid_size
    table = positions.detach().float().cpu().reshape(-1, positions.shape[-1])
    if len(table) not in (rows * columns, rows * columns + 1):
        raise ValueError(f"{len(table)} positions do not fit a grid of {rows} x {columns} patches")
    table = F.normalize(table[-rows * columns :], dim=-1)
    similarity = (table @ table.T).reshape(rows, columns, rows, columns)
    gap = max(1, round(max(rows, columns) / 8))
    picture = arrange_tiles(similarity, gap)
    figure = new_figure(6.6, max(2.5, 1 + 5.2 * picture.shape[0] / picture.shape[1]))
    axes = figure.subplots()
    drawn = axes.imshow(picture.numpy(), cmap=SEQUENTIAL, vmin=similarity.min().item(), vmax=1)
    axes.set_frame_on(False)
    label_tile_centers(axes.xaxis, columns, columns + gap)
    label_tile_centers(axes.yaxis, rows, rows + gap)
    axes.tick_params(length=0)
    axes.set(xlabel="column of the patch", ylabel="row of the patch")
    figure.colorbar(drawn, ax=axes, shrink=0.9, label="cosine similarity").outline.set_visible(False)
    return figure
