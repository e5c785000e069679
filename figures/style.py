"""The house style of the figures: palette, color helpers, fonts, the sample photo, deterministic saving."""

from __future__ import annotations

import html
import io
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from dark import INK_STAYS, WHITE_STAYS, add_dark_rules, compute_contrast_ratio, compute_luminance, find_dark_color
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import get_sample_data
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from exercise_kit.palette import (
    BACKGROUND as BACKGROUND,
)
from exercise_kit.palette import (
    BLUE as BLUE,
)
from exercise_kit.palette import (
    GRAY as GRAY,
)
from exercise_kit.palette import (
    GREEN as GREEN,
)
from exercise_kit.palette import (
    HAIR as HAIR,
)
from exercise_kit.palette import (
    INK as INK,
)
from exercise_kit.palette import (
    ORANGE as ORANGE,
)
from exercise_kit.palette import (
    PURPLE as PURPLE,
)
from exercise_kit.palette import (
    SKY as SKY,
)
from exercise_kit.palette import (
    VERMILION as VERMILION,
)
from exercise_kit.palette import (
    WHITE as WHITE,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from canvas import Canvas

QUIET = "#566170"

FOLDER = Path(__file__).parent
POINTS_PER_PIXEL = 0.75
MARGIN = 8
# 112: a large card is 817 pixels wide then, which fits the column of every page that shows a notebook
PNG_DPI, PNG_COLORS = 112, 240

mpl.rcParams.update(
    {
        "font.family": "DejaVu Sans",
        "svg.fonttype": "path",
        "text.color": INK,
        "axes.edgecolor": GRAY,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "mathtext.fontset": "dejavusans",
    }
)


def tint(color: str, amount: float = 0.2) -> str:
    """Mix a share `amount` (0 to 1) of a color into the card's background."""
    return to_hex(amount * np.array(to_rgb(color)) + (1 - amount) * np.array(to_rgb(BACKGROUND)))


def shade(color: str, amount: float = 0.3) -> str:
    """Darken a color by a share `amount` (0 to 1), so that it can carry text on the card."""
    return to_hex((1 - amount) * np.array(to_rgb(color)))


def choose_readable_ink(fill: str) -> str:
    """The text color, ink or white, that contrasts more with `fill`; and so does its partner on the dark card."""
    choice = (WHITE, WHITE_STAYS) if compute_luminance(fill) < 0.2 else (INK, INK_STAYS)
    return max(choice, key=lambda color: compute_contrast_ratio(find_dark_color(color), find_dark_color(fill)))


DIVERGING: Colormap = LinearSegmentedColormap.from_list(
    "diverging", [BLUE, SKY, tint(SKY, 0.4), WHITE, tint(ORANGE, 0.5), tint(VERMILION, 0.8), VERMILION]
)
SEQUENTIAL: Colormap = LinearSegmentedColormap.from_list("sequential", [WHITE, tint(SKY, 0.6), BLUE, "#00304d"])


def convert_to_colors(values: np.ndarray, colors: Colormap, low: float, high: float) -> np.ndarray:
    """Color strings for an array of numbers, `low` and `high` at the color map's ends."""
    scaled = np.clip((np.asarray(values, dtype=float) - low) / (high - low), 0, 1)
    return np.vectorize(lambda value: to_hex(colors(value)), otypes=[object])(scaled)


def load_hopper_photo(rows: slice, columns: slice, factor: int) -> np.ndarray:
    """A crop of the Grace Hopper portrait (US Navy, public domain), each `factor`-sided square averaged.

    Returns:
        (height, width, 3) floats in [0, 1].
    """
    with get_sample_data("grace_hopper.jpg") as file:
        photo = imread(file, format="jpg")[rows, columns] / 255
    height, width = photo.shape[0] // factor, photo.shape[1] // factor
    return photo.reshape(height, factor, width, factor, 3).mean(axis=(1, 3))


def find_layout_faults(figure: Figure) -> list[str]:
    """Texts that leave the card, or that lie on one another."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    card = figure.bbox.padded(-MARGIN * figure.dpi / 96)
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    outside = [f"{words!r} leaves the card" for words, box in boxes if not _contains(card, box)]
    pairs = itertools.combinations(boxes, 2)
    return outside + [f"{a!r} lies on {b!r}" for (a, box), (b, other) in pairs if box.padded(-1).overlaps(other)]


def _contains(outer: Bbox, inner: Bbox) -> bool:
    """Say whether `inner` lies inside `outer`."""
    return bool(np.all(outer.min <= inner.min) and np.all(inner.max <= outer.max))


def save_figure(canvas: Canvas, name: str, folder: Path = FOLDER) -> Path:
    """Write `name`.svg and, for notebooks, `name`.png; the same bytes each time with the same matplotlib.

    The SVG holds its text equivalent, and its colors on a dark page.

    Raises:
        ValueError: a text leaves the card or lies on another.
    """
    figure = canvas.figure
    if faults := find_layout_faults(figure):
        raise ValueError(f"{name}: " + "; ".join(faults))
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        metadata = {"Title": figure.get_label(), "Date": None, "Creator": None}
        figure.savefig(buffer, format="svg", metadata=metadata, transparent=True)
    path = folder / f"{name}.svg"
    svg = _add_description(add_dark_rules(_compact_svg(buffer.getvalue())), canvas.description)
    path.write_text(svg, encoding="utf-8", newline="\n")
    _save_png(figure, path.with_suffix(".png"))
    return path


def _save_png(figure: Figure, path: Path) -> None:
    """The same picture in pixels and few colors: what a notebook can carry inside (Colab shows no inline SVG)."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_DPI, transparent=True, metadata={"Software": None})
    picture = Image.open(buffer).convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", picture.size, BACKGROUND), picture).convert("RGB")
    # the octree, Pillow's only method that knows transparency, merges pale tints that carry meaning here
    indexed = flat.quantize(PNG_COLORS, method=Image.Quantize.MAXCOVERAGE, kmeans=1)
    colors = np.full((256, 3), 255 * np.array(to_rgb(HAIR)), dtype=np.uint8)
    palette = np.array(indexed.getpalette(), dtype=np.uint8).reshape(-1, 3)[:PNG_COLORS]
    colors[: len(palette)] = palette
    alpha, pixels = np.array(picture)[..., 3], np.array(indexed)
    pixels = np.where(alpha < 255, PNG_COLORS + alpha // 17, pixels).astype(np.uint8)
    result = Image.fromarray(pixels)
    result.putpalette(colors.tobytes())
    result.save(path, optimize=True, transparency=bytes([255] * PNG_COLORS + [17 * step for step in range(16)]))


def _compact_svg(svg: str) -> str:
    """Drop what a browser does not need: metadata, indentation, long names, digits past 1/100 em."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*<(/?)g id=\"(text|patch|line2d|xtick|ytick|matplotlib\.axis)_\d+\">", r"\n<\1g>", svg)
    svg = re.sub(r"(?<= d=\")[^\"]+", lambda path: re.sub(r"\s*([A-Za-z])\s*", r"\1", path[0]), svg)
    svg = re.sub(r"\n\s+", "\n", svg)
    svg = re.sub(r'transform="translate\(([\d.]+) 0\)"(?=/>)', lambda shift: f'x="{float(shift[1]):.0f}"', svg)
    fonts = dict.fromkeys(re.findall(r'<path id="(DejaVu[\w-]+-)[0-9a-f]+"', svg))
    for number, font in enumerate(sorted(fonts, key=len, reverse=True)):
        svg = svg.replace(f'"{font}', f'"f{number}-').replace(f'"#{font}', f'"#f{number}-')
    return svg


def _add_description(svg: str, description: str) -> str:
    """The SVG with its full text equivalent behind its title, so that it goes wherever the picture goes."""
    svg = svg.replace("<svg ", '<svg role="img" ', 1)
    return svg.replace("</title>\n", f"</title>\n<desc>{html.escape(description, quote=False)}</desc>\n", 1)


def save_all_figures(drawings: dict[str, Callable[[], Canvas]]) -> None:
    """Draw and save a family of figures."""
    for name, draw in drawings.items():
        path = save_figure(draw(), name)
        print(f"{path.name:30s} {path.stat().st_size / 1024:6.1f} kB")
