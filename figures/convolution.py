"""Figure of lesson 01: a strided convolution is the same Linear on each patch."""

from __future__ import annotations

import numpy as np
import torch
from canvas import Canvas
from patches import PORTRAIT, cut_into_patches
from style import (
    BACKGROUND,
    DIVERGING,
    GRAY,
    HAIR,
    ORANGE,
    QUIET,
    VERMILION,
    WHITE,
    convert_to_colors,
    load_hopper_photo,
    save_all_figures,
    tint,
)

TOLERANCE = 1e-6  # float32 sums of 16 products near 1


def convolve_both_ways(image: np.ndarray, kernel: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """A strided convolution (rows, columns), and the kernel as a Linear's row on each patch (tokens,)."""
    pixels, weight = (torch.from_numpy(array).float() for array in (image, kernel))
    patch_size = kernel.shape[0]
    feature_map = torch.conv2d(pixels[None, None], weight[None, None], stride=patch_size)[0, 0]
    patches = torch.stack([torch.from_numpy(patch.ravel()).float() for patch in cut_into_patches(image, patch_size)])
    return feature_map, patches @ weight.flatten()


def _draw_convolution_lane(canvas: Canvas, image: np.ndarray, kernel: np.ndarray, result: np.ndarray, y: float) -> None:
    """Image, sliding kernel, feature map."""
    canvas.text(24, y, "A convolution with stride = patch_size", 14, weight="bold")
    canvas.picture(image, 24, y + 24, 156, 104)
    for place in range(6):
        row, column = divmod(place, 3)
        canvas.box(24 + 52 * column, y + 24 + 52 * row, 52, 52, "none", tint(ORANGE, 0.55), line=1.4, radius=0)
    canvas.box(76, y + 24, 52, 52, "none", VERMILION, line=4, radius=0)
    canvas.arrow((130, y + 50), (164, y + 50), VERMILION, 3)
    canvas.text(198, y + 76, "∗", 20, align="center")
    canvas.cells(216, y + 42, convert_to_colors(kernel, DIVERGING, -1, 1), 18)
    canvas.text(252, y + 30, "kernel", 12.5, align="center")
    canvas.text(304, y + 76, "=", 20, align="center")
    fills = np.full((2, 3), WHITE, dtype=object)
    fills[0, 1] = tint(VERMILION, 0.3)
    canvas.cells(318, y + 46, fills, (39, 30), labels=np.vectorize("{:.2f}".format)(result), size=12.5)
    canvas.text(376, y + 26, "one number\nper place", 12.5, align="center")


def _draw_linear_lane(canvas: Canvas, image: np.ndarray, kernel: np.ndarray, result: np.ndarray, y: float) -> None:
    """Patches as rows, one row of the Linear's weight, the same numbers."""
    canvas.text(24, y, "A Linear on each patch", 14, weight="bold")
    patches = np.stack([patch.ravel() for patch in cut_into_patches(image, 4)])
    canvas.picture(patches, 38, y + 20, 142, 132)
    for number in range(6):
        canvas.text(29, y + 31 + 22 * number, str(number), 12, QUIET, align="center")
        canvas.box(38, y + 20 + 22 * number, 142, 22, "none", BACKGROUND, line=1.5, radius=0)
    canvas.box(38, y + 42, 142, 22, "none", VERMILION, line=3, radius=0)
    canvas.text(192, y + 86, "·", 24, align="center", weight="bold")
    canvas.cells(204, y + 76, convert_to_colors(kernel.reshape(1, -1), DIVERGING, -1, 1), (6, 24))
    canvas.text(252, y + 62, "a row of weight", 12.5, align="center")
    canvas.text(330, y + 88, "=", 20, align="center")
    fills = np.full((6, 1), WHITE, dtype=object)
    fills[1, 0] = tint(VERMILION, 0.3)
    labels = np.vectorize("{:.2f}".format)(result[:, None])
    canvas.cells(349, y + 20, fills, (54, 22), labels=labels, size=12.5)


def conv_is_linear() -> Canvas:
    """One kernel slid over an image, and the same kernel as a row of a Linear."""
    image = load_hopper_photo(*PORTRAIT, factor=40).mean(axis=-1)
    kernel = np.random.default_rng(1).normal(0, 0.4, (4, 4))
    feature_map, products = convolve_both_ways(image, kernel)
    torch.testing.assert_close(feature_map.flatten(), products, rtol=0, atol=TOLERANCE)
    canvas = Canvas(484, "A strided convolution is a Linear", "the same Linear on each patch", width=460)
    _draw_convolution_lane(canvas, image, kernel, feature_map.numpy(), 88)
    _draw_linear_lane(canvas, image, kernel, products.numpy(), 254)
    canvas.arrow((252, 206), (252, 304), GRAY, 1.8)
    canvas.text(264, 254, "the same 16 numbers", 12.5, QUIET)
    canvas.line([(24, 424), (436, 424)], HAIR, 1)
    words = f"The two ways agree to {TOLERANCE:.0e}. As many kernels as\nembed_dim make a whole token."
    canvas.text(24, 452, words, 12.5, QUIET)
    return canvas.describe(
        "A kernel that moves over an image by its own size gives the same six numbers as one row of a "
        "Linear's weight multiplied with each flattened patch.",
        f"""Above, a gray image of 8 by 12 pixels; a kernel of 4 by 4 moves over it in steps of 4 and gives
        2 by 3 numbers. Below, the six patches of the image as six rows of 16 numbers, multiplied with the
        kernel's 16 numbers laid in a row, which is a row of a Linear's weight. Both give the same six
        numbers, to {TOLERANCE:.0e}. As many kernels as embed_dim make a whole token.""",
    )


FIGURES = {"conv_is_linear": conv_is_linear}

if __name__ == "__main__":
    save_all_figures(FIGURES)
