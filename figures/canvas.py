"""A canvas for the figures: a card of 480 pixels (700 for large plots) by as many as needed, y counted downwards.

Whatever is drawn later lies on top.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, Patch, Polygon
from style import BACKGROUND, GRAY, HAIR, INK, POINTS_PER_PIXEL, QUIET, choose_readable_ink, tint

CAPITAL, LINE_HEIGHT = 0.73, 1.45


class Canvas:
    """A card to draw on.

    Args:
        height: height of the card in pixels.
        title: the claim that the figure makes, printed at the top left; may have several lines.
        subtitle: what comes below it.
        width: of the card in pixels.
    """

    def __init__(self, height: int, title: str, subtitle: str = "", width: int = 480) -> None:
        self.height, self.width = height, width
        self.alt = self.description = ""
        size = (self.width * POINTS_PER_PIXEL / 72, height * POINTS_PER_PIXEL / 72)
        self.figure = Figure(figsize=size, dpi=96, label=title.replace("\n", " "))
        self._layer = 0
        self._page = self._add_page(zorder=0)
        self.box(1, 1, self.width - 2, height - 2, BACKGROUND, HAIR, radius=14)
        self._page = self._add_page(zorder=2)
        more, top = title.count("\n") * 16 * LINE_HEIGHT, subtitle.count("\n") * 12.5 * LINE_HEIGHT / 2
        self.text(24, 30 + more / 2, title, 16, weight="bold")
        self.text(24, 54 + more + top, subtitle, 12.5, QUIET)

    def describe(self, alt: str, description: str) -> Canvas:
        """Keep the one-sentence alternative text and the full text equivalent; returns the canvas."""
        self.alt, self.description = alt, " ".join(description.split())
        return self

    def _add_page(self, zorder: int) -> Axes:
        """Axes over the whole card, in pixels."""
        page = self.figure.add_axes((0, 0, 1, 1), xlim=(0, self.width), ylim=(self.height, 0), zorder=zorder)
        page.axis("off")
        return page

    def _add(self, patch: Patch) -> None:
        """Lay a patch on top of all else."""
        self._page.add_patch(patch)
        patch.set(zorder=self._next_layer(), clip_on=False)

    def _next_layer(self) -> int:
        self._layer += 1
        return self._layer

    def text(
        self,
        x: float,
        y: float,
        string: str,
        size: float = 13,
        color: str = INK,
        *,
        align: str = "left",
        weight: str = "normal",
        mono: bool = False,
        rotation: float = 0,
    ) -> None:
        """Print a string, capitals centered on y, several lines centered together; `size` in pixels."""
        family = "DejaVu Sans Mono" if mono else "DejaVu Sans"
        lines = string.split("\n")
        along = np.array([np.sin(np.deg2rad(rotation)), np.cos(np.deg2rad(rotation))])
        for number, words in enumerate(lines):
            shift = size * (CAPITAL / 2 + LINE_HEIGHT * (number - (len(lines) - 1) / 2))
            self._page.text(
                *(np.array([x, y]) + shift * along),
                words,
                size=size * POINTS_PER_PIXEL,
                color=color,
                ha=align,
                va="baseline",
                weight=weight,
                family=family,
                rotation=rotation,
                rotation_mode="anchor",
                zorder=self._next_layer(),
            )

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        fill: str,
        edge: str = "none",
        *,
        line: float = 1.2,
        radius: float = 6,
        dashed: bool = False,
    ) -> None:
        """Draw a rounded rectangle with its top left corner at (x, y)."""
        radius = min(radius, w / 2, h / 2)
        style = f"round,pad=0,rounding_size={radius}" if radius else "square,pad=0"
        patch = FancyBboxPatch((x, y), w, h, boxstyle=style, facecolor=fill, edgecolor=edge)
        patch.set(linewidth=line * POINTS_PER_PIXEL, linestyle=(0, (4, 3)) if dashed else "solid")
        self._add(patch)

    def label(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        string: str,
        color: str,
        *,
        size: float = 13,
        strength: float = 0.2,
        weight: str = "normal",
        mono: bool = False,
    ) -> None:
        """Draw a tinted box with a centered string."""
        fill = tint(color, strength)
        self.box(x, y, w, h, fill, color)
        self.text(
            x + w / 2, y + h / 2, string, size, choose_readable_ink(fill), align="center", weight=weight, mono=mono
        )

    def disc(self, x: float, y: float, radius: float, string: str, fill: str, *, size: float = 12) -> None:
        """Draw a filled disc with a centered string."""
        self._add(Circle((x, y), radius, facecolor=fill, edgecolor="none"))
        self.text(x, y, string, size, choose_readable_ink(fill), align="center", weight="bold")

    def line(
        self,
        points: Sequence[tuple[float, float]],
        color: str = GRAY,
        line: float = 1.5,
        *,
        dashed: bool = False,
    ) -> None:
        """Draw a broken line through the points."""
        x, y = zip(*points, strict=True)
        style = (0, (3, 2.5)) if dashed else "solid"
        self._page.plot(
            x,
            y,
            color=color,
            linewidth=line * POINTS_PER_PIXEL,
            linestyle=style,
            zorder=self._next_layer(),
            solid_capstyle="round",
            solid_joinstyle="round",
            clip_on=False,
        )

    def polygon(self, points: Sequence[tuple[float, float]], fill: str) -> None:
        """Fill a polygon."""
        self._add(Polygon(points, facecolor=fill, edgecolor="none"))

    def arrow(self, start: tuple[float, float], end: tuple[float, float], color: str = GRAY, line: float = 1.8) -> None:
        """Draw a straight arrow whose shaft is `line` wide."""
        tail, tip = np.array(start), np.array(end)
        along = (tip - tail) / np.linalg.norm(tip - tail)
        across = np.array([-along[1], along[0]])
        neck = tip - along * (6 + 2 * line)
        half_shaft, half_head = across * line / 2, across * (3.1 + line)
        left = [tail + half_shaft, neck + half_shaft, neck + half_head]
        right = [neck - half_head, neck - half_shaft, tail - half_shaft]
        self.polygon([*left, tip, *right], color)

    def cells(
        self,
        x: float,
        y: float,
        fills: np.ndarray,
        side: float | tuple[float, float],
        *,
        labels: np.ndarray | None = None,
        size: float = 12,
        edge: str = HAIR,
    ) -> None:
        """Draw a table of colored cells.

        Args:
            x, y: top left corner.
            fills: (rows, columns) of color strings.
            side: the cells' side, or their (width, height).
            labels: (rows, columns) of strings.
        """
        w, h = side if isinstance(side, tuple) else (side, side)
        for (row, column), fill in np.ndenumerate(fills):
            left, top = x + column * w, y + row * h
            self.box(left, top, w, h, fill, edge, line=1, radius=0)
            if labels is not None:
                center = (left + w / 2, top + h / 2)
                self.text(*center, labels[row, column], size, choose_readable_ink(fill), align="center")

    def picture(self, pixels: np.ndarray, x: float, y: float, w: float, h: float) -> None:
        """Place an image, (height, width) or (height, width, 3) in [0, 1], with sharp pixels."""
        box = (x, x + w, y + h, y)
        self._page.imshow(
            pixels,
            extent=box,
            interpolation="none",
            aspect="auto",
            zorder=self._next_layer(),
            cmap="gray",
            vmin=0,
            vmax=1,
        )
        self._page.set(xlim=(0, self.width), ylim=(self.height, 0))

    def plot_area(self, x: float, y: float, w: float, h: float) -> Axes:
        """Axes for curves, above the card and below all that is drawn on it: two spines, a light grid."""
        box = (x / self.width, 1 - (y + h) / self.height, w / self.width, h / self.height)
        axes = self.figure.add_axes(box, facecolor="none", zorder=1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=0, labelsize=12 * POINTS_PER_PIXEL, pad=4)
        axes.grid(color=HAIR, linewidth=0.6)
        axes.set_axisbelow(True)
        return axes
