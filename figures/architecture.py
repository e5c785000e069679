"""Figure of lesson 05 and of the README: the whole Vision Transformer with its shapes."""

from __future__ import annotations

import numpy as np
from canvas import Canvas
from dark import WHITE_STAYS
from patches import cut_into_patches
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
    SKY,
    WHITE,
    load_hopper_photo,
    save_all_figures,
    shade,
    tint,
)

IMAGE_SIZE, PATCH_SIZE, EMBED_DIM, DEPTH, CLASSES = 224, 16, 768, 12, 1000
SIDE = IMAGE_SIZE // PATCH_SIZE
TOKENS = SIDE**2
LEFT, SLOT, RIGHT = 24, 33, 300
SHOWN = {1: 0, 2: 1, 4: 75, 5: 76, 7: TOKENS - 1}
LEFT_OUT = (3, 6)


def _find_column_center(number: int) -> float:
    """The middle of one of eight columns: the class token's, which is wider, then the patches'."""
    return LEFT + SLOT * (number + 0.5) + (13 if number else 3)


def _draw_shape(canvas: Canvas, y: float, *sizes: int | str, x: float = 308) -> None:
    """The shape at this height, in the column on the right."""
    canvas.box(x, y - 14, 158, 28, WHITE, HAIR, radius=8)
    canvas.text(x + 79, y, f"(batch, {', '.join(map(str, sizes))})", 12, align="center", mono=True)


def _draw_module(canvas: Canvas, x: float, y: float, w: float, words: str, color: str, h: float = 32) -> None:
    canvas.label(x, y, w, h, words, color, strength=0.26, mono=True, size=12.5)


