"""Figures of lesson 02: the sinusoidal table, and what a 1-D and a 2-D table say about neighbors."""

from __future__ import annotations

import numpy as np
from canvas import Canvas
from style import BLUE, DIVERGING, HAIR, INK, ORANGE, QUIET, SEQUENTIAL, VERMILION, WHITE, save_all_figures, tint

BASE, FLOOR = 10_000, 0.3
GRID, HERE = (10, 14), (4, 5)
Box = tuple[float, float, float, float]


def make_sine_table(num_positions: int, embed_dim: int) -> np.ndarray:
    """Sinusoidal positions (num_positions, embed_dim): Vaswani et al. 2017, section 3.5."""
    angles = np.arange(num_positions)[:, None] / compute_wavelength(np.arange(0, embed_dim, 2), embed_dim) * 2 * np.pi
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(num_positions, embed_dim)


def compute_wavelength(dimension: np.ndarray | int, embed_dim: int) -> np.ndarray:
    """Positions per period of an even dimension."""
    return 2 * np.pi * BASE ** (np.asarray(dimension) / embed_dim)


def make_sine_table_2d(rows: int, columns: int, embed_dim: int) -> np.ndarray:
    """Positions (rows * columns, embed_dim): the first half tells the row, the second the column."""
    half = embed_dim // 2
    row = np.repeat(make_sine_table(rows, half), columns, axis=0)
    return np.concatenate([row, np.tile(make_sine_table(columns, half), (rows, 1))], axis=1)


def _draw_wave(canvas: Canvas, column: np.ndarray, dimension: int, period: float, area: Box, color: str) -> None:
    """One column of the table as a curve that runs downwards, in step with the table's rows."""
    x, y, w, h = area
    canvas.text(x + w / 2, y - 20, f"column\n{dimension}", 12, color, align="center", weight="bold")
    canvas.text(x + w / 2, y + h + 20, f"{period:.1f}", 13, color, align="center", weight="bold")
    axes = canvas.plot_area(x, y, w, h)
    fine = np.linspace(0, len(column) - 1, 300)
    axes.plot(np.sin(2 * np.pi * fine / period), fine + 0.5, color=tint(color, 0.55), linewidth=1)
    axes.plot(column, np.arange(len(column)) + 0.5, "o", color=color, markersize=2.2)
    axes.set(xlim=(-1.15, 1.15), ylim=(len(column), 0), xticks=[0], yticks=np.arange(0, len(column), 8) + 0.5)
    axes.set(xticklabels=[], yticklabels=[])
    axes.spines[["left", "bottom"]].set_visible(False)


def positions_sine() -> Canvas:
    """The table as a heat map, three of its columns as curves beside it."""
    num_positions, embed_dim = 48, 32
    table = make_sine_table(num_positions, embed_dim)
    subtitle = "The sinusoidal table, a row for each position:\nfrom left to right the waves grow longer."
    canvas = Canvas(558, "Each dimension is a wave,\neach position a row of its own", subtitle)
    left, top, width, height = 62, 156, 224, 336
    side = width / embed_dim
    canvas.picture(DIVERGING((table + 1) / 2)[..., :3], left, top, width, height)
    canvas.text(left + width / 2, top + height + 20, f"dimension, 0 to {embed_dim - 1}", 12.5, align="center")
    canvas.text(27, top + height / 2, f"position, 0 to {num_positions - 1}", 12.5, align="center", rotation=90)
    for place, (dimension, color) in enumerate([(0, VERMILION), (4, BLUE), (8, INK)]):
        x = left + dimension * side
        canvas.box(x, top, side, height, "none", WHITE, line=4.5, radius=0)
        canvas.box(x, top, side, height, "none", color, line=2.2, radius=0)
        canvas.text(x + side / 2, top - 12, str(dimension), 12.5, color, align="center", weight="bold")
        period = float(compute_wavelength(dimension, embed_dim))
        _draw_wave(canvas, table[:, dimension], dimension, period, (302 + 54 * place, top, 46, height), color)
    canvas.text(379, top + height + 42, "positions per wave", 12.5, align="center")
    for position in range(0, num_positions, 8):
        y = top + (position + 0.5) * height / num_positions
        canvas.text(left - 8, y, str(position), 12, QUIET, align="right")
    canvas.picture(DIVERGING(np.linspace(0, 1, 64))[None, :, :3], 114, top + height + 38, 120, 12)
    canvas.text(106, top + height + 44, "−1", 12, QUIET, align="right")
    canvas.text(242, top + height + 44, "+1", 12, QUIET)
    return canvas.describe(
        "A heat map of the sinusoidal position table, and three of its columns as waves of growing length.",
        f"""A table of {num_positions} positions (rows) by {embed_dim} dimensions (columns), colored from
        blue, minus one, to vermilion, plus one. The columns on the left change with every row, those on the
        right hardly at all. Beside it, columns 0, 4 and 8 drawn as curves along the same rows: their waves
        are {", ".join(f"{float(compute_wavelength(d, embed_dim)):.1f}" for d in (0, 4, 8))} positions long.""",
    )


