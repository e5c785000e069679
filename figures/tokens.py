"""Figures of lesson 02: the class token and the positions join the tokens; positions for a larger grid."""

from __future__ import annotations

import numpy as np
import torch
from canvas import Canvas
from dark import INK_STAYS, WHITE_STAYS
from style import BLUE, DIVERGING, GRAY, GREEN, INK, PURPLE, QUIET, WHITE, convert_to_colors, save_all_figures, shade

SIDE = 19
SHAPES = "Shapes (batch, tokens, embed_dim);\neach column of cells is one vector."


def _draw_vector_columns(canvas: Canvas, x: float, y: float, vectors: np.ndarray, color: str) -> None:
    """Vectors (number, embed_dim) as columns of colored cells in one frame."""
    canvas.cells(x, y, convert_to_colors(vectors.T, DIVERGING, -2.2, 2.2), (SIDE, 17), edge=WHITE)
    canvas.box(x, y, SIDE * len(vectors), 17 * vectors.shape[1], "none", color, line=2.4, radius=2)


def _draw_steps(canvas: Canvas, y: float) -> None:
    """The three steps in their order."""
    words = [
        ("expand", "one class token for each image", PURPLE),
        ("concatenate", "the class token first", BLUE),
        ("add", "the same positions for each image", GREEN),
    ]
    for number, (verb, detail, color) in enumerate(words, start=1):
        canvas.disc(36, y, 12, str(number), shade(color, 0.3), size=12.5)
        canvas.text(56, y, verb, 14, weight="bold")
        canvas.text(172, y, detail, 12.5)
        y += 30


def class_token() -> Canvas:
    """Two images of four tokens; a class token in front; positions added to all five."""
    generator = np.random.default_rng(4)
    first, positions = generator.normal(size=(1, 1, 6)), generator.normal(size=(1, 5, 6))
    tokens = generator.normal(size=(2, 4, 6))
    joined = np.concatenate([first.repeat(2, axis=0), tokens], axis=1)
    result = joined + positions
    canvas = Canvas(528, "The class token goes in front,\nthen the positions are added", SHAPES)
    places = [(67, "class_token", first, PURPLE), (160, "tokens", tokens, BLUE), (276, "positions", positions, GREEN)]
    for x, name, tensor, color in [*places, (402, "result", result, INK)]:
        canvas.text(x, 126, name, 13, shade(color, 0.35), align="center", weight="bold")
        canvas.text(x, 146, str(tensor.shape), 12, QUIET, align="center", mono=True)
    for image, y in enumerate((166, 290)):
        canvas.text(30, y + 51, f"image {image}", 12.5, align="center", rotation=90)
        _draw_vector_columns(canvas, 50, y, first[0], PURPLE)
        _draw_vector_columns(canvas, 122, y, tokens[image], BLUE)
        _draw_vector_columns(canvas, 228, y, positions[0], GREEN)
        _draw_vector_columns(canvas, 355, y, result[image, :1], PURPLE)
        _draw_vector_columns(canvas, 355 + SIDE, y, result[image, 1:], BLUE)
        canvas.arrow((74, y + 51), (117, y + 51), PURPLE, 2.4)
        canvas.text(213, y + 51, "+", 22, align="center", weight="bold")
        canvas.text(339, y + 51, "=", 22, align="center", weight="bold")
    _draw_steps(canvas, 430)
    return canvas.describe(
        "For each of two images the class token is put in front of the four tokens, and five positions are "
        "added to the five.",
        f"""Two rows, one for each image, of vectors drawn as columns of colored cells. The class token
        {first.shape} is copied for both images and goes in front of the tokens {tokens.shape}. The
        positions {positions.shape}, the same for both images, are added, and the first of them falls on the
        class token. The result has the shape {result.shape}.""",
    )


