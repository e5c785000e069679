"""Figure of lesson 00: broadcasting over channels."""

from __future__ import annotations

import torch
from canvas import Canvas
from style import (
    BACKGROUND,
    BLUE,
    GRAY,
    GREEN,
    HAIR,
    QUIET,
    VERMILION,
    save_all_figures,
    shade,
)

AXES = ("batch", "channels", "height", "width")
COLUMN, BOX_WIDTH, BOX_HEIGHT = 84, 88, 36


def describe_broadcast(images_shape: tuple[int, ...], mean_shape: tuple[int, ...]) -> str:
    """Say what torch makes of `images - mean` with these shapes: 'runs' or 'stops'."""
    try:
        torch.zeros(images_shape) - torch.zeros(mean_shape)
    except RuntimeError:
        return "stops"
    return "runs"


def _draw_tensor_axes(canvas: Canvas, y: float, name: str, sizes: tuple[str, ...], color: str) -> None:
    """One tensor as a row of boxes, its last axis in the last column."""
    canvas.text(24, y + BOX_HEIGHT / 2, name, 13, mono=True)
    for place in range(4 - len(sizes)):
        canvas.box(COLUMN + place * (BOX_WIDTH + 6), y, BOX_WIDTH, BOX_HEIGHT, BACKGROUND, GRAY, line=0.8, dashed=True)
        canvas.text(
            COLUMN + place * (BOX_WIDTH + 6) + BOX_WIDTH / 2,
            y + BOX_HEIGHT / 2,
            "1",
            12,
            QUIET,
            align="center",
        )
    for place, words in enumerate(sizes, start=4 - len(sizes)):
        x = COLUMN + place * (BOX_WIDTH + 6)
        canvas.label(x, y, BOX_WIDTH, BOX_HEIGHT, words, color, size=13)


def _draw_broadcast_case(
    canvas: Canvas, y: float, width: int, mean_axes: tuple[str, ...], color: str, words: str
) -> None:
    """Images above a mean, and what comes of subtracting them."""
    sizes = dict(zip(AXES, (2, 3, 4, width), strict=True))
    mean_shape = tuple(sizes.get(axis, 1) for axis in mean_axes)
    _draw_tensor_axes(canvas, y, "images", tuple(f"{axis} {size}" for axis, size in sizes.items()), BLUE)
    _draw_tensor_axes(
        canvas,
        y + 42,
        "mean",
        tuple(f"{axis} {sizes[axis]}" if axis in sizes else axis for axis in mean_axes),
        color,
    )
    mark = "✓" if color == GREEN else "✗"
    outcome = describe_broadcast(tuple(sizes.values()), mean_shape)
    canvas.text(COLUMN, y + 100, f"{mark} torch {outcome}", 14, shade(color), weight="bold")
    canvas.text(COLUMN + 126, y + 100 + 9 * words.count("\n"), words, 12.5)


def normalize_broadcast() -> Canvas:
    """Three ways of subtracting a mean from a batch of images."""
    canvas = Canvas(
        524,
        "Broadcasting lines axes up from the right",
        "Two sizes fit when they are equal or one is 1;\na missing axis counts as 1.",
    )
    _draw_broadcast_case(canvas, 96, 6, ("channels",), VERMILION, "3 channels stand under 6 columns")
    _draw_broadcast_case(canvas, 234, 3, ("channels",), VERMILION, "one mean for each column:\nwrong, and no message")
    _draw_broadcast_case(canvas, 382, 6, ("channels", "1", "1"), GREEN, "each 1 stretches:\none mean for each channel")
    for y in (218, 366):
        canvas.line([(24, y), (456, y)], HAIR, 1)
    return canvas.describe(
        "Three cases of images minus mean: a mean of shape (3,) meets a width of 6, which stops; it meets a width "
        "of 3, which runs and is wrong; a mean of shape (3, 1, 1) meets the channels.",
        """Images of shape (batch 2, channels 3, height 4, width 6) stand above a mean of shape (channels
        3). Axes line up from the right, so the mean's 3 channels meet the 6 columns and torch stops with an
        error. When the images happen to be 3 pixels wide the same code runs and subtracts one mean per
        column, which is wrong without a warning. A mean of shape (channels 3, 1, 1) meets channels, height
        and width; the two ones stretch, and each channel gets its own mean.""",
    )


FIGURES = {"normalize_broadcast": normalize_broadcast}

if __name__ == "__main__":
    save_all_figures(FIGURES)
