"""Figures of lesson 03: attention in numbers, and heads."""

from __future__ import annotations

import numpy as np
from canvas import Canvas
from style import (
    BLUE,
    DIVERGING,
    GRAY,
    GREEN,
    HAIR,
    INK,
    ORANGE,
    QUIET,
    SEQUENTIAL,
    VERMILION,
    WHITE,
    convert_to_colors,
    save_all_figures,
    shade,
    tint,
)

CELL, COLUMN = 30, 35
ASKING = 1
SEED = 12031  # one whose weights, rounded to two digits, still sum to 1 in each row


def softmax(scores: np.ndarray) -> np.ndarray:
    """Softmax over the last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _fill_with_one_color(color: str) -> np.ndarray:
    """Fills for a matrix (3, 4) whose color tells what it is, not its numbers."""
    return np.full((3, 4), tint(color, 0.18))


def _draw_matrix(
    canvas: Canvas, corner: tuple[float, float], matrix: np.ndarray, name: str, fills: np.ndarray, form: str = "{:.0f}"
) -> None:
    """A named matrix of numbers."""
    x, y = corner
    labels = np.vectorize(lambda number: form.format(number).replace("-", "−"))(matrix)
    canvas.cells(x, y, fills, (COLUMN, CELL), labels=labels, size=12.5, edge=WHITE)
    canvas.box(x, y, COLUMN * matrix.shape[1], CELL * len(matrix), "none", HAIR, radius=2)
    canvas.text(
        x + COLUMN / 2 * matrix.shape[1], y - 15 - 9.8 * name.count("\n"), name, 13.5, align="center", weight="bold"
    )


def _frame_query_row(canvas: Canvas, x: float, y: float, columns: int) -> None:
    """The frame around the asking token's row of a matrix."""
    canvas.box(x, y + CELL * ASKING, COLUMN * columns, CELL, "none", VERMILION, line=2.8, radius=3)


def _draw_path_to_softmax(canvas: Canvas, start: tuple[float, float], end: tuple[float, float]) -> None:
    """From the scaled scores to the left, and down to the first matrix of the lower line."""
    canvas.line([start, (end[0], start[1])], GRAY, 1.8)
    canvas.arrow((end[0], start[1]), end, GRAY)
    canvas.text((start[0] + end[0]) / 2, start[1] - 14, "softmax over each row", 13, align="center")


def attention_step_by_step() -> Canvas:
    """Three tokens, head_dim 4, from query and key to the output."""
    generator = np.random.default_rng(SEED)
    query, key = generator.integers(-2, 3, (2, 3, 4))
    value = generator.integers(0, 9, (3, 4))
    scores = query @ key.T
    scaled = scores / np.sqrt(query.shape[-1])
    weights = softmax(scaled)
    output = weights @ value
    canvas = Canvas(590, "Attention, number by number", "3 tokens, head_dim 4. Follow the framed row: token 1 asks.")
    upper, middle, lower = 120, 298, 450
    _draw_matrix(canvas, (24, upper), query, "query", _fill_with_one_color(BLUE))
    _draw_matrix(canvas, (190, upper - 15), key.T, "keyᵀ", _fill_with_one_color(ORANGE).T)
    _draw_matrix(canvas, (351, upper), scores, "scores", convert_to_colors(scores, DIVERGING, -4, 4))
    _draw_matrix(canvas, (351, middle), scaled, "scaled", convert_to_colors(scaled, DIVERGING, -4, 4), "{:.1f}")
    _draw_matrix(canvas, (24, lower), weights, "weights", convert_to_colors(weights, SEQUENTIAL, 0, 1), "{:.2f}")
    _draw_matrix(canvas, (152, lower), value, "value", _fill_with_one_color(GREEN))
    _draw_matrix(canvas, (316, lower), output, "output", _fill_with_one_color(GREEN), "{:.1f}")
    for x, y, columns in ((24, upper, 4), (351, upper, 3), (351, middle, 3), (24, lower, 3), (316, lower, 4)):
        _frame_query_row(canvas, x, y, columns)
    canvas.text(76, lower + 112, f"rows sum to {weights.sum(axis=-1).max():.0f}", 12.5, QUIET, align="center")
    for x, y, sign in ((177, upper, "·"), (323, upper, "="), (140.5, lower, "·"), (304, lower, "=")):
        canvas.text(x, y + 1.5 * CELL, sign, 20, align="center", weight="bold")
    canvas.arrow((403.5, upper + 96), (403.5, middle - 28), GRAY)
    canvas.text(416, (upper + middle) / 2 + 34, "÷ √4", 13)
    _draw_path_to_softmax(canvas, (345, middle + 45), (76, lower - 30))
    canvas.text(456, lower + 112, "each row: a weighted mean of the values", 12.5, QUIET, align="right")
    weights_text = ", ".join(f"{weight:.2f}" for weight in weights[ASKING])
    return canvas.describe(
        "Attention in small numbers: query times key gives scores, scaled by the root of head_dim; a softmax "
        "makes weights that sum to 1 in each row; weights times value give the output.",
        f"""Small matrices of numbers for 3 tokens and head_dim 4. Upper line: query times the transposed
        key gives 3 by 3 scores, which are divided by the root of 4. Lower line: a softmax over each row
        gives weights whose rows sum to 1, and weights times value give the output. A frame follows token 1:
        its weights on tokens 0, 1 and 2 are {weights_text}.""",
    )