def resample_grid(grid: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Bicubic resampling of (rows, columns, embed_dim) to another (rows, columns)."""
    image = torch.from_numpy(grid).permute(2, 0, 1)[None]
    resized = torch.nn.functional.interpolate(image, size=size, mode="bicubic", align_corners=False)
    return resized[0].permute(1, 2, 0).numpy()


def make_smooth_positions(rows: int, columns: int, embed_dim: int) -> np.ndarray:
    """A smooth table (rows, columns, embed_dim), as learned positions are: one random wave per dimension."""
    generator = np.random.default_rng(3)
    speed, phase = generator.normal(0, 0.7, (2, embed_dim)), generator.uniform(0, 6, embed_dim)
    row, column = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    return np.cos(row[..., None] * speed[0] + column[..., None] * speed[1] + phase)


def _draw_position_table(canvas: Canvas, x: float, class_row: np.ndarray, grid: np.ndarray, dimension: int) -> None:
    """A table of positions, the class token's row on top, one dimension framed."""
    rows = grid.reshape(-1, grid.shape[-1])
    w, h = 7, 7.6
    canvas.picture(DIVERGING((class_row[None] + 1) / 2)[..., :3], x, 126, w * rows.shape[1], 14)
    canvas.box(x, 126, w * rows.shape[1], 14, "none", PURPLE, line=2.4, radius=2)
    canvas.picture(DIVERGING((rows + 1) / 2)[..., :3], x, 148, w * rows.shape[1], h * len(rows))
    canvas.box(x + w * dimension, 148, w, h * len(rows), "none", INK_STAYS, line=2, radius=0)


def resize_positions() -> Canvas:
    """Positions learned on a grid of 4 x 4 patches, resampled for 6 x 6."""
    embed_dim, dimension = 8, 6
    old = make_smooth_positions(4, 4, embed_dim)
    new = resample_grid(old, (6, 6))
    class_row = np.random.default_rng(9).uniform(-1, 1, embed_dim)
    canvas = Canvas(446, "More patches: resample the grid,\nleave the class token's row alone")
    for x, name, rows, align in ((24, "old", 16, "left"), (456, "new", 36, "right")):
        canvas.text(x, 88, name, 14, weight="bold", align=align)
        canvas.text(x, 108, f"(1, 1 + {rows}, {embed_dim})", 12, QUIET, mono=True, align=align)
    _draw_position_table(canvas, 24, class_row, old, dimension)
    _draw_position_table(canvas, 400, class_row, new, dimension)
    canvas.arrow((86, 133), (394, 133), PURPLE, 2.4)
    canvas.text(
        240, 158, "the class token's row: no place\non the grid, no change", 12.5, shade(PURPLE, 0.4), align="center"
    )
    for x, y, grid, words in ((112, 205, old, "4 × 4"), (256, 185, new, "6 × 6")):
        side = 20
        canvas.picture(DIVERGING((grid[..., dimension] + 1) / 2)[..., :3], x, y, side * len(grid), side * len(grid))
        for at in range(side, side * len(grid), side):
            canvas.line([(x + at, y), (x + at, y + side * len(grid))], WHITE_STAYS, 1.2)
            canvas.line([(x, y + at), (x + side * len(grid), y + at)], WHITE_STAYS, 1.2)
        canvas.box(x, y, side * len(grid), side * len(grid), "none", INK, line=2, radius=0)
        canvas.text(x + side * len(grid) / 2, y + side * len(grid) + 18, words, 13, align="center")
    canvas.arrow((84, 245), (108, 245), GRAY, 2.2)
    canvas.arrow((198, 245), (250, 245), GRAY, 2.2)
    canvas.text(224, 227, "bicubic", 13, align="center", weight="bold")
    canvas.arrow((380, 245), (397, 245), GRAY, 2.2)
    canvas.text(240, 352, f"the same for each of the {embed_dim} dimensions", 12.5, QUIET, align="center")
    return canvas.describe(
        "Positions of a 4 by 4 grid are resampled to 6 by 6, dimension by dimension, while the class token's "
        "row is carried over unchanged.",
        f"""On the left a table of positions (1, 1 + 16, {embed_dim}): a purple row for the class token
        above 16 rows. One dimension of the 16 rows, laid out as a grid of 4 by 4 numbers, is resampled with
        bicubic interpolation to 6 by 6, and becomes one dimension of the new table (1, 1 + 36, {embed_dim})
        on the right. A purple arrow carries the class token's row from the old table to the new one
        unchanged.""",
    )


FIGURES = {"class_token": class_token, "resize_positions": resize_positions}

if __name__ == "__main__":
    save_all_figures(FIGURES)
