"""What the plots are drawn on and with: a figure on a pale card, pictures, mosaics, curves."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

BLUE, ORANGE, INK, GREY, CARD = "#0072B2", "#E69F00", "#1b2733", "#6b7785", "#fbfaf7"
AMBER = (1.0, 0.76, 0.2)  # red, green, blue in [0, 1]
DOTS_PER_INCH = 120


@cache
def _figure_class() -> type[Figure]:
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
    return _figure_class()(figsize=(width, height), facecolor=CARD, layout="constrained")


def as_pictures(images: Tensor) -> Tensor:
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


def mosaic(tiles: Tensor, gap: int) -> Tensor:
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
    style: dict[str, Any] = {"textcoords": "offset points", "va": "top", "fontsize": 7, "color": CARD, "bbox": box}
    for token in range(rows * columns):
        row, column = divmod(token, columns)
        axes.annotate(str(token), (column * pitch - 0.5, row * pitch - 0.5), (2, -2), **style)


def label_centres(axis: Axis, count: int, pitch: int) -> None:
    """Write 0, 1, 2, ... at the centres of `count` tiles of `count` pixels each, which lie `pitch` apart."""
    axis.set_ticks([tile * pitch + (count - 1) / 2 for tile in range(count)], [str(tile) for tile in range(count)])


def lit(picture: Tensor, light: Tensor) -> Tensor:
    """A picture (height, width, 3) in dark grey, amber where `light` (height, width) in [0, 1] falls."""
    grey = picture.mean(-1, keepdim=True)
    amber = torch.tensor(AMBER) * (0.55 + 0.45 * grey)
    return torch.lerp(0.1 + 0.45 * grey.expand(-1, -1, 3), amber, light[..., None])


def draw_curves(axes: Axes, train: Sequence[float], validation: Sequence[float], name: str) -> None:
    """Draw one number per epoch for training and for validation, told apart by colour, line and marker."""
    epochs = range(1, len(train) + 1)
    axes.plot(epochs, train, color=BLUE, marker="o", markersize=3, linestyle="--", label="training")
    axes.plot(epochs, validation, color=ORANGE, marker="s", markersize=3, label="validation")
    axes.set(xlabel="epoch", ylabel=name, facecolor=CARD)
    axes.locator_params(axis="x", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GREY, alpha=0.2)


def write_values(axes: Axes, picture: AxesImage, matrix: Tensor) -> None:
    """Write each number of (rows, columns) into its cell, dark on light and light on dark."""
    whole = bool((matrix == matrix.round()).all())
    colours = picture.to_rgba(matrix.numpy())  # (rows, columns, 4)
    for row, values in enumerate(matrix.tolist()):
        for column, value in enumerate(values):
            red, green, blue, _ = colours[row, column]
            luminance = 0.299 * red + 0.587 * green + 0.114 * blue
            text = f"{value:.0f}" if whole else f"{value:.2f}"
            colour = INK if luminance > 0.5 else CARD
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
