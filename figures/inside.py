"""Figures of lesson 08: rollout in small numbers, and how far a query looks."""

from __future__ import annotations

import math

import numpy as np
from attention import CELL, COLUMN, _draw_matrix
from canvas import Canvas
from style import (
    BLUE,
    GRAY,
    HAIR,
    ORANGE,
    QUIET,
    SEQUENTIAL,
    VERMILION,
    convert_to_colors,
    save_all_figures,
    shade,
    tint,
)

# mean over heads of two blocks; every product of theirs is exact in two digits
FIRST = np.array([[0.2, 0.8, 0.0], [0.0, 0.4, 0.6], [0.2, 0.2, 0.6]])
SECOND = np.array([[0.0, 0.0, 1.0], [0.4, 0.4, 0.2], [0.6, 0.2, 0.2]])
ITSELF = np.eye(3)
TOKENS = ("class", "A", "B")
COLUMNS = {"weights": 72, "itself": 202, "step": 351}
LINES = (140, 308, 458)
PATCH_SIZE, SIDE = 16, 44
QUERY = (3, 1)
FILTERED = {(3, 1): 0.5, (3, 2): 0.3, (0, 5): 0.2}


def _draw_shares_matrix(canvas: Canvas, x: float, y: float, matrix: np.ndarray, name: str, framed: bool = True) -> None:
    """A matrix of shares with two digits, the class token's row framed."""
    _draw_matrix(canvas, (x, y), matrix, name, convert_to_colors(matrix, SEQUENTIAL, 0, 1.6), "{:.2f}")
    if framed:
        canvas.box(x, y, COLUMN * 3, CELL, "none", VERMILION, line=2.8, radius=3)


def _draw_token_names(canvas: Canvas, y: float) -> None:
    """Whose row and whose column is which: names before the first table of a line, and under all three."""
    for number, name in enumerate(TOKENS):
        canvas.text(COLUMNS["weights"] - 8, y + CELL * (number + 0.5), name, 12, QUIET, align="right")
        for x in COLUMNS.values():
            canvas.text(x + COLUMN * (number + 0.5), y + 3 * CELL + 13, name, 12, QUIET, align="center")


def _draw_rollout_of_block(canvas: Canvas, y: float, weights: np.ndarray, block: int) -> np.ndarray:
    """One line: weights plus identity, halved; gives the step."""
    step = (weights + ITSELF) / 2
    canvas.text(20, y + 45, f"block {block}", 13.5, weight="bold", align="center", rotation=90)
    _draw_shares_matrix(canvas, COLUMNS["weights"], y, weights, "mean over\nheads")
    _draw_matrix(canvas, (COLUMNS["itself"], y), ITSELF, "the token\nitself", np.full((3, 3), tint(GRAY, 0.1)))
    _draw_shares_matrix(canvas, COLUMNS["step"], y, step, "what a token\nis made of")
    canvas.text(189.5, y + 45, "+", 20, align="center", weight="bold")
    canvas.arrow((313, y + 45), (345, y + 45), GRAY)
    canvas.text(329, y + 28, "÷ 2", 13, align="center")
    _draw_token_names(canvas, y)
    return step


def rollout() -> Canvas:
    """Two blocks of three tokens, and the product of their steps."""
    subtitle = "Three tokens: the class token and the patches A and B.\nEach row is a query, and sums to 1."
    canvas = Canvas(588, "The last block alone forgets what came before", subtitle)
    first = _draw_rollout_of_block(canvas, LINES[0], FIRST, 0)
    second = _draw_rollout_of_block(canvas, LINES[1], SECOND, 1)
    product, y = second @ first, LINES[2]
    canvas.text(20, y + 45, "rollout", 13.5, weight="bold", align="center", rotation=90)
    _draw_shares_matrix(canvas, COLUMNS["weights"], y, second, "block 1")
    _draw_shares_matrix(canvas, COLUMNS["itself"], y, first, "block 0", framed=False)
    _draw_shares_matrix(canvas, COLUMNS["step"], y, product, "both together")
    canvas.text(189.5, y + 45, "·", 20, align="center", weight="bold")
    canvas.text(329, y + 45, "=", 20, align="center", weight="bold")
    _draw_token_names(canvas, y)
    return canvas.describe(
        "Rollout in small numbers: to the mean attention of each of two blocks the identity is added, the sum is "
        "halved, and the two results are multiplied, the later block on the left.",
        f"""Three lines of 3 by 3 tables, for a class token and patches A and B. Block 0: its mean attention plus
        the identity, halved. Block 1: the same. Rollout: block 1's table times block 0's. The class token's row is
        framed. In block 1 it gives patch A a weight of {SECOND[0, 1]:.2f}; after rollout its share of A is
        {product[0, 1]:.2f}: it keeps {second[0, 0] * first[0, 1]:.2f} that it had taken in block 0, and gets
        {second[0, 2] * first[2, 1]:.2f} by way of B.""",
    )


