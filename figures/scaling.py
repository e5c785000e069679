"""Figure of lesson 03: what the softmax does to scores with and without the division by the root of head_dim."""

from __future__ import annotations

import numpy as np
from attention import softmax
from canvas import Canvas
from style import BLUE, GRAY, POINTS_PER_PIXEL, QUIET, VERMILION, save_all_figures, shade

TOKENS = 64
HEAD_DIMS = 2 ** np.arange(2, 10)
REPEATS = 40


def measure_row_statistics(head_dim: int, scale: float) -> tuple[float, float]:
    """Mean entropy in bits and mean largest weight of the rows of attention between random tokens.

    Query and key are drawn from N(0, 1); the scores are multiplied by `scale`.
    """
    query, key = np.random.default_rng(head_dim).normal(size=(2, REPEATS, TOKENS, head_dim))
    weights = softmax(query @ key.swapaxes(-1, -2) * scale)
    entropy = -(weights * np.log2(np.maximum(weights, 1e-300))).sum(axis=-1)
    return float(entropy.mean()), float(weights.max(axis=-1).mean())


def softmax_scale() -> Canvas:
    """Entropy and largest weight against head_dim."""
    scaled = np.array([measure_row_statistics(int(size), size**-0.5) for size in HEAD_DIMS])
    raw = np.array([measure_row_statistics(int(size), 1.0) for size in HEAD_DIMS])
    subtitle = f"Softmax rows over {TOKENS} tokens; query and key drawn from N(0, 1)."
    canvas = Canvas(606, "Without the root,\nrows collapse onto one token", subtitle)
    panels = [
        ("Entropy of a row, in bits", (0, 6.9), np.log2(TOKENS), (80, 1.35), (60, 4.4)),
        ("Largest weight in a row", (0, 1.0), 1 / TOKENS, (7, 0.83), (60, 0.25)),
    ]
    for column, (title, limits, even, raw_place, scaled_place) in enumerate(panels):
        x, y = 52, 138 + 232 * column
        canvas.text(x - 28, y - 22, title, 14, weight="bold")
        axes = canvas.plot_area(x, y, 404, 160)
        axes.axhline(even, color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
        for numbers, color, place, words in (
            (raw, VERMILION, raw_place, "not divided"),
            (scaled, BLUE, scaled_place, "÷ √head_dim"),
        ):
            axes.plot(HEAD_DIMS, numbers[:, column], "o-", color=color, linewidth=1.8, markersize=4)
            axes.text(*place, words, color=shade(color, 0.15), weight="bold", size=13 * POINTS_PER_PIXEL)
        axes.set_xscale("log", base=2)
        axes.minorticks_off()
        axes.grid(visible=False, axis="x")
        axes.set(xticks=HEAD_DIMS, xticklabels=HEAD_DIMS, ylim=limits, xlim=(3.4, 600))
        canvas.text(x + 202, y + 188, "head_dim", 13, align="center")
    canvas.text(456, 584, "dashed: all tokens weigh the same", 12, QUIET, align="right")
    return canvas.describe(
        "Two plots against head_dim: undivided scores make the softmax rows collapse onto one token, scores "
        "divided by the root of head_dim do not.",
        f"""Two plots against head_dim from {HEAD_DIMS[0]} to {HEAD_DIMS[-1]}, for softmax rows over {TOKENS}
        tokens with random query and key. Above, the entropy of a row: undivided it falls from {raw[0, 0]:.1f}
        to {raw[-1, 0]:.1f} bits, divided by the root of head_dim it stays near {scaled[:, 0].mean():.1f}.
        Below, the largest weight: undivided it rises from {raw[0, 1]:.2f} to {raw[-1, 1]:.2f}, divided it
        stays near {scaled[:, 1].mean():.2f}.""",
    )


FIGURES = {"softmax_scale": softmax_scale}

if __name__ == "__main__":
    save_all_figures(FIGURES)
