"""Figures of lesson 00: broadcasting over channels, and how one works with checks."""

from __future__ import annotations

import torch
from canvas import Canvas
from style import (
    BACKGROUND,
    BLUE,
    GRAY,
    GREEN,
    HAIR,
    INK,
    ORANGE,
    PURPLE,
    QUIET,
    VERMILION,
    WHITE,
    save_all,
    shade,
    tint,
)

AXES = ("batch", "channels", "height", "width")
COLUMN, BOX_WIDTH, BOX_HEIGHT = 104, 94, 36


def broadcast_outcome(images_shape: tuple[int, ...], mean_shape: tuple[int, ...]) -> str:
    """What torch makes of `images - mean` with these shapes: 'runs' or 'stops'."""
    try:
        torch.zeros(images_shape) - torch.zeros(mean_shape)
    except RuntimeError:
        return "stops"
    return "runs"


def _axis_row(canvas: Canvas, y: float, name: str, sizes: tuple[str, ...], color: str) -> None:
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


def _case(canvas: Canvas, y: float, width: int, mean_axes: tuple[str, ...], color: str, words: str) -> None:
    """Images above a mean, and what comes of subtracting them."""
    sizes = dict(zip(AXES, (2, 3, 4, width), strict=True))
    mean_shape = tuple(sizes.get(axis, 1) for axis in mean_axes)
    _axis_row(canvas, y, "images", tuple(f"{axis} {size}" for axis, size in sizes.items()), BLUE)
    _axis_row(
        canvas,
        y + 42,
        "mean",
        tuple(f"{axis} {sizes[axis]}" if axis in sizes else axis for axis in mean_axes),
        color,
    )
    mark = "✓" if color == GREEN else "✗"
    outcome = broadcast_outcome(tuple(sizes.values()), mean_shape)
    canvas.text(522, y + 13, f"{mark} torch {outcome}", 14, shade(color), weight="bold")
    canvas.text(522, y + 37 + 8.7 * words.count("\n"), words, 12)


def normalize_broadcast() -> Canvas:
    """Three ways of subtracting a mean from a batch of images."""
    canvas = Canvas(
        412,
        "Broadcasting lines axes up from the right",
        "Two sizes fit when they are equal or one is 1; a missing axis counts as 1.",
    )
    _case(canvas, 84, 6, ("channels",), VERMILION, "3 channels stand\nunder 6 columns")
    _case(canvas, 194, 3, ("channels",), VERMILION, "one mean for each\ncolumn: wrong, and\nno message")
    _case(canvas, 304, 6, ("channels", "1", "1"), GREEN, "each 1 stretches:\none mean for each\nchannel")
    for y in (180, 290):
        canvas.line([(24, y), (676, y)], HAIR, 1)
    return canvas.describe(
        "Three cases of images minus mean: a mean of shape (3,) meets a width of 6, which stops; it meets a width "
        "of 3, which runs and is wrong; a mean of shape (3, 1, 1) meets the channels.",
        """Images of shape (batch 2, channels 3, height 4, width 6) stand above a mean of shape (channels
        3). Axes line up from the right, so the mean's 3 channels meet the 6 columns and torch stops with an
        error. When the images happen to be 3 pixels wide the same code runs and subtracts one mean per
        column, which is wrong without a warning. A mean of shape (channels 3, 1, 1) meets channels, height
        and width; the two ones stretch, and each channel gets its own mean.""",
    )


def _step(canvas: Canvas, x: float, y: float, number: int, title: str, color: str) -> None:
    """An empty card of the loop with its number and title."""
    canvas.box(x, y, 288, 132, WHITE, color, radius=10)
    canvas.disc(x + 24, y + 24, 13, str(number), shade(color, 0.25), size=13)
    canvas.text(x + 46, y + 24, title, 15, weight="bold")


def _loop_arrows(canvas: Canvas) -> None:
    canvas.arrow((318, 140), (382, 140), INK, 2.5)
    canvas.arrow((532, 212), (532, 260), INK, 2.5)
    canvas.arrow((382, 334), (318, 334), INK, 2.5)
    canvas.arrow((168, 260), (168, 212), INK, 2.5)
    canvas.text(544, 236, "something fails", 12, shade(VERMILION))
    canvas.text(180, 236, "and again", 12, QUIET)


def _message(canvas: Canvas, x: float, y: float) -> None:
    """What a failed check tells, in its order."""
    for row, (head, words) in enumerate(
        [
            ("seen", "what came back"),
            ("expected", "what should have"),
            ("likely cause", "the mistake's name"),
            ("where to look", "a place to start"),
        ]
    ):
        canvas.text(x, y + 19 * row, head, 12, shade(VERMILION), weight="bold")
        canvas.text(x + 116, y + 19 * row, words, 12.5)


def check_loop() -> Canvas:
    """The student's loop: write, check, read, fix."""
    canvas = Canvas(420, "A check is a conversation", "Run it as often as you like: a failed check costs nothing.")
    left, right, top, bottom = 24, 388, 74, 266
    _step(canvas, left, top, 1, "Write", BLUE)
    canvas.box(left + 12, top + 48, 264, 70, tint(BLUE, 0.08), radius=5)
    canvas.text(left + 20, top + 67, "def normalize_images(", 11.5, mono=True)
    canvas.text(left + 20, top + 84, "        images, mean, std):", 11.5, mono=True)
    canvas.text(left + 20, top + 101, "    # TODO: your code here", 11.5, QUIET, mono=True)
    _step(canvas, right, top, 2, "Check", PURPLE)
    for row, (mark, color, words) in enumerate(
        [
            ("✓", GREEN, "pass: when all do, go on"),
            ("✗", VERMILION, "fail"),
            ("?", GRAY, "undecided: waits for another check"),
        ]
    ):
        canvas.disc(right + 24, top + 58 + 24 * row, 9, mark, color, size=11)
        canvas.text(right + 42, top + 58 + 24 * row, words, 12.5)
    _step(canvas, right, bottom, 3, "Read the message", VERMILION)
    _message(canvas, right + 20, bottom + 54)
    _step(canvas, left, bottom, 4, "Fix", ORANGE)
    for row, words in enumerate(["Guess what went wrong.", "Change one thing.", "Run the check again."]):
        canvas.text(left + 20, bottom + 58 + 22 * row, words, 12.5)
    _loop_arrows(canvas)
    return canvas.describe(
        "A loop of four steps: write the function, check it, read the message, fix the code, check again.",
        """Four cards joined by arrows in a circle. 1, write: a function whose body says TODO. 2, check:
        each check says pass, fail or undecided, which waits for another check to pass. 3, read the
        message: what was seen, what was expected, the likely mistake by its name, where to look. 4,
        fix: guess what went wrong, change one thing, run the check again.""",
    )


FIGURES = {"normalize_broadcast": normalize_broadcast, "check_loop": check_loop}

if __name__ == "__main__":
    save_all(FIGURES)
