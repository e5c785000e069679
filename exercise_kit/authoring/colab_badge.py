"""Draw `colab_badge.png`, the button at the top of every notebook.

Run it by `python -m exercise_kit.authoring.colab_badge`. The drawing is ours and lies inside the notebook,
so that opening one makes no request to anybody.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon

FILE = Path(__file__).with_name("colab_badge.png")
ALT = "Open this notebook in Colab"
WIDTH, HEIGHT, DOTS_PER_INCH = 142, 28, 96
INK, ORANGE, WHITE = "#1b2733", "#E69F00", "#ffffff"


def draw() -> Figure:
    """The badge: an arrow head and three words on a dark, rounded card."""
    size = (WIDTH / DOTS_PER_INCH, HEIGHT / DOTS_PER_INCH)
    figure = Figure(figsize=size, dpi=DOTS_PER_INCH, facecolor="none")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, HEIGHT))
    axes.axis("off")
    rounded = "round,pad=0,rounding_size=5"
    axes.add_patch(FancyBboxPatch((0, 0), WIDTH, HEIGHT, boxstyle=rounded, facecolor=INK, linewidth=0))
    axes.add_patch(Polygon([(13, 7), (13, HEIGHT - 7), (26, HEIGHT / 2)], facecolor=ORANGE, linewidth=0))
    axes.text(36, HEIGHT / 2, "Open in Colab", color=WHITE, size=9.5, va="center_baseline", weight="bold")
    return figure


if __name__ == "__main__":
    draw().savefig(FILE, metadata={"Software": None})
