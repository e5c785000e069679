"""Figure of lesson 07: what a place in the picture can see and does see, block by block: convolutions, attention.

The convolutions are counted here; the attention was measured on a trained model by benchmarks/attention_distance.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from canvas import Canvas
from style import BLUE, GREY, HAIR, INK, POINTS_PER_PIXEL, QUIET, SEQUENTIAL, VERMILION, save_all, shade

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "attention_distance.json"
SIDE = 32
LEFT, MAP, GAP = 196, 108, 16
ROWS = (118, 268)


def paths_to(centre: int, layers: int) -> np.ndarray:
    """How many paths lead from each pixel to one output through 3 x 3 convolutions, as shares: (SIDE, SIDE)."""
    line = np.zeros(SIDE)
    line[centre] = 1
    for _ in range(layers):
        line = np.convolve(line, np.ones(3), mode="same")
    shares = np.outer(line, line)
    return shares / shares.sum()


def mean_distance(shares: np.ndarray, centre: int) -> float:
    """Mean distance in pixels from the centre, weighted by the shares."""
    rows, columns = np.indices(shares.shape)
    return float((shares * np.hypot(rows - centre, columns - centre)).sum())


def layers_to_the_far_corner() -> int:
    """How many 3 x 3 layers until one corner pixel can see the opposite one."""
    return SIDE - 1


def seen(canvas: Canvas, shares: np.ndarray, x: float, y: float, frame: tuple[float, float, float, float]) -> None:
    """A map of shares, darkest from the second largest on, and a frame (left, top, width, height in image pixels).

    The largest is the middle itself, which the residual stream carries on.
    """
    canvas.picture(SEQUENTIAL(np.clip(shares / np.sort(shares, axis=None)[-2], 0, 1))[..., :3], x, y, MAP, MAP)
    canvas.box(x, y, MAP, MAP, "none", HAIR, line=1, radius=0)
    scale = MAP / SIDE
    left, top, width, height = (scale * each for each in frame)
    canvas.box(x + left, y + top, width, height, "none", VERMILION, line=2.2, radius=0)


def receptive_growth() -> Canvas:
    """Maps by depth for both, and the distances as a plot."""
    measured = json.loads(RESULTS.read_text())
    depth, patch_size = measured["model"]["depth"], measured["model"]["patch_size"]
    grid = SIDE // patch_size
    centre = patch_size * (measured["patch"] // grid) + patch_size // 2
    canvas = Canvas(
        650,
        "Attention may look everywhere at once; a convolution grows into it",
        "What the middle of a 32 × 32 picture is made of. Frame: all it can see. Colour: what it does see.",
    )
    shown = range(1, min(depth, 4) + 1)
    for number in shown:
        x = LEFT + (MAP + GAP) * (number - 1)
        canvas.text(x + MAP / 2, ROWS[0] - 22, f"after layer {number}", 12.5, align="center", weight="bold")
        reach = (centre - number, centre - number, 2 * number + 1, 2 * number + 1)
        seen(canvas, paths_to(centre, number), x, ROWS[0], reach)
        flow = np.array(measured["flow"][number - 1]).reshape(grid, grid)
        seen(canvas, flow, x, ROWS[1], (0, 0, SIDE, SIDE))
    _names(canvas)
    _plot(canvas, measured, centre)
    return canvas.describe(*_words(measured, centre, len(shown)))


def _names(canvas: Canvas) -> None:
    for y, title, words in (
        (ROWS[0], "3 × 3 convolutions", "frame: 3, 5, 7, 9 pixels;\ncolour: how many paths\nlead to the middle"),
        (
            ROWS[1],
            "a ViT's attention",
            "frame: the whole picture;\ncolour: how attention has\nmixed the patches\n(a trained ViT, measured)",
        ),
    ):
        canvas.text(24, y + 14, title, 13.5, weight="bold")
        canvas.text(24, y + 58, words, 12, QUIET)


def _plot(canvas: Canvas, measured: dict[str, Any], centre: int) -> None:
    """Pixels looked at, against depth: a dot for each head, the convolutions' reach and mean as lines."""
    depth, even = len(measured["distances"]), measured["everywhere_alike"]
    canvas.text(24, 418, "How far one layer looks, how far a stack has come: pixels", 13.5, weight="bold")
    axes = canvas.plot_area(LEFT, 436, 480, 160)
    layers = np.arange(1, depth + 1)
    axes.axhline(even, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    for layer, heads in enumerate(measured["distances"], start=1):
        axes.plot(np.full(len(heads), layer), heads, "o", color=BLUE, markersize=4.5, alpha=0.75)
    axes.plot(layers, [mean_distance(paths_to(centre, k), centre) for k in layers], "-", color=VERMILION, linewidth=2)
    axes.plot(layers, layers, ":", color=VERMILION, linewidth=1.6)
    axes.set(xlim=(0.6, depth + 0.4), ylim=(0, even * 1.25), xticks=layers)
    size = 12 * POINTS_PER_PIXEL
    axes.text(0.68, even + 0.6, "a head that looks at all patches alike", color=QUIET, size=size)
    canvas.text(24, 470, "each dot: one head", 12, shade(BLUE, 0.1), weight="bold")
    canvas.text(24, 540, "dotted: the edge of the\nconvolutions' square", 12, shade(VERMILION, 0.1))
    canvas.text(24, 580, "line: their mean", 12, shade(VERMILION, 0.1), weight="bold")
    canvas.text(LEFT + 240, 628, "layer", 12.5, INK, align="center")


def _words(measured: dict[str, Any], centre: int, shown: int) -> tuple[str, str]:
    distances = measured["distances"]
    first, last = distances[0], distances[-1]
    stack = mean_distance(paths_to(centre, len(distances)), centre)
    alt = (
        "Maps by depth: through 3 by 3 convolutions the middle of a picture sees a square that grows by two pixels "
        "a layer; through attention it can see the whole picture from the first layer on."
    )
    return (
        alt,
        f"""Two rows of {shown} maps of a 32 by 32 picture, after layers 1 to {shown}. Upper row, convolutions
        of 3 by 3: a frame of 3, 5, 7, 9 pixels marks what the middle can see, and inside it the colour, which counts
        paths, fades towards the rim; it takes {layers_to_the_far_corner()} layers until one corner can see the
        opposite one. Lower row, a ViT that was trained on CIFAR-10 to {measured["accuracy"]:.0%}: the frame is the
        whole picture in every map, and the colour shows how attention has mixed the patches into the middle one, whose
        own share is off the scale: nearly even after layer 1, then darker near the middle. Below, a plot of distances
        in pixels against the layer. The heads of layer 1 look {min(first):.1f} to {max(first):.1f} pixels far on
        average, those of layer {len(distances)} {min(last):.1f} to {max(last):.1f}; a head that looks at all patches
        alike would look {measured["everywhere_alike"]:.1f} far. {len(distances)} convolutions together reach
        {len(distances)} pixels, {stack:.1f} on average. Measured over {measured["images"]} test images.""",
    )


FIGURES = {"receptive_growth": receptive_growth}

if __name__ == "__main__":
    save_all(FIGURES)