def _scale_to_color_map(similarity: np.ndarray | float) -> np.ndarray:
    """Place of a similarity on the color map: the square leaves more of it for what is nearly alike."""
    return np.clip((np.asarray(similarity) - FLOOR) / (1 - FLOOR), 0, 1) ** 2


def _draw_similarity_panel(canvas: Canvas, table: np.ndarray, x: float, title: str) -> tuple[float, float]:
    """Dot products of one position with all, over its own with itself; returns (to the right, below)."""
    (rows, columns), (row, column) = GRID, HERE
    products = table @ table[row * columns + column]
    similarity = (products / products.max()).reshape(GRID)
    side = 208 / columns
    canvas.text(x, 96, title, 14, weight="bold")
    canvas.picture(SEQUENTIAL(_scale_to_color_map(similarity))[..., :3], x, 122, 208, side * rows)
    canvas.box(x, 122, 208, side * rows, "none", HAIR, line=1, radius=0)
    canvas.box(x + column * side, 122 + row * side, side, side, "none", ORANGE, line=3.5, radius=0)
    right, below = float(similarity[row, column + 1]), float(similarity[row + 1, column])
    canvas.text(x, 298, f"to the right {right:.2f}\nbelow {below:.2f}", 13)
    return right, below


def positions_2d() -> Canvas:
    """Who looks near, in a table that counts along the rows, and in a table of rows and columns."""
    canvas = Canvas(
        388, "Which patches does a position look like?", "Dot products with the framed patch; its own is 1."
    )
    flat = _draw_similarity_panel(canvas, make_sine_table(GRID[0] * GRID[1], 64), 24, "1-D table:\npatches 0 to 139")
    square = _draw_similarity_panel(canvas, make_sine_table_2d(*GRID, 64), 248, "2-D table:\nrow and column")
    canvas.picture(SEQUENTIAL(np.linspace(0, 1, 64))[None, :, :3], 24, 334, 432, 12)
    canvas.box(24, 334, 432, 12, "none", HAIR, line=1, radius=0)
    for value in (0.4, 0.6, 0.7, 0.8, 0.9):
        canvas.text(24 + 432 * float(_scale_to_color_map(value)), 362, f"{value:.1f}", 12, QUIET, align="center")
    canvas.text(456, 362, "1.0", 12, QUIET, align="right")
    return canvas.describe(
        "On a grid of patches, a 1-D position table finds only the left and right neighbors alike, a 2-D "
        "table those above and below too.",
        f"""Two heat maps of a grid of {GRID[0]} by {GRID[1]} patches, colored by the dot product of each
        position with the framed one. With the 1-D table the dark stripe runs along the row: the patch to
        the right scores {flat[0]:.2f}, the patch below {flat[1]:.2f}. With the 2-D table a dark cross
        surrounds the frame: both score {square[0]:.2f}.""",
    )


FIGURES = {"positions_sine": positions_sine, "positions_2d": positions_2d}

if __name__ == "__main__":
    save_all_figures(FIGURES)