def _draw_vectors(
    canvas: Canvas, corner: tuple[float, float], numbers: np.ndarray, colors: list[str], w: float
) -> None:
    """Vectors as rows of cells, each column in its head's color, shaded by the number; row 2 framed."""
    x, y = corner
    for column, color in enumerate(colors):
        fills = np.array([[tint(color, 0.25 + 0.6 * number)] for number in numbers[:, column]])
        canvas.cells(x + w * column, y, fills, (w, 20), edge=WHITE)
    canvas.box(x, y + 40, w * len(colors), 20, "none", INK, line=2.4, radius=3)


def split_heads() -> Canvas:
    """The columns of the token matrix cut in three heads."""
    tokens, num_heads, head_dim = 5, 3, 4
    numbers = np.random.default_rng(2).uniform(size=(tokens, num_heads * head_dim))
    colors = [color for color in (BLUE, ORANGE, GREEN) for _ in range(head_dim)]
    canvas = Canvas(486, "Each head gets every token,\nand a part of each vector")
    canvas.text(240, 96, "(batch, tokens, embed_dim)", 13.5, align="center", mono=True)
    canvas.text(240, 116, f"(batch, {tokens}, {num_heads * head_dim})", 12.5, QUIET, align="center", mono=True)
    _draw_vectors(canvas, (100, 136), numbers, colors, 29)
    for token in range(tokens):
        canvas.text(
            90, 146 + 20 * token, f"token {token}", 12.5, align="right", weight="bold" if token == 2 else "normal"
        )
    for head, left in enumerate((24, 182, 340)):
        part = slice(head * head_dim, (head + 1) * head_dim)
        start = 100 + 116 * head + 58
        canvas.arrow((start, 242), (left + 58, 286), shade(colors[part][0], 0.15), 2.6)
        canvas.text(left + 58, 302, f"head {head}", 13.5, align="center", weight="bold")
        _draw_vectors(canvas, (left, 316), numbers[:, part], colors[part], 29)
    canvas.text(240, 439, "(batch, num_heads, tokens, head_dim)", 13.5, align="center", mono=True)
    canvas.text(240, 460, f"(batch, {num_heads}, {tokens}, {head_dim})", 12.5, QUIET, align="center", mono=True)
    return canvas.describe(
        "The embed_dim columns of the token matrix are cut in three parts; each head receives one part of every "
        "token's vector.",
        f"""Above, a matrix of {tokens} tokens by {num_heads * head_dim} numbers, its columns in three
        colors, token 2 framed. Arrows lead each third of the columns to a head. Below, three matrices of
        {tokens} tokens by {head_dim} numbers: each head holds all tokens, and token 2 is framed in each.
        The shape goes from (batch, tokens, embed_dim) to (batch, num_heads, tokens, head_dim).""",
    )


FIGURES = {"attention_step_by_step": attention_step_by_step, "split_heads": split_heads}

if __name__ == "__main__":
    save_all_figures(FIGURES)
