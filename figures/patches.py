"""Figures of lesson 01: cutting an image in patches, and the order of the pixels in a token."""

from __future__ import annotations

import numpy as np
from canvas import Canvas
from dark import WHITE_STAYS
from style import (
    BLUE,
    GRAY,
    GREEN,
    HAIR,
    INK,
    ORANGE,
    QUIET,
    WHITE,
    load_hopper_photo,
    save_all_figures,
    shade,
    tint,
)

PORTRAIT = (slice(30, 350), slice(16, 496))


def cut_into_patches(image: np.ndarray, patch_size: int) -> list[np.ndarray]:
    """The patches of an image (height, width, ...), row by row."""
    tops, lefts = (range(0, side, patch_size) for side in image.shape[:2])
    return [image[top : top + patch_size, left : left + patch_size] for top in tops for left in lefts]


def _draw_photo_with_grid(canvas: Canvas, photo: np.ndarray, x: float, y: float, scale: float) -> None:
    """The photo at (x, y), each of its pixels `scale` wide, with the numbered grid of 16 x 16 patches."""
    height, width = photo.shape[:2]
    side = 16 * scale
    canvas.picture(photo, x, y, width * scale, height * scale)
    for column in range(1, width // 16):
        canvas.line([(x + column * side, y), (x + column * side, y + height * scale)], WHITE_STAYS, 3)
    for row in range(1, height // 16):
        canvas.line([(x, y + row * side), (x + width * scale, y + row * side)], WHITE_STAYS, 3)
    for number in range((height // 16) * (width // 16)):
        row, column = divmod(number, width // 16)
        canvas.disc(x + column * side + 15, y + row * side + 15, 11, str(number), WHITE, size=12)


def _draw_token(canvas: Canvas, number: int, patch: np.ndarray, x: float, y: float) -> None:
    """A patch with, below, its 768 numbers: all of its red, all of its green, all of its blue."""
    canvas.picture(patch, x, y, 62, 62)
    canvas.disc(x + 14, y + 14, 11, str(number), WHITE, size=12)
    numbers = patch.transpose(2, 0, 1).reshape(3, -1)
    strip = (numbers[:, :, None] * np.eye(3)[:, None, :]).reshape(1, -1, 3)
    canvas.arrow((x + 31, y + 66), (x + 31, y + 83), GRAY, 1.5)
    canvas.picture(strip, x, y + 86, 62, 22)
    canvas.text(x + 31, y + 124, f"token {number}", 12.5, align="center")


def patchify_grid() -> Canvas:
    """A photo, its six patches, six tokens."""
    photo = load_hopper_photo(*PORTRAIT, factor=10)
    patches = cut_into_patches(photo, 16)
    canvas = Canvas(422, "An image becomes a sequence of tokens", "Patches are read as a page is: row by row.")
    _draw_photo_with_grid(canvas, photo, 24, 78, 5)
    facts = [
        ("images", "(batch, 3, 32, 48)", BLUE),
        ("patch_size 16", "2 rows × 3 columns", ORANGE),
        ("tokens, 768 = 3·16·16", "(batch, 6, 768)", GREEN),
    ]
    for step, (words, shape, color) in enumerate(facts):
        y = 78 + 62 * step
        canvas.label(280, y, 176, 44, "", color, strength=0.16)
        canvas.text(290, y + 13, words, 12.5)
        canvas.text(290, y + 31, shape, 12.5, mono=True)
        if step:
            canvas.arrow((368, y - 17), (368, y - 1), GRAY)
    for number, patch in enumerate(patches):
        _draw_token(canvas, number, patch, 24 + 74 * number, 274)
    return canvas.describe(
        "A photo of 32 by 48 pixels is cut in 2 rows and 3 columns of patches, numbered row by row, and each "
        "patch becomes a token of 768 numbers.",
        """A portrait of Grace Hopper, 32 pixels high and 48 wide, under a grid of 2 rows and 3 columns of
        patches of 16 by 16 pixels, numbered 0 to 2 in the upper row and 3 to 5 in the lower. Below, the six
        patches stand in one line, and under each lies a strip of its 768 numbers: all of its red values,
        then green, then blue. Images of shape (batch, 3, 32, 48) become tokens of shape (batch, 6,
        768).""",
    )


SIX_AXES = ("batch", "channels", "rows", "patch_size", "columns", "patch_size")
ROLES = {"batch": GRAY, "channels": ORANGE, "rows": BLUE, "patch_size": ORANGE, "columns": BLUE}
INSIDE = "channels · patch_size²"
TOKEN_AXES = {
    "batch": (0, "which image", GRAY),
    "tokens": (70, "which patch", BLUE),
    INSIDE: (140, "where inside the patch", ORANGE),
}
# the axis to which each of the six is led, and at which height of it the arrow ends
GOALS = (("batch", 15), (INSIDE, 7), ("tokens", 10), (INSIDE, 15), ("tokens", 22), (INSIDE, 23))


def _draw_six_axes_led_to_token_axes(canvas: Canvas, y: float) -> None:
    """Six axes in memory order, each led to the token axis that it belongs to."""
    for number, (axis, (goal, place)) in enumerate(zip(SIX_AXES, GOALS, strict=True)):
        top = y + 36 * number
        canvas.arrow((150, top + 15), (242, y + TOKEN_AXES[goal][0] + place), ROLES[axis], 2.2)
        canvas.label(24, top, 126, 30, axis, ROLES[axis], mono=True, size=12.5, strength=0.22)
    for axis, (down, role, color) in TOKEN_AXES.items():
        canvas.label(244, y + down, 192, 30, axis, color, strength=0.22, mono=True, size=12.5)
        canvas.text(340, y + down + 44, role, 13, shade(color, 0.4), align="center", weight="bold")


def _draw_numbered_image(canvas: Canvas, numbers: np.ndarray, marked: np.ndarray, x: float, y: float) -> None:
    """The small image, its pixels numbered as memory holds them, its patches framed, one marked."""
    fills = np.where(np.isin(numbers, marked), tint(GREEN, 0.45), WHITE).astype(object)
    canvas.cells(x, y, fills, 30, labels=numbers.astype(str))
    for number in range(6):
        row, column = divmod(number, 3)
        canvas.box(x + 60 * column, y + 60 * row, 60, 60, "none", INK, line=2, radius=0)


def _draw_memory_and_token_strips(
    canvas: Canvas, memory: np.ndarray, tokens: list[np.ndarray], marked: np.ndarray, y: float
) -> None:
    """The pixels as memory holds them, and as the tokens hold them; lines follow the marked ones."""
    side, gap, step = 16, 5.6, 412 / 24
    canvas.text(24, y - 14, "in memory", 12.5, QUIET)
    canvas.text(436, y + 62, "in the tokens", 12.5, QUIET, align="right")
    places = {}
    for place, pixel in enumerate(np.concatenate(tokens)):
        places[pixel] = 24 + place * side + gap * (place // len(marked))
    for pixel in marked:
        start = 24 + step * pixel + step / 2
        canvas.line([(start, y + 26), (places[pixel] + side / 2, y + 76)], GREEN, 2)
    for pixel in memory:
        fill = tint(GREEN, 0.45) if pixel in marked else WHITE
        label = np.array([[str(pixel)]])
        canvas.cells(24 + step * pixel, y, np.array([[fill]]), (step, 26), labels=label, size=11.5)
        canvas.cells(places[pixel], y + 76, np.array([[fill]]), (side, 26), labels=label, size=11.5)
    for number, token in enumerate(tokens):
        x = places[token[0]]
        canvas.box(x, y + 76, side * len(token), 26, "none", INK, line=2, radius=0)
        canvas.text(x + side * len(token) / 2, y + 118, f"token {number}", 12, align="center")


def patchify_axes() -> Canvas:
    """The six axes, sorted by role, and what that does to the order of the pixels."""
    numbers = np.arange(24).reshape(4, 6)
    tokens = [patch.ravel() for patch in cut_into_patches(numbers, 2)]
    words = "height = rows · patch_size,  width = columns · patch_size"
    canvas = Canvas(614, "Which patch, and where inside it", words, width=460)
    _draw_six_axes_led_to_token_axes(canvas, 80)
    canvas.line([(24, 306), (436, 306)], HAIR, 1)
    _draw_numbered_image(canvas, numbers, tokens[1], 24, 324)
    canvas.text(222, 350, "One channel, 4 rows of 6\npixels, patch_size 2.", 13)
    canvas.text(
        222, 412, "Patch 1 owns the green\npixels: apart in memory,\nside by side in its token.", 13, shade(GREEN)
    )
    _draw_memory_and_token_strips(canvas, np.arange(24), tokens, tokens[1], 478)
    return canvas.describe(
        "The six axes of a split image sorted by color into which patch and where inside the patch, and the "
        "pixels of a small image in memory order against their order in the tokens.",
        """Above, the axes batch, channels, rows, patch_size, columns, patch_size in memory order. Arrows
        lead rows and columns to a blue box, which patch, and channels and both patch_size axes to an orange
        box, where inside the patch; the arrows cross. Below, an image of 4 by 6 pixels, numbered 0 to 23
        along its rows and cut in patches of 2 by 2. Patch 1 owns the pixels 2, 3, 8 and 9: in memory they
        lie apart, in token 1 they stand side by side.""",
    )


FIGURES = {"patchify_grid": patchify_grid, "patchify_axes": patchify_axes}

if __name__ == "__main__":
    save_all_figures(FIGURES)