def _draw_image_to_patches(canvas: Canvas, photo: np.ndarray) -> None:
    """The photo under its grid, and some of its patches in line."""
    x, y, size = _find_column_center(1) - 15, 78, 154
    canvas.picture(photo, x, y, size, size)
    for step in range(1, SIDE):
        at = step * size / SIDE
        canvas.line([(x + at, y), (x + at, y + size)], WHITE_STAYS, 0.7)
        canvas.line([(x, y + at), (x + size, y + at)], WHITE_STAYS, 0.7)
    for number in SHOWN.values():
        row, column = divmod(number, SIDE)
        side = size / SIDE
        canvas.box(x + column * side, y + row * side, side, side, "none", ORANGE, line=2, radius=0)
    canvas.text(x + size + 18, y + 40, f"{SIDE} × {SIDE} = {TOKENS} patches", 14, weight="bold")
    canvas.text(x + size + 18, y + 64, f"of {PATCH_SIZE} × {PATCH_SIZE} pixels, 3 channels", 13)
    _draw_shape(canvas, y + 104, 3, IMAGE_SIZE, IMAGE_SIZE)
    patches = cut_into_patches(photo, photo.shape[0] // SIDE)
    for slot, number in SHOWN.items():
        canvas.picture(patches[number], _find_column_center(slot) - 15, 250, 30, 30)
        canvas.text(_find_column_center(slot), 294, str(number), 12, QUIET, align="center")
        canvas.arrow((_find_column_center(slot), 304), (_find_column_center(slot), 319), GRAY, 1.4)
    for slot in LEFT_OUT:
        canvas.text(_find_column_center(slot), 260, "…", 18, QUIET, align="center")
    _draw_shape(canvas, 262, TOKENS, f"3·{PATCH_SIZE}·{PATCH_SIZE}")


def _draw_tokens(canvas: Canvas) -> None:
    """The patch embedding, the class token in front, the positions."""
    _draw_module(canvas, _find_column_center(1) - 15, 321, RIGHT - _find_column_center(1) + 15, "patch_embedding", SKY)
    _draw_shape(canvas, 337, TOKENS, EMBED_DIM)
    for slot in (0, *SHOWN):
        color = BLUE if slot else PURPLE
        if slot:
            canvas.arrow((_find_column_center(slot), 354), (_find_column_center(slot), 367), GRAY, 1.4)
        canvas.box(_find_column_center(slot) - 10, 369, 20, 46, tint(color, 0.75), color, radius=4)
        canvas.disc(_find_column_center(slot), 434, 10, "+", tint(GREEN, 0.45), size=13)
        canvas.arrow((_find_column_center(slot), 445), (_find_column_center(slot), 467), GRAY, 1.4)
    for slot in LEFT_OUT:
        canvas.text(_find_column_center(slot), 386, "…", 18, QUIET, align="center")
    canvas.text(LEFT, 334, "class", 12.5, shade(PURPLE, 0.4), weight="bold")
    canvas.text(LEFT, 350, "token", 12.5, shade(PURPLE, 0.4), weight="bold")
    _draw_shape(canvas, 392, TOKENS + 1, EMBED_DIM)
    canvas.text(318, 434, "+ positions", 12.5, shade(GREEN, 0.3), weight="bold")


def _draw_branch(canvas: Canvas, x: float, parts: list[tuple[str, str, float]], stream: float, y: float) -> float:
    """A branch above the horizontal stream, added to it at the end; returns where."""
    canvas.line([(x, stream), (x, y + 16)], GRAY, 2)
    for words, color, width in parts:
        canvas.arrow((x, y + 16), (x + 16, y + 16), GRAY, 2)
        _draw_module(canvas, x + 17, y, width, words, color)
        x += 17 + width
    canvas.line([(x, y + 16), (x + 16, y + 16)], GRAY, 2)
    canvas.arrow((x + 16, y + 16), (x + 16, stream - 14), GRAY, 2)
    return x + 16


def _draw_blocks(canvas: Canvas) -> None:
    """One pre-norm block in a stack of twelve, its residual stream from left to right."""
    top, stream, right = 470, 582, 466
    for depth in (2, 1, 0):
        canvas.box(LEFT + 6 * depth, top + 6 * depth, right - LEFT - 12, 138, BACKGROUND, GRAY, radius=10)
    canvas.text(LEFT + 16, top + 22, f"{DEPTH} blocks, one after the other", 13.5, weight="bold")
    canvas.arrow((LEFT + 14, stream), (right - 24, stream), INK, 5)
    first = _draw_branch(canvas, 48, [("norm1", ORANGE, 54), ("attention", BLUE, 80)], stream, top + 44)
    second = _draw_branch(canvas, 250, [("norm2", ORANGE, 54), ("mlp", GREEN, 44)], stream, top + 44)
    for x in (first, second):
        canvas.disc(x, stream, 12, "", INK)
        canvas.disc(x, stream, 10, "+", WHITE, size=15)
    _draw_shape(canvas, top + 22, TOKENS + 1, EMBED_DIM, x=286)


def _draw_logits(canvas: Canvas) -> None:
    """The last norm, the class token alone, the head."""
    for slot in (0, *SHOWN):
        canvas.arrow((_find_column_center(slot), 622), (_find_column_center(slot), 637), GRAY, 1.4)
    _draw_module(canvas, LEFT, 639, RIGHT - LEFT, "norm", ORANGE, 30)
    _draw_shape(canvas, 654, TOKENS + 1, EMBED_DIM)
    canvas.arrow((_find_column_center(0), 670), (_find_column_center(0), 685), PURPLE, 2.4)
    canvas.box(_find_column_center(0) - 10, 687, 20, 46, tint(PURPLE, 0.75), PURPLE, radius=4)
    canvas.text(_find_column_center(0) + 26, 710, "the class token goes on alone", 13)
    _draw_shape(canvas, 710, EMBED_DIM)
    canvas.arrow((_find_column_center(0), 734), (_find_column_center(0), 751), PURPLE, 2.4)
    _draw_module(canvas, LEFT, 753, 56, "head", SKY)
    canvas.arrow((LEFT + 58, 769), (LEFT + 78, 769), GRAY, 2)
    canvas.label(LEFT + 80, 753, RIGHT - LEFT - 80, 32, f"{CLASSES} logits, one per class", GRAY, strength=0.14)
    _draw_shape(canvas, 769, CLASSES)


def vit_architecture() -> Canvas:
    """From an image to logits."""
    photo = np.round(load_hopper_photo(slice(20, 468), slice(32, 480), factor=4) * 31) / 31
    subtitle = f"ViT-B/16 on an image of {IMAGE_SIZE} × {IMAGE_SIZE}, and the shape at each stage."
    canvas = Canvas(808, "The Vision Transformer", subtitle)
    _draw_image_to_patches(canvas, photo)
    _draw_tokens(canvas)
    _draw_blocks(canvas)
    _draw_logits(canvas)
    return canvas.describe(
        f"The Vision Transformer from top to bottom: an image is cut in {TOKENS} patches, embedded, joined by a class "
        f"token and positions, passed through {DEPTH} blocks and a norm, and the class token becomes {CLASSES} logits.",
        f"""ViT-B/16, stage by stage, with the shape beside each. A photo (batch, 3, {IMAGE_SIZE},
        {IMAGE_SIZE}) under a grid of {SIDE} by {SIDE}; its {TOKENS} patches of 3·{PATCH_SIZE}·{PATCH_SIZE}
        numbers in line; patch_embedding turns each into a token of {EMBED_DIM} numbers; a class token
        stands in front, and positions are added: (batch, {TOKENS + 1}, {EMBED_DIM}). A stack of {DEPTH}
        blocks follows. In a block the thick residual stream runs straight on; a branch through norm1 and
        attention is added to it, then a branch through norm2 and mlp. After a last norm the class token
        goes on alone, (batch, {EMBED_DIM}), and the head turns it into (batch, {CLASSES}) logits.""",
    )


FIGURES = {"vit_architecture": vit_architecture}

if __name__ == "__main__":
    save_all_figures(FIGURES)