def _find_patch_center(patch: tuple[int, int], x: float, y: float) -> tuple[float, float]:
    return x + (patch[1] + 0.5) * SIDE, y + (patch[0] + 0.5) * SIDE


def attention_distance() -> Canvas:
    """One query patch of a grid of 4 by 6, what it looks at, and how far that is."""
    rows, columns, x, y = 4, 6, 108, 82
    title = "Mean attention distance: weight times way"
    canvas = Canvas(476, title, f"One head, one query patch, patches of {PATCH_SIZE} pixels.")
    weights = np.zeros((rows, columns))
    for patch, weight in FILTERED.items():
        weights[patch] = weight
    canvas.cells(x, y, convert_to_colors(weights, SEQUENTIAL, 0, 1), SIDE)
    canvas.box(x + QUERY[1] * SIDE, y + QUERY[0] * SIDE, SIDE, SIDE, "none", VERMILION, line=3, radius=3)
    for patch in FILTERED:
        if patch != QUERY:
            canvas.line([_find_patch_center(QUERY, x, y), _find_patch_center(patch, x, y)], ORANGE, 2.4)
    for patch, weight in FILTERED.items():
        canvas.disc(
            *_find_patch_center(patch, x, y), 15, f"{weight:.1f}", shade(VERMILION) if patch == QUERY else BLUE, size=12
        )
    canvas.text(x + SIDE * columns / 2, y + SIDE * rows + 22, "framed: the query", 12, QUIET, align="center")
    total = _draw_distance_table(canvas, 87, 316)
    return canvas.describe(
        "A query patch on a grid of 4 by 6 patches looks at three patches; each weight times the distance in pixels, "
        f"added up, gives {total:.1f} pixels.",
        f"""A grid of 4 rows and 6 columns of patches, {PATCH_SIZE} pixels each. The query in row 3, column 1, looks
        at itself with weight 0.5, at the patch to its right with 0.3, and with 0.2 at a patch three rows up and four
        columns to the right. Below it the sum: 0.5 times 0 pixels, 0.3 times 16 and 0.2 times 80, for three rows and
        four columns are five patches as the crow flies: {total:.1f} pixels. The distance of a head is the mean over
        all query patches and images.""",
    )


def _draw_distance_table(canvas: Canvas, x: float, y: float) -> float:
    """The table of weights and distances beside the grid; gives their sum."""
    total = 0.0
    right_edge = x + 306
    for column, words in ((0, "weight"), (92, "distance")):
        canvas.text(x + column, y, words, 12.5, QUIET)
    canvas.text(right_edge, y, "product", 12.5, QUIET, align="right")
    for line, (patch, weight) in enumerate(FILTERED.items(), 1):
        down, right = abs(patch[0] - QUERY[0]), abs(patch[1] - QUERY[1])
        pixels = PATCH_SIZE * math.hypot(down, right)
        way = f"{PATCH_SIZE} · √({down}² + {right}²) = {pixels:.0f}"
        total += weight * pixels
        for column, words in ((0, f"{weight:.1f}"), (92, way)):
            canvas.text(x + column, y + 30 * line, words, 13.5)
        canvas.text(right_edge, y + 30 * line, f"{weight * pixels:.1f}", 13.5, align="right")
    canvas.line([(x, y + 112), (right_edge, y + 112)], HAIR, 1.5)
    canvas.text(x, y + 134, "mean distance", 13.5, weight="bold")
    canvas.text(right_edge, y + 134, f"{total:.1f}", 13.5, align="right", weight="bold")
    return total


FIGURES = {"rollout": rollout, "attention_distance": attention_distance}

if __name__ == "__main__":
    save_all_figures(FIGURES)
