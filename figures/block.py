"""Figures of lesson 04: LayerNorm's axis, where the norms stand in a block, and GELU."""

from __future__ import annotations

import numpy as np
import torch
from canvas import Canvas
from style import (
    BACKGROUND,
    BLUE,
    DIVERGING,
    GRAY,
    GREEN,
    HAIR,
    INK,
    ORANGE,
    QUIET,
    VERMILION,
    WHITE,
    convert_to_colors,
    save_all_figures,
    shade,
)

CELL, TOP, RESULT = (17, 24), 130, 354


def _draw_tensor(canvas: Canvas, left: float, tensor: np.ndarray) -> None:
    """A tensor (batch, tokens, embed_dim) as one matrix below the other."""
    for image, matrix in enumerate(tensor):
        top = TOP + 134 * image
        canvas.cells(left, top, convert_to_colors(matrix, DIVERGING, -3.2, 3.2), CELL, edge=WHITE)
        canvas.box(left, top, CELL[0] * matrix.shape[1], CELL[1] * len(matrix), "none", HAIR, radius=2)


def layer_norm() -> Canvas:
    """Eight tokens, each with its own mean and standard deviation."""
    batch, tokens, embed_dim = 2, 4, 6
    generator = np.random.default_rng(5)
    means, scales = generator.uniform(-3, 3, (batch, tokens, 1)), generator.uniform(0.4, 2, (batch, tokens, 1))
    x = torch.from_numpy(means + scales * generator.normal(size=(batch, tokens, embed_dim)))
    left, width = 110, CELL[0] * embed_dim
    canvas = Canvas(474, "LayerNorm looks at one token at a time", "x has the shape (batch, tokens, embed_dim).")
    _draw_tensor(canvas, left, x.numpy())
    _draw_tensor(canvas, RESULT, torch.nn.functional.layer_norm(x, (embed_dim,)).numpy())
    for words, place in (("x", left + width / 2), ("mean", 250), ("std", 303), ("layer_norm(x)", RESULT + width / 2)):
        canvas.text(place, 88, words, 14, align="center", weight="bold")
    canvas.arrow((left, 112), (left + width, 112), shade(ORANGE, 0.1), 2.2)
    canvas.text(left - 8, 112, "embed_dim", 12.5, shade(ORANGE, 0.4), align="right")
    for image in range(batch):
        canvas.text(30, 178 + 134 * image, f"image {image}", 13, align="center", weight="bold", rotation=90)
        for token in range(tokens):
            y = TOP + 134 * image + CELL[1] * (token + 0.5)
            mean, std = float(x[image, token].mean()), float(x[image, token].std(correction=0))
            canvas.text(left - 10, y, f"token {token}", 12, QUIET, align="right")
            canvas.line([(left + width + 4, y), (222, y)], GRAY, 1.2)
            canvas.text(272, y, f"{mean:.2f}".replace("-", "−"), 13, align="right", mono=True)
            canvas.text(320, y, f"{std:.2f}", 13, align="right", mono=True)
            canvas.arrow((328, y), (348, y), GRAY, 1.2)
    canvas.text(24, 398, "Each row gets its own mean and std: neither other tokens\nnor other images take part.", 12.5)
    canvas.text(
        24, 444, "Then times weight, plus bias: one number per dimension,\nthe same for every token.", 12.5, QUIET
    )
    return canvas.describe(
        "LayerNorm takes a mean and a standard deviation along embed_dim for each token of each image alone.",
        f"""On the left x, two images of {tokens} tokens with {embed_dim} numbers each, some rows bluish and
        some reddish throughout. An arrow marks the embed_dim axis. Each of the {batch * tokens} rows leads
        to its own mean and std, and on to its own row of the result on the right, where no row stands out.
        Then follow weight and bias, one number per dimension, the same for every token.""",
    )


def _draw_branch(canvas: Canvas, stream: float, top: float, parts: list[tuple[str, str]]) -> float:
    """A branch that leaves the stream, passes through boxes and is added again; returns the plus's y."""
    bottom = top + 56 * len(parts) + 20
    middle = stream + 98
    canvas.line([(stream, top), (middle, top)], GRAY, 2)
    canvas.arrow((middle, top), (middle, top + 14), GRAY, 2)
    for number, (words, color) in enumerate(parts):
        y = top + 16 + 54 * number
        canvas.label(middle - 46, y, 92, 34, words, color, strength=0.28, mono=True)
        if number + 1 < len(parts):
            canvas.arrow((middle, y + 34), (middle, y + 52), GRAY, 2)
    canvas.line([(middle, y + 34), (middle, bottom), (stream + 40, bottom)], GRAY, 2)
    canvas.arrow((stream + 40, bottom), (stream + 15, bottom), GRAY, 2)
    return bottom


def _draw_plus_sign(canvas: Canvas, x: float, y: float) -> None:
    canvas.disc(x, y, 13, "", INK)
    canvas.disc(x, y, 11, "+", WHITE, size=17)


NORM1, ATTENTION, NORM2, MLP = ("norm1", ORANGE), ("attention", BLUE), ("norm2", ORANGE), ("mlp", GREEN)


