"""Figure of lesson 08: what a place in the picture can see and does see, block by block: convolutions, attention.

The convolutions are counted here; the attention was measured on a trained model by benchmarks/attention_distance.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from canvas import Canvas
from style import BLUE, GRAY, HAIR, INK, POINTS_PER_PIXEL, QUIET, SEQUENTIAL, VERMILION, save_all_figures, shade

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results" / "attention_distance.json"
SIDE = 32
WINDOW = 28  # pixels: the largest square round a patch beside the middle that lies in the picture
LEFT, MAP, GAP = 196, 108, 16
ROWS = (118, 268)


def count_paths_to(center: int, layers: int) -> np.ndarray:
    """Count the paths that lead from each pixel to one output through 3 x 3 convolutions, as shares: (SIDE, SIDE)."""
    line = np.zeros(SIDE)
    line[center] = 1
    for _ in range(layers):
        line = np.convolve(line, np.ones(3), mode="same")
    shares = np.outer(line, line)
    return shares / shares.sum()


def compute_mean_distance(shares: np.ndarray, center: int) -> float:
    """Mean distance in pixels from the center, weighted by the shares."""
    rows, columns = np.indices(shares.shape)
    return float((shares * np.hypot(rows - center, columns - center)).sum())


def count_layers_to_far_corner() -> int:
    """Count the 3 x 3 layers until one corner pixel can see the opposite one."""
    return SIDE - 1


def draw_map(canvas: Canvas, shares: np.ndarray, size: int, full: float, x: float, y: float) -> None:
    """A map of shares, each of a square of `size` pixels; `full` is the share that is darkest."""
    side = MAP / WINDOW * size * len(shares)
    gap = (MAP - side) / 2
    canvas.picture(SEQUENTIAL(np.clip(shares / full, 0, 1))[..., :3], x + gap, y + gap, side, side)
    canvas.box(x, y, MAP, MAP, "none", HAIR, line=1, radius=0)


def find_largest_other_share(flow: np.ndarray, patch: int) -> float:
    """The largest share of any patch but the middle one, which the residual stream carries on, over all layers."""
    return float(np.delete(flow, patch, axis=1).max())


def receptive_growth() -> Canvas:
    """Maps by depth for both, and the distances as a plot."""
    measured = json.loads(RESULTS.read_text())
    flow, patch = np.array(measured["flow"]), measured["patch"]
    size = measured["model"]["patch_size"]
    grid = SIDE // size
    first = 2 * (patch // grid) - grid + 1  # the first row and column of patches in a window round the middle one
    center = size * (patch // grid) + size // 2
    shown = range(1, min(len(flow), 4) + 1)
    full = count_paths_to(center, 1).max(), find_largest_other_share(flow[: len(shown)], patch)
    canvas = Canvas(
        668,
        "Attention may look everywhere at once; a convolution grows into it",
        f"What a place near the middle of a picture is made of: the {WINDOW} × {WINDOW} pixels around it.",
        width=700,
    )
    for number in shown:
        x = LEFT + (MAP + GAP) * (number - 1)
        canvas.text(x + MAP / 2, ROWS[0] - 22, f"after layer {number}", 12.5, align="center", weight="bold")
        near = slice(center - WINDOW // 2 + 1, center + WINDOW // 2)  # odd: the pixel itself is the middle
        draw_map(canvas, count_paths_to(center, number)[near, near], 1, full[0], x, ROWS[0])
        reach = MAP / WINDOW * (2 * number + 1)
        corner = (MAP - reach) / 2
        canvas.box(x + corner, ROWS[0] + corner, reach, reach, "none", VERMILION, line=2.2, radius=0)
        draw_map(canvas, flow[number - 1].reshape(grid, grid)[first:, first:], size, full[1], x, ROWS[1])
        canvas.text(
            x + MAP / 2, ROWS[1] + MAP + 16, f"itself: {flow[number - 1, patch]:.0%}", 12, QUIET, align="center"
        )
    _write_row_names(canvas, full)
    _plot_distance_against_depth(canvas, measured, center)
    return canvas.describe(*_write_descriptions(measured, center, full, len(shown)))


def _draw_color_scale(canvas: Canvas, y: float, full: float) -> None:
    """Draw what the colors of a row of maps mean."""
    canvas.text(24, y + 6, "0", 12, QUIET)
    canvas.picture(SEQUENTIAL(np.linspace(0, 1, 64))[None, :, :3], 40, y, 92, 12)
    canvas.box(40, y, 92, 12, "none", HAIR, line=1, radius=0)
    canvas.text(140, y + 6, f"{full:.1%}", 12, QUIET)


def _write_row_names(canvas: Canvas, full: tuple[float, float]) -> None:
    names = (
        ("3 × 3 convolutions", "frame: all it can see,\n3, 5, 7, 9 pixels; color:\na pixel's share of paths"),
        ("a ViT's attention", "no frame: it can see all\nof the picture; color:\na patch's share (measured)"),
    )
    for y, (title, words), darkest in zip(ROWS, names, full, strict=True):
        canvas.text(24, y + 10, title, 13.5, weight="bold")
        canvas.text(24, y + 50, words, 12, QUIET)
        _draw_color_scale(canvas, y + 92, darkest)


def _plot_distance_against_depth(canvas: Canvas, measured: dict[str, Any], center: int) -> None:
    """Pixels looked at, against depth: a dot for each head, the convolutions' reach and mean as lines."""
    depth, even = len(measured["distances"]), measured["everywhere_alike"]
    canvas.text(24, 436, "How far one layer looks, how far a stack has come: pixels", 13.5, weight="bold")
    axes = canvas.plot_area(LEFT, 454, 480, 160)
    layers = np.arange(1, depth + 1)
    axes.axhline(even, color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
    for layer, heads in enumerate(measured["distances"], start=1):
        axes.plot(np.full(len(heads), layer), heads, "o", color=BLUE, markersize=4.5, alpha=0.75)
    axes.plot(
        layers,
        [compute_mean_distance(count_paths_to(center, k), center) for k in layers],
        "-",
        color=VERMILION,
        linewidth=2,
    )
    axes.plot(layers, layers, ":", color=VERMILION, linewidth=1.6)
    axes.set(xlim=(0.6, depth + 0.4), ylim=(0, even * 1.25), xticks=layers)
    size = 12 * POINTS_PER_PIXEL
    axes.text(0.68, even + 0.6, "a head that looks at all patches alike", color=QUIET, size=size)
    canvas.text(24, 488, "each dot: one head", 12, shade(BLUE, 0.1), weight="bold")
    canvas.text(24, 558, "dotted: the edge of the\nconvolutions' square", 12, shade(VERMILION, 0.1))
    canvas.text(24, 598, "line: their mean", 12, shade(VERMILION, 0.1), weight="bold")
    canvas.text(LEFT + 240, 646, "layer", 12.5, INK, align="center")


def _write_descriptions(
    measured: dict[str, Any], center: int, full: tuple[float, float], shown: int
) -> tuple[str, str]:
    distances, patch = measured["distances"], measured["patch"]
    ranges = "; ".join(
        f"layer {layer}: {min(heads):.1f} to {max(heads):.1f}" for layer, heads in enumerate(distances, start=1)
    )
    stack = compute_mean_distance(count_paths_to(center, len(distances)), center)
    flow = np.array(measured["flow"])[:shown]
    itself = ", ".join(f"{share:.0%}" for share in flow[:, patch])
    others = np.delete(flow, patch, axis=1)
    fade = ", ".join(f"{share:.0%}" for share in others.min(axis=1) / others.max(axis=1))
    alt = (
        "Maps by depth: through 3 by 3 convolutions the middle of a picture sees a square that grows by two pixels "
        "a layer; through attention it can see the whole picture from the first layer on."
    )
    return (
        alt,
        f"""Two rows of {shown} maps, after layers 1 to {shown}: the {WINDOW} by {WINDOW} pixels around a place near
        the middle of a {SIDE} by {SIDE} picture. Upper row, convolutions of 3 by 3: a frame of 3, 5, 7, 9 pixels marks
        what one pixel can see, and inside it the color, a pixel's share of all paths, {full[0]:.1%} at its darkest,
        fades toward the frame; it takes {count_layers_to_far_corner()} layers until one corner can see the opposite
        one. Lower row, one ViT trained on CIFAR-10 for {measured["run"]["epochs"]} epochs, right on
        {measured["accuracy"]:.0%} of the {measured["images"]} test images that it is measured on: the color shows by
        rollout how attention has mixed the patches into the one in the middle, from 0 to {full[1]:.1%}. That patch's
        own share is off the scale: {itself}. Every patch of the picture has a share from layer 1 on, and the nearer
        ones tend to have a larger one: the smallest share is {fade} of the largest. Below, a plot of distances in
        pixels against the layer. The heads look on average so far: {ranges}; a head that looks at all patches alike
        would look {measured["everywhere_alike"]:.1f} far. {len(distances)} convolutions together reach
        {len(distances)} pixels, {stack:.1f} on average.""",
    )


FIGURES = {"receptive_growth": receptive_growth}

if __name__ == "__main__":
    save_all_figures(FIGURES)
