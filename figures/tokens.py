"""Figures of lesson 02: the class token and the positions join the tokens; positions for a larger grid."""

from __future__ import annotations

import numpy as np
import torch
from canvas import Canvas
from dark import INK_STAYS, WHITE_STAYS
from style import BLUE, DIVERGING, GRAY, GREEN, INK, PURPLE, QUIET, WHITE, paint, save_all, shade

SIDE = 28
SHAPES = "Shapes (batch, tokens, embed_dim); each column of cells is one vector."


def _columns(canvas: Canvas, x: float, y: float, vectors: np.ndarray, color: str) -> None:
    """Vectors (number, embed_dim) as columns of colored cells in one frame."""
    canvas.cells(x, y, paint(vectors.T, DIVERGING, -2.2, 2.2), (SIDE, 17), edge=WHITE)
    canvas.box(x, y, SIDE * len(vectors), 17 * vectors.shape[1], "none", color, line=2.4, radius=2)


def _steps(canvas: Canvas, y: float) -> None:
    """The three steps in their order."""
    words = [
        ("expand", "one class token for\neach image", PURPLE),
        ("concatenate", "the class token first", BLUE),
        ("add", "the same positions\nfor each image", GREEN),
    ]
    for number, (verb, detail, color) in enumerate(words, start=1):
        x = 24 + 222 * (number - 1)
        canvas.disc(x + 12, y, 12, str(number), shade(color, 0.3), size=12.5)
        canvas.text(x + 32, y, verb, 14, weight="bold")
        canvas.text(x + 32, y + 20 + 8.7 * detail.count("\n"), detail, 12)


def class_token() -> Canvas:
    """Two images of four tokens; a class token in front; positions added to all five."""
    generator = np.random.default_rng(4)
    first, positions = generator.normal(size=(1, 1, 6)), generator.normal(size=(1, 5, 6))
    tokens = generator.normal(size=(2, 4, 6))
    joined = np.concatenate([first.repeat(2, axis=0), tokens], axis=1)
    result = joined + positions
    canvas = Canvas(448, "The class token goes in front, then the positions are added", SHAPES)
    places = [(66, "class_token", first, PURPLE), (196, "tokens", tokens, BLUE), (370, "positions", positions, GREEN)]
    for x, name, tensor, color in [*places, (578, "result", result, INK)]:
        canvas.text(x, 86, name, 13, shade(color, 0.35), align="center", weight="bold")
        canvas.text(x, 106, str(tensor.shape), 12, QUIET, align="center", mono=True)
    for image, y in enumerate((126, 250)):
        canvas.text(28, y + 51, f"image {image}", 12.5, align="center", rotation=90)
        _columns(canvas, 52, y, first[0], PURPLE)
        _columns(canvas, 140, y, tokens[image], BLUE)
        _columns(canvas, 300, y, positions[0], GREEN)
        _columns(canvas, 508, y, result[image, :1], PURPLE)
        _columns(canvas, 508 + SIDE, y, result[image, 1:], BLUE)
        canvas.arrow((86, y + 51), (134, y + 51), PURPLE, 2.4)
        canvas.text(276, y + 51, "+", 22, align="center", weight="bold")
        canvas.text(474, y + 51, "=", 22, align="center", weight="bold")
    _steps(canvas, 384)
    return canvas.describe(
        "For each of two images the class token is put in front of the four tokens, and five positions are "
        "added to the five.",
        f"""Two rows, one for each image, of vectors drawn as columns of colored cells. The class token
        {first.shape} is copied for both images and goes in front of the tokens {tokens.shape}. The
        positions {positions.shape}, the same for both images, are added, and the first of them falls on the
        class token. The result has the shape {result.shape}.""",
    )


def resample(grid: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Bicubic resampling of (rows, columns, embed_dim) to another (rows, columns)."""
    image = torch.from_numpy(grid).permute(2, 0, 1)[None]
    resized = torch.nn.functional.interpolate(image, size=size, mode="bicubic", align_corners=False)
    return resized[0].permute(1, 2, 0).numpy()


def smooth_positions(rows: int, columns: int, embed_dim: int) -> np.ndarray:
    """A smooth table (rows, columns, embed_dim), as learned positions are: one random wave per dimension."""
    generator = np.random.default_rng(3)
    speed, phase = generator.normal(0, 0.7, (2, embed_dim)), generator.uniform(0, 6, embed_dim)
    row, column = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    return np.cos(row[..., None] * speed[0] + column[..., None] * speed[1] + phase)


def _table(canvas: Canvas, x: float, class_row: np.ndarray, grid: np.ndarray, dimension: int) -> None:
    """A table of positions, the class token's row on top, one dimension framed."""
    rows = grid.reshape(-1, grid.shape[-1])
    w, h = 11, 7.6
    canvas.picture(DIVERGING((class_row[None] + 1) / 2)[..., :3], x, 112, w * rows.shape[1], 14)
    canvas.box(x, 112, w * rows.shape[1], 14, "none", PURPLE, line=2.4, radius=2)
    canvas.picture(DIVERGING((rows + 1) / 2)[..., :3], x, 134, w * rows.shape[1], h * len(rows))
    canvas.box(x + w * dimension, 134, w, h * len(rows), "none", INK_STAYS, line=2, radius=0)


def resize_positions() -> Canvas:
    """Positions learned on a grid of 4 x 4 patches, resampled for 6 x 6."""
    embed_dim, dimension = 8, 6
    old = smooth_positions(4, 4, embed_dim)
    new = resample(old, (6, 6))
    class_row = np.random.default_rng(9).uniform(-1, 1, embed_dim)
    canvas = Canvas(436, "More patches: resample the grid, leave the class token's row alone")
    for x, name, rows in ((24, "old", 16), (588, "new", 36)):
        canvas.text(x, 70, name, 14, weight="bold")
        canvas.text(x, 90, f"(1, 1 + {rows}, {embed_dim})", 12, QUIET, mono=True)
    _table(canvas, 24, class_row, old, dimension)
    _table(canvas, 588, class_row, new, dimension)
    canvas.arrow((118, 119), (582, 119), PURPLE, 2.4)
    canvas.text(
        350, 104, "the class token's row: no place on the grid, no change", 12.5, shade(PURPLE, 0.4), align="center"
    )
    for x, y, grid, words in ((168, 180, old, "4 × 4"), (376, 152, new, "6 × 6")):
        side = 28
        canvas.picture(DIVERGING((grid[..., dimension] + 1) / 2)[..., :3], x, y, side * len(grid), side * len(grid))
        for at in range(side, side * len(grid), side):
            canvas.line([(x + at, y), (x + at, y + side * len(grid))], WHITE_STAYS, 1.2)
            canvas.line([(x, y + at), (x + side * len(grid), y + at)], WHITE_STAYS, 1.2)
        canvas.box(x, y, side * len(grid), side * len(grid), "none", INK, line=2, radius=0)
        canvas.text(x + side * len(grid) / 2, y + side * len(grid) + 18, words, 13, align="center")
    canvas.arrow((118, 236), (160, 236), GRAY, 2.2)
    canvas.arrow((290, 236), (366, 236), GRAY, 2.2)
    canvas.text(328, 218, "bicubic", 13, align="center", weight="bold")
    canvas.arrow((552, 236), (580, 236), GRAY, 2.2)
    canvas.text(356, 384, f"the same for each of the {embed_dim} dimensions", 12.5, QUIET, align="center")
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
    save_all(FIGURES)