def pre_post_norm() -> Canvas:
    """A pre-norm and a post-norm block side by side."""
    canvas = Canvas(548, "Pre-norm keeps the residual stream clear", "The thick line is the residual stream.")
    pre, post, top, bottom = 54, 284, 132, 490
    for x, title in ((pre, "pre-norm\n(ViT)"), (post, "post-norm\n(the first Transformer)")):
        canvas.text(x - 30, 90, title, 14, weight="bold")
        canvas.arrow((x, top - 14), (x, bottom), INK, 6)
        canvas.text(x - 16, top - 2, "x", 14, align="right", mono=True)
    first = _draw_branch(canvas, pre, top + 12, [NORM1, ATTENTION])
    second = _draw_branch(canvas, pre, first + 36, [NORM2, MLP])
    for y in (first, second):
        _draw_plus_sign(canvas, pre, y)
    y = top + 12
    for part, norm in ((ATTENTION, NORM1), (MLP, NORM2)):
        end = _draw_branch(canvas, post, y, [part])
        _draw_plus_sign(canvas, post, end)
        canvas.box(post - 40, end + 26, 80, 34, BACKGROUND, BACKGROUND, radius=6)
        canvas.label(post - 40, end + 26, 80, 34, norm[0], norm[1], strength=0.28, mono=True)
        y = end + 80
    canvas.text(pre - 30, 518, "nothing but additions", 13, align="left")
    canvas.text(post - 40, 518, "each norm rewrites the stream", 13, align="left")
    return canvas.describe(
        "In a pre-norm block the norms stand on the branches and the residual stream runs straight through; in a "
        "post-norm block the norms stand on the stream.",
        """Two blocks side by side, each with a thick vertical line, the residual stream. Pre-norm, as in
        ViT: a branch leaves the stream, passes norm1 and attention and is added to the stream; a second
        branch passes norm2 and mlp and is added. Post-norm, as in the first Transformer: a branch passes
        attention and is added, then norm1 stands on the stream itself; a branch passes mlp and is added,
        then norm2 stands on the stream.""",
    )


def compute_gelu_curves() -> dict[str, np.ndarray]:
    """Inputs and the values of exact GELU, its tanh form, and ReLU, as torch computes them in float64."""
    x = torch.linspace(-4, 3, 281, dtype=torch.float64)
    gelu = torch.nn.functional.gelu
    curves = {"x": x, "exact": gelu(x), "tanh": gelu(x, approximate="tanh"), "relu": torch.relu(x)}
    return {name: curve.numpy() for name, curve in curves.items()}


def mlp_gelu() -> Canvas:
    """Three activations, and how far the tanh form is from the exact one."""
    curves = compute_gelu_curves()
    x, difference = curves["x"], curves["exact"] - curves["tanh"]
    lowest = int(curves["exact"].argmin())
    subtitle = "The exact form and its tanh form differ too little to see,\nand enough to test."
    canvas = Canvas(464, "GELU: a ReLU with a soft knee", subtitle)
    axes = canvas.plot_area(44, 102, 412, 320)
    axes.plot(x, curves["relu"], color=GRAY, linewidth=1.5)
    axes.plot(x, curves["exact"], color=BLUE, linewidth=2.8)
    axes.plot(x, curves["tanh"], color=ORANGE, linewidth=1.6, linestyle=(0, (4, 3)))
    axes.grid(visible=False)
    axes.set(xlim=(-4, 3), ylim=(-0.5, 3), yticks=range(4), xticks=range(-4, 4))
    canvas.text(376, 196, "ReLU", 13.5, QUIET, align="right", weight="bold")
    canvas.text(380, 318, "GELU", 13.5, BLUE, weight="bold")
    canvas.text(380, 342, "its tanh form", 12.5, shade(ORANGE, 0.4))
    canvas.line([(352, 318), (374, 318)], BLUE, 3.6)
    canvas.line([(352, 342), (374, 342)], ORANGE, 2.2, dashed=True)
    canvas.text(
        236,
        410,
        f"lowest: {curves['exact'][lowest]:.2f} at x = {x[lowest]:.2f}".replace("-", "−"),
        12.5,
        BLUE,
        align="center",
    )
    canvas.box(60, 110, 214, 206, "none", HAIR, radius=8)
    canvas.text(74, 138, "exact − tanh,\nin thousandths", 12.5, shade(VERMILION, 0.1), weight="bold")
    inset = canvas.plot_area(102, 168, 156, 118)
    inset.plot(x, 1000 * difference, color=VERMILION, linewidth=1.6)
    inset.set(xlim=(-4, 3), xticks=range(-4, 4, 2), ylim=(-0.55, 0.35), yticks=[-0.4, -0.2, 0, 0.2])
    return canvas.describe(
        "Exact GELU, its tanh form and ReLU as curves, with an inset of the difference between the two GELUs.",
        f"""Curves for inputs from -4 to 3. ReLU is zero and then a straight line. GELU follows it on both
        sides but bends softly through a lowest value of {curves["exact"][lowest]:.2f} at x =
        {x[lowest]:.2f}. The tanh form lies on the exact GELU; an inset shows their difference, at most
        {abs(difference).max():.1e} in size.""",
    )


FIGURES = {"layer_norm": layer_norm, "pre_post_norm": pre_post_norm, "mlp_gelu": mlp_gelu}

if __name__ == "__main__":
    save_all_figures(FIGURES)
